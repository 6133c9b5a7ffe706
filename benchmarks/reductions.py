"""``python -m benchmarks.reductions``: reductions and scans on a GPU, beside torch, torch.compile and CuPy.

A row is a reduction or a scan of a view of one array. Its figure is the rate of the bytes that it must read, and write
if the result is as large, and the fraction of a device-to-device copy of the same run (which counts both). Every result
is compared with torch's in float64 before it is timed. The host times are those of calls on small arrays.

Exit status: 0 for success; 1 if a result was wrong or tilearray raised an error; 2 without a GPU or without torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from benchmarks import tables

SHAPES = {
    "full": {"a": (16384, 16384), "odd": (16383, 16385), "p": (64, 128, 64, 512)},
    "small": {"a": (128, 128), "odd": (127, 129), "p": (4, 8, 4, 16)},
}
TOLERANCE = {"bfloat16": 1e-2, "float16": 1e-3}
AS_LARGE = ("cumulative_sum", "maximum.accumulate", "softmax", "log_softmax")
"""The functions whose results are as large as their operands."""
NAMES = ("tilearray", "torch", "torch.compile", "cupy")
CUPY = {"cumulative_sum": "cumsum", "vector_norm": "linalg.norm"}


class Row(NamedTuple):
    """A reduction: the function, the view of an array as text over ``x``, the axes, and the dtype of the array."""

    function: str
    array: str = "a"
    view: str = "x"
    axis: int | tuple[int, ...] | None = None
    dtype: str = "float32"

    @property
    def name(self) -> str:
        """The row's name in a table."""
        axis = "all" if self.axis is None else f"axis {self.axis}"
        return f"{self.function} {self.dtype} {self.view.replace('x', self.array)} {axis}"


def _rows() -> list[Row]:
    rows = [Row(name, axis=axis) for name in ("sum", "max", "argmax", "var", "mean") for axis in (None, 0, 1)]
    rows += [Row("sum", view=view, axis=axis) for view, axis in (("x.T", 0), ("x[:, 1:]", 1), ("x[:, ::2]", None))]
    rows += [Row("sum", "p", axis=axes) for axes in ((0, 2), (1, 3), 1)]
    rows += [Row("sum", "odd", axis=axis) for axis in (1, 0, None)]
    for dtype, names in (("bfloat16", ("sum", "max")), ("uint8", ("sum", "max")), ("float64", ("sum",))):
        rows += [Row(name, axis=axis, dtype=dtype) for name in names for axis in (None, 0, 1)]
    rows += [Row("prod", axis=0), Row("any", axis=1, dtype="bool"), Row("count_nonzero", dtype="bool")]
    rows.append(Row("sum", axis=0, dtype="complex64"))
    rows += [Row("cumulative_sum", axis=axis) for axis in (1, 0)]
    rows.append(Row("cumulative_sum", view="x.reshape(-1)", axis=0))
    rows += [Row("cumulative_sum", axis=1, dtype=dtype) for dtype in ("bfloat16", "int64", "uint8")]
    flat = ("float64", "int32", "bfloat16", "complex64", "uint8")
    rows += [Row("cumulative_sum", view="x.reshape(-1)", axis=0, dtype=dtype) for dtype in flat]
    rows.append(Row("maximum.accumulate", view="x.reshape(-1)", axis=0))
    rows.append(Row("cumulative_sum", view="x.reshape(-1)[: 2**24]", axis=0))
    rows.append(Row("cumulative_sum", view="x.reshape(64, -1)", axis=1))
    whole = (("sum", "int64"), ("sum", "complex64"), ("max", "float64"))
    rows += [Row(name, dtype=dtype) for name, dtype in whole]
    but_the_first = (
        ("sum", "float32"),
        ("max", "float32"),
        ("var", "float32"),
        ("sum", "bfloat16"),
        ("sum", "complex64"),
    )
    rows += [Row(name, view="x.reshape(-1)[1:]", dtype=dtype) for name, dtype in but_the_first]
    rows += [Row("sum", "odd", axis=1, dtype=dtype) for dtype in ("bfloat16", "complex64")]
    for name in ("softmax", "log_softmax"):
        rows += [Row(name, axis=axis) for axis in (1, 0)]
    rows += [Row("softmax", axis=1, dtype="bfloat16"), Row("logsumexp", axis=1)]
    return [*rows, *[Row("vector_norm", axis=axis) for axis in (None, 1, 0)]]


ROWS = tuple(_rows())
CALLS = (
    ("sum of 1000", (1000,), "{lib}.sum(x)"),
    ("sum of 64x64, axis 1", (64, 64), "{lib}.sum(x, axis=1)"),
    ("max of 1000", (1000,), "{lib}.max(x)"),
    ("mean of 1000", (1000,), "{lib}.mean(x)"),
)


class Library(NamedTuple):
    """A library: how it takes a torch tensor, and how it runs a row on a view."""

    name: str
    module: Any
    adopt: Callable[[Any], Any]
    run: Callable[[Any, Row], Any]


