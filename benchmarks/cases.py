"""What is measured: two tables, pure data. To measure one more thing, add a row.

`LAYOUTS` are kernels, judged by bandwidth. A row names its operands as views of arrays from `shapes`, written once in
NumPy's spelling and evaluated by every library over the same memory, and an expression over them, ``x`` the first and
``y`` the second. `CALLS` are small operations, judged by host time; their statements run inside `timeit`'s loop.

Bytes are counted from the views alone, on NumPy arrays that are nothing but geometry, so they hold for every library.

    ideal bytes     each element that an operand reaches is read once, each of the result is written once
    traffic         the same in whole sectors of 32 bytes, which is what memory can move: of ``a[:, ::2]`` twice as much

Worked example: of ``a[:, ::2]`` over float32 16 x 16, 128 elements are reached, 512 bytes. Every row is a run of 60
bytes whose gaps of 4 are less than a sector, so both of its sectors are touched: 16 rows of 64 bytes, 1024.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

SECTOR = 32
DTYPES = {"bfloat16": np.dtype(ml_dtypes.bfloat16)}  # what np.dtype does not know by name

Shape = tuple[int, ...]


def dtype_of(name: str) -> np.dtype:
    """The NumPy dtype of a name in the table."""
    return DTYPES.get(name) or np.dtype(name)


def shapes(size: str) -> dict[str, Shape]:
    """The arrays that operands are views of, by name, at one size.

    Examples
    --------
    >>> shapes("full")["a"], shapes("full")["p"]
    ((16384, 16384), (64, 128, 64, 512))
    """
    n, p, flat, box, outer = SIZES[size]
    return {
        **dict.fromkeys(("a", "b", "o"), (n, n)),
        "big": (2 * n, n),
        "odd_big": (2 * (n - 1), n + 1),
        "row": (n,),
        "col": (n, 1),
        "p": p,
        "q": (p[3], *p[:3]),
        "r": box,
        "s": box[::-1],
        **dict.fromkeys(("c", "d"), (n - 1, n + 1)),
        "e": (n + 1, n - 1),
        **dict.fromkeys(("f", "g"), (flat,)),
        "u": (outer, 1, outer),
        "v": (1, outer, 1),
    }


SIZES: Mapping[str, tuple[int, Shape, int, Shape, int]] = {
    "full": (16384, (64, 128, 64, 512), 2**28 + 1, (800, 400, 900), 512),
    "host": (2048, (16, 32, 16, 512), 2**22 + 1, (200, 100, 225), 128),  # a host cannot move a gigabyte in a moment
    "small": (96, (4, 6, 5, 7), 2**12 + 1, (9, 8, 11), 12),  # for tests: shows that all of it runs, and no speed
}


@dataclass(frozen=True)
class Case:
    """One row: a kernel.

    Attributes
    ----------
    name : str
    operands : tuple of str
        What is read, as views of the arrays of `shapes`: ``x``, ``y`` ... in the expression.
    expression : str
        Over the operands and ``o``, the target; functions are those of `libraries.Library.names`.
    dtypes : tuple of str
        Of the arrays as the operands first name them; the last one goes on.
    result : str
        Dtype of the result; empty: that of the first array.
    target : str
        What is written where the expression writes into memory that is there.
    mutates : bool
        The expression changes what it reads, so it runs once for the check.
    without : tuple of str
        Libraries that have no such view or operation, known beforehand.
    against : str
        The yardstick: "copy" or "memset".
    """

    name: str
    operands: tuple[str, ...]
    expression: str = "x + y"
    dtypes: tuple[str, ...] = ("float32",)
    result: str = ""
    target: str = ""
    mutates: bool = False
    without: tuple[str, ...] = ()
    against: str = "copy"

    @property
    def arrays(self) -> dict[str, str]:
        """The dtype of every array, by its name in `shapes`."""
        named = dict.fromkeys(array_of(text) for text in (*self.operands, self.target) if text)
        return {name: self.dtypes[min(position, len(self.dtypes) - 1)] for position, name in enumerate(named)}

    @property
    def result_dtype(self) -> str:
        return self.result or self.dtypes[0]

    def views(self, arrays: Mapping[str, Any], names: Mapping[str, Any]) -> tuple[list[Any], Any]:
        """The operands and the target (None if there is none) as views of a library's arrays."""
        scope = {**names, **arrays}
        made = [eval(text, dict(scope)) for text in self.operands]
        return made, eval(self.target, dict(scope)) if self.target else None

    def call(self, names: Mapping[str, Any]) -> Callable[..., Any]:
        """The expression as a function of the operands and the target, if there is one."""
        parameters = ", ".join((*"xyzw"[: len(self.operands)], "o=None"))
        return eval(f"lambda {parameters}: {self.expression}", dict(names))

    def geometry(self, size: str, hollow: Mapping[str, np.ndarray] | None = None) -> tuple[list[np.ndarray], Shape]:
        """The operands as views of hollow arrays, and the result's shape."""
        operands, target = self.views(hollow or hollow_arrays(self, size), {"permute": np.transpose})
        return operands, np.broadcast_shapes(*(x.shape for x in operands), *([target.shape] if self.target else []))

    def ideal_bytes(self, size: str) -> int:
        """Bytes of the elements read and written, each once."""
        operands, shape = self.geometry(size)
        return sum(reached(x)[0] for x in operands) + math.prod(shape) * dtype_of(self.result_dtype).itemsize

    def traffic(self, size: str) -> int:
        """Bytes of the sectors read and written, each once."""
        operands, shape = self.geometry(size)
        return sum(reached(x)[1] for x in operands) + math.prod(shape) * dtype_of(self.result_dtype).itemsize


