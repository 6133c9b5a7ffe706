"""The functions of `Fourier` on a device that has transforms along a few axes: Arrays in, Arrays out.

A library transforms elements as they lie, if it can read them, else a copy of them: dense, with the transformed axes
last. Axes that are cut or padded, and dtypes that differ, also need a copy. The result lies as the operand of the
library, so it is dense but not always in C order. More than three axes are several transforms, and so are those to real
numbers: all other axes first, in place. Large real arrays of two axes are transformed along the last axis, and then
along the first one, which lies as the fastest axis in the result. So does one axis that the library is slow to write
with a step: see `Way`. Divisions by the sizes are one more operation, in place, or part of a planned copy.

A transform of which the operand is at most converted to another dtype is planned once for each signature of an array:
see `Passes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cache
from itertools import pairwise
from math import prod, sqrt
from typing import Any, Final

import numpy as np

from tilearray import dtypes
from tilearray.engine.backend import Transforms
from tilearray.engine.context import STATE, decided
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import Signature, empty_array, new_array, signature_of
from tilearray.functions.indexing.views import get
from tilearray.functions.manipulation import new_like
from tilearray.geometry.layout import Layout
from tilearray.ops.arithmetic import multiply
from tilearray.ops.execute import execute
from tilearray.ops.moves import assign
from tilearray.ops.number_parts import conj
from tilearray.ops.promotion_methods import COMPLEX_OF, REAL_PART
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.systems import as_semantics

Ints = tuple[int, ...]

TOGETHER: Final = 3
"""The axes of one transform."""
ALONE: Final = 2**21
"""The elements from which all axes of one array of real numbers are not one transform, but two: the last one alone.

As torch does. 4096 x 4096 float32 took 162 us of an H100 as one transform, 150 as two, and 127 if the second one stores
its axis as the fastest; 2048 x 2048 took 33 and 32, and 1024 x 1024 took 14 and 18, most of it of the host. If the last
axis is not the fastest, a copy comes first: 2048 x 2048 took 48 us, and 109 without.
"""
APART: Final = 2**22
"""The most elements of a real array that comes from a transform along each of two axes, rather than along both at once.

