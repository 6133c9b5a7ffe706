"""``python -m benchmarks.random``: random numbers on a GPU, beside torch and CuPy.

A row is a draw of 2**28 numbers into new memory. Its figures are milliseconds, and the rate of the bytes that are
written. Before it is timed, the mean and the standard deviation of every library's numbers are compared with the exact
ones, and tilearray's numbers with those of the host, bit for bit, at the start and at the end. The host times are those
of draws of 1000 numbers.

Exit status: 0 for success; 1 if a result was wrong or tilearray raised an error; 2 without a GPU or without torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from benchmarks import tables

SIZES = {"full": 2**28, "small": 2**12}
PART = 1000
"""The numbers at each end that are compared with the host's."""


class Row(NamedTuple):
    """A draw of ``n`` numbers of ``dtype``, written for each library; None if it has no such draw.

    ``rng`` is a generator of tilearray or CuPy, ``lib`` the library. `mean` and `deviation` are exact. If the draw
    permutes ``range(n)``, they are those of the numbers divided by ``n``.
    """

    name: str
    dtype: str
    mean: float
    deviation: float
    tilearray: str
    torch: str
    cupy: str | None
    permutes: bool = False


def _floats(name: str, mean: float, deviation: float, ours: str, torch: str, cupy: str, dtypes: str) -> list[Row]:
    return [
        Row(f"{name} {dtype}", dtype, mean, deviation, ours, torch, None if dtype == "bfloat16" else cupy)
        for dtype in dtypes.split()
    ]


ROWS = (
    *_floats(
        "uniform",
        0.5,
        12**-0.5,
        "rng.random(n, dtype=dtype)",
        "lib.rand(n, dtype=dtype, device='cuda')",
        "rng.random(n, dtype=dtype)",
        "float32 float64 bfloat16",
    ),
    *_floats(
        "normal",
        0,
        1,
        "rng.standard_normal(n, dtype=dtype)",
        "lib.randn(n, dtype=dtype, device='cuda')",
        "rng.standard_normal(n, dtype=dtype)",
        "float32 float64 bfloat16",
    ),
    *_floats(
        "exponential",
        1,
        1,
        "rng.standard_exponential(n, dtype=dtype)",
        "lib.empty(n, dtype=dtype, device='cuda').exponential_()",
        "rng.standard_exponential(n, dtype=dtype)",
        "float32",
    ),
    *[
        Row(
            f"integers below {count} {dtype}",
            dtype,
            (count - 1) / 2,
            ((count**2 - 1) / 12) ** 0.5,
            f"rng.integers({count}, size=n, dtype=dtype)",
            f"lib.randint({count}, (n,), dtype=dtype, device='cuda')",
            f"rng.integers({count}, size=n, dtype=dtype)",
        )
        for count, dtype in ((1000, "int64"), (1000, "int32"), (100, "int8"))
    ],
    Row(
        "permutation int64",
        "int64",
        0.5,
        12**-0.5,
        "rng.permutation(n)",
        "lib.randperm(n, device='cuda')",
        "lib.random.permutation(n)",
        permutes=True,
    ),
)


class Library(NamedTuple):
    """A library, and its generator."""

    name: str
    module: Any
    generator: Any

    def dtype(self, name: str) -> Any:
        """Return a dtype of the library."""
        return getattr(self.module, name)

    def run(self, row: Row, count: int) -> Any:
        """Draw."""
        given = {"lib": self.module, "rng": self.generator, "n": count, "dtype": self.dtype(row.dtype)}
        return eval(getattr(row, self.name), given)


def libraries(torch: Any, wanted: Sequence[str]) -> list[Library]:
    """Return the libraries that are installed and wanted."""
    import tilearray as ta

    found = [Library("torch", torch, None), Library("tilearray", ta, ta.random.default_rng(7, device="cuda:0"))]
    if importlib.util.find_spec("cupy"):
        cupy: Any = importlib.import_module("cupy")
        found.append(Library("cupy", cupy, cupy.random.default_rng(7)))
    return [library for library in found if library.name in wanted]


def agrees(torch: Any, library: Library, row: Row, count: int) -> bool:
    """Whether a draw has the mean and the deviation, and the bits of the host if it is tilearray's."""
    state = library.generator.bit_generator.state if library.name == "tilearray" else None
    drawn = library.run(row, count)
    given = drawn if library.name == "torch" else torch.from_dlpack(drawn)
    values = given[: 2**24].double() / (count if row.permutes else 1)
    bound = 6 * row.deviation / values.numel() ** 0.5 + 2**-7 * (row.dtype == "bfloat16")
    fits = abs(float(values.mean()) - row.mean) < bound
    fits = fits and abs(float(values.std()) - row.deviation) < 3 * bound
    return fits and (state is None or same_ends(library, row, drawn, state))


def same_ends(library: Library, row: Row, drawn: Any, state: dict[str, Any]) -> bool:
    """Whether the first and the last numbers of a draw are those of the host, after a state.

    The host computes the first numbers of a permutation alone, but not the last ones: they are not compared.
    """
    ta = library.module
    host = Library("tilearray", ta, ta.random.default_rng(0, device="cpu"))
    if row.permutes:
        host.generator.bit_generator.state = state
        first = host.generator.choice(drawn.size, PART, replace=False)
        return first.tolist() == ta.to_numpy(drawn[:PART]).tolist()
    words = (library.generator.bit_generator.state["position"] - state["position"]) // drawn.size
    for start in (0, drawn.size - PART):
        host.generator.bit_generator.state = state | {"position": state["position"] + start * words}
        if host.run(row, PART).tolist() != ta.to_numpy(drawn[start : start + PART]).tolist():
            return False
    return True


def measured(torch: Any, clock: Any, row: Row, found: Sequence[Library], size: str) -> dict[str, Any]:
    """Check and time a row with every library."""
    count = SIZES[size]

    def checked(library: Library) -> Any:
        if getattr(row, library.name) is None:
            return {"status": "absent", "why": "no such draw"}
        return partial(library.run, row, count) if agrees(torch, library, row, count) else tables.MISMATCH

    def figures(spent: Any) -> dict[str, float]:
        return {"gb_per_s": count * itemsize(row) / spent.seconds / 1e9}

    return {"name": row.name, "results": tables.results_of(clock, found, checked, size, figures)}


def itemsize(row: Row) -> int:
    """Return the bytes of a number."""
    return int(row.dtype.lstrip("abcdefghijklmnopqrstuvwxyz")) // 8


def host_times(torch: Any, clock: Any, found: Sequence[Library], size: str) -> list[dict[str, Any]]:
    """Return the host times of draws of 1000 numbers."""

    def given(library: Library, row: Row) -> dict[str, Any]:
        return {"lib": library.module, "rng": library.generator, "n": 1000, "dtype": library.dtype(row.dtype)}

    rows: list[dict[str, Any]] = []
    for row in ROWS:
        texts = [(each, getattr(row, each.name)) for each in found]
        calls = ((each.name, text, given(each, row)) for each, text in texts if text is not None)
        rows.append(tables.host_row(clock, row.name, calls, size))
    return rows


BENCHMARK = tables.Benchmark(
    "random",
    "Random numbers",
    tuple(SIZES),
    ROWS,
    libraries,
    measured,
    host_times,
    partial(tables.markdown_of_milliseconds, title="Random numbers: ", rate="gb_per_s", unit="GB/s"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return tables.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())
