"""DLPack, both ways, on every device and for every dtype of ours: the protocol around the capsules.

As a producer, an array makes one `Export`; each capsule then costs one call of NumPy. As a consumer, we use the
producer's C exchange API if it has one, because no stream waits then: the memory belongs to the producer's current
stream, and a stream of ours waits for that stream at its first use of the memory. Otherwise we tell the producer our
stream, and the producer waits.

We do not offer a C exchange API: its functions would be ctypes callbacks, which are slower than our ``__dlpack__``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple, cast

import numpy as np

from tilearray.dtypes import float4_e2m1fn
from tilearray.engine.streams import LEGACY_ALIAS, NO_WAIT
from tilearray.errors import InterchangeError, shown
from tilearray.interchange import c_exchange
from tilearray.interchange.capsules import (
    CARRIERS,
    COPIED,
    CUDA,
    CUDA_KINDS,
    HOST,
    HOST_KINDS,
    PADDED,
    PADDED_SINCE,
    amend,
    check_kind,
    consume,
)
from tilearray.interchange.numpy import from_host_object, share_or_copy

__all__ = ["CARRIERS", "COPIED", "CUDA", "HOST", "Export", "Taken", "from_capsule_producer", "take", "to_capsule"]

_VERSION = (1, 1)


class Taken(NamedTuple):
    """Memory of a producer: an ndarray over it, DLPack's device type and index, and the handle of its stream."""

    array: np.ndarray
    device: tuple[int, int]
    stream: int

    @property
    def on_host(self) -> bool:
        """Whether the host can read the ndarray."""
        return self.device[0] in HOST_KINDS


# ---------------------------------------------------------------------- out


class Export:
    """The source of an array's capsules, made once for the array.

    Parameters
    ----------
    array : numpy.ndarray
        The array on the host, or its stand-in (`capsules.stand_in`).
    dtype : numpy.dtype
        The array's dtype. For a dtype of ml_dtypes, a stand-in has the unsigned integer of the same width.
    device : tuple of int
        DLPack's device type and index.
    fixed : bool, optional
        Whether the memory itself is read-only. A view whose elements share memory is read-only also over writable
        memory. The default is the array's own flag.
    """

    __slots__ = ("_array", "_as_it_is", "_device", "_dtype", "_fixed", "_readonly", "_reversed")

    def __init__(
        self, array: np.ndarray, dtype: np.dtype, device: tuple[int, int] = HOST, *, fixed: bool | None = None
    ) -> None:
        self._array = array.view(CARRIERS.get(dtype, dtype))
        self._dtype = dtype
        self._device = device
        self._readonly = not array.flags.writeable
        self._fixed = array.size > 0 and (self._readonly if fixed is None else fixed)
        self._reversed = any(stride < 0 for stride in array.strides)
        self._as_it_is = dtype not in CARRIERS and array.size > 0 and not self._readonly and not self._reversed

    def capsule(
        self,
        max_version: tuple[int, int] | None,
        dl_device: tuple[int, int] | None,
        copy: bool | None,
        flags: int = 0,
    ) -> object:
        """Return a new capsule. ``copy=True`` copies host memory; on a GPU the caller must have copied the array.

        Raises
        ------
        InterchangeError
            If DLPack, the requested version or device, or the consumer cannot represent the array.
        """
        if self._as_it_is and dl_device is None and not copy and not flags:
            return self._array.__dlpack__(max_version=max_version)
        if dl_device is not None and not is_device(dl_device, self._device):
            raise InterchangeError(
                f"__dlpack__: expected dl_device={self._device}, the device of the array, got {shown(dl_device)}; "
                f"write x.to_device(...) first"
            )
        if not copy:
            self._check(max_version)
        if self._dtype == float4_e2m1fn:
            if max_version is None or max_version < PADDED_SINCE:
                raise InterchangeError(
                    f"__dlpack__: float4_e2m1fn has one value per byte here, which needs DLPack 1.1 or later, and the "
                    f"consumer asked for {max_version}; write x.view('uint8') to export the bytes"
                )
            flags |= PADDED
        capsule: Any = self._array.__dlpack__(max_version=max_version, copy=copy)
        amend(capsule, self._dtype, flags)
        return capsule

    def _check(self, max_version: tuple[int, int] | None) -> None:
        if self._readonly and (max_version is None or max_version[0] < 1):
            raise InterchangeError(
                "__dlpack__: the array is read-only, which needs DLPack 1.0 or later, and the consumer asked for an "
                "older version; write x.copy(), or ask with max_version=(1, 0)"
            )
        if not (self._reversed or self._fixed) or _consumer_module().partition(".")[0] != "torch":
            return
        if self._reversed:
            raise InterchangeError(
                f"__dlpack__: expected strides >= 0, because torch ends the process at negative strides, got "
                f"{self._array.strides} in bytes; write x.copy()"
            )
        raise InterchangeError(
            "__dlpack__: the array is read-only, but torch would still write to its memory; write ta.to_torch(x), or "
            "x.copy(), for a tensor with its own memory"
        )


