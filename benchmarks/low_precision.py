"""``python -m benchmarks.low_precision``: scaled conversions to float8 and float4 on a GPU, beside torch.compile.

A row converts a matrix of bfloat16. Its figure is the rate of the bytes that it must move, and the fraction of a
device-to-device copy of the same run: the matrix is read once, and values and scales are written once. The peer is
torch.compile of the usual formula, of which a row has the text; torch's float4 values are made by comparisons, since
torch has no cast to float4. Before it is timed, tilearray's conversion of the first rows is compared with the host's,
bit for bit, and torch's values with those of tilearray: at least 99% must be the same, and all others neighbours.
On a GPU torch multiplies by the reciprocal of 448 or 6 instead of dividing by it. So some scales differ in the last
place, and then values that lie next to the middle of two. The host times are those of a matrix of 128 rows.

Exit status: 0 for success; 1 if a result was wrong or tilearray raised an error; 2 without a GPU or without torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from benchmarks import tables

SIZES = {"full": 16384, "small": 256}
CHECKED = 128
"""The rows that are compared with the host's."""
MX, E4M3 = "float8_e8m0fnu", "float8_e4m3fn"


class Row(NamedTuple):
    """A conversion.

    Attributes
    ----------
    name, options : of ``tilearray.quantize``; the first option is the dtype
    formula : the name of torch's function in `FORMULAS`, and the view of the matrix that it takes
    nbytes : the bytes that an element moves
    """

    name: str
    options: dict[str, Any]
    formula: str
    nbytes: float


ROWS = (
    Row("row-wise float8", {"dtype": E4M3, "axis": -1}, "rows", 3),
    Row("blocks of 128, float8", {"dtype": E4M3, "block": 128}, "blocks", 3 + 4 / 128),
    Row("blocks of 128 x 128, float8", {"dtype": E4M3, "block": (128, 128)}, "tiles", 3),
    Row("MXFP8", {"dtype": E4M3, "block": 32, "scale": MX}, "mxfp8", 3 + 1 / 32),
    Row("MXFP4", {"dtype": "float4_e2m1fn", "block": 32, "scale": MX, "packed": True}, "mxfp4", 2.5 + 1 / 32),
    Row(
        "NVFP4, global scale given",
        {"dtype": "float4_e2m1fn", "block": 16, "scale": E4M3, "packed": True, "global_scale": 2.0**-9},
        "nvfp4",
        2.5 + 1 / 16,
    ),
)


# --- torch's formulas -------------------------------------------------------------------------------------------------


def _float8(torch: Any, x: Any, dims: Any) -> tuple[Any, Any]:
    wide = x.float()
    scales = (wide.abs().amax(dims, keepdim=True) / 448.0).clamp(min=2.0**-80)
    return (wide / scales).clamp(-448.0, 448.0).to(torch.float8_e4m3fn), scales


def _power(torch: Any, wide: Any, top: int) -> Any:
    """The power of two at or below the largest magnitude of each block, divided by ``2**top``."""
    bits = wide.abs().amax(-1, keepdim=True).view(torch.int32) >> 23
    return (bits - top).clamp(min=1)


def _mxfp8(torch: Any, x: Any) -> tuple[Any, Any]:
    wide = x.float()
    exponents = _power(torch, wide, 8)
    scales = (exponents << 23).view(torch.float32)
    return (wide / scales).clamp(-448.0, 448.0).to(torch.float8_e4m3fn), exponents.to(torch.uint8)


def _float4(torch: Any, x: Any) -> Any:
    """The codes of float4_e2m1fn, two in a byte: how many of the middles between magnitudes lie below."""
    size = x.abs()
    above = (size > 0.25) + (size >= 0.75).int() + (size > 1.25) + (size >= 1.75) + (size > 2.5) + (size >= 3.5)
    codes = (above + (size > 5.0) + torch.signbit(x) * 8).to(torch.uint8)
    return codes[..., 0::2] | (codes[..., 1::2] << 4)


def _mxfp4(torch: Any, x: Any) -> tuple[Any, Any]:
    wide = x.float()
    exponents = _power(torch, wide, 2)
    return _float4(torch, wide / (exponents << 23).view(torch.float32)), exponents.to(torch.uint8)


def _nvfp4(torch: Any, x: Any) -> tuple[Any, Any]:
    wide = x.float()
    scales = wide.abs().amax(-1, keepdim=True) / 6.0 / 2.0**-9
    small = scales.clamp(2.0**-6, 448.0).to(torch.float8_e4m3fn)
    return _float4(torch, wide / (small.float() * 2.0**-9)), small


