"""The cost of a launch through every interface of the driver: ``python -m benchmarks.launches``.

The command repeats the launch of the kernel of ``a + b`` over a thousand float32, with arguments packed beforehand. It
uses each form that cuda-bindings and ctypes have, on the legacy default stream and on a new stream. If a form is
missing, the reason replaces the number. A first table has the whole operation, the operation with a launch that does
nothing, the operations of torch and CuPy if they are installed, and other costs of a launch.

The command waits for the device between batches of 300 launches, so that its queue is never full. Without a GPU, or
with ``--stub``, the driver is the stub of the tests. The numbers are then Python's time alone.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks import timing
from benchmarks.dispatch import load_stub, operands, pieces, table

BATCH = 300
CONFIG = 56
"""Bytes of the configuration, which is between a frame's arguments and their addresses."""

FORMS = (
    ("a Python function with the same number of arguments", "noop(f, 1, 1, 1, n, 1, 1, s, o, p, 0)"),
    ("cuda-bindings cuLaunchKernel", "launch(f, 1, 1, 1, n, 1, 1, s, o, p, 0)"),
    ("... the kernel and the stream as ints", "launch(fi, 1, 1, 1, n, 1, 1, s, oi, p, 0)"),
    ("... arguments as tuples of values and types", "launch(f, 1, 1, 1, n, 1, 1, s, o, (values, types), 0)"),
    ("... arguments as one buffer in `extra`", "launch(f, 1, 1, 1, n, 1, 1, s, o, 0, e)"),
    ("... of the CUkernel of a library", "launch(k, 1, 1, 1, n, 1, 1, s, o, p, 0)"),
    ("cuda-bindings cuLaunchKernelEx", "launch_ex(config, f, p, 0)"),
    ("cuda-bindings _v2 launch_kernel", "launch_v2(fi, 1, 1, 1, n, 1, 1, s, oi, p, 0)"),
    ("ctypes cuLaunchKernel, types declared", "typed(fi, 1, 1, 1, n, 1, 1, s, oi, p, 0)"),
    ("ctypes cuLaunchKernel, ready objects", "free(fr, 1, 1, 1, n, 1, 1, s, orr, pr, None)"),
    ("ctypes cuLaunchKernel, holding the GIL", "held(fr, 1, 1, 1, n, 1, 1, s, orr, pr, None)"),
    ("ctypes cuLaunchKernelEx, ready objects", "free_ex(cr, fr, pr, None)"),
    ("ctypes cuLaunchKernelEx, `extra`", "free_ex(cr, fr, None, er)"),
    ("ctypes cuLaunchKernelEx, holding the GIL", "held_ex(cr, fr, pr, None)"),
    ("ctypes cuLaunchKernelEx, of the CUkernel", "free_ex(cr, kr, pr, None)"),
)


class Config(ctypes.Structure):
    """The driver's ``CUlaunchConfig``."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


def launching(parts: Mapping[str, Any], stream: int) -> dict[str, Any]:
    """Return the names in the forms: the kernel of ``a + b`` and a stream, in each representation."""
    from tilearray_cuda.runtime.driver import STREAMS, api
    from tilearray_cuda.runtime.launch import reference

    function, slab, start = parts["plan"].kernel.function, parts["slab"], parts["start"]
    values = ctypes.addressof(slab) + start
    p = ctypes.cast(parts["addresses"], ctypes.c_void_p).value
    count = (p - values - CONFIG) // 8
    size = ctypes.c_size_t(8 * count)
    extra = (ctypes.c_void_p * 5)(1, values, 2, ctypes.addressof(size), None)
    config = Config(1, 1, 1, function.threads, 1, 1, function.shared, stream, None, 0)
    handle = int(function.handle)
    found = {
        "kept": (slab, size, extra, config),
        "noop": lambda f, gx, gy, gz, bx, by, bz, s, o, p, e: None,
        "launch": api.cuLaunchKernel,
        "f": function.handle,
        "fi": handle,
        "fr": reference(handle),
        "n": function.threads,
        "s": function.shared,
        "p": p,
        "pr": reference(p),
        "e": ctypes.addressof(extra),
        "er": ctypes.byref(extra),
        "cr": ctypes.byref(config),
        "o": STREAMS[stream],
        "oi": stream,
        "orr": reference(stream) if stream else None,
        "values": tuple((ctypes.c_uint64 * count).from_address(values)),
        "types": (ctypes.c_uint64,) * count,
        **of_ctypes(),
    }
    for name, make in (("k", lambda: kernel_of(parts)), ("launch_ex", lambda: api.cuLaunchKernelEx)):
        found.update(optional(name, make))
    found.update(optional("config", lambda: bindings_config(api, config, STREAMS[stream])))
    found.update(optional("launch_v2", lambda: importlib.import_module("cuda.bindings._v2.driver").launch_kernel))
    if "k" in found:
        found["kr"] = reference(int(found["k"]))
    return found


def optional(name: str, make: Callable[[], Any]) -> dict[str, Any]:
    """Return the object that `make` makes under a name, or nothing if it fails."""
    try:
        return {name: make()}
    except Exception:
        return {}


def of_ctypes() -> dict[str, Any]:
    """Return the driver's own functions by ctypes, both releasing and holding the GIL during the call."""
    free, held, typed = (kind("libcuda.so.1") for kind in (ctypes.CDLL, ctypes.PyDLL, ctypes.CDLL))
    pointer = ctypes.c_void_p
    typed.cuLaunchKernel.argtypes = (pointer, *[ctypes.c_uint] * 7, *[pointer] * 3)
    found = {"free": free.cuLaunchKernel, "held": held.cuLaunchKernel, "typed": typed.cuLaunchKernel}
    found.update(optional("free_ex", lambda: free.cuLaunchKernelEx))
    found.update(optional("held_ex", lambda: held.cuLaunchKernelEx))
    return found


