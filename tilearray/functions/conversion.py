"""Conversion of arrays: to dtypes, devices, Python values, NumPy, DLPack, pickles.

Copies to the host are always explicit: a protocol that needs the host (``np.asarray``) raises `ImplicitTransferError`
for an array on another device, unless `set_transfer_guard` allows it. `to_numpy` and `item` copy by name.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tilearray import cuda, dtypes
from tilearray.dtypes import DTypeLike
from tilearray.engine.array_type import A
from tilearray.engine.context import RECORDINGS, STATE
from tilearray.engine.devices import CPU, DeviceLike, are_one, as_device
from tilearray.engine.signature import ArrayBase, before_access, check_array, new_array, placed, signature_of
from tilearray.errors import (
    DeviceError,
    DTypeError,
    ImplicitTransferError,
    IndexingError,
    LayoutError,
    OperandError,
    ShapeError,
    shown,
)
from tilearray.geometry.layout import Layout
from tilearray.interchange import dlpack, foreign_memory
from tilearray.interchange.capsules import stand_in
from tilearray.ops.execute import copy_of, fill, stored_as
from tilearray.ops.moves import convert
from tilearray.ops.options import USUAL, CastMode, NamedMode, cast_choice
from tilearray.ops.variants import derived

if TYPE_CHECKING:
    from tilearray.ops.seeds import Seed

_guard = "error"


def set_transfer_guard(policy: Literal["error", "allow"], /) -> None:
    """Choose whether ``np.asarray`` of an array on another device raises: ``"error"`` (the default), or ``"allow"``.

    The policy holds for the whole process.

    Raises
    ------
    DeviceError
        If `policy` is another word.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.set_transfer_guard("error")
    """
    global _guard
    known = isinstance(policy, str) and policy in ("error", "allow")  # pyright: ignore[reportUnnecessaryIsInstance]
    if not known:
        raise DeviceError(f"set_transfer_guard: expected a policy, got {shown(policy)}; write 'error' or 'allow'")
    _guard = policy


def transfers_allowed() -> bool:
    """Return whether NumPy may copy an array on another device to the host.

    Examples
    --------
    >>> transfers_allowed()
    False
    """
    return _guard == "allow"


def astype(
    x: A,
    dtype: DTypeLike,
    /,
    *,
    copy: bool = True,
    device: DeviceLike | None = None,
    rounding: CastMode | NamedMode | None = None,
    saturate: bool | None = None,
    seed: Seed = None,
) -> A:
    """Return the values of `x` in another dtype.

    Each value is rounded once, to nearest even. A float becomes an integer by truncation; values out of range saturate,
    and NaN becomes 0. Integers wrap in narrower integers. Every value except 0 becomes True.

    Parameters
    ----------
    x : Array
    dtype : dtype or name
    copy : bool
        False returns `x` itself if its dtype is `dtype` already, and `saturate` is false.
    device : Device or str, optional
        The device of the result.
    rounding : str, optional
        How a float becomes another float or an integer: "rn" to nearest even, "rz" toward zero, "rm" toward -infinity,
        "rp" toward +infinity, "ra" to nearest with ties away from zero, "rs" at random to one of the two neighbours,
        so that the mean is the value. "rzi", toward zero, is the default for integers.
    saturate : bool, optional
        Whether integers that an integer dtype does not hold are clamped instead of wrapped, and floats that a float
        does not hold, infinities among them, become its largest value, also where `x` has the dtype; NaN stays NaN.
        None leaves it to the semantics: `torch` and `triton` saturate in float8 dtypes, the others never.
    seed : int, sequence of int or numpy.random.SeedSequence, optional
        For "rs", which needs it: element i in C order is rounded by word i of the stream of this seed, so the result is
        the same on every device and for every layout of `x`. It is in C order.

    Raises
    ------
    DTypeError
        From complex to a real dtype: write ``x.real``. If these dtypes are not cast by that mode, or do not saturate.
    OperandError
        If the rounding mode does not exist, or only one of "rs" and a seed is given.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.astype(ta.asarray([1.7, -300.0, float("nan")]), "int8")
    Array([   1, -128,    0], dtype=int8, device='cpu')
    >>> ta.astype(ta.asarray([1.0001, -1.0001]), "float16", rounding="rp")
    Array([ 1.001, -1.   ], dtype=float16, device='cpu')
    >>> ta.astype(ta.asarray([300, -300]), "int8", saturate=True)
    Array([ 127, -128], dtype=int8, device='cpu')
    >>> ta.astype(ta.full(8, 1.25), "int8", rounding="rs", seed=7).tolist()  # about a quarter is rounded up
    [2, 1, 1, 1, 2, 1, 1, 2]
    """
    if not issubclass(type(x), ArrayBase):  # pyright: ignore[reportUnnecessaryIsInstance]
        check_array("astype", x)
    target, source = dtypes.as_dtype(dtype, "astype"), x._signature.dtype
    choice = USUAL
    if rounding is not None or saturate is not None:
        choice = cast_choice(source, target, rounding, saturate)
    if device is not None:
        x = to_device(x, device)
    if choice.rounding == "rs" or seed is not None:
        from tilearray.ops.stochastic import rounded_at_random  # here: few programs need it

        return rounded_at_random(x, target, choice, seed)
    row = convert if choice is USUAL else derived(convert, choice)
    if target == source and row is convert:
        return copy_of(x) if copy else x
    return stored_as(row, x, target)


def to_device(x: A, device: DeviceLike, /, *, stream: Any = None) -> A:
    """Return `x` on a device: itself if it is there already, else a copy.

    Parameters
    ----------
    x : Array
    device : Device or str
    stream : Stream, object with ``__cuda_stream__``, torch or CuPy stream or int, optional
        The stream on which a GPU copies: the active stream, or the default stream if that is another GPU's.

    Raises
    ------
    OperandError
        If `device` is the host, which has no streams.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.asarray([1, 2])
    >>> ta.to_device(x, "cpu") is x
    True
    """
    if not issubclass(type(x), ArrayBase):  # pyright: ignore[reportUnnecessaryIsInstance]
        check_array("to_device", x)
    source = x._signature.device
    if device is source and stream is None:
        return x
    target, functions = as_device(device, "to_device"), source.functions
    backend = target.backend
    if stream is not None and backend.on_host:
        raise OperandError("to_device: expected no stream for a copy to the host, got one; leave it out")
    if source is target or (source.depth != target.depth and are_one(source, target)):  # most depths are 0
        return x
    if functions is not None:
        return functions.to_device(x, target, stream)
    if source.recorder is not None:  # it has no memory to copy, and its backend says so
        source.backend.from_device  # noqa: B018
    owner: object = None  # of a stream that is given: it lives until the copy has memory of the stream
    if stream is None:
        handle = backend.own_stream(STATE.get().stream)
    else:
        handle, owner = cuda.retained(stream, "to_device")
    dense = _as_dense(x)
    layout = dense._signature.layout
    if source.type == target.type:
        first = dense._offset + layout.low * dense.itemsize
        extent = (layout.high - layout.low + 1) * dense.itemsize if layout.size else 0
        buffer = backend.from_device(source.backend, dense._buffer, first, extent, stream=handle)
        offset = dense._offset - first
    else:
        buffer, offset = backend.from_numpy(to_numpy(dense), copy=False, stream=handle)
    del owner
    return x._make(buffer, offset, placed(buffer, offset, layout, x._signature.dtype, target))


def to_numpy(x: ArrayBase, /) -> np.ndarray:
    """Return the elements as an ndarray: the same memory for an array on the host, else a copy.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.to_numpy(ta.asarray([1, 2]))
    array([1, 2])
    """
    if not issubclass(type(x), ArrayBase):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OperandError(f"to_numpy: expected a tilearray Array, got {type(x).__name__}; write np.asarray(x)")
    if not x._signature.device.backend.on_host:
        x = _as_dense(x)
    if RECORDINGS:
        before_access(x)
    signature = x._signature
    layout = signature.layout
    if signature.device is CPU:
        array = CPU.backend.elements(x).view()  # the caller may give it another shape, and other flags
    else:
        array = signature.device.backend.to_numpy(x._buffer, x._offset, layout.shape, layout.strides, signature.dtype)
    if not layout.contiguous and 0 in layout.strides and layout.overlaps_itself:
        array.flags.writeable = False  # a write to one element would be a write to several
    return array


def _as_dense(x: A) -> A:
    """Return an array without gaps: itself, or a copy made on its own GPU."""
    if is_dense(x._signature.layout):
        return x
    backend = x.device.backend
    if backend.on_host:
        return copy_of(x)
    with cuda.stream(backend.own_stream(STATE.get().stream)):
        return copy_of(x)


def is_dense(layout: Layout) -> bool:
    """Whether the elements lie without gaps, in any order of axes."""
    return (layout.canonical and layout.size > 0) or layout.strides == layout.dense().strides


def as_ndarray(x: ArrayBase, dtype: Any, copy: bool | None) -> np.ndarray:
    """The result of ``np.asarray(x)``, or an error if it would move data between devices."""
    if not x.device.backend.on_host and not transfers_allowed():
        raise ImplicitTransferError(
            f"__array__: the array is on {x.device}, and NumPy would copy it to the host; write ta.to_numpy(x) or "
            f"x.to_device('cpu'), or allow it with ta.set_transfer_guard('allow')"
        )
    array = to_numpy(x)
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is False:
            raise LayoutError(f"__array__: copy=False, but {array.dtype} becomes {np.dtype(dtype)}; write copy=None")
        return to_numpy(astype(x, dtype)) if np.dtype(dtype) in dtypes.ALL else array.astype(dtype)
    return array.copy() if copy else array


def part(x: A, position: int) -> A:
    """The real (0) or imaginary (1) part as a view."""
    signature = x._signature
    if dtypes.info(signature.dtype).kind != "complex":
        return _no_imaginary_part(x) if position else x
    half = np.dtype(f"float{signature.itemsize * 4}")
    layout = Layout(signature.layout.shape, tuple(2 * stride for stride in signature.layout.strides))
    offset = x._offset + position * half.itemsize
    return x._make(x._buffer, offset, placed(x._buffer, offset, layout, half, x.device))


def _no_imaginary_part(x: A) -> A:
    """One zero that all elements share, and that cannot be written: real numbers have no imaginary part to change."""
    signature = x._signature
    zero = new_array(type(x), signature_of(Layout((), ()), signature.dtype, signature.device))
    return fill(zero, 0, "imag")._view(zero._signature.layout.broadcast_to(signature.layout.shape))


def single(x: ArrayBase, function: str) -> Any:
    """The one element as a Python number."""
    signature = x._signature
    if signature.layout.size != 1:
        if function == "bool":
            raise ShapeError(
                f"bool: expected an array of one element, got shape {x.shape}: the truth value of an array with more "
                f"than one element, or none, is ambiguous; write ta.any(x) or ta.all(x)"
            )
        raise ShapeError(
            f"{function}: expected an array of one element, got shape {x.shape}; "
            f"write x.item(index), or a comparison of single elements"
        )
    backend, dtype = signature.device.backend, signature.dtype
    if dtype.names and function != "item":
        raise DTypeError(
            f"{function}: an element of {dtypes.info(dtype).name} is two numbers; write ta.unpack_float4(x) first"
        )
    element = backend.to_numpy(x._buffer, x._offset, (), (), dtype)
    return element.item() if dtype.kind in "biufc" else _python(element)


def item(x: ArrayBase, *index: Any) -> Any:
    """The element at an index (one int counts through all elements in C order, as in NumPy), or the only element."""
    if not index:
        return single(x, "item")
    if len(index) == 1 and isinstance(index[0], tuple):
        (index,) = index
    elif len(index) == 1 and x.ndim != 1:
        index = _unravelled(operator.index(index[0]), x)
    layout, shift = x._signature.layout.index(index)
    return single(x._view(layout, shift), "item")


def _unravelled(position: int, x: ArrayBase) -> tuple[int, ...]:
    """The index of the element at a position in C order."""
    if not -x.size <= position < x.size:
        raise IndexingError(
            f"item: expected {-x.size} <= index < {x.size} for shape {x.shape}, got {position}: index "
            f"{position} is out of bounds for size {x.size}; write one index per axis to count along each"
        )
    return tuple([int(place) for place in np.unravel_index(position % x.size, x.shape)])


def contains(x: ArrayBase, value: Any) -> bool:
    """Whether any element equals a value."""
    found = x == value
    return issubclass(type(found), ArrayBase) and bool(to_numpy(found).any())  # type: ignore[arg-type]


def tolist(x: ArrayBase) -> Any:
    """Nested lists of Python numbers."""
    return _python(to_numpy(x))


def _python(array: np.ndarray) -> Any:
    """Python numbers of an ndarray; ml_dtypes' floats become Python floats, and packed pairs tuples of two."""
    if array.dtype.names:
        return pairs_of(array).tolist()
    return (array if array.dtype.kind in "biufc" else in_float64(array)).tolist()