That is if the operand does not lie in C order. From a first axis that is the fastest, two transforms to 1024 x 1024
float32 took 28 us of an H100, and one took 50, all of it of the host; to 2048 x 2048 54 and 56; to 4096 x 4096 222 and
207. From one in C order, one took less at each size: 24 and 28, 50 and 57, 201 and 227.
"""
STEPPED: Final = {"c2c": (2**11, 2**7), "r2c": (2**11, 2**7), "c2r": (2**7, 0)}
"""The most elements of an axis that the library reads and writes with a step: of powers of two, and of other sizes."""
REAL_BYTES: Final = 2**13
"""The most bytes that so many complex numbers have if the library reads real ones with a step."""
COPIED: Final = range(2**10 + 1, 2**13 + 1)
"""The elements of an axis of complex64 that is copied if they are no power of two."""


class Way(Enum):
    """How an axis that is not the fastest one is transformed.

    Microseconds of an H100 along the first axis of 2**24 elements of complex64, or of float32 and to it:

    ===============  =====  ====  ====  ====  ====  =====  ==========  ==========  ==========
    elements           128  1000  2048  4096  6000  16384  real: 1024  real: 4096  to it: 1024
    ===============  =====  ====  ====  ====  ====  =====  ==========  ==========  ==========
    STEPPED            101   195   132   147  1300    526          77         424         123
    TURNED             303   116   125   143   376    231          89         243         133
    COPIED             192   196   194   195   217    217         100         101         104
    ===============  =====  ====  ====  ====  ====  =====  ==========  ==========  ==========

    Which one is the fastest changes from size to size, and for other sizes with the dtype.
    """

    STEPPED = "the library reads and writes elements with a step between them"
    TURNED = "it reads them so, and writes the axis as the fastest one"
    COPIED = "it reads a copy whose fastest axis is the transformed one, and writes it so"


class Passes:
    """A transform of arrays of one signature whose operand the library reads as it lies, or converted to a dtype.

    Parameters
    ----------
    transforms : Transforms
    converted : Signature or None
        That of the converted operand.
    target : Signature
        That of the result.
    passes : sequence of (Any, bool)
        What `Transforms.run` takes, and the direction. The second pass and later ones are in place, and so is the first
        one of a copy that lies as the result.
    between : Signature or None
        That of the result of the first pass, if the second one is not in place.
    scale : float or None
        By what the result is multiplied.
    unit : int
        What the address of the operand must be a multiple of.
    """

    def __init__(
        self,
        transforms: Transforms,
        converted: Signature | None,
        target: Signature,
        passes: Sequence[tuple[Any, bool]],
        scale: float | None,
        unit: int,
        between: Signature | None = None,
    ) -> None:
        self._transforms, self._converted, self._target, self._between = transforms, converted, target, between
        self._in_place = converted is not None and (converted.layout, converted.dtype) == (target.layout, target.dtype)
        self._passes, self._scale, self._unit = passes, scale, unit
        self._parts = signature_of(Layout.of((2 * target.layout.size,)), REAL_PART[target.dtype], target.device)

    def __call__(self, x: Any) -> Any:
        """Return the transform of an array; None if its address is not such a multiple."""
        if self._unit > 1 and x._address % self._unit:
            return None
        stream, scale = STATE.get().stream, self._scale
        if self._converted is not None:
            x, scale = self._copied(x, stream)
        found = x if self._in_place else empty_array(x.__class__, self._target, stream)
        self._transform(x, found, stream)
        if scale is not None:
            parts = found._make(found._buffer, 0, self._parts)
            run_fixed(_scaling(self._parts.dtype), (parts, scale), parts)
        return found

    def _copied(self, x: Any, stream: Any) -> tuple[Any, float | None]:
        """Return the converted operand, and by what the result is multiplied, if the operand is not instead."""
        source, target = x._signature.dtype, self._converted
        assert target is not None
        copy, scale = empty_array(x.__class__, target, stream), self._scale
        if scale is None or source != target.dtype or source not in REAL_PART:
            return run_fixed(_conversion(source, target.dtype), (x,), copy), scale
        return run_fixed(_multiplied(source), (x, scale), copy), None

    def _transform(self, x: Any, found: Any, stream: Any) -> None:
        place = found._buffer, 0
        between = None if self._between is None else empty_array(x.__class__, self._between, stream)
        read, written = (x._buffer, x._offset), place if between is None else (between._buffer, 0)
        for planned, inverse in self._passes:
            self._transforms.run(stream, planned, inverse, read, written)
            read, written = written, place


class RealPasses:
    """An inverse transform to real numbers along the last axis, or the last two, of arrays of one signature.

    They lie in C order, or have two axes.

    A copy is made of what the library overwrites, and multiplied by the scale. Between two transforms it is one of the
    result of the first. The numbers at the first place of the last axis and, of an even size, at the last one are a
    transform of real numbers along all other axes: they become Hermitian, so that no imaginary part counts that does
    not. Dense arrays take one launch, others two more.

    Parameters
    ----------
    transforms : Transforms
    source, own, target : Signature
        Those of the operand, of the copy, which is in C order, and of the result.
    planned : Any
        What `Transforms.run` takes.
    numbers : tuple
        What `_hermitian` takes after the arrays.
    first : Any
        What `Transforms.run` takes for an earlier transform of complex numbers along the first axis. None if `planned`
        is along both.
    """

    def __init__(
        self,
        transforms: Transforms,
        source: Signature,
        own: Signature,
        target: Signature,
        planned: Any,
        numbers: tuple[float, ...],
        first: Any = None,
    ) -> None:
        self._transforms, self._own, self._target = transforms, own, target
        self._planned, self._numbers, self._first = planned, numbers, first
        copied = source if first is None else own
        self._is_dense = copied.layout.contiguous
        nowhere = Layout(own.layout.shape, (0,) * own.layout.ndim)
        self._memory = signature_of(nowhere, own.dtype, own.device, copied.aligned)

    def __call__(self, x: Any) -> Any:
        """Return the transform of an array."""
        stream, transform, cls = STATE.get().stream, self._transforms.run, x.__class__
        if self._first is not None:
            between = empty_array(cls, self._own, stream)
            transform(stream, self._first, True, (x._buffer, x._offset), (between._buffer, 0))
            x = between
        own = empty_array(cls, self._own, stream)
        if self._is_dense:
            memory = cls._make(x._buffer, x._offset, self._memory)
            run_fixed(_hermitian(self._own.dtype), [x, memory, *self._numbers], own)
        else:
            self._copy(x, own)
        found = empty_array(cls, self._target, stream)
        transform(stream, self._planned, True, (own._buffer, 0), (found._buffer, 0))
        return found

    def _copy(self, x: Any, own: Any) -> None:
        """Copy an array of two axes that does not lie in C order."""
        rows, _, step, scale = self._numbers
        edges = slice(None, None, int(step))
        run_fixed(_multiplied(x.dtype), [x, scale], own)
        alone = get(x, (slice(1), edges))
        run_fixed(_hermitian_mean(x.dtype), [alone, alone, scale], get(own, (slice(1), edges)))
        if rows > 1:
            some, others = get(x, (slice(1, None), edges)), get(x, (slice(None, 0, -1), edges))
            run_fixed(_hermitian_mean(x.dtype), [some, others, scale], get(own, (slice(1, None), edges)))


@cache
def _hermitian(dtype: np.dtype) -> FixedOperation:
    """Return the operation that makes halves of transforms Hermitian, and scales them.

    Its operands are dense complex numbers, their memory, the sizes of the last two axes (1 for the last but one, if it
    is not transformed), the distance of the places along the last one, and a scale.
    """
    builder, int32, int64, real = ExpressionBuilder(), dtypes.int32, dtypes.int64, REAL_PART[dtype]
    element, memory = builder.array(dtype), builder.memory(dtype)
    rows, columns, step = (builder.number(int32) for _ in range(3))
    index = builder.cast(builder.node("index"), int64, int32)
    is_edge = builder.call("edge", (index, columns, step), dtypes.bool_, "{x} % {y} % {z} == 0")
    row = builder.call("row", (index, columns, rows), int32, "({x} // {y}) % {z}")
    away = builder.call("away", (row, rows, columns), int32, "tl.where({x} == 0, 0, {y} - 2 * {x}) * {z}")
    place = builder.call("place", (index, away, is_edge), int64, "({x} + tl.where({z}, {y}, 0)).to(tl.int64)")
    is_alone = builder.call("alone", (away,), dtypes.bool_, "{x} == 0")
    given = element, builder.node("gather", memory, place), is_edge, is_alone, builder.number(real)
    found = builder.call("hermitian", given, dtype, "hermitian_part({0}, {1}, {2}, {3}, {4})")
    return FixedOperation("irfft", builder.build([found], [dtype]))


@cache
def _hermitian_mean(dtype: np.dtype) -> FixedOperation:
    """Return the operation that finds the means of numbers and the conjugates of others, and scales them."""
    builder = ExpressionBuilder()
    given = builder.array(dtype), builder.array(dtype), builder.number(REAL_PART[dtype])
    found = builder.call("hermitian", given, dtype, "hermitian_mean({x}, {y}, {z})")
    return FixedOperation("irfft", builder.build([found], [dtype]))


@cache
def _multiplied(dtype: np.dtype) -> FixedOperation:
    """Return the operation that scales complex numbers."""
    builder = ExpressionBuilder()
    given = builder.array(dtype), builder.number(REAL_PART[dtype])
    found = builder.call("multiply", given, dtype, "complex_scaled({x}, {y})")
    return FixedOperation("fft", builder.build([found], [dtype]))


@cache
def _scaling(dtype: np.dtype) -> FixedOperation:
    """Return the operation that multiplies real elements by a number, whatever the semantics in force."""
    return FixedOperation("fft", multiply.expression(as_semantics("array-api"), (dtype, ScalarClass.FLOAT32), dtype))


@cache
def _conversion(source: np.dtype, target: np.dtype) -> FixedOperation:
    """Return the operation that converts elements, whatever the semantics in force."""
    builder = ExpressionBuilder()
    found = builder.cast(builder.array(source), source, target)
    return FixedOperation("fft", builder.build([found], [target]))


class DeviceFourier:
    """Fourier transforms along any axes, from those that a device has.

    The methods are those of `tilearray.engine.backend.Fourier`, with Arrays instead of ndarrays.
    """

    def __init__(self, transforms: Transforms) -> None:
        self._transforms = transforms

    def run(self, method: str, *arguments: Any) -> Any:
        """Return the result of a method. The dtypes are decided, so the semantics in force have no influence."""
        return decided(getattr(self, method), *arguments)

    def once(self, method: str, x: Any, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: np.dtype) -> Any:
        """Return what runs a method for arrays of the signature of `x`: `Passes`, else the method itself, or None."""
        layout = x._signature.layout
        if method == "to_real":
            passes = self._once_to_real(x, sizes, axes, norm, dtype) if inverse else None
            if passes is not None:
                return passes
        if method == "to_real" or not x.size or any(x.shape[axis] != size for axis, size in zip(axes, sizes)):

            def whole(x: Any) -> Any:
                return self.run(method, x, sizes, axes, inverse, norm, dtype)

            return whole
        kind, wide = ("r2c", COMPLEX_OF[dtype]) if method == "from_real" else ("c2c", dtype)
        way = _way(kind, layout, axes, sizes[-1], wide)
        passes = self._once_by(way, kind, x, sizes, axes, inverse, norm, dtype)
        if passes is None and len(axes) == 1:
            passes = self._once_by(Way.COPIED, kind, x, sizes, axes, inverse, norm, dtype)
        return passes

    def _once_by(
        self, way: Way, kind: str, x: Any, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: np.dtype
    ) -> Any:
        """Return the `Passes` of one way; None if the library cannot read the operand so."""
        layout = x._signature.layout
        is_copied = way is Way.COPIED or (way is Way.TURNED and x.dtype != dtype)
        source = _with_fastest(layout, axes) if is_copied else layout if x.dtype == dtype else layout.dense()
        converted = None if source is layout else signature_of(source, dtype, x.device)
        if kind == "r2c":
            return None if inverse else self._once_from_real(converted, x, source, way, sizes, axes, norm, dtype)
        target = _with_fastest(source, axes) if way is Way.TURNED else source.dense()
        passes = self._in_groups(source, target, axes, inverse, dtype)
        result, scale = signature_of(target, dtype, x.device), _scale(sizes, inverse, norm)
        return passes and Passes(self._transforms, converted, result, passes, scale, 1)

    def _once_from_real(
        self,
        converted: Signature | None,
        x: Any,
        source: Layout,
        way: Way,
        sizes: Ints,
        axes: Ints,
        norm: str,
        dtype: np.dtype,
    ) -> Any:
        """Return the `Passes` of a forward transform of real numbers."""
        wide = COMPLEX_OF[dtype]
        last = _first_of_real(x.shape, axes)
        if len(last) < len(axes) and source.strides[axes[-1]] != 1:
            source = Layout.of(source.shape)
            converted = signature_of(source, dtype, x.device)
        shape = list(x.shape)
        shape[axes[-1]] = shape[axes[-1]] // 2 + 1
        target = _ordered(source, tuple(shape))
        if way is Way.TURNED:
            target = _with_fastest(target, axes)
        first = self._transforms.planned("r2c", wide.name, *_places("r2c", source, target, last))
        if first is None and last != axes[-1:]:
            last = axes[-1:]
            first = self._transforms.planned("r2c", wide.name, *_places("r2c", source, target, last))
        turned = _turned(target, axes[: -len(last)])
        rest = self._in_groups(target, turned or target, axes[: -len(last)], False, wide)
        if first is None or rest is None:
            return None
        result, scale = signature_of(turned or target, wide, x.device), _scale(sizes, False, norm)
        between = None if turned is None else signature_of(target, wide, x.device)
        unit = wide.itemsize if converted is None else 1
        return Passes(self._transforms, converted, result, [(first, False), *rest], scale, unit, between)

    def _once_to_real(self, x: Any, sizes: Ints, axes: Ints, norm: str, dtype: np.dtype) -> RealPasses | None:
        """Return the `RealPasses` of an inverse transform to real numbers; None for other axes and arrays."""
        given, last = x._signature.layout, sizes[-1] // 2
        if len(axes) > 2 or axes != tuple(range(x.ndim))[-len(axes) :] or not x.device.backend.computes_places:
            return None
        fits = x.dtype == dtype and (given.contiguous or len(axes) == x.ndim == 2) and 0 < x.size < 2**31
        if not fits or tuple([x.shape[axis] for axis in axes]) != (*sizes[:-1], last + 1):
            return None
        source, target = Layout.of(x.shape), Layout.of((*x.shape[:-1], sizes[-1]))
        first = None
        if not given.contiguous and prod(sizes) <= APART:
            first = self._transforms.planned("c2c", dtype.name, *_places("c2c", given, source, axes[:1]))
        alone = axes if first is None else axes[1:]
        planned = self._transforms.planned("c2r", dtype.name, *_places("c2r", source, target, alone))
        if planned is None:
            return None
        step = last if sizes[-1] % 2 == 0 else last + 1
        rows, scale = sizes[0] if len(alone) == 2 else 1, _scale(sizes, True, norm)
        numbers = rows, last + 1, max(step, 1), 1.0 if scale is None else scale
        own, result = (signature_of(each, of, x.device) for each, of in ((source, dtype), (target, REAL_PART[dtype])))
        return RealPasses(self._transforms, x._signature, own, result, planned, numbers, first)

    def _in_groups(self, source: Layout, target: Layout, axes: Ints, inverse: bool, dtype: np.dtype) -> Any:
        """Return the passes of a complex transform, the last axes first; None if one of them is not possible."""
        found: list[tuple[Any, bool]] = []
        for group in _groups(target, axes):
            planned = self._transforms.planned("c2c", dtype.name, *_places("c2c", source, target, group))
            if planned is None:
                return None
            found.append((planned, inverse))
            source = target
        return found

    def transform(self, x: Any, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: np.dtype) -> Any:
        """Return a complex transform of complex numbers."""
        x = _fitted(x, sizes, axes, dtype)
        return _scaled(self._complex(x, axes, inverse, False), sizes, inverse, norm)

    def from_real(self, x: Any, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: np.dtype) -> Any:
        """Return the first half of a transform of real numbers along the last of `axes`."""
        x = _fitted(x, sizes, axes, dtype)
        last = _first_of_real(x.shape, axes)
        found = self._pass("r2c", x, last, False, None, COMPLEX_OF[dtype])
        turned = _turned(found._signature.layout, axes[: -len(last)])
        if turned is None:
            found = self._complex(found, axes[: -len(last)], False, True)
        else:
            result = new_array(x.__class__, signature_of(turned, found.dtype, x.device))
            self._run(self._planned("c2c", found, result, axes[:-1]), False, found, result)
            found = result
        if inverse and found.size:
            conj(found, out=found)
        return _scaled(found, sizes, inverse, norm)

    def to_real(self, x: Any, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: np.dtype) -> Any:
        """Return the real transform of numbers of which the first half along the last of `axes` is given."""
        axis, size = axes[-1], sizes[-1]
        own, rest = _fitted(x, (*sizes[:-1], size // 2 + 1), axes, dtype), axes[:-1]
        if own is x and _way("c2r", x._signature.layout, axes, size, dtype) is Way.COPIED:
            own = _with_last(x, axes)
        elif own is x:  # the library overwrites it
            own, rest = self._begun(x, rest, inverse)
        if not inverse and own.size:
            conj(own, out=own)
        own = self._complex(own, rest, True, True)
        if own.size:  # the first imaginary part and, of an even size, the last one
            own.imag[_at(own.ndim, axis, slice(None, None, size // 2) if size % 2 == 0 else slice(1))] = 0
        found = self._pass("c2r", own, (axis,), True, size, REAL_PART[dtype])
        return _scaled(found, sizes, inverse, norm)

    def _begun(self, x: Any, axes: Ints, inverse: bool) -> tuple[Any, Ints]:
        """Return a copy of `x` in C order, with some inverse transforms if possible, and the axes that are left."""
        found = new_like(x, x.shape, x.dtype)
        group = next(_groups(found._signature.layout, axes), ()) if inverse and x.size else ()
        planned = self._planned("c2c", x, found, group) if group else None
        if planned is None:
            return execute(assign, (x,), found), axes
        self._run(planned, True, x, found)
        return found, tuple([axis for axis in axes if axis not in group])

    def _complex(self, x: Any, axes: Ints, inverse: bool, in_place: bool) -> Any:
        """Transform complex numbers along axes, the last ones first; `in_place` if their memory may be overwritten."""
        for group in _groups(x._signature.layout, axes):
            x = self._pass("c2c", x, group, inverse, None, x.dtype, in_place)
            in_place = True
        return x

    def _pass(
        self, kind: str, x: Any, axes: Ints, inverse: bool, size: int | None, dtype: np.dtype, in_place: bool = False
    ) -> Any:
        """Transform along at most three axes; `size` is that of the last axis of a real result."""
        shape = list(x.shape)
        if kind != "c2c":
            shape[axes[-1]] = shape[axes[-1]] // 2 + 1 if kind == "r2c" else int(size or 0)
        if not x.size:
            return new_like(x, tuple(shape), dtype)
        longest = max(x.shape[axes[-1]], shape[axes[-1]])
        way = _way(kind, x._signature.layout, axes, longest, COMPLEX_OF.get(dtype, dtype))
        planned = found = None
        if way is not Way.COPIED:
            target = _ordered(x._signature.layout, tuple(shape))
            target = _with_fastest(target, axes) if way is Way.TURNED else target
            is_own = in_place and kind == "c2c" and way is Way.STEPPED
            found = x if is_own else new_array(x.__class__, signature_of(target, dtype, x.device))
            planned = self._planned(kind, x, found, axes)
        if planned is None:
            x = _with_last(x, axes)
            found = x if kind == "c2c" else _like(x, tuple(shape), dtype)
            planned = self._planned(kind, x, found, axes)
        self._run(planned, inverse, x, found)
        return found

    def _run(self, planned: Any, inverse: bool, x: Any, found: Any) -> None:
        read, written = [(each._buffer, each._offset) for each in (x, found)]
        self._transforms.run(STATE.get().stream, planned, inverse, read, written)

    def _planned(self, kind: str, x: Any, found: Any, axes: Ints) -> Any:
        if kind == "r2c" and x._address % found.itemsize:
            return None
        dtype = x.dtype if kind == "c2r" else found.dtype
        layouts = x._signature.layout, found._signature.layout
        return self._transforms.planned(kind, dtype.name, *_places(kind, *layouts, axes))


def _turned(layout: Layout, axes: Ints) -> Layout | None:
    """Return the layout of the result of a second transform of two axes, if the first axis is not the fastest yet."""
    if len(axes) != 1 or len(layout.shape) != 2 or not layout.size or layout.strides[axes[0]] == 1:
        return None
    return _dense(layout.shape, (1 - axes[0], axes[0]))


def _way(kind: str, layout: Layout, axes: Ints, size: int, wide: np.dtype) -> Way:
    """Return how axes of an operand are transformed; `size` is the larger one of operand and result.

    Several axes, the fastest one, and the only one are `Way.STEPPED`.
    """
    if len(axes) != 1 or layout.strides[axes[0]] == 1 or layout.shape[axes[0]] == layout.size:
        return Way.STEPPED
    is_power = size & (size - 1) == 0
    of_powers, of_others = STEPPED[kind]
    if kind == "r2c" and size * wide.itemsize > REAL_BYTES:
        return Way.COPIED
    if size <= (of_powers if is_power else of_others):
        return Way.STEPPED
    is_copied = kind == "c2r" or (not is_power and wide.itemsize == 8 and size in COPIED)
    return Way.COPIED if is_copied or not _is_one_call(layout, axes) else Way.TURNED


def _is_one_call(layout: Layout, axes: Ints) -> bool:
    """Whether all steps in memory are forward, and axes that are not transformed are walked as one."""
    steps = {axis: step for axis, step in enumerate(zip(layout.strides, layout.shape, strict=True)) if step[1] != 1}
    others = sorted([step for axis, step in steps.items() if axis not in axes])
    merge = all(outer == extent * inner for (inner, extent), (outer, _) in pairwise(others))
    return merge and all(stride > 0 for stride, _ in steps.values())


def _with_fastest(layout: Layout, axes: Ints) -> Layout:
    """Return a dense layout in which axes are the fastest ones; the others lie in the order of those of a layout."""
    order = sorted(range(len(layout.shape)), key=lambda axis: (axis in axes, -abs(layout.strides[axis])))
    return _dense(layout.shape, order)


def _first_of_real(shape: Ints, axes: Ints) -> Ints:
    """Return the axes that are transformed with the last one from real numbers."""
    if 1 < len(axes) == len(shape) and prod(shape) >= ALONE:
        return axes[-1:]
    return axes[-TOGETHER:]


def _groups(layout: Layout, axes: Ints) -> Iterator[Ints]:
    """Yield the axes that are transformed together, the last ones first."""
    while axes:
        group, axes = axes[-TOGETHER:], axes[:-TOGETHER]
        yield tuple(sorted(group, key=lambda axis: -layout.strides[axis]))


def _places(
    kind: str, source: Layout, target: Layout, axes: Ints
) -> tuple[Ints, Ints, Ints, tuple[tuple[int, int, int], ...]]:
    """Return the sizes of a transform, the strides of its operand and result along its axes, and all other axes."""
    whole = target.shape if kind == "c2r" else source.shape
    others = [axis for axis in range(len(whole)) if axis not in axes]
    return (
        tuple([whole[axis] for axis in axes]),
        tuple([source.strides[axis] for axis in axes]),
        tuple([target.strides[axis] for axis in axes]),
        tuple([(source.shape[axis], source.strides[axis], target.strides[axis]) for axis in others]),
    )


def _like(x: Any, shape: Ints, dtype: np.dtype) -> Any:
    """Return a new dense array whose axes lie in the order of those of `x`."""
    return new_array(x.__class__, signature_of(_ordered(x._signature.layout, shape), dtype, x.device))


def _with_last(x: Any, axes: Ints) -> Any:
    """Return a dense copy of an array in which some axes lie last."""
    order = (*[axis for axis in range(x.ndim) if axis not in axes], *axes)
    return execute(assign, (x,), new_array(x.__class__, signature_of(_dense(x.shape, order), x.dtype, x.device)))


def _ordered(like: Layout, shape: Ints) -> Layout:
    """Return the dense layout of a shape whose axes lie in the order of those of another layout."""
    return _dense(shape, sorted(range(len(shape)), key=lambda axis: -abs(like.strides[axis])))


def _dense(shape: Ints, order: Sequence[int]) -> Layout:
    """Return the dense layout of a shape whose axes lie in an order."""
    places = [order.index(axis) for axis in range(len(order))]
    return Layout.of(tuple([shape[axis] for axis in order])).permute(places)


def _at(ndim: int, axis: int, key: slice) -> tuple[slice, ...]:
    keys = [slice(None)] * ndim
    keys[axis] = key
    return tuple(keys)


def _fitted(x: Any, sizes: Sequence[int], axes: Ints, dtype: np.dtype) -> Any:
    """Return `x` if it has the sizes along axes and the dtype, else a copy that is cut, or padded with zeros."""
    shape = list(x.shape)
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = size
    if tuple(shape) == x.shape and x.dtype == dtype:
        return x
    common = tuple([slice(min(size, other)) for size, other in zip(x.shape, shape, strict=True)])
    x = x[common]
    found = _like(x, tuple(shape), dtype)
    if x.shape != tuple(shape):
        found[...] = 0
    execute(assign, (x,), found[common]) if x.size else None
    return found


def _scaled(x: Any, sizes: Ints, inverse: bool, norm: str) -> Any:
    """Divide a transform by its sizes, or by their square root, in place."""
    scale = _scale(sizes, inverse, norm)
    return x if scale is None or not x.size else multiply(x, scale, out=x)


def _scale(sizes: Ints, inverse: bool, norm: str) -> float | None:
    """Return by what a transform is multiplied; None if it stays as it is."""
    count = prod(sizes)
    if norm == "ortho":
        return 1 / sqrt(count)
    return 1 / count if (norm == "backward") == inverse else None
