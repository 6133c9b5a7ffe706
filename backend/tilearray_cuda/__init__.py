"""The CUDA backend of tilearray: generated Triton kernels, launched through the driver, without torch.

It receives expressions, loops and buffers as integers, strings and tuples, and does not depend on arrays or promotion.
``import tilearray_cuda`` loads neither the driver nor triton. `open_device` loads the driver. The first kernel that is
not in a cache loads triton.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING

from tilearray_cuda.errors import NoDriverError

if TYPE_CHECKING:
    from tilearray_cuda.device import CudaDevice

__all__ = ["device_count", "open_device", "total_memory"]

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def _library_error() -> str:
    """Return the reason why the driver's library cannot be loaded, or "". Fast; needs no Python package."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        return str(error)
    return ""


def device_count() -> int:
    """Return the number of GPUs that the driver offers; 0 without a GPU or a driver. Never raises.

    Examples
    --------
    >>> device_count() >= 0
    True
    """
    if _library_error():
        return 0
    try:
        from tilearray_cuda.runtime import driver

        return driver.device_count()
    except Exception:
        return 0


def total_memory(index: int) -> int:
    """Return the bytes of memory of a GPU, without the context that `open_device` makes on it.

    Raises
    ------
    CudaError
        If the driver does not work, or does not offer this GPU.
    """
    from tilearray_cuda.runtime import driver

    driver.initialise()
    return int(driver.call(driver.api.cuDeviceTotalMem, driver.call(driver.api.cuDeviceGet, index)))


def open_device(index: int) -> CudaDevice:
    """Return the GPU of an index; every call returns the same object.

    Raises
    ------
    NoDriverError
        If the driver is missing or does not work, or the package that calls it is not installed.
    NoDeviceError
        If the driver does not offer this GPU.
    ForkedError
        If the process was forked after CUDA was in use.
    """
    problem = _library_error()
    if problem:
        raise NoDriverError(
            f"cuda:{index}: this machine has no NVIDIA driver ({problem}); install the driver, give the container "
            f"access to it (docker run --gpus all), or write device='cpu'"
        )
    try:
        from tilearray_cuda import device
    except ImportError as error:
        raise NoDriverError(
            f"cuda:{index}: the package that calls the NVIDIA driver is missing ({error}); "
            f"write: pip install 'cuda-python>=13'"
        ) from error
    return device.open_device(index)
