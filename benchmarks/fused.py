"""``python -m benchmarks.fused``: whole expressions as one kernel, beside compilers of other libraries.

On the host the peer is NumPy; on a GPU they are torch, torch.compile, cupy.fuse and jax.jit, if they are installed. A
row is a program over arrays of one size. Its figure is milliseconds, and the rate of the bytes that an ideal kernel
moves: each operand and each result once. Every result is compared with NumPy's in float64 before it is timed.

Exit status: 0 for success; 1 if a result of tilearray was wrong; 2 if the device does not exist.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
if importlib.util.find_spec("tilearray_host") is None:  # the uninstalled tree
    sys.path.append(str(ROOT / "backend"))

from benchmarks import timing  # noqa: E402

SIDES = {"full": 16384, "host": 2048, "small": 64}
"""Rows and columns of a matrix; vectors have a third of its elements."""


def axpy(m: Any, a: Any, b: Any) -> Any:
    return a * b + a * 2 - b


def axpy_transposed(m: Any, a: Any, b: Any) -> Any:
    return a * b.T + a * 2 - b


def stencil(m: Any, a: Any) -> Any:
    return a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2] - 4 * a[1:-1, 1:-1]


def black_scholes(m: Any, s: Any, k: Any, t: Any) -> Any:
    root = m.sqrt(t)
    d1 = (m.log(s / k) + 0.12 * t) / (0.2 * root)
    d2 = d1 - 0.2 * root
    n1, n2 = 1 / (1 + m.exp(-1.702 * d1)), 1 / (1 + m.exp(-1.702 * d2))
    return s * n1 - k * m.exp(-0.1 * t) * n2


def arc_distance(m: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    half = m.sin((c - a) / 2) ** 2 + m.cos(a) * m.cos(c) * m.sin((d - b) / 2) ** 2
    return 2 * m.arctan2(m.sqrt(half), m.sqrt(1 - half))


def gelu(m: Any, x: Any) -> Any:
    return 0.5 * x * (1 + m.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


class Program(NamedTuple):
    """A row: the function of a namespace and arrays, the number of arrays, and whether they are matrices."""

    function: Callable[..., Any]
    arrays: int
    matrix: bool = False


PROGRAMS = (
    Program(axpy, 2, matrix=True),
    Program(axpy_transposed, 2, matrix=True),
    Program(stencil, 1, matrix=True),
    Program(black_scholes, 3),
    Program(arc_distance, 4),
    Program(gelu, 1),
)


class Library(NamedTuple):
    """A library: its namespace, how it takes an ndarray, how it compiles a function, and how it waits for a result."""

    name: str
    module: Any
    adopt: Callable[[np.ndarray], Any]
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]]
    wait: Callable[[Any], None] | None = None


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def libraries(device: str) -> list[Library]:
    """Return the libraries that are installed for a device."""
    import tilearray as ta

    ours = partial(ta.asarray, device=device)
    found = [Library("tilearray fused", ta, ours, ta.fuse), Library("tilearray", ta, ours, _as_it_is)]
    if device == "cpu":
        return [*found, Library("numpy", np, _as_it_is, _as_it_is)]
    if importlib.util.find_spec("torch"):
        torch: Any = importlib.import_module("torch")
        adopt = partial(torch.asarray, device=device)
        found += [Library("torch", torch, adopt, _as_it_is), Library("torch.compile", torch, adopt, torch.compile)]
    if importlib.util.find_spec("cupy"):
        cupy: Any = importlib.import_module("cupy")
        found.append(Library("cupy.fuse", cupy, cupy.asarray, cupy.fuse))
    if importlib.util.find_spec("jax"):
        jax: Any = importlib.import_module("jax")
        found.append(Library("jax.jit", jax.numpy, jax.numpy.asarray, jax.jit, jax.block_until_ready))
    return found


def operands(program: Program, size: str) -> list[np.ndarray]:
    """Return the arrays of a row, float32 between 0.5 and 1.5."""
    side = SIDES[size]
    shape = (side, side) if program.matrix else (side * side // 3,)
    rng = np.random.default_rng(1)
    return [rng.random(shape, np.float32) + np.float32(0.5) for _ in range(program.arrays)]


def measured(clock: Any, program: Program, found: Sequence[Library], size: str) -> dict[str, str]:
    """Check and time a row with every library; return the text of each cell."""
    arrays = operands(program, size)
    expected = program.function(np, *[x.astype(np.float64) for x in arrays])
    moved = sum(x.nbytes for x in arrays) + 4 * expected.size
    cells: dict[str, str] = {}
    for library in found:
        try:
            given = [library.adopt(x) for x in arrays]
            call = partial(library.compiled(partial(program.function, library.module)), *given)
            if library.name.startswith("tilearray") and not _agrees(library.module.to_numpy(call()), expected):
                cells[library.name] = "mismatch"
                continue
            spent = timing.kernel_timing(clock, call, timing.EFFORTS[size], library.wait)
            cells[library.name] = f"{spent.best * 1e3:.3f} ms, {moved / spent.best / 1e9:.0f} GB/s"
        except Exception as error:  # any error of a library; the run continues, and the table contains the error
            cells[library.name] = f"{type(error).__name__}: {error}".splitlines()[0][:60]
    return cells


def _agrees(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-4, atol=1e-4))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    top = argparse.ArgumentParser(prog="python -m benchmarks.fused", description="Fused programs beside the peers.")
    top.add_argument("--device", default="cpu")
    top.add_argument("--size", choices=tuple(SIDES), default=None)
    top.add_argument("--only", default="", metavar="TEXT", help="rows whose name contains this")
    chosen = top.parse_args(arguments)
    import tilearray as ta

    if chosen.device not in map(str, ta.devices()):
        print(f"benchmarks.fused: there is no device {chosen.device}", file=sys.stderr)
        return 2
    size = chosen.size or ("host" if chosen.device == "cpu" else "full")
    clock = timing.HostClock() if chosen.device == "cpu" else timing.GpuClock()
    found, wrong = libraries(chosen.device), False
    for program in PROGRAMS:
        name = program.function.__name__
        if chosen.only in name:
            cells = measured(clock, program, found, size)
            wrong = wrong or "mismatch" in cells.values()
            print(name, *[f"  {library:16} {cell}" for library, cell in cells.items()], sep="\n")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
