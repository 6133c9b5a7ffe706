"""``python -m benchmarks.everyday``: functions of arrays of everyday shapes on a GPU, beside torch and CuPy.

Other benchmarks have large arrays, which the memory bounds; these arrays have short rows, few columns, stacks of small
matrices, images in batches, or a million elements. A row is a function, written once for tilearray and CuPy and once
for torch; its figure is milliseconds. Every result is compared with torch's before it is timed.

Exit status: 0 for success; 1 if a result was wrong or tilearray raised an error; 2 without a GPU or without torch.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from benchmarks import tables
from benchmarks.selection import Library, libraries

SIZES = {"full": 1, "small": 64}
"""What the longest axis of each array is divided by."""
NEAR = 1e-2
"""The largest difference of results, relative to the largest value."""

Shape = tuple[int, ...]


class Row(NamedTuple):
    """A function of ``x`` and ``y`` of a library ``lib``: its text, torch's text, and the shapes.

    ``i`` are indices below the length of ``x``, as many as `indices` says.
    """

    text: str
    torch: str
    x: Shape
    y: Shape = ()
    indices: int = 0
    dtype: str = "float32"

    @property
    def name(self) -> str:
        """The row's name in a table."""
        shapes = ", ".join("x".join(map(str, shape)) for shape in (self.x, self.y, (self.indices,)) if any(shape))
        return f"{self.text.replace('lib.', '')}, {shapes}{'' if self.dtype == 'float32' else f' {self.dtype}'}"


TABLES = ((10**6, 3), (10**6, 10), (2 * 10**6, 30), (10**6, 100), (5 * 10**5, 200), (10**5, 768), (10**4, 10**4))
"""Points, records, and rows of features."""
IMAGES, FEATURES, ATTENTION = (64, 3, 224, 224), (256, 256, 7, 7), (32, 12, 512, 64)


def _pair(name: str, words: str, torch: str, shape: Shape, dtype: str = "float32") -> Row:
    return Row(f"lib.{name}(x, {words})", f"x.{torch}", shape, dtype=dtype)


REDUCTIONS = (
    *[_pair("sum", f"axis={axis}", f"sum({axis})", shape) for shape in TABLES for axis in (0, 1)],
    *[_pair("max", f"axis={axis}", f"amax({axis})", shape) for shape in TABLES[1:4] for axis in (0, 1)],
    *[_pair("mean", f"axis={axis}", f"mean({axis})", TABLES[3], "bfloat16") for axis in (0, 1)],
    *[_pair("var", f"axis={axis}", f"var({axis}, correction=0)", shape) for shape in TABLES[1:6:2] for axis in (0, 1)],
    *[_pair("argmax", f"axis={axis}", f"argmax({axis})", shape) for shape in TABLES[1:4] for axis in (0, 1)],
    *[_pair("any", f"axis={axis}", f"any({axis})", TABLES[1], "bool") for axis in (0, 1)],
    _pair("mean", "axis=(2, 3)", "mean((2, 3))", IMAGES),
    _pair("mean", "axis=(0, 2, 3)", "mean((0, 2, 3))", IMAGES),
    _pair("var", "axis=(0, 2, 3)", "var((0, 2, 3), correction=0)", FEATURES),
    _pair("mean", "axis=(2, 3)", "mean((2, 3))", FEATURES),
    _pair("sum", "axis=1", "sum(1)", FEATURES),
    *[_pair("sum", f"axis={axis}", f"sum({axis})", ATTENTION) for axis in (1, 2, 3)],
    Row("lib.sum(x)", "x.sum()", (10**6,)),
    Row("lib.var(x)", "x.var(correction=0)", (10**6,)),
    Row("lib.argmin(x)", "x.argmin()", (10**6,)),
)
ROWS = (
    *REDUCTIONS,
    *[
        _pair("cumsum", f"axis={axis}", f"cumsum({axis})", shape)
        for shape in ((10**6, 10), (10**4, 1000))
        for axis in (0, 1)
    ],
    Row("lib.cumsum(x)", "x.cumsum(0)", (10**6,)),
    *[
        _pair("sort", "axis=1", "sort(1)[0]", shape)
        for shape in ((10**6, 10), (10**5, 100), (10**4, 1000), (100, 10**5))
    ],
    *[Row("lib.sort(x)", "x.sort()[0]", (size,)) for size in (10**5, 10**6, 10**7)],
    Row("x[lib.argsort(x)]", "x[x.argsort()]", (10**6,)),
    Row("lib.median(x, axis=1)", "x.sort(1)[0][:, 499:501].mean(1)", (10**4, 1000)),
    Row("lib.unique(x)", "x.unique()", (10**6,), dtype="int32"),
    Row("x[i]", "x[i]", (10**5, 64), indices=10**6),
    Row("x[i]", "x[i]", (10**7,), indices=10**6),
    Row("x[x > 0]", "x[x > 0]", (10**6,)),
    Row("lib.where(x > 0, x, y)", "lib.where(x > 0, x, y)", (10**6,), (10**6,)),
    Row("lib.concatenate([x, y], axis=1)", "lib.cat([x, y], 1)", (10**6, 3), (10**6, 5)),
    Row("lib.stack([x, y], axis=-1)", "lib.stack([x, y], -1)", (10**6,), (10**6,)),
    Row("lib.roll(x, 5, axis=1)", "lib.roll(x, 5, 1)", (1000, 1000)),
    Row("lib.flip(x, axis=1) + 0", "lib.flip(x, (1,))", IMAGES),  # torch ends the process at CuPy's negative strides
    Row("lib.repeat(x, 4, axis=0)", "lib.repeat_interleave(x, 4, 0)", (10**5, 10)),
    Row("lib.tile(x, (8, 1))", "lib.tile(x, (8, 1))", (10**4, 100)),
    Row("lib.diff(x, axis=1)", "lib.diff(x, dim=1)", (10**4, 1000)),
    Row("x + y", "x + y", (10**6, 10), (10,)),
    Row("x * y", "x * y", (10**6, 10), (10**6, 1)),
    Row("x - y", "x - y", IMAGES, (3, 1, 1)),
    Row("x + x.T", "x + x.T", (2000, 2000)),
    Row("x[:, 0] * 2", "x[:, 0] * 2", (10**6, 10)),
    Row("lib.exp(x[:, :3])", "lib.exp(x[:, :3])", (10**6, 10)),
    Row("lib.exp(x)", "lib.exp(x)", (10**6,)),
    Row("lib.sum((x[:, None] - y[None]) ** 2, axis=-1)", "((x[:, None] - y[None]) ** 2).sum(-1)", (2000, 3), (2000, 3)),
    Row("x.transpose(0, 2, 3, 1) + 0", "x.permute(0, 2, 3, 1).contiguous()", IMAGES),
    Row("lib.moveaxis(x, 1, 2).copy()", "x.movedim(1, 2).contiguous()", ATTENTION),
    *[
        Row("lib.matmul(x, y)", "lib.matmul(x, y)", x, y)
        for x, y in (
            ((10**6, 10), (10, 10)),
            ((10**5, 64), (64, 64)),
            ((4096, 64), (64, 4096)),
            ((1000, 32, 32), (1000, 32, 32)),
            ((100000, 3, 3), (100000, 3, 3)),
            ((4096, 4096), (4096,)),
        )
    ],
    Row("lib.dot(x, y)", "lib.dot(x, y)", (10**6,), (10**6,)),
    Row("lib.outer(x, y)", "lib.outer(x, y)", (4096,), (4096,)),
    Row("lib.einsum('ij,ij->i', x, y)", "lib.einsum('ij,ij->i', x, y)", (10**5, 128), (10**5, 128)),
    Row("lib.linalg.norm(x, axis=1)", "lib.linalg.vector_norm(x, dim=1)", (10**6, 100)),
    Row("lib.searchsorted(lib.sort(y), x)", "lib.searchsorted(y.sort()[0], x)", (10**6,), (1000,)),
    Row("lib.bincount(i)", "lib.bincount(i)", (1000,), indices=10**6),
    Row("lib.clip(x, -1, 1)", "lib.clip(x, -1, 1)", (10**6,)),
    Row("lib.tril(x)", "lib.tril(x)", (2000, 2000)),
    Row("lib.fft.rfft(x)", "lib.fft.rfft(x)", (1000, 1024)),
)