def array_of(view: str) -> str:
    """The name of the array that a view is written over.

    Examples
    --------
    >>> array_of("permute(q, (1, 2, 3, 0))")
    'q'
    """
    return re.sub(r"permute\(", "", view).partition("[")[0].partition(".")[0].partition(",")[0]


def hollow_arrays(case: Case, size: str) -> dict[str, np.ndarray]:
    """A case's arrays as NumPy arrays without memory: shape and strides only."""
    known = shapes(size)
    return {name: _hollow(known[name], dtype_of(dtype)) for name, dtype in case.arrays.items()}


def _hollow(shape: Shape, dtype: np.dtype) -> np.ndarray:
    strides = [math.prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape))]
    return np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides)


def reached(x: np.ndarray) -> tuple[int, int]:
    """Bytes of the elements that a view reaches, and of the sectors they lie in, taking runs to begin at sectors.

    Examples
    --------
    >>> reached(np.empty((16, 16), np.float32)[:, ::2])
    (512, 1024)
    """
    axes = sorted((abs(stride), extent) for stride, extent in zip(x.strides, x.shape) if stride and extent > 1)
    run, runs = x.itemsize, 1
    for stride, extent in axes:
        if runs == 1 and stride - run < SECTOR:
            run += stride * (extent - 1)  # a gap of less than a sector holds no untouched one
        else:
            runs *= extent
    return math.prod(extent for _, extent in axes) * x.itemsize, runs * -(-run // SECTOR) * SECTOR


# fmt: off
LAYOUTS = (
    # the layouts of the record against the peers
    Case("a + b", ("a", "b")),
    Case("a * 2.5", ("a",), "x * 2.5"),
    Case("a + b.T", ("a", "b.T")),
    Case("a.T + b.T", ("a.T", "b.T")),
    Case("a + row", ("a", "row")),
    Case("a + col", ("a", "col")),
    Case("col + row", ("col", "row")),
    Case("big[::2] + a", ("big[::2]", "a")),
    Case("a[:, 1:] + b[:, 1:]", ("a[:, 1:]", "b[:, 1:]")),
    Case("a[:, ::2] + b[:, ::2]", ("a[:, ::2]", "b[:, ::2]")),
    Case("p + q.permute(1, 2, 3, 0)", ("p", "permute(q, (1, 2, 3, 0))")),
    Case("a[:, ::-1] + b", ("a[:, ::-1]", "b"), without=("torch",)),
    Case("float16 + float16", ("a", "b"), dtypes=("float16",)),
    Case("uint8 + uint8", ("a", "b"), dtypes=("uint8",)),
    Case("float16 + float32", ("a", "b"), dtypes=("float16", "float32"), result="float32"),
    Case("a < b", ("a", "b"), "x < y", result="bool"),
    Case("exp(a)", ("a",), "exp(x)"),
    Case("a*b + a*2 - b", ("a", "b"), "x*y + x*2 - y"),
    # itemsizes
    Case("bool | bool", ("a", "b"), "x | y", dtypes=("bool",)),
    Case("bfloat16 + bfloat16", ("a", "b"), dtypes=("bfloat16",)),
    Case("bfloat16 + float32", ("a", "b"), dtypes=("bfloat16", "float32"), result="float32"),
    Case("float64 + float64", ("a", "b"), dtypes=("float64",)),
    Case("complex64 + complex64", ("a", "b"), dtypes=("complex64",)),
    Case("complex128 + complex128", ("a", "b"), dtypes=("complex128",)),
    Case("uint8 a + b.T", ("a", "b.T"), dtypes=("uint8",)),
    Case("float16 a + b.T", ("a", "b.T"), dtypes=("float16",)),
    Case("float64 a + b.T", ("a", "b.T"), dtypes=("float64",)),
    Case("complex128 a + b.T", ("a", "b.T"), dtypes=("complex128",)),
    # odd extents, odd pitches, misaligned starts
    Case("odd c + d", ("c", "d")),
    Case("odd c + e.T", ("c", "e.T")),
    Case("odd float16 c + e.T", ("c", "e.T"), dtypes=("float16",)),
    Case("odd uint8 c + e.T", ("c", "e.T"), dtypes=("uint8",)),
    Case("odd uint8 c + d[:1]", ("c", "d[:1]"), dtypes=("uint8",)),
    Case("odd uint8 c + d[:, :1]", ("c", "d[:, :1]"), dtypes=("uint8",)),
    Case("uint8 a[:, 1:] + b[:, 1:]", ("a[:, 1:]", "b[:, 1:]"), dtypes=("uint8",)),
    Case("2**28+1: f + g", ("f", "g")),
    Case("f[1:] + g[1:]", ("f[1:]", "g[1:]")),
    Case("float16 f[1:] + g[:-1]", ("f[1:]", "g[:-1]"), dtypes=("float16",)),
    Case("uint8 f[1:] + g[1:]", ("f[1:]", "g[1:]"), dtypes=("uint8",)),
    Case("3-D r + s.permute(2, 1, 0)", ("r", "permute(s, (2, 1, 0))")),
    Case("[n,1,n] + [1,n,1]", ("u", "v")),
    # what only moves, and what writes into memory that is there
    Case("a.copy()", ("a",), "copy(x)"),
    Case("o[...] = a.T", ("a.T",), "assign(o, x)", target="o"),
    Case("float64 o[...] = a.T", ("a.T",), "assign(o, x)", dtypes=("float64",), target="o"),
    Case("odd d[...] = e.T", ("e.T",), "assign(o, x)", target="d"),
    Case("s[...] = r.permute(2, 1, 0)", ("permute(r, (2, 1, 0))",), "assign(o, x)", target="s"),
    Case("cast float32 to float16", ("a",), "cast(x, 'float16')", result="float16"),
    Case("o[...] = 2.5", (), "assign(o, 2.5)", target="o", against="memset"),
    Case("add(a, b, out=o)", ("a", "b"), "add(x, y, out=o)", target="o"),
    Case("a += b", ("a", "b"), "iadd(x, y)", mutates=True),
)
# fmt: on


@dataclass(frozen=True)
class Call:
    """One row: a small operation whose host time is measured.

    Attributes
    ----------
    name : str
    statement : str
        Over the names of `OPERANDS`.
    value : str
        What is checked after the statement; empty: the statement itself.
    fresh : bool
        `xs` and `ys` are iterators of operands whose shapes were not seen before, as many as there are calls.
    """

    name: str
    statement: str
    value: str = ""
    fresh: bool = False


OPERANDS: Mapping[str, Shape] = {"a": (1000,), "b": (1000,), "c": (1000,), "o": (1000,), "m": (32, 32)}
"""The float32 arrays of `CALLS`; `c` is the one that is changed."""

CALLS = (
    Call("a + b", "a + b"),
    Call("add(a, b, out=o)", "add(a, b, out=o)"),
    Call("a * 2.0", "a * 2.0"),
    Call("-a", "-a"),
    Call("a < b", "a < b"),
    Call("a += b", "c += b", value="c"),
    Call("m + m.T (32x32)", "m + m.T"),
    Call("a*b + a*2 - b", "a*b + a*2 - b"),
    Call("view a[1:]", "a[1:]"),
    Call("view m.T", "m.T"),
    Call("never-seen length: x + y", "add(next(xs), next(ys))", fresh=True),
    Call("never-seen shape: x[:r, :c] + y[:c]", "add(next(xs), next(ys))", fresh=True),
)

POOL = 16384  # elements that operands of a never-seen shape are cut from


def fresh_lengths(array: Callable[[Shape], Any], start: int, count: int) -> tuple[list[Any], list[Any]]:
    """`count` pairs of contiguous operands, every pair of another length, none of them met for a smaller `start`."""
    pool = array((POOL,))
    lengths = [1000 + start + position for position in range(count)]
    return [pool[:length] for length in lengths], [pool[:length] for length in lengths]


def fresh_shapes(array: Callable[[Shape], Any], start: int, count: int) -> tuple[list[Any], list[Any]]:
    """`count` pairs of a block of a 128 x 128 matrix and a row, every pair of another shape."""
    pool = array((POOL,))
    matrix = pool.reshape(128, 128)
    extents = [divmod(start + position, 112) for position in range(count)]
    sizes = [(rows + 2, columns + 16) for rows, columns in extents]
    return [matrix[:rows, :columns] for rows, columns in sizes], [pool[:columns] for _, columns in sizes]


FRESH = {"never-seen length: x + y": fresh_lengths, "never-seen shape: x[:r, :c] + y[:c]": fresh_shapes}
