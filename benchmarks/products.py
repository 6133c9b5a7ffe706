"""``python -m benchmarks.products``: matrix products on a GPU, beside torch and CuPy.

A row is a product of matrices of small integers. Its figure is milliseconds, and for large products TFLOPS: two
operations for each pair of elements. Every result is compared with torch's before it is timed; torch has no product of
integers on a GPU, so those are compared with its float64. TF32 is off everywhere. ``scaled(a, b.T)`` is
`ta.scaled_matmul`, beside ``torch._scaled_mm`` without its fast sums, with a scale for each matrix and float32 sums.

Exit status: 0 for success; 1 if a result was wrong or tilearray raised an error; 2 without a GPU or without torch.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from benchmarks import tables
from benchmarks.selection import Library, libraries

SIDES = {"full": 4096, "small": 64}


class Row(NamedTuple):
    """A product: its text over the arrays ``a`` and ``b``, their shapes in parts of the side, and their dtype."""

    text: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    dtype: str

    @property
    def name(self) -> str:
        """The row's name in a table."""
        return f"{self.text}, {' x '.join(self.first)} @ {' x '.join(self.second)}, {self.dtype}"


SQUARE = ("n", "n")
ROWS = (
    *[Row("a @ b", SQUARE, SQUARE, dtype) for dtype in ("float16", "bfloat16", "float32", "float64", "int8", "int32")],
    *[Row("a @ b", SQUARE, SQUARE, dtype) for dtype in ("complex64",)],
    *[Row(text, SQUARE, SQUARE, "bfloat16") for text in ("a @ b.T", "a.T @ b", "a.T @ b.T")],
    *[Row(text, SQUARE, SQUARE, "float32") for text in ("a @ b.T", "a.T @ b.T")],
    Row("scaled(a, b.T)", SQUARE, SQUARE, "float8_e4m3fn"),
    Row("a @ b", ("n - 1", "n - 1"), ("n - 1", "n - 1"), "bfloat16"),
    Row("a[:, 1:] @ b[1:]", SQUARE, SQUARE, "bfloat16"),
    Row("a @ b", ("64", "n // 4", "n // 32"), ("64", "n // 32", "n // 4"), "bfloat16"),
    Row("a @ b", ("16", "n"), ("n", "n"), "bfloat16"),
    *[Row("a @ b", ("n", "n"), ("n",), dtype) for dtype in ("bfloat16", "float32", "float64")],
    Row("a @ b", ("n",), ("n", "n"), "float32"),
    Row("a @ b", ("n // 8", "n // 8"), ("n // 8", "n // 8"), "float32"),
)
CALLS = (("a @ b", (64, 64), (64, 64)), ("a @ b", (64, 64), (64,)))


def made(torch: Any, row: Row, side: int) -> dict[str, Any]:
    """Return the operands of a row as torch tensors."""
    torch.manual_seed(7)
    shapes = [[eval(size, {"n": side}) for size in shape] for shape in (row.first, row.second)]
    return {
        name: torch.randint(-1, 2, shape, device="cuda", dtype=torch.int8).to(getattr(torch, row.dtype))
        for name, shape in zip("ab", shapes, strict=True)
    }


def scaled(torch: Any, library: str) -> Any:
    """Return a library's product of float8 with scales of 1, or the product of exact numbers."""
    one = torch.ones((1, 1), device="cuda")
    if library == "tilearray":
        ta = importlib.import_module("tilearray")
        scale = ta.from_dlpack(one)
        return lambda a, b: ta.scaled_matmul(a, b, scale, scale)
    if library == "torch":
        return lambda a, b: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.float32)
    return lambda a, b: a @ b


def measured(torch: Any, clock: Any, row: Row, found: Sequence[Library], size: str) -> dict[str, Any]:
    """Check and time a row with every library."""
    arrays = made(torch, row, SIDES[size])
    wide = torch.complex128 if row.dtype.startswith("complex") else torch.float64
    exact = eval(row.text, {name: x.to(wide) for name, x in arrays.items()} | {"scaled": scaled(torch, "")})
    if row.dtype == "int8":  # which wraps
        exact = (exact.to(torch.int64) + 128) % 256 - 128
    kind = torch.float32 if "float8" in row.dtype else arrays["a"].dtype
    summed = arrays["a"].shape[-1]

    def checked(library: Library) -> Any:
        own = {name: library.adopt(x) for name, x in arrays.items()} | {"scaled": scaled(torch, library.name)}
        result = eval(row.text, own)
        given = result if library.name == "torch" else torch.from_dlpack(result)
        return partial(eval, row.text, own) if torch.equal(given, exact.to(kind)) else tables.MISMATCH

    def figures(spent: Any) -> dict[str, float]:
        return {"tflops": 2 * exact.numel() * summed / spent.seconds / 1e12}

    return {"name": row.name, "results": tables.results_of(clock, found, checked, size, figures)}


def host_times(torch: Any, clock: Any, found: Sequence[Library], size: str) -> list[dict[str, Any]]:
    """Return the host times of small products."""
    rows: list[dict[str, Any]] = []
    for text, *shapes in CALLS:
        a, b = (torch.ones(shape, device="cuda") for shape in shapes)
        calls = ((each.name, text, {"a": each.adopt(a), "b": each.adopt(b)}) for each in found)
        rows.append(tables.host_row(clock, f"{text}, {shapes[0]} and {shapes[1]}", calls, size))
    return rows


BENCHMARK = tables.Benchmark(
    "products",
    "Matrix products",
    tuple(SIDES),
    ROWS,
    libraries,
    measured,
    host_times,
    partial(tables.markdown_of_milliseconds, title="Products: ", rate="tflops", unit="TFLOPS", digits=1),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return tables.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())