def made(torch: Any, row: Row, size: str) -> dict[str, Any]:
    """Return the arrays of a row as torch tensors: normal numbers, of integers and bool random ones."""
    torch.manual_seed(7)
    found: dict[str, Any] = {}
    longest = max(row.x)
    for name, shape in (("x", row.x), ("y", row.y)):
        small = tuple([max(extent // SIZES[size], 2) if extent == longest else extent for extent in shape])
        kept = torch.randn(small, device="cuda") if shape else None
        found[name] = kept if kept is None or row.dtype == "float32" else (kept * 1000).to(getattr(torch, row.dtype))
    if row.dtype == "bool":
        found["x"] = torch.rand_like(found["x"], dtype=torch.float32) > 0.5
    count = max(row.indices // SIZES[size], 1)
    found["i"] = torch.randint(0, len(found["x"]), (count,), device="cuda")
    return found


def measured(torch: Any, clock: Any, row: Row, found: Sequence[Library], size: str) -> dict[str, Any]:
    """Check and time a row with every library."""
    arrays = made(torch, row, size)
    exact = eval(row.torch, {"lib": torch, **arrays})

    def checked(library: Library) -> Any:
        is_torch = library.name == "torch"
        names: dict[str, Any] = {"lib": library.module}
        names |= {name: None if array is None else library.adopt(array) for name, array in arrays.items()}
        code = compile(row.torch if is_torch else row.text, row.name, "eval")  # once: it takes longer than a launch
        result = eval(code, names)
        return partial(eval, code, names) if is_torch or _is_near(torch, result, exact) else tables.MISMATCH

    return {"name": row.name, "results": tables.results_of(clock, found, checked, size, lambda _: {})}


def _is_near(torch: Any, result: Any, exact: Any) -> bool:
    given = torch.from_dlpack(result)
    if given.shape != exact.shape:
        return False
    difference = (given.to(torch.float64) - exact.to(torch.float64)).abs().max()
    return bool((difference <= NEAR * max(1.0, exact.to(torch.float64).abs().max().item())).item())


def host_times(torch: Any, clock: Any, found: Sequence[Library], size: str) -> list[dict[str, Any]]:
    """Return no host times: those of small calls are in other benchmarks."""
    return []


BENCHMARK = tables.Benchmark(
    "everyday",
    "Everyday shapes",
    tuple(SIZES),
    ROWS,
    libraries,
    measured,
    host_times,
    partial(tables.markdown_of_milliseconds, title="Everyday shapes: "),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with the given arguments (default: those of the process) and return its exit status."""
    return tables.run(BENCHMARK, arguments)


if __name__ == "__main__":
    sys.exit(main())