def is_device(given: tuple[int, int], device: tuple[int, int]) -> bool:
    """Return whether the pair that a consumer gives names a device. An endless iterable does not.

    >>> is_device([1, 0], HOST)
    True
    """
    return tuple(islice(given, len(device) + 1)) == device


def to_capsule(
    view: np.ndarray,
    *,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
    stream: object,
) -> object:
    """Return a DLPack capsule of a host array, as its ``__dlpack__`` must.

    Parameters
    ----------
    view : numpy.ndarray
        The array. The capsule, and then its consumer, keep the array alive.
    max_version : tuple of int or None
        The newest protocol version that the consumer supports. The capsule is versioned if it is (1, 0) or newer.
    dl_device : tuple of int or None
        The device on which the consumer expects the data; the host is (1, 0).
    copy : bool or None
        True exports a copy; False and None export the array's memory.
    stream : None
        The host has no streams.

    Raises
    ------
    InterchangeError
        If DLPack, the requested version or device, or the consumer cannot represent the array.

    Examples
    --------
    >>> numbers = np.arange(3.0)
    >>> to_capsule(numbers, max_version=None, dl_device=None, copy=None, stream=None)  # doctest: +ELLIPSIS
    <capsule object "dltensor" at ...>
    """
    check_no_stream(stream)
    return Export(view, view.dtype).capsule(max_version, dl_device, copy)


def check_no_stream(stream: object) -> None:
    """Raise InterchangeError if a consumer of host memory names a stream."""
    if stream is not None:
        raise InterchangeError(f"__dlpack__: expected stream=None for host memory, got {shown(stream)}")


def consumer_stream(stream: object) -> int:
    """Return the protocol's number of the stream that a consumer of GPU memory names; None is the legacy stream."""
    if stream is None:
        return LEGACY_ALIAS
    if isinstance(stream, int) and not isinstance(stream, bool) and (stream > 0 or stream == NO_WAIT):
        return stream
    raise InterchangeError(
        f"__dlpack__: expected a DLPack stream number, got {shown(stream)}; write None or 1 for the legacy default "
        f"stream, 2 for the per-thread default stream, -1 for no wait, or a stream's handle (0 is ambiguous)"
    )


def _consumer_module() -> str:
    """Return the module that called ``__dlpack__``: the first module on the stack outside of the export."""
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        module: str = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name != "__dlpack__" and module.partition(".")[0] != "tilearray":
            return module
        frame = frame.f_back
    return ""


# ---------------------------------------------------------------------- in


def take(producer: Any, *, copy: bool | None, stream: int = 0) -> Taken:
    """Take the memory of an object with ``__dlpack__``, on any device, without a copy.

    Parameters
    ----------
    producer : object
        An object with ``__dlpack__`` and ``__dlpack_device__``.
    copy : bool or None
        False tells the producer not to copy.
    stream : int
        The handle of the stream that will use memory on a GPU; 0 is the legacy default stream.

    Raises
    ------
    DTypeError
        If tilearray does not have the dtype.
    InterchangeError
        If the object is not a producer or refuses the export, if its memory is on a device without a backend, or if its
        capsule is malformed.
    """
    kind, index = _device_of(producer)
    _check_torch(producer)
    api = c_exchange.api_of(cast("type[object]", type(producer)))
    if api is not None:
        home = api.current_stream(kind, index) if kind in CUDA_KINDS else 0
        return Taken(*api.take(producer), home)
    capsule = _request(producer, copy, (stream or LEGACY_ALIAS) if kind in CUDA_KINDS else None)
    return Taken(*consume(capsule), stream)


