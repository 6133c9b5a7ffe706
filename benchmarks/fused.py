"""``python -m benchmarks.fused``: whole expressions as one kernel, beside compilers of other libraries.

On the host the peer is NumPy; on a GPU they are torch, torch.compile, cupy.fuse and jax.jit, if they are installed.
There "tilearray contract" does what compilers do: products and sums may be fma, and intermediates keep the dtype in
which they are computed. A row is a program over arrays of one size. Its figure is milliseconds, and the rate of the
bytes that an ideal kernel moves: each operand and each result once. Before a program is timed, its results on small
arrays are compared with NumPy's in float64. The host times are those of calls on 1000 elements. ``--out DIR`` writes a
record.

Exit status: 0 for success; 1 if a result of tilearray was wrong; 2 if the device does not exist.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks import programs, report, tables, timing

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


def gated(m: Any, x: Any, gate: Any) -> Any:
    return x / (1 + m.exp(-x)) * gate


def adam(m: Any, p: Any, g: Any, mean: Any, square: Any) -> Any:
    mean = 0.9 * mean + 0.1 * g
    square = 0.999 * square + 0.001 * (g * g)
    return p - 0.001 * mean / (m.sqrt(square) + 1e-8), mean, square


def sum_of_products(m: Any, a: Any, b: Any) -> Any:
    return m.sum(a * b.T, 1)


def layer_norm(m: Any, x: Any) -> Any:
    distance = x - m.mean(x, 1)[:, None]
    return distance / m.sqrt(m.mean(distance * distance, 1)[:, None] + 1e-5)


def rms_norm(m: Any, x: Any) -> Any:
    return x / m.sqrt(m.mean(x * x, 1)[:, None] + 1e-6)


def scaled_softmax(m: Any, x: Any) -> Any:
    power = m.exp(x * 0.125 - m.amax(x * 0.125, 1)[:, None])
    return power / m.sum(power, 1)[:, None]


def quantised(m: Any, x: Any) -> Any:
    size = m.amax(m.abs(x), 1)
    found = m.round(x / size[:, None] * 127)
    return found.to(m.int8) if hasattr(found, "to") else found.astype("int8"), size


class Program(NamedTuple):
    """A row: the function of a namespace and arrays, how many arrays, whether they are matrices, their dtype, and the
    length of their rows; 0 for square matrices."""

    function: Callable[..., Any]
    arrays: int
    matrix: bool = False
    dtype: str = "float32"
    columns: int = 0

    @property
    def name(self) -> str:
        """The row's name in a table."""
        rows = f", rows of {self.columns}" if self.columns else ""
        return f"{self.function.__name__} {self.dtype}{rows}"

    def of(self, module: Any) -> Callable[..., Any]:
        """Return the function of the arrays alone, with the name and the parameters that cupy.fuse asks for."""
        names = ", ".join("abcd"[: self.arrays])
        found = eval(f"lambda {names}: function(module, {names})", {"function": self.function, "module": module})
        found.__name__ = self.function.__name__
        return found


