"""What can go wrong with the driver, a GPU or its memory.

The package is independent of `tilearray`, so its errors are Python's own, named::

    CudaError (RuntimeError)         a driver call failed, or would do harm; says call, name, meaning and what to do
    ├── UnavailableError             no CUDA device to work with
    │   ├── NoDriverError            no driver library, or one that does not work
    │   └── NoDeviceError            a driver, but no such GPU
    ├── OutOfMemoryError             (also MemoryError) states what was asked for, free, in use and cached
    ├── ForkedError                  CUDA was in use before this process was forked
    ├── CaptureError                 what was asked for cannot be part of a CUDA graph, or would escape its capture
    └── DeferredIndexError           (also IndexError) an index outside of its axis, found after the call that had it
    NeedsDense (ValueError)          a view too sparse to be copied to the host as it lies
"""

from __future__ import annotations


class CudaError(RuntimeError):
    """A driver call failed, or was not made because it would do harm.

    Attributes
    ----------
    call : str
        The driver function, or "".
    name : str
        The driver's name of the error, such as "CUDA_ERROR_INVALID_HANDLE", or "".
    """

    def __init__(self, message: str, call: str = "", name: str = "") -> None:
        super().__init__(message)
        self.call = call
        self.name = name


class UnavailableError(CudaError):
    """There is no CUDA device to work with."""


class NoDriverError(UnavailableError):
    """There is no driver, or it does not work."""


class NoDeviceError(UnavailableError):
    """There is a driver, but no such GPU."""


class OutOfMemoryError(CudaError, MemoryError):
    """The GPU's memory does not suffice, not even after everything cached was given back."""


class ForkedError(CudaError):
    """The process was forked after CUDA was used, and cannot use it."""


class CaptureError(CudaError):
    """A call has no place in a CUDA graph, or would run outside of the capture that is under way."""


class DeferredIndexError(CudaError, IndexError):
    """An index array of an earlier call held an index outside of its axis."""


class NeedsDense(ValueError):  # noqa: N818 - a request to the caller, who makes a dense copy first
    """A view has too many gaps to be copied to the host as it lies: make it dense on the device first."""