_MAGNITUDES = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
_FLOAT4_VALUES = np.concatenate([_MAGNITUDES, -_MAGNITUDES])


def pairs_of(array: np.ndarray) -> np.ndarray:
    """Return packed float4 as pairs of float64, the one in the lower four bits first.

    Examples
    --------
    >>> from tilearray.dtypes import float4_e2m1fn_x2
    >>> pairs_of(np.array([0x3F], np.uint8).view(float4_e2m1fn_x2)).tolist()
    [(-6.0, 1.5)]
    """
    codes = array.view(np.uint8)
    found = np.empty(array.shape, np.dtype([("first", "f8"), ("second", "f8")]))
    found["first"], found["second"] = _FLOAT4_VALUES[codes & 15], _FLOAT4_VALUES[codes >> 4]
    return found


def in_float64(array: np.ndarray) -> np.ndarray:
    """Return the floats of ml_dtypes in float64, which holds them all; a signalling NaN becomes a quiet one.

    Examples
    --------
    >>> in_float64(np.array([0x7F81, 0x3FC0], np.uint16).view(dtypes.bfloat16)).tolist()
    [nan, 1.5]
    """
    with np.errstate(invalid="ignore"):
        return array.astype(np.float64)


def to_dlpack(x: ArrayBase, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """The capsule of ``__dlpack__``.

    On a GPU the consumer's stream waits for ours, and the memory is not reused before the consumer is done. A copy for
    the host is made if the consumer requests the host and does not forbid a copy.
    """
    device = x._signature.device
    if device.backend.on_host:
        if stream is not None:
            dlpack.check_no_stream(stream)
        try:
            export = x._export
        except AttributeError:
            view = to_numpy(x)
            export = x._export = dlpack.Export(view, view.dtype, fixed=x._buffer.readonly)
        return export.capsule(max_version, dl_device, copy)
    if dl_device is not None and copy is not False and dlpack.is_device(dl_device, dlpack.HOST):
        view = to_numpy(x)
        return dlpack.Export(view, view.dtype).capsule(max_version, None, None, dlpack.COPIED)
    if copy:
        x = copy_of(x)
    number = dlpack.consumer_stream(stream)
    if number != 1 or x._buffer.stream:  # type: ignore[attr-defined]
        foreign_memory.foreign().lend(device.backend, x._buffer, number)
    try:
        export = x._export
    except AttributeError:
        export = x._export = _stand_in(x)
    return export.capsule(max_version, dl_device, None, dlpack.COPIED if copy else 0)


def _stand_in(x: ArrayBase) -> dlpack.Export:
    """The source of the capsules of an array on a GPU; it keeps the memory alive."""
    if RECORDINGS:
        before_access(x)
    signature = x._signature
    layout, itemsize = signature.layout, signature.itemsize
    device = dlpack_device(x)
    array = stand_in(
        x._address,
        layout.shape,
        tuple([stride * itemsize for stride in layout.strides]),
        signature.dtype,
        readonly=x._buffer.readonly or (0 in layout.strides and layout.overlaps_itself),
        owner=x._buffer,
        device=device,
    )
    return dlpack.Export(array, signature.dtype, device, fixed=x._buffer.readonly)


def dlpack_device(x: ArrayBase) -> tuple[int, int]:
    """The DLPack device type and index."""
    device = x._signature.device
    return dlpack.HOST if device.backend.on_host else (dlpack.CUDA, device.index)