PROGRAMS = (
    Program(axpy, 2, matrix=True),
    Program(axpy_transposed, 2, matrix=True),
    Program(stencil, 1, matrix=True),
    Program(black_scholes, 3),
    Program(arc_distance, 4),
    Program(gelu, 1),
    Program(gelu, 1, dtype="bfloat16"),
    Program(gated, 2, dtype="bfloat16"),
    Program(sum_of_products, 2, matrix=True),
    Program(layer_norm, 1, matrix=True, columns=4096),
    Program(layer_norm, 1, matrix=True, columns=4096, dtype="bfloat16"),
    Program(rms_norm, 1, matrix=True, columns=4096, dtype="bfloat16"),
    Program(scaled_softmax, 1, matrix=True, columns=4096),
    Program(quantised, 1, matrix=True, columns=4096),
    Program(layer_norm, 1, matrix=True),
    Program(layer_norm, 1, matrix=True, dtype="bfloat16"),
    Program(rms_norm, 1, matrix=True, dtype="bfloat16"),
    Program(quantised, 1, matrix=True, dtype="bfloat16"),
    Program(adam, 4),
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


def _recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    import tilearray as ta

    def call(*arrays: Any) -> Any:
        with ta.lazy():
            return function(*arrays)

    return call


def libraries(device: str) -> list[Library]:
    """Return the libraries that are installed for a device."""
    import tilearray as ta

    ours = partial(ta.asarray, device=device)
    found = [
        Library("tilearray fused", ta, ours, ta.fuse),
        Library("tilearray lazy", ta, ours, _recorded),
        Library("tilearray", ta, ours, _as_it_is),
    ]
    if device == "cpu":
        return [*found, Library("numpy", np, _as_it_is, _as_it_is)]
    found.append(Library("tilearray contract", ta, ours, ta.fuse(contract=True, intermediates="compute")))
    if importlib.util.find_spec("torch"):
        torch: Any = importlib.import_module("torch")
        adopt, compiled = partial(programs.to_torch, torch, device), partial(programs.compiled_by_torch, torch)
        found += [Library("torch", torch, adopt, _as_it_is), Library("torch.compile", torch, adopt, compiled)]
    if importlib.util.find_spec("cupy"):
        cupy: Any = importlib.import_module("cupy")
        found.append(Library("cupy.fuse", cupy, cupy.asarray, cupy.fuse))
    if importlib.util.find_spec("jax"):
        jax: Any = importlib.import_module("jax")
        found.append(Library("jax.jit", jax.numpy, jax.numpy.asarray, jax.jit, jax.block_until_ready))
    return found


def operands(program: Program, size: str) -> list[np.ndarray]:
    """Return the arrays of a row, between 0.5 and 1.5."""
    import tilearray as ta

    side = SIDES[size]
    columns = min(side, program.columns or side)
    shape = (side * side // columns, columns) if program.matrix else (side * side // 3,)
    rng, dtype = np.random.default_rng(1), np.dtype(getattr(ta, program.dtype))
    numbers = [
        (rng.random(min(1 << 20, math.prod(shape)), np.float32) + np.float32(0.5)).astype(dtype) for _ in range(4)
    ]
    return [np.resize(each, shape) for each in numbers[: program.arrays]]


def measured(clock: Any, program: Program, found: Sequence[Library], size: str) -> dict[str, Any]:
    """Check and time a row with every library."""
    arrays, few = operands(program, size), operands(program, "small")
    expected = _each(program.function(np, *[x.astype(np.float64) for x in few]))
    moved = sum(x.nbytes for x in arrays) + sum(_bytes_of(result, arrays[0]) for result in expected)

    def checked(library: Library) -> Any:
        function = library.compiled(program.of(library.module))
        if library.name.startswith("tilearray"):
            found_few = function(*[library.adopt(x) for x in few])
            if not _agrees(library.module, found_few, expected, arrays[0].itemsize):
                return tables.MISMATCH
        return partial(function, *[library.adopt(x) for x in arrays])

    return programs.measured_row(clock, program, found, checked, size, moved)


def host_times(clock: Any, program: Program, found: Sequence[Library]) -> dict[str, float]:
    """Return the host microseconds of a row on 1000 elements, by library."""
    rng = np.random.default_rng(1)
    arrays = [rng.random(1000, np.float32) + np.float32(0.5) for _ in range(program.arrays)]
    times: dict[str, float] = {}
    for library in found:
        call = partial(library.compiled(program.of(library.module)), *map(library.adopt, arrays))
        try:
            call()
        except Exception as error:  # any error of a library; the others are timed
            print(f"{program.name}: {library.name}: {type(error).__name__}", flush=True)
            continue
        spent = timing.host_timing(clock, "call()", itertools.repeat({"call": call}), timing.EFFORTS["full"])
        times[library.name] = spent.seconds * 1e6
    return times


def _each(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def _bytes_of(result: np.ndarray, like: np.ndarray) -> int:
    """Return the bytes of a result that has the shape of an array or one number for each of its rows."""
    itemsize = 1 if result.dtype == np.int8 else like.itemsize
    return (like.size if result.ndim == like.ndim else len(like)) * itemsize


def _agrees(ta: Any, found: Any, expected: tuple[np.ndarray, ...], itemsize: int) -> bool:
    tolerance = 1e-4 if itemsize > 2 else 5e-2
    pairs = zip(_each(found), expected, strict=True)
    return all(np.allclose(ta.to_numpy(x).astype(np.float32), y, rtol=tolerance, atol=tolerance) for x, y in pairs)


def markdown(found: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    names = list(found["rows"][0]["results"])
    rows = [[row["name"], *[programs.cell(row["results"][name]) for name in names]] for row in found["rows"]]
    calls = [
        [name, *[f"{times[each]:.2f}" if each in times else "" for each in names]]
        for name, times in found["calls"].items()
    ]
    return (
        "\n".join(report.provenance(found, "Fused programs: "))
        + f"\nThe copy reached {found['copy_gb_per_s']:.0f} GB/s.\n\n"
        + report.table(["program", *names], rows)
        + "\n"
        + report.table(["host microseconds, 1000 elements", *names], calls)
    )


def copy_rate(clock: Any, device: str, size: str) -> dict[str, Any]:
    """Return the GB/s of a copy of a matrix."""
    import tilearray as ta

    target, source = (ta.ones((SIDES[size], SIDES[size]), dtype="float32", device=device) for _ in range(2))
    spent = timing.kernel_timing(clock, lambda: ta.positive(source, out=target), timing.EFFORTS[size])
    return {"copy_gb_per_s": 2 * source.nbytes / spent.seconds / 1e9}


BENCHMARK = programs.Programs(
    "fused", "Fused programs", SIDES, PROGRAMS, libraries, measured, markdown, copy_rate, host_times
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return programs.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())
