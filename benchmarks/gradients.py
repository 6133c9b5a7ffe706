"""``python -m benchmarks.gradients``: forward and backward of whole functions, beside torch.compile and jax.grad.

A row is a function of arrays and its gradients for all of them, given the cotangent of its result. On the host the
peer is torch; on a GPU they are torch, torch.compile and JAX, if they are installed. "tilearray fused" is the vjp of a
fused function, "one program" fuses forward and backward together, "tilearray" runs step by step, and "f.torch" is the
fused function as an operator under torch's autograd. The figure is milliseconds, and the rate of the bytes that ideal
kernels move: each operand, cotangent, result and gradient once, and each operand once more for the backward. Before a
row is timed, tilearray's gradients on small arrays are compared with torch's in float64. ``--out DIR`` writes a record.

Exit status: 0 for success; 1 if a gradient of tilearray was wrong; 2 if the device does not exist.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks import programs, report, tables
from benchmarks.fused import gated, gelu

SIDES = {"full": 8192, "host": 1024, "small": 32}
"""Rows and columns of a matrix."""


def bias_relu_residual(m: Any, x: Any, residual: Any, bias: Any) -> Any:
    shifted = x + bias
    return m.where(shifted > 0, shifted, 0 * shifted) + residual


def layer_norm(m: Any, x: Any, scale: Any, shift: Any) -> Any:
    distance = x - m.mean(x, 1)[:, None]
    return distance / m.sqrt(m.mean(distance * distance, 1)[:, None] + 1e-5) * scale + shift


def smooth_l1(m: Any, x: Any, y: Any, weight: Any) -> Any:
    distance = m.abs(x - y)
    return m.where(distance < 1, 0.5 * distance * distance, distance - 0.5) * weight


class Program(NamedTuple):
    """A row: the function of a namespace and arrays; for each array whether it is a matrix; the dtype, and the length
    of rows, 0 for square matrices."""

    function: Callable[..., Any]
    matrices: tuple[bool, ...]
    dtype: str = "float32"
    columns: int = 0

    @property
    def name(self) -> str:
        """The row's name in a table."""
        rows = f", rows of {self.columns}" if self.columns else ""
        return f"{self.function.__name__} {self.dtype}{rows}"


PROGRAMS = (
    Program(gelu, (True,)),
    Program(gelu, (True,), "bfloat16"),
    Program(gated, (True, True)),
    Program(gated, (True, True), "bfloat16"),
    Program(bias_relu_residual, (True, True, False)),
    Program(bias_relu_residual, (True, True, False), "bfloat16"),
    Program(layer_norm, (True, False, False), columns=4096),
    Program(layer_norm, (True, False, False), "bfloat16", columns=4096),
    Program(smooth_l1, (True, True, False)),
)


class Library(NamedTuple):
    """A library: how it takes an ndarray, how it makes a function of arrays and a cotangent that returns the result and
    the gradients, and how it waits for a result."""

    name: str
    adopt: Callable[[np.ndarray], Any]
    both: Callable[[Callable[..., Any]], Callable[..., Any]]
    wait: Callable[[Any], None] | None = None


def _ours(program: Callable[..., Any], fused: bool) -> Callable[..., Any]:
    import tilearray as ta

    function: Any = partial(program, ta)
    function = ta.fuse(function) if fused else function

    def both(*arrays: Any) -> Any:
        *args, g = arrays
        result, pull = ta.vjp(function, *args)
        return result, *pull(g)

    return both


def _in_one(program: Callable[..., Any]) -> Callable[..., Any]:
    import tilearray as ta

    return ta.fuse(_ours(program, False))


def _torchs(function: Callable[..., Any]) -> Callable[..., Any]:
    torch: Any = importlib.import_module("torch")

    def both(*arrays: Any) -> Any:
        *args, g = arrays
        given = [x.detach().requires_grad_() for x in args]
        result = function(*given)
        return result, *torch.autograd.grad(result, given, g)

    return both


