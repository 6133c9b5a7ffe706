"""Launches -> their kernels as data: how a loop runs on the host, or on a GPU of some architecture.

The facts are asked of the backends: the schedule of those that choose one, the source and the cache's key of those that
compile, and registers of the machine code. So an explanation cannot differ from what runs.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

from tilearray.engine.backend import AnyLoop
from tilearray.engine.expression import Expression
from tilearray.errors import DeviceError, shown
from tilearray.geometry.loop import Loop
from tilearray.geometry.reduction import ReductionLoop

ARCHITECTURES = (80, 86, 87, 89, 90, 100, 103, 120, 121)
"""The compute capabilities with an assembler in Triton and tile sizes in the backend."""


@dataclass(frozen=True)
class HostKernel:
    """How the host runs a launch.

    Attributes
    ----------
    strategy : str
        How NumPy walks the loop, in words.
    source : str
        The call of NumPy, or the function that runs for each block. Empty for reductions and scans.
    """

    strategy: str
    source: str


@dataclass(frozen=True)
class Code:
    """The machine code of a GPU kernel.

    Attributes
    ----------
    registers : int
        Registers of a thread.
    stack, shared : int
        Bytes of stack of a thread, and of shared memory of a program.
    spills : int
        Instructions that move registers to memory and back.
    loads, stores : tuple of (int, int)
        The instructions that read or write global memory: for each size in bytes their number, the largest size first.
        Whole tiles and partial ones have their own instructions.
    """

    registers: int
    stack: int
    shared: int
    spills: int
    loads: tuple[tuple[int, int], ...]
    stores: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class GpuKernel:
    """The kernel that a GPU runs for a launch.

    Attributes
    ----------
    name : str
        The function's name in the source.
    arch : int
        The compute capability, as 90 for sm_90.
    schedule : str
        The strategy that runs the loop.
    reasons : tuple of str
        Which strategies were asked, and why this one was chosen.
    tile : tuple of int
        Rows and columns of the elements of a program.
    warps : int
    elements : int
        Elements that a thread computes.
    programs : int
        The programs of the launch.
    source : str
        The Triton source.
    contract : bool
        Whether the compiler may compute a product and a sum as one fma.
    key : str
        The key of the compiled kernel in the cache.
    kept : str
        Where the cache had the kernel before this explanation: "memory", "disk", or "" for nowhere.
    code : Code or None
        The machine code, or None if it is not in the cache and Triton is not installed.
    """

    name: str
    arch: int
    schedule: str
    reasons: tuple[str, ...]
    tile: tuple[int, int]
    warps: int
    elements: int
    programs: int
    source: str
    contract: bool
    key: str
    kept: str
    code: Code | None


@dataclass(frozen=True)
class LibraryKernel:
    """A call of a library instead of a kernel.

    Attributes
    ----------
    strategy : str
        The call, in words.
    source : str
        Empty.
    """

    strategy: str
    source: str = ""


Kernel = HostKernel | GpuKernel | LibraryKernel


def architecture(arch: object) -> int:
    """Return a compute capability from 90 or "sm_90".

    Examples
    --------
    >>> architecture("sm_90"), architecture(80)
    (90, 80)
    """
    found = {str(known): known for known in ARCHITECTURES}.get(str(arch).removeprefix("sm_"))
    if found is None:
        known = ", ".join(map(str, ARCHITECTURES))
        raise DeviceError(f"explain: expected a compute capability of {known}, got {shown(arch)}; write arch=90")
    return found


# --- the host --------------------------------------------------------------------------------------------------------


def host_kernel(expression: Expression, loop: AnyLoop) -> HostKernel:
    """Return how the host runs a launch."""
    if not isinstance(loop, Loop):
        what = "reduces" if isinstance(loop, ReductionLoop) else "scans"
        count = loop.segments.total
        return HostKernel(
            f"NumPy {what} in {count} segment{'s' if count > 1 else ''} with {loop.lanes} lanes, or in one call if "
            f"any order of the elements will do",
            "",
        )
    host: Any = importlib.import_module("tilearray_host.kernel")
    source = host.source_of(expression, loop)
    if not source.startswith("def "):
        return HostKernel("one call of NumPy over whole views", source)
    if host.array_to_look_up(expression, loop) is not None:
        return HostKernel("a table of the results for all values of x0, which a function of NumPy calls fills", source)
    return HostKernel(f"a function of NumPy calls, for all elements or for blocks of {host.BLOCK}", source)


# --- GPUs ------------------------------------------------------------------------------------------------------------


def schedule_for(expression: Expression, loop_class: Any, aligned: tuple[bool, ...], arch: int) -> Any:
    """Return the schedule of a kernel."""
    spec = importlib.import_module("tilearray_cuda.kernels.spec").make_spec(expression, loop_class, aligned)
    return importlib.import_module("tilearray_cuda.kernels.schedules.choose").schedule_of(spec, arch)


def source_for(schedule: Any) -> Any:
    """Return the Triton source of a schedule, with what its compilation needs."""
    return importlib.import_module("tilearray_cuda.kernels.source").source_of(schedule)


def gpu_kernel(schedule: Any, loop: AnyLoop, arch: int) -> GpuKernel:
    """Return the kernel of a launch on a GPU, compiled if the cache does not have it and Triton is installed."""
    source = source_for(schedule)
    contract = schedule.spec.contract
    key, kept, code = _code(source, arch, contract)
    tile = schedule.tile
    return GpuKernel(
        name=source.name,
        arch=arch,
        schedule=_name_of(schedule),
        reasons=tuple(_reasons(schedule)),
        tile=(tile.rows, tile.columns),
        warps=tile.warps,
        elements=tile.of_a_thread,
        programs=programs_of(schedule, loop),
        source=source.text,
        contract=contract,
        key=key,
        kept=kept,
        code=code,
    )


def programs_of(schedule: Any, loop: AnyLoop) -> int:
    """Return the number of programs of a launch: the value of the schedule's expression of the loop's extents."""
    extents: dict[str, Any] = {f"n{axis}": extent for axis, extent in enumerate(loop.shape)}
    return eval(schedule.programs(), {"__builtins__": {}, "min": min, "max": max}, extents | {"loop": loop})


def _reasons(schedule: Any) -> list[str]:
    """Return the schedules that were asked before this one, and this one, each with what it does."""
    choose: Any = importlib.import_module("tilearray_cuda.kernels.schedules.choose")
    found: list[str] = []
    for kind in choose.SCHEDULES[: choose.SCHEDULES.index(type(schedule))]:
        if schedule.spec.case in kind.cases:
            found.append(f"{_name_of(kind)} declined ({_lower(kind)})")
    return [*found, f"{_name_of(schedule)} runs it: {_lower(type(schedule))}"]


def _lower(documented: Any) -> str:
    """Return the first line of a docstring as a part of a sentence."""
    line = (documented.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    return line[:1].lower() + line[1:]


def _name_of(kind: Any) -> str:
    """Return the name of a schedule or its class, which is that of its module."""
    return kind.__module__.rpartition(".")[2]


def _code(source: Any, arch: int, contract: bool) -> tuple[str, str, Code | None]:
    """Return the key of a kernel, where the cache has it, and its machine code."""
    cache: Any = importlib.import_module("tilearray_cuda.kernels.disk_cache")
    compiling: Any = importlib.import_module("tilearray_cuda.kernels.compile")
    key = cache.key_of(source.text, arch, compiling.identity_of(source, contract))
    kept = cache.process_cache().place_of(key)
    if not kept and importlib.util.find_spec("triton") is None:
        return key, kept, None
    cubin = compiling.cubin_of(source, arch, contract)
    read: Any = importlib.import_module("tilearray_cuda.kernels.machine_code").read_machine_code(cubin.code)
    return key, kept, Code(read.registers, read.stack, cubin.shared, read.spills, read.loads, read.stores)