class Compiled:
    """torch.compile, of each row alone: after a few different calls of one function it gives up."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._functions: dict[Row, Callable[[Any], Any]] = {}

    def __call__(self, x: Any, row: Row) -> Any:
        if row not in self._functions:
            self._torch._dynamo.reset()
            self._functions[row] = self._torch.compile(lambda x: of_torch(self._torch, x, row), dynamic=False)
        return self._functions[row](x)


def libraries(torch: Any, wanted: Sequence[str]) -> list[Library]:
    """Return the libraries that are installed and wanted."""
    found = [Library("torch", torch, lambda x: x, lambda x, row: of_torch(torch, x, row))]
    found.append(Library("torch.compile", torch, lambda x: x, Compiled(torch)))
    import tilearray as ta

    found.append(Library("tilearray", ta, ta.asarray, lambda x, row: of_tilearray(ta, x, row)))
    if importlib.util.find_spec("cupy"):
        cupy: Any = importlib.import_module("cupy")
        found.append(Library("cupy", cupy, cupy.from_dlpack, lambda x, row: of_cupy(cupy, x, row)))
    return [library for library in found if library.name in wanted]


def of_tilearray(ta: Any, x: Any, row: Row) -> Any:
    """Run a row with tilearray."""
    namespace = ta.linalg if row.function == "vector_norm" else ta
    return attrgetter(row.function)(namespace)(x, axis=row.axis)


def of_torch(torch: Any, x: Any, row: Row) -> Any:
    """Run a row with torch."""
    if row.function == "cumulative_sum":
        return torch.cumsum(x, dim=row.axis)
    if row.function == "maximum.accumulate":
        return torch.cummax(x, dim=row.axis).values
    if row.function == "vector_norm":
        return torch.linalg.vector_norm(x, dim=row.axis)
    if row.function in ("max", "min"):
        return getattr(torch, f"a{row.function}")(x, dim=() if row.axis is None else row.axis)
    if row.function == "count_nonzero":
        return torch.count_nonzero(x, dim=row.axis)
    if row.function == "var":
        return torch.var(x, dim=row.axis, correction=0)
    if row.axis is None:
        return getattr(torch, row.function)(x)
    return getattr(torch, row.function)(x, dim=row.axis)


def of_cupy(cupy: Any, x: Any, row: Row) -> Any:
    """Run a row with CuPy."""
    return attrgetter(CUPY.get(row.function, row.function))(cupy)(x, axis=row.axis)


def made(torch: Any, row: Row, size: str) -> Any:
    """Return the array of a row as a torch tensor."""
    shape, dtype = SHAPES[size][row.array], getattr(torch, row.dtype)
    torch.manual_seed(7)
    if row.dtype == "uint8":
        return torch.randint(0, 255, shape, dtype=dtype, device="cuda")
    if row.dtype in ("int32", "int64"):
        return torch.randint(-1000, 1000, shape, dtype=dtype, device="cuda")
    if row.dtype == "bool":
        return torch.rand(shape, device="cuda") < (0.5 if row.function == "count_nonzero" else 1e-9)
    if row.function == "prod":
        return 1 + torch.rand(shape, device="cuda", dtype=dtype) * 1e-5
    return torch.rand(shape, device="cuda", dtype=dtype)


def agrees(torch: Any, library: Library, result: Any, x: Any, row: Row) -> bool:
    """Whether a result is that of torch on float64."""
    given = torch.from_dlpack(result) if library.name in ("tilearray", "cupy") else result
    if row.function in ("max", "argmax", "any", "count_nonzero"):
        return bool((given.to(torch.int64) == of_torch(torch, x, row).to(torch.int64)).all())
    wide = x.to(torch.complex128 if x.is_complex() else torch.float64)
    expected = of_torch(torch, wide, row)
    difference, limit = (given.to(wide.dtype) - expected).abs(), expected.abs()
    return bool((difference <= limit.mul_(TOLERANCE.get(row.dtype, 1e-5)).add_(1e-8)).all())


def measured(
    torch: Any, clock: Any, row: Row, found: Sequence[Library], size: str, copy: Callable[[], float]
) -> dict[str, Any]:
    """Check and time a row with every library."""
    x = eval(row.view, {"x": made(torch, row, size)})
    nbytes = x.numel() * x.element_size()
    if row.function in AS_LARGE:
        nbytes += of_torch(torch, x[:1, :1] if x.ndim > 1 else x[:1], row).element_size() * x.numel()
    rate = copy()

    def checked(library: Library) -> Any:
        own = library.adopt(x)
        result = library.run(own, row)
        if library.name == "tilearray" and not agrees(torch, library, result, x, row):
            return tables.MISMATCH
        return partial(library.run, own, row)

    return tables.rated_row(clock, row, found, checked, size, nbytes, rate)


def host_times(torch: Any, clock: Any, found: Sequence[Library], size: str) -> list[dict[str, Any]]:
    """Return the host times of small calls."""
    rows: list[dict[str, Any]] = []
    for name, shape, text in CALLS:
        x = torch.rand(shape, device="cuda")
        those = [library for library in found if library.name != "torch.compile"]
        calls = ((each.name, text.format(lib="lib"), {"lib": each.module, "x": each.adopt(x)}) for each in those)
        rows.append(tables.host_row(clock, name, calls, size))
    return rows


BENCHMARK = tables.Benchmark(
    "reductions",
    "Reductions",
    ("full", "small"),
    ROWS,
    libraries,
    measured,
    host_times,
    partial(tables.markdown_of_rates, title="Reductions: ", names=NAMES),
    copied=lambda size: SHAPES[size]["a"],
    names=NAMES,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return tables.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())
