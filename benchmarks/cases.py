"""The measured cases: two tables of pure data. To measure another case, add a row.

`LAYOUTS` are kernels, measured by bandwidth. A row contains its operands as views of the arrays of `shapes`, in NumPy's
notation. Every library evaluates them over the same memory. A row also contains an expression over the operands, ``x``
for the first and ``y`` for the second. `CALLS` are small operations, measured by host time. Their statements run inside
`timeit`'s loop.

Bytes are counted from the views alone, on NumPy arrays without memory, so they are the same for every library.

    ideal bytes     each element that an operand reaches is read once, and each element of the result is written once
    traffic         the same in whole sectors of 32 bytes, the unit of memory: twice as much for ``a[:, ::2]``

Example: ``a[:, ::2]`` over float32 16 x 16 reaches 128 elements, 512 bytes. Every row is a run of 60 bytes. Its gaps of
4 bytes are smaller than a sector, so both sectors of the row are touched: 16 rows of 64 bytes, 1024 bytes.
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
DTYPES = {"bfloat16": np.dtype(ml_dtypes.bfloat16)}  # dtypes that np.dtype does not find by name

Shape = tuple[int, ...]


def dtype_of(name: str) -> np.dtype:
    """Return the NumPy dtype of a name in the table."""
    return DTYPES.get(name) or np.dtype(name)


def shapes(size: str) -> dict[str, Shape]:
    """Return the shapes of the arrays by name, at one size. Operands are views of these arrays.

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
    "host": (2048, (16, 32, 16, 512), 2**22 + 1, (200, 100, 225), 128),  # a host needs too long for gigabytes
    "small": (96, (4, 6, 5, 7), 2**12 + 1, (9, 8, 11), 12),  # for tests: shows that everything runs, but no speed
}


@dataclass(frozen=True)
class Case:
    """One row: a kernel.

    Attributes
    ----------
    name : str
    operands : tuple of str
        The inputs as views of the arrays of `shapes`: ``x``, ``y`` ... in the expression.
    expression : str
        An expression over the operands and the target ``o``, with the functions of `libraries.Library.names`.
    dtypes : tuple of str
        The dtypes of the arrays, in the order in which the operands name them. The last one applies to all others.
    result : str
        The dtype of the result; if empty, that of the first array.
    target : str
        The view that the expression writes to, if it writes to existing memory.
    mutates : bool
        Whether the expression changes its inputs. Then it runs only once for the check.
    without : tuple of str
        Libraries that do not have this view or operation.
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
        """The dtype of every array by its name in `shapes`."""
        named = dict.fromkeys(array_of(text) for text in (*self.operands, self.target) if text)
        return {name: self.dtypes[min(position, len(self.dtypes) - 1)] for position, name in enumerate(named)}

    @property
    def result_dtype(self) -> str:
        return self.result or self.dtypes[0]

    def views(self, arrays: Mapping[str, Any], names: Mapping[str, Any]) -> tuple[list[Any], Any]:
        """Return the operands and the target (or None) as views of a library's arrays."""
        scope = {**names, **arrays}
        made = [eval(text, dict(scope)) for text in self.operands]
        return made, eval(self.target, dict(scope)) if self.target else None

    def call(self, names: Mapping[str, Any]) -> Callable[..., Any]:
        """Return the expression as a function of the operands and the optional target."""
        parameters = ", ".join((*"xyzw"[: len(self.operands)], "o=None"))
        return eval(f"lambda {parameters}: {self.expression}", dict(names))

    def geometry(self, size: str, hollow: Mapping[str, np.ndarray] | None = None) -> tuple[list[np.ndarray], Shape]:
        """Return the operands as views of arrays without memory, and the result's shape."""
        operands, target = self.views(hollow or hollow_arrays(self, size), {"permute": np.transpose})
        return operands, np.broadcast_shapes(*(x.shape for x in operands), *([target.shape] if self.target else []))

    def ideal_bytes(self, size: str) -> int:
        """Return the bytes of all elements that are read or written, each counted once."""
        operands, shape = self.geometry(size)
        return sum(reached(x)[0] for x in operands) + math.prod(shape) * dtype_of(self.result_dtype).itemsize

    def traffic(self, size: str) -> int:
        """Return the bytes of all sectors that are read or written, each counted once."""
        operands, shape = self.geometry(size)
        return sum(reached(x)[1] for x in operands) + math.prod(shape) * dtype_of(self.result_dtype).itemsize


def array_of(view: str) -> str:
    """Return the name of the array in the text of a view.

    Examples
    --------
    >>> array_of("permute(q, (1, 2, 3, 0))")
    'q'
    """
    return re.sub(r"permute\(", "", view).partition("[")[0].partition(".")[0].partition(",")[0]


def hollow_arrays(case: Case, size: str) -> dict[str, np.ndarray]:
    """Return a case's arrays as NumPy arrays without memory: only shape and strides."""
    known = shapes(size)
    return {name: _hollow(known[name], dtype_of(dtype)) for name, dtype in case.arrays.items()}


def _hollow(shape: Shape, dtype: np.dtype) -> np.ndarray:
    strides = [math.prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape))]
    return np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides)


def reached(x: np.ndarray) -> tuple[int, int]:
    """Return the bytes of the elements that a view reaches, and of their sectors. Runs are assumed to be aligned.

    Examples
    --------
    >>> reached(np.empty((16, 16), np.float32)[:, ::2])
    (512, 1024)
    """
    axes = sorted((abs(stride), extent) for stride, extent in zip(x.strides, x.shape) if stride and extent > 1)
    run, runs = x.itemsize, 1
    for stride, extent in axes:
        if runs == 1 and stride - run < SECTOR:
            run += stride * (extent - 1)  # a gap smaller than a sector contains no untouched sector
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
    # copies, and writes to existing memory
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
        A statement over the names of `OPERANDS`.
    value : str
        The expression to check after the statement; if empty, the statement itself.
    fresh : bool
        Whether `xs` and `ys` are iterators over operands of new shapes, one pair for each call.
    """

    name: str
    statement: str
    value: str = ""
    fresh: bool = False


OPERANDS: Mapping[str, Shape] = {"a": (1000,), "b": (1000,), "c": (1000,), "o": (1000,), "m": (32, 32)}
"""The float32 arrays of `CALLS`. The statements change only `c`."""

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

POOL = 16384  # elements of the array whose slices are the operands of never-seen shapes


def fresh_lengths(array: Callable[[Shape], Any], start: int, count: int) -> tuple[list[Any], list[Any]]:
    """Return `count` pairs of contiguous operands, each with its own length, different for every `start`."""
    pool = array((POOL,))
    lengths = [1000 + start + position for position in range(count)]
    return [pool[:length] for length in lengths], [pool[:length] for length in lengths]


def fresh_shapes(array: Callable[[Shape], Any], start: int, count: int) -> tuple[list[Any], list[Any]]:
    """Return `count` pairs of a block of a 128 x 128 matrix and a row, each with its own shape."""
    pool = array((POOL,))
    matrix = pool.reshape(128, 128)
    extents = [divmod(start + position, 112) for position in range(count)]
    sizes = [(rows + 2, columns + 16) for rows, columns in extents]
    return [matrix[:rows, :columns] for rows, columns in sizes], [pool[:columns] for _, columns in sizes]


FRESH = {"never-seen length: x + y": fresh_lengths, "never-seen shape: x[:r, :c] + y[:c]": fresh_shapes}