def libraries(device: str) -> list[Library]:
    """Return the libraries that are installed for a device."""
    import tilearray as ta

    adopt = partial(ta.asarray, device=device)
    found = [
        Library("tilearray fused", adopt, partial(_ours, fused=True)),
        Library("one program", adopt, _in_one),
        Library("tilearray", adopt, partial(_ours, fused=False)),
    ]
    if importlib.util.find_spec("torch"):
        torch: Any = importlib.import_module("torch")
        adopted = partial(programs.to_torch, torch, device)

        def compiled(program: Callable[..., Any]) -> Callable[..., Any]:
            return _torchs(programs.compiled_by_torch(torch, partial(program, torch)))

        found.append(Library("f.torch", adopted, lambda program: _torchs(ta.fuse(partial(program, ta)).torch)))
        found.append(Library("torch", adopted, lambda program: _torchs(partial(program, torch))))
        if device != "cpu":
            found.append(Library("torch.compile", adopted, compiled))
    if device != "cpu" and importlib.util.find_spec("jax"):
        jax: Any = importlib.import_module("jax")

        def both(program: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arrays: Any) -> Any:
                result, pull = jax.vjp(partial(program, jax.numpy), *arrays[:-1])
                return result, *pull(arrays[-1])

            return jax.jit(call)

        found.append(Library("jax.grad", jax.numpy.asarray, both, jax.block_until_ready))
    return found


def operands(program: Program, size: str) -> list[np.ndarray]:
    """Return the arrays of a row and the cotangent of its result, between -1 and 1."""
    import tilearray as ta

    side = SIDES[size]
    columns = min(side, program.columns or side)
    rows = side * side // columns
    rng, dtype = np.random.default_rng(1), np.dtype(getattr(ta, program.dtype))
    shapes = [(rows, columns) if matrix else (columns,) for matrix in (*program.matrices, True)]
    few = [(rng.random(min(1 << 20, int(np.prod(shape))), np.float32) * 2 - 1).astype(dtype) for shape in shapes]
    return [np.resize(each, shape) for each, shape in zip(few, shapes, strict=True)]


def expected(program: Program, arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """Return the result and the gradients of torch in float64, or None without torch."""
    if not importlib.util.find_spec("torch"):
        return None
    torch: Any = importlib.import_module("torch")
    both = _torchs(partial(program.function, torch))
    return [x.detach().numpy() for x in both(*[torch.asarray(x.astype(np.float64)) for x in arrays])]


def measured(clock: Any, program: Program, found: Sequence[Library], size: str) -> dict[str, Any]:
    """Check and time a row with every library."""
    arrays, few = operands(program, size), operands(program, "small")
    wanted = expected(program, few)
    moved = 3 * sum(x.nbytes for x in arrays[:-1]) + 2 * arrays[-1].nbytes

    def checked(library: Library) -> Any:
        function = library.both(program.function)
        ours = library.name in ("tilearray fused", "one program", "tilearray")
        found_few = function(*[library.adopt(x) for x in few]) if ours else None
        if found_few is not None and wanted is not None and not _agrees(found_few, wanted, arrays[0].itemsize):
            return tables.MISMATCH
        return partial(function, *[library.adopt(x) for x in arrays])

    return programs.measured_row(clock, program, found, checked, size, moved)


def _agrees(found: Sequence[Any], wanted: Sequence[np.ndarray], itemsize: int) -> bool:
    import tilearray as ta

    near = 1e-3 if itemsize > 2 else 0.1
    for x, y in zip(found, wanted, strict=True):
        mine = ta.to_numpy(x.to_device("cpu")).astype(np.float32)
        if not np.allclose(mine, y, rtol=near, atol=near * max(1, np.abs(y).max())):
            return False
    return True


def markdown(found: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    names = list(found["rows"][0]["results"])
    rows = [[row["name"], *[programs.cell(row["results"][name]) for name in names]] for row in found["rows"]]
    head = "\n".join(report.provenance(found, "Forward and backward: "))
    return f"{head}\n\n" + report.table(["function", *names], rows)


BENCHMARK = programs.Programs("gradients", "Gradients", SIDES, PROGRAMS, libraries, measured, markdown)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return programs.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())
