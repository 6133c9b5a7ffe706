"""``python -m benchmarks.transforms``: Fourier transforms and decompositions on a GPU, beside torch and CuPy.

A row is a function of one array; its figure is milliseconds. Every result of a transform is compared with torch's
before it is timed, decompositions by the product of their factors. The host times are those of small transforms.

Exit status: 0 for success; 1 if a result was wrong or tilearray raised an error; 2 without a GPU or without torch.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from benchmarks import tables
from benchmarks.selection import Library, libraries

SIZES = {"full": 1, "small": 256}
"""What the first size of each array is divided by."""


class Row(NamedTuple):
    """A function of an array ``x`` of a library ``lib``; its result must be near that of `checked`, of torch."""

    text: str
    shape: tuple[int, ...]
    dtype: str
    checked: str = ""

    @property
    def name(self) -> str:
        """The row's name in a table."""
        return f"{self.text.replace('lib.', '')}, {' x '.join(map(str, self.shape))} {self.dtype}"


PLANES = (256, 512, 1024, 2048, 4096)
"""The sides of the planes that are transformed from and to real numbers, in C order and with the first axis fastest."""
ROWS = (
    *[Row("lib.fft.fft(x)", (2**24,), dtype) for dtype in ("complex64", "complex128")],
    Row("lib.fft.ifft(x)", (2**24,), "complex64"),
    Row("lib.fft.rfft(x)", (2**24,), "float32"),
    Row("lib.fft.irfft(x)", (2**23 + 1,), "complex64"),
    Row("lib.fft.fft2(x)", (4096, 4096), "complex64"),
    Row("lib.fft.fft2(x.T)", (4096, 4096), "complex64"),
    Row("lib.fft.fft(x)", (16384, 1024), "complex64"),
    Row("lib.fft.rfft(x)", (16384, 1000), "float32"),
    *[Row("lib.fft.fft(x, None, 0)", shape, "complex64") for shape in ((4096, 4096), (16384, 1024), (1000, 16384))],
    Row("lib.fft.fft(x, None, 0)", (16384, 1024), "complex128"),
    Row("lib.fft.rfft(x, None, 0)", (4096, 4096), "float32"),
    Row("lib.fft.irfft(x, None, 0)", (2049, 4096), "complex64"),
    Row("lib.fft.fft(x, None, 1)", (256, 256, 256), "complex64"),
    Row("lib.fft.fftn(x)", (256, 256, 256), "complex64"),
    Row("lib.fft.fft(x)", (2**24 - 3,), "complex64"),
    *[Row(f"lib.fft.rfft2({x})", (n, n), "float32") for n in PLANES for x in ("x", "x.T")],
    *[Row("lib.fft.irfft2(x)", (n, n // 2 + 1), "complex64") for n in PLANES],
    *[Row("lib.fft.irfft2(x.T)", (n // 2 + 1, n), "complex64") for n in PLANES],
    *[Row(f"lib.linalg.{text}", (4096, 4096), "float32") for text in ("inv(x)", "slogdet(x)[1]")],
    Row("lib.linalg.solve(x, x)", (4096, 4096), "float64"),
    Row("lib.linalg.cholesky(x @ x.T)", (4096, 4096), "float32"),
    Row("lib.linalg.qr(x)[0] @ lib.linalg.qr(x)[1]", (2048, 2048), "float32", "x"),
    Row("lib.linalg.eigh(x + x.T)[0]", (2048, 2048), "float32"),
    Row("lib.linalg.inv(x)", (512, 64, 64), "float32"),
)
CALLS = (
    ("lib.fft.fft(x)", (1024,)),
    ("lib.fft.rfft2(x)", (32, 32)),
    ("lib.fft.irfft2(lib.fft.rfft2(x))", (32, 32)),
    ("lib.linalg.inv(x)", (32, 32)),
)
NEAR = 1e-2
"""The largest difference of results, relative to the largest value."""


def made(torch: Any, row: Row, size: str) -> Any:
    """Return the operand of a row as a torch tensor; matrices are of moderate condition."""
    torch.manual_seed(7)
    first, *rest = row.shape
    shape = (max(first // SIZES[size], 2), *rest)
    if "linalg" in row.text:
        side = max(row.shape[-1] // SIZES[size], 4)
        shape = (*row.shape[:-2], side, side)
        x = torch.randn(shape, device="cuda", dtype=torch.float64) + 4 * side**0.5 * torch.eye(side, device="cuda")
        return (x / side**0.5).to(getattr(torch, row.dtype))
    return torch.randn(shape, device="cuda", dtype=getattr(torch, row.dtype))


def measured(torch: Any, clock: Any, row: Row, found: Sequence[Library], size: str) -> dict[str, Any]:
    """Check and time a row with every library."""
    x = made(torch, row, size)
    exact = eval(row.checked or row.text, {"lib": torch, "x": x})
    scale = exact.abs().max()

    def checked(library: Library) -> Any:
        names = {"lib": library.module, "x": library.adopt(x)}
        result = eval(row.text, names)
        given = result if library.name == "torch" else torch.from_dlpack(result)
        is_near = given.shape == exact.shape and bool(((given - exact).abs().max() <= NEAR * scale).item())
        return partial(eval, row.text, names) if is_near else tables.MISMATCH

    return {"name": row.name, "results": tables.results_of(clock, found, checked, size, lambda _: {})}


def host_times(torch: Any, clock: Any, found: Sequence[Library], size: str) -> list[dict[str, Any]]:
    """Return the host times of small calls. Those that wait for the GPU include the wait."""
    rows: list[dict[str, Any]] = []
    for text, shape in CALLS:
        x = torch.eye(shape[-1], device="cuda")[: shape[0]] if len(shape) > 1 else torch.ones(shape, device="cuda")
        calls = ((each.name, text, {"lib": each.module, "x": each.adopt(x)}) for each in found)
        rows.append(tables.host_row(clock, f"{text.replace('lib.', '')}, {shape} float32", calls, size))
    return rows


BENCHMARK = tables.Benchmark(
    "transforms",
    "Transforms",
    tuple(SIZES),
    ROWS,
    libraries,
    measured,
    host_times,
    partial(tables.markdown_of_milliseconds, title="Transforms and decompositions: "),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return tables.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())