def from_capsule_producer(producer: Any, *, copy: bool | None) -> np.ndarray:
    """Return an array over the host memory of an object with ``__dlpack__``.

    Parameters
    ----------
    producer : object
        An object with ``__dlpack__`` and ``__dlpack_device__``.
    copy : bool or None
        True always copies, False never copies, None copies misaligned data only.

    Returns
    -------
    numpy.ndarray
        An array that keeps the producer's memory alive. It is read-only if the producer states this, and if an old
        producer, of the unversioned protocol, cannot state it.

    Raises
    ------
    DTypeError, InterchangeError
        As in `take`, and if the memory is not on the host.
    LayoutError
        If the data are misaligned and ``copy=False``.

    Examples
    --------
    >>> numbers = np.arange(3.0)
    >>> from_capsule_producer(numbers, copy=None) is numbers
    True
    """
    if isinstance(producer, np.ndarray):  # without a capsule, which could not hold ml_dtypes' dtypes
        array = from_host_object(cast(object, producer), copy=copy, function="from_dlpack")
        assert array is not None
        return array
    taken = take(producer, copy=copy)
    if not taken.on_host:
        raise InterchangeError(
            f"from_dlpack: expected host memory, got memory on cuda:{taken.device[1]}; write ta.from_dlpack(x) alone, "
            f"or copy it to the host in its own library first"
        )
    return host_array(taken, copy)


def host_array(taken: Taken, copy: bool | None) -> np.ndarray:
    """Return the ndarray of host memory, or a copy if `copy` is True or the memory is misaligned."""
    return taken.array.copy(order="K") if copy else share_or_copy(taken.array, copy, "from_dlpack")


def _device_of(producer: Any) -> tuple[int, int]:
    if not (hasattr(producer, "__dlpack__") and hasattr(producer, "__dlpack_device__")):
        raise InterchangeError(
            f"from_dlpack: expected an object with __dlpack__ and __dlpack_device__, got {_name(producer)}; "
            f"write asarray(x) for lists, numbers and buffers, and pass the array itself instead of a capsule"
        )
    try:
        kind, index = map(int, producer.__dlpack_device__())
    except Exception as error:
        raise InterchangeError(f"from_dlpack: {_name(producer)} does not state its device: {error}") from error
    check_kind(kind)
    return kind, index


def _request(producer: Any, copy: bool | None, stream: int | None) -> object:
    """Return the producer's capsule, versioned if the producer supports this."""
    older: dict[str, Any] = {} if stream is None else {"stream": stream}
    wishes = {"max_version": _VERSION, **older}
    if copy is False:
        wishes["copy"] = False
    try:
        try:
            return producer.__dlpack__(**wishes)
        except TypeError:  # the protocol before version 1 does not have these keywords
            return producer.__dlpack__(**older)
    except Exception as error:
        raise InterchangeError(f"from_dlpack: {_name(producer)} refused to export its data: {error}") from error


# Tensors that torch exports wrongly: a predicate, a description of the tensor, and the remedy.
_TORCH_OBSTACLES: tuple[tuple[Callable[[Any], bool], str, str], ...] = (
    (lambda x: str(x.layout) != "torch.strided", "is not strided but {x.layout}", "x.to_dense()"),
    (lambda x: x.is_nested, "is nested", "x.to_padded_tensor(0)"),
    (lambda x: x.is_quantized, "is quantized", "x.dequantize(), or x.int_repr()"),
    (lambda x: x.requires_grad, "requires grad, which would be lost", "x.detach()"),
    (lambda x: x.is_conj(), "is a lazy conjugate, so its memory holds other values", "x.resolve_conj()"),
    (lambda x: x.is_neg(), "is a lazy negative, so its memory holds other values", "x.resolve_neg()"),
)


def _check_torch(producer: Any) -> None:
    """Refuse tensors of torch that hold more than their memory. A caller with a tensor has imported torch."""
    torch: Any = sys.modules.get("torch")
    if not isinstance(producer, getattr(torch, "Tensor", ())):  # another thread may be importing it
        return
    for applies, fault, instead in _TORCH_OBSTACLES:
        if applies(producer):
            raise InterchangeError(f"from_dlpack: the torch tensor {fault.format(x=producer)}; write {instead} first")


def _name(obj: object) -> str:
    kind = type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"
