"""Errors of the driver, of a GPU and of its memory.

The package is independent of `tilearray`, so its errors derive from Python's own. `derive_from` adds a class of the
caller's to all of them::

    CudaError (RuntimeError)         a driver call failed or would do harm; states call, name, meaning and remedy
    ├── UnavailableError             no CUDA device is available
    │   ├── NoDriverError            the driver library is missing or does not work
    │   └── NoDeviceError            the driver works, but does not have this GPU
    ├── OutOfMemoryError             (also MemoryError) states the requested, free, used and cached bytes
    ├── ForkedError                  CUDA was in use before this process was forked
    ├── CaptureError                 a call cannot be part of a CUDA graph, or would run outside of its capture
    ├── MissingLibraryError          (also ImportError) an optional CUDA library is not installed
    └── DeferredIndexError           (also IndexError) an index was outside of its axis in an earlier call
    NeedsDense (ValueError)          a view has too many gaps to be copied to the host with them
"""

from __future__ import annotations


class CudaError(RuntimeError):
    """A driver call failed, or we did not make it because it would do harm.

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


def derive_from(root: type[Exception]) -> None:
    """Let `CudaError`, and so every error below it, derive from a caller's class also: ``except root`` catches them.

    Examples
    --------
    >>> class LibraryError(Exception): ...
    >>> derive_from(LibraryError)
    >>> issubclass(OutOfMemoryError, LibraryError)
    True
    >>> CudaError.__bases__ = (RuntimeError,)
    """
    CudaError.__bases__ = (RuntimeError, root)


class UnavailableError(CudaError):
    """No CUDA device is available."""


class NoDriverError(UnavailableError):
    """The driver is missing or does not work."""


class NoDeviceError(UnavailableError):
    """The driver works, but does not have this GPU."""


class OutOfMemoryError(CudaError, MemoryError):
    """The GPU has too little memory, even after all cached memory was freed."""


class ForkedError(CudaError):
    """The process was forked after CUDA was in use, so it cannot use CUDA."""


class CaptureError(CudaError):
    """A call cannot be part of a CUDA graph, or would run outside of the active capture."""


class MissingLibraryError(CudaError, ImportError):
    """A function needs a CUDA library of an optional extra, and it is not installed."""


class DeferredIndexError(CudaError, IndexError):
    """An index array of an earlier call had an index outside of its axis."""


class NeedsDense(ValueError):  # noqa: N818 - a request to the caller, who makes a dense copy first
    """A view has too many gaps to be copied to the host with them; make a dense copy on the device first."""