FORMULAS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[int, ...]]]] = {
    "rows": (lambda torch, x: _float8(torch, x, -1), lambda n: (n, n)),
    "blocks": (lambda torch, x: _float8(torch, x, -1), lambda n: (n, n // 128, 128)),
    "tiles": (lambda torch, x: _float8(torch, x, (1, 3)), lambda n: (n // 128, 128, n // 128, 128)),
    "mxfp8": (_mxfp8, lambda n: (n, n // 32, 32)),
    "mxfp4": (_mxfp4, lambda n: (n, n // 32, 32)),
    "nvfp4": (_nvfp4, lambda n: (n, n // 16, 16)),
}
"""For each formula the function, and the view of a square matrix that it takes."""


# --- libraries --------------------------------------------------------------------------------------------------------


class Library(NamedTuple):
    """A library by name, and its module."""

    name: str
    module: Any

    def call(self, row: Row, x: Any) -> Callable[[], tuple[Any, Any]]:
        """Return the conversion of a torch tensor as a function without arguments: values and scales."""
        if self.name == "tilearray":
            given, options = self.module.asarray(x), dict(row.options)
            dtype = options.pop("dtype")
            return lambda: self.module.quantize(given, dtype, **options)[:2]
        function, shape = FORMULAS[row.formula]
        view, run = x.view(shape(len(x))), self.module.compile(lambda x: function(self.module, x), dynamic=False)
        return lambda: run(view)


def libraries(torch: Any, wanted: Sequence[str]) -> list[Library]:
    """Return the libraries that are wanted; tilearray first, with which torch is compared."""
    import tilearray as ta

    found = [Library("tilearray", ta), Library("torch", torch)]
    return [library for library in found if library.name in wanted]


def same_as_host(ta: Any, row: Row, x: Any, found: tuple[Any, Any]) -> bool:
    """Whether values and scales of the first rows have the bits of the host."""
    options = dict(row.options)
    first = ta.asarray(x[:CHECKED]).to_device("cpu")
    want = ta.quantize(first, options.pop("dtype"), **options)[:2]
    return all(
        ta.to_numpy(got[: len(one)]).tobytes() == ta.to_numpy(one).tobytes()
        for got, one in zip(found, want, strict=True)
    )


def close(torch: Any, ours: Any, theirs: Any) -> bool:
    """Whether nearly all codes of two arrays of values are the same, and all others neighbours.

    Bytes are compared, or halves of packed bytes.
    """
    packed = ours.dtype.names is not None
    codes = [torch.from_dlpack(ours.view("uint8")).reshape(-1), theirs.reshape(-1).view(torch.uint8)]
    parts = [[each & 15, each >> 4] if packed else [each] for each in codes]
    apart = [(first.short() - second.short()).abs() for first, second in zip(*parts, strict=True)]
    same = sum(float((each == 0).float().mean()) for each in apart) / len(apart)
    return same > 0.99 and all(int(each.max()) <= 1 for each in apart)


def measured(
    torch: Any, clock: Any, row: Row, found: Sequence[Library], size: str, copy: Callable[[], float]
) -> dict[str, Any]:
    """Check and time a row with every library."""
    torch.manual_seed(7)
    count = SIZES[size]
    x = torch.randn((count, count), device="cuda").to(torch.bfloat16)
    nbytes, rate, ours = row.nbytes * count * count, copy(), None

    def checked(library: Library) -> Any:
        nonlocal ours
        torch.compiler.reset()
        call = library.call(row, x)
        got = call()
        if library.name == "tilearray":
            ours, fits = got[0], same_as_host(library.module, row, x, got)
        else:
            fits = ours is None or close(torch, ours, got[0])
        return call if fits else tables.MISMATCH

    return tables.rated_row(clock, row, found, checked, size, nbytes, rate)


def host_times(torch: Any, clock: Any, found: Sequence[Library], size: str) -> list[dict[str, Any]]:
    """Return the host times of conversions of a small matrix by tilearray."""
    x = torch.zeros((128, 128), device="cuda", dtype=torch.bfloat16)
    ours = [library for library in found if library.name == "tilearray"]
    return [
        tables.host_row(clock, row.name, ((each.name, "call()", {"call": each.call(row, x)}) for each in ours), size)
        for row in ROWS
    ]


BENCHMARK = tables.Benchmark(
    "low_precision",
    "Scaled conversions",
    tuple(SIZES),
    ROWS,
    libraries,
    measured,
    host_times,
    partial(tables.markdown_of_rates, title="Low precision: "),
    copied=lambda size: (SIZES[size], SIZES[size]),
    names=("tilearray", "torch"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return tables.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())
