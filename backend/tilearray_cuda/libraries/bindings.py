"""The one place where nvmath-python is imported: its bindings of the CUDA libraries, an optional extra.

A binding takes integers only: handles, addresses, sizes, and the numbers of enumerations. It loads its library at the
first call. A status other than success is an exception of the binding's own class, which `failure` translates.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from tilearray_cuda.errors import CudaError, MissingLibraryError, OutOfMemoryError

_LIBRARIES = {
    "cublas": ("cuBLAS", "cublas"),
    "cublasLt": ("cuBLASLt", "cublasLt"),
    "cusolverDn": ("cuSOLVER", "cusolver"),
    "cufft": ("cuFFT", "cufft"),
}
"""For the bindings of a library its name, and the bindings that tell its version."""
_MAJOR = 0
"""The property of a library that is its major version: ``MAJOR_VERSION`` of ``libraryPropertyType``."""


@functools.cache
def bindings(name: str) -> Any:
    """Return the bindings of a library, which is loaded then.

    Raises
    ------
    MissingLibraryError
        If nvmath-python or the library is not installed.
    """
    library, versions = _LIBRARIES[name]
    try:
        importlib.import_module(f"nvmath.bindings.{versions}").get_property(_MAJOR)
        return importlib.import_module(f"nvmath.bindings.{name}")
    except Exception as error:  # of the import, or of the binding's search for the library
        raise MissingLibraryError(
            f"{library} cannot be loaded: {error}; write pip install 'tilearray[linalg]', or compute on the host with "
            f"x.to_device('cpu')"
        ) from error


def failure(function: str, error: Exception) -> CudaError:
    """Return the error for an exception that a binding raised."""
    text = str(error)
    kind = OutOfMemoryError if "ALLOC" in text else CudaError
    return kind(f"{function}: {text}", function, text.partition(" ")[0])
