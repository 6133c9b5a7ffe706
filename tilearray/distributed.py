"""Collective operations over arrays on several GPUs of this process: the namespace ``ta.distributed``.

Each function takes a list with one array for each GPU, all of one shape and dtype, and returns one array for each. NCCL
computes them, through nccl4py: ``pip install 'tilearray[distributed]'``. A scheduler for larger computations is dask's:
see docs/dask.md.

A call runs on the active stream where it belongs to the GPU, else on the default stream of each GPU. It is ordered with
the work on its arrays, and the host does not wait. Arrays that are not in C order are copied on their GPU first. NCCL
decides the order in which more than two numbers are added. In "max" and "min" of floats it ignores NaN, which
`tilearray.max` returns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tilearray import cuda
from tilearray.dtypes import info
from tilearray.engine.array_type import A
from tilearray.engine.backend import Collectives, Member
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.devices import DeviceLike, as_device
from tilearray.engine.signature import ArrayBase, check_array, dense_signature, empty_array, overlap
from tilearray.errors import DeviceError, DTypeError, OperandError, ParameterError, ShapeError, shown
from tilearray.functions.arguments import listed
from tilearray.functions.manipulation import c_contiguous
from tilearray.missing_names import MissingNameError as _MissingNameError
from tilearray.ops.execute import check_target, store
from tilearray.ops.signatures import show as _show

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce_scatter"]

Reduction: TypeAlias = Literal["sum", "prod", "max", "min", "mean"]


def all_reduce(arrays: Sequence[A], op: Reduction = "sum", *, out: Sequence[A] | None = None) -> list[A]:
    """Reduce the arrays of all GPUs element by element, and return the result on each GPU.

    Parameters
    ----------
    arrays : sequence of Array
        One for each GPU, of one shape and dtype. int16, uint16, bool for "sum", "prod" and "mean", and 8-bit floats are
        refused; complex numbers have "sum" and "mean".
    op : {"sum", "prod", "max", "min", "mean"}
    out : sequence of Array, optional
        Take the results and are returned: one on each GPU, of the shape and dtype of `arrays`, which they may be.

    Raises
    ------
    DeviceError
        If an array is on the host, or two are on one GPU.
    ShapeError, DTypeError
        If shapes or dtypes differ, or NCCL cannot reduce the dtype.
    ImportError
        If nccl4py or NCCL is not installed.

    Examples
    --------
    >>> import tilearray as ta
    >>> if ta.cuda.device_count() > 1:
    ...     arrays = [ta.full(3, i + 1.0, device=f"cuda:{i}") for i in range(2)]
    ...     assert [x.tolist() for x in ta.distributed.all_reduce(arrays)] == [[3.0, 3.0, 3.0]] * 2
    """
    members, collectives = _checked("all_reduce", arrays)
    dtype, parts = _reduced_as("all_reduce", members[0].dtype, op, collectives)
    found = _targets("all_reduce", members, members[0].shape, out)
    if members[0].size:
        collectives.all_reduce(_parts(members, found), parts * members[0].size, dtype, op)
    return _finished(found, out)


def reduce_scatter(arrays: Sequence[A], op: Reduction = "sum", *, out: Sequence[A] | None = None) -> list[A]:
    """Reduce the arrays of all GPUs element by element, and return on each GPU its part of the result along axis 0.

    Parameters
    ----------
    arrays : sequence of Array
        One for each GPU, of one shape and dtype; the number of GPUs divides the size of axis 0.
    op : {"sum", "prod", "max", "min", "mean"}
        As in `all_reduce`.
    out : sequence of Array, optional
        Take the parts and are returned.

    Raises
    ------
    DeviceError, ShapeError, DTypeError, ImportError
        As in `all_reduce`; or if axis 0 cannot be divided.

    Examples
    --------
    >>> import tilearray as ta
    >>> if ta.cuda.device_count() > 1:
    ...     arrays = [ta.arange(4, device=f"cuda:{i}") for i in range(2)]
    ...     assert [x.tolist() for x in ta.distributed.reduce_scatter(arrays)] == [[0, 2], [4, 6]]
    """
    members, collectives = _checked("reduce_scatter", arrays)
    dtype, parts = _reduced_as("reduce_scatter", members[0].dtype, op, collectives)
    shape, count = members[0].shape, len(members)
    if not shape or shape[0] % count:
        raise ShapeError(
            f"reduce_scatter: expected arrays whose axis 0 divides into {count} equal parts, got shape {shape}; write "
            f"all_reduce, or pad the arrays"
        )
    part = (shape[0] // count, *shape[1:])
    found = _targets("reduce_scatter", members, part, out)
    if members[0].size:
        collectives.reduce_scatter(_parts(members, found), parts * math.prod(part), dtype, op)
    return _finished(found, out)


def all_gather(arrays: Sequence[A], *, out: Sequence[A] | None = None) -> list[A]:
    """Join the arrays of all GPUs along axis 0, in their order, and return the result on each GPU.

    Parameters
    ----------
    arrays : sequence of Array
        One for each GPU, of one shape, with an axis, and of one dtype, which may be any.
    out : sequence of Array, optional
        Take the results and are returned.

    Raises
    ------
    DeviceError, ShapeError, DTypeError, ImportError
        As in `all_reduce`; or if the arrays have no axis.

    Examples
    --------
    >>> import tilearray as ta
    >>> if ta.cuda.device_count() > 1:
    ...     arrays = [ta.full(2, i, device=f"cuda:{i}") for i in range(2)]
    ...     assert [x.tolist() for x in ta.distributed.all_gather(arrays)] == [[0, 0, 1, 1]] * 2
    """
    members, collectives = _checked("all_gather", arrays)
    shape = members[0].shape
    if not shape:
        raise ShapeError("all_gather: expected arrays with an axis to join along, got 0-d arrays; write x[None]")
    found = _targets("all_gather", members, (shape[0] * len(members), *shape[1:]), out)
    if members[0].size:
        collectives.all_gather(_parts(members, found), members[0].nbytes)
    return _finished(found, out)


def broadcast(x: A, devices: Sequence[DeviceLike], *, out: Sequence[A] | None = None) -> list[A]:
    """Copy an array of one GPU to several GPUs at once.

    Parameters
    ----------
    x : Array
    devices : sequence of Device or str
        Different GPUs, among them that of `x`, where the result is a copy.
    out : sequence of Array, optional
        Take the copies and are returned.

    Raises
    ------
    DeviceError, ShapeError, DTypeError, ImportError
        As in `all_reduce`; or if the GPU of `x` is not among the devices.

    Examples
    --------
    >>> import tilearray as ta
    >>> if ta.cuda.device_count() > 1:
    ...     x = ta.arange(3, device="cuda:0")
    ...     copies = ta.distributed.broadcast(x, ["cuda:0", "cuda:1"])
    ...     assert [str(y.device) for y in copies] == ["cuda:0", "cuda:1"]
    """
    check_array("broadcast", x)
    targets = [as_device(device, "broadcast") for device in listed("broadcast", devices)]
    if x.device not in targets:
        raise DeviceError(
            f"broadcast: expected the GPU of x, {x.device}, among the devices, got {[str(each) for each in targets]}; "
            f"add it, or write x.to_device(...)"
        )
    placed = [x if device is x.device else _uninitialised(x, x.shape, device) for device in targets]
    members, collectives = _checked("broadcast", placed)
    found = _targets("broadcast", members, x.shape, out)
    if x.size:
        collectives.broadcast(_parts(members, found), x.nbytes, targets.index(x.device))
    return _finished(found, out)


# --- arguments -------------------------------------------------------------------------------------------------------


_CHECKED: TwoGenerations[Collectives] = TwoGenerations(256)
"""What computes on arrays in C order, by the signatures of lists that `_checked` has found right."""


def _checked(function: str, arrays: Any) -> tuple[list[Any], Collectives]:
    """Return arrays in C order, one on each of several GPUs and of one shape and dtype, and what computes on them."""
    members = listed(function, arrays)
    key = tuple([x._signature if issubclass(type(x), ArrayBase) else None for x in members])
    known = _CHECKED.get(key)
    if known is not None:
        return members, known
    _check(function, members)
    collectives = members[0].device.backend.collectives
    if all(x._signature.layout.contiguous for x in members):
        _CHECKED.put(key, collectives)
    return [_in_c_order(x) for x in members], collectives


def _check(function: str, members: list[Any]) -> None:
    """Raise an error if these are not arrays of one shape and dtype, one on each of several GPUs."""
    if not members:
        raise OperandError(f"{function}: expected one array for each GPU, got none; write {function}([x, y])")
    for place, x in enumerate(members):
        check_array(function, x, f"arrays[{place}]")
        if x.device.backend.collectives is None:
            raise DeviceError(
                f"{function}: expected arrays on GPUs, got arrays[{place}] on {x.device}; write x.to_device('cuda:0')"
            )
    names = [str(x.device) for x in members]
    if len(set(names)) < len(names):
        raise DeviceError(
            f"{function}: expected one array on each GPU, got arrays on {', '.join(names)}; write x + y for two arrays "
            f"of one GPU, or x.to_device('cuda:1')"
        )
    first = members[0]
    for place, x in enumerate(members):
        if x.shape != first.shape:
            raise ShapeError(
                f"{function}: expected arrays of one shape, got {first.shape} for arrays[0] and {x.shape} for "
                f"arrays[{place}]; write a call for each shape"
            )
        if x.dtype != first.dtype:
            raise DTypeError(
                f"{function}: expected arrays of one dtype, got {first.dtype} for arrays[0] and {x.dtype} for "
                f"arrays[{place}]; write x.astype({first.dtype.name!r})"
            )


def _stream_of(x: Any) -> Any:
    """Return the stream of a call on the GPU of an array."""
    return x.device.backend.own_stream(STATE.get().stream)


def _in_c_order(x: A) -> A:
    if x._signature.layout.contiguous:
        return x
    with cuda.stream(_stream_of(x)):
        return c_contiguous(x)


def _uninitialised(x: A, shape: tuple[int, ...], device: Any) -> A:
    """Return new memory on a device, of the dtype and type of an array."""
    signature = dense_signature(shape, x.dtype, device)
    return empty_array(type(x), signature, device.backend.own_stream(STATE.get().stream))


_REDUCED: dict[tuple[Any, str], tuple[str, int]] = {}
"""What `_reduced_as` returned for a dtype and an operation."""


def _reduced_as(function: str, dtype: Any, op: Any, collectives: Collectives) -> tuple[str, int]:
    """Return the dtype that NCCL reduces, and the number of its elements in one element of an array."""
    if isinstance(op, str) and (dtype, op) in _REDUCED:
        return _REDUCED[dtype, op]
    if not isinstance(op, str) or op not in collectives.operations:
        names = ", ".join(map(repr, collectives.operations))
        raise ParameterError(f"{function}: expected op as one of {names}, got {shown(op)}; write op='sum'")
    kind = info(dtype).kind
    name, parts = dtype.name, 1
    if kind == "complex" and op in ("sum", "mean"):
        name, parts = f"float{dtype.itemsize * 4}", 2
    elif kind == "bool" and op in ("max", "min"):
        name = "uint8"
    elif name not in collectives.dtypes or (op == "mean" and dtype.kind in "iu"):
        raise DTypeError(
            f"{function}: NCCL cannot reduce {dtype.name} by {op!r}; write x.astype('float32') or x.astype('int64')"
        )
    return _REDUCED.setdefault((dtype, op), (name, parts))


def _targets(function: str, members: Sequence[A], shape: tuple[int, ...], out: Any) -> list[A]:
    """Return the arrays that NCCL writes: new ones, and those of `out` that are in C order and not partly read."""
    if out is None:
        return [_uninitialised(x, shape, x.device) for x in members]
    given = listed(function, out)
    if len(given) != len(members):
        raise OperandError(
            f"{function}: expected {len(members)} arrays as out, one for each GPU, got {len(given)}; write "
            f"out=None for new arrays"
        )
    found: list[A] = []
    for place, (x, target) in enumerate(zip(members, given)):
        check_target(function, target)
        if target is x and x.shape == shape:
            found.append(target)
            continue
        if (target.shape, target.dtype, target.device) != (shape, x.dtype, x.device):
            raise ShapeError(
                f"{function}: expected out[{place}] of shape {shape}, dtype {x.dtype} and on {x.device}, got "
                f"{target.shape}, {target.dtype} and {target.device}; write ta.empty({shape}, dtype={x.dtype.name!r}, "
                f"device={str(x.device)!r})"
            )
        is_same = x.shape == shape and x._address == target._address
        direct = target._signature.layout.contiguous and (is_same or not overlap(x, target))
        found.append(target if direct else _uninitialised(x, shape, x.device))
    return found


def _parts(members: Sequence[A], targets: Sequence[A]) -> list[Member]:
    active = STATE.get().stream
    return [
        (
            x.device.backend,
            x.device.backend.own_stream(active) if active else 0,
            (x._buffer, x._offset),
            (target._buffer, target._offset),
        )
        for x, target in zip(members, targets)
    ]


def _finished(found: list[A], out: Sequence[A] | None) -> list[A]:
    """Return the results, or `out` after they are stored in it."""
    if out is None:
        return found
    for result, target in zip(found, out):
        if result is not target:
            with cuda.stream(_stream_of(target)):
                store(target, result)
    return list(out)


_show([globals()[_name] for _name in __all__])

if not TYPE_CHECKING:  # a checker knows all names, and would let each misspelled one pass

    def __getattr__(name):
        """Say what to write for a name that is missing."""
        raise _MissingNameError(name, __all__, "distributed")


def __dir__() -> list[str]:
    return sorted(__all__)


del TYPE_CHECKING