def kernel_of(parts: Mapping[str, Any]) -> Any:
    """Return the same kernel as a CUkernel, which is independent of contexts."""
    from tilearray_cuda.kernels.compile import cubin_of
    from tilearray_cuda.runtime.driver import api, call

    kernel = parts["plan"].kernel
    cubin = cubin_of(kernel.source, kernel.function.device.arch, kernel.schedule.spec.contract)
    library = call(api.cuLibraryLoadData, cubin.code, [], [], 0, [], [], 0)
    return call(api.cuLibraryGetKernel, library, cubin.name.encode())


def bindings_config(api: Any, config: Config, stream: Any) -> Any:
    """Return the configuration as a `CUlaunchConfig` of cuda-bindings."""
    made = api.CUlaunchConfig()
    made.gridDimX, made.gridDimY, made.gridDimZ = config.gx, config.gy, config.gz
    made.blockDimX, made.blockDimY, made.blockDimZ = config.bx, config.by, config.bz
    made.sharedMemBytes = config.shared
    if stream is not None:
        made.hStream = stream
    made.numAttrs = 0
    return made


def timed(statement: str, names: Mapping[str, Any], repeats: int, wait: Callable[[], Any]) -> tuple[Any, Any]:
    """Return the nanoseconds of a statement, of the fastest and the median batch; or the reason for their absence."""
    timer = timing.statement_timer(statement, names)
    try:
        timer.timeit(20)
    except NameError:
        return "not available", ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:60].replace("|", "/"), ""
    batches: list[float] = []
    for _ in range(repeats):
        wait()
        batches.append(timer.timeit(BATCH) / BATCH * 1e9)
    wait()
    return min(batches), median(batches)


def whole(parts: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the whole operation, of tilearray and its peers: a name, a statement and its names."""
    names = {name: parts[name] for name in ("a", "b", "c", "add")}
    yield from ((name, name, names) for name in ("a + b", "c += b", "add(a, b, out=c)"))
    for library, make in (("torch", torch_arrays), ("cupy", cupy_arrays)):
        theirs = optional("found", make).get("found")
        if theirs:
            yield f"{library} a + b", "a + b", theirs
            yield f"{library} a += b", "a += b", theirs
            yield f"{library} add(a, b, out=c)", "add(a, b, out=c)", theirs


def torch_arrays() -> dict[str, Any]:
    torch = importlib.import_module("torch")
    a, b, c = (torch.zeros(1000, device="cuda") for _ in range(3))
    return {"a": a, "b": b, "c": c, "add": torch.add}


def cupy_arrays() -> dict[str, Any]:
    cupy = importlib.import_module("cupy")
    a, b, c = (cupy.zeros(1000, dtype="float32") for _ in range(3))
    a + b
    return {"a": a, "b": b, "c": c, "add": cupy.add}


def torch_checks() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield torch's checks for a capture and for the current stream, to measure their cost."""
    torch = sys.modules.get("torch")
    native = getattr(torch, "_C", None)
    for name, statement in (
        ("_cuda_isCurrentStreamCapturing", "ask()"),
        ("_cuda_getCurrentRawStream", "ask(0)"),
        ("_cuda_getDevice", "ask()"),
    ):
        if hasattr(native, name):
            yield f"torch {name}", statement, {"ask": getattr(native, name)}


def with_no_launch(parts: Mapping[str, Any], measure: Callable[[], Any]) -> Any:
    """Measure while the launch of ``a + b`` does nothing."""
    call = parts["plan"].call
    cell = call.__closure__[call.__code__.co_freevars.index("cuLaunchKernelEx")]
    launch = cell.cell_contents
    cell.cell_contents = lambda configuration, function, addresses, extra: 0
    try:
        return measure()
    finally:
        cell.cell_contents = launch


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.launches", description=__doc__.partition("\n")[0])
    parser.add_argument("--stub", action="store_true", help="use the stub driver even if there is a GPU")
    parser.add_argument("--repeats", type=int, default=100, help=f"batches of {BATCH} calls")
    options = parser.parse_args(arguments)
    import tilearray_cuda

    if options.stub or not tilearray_cuda.device_count():
        load_stub()
    import tilearray as ta

    parts = pieces(operands())
    wait, own = ta.cuda.synchronize, ta.cuda.Stream()

    def row(name: str, statement: str, names: Mapping[str, Any]) -> tuple[Any, ...]:
        return name, *timed(statement, names, options.repeats, wait)

    rows = [row(*each) for each in whole(parts)]
    ours = {"a": parts["a"], "b": parts["b"]}
    if "torch" in sys.modules:
        rows.append(row("a + b, while torch is in use", "a + b", ours))
    rows.append(with_no_launch(parts, lambda: row("a + b, the launch does nothing", "a + b", ours)))
    rows += [row(*each) for each in torch_checks()]
    print(table("operation", ("ns: fastest", "median"), rows), "\n")
    legacy, beside = launching(parts, 0), launching(parts, own.handle)
    rows = [
        (name, *timed(form, legacy, options.repeats, wait), *timed(form, beside, options.repeats, wait))
        for name, form in FORMS
    ]
    print(
        table("launch of the same kernel", ("default stream: fastest", "median", "own stream: fastest", "median"), rows)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
