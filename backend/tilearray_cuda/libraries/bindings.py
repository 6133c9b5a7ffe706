"""The one place where nvmath-python and nccl4py are imported: bindings of CUDA libraries, two optional extras.

A binding takes integers only: handles, addresses, sizes, and the numbers of enumerations. It loads its library at the
first call. A status other than success is an exception of the binding's own class, which `failure` translates.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from tilearray_cuda.errors import CudaError, MissingLibraryError, OutOfMemoryError

_MAJOR = 0
"""The property of a library that is its major version: ``MAJOR_VERSION`` of ``libraryPropertyType``."""


class _Library(NamedTuple):
    """A library: its name, the module of its bindings, the module and the call that load it, and what to write."""

    name: str
    module: str
    versions: str
    load: Callable[[Any], object]
    instead: str


def _loads_mathematics(versions: Any) -> object:
    return versions.get_property(_MAJOR)


def _loads_nccl(versions: Any) -> object:
    return versions.get_version()


_LINALG = "pip install 'tilearray[linalg]', or compute on the host with x.to_device('cpu')"
_LIBRARIES = {
    "cublas": _Library("cuBLAS", "nvmath.bindings.cublas", "nvmath.bindings.cublas", _loads_mathematics, _LINALG),
    "cublasLt": _Library(
        "cuBLASLt", "nvmath.bindings.cublasLt", "nvmath.bindings.cublasLt", _loads_mathematics, _LINALG
    ),
    "cusolverDn": _Library(
        "cuSOLVER", "nvmath.bindings.cusolverDn", "nvmath.bindings.cusolver", _loads_mathematics, _LINALG
    ),
    "cufft": _Library("cuFFT", "nvmath.bindings.cufft", "nvmath.bindings.cufft", _loads_mathematics, _LINALG),
    "nccl": _Library(
        "NCCL",
        "nccl.bindings.nccl",
        "nccl.bindings.nccl",
        _loads_nccl,
        "pip install 'tilearray[distributed]', or move arrays to one GPU with x.to_device('cuda:0')",
    ),
}


@functools.cache
def bindings(name: str) -> Any:
    """Return the bindings of a library, which is loaded then.

    Raises
    ------
    MissingLibraryError
        If the package of the bindings or the library is not installed.
    """
    library = _LIBRARIES[name]
    try:
        library.load(importlib.import_module(library.versions))
        return importlib.import_module(library.module)
    except Exception as error:  # of the import, or of the binding's search for the library
        raise MissingLibraryError(f"{library.name} cannot be loaded: {error}; write {library.instead}") from error


def failure(function: str, error: Exception) -> CudaError:
    """Return the error for an exception that a binding raised."""
    text = str(error)
    kind = OutOfMemoryError if "ALLOC" in text else CudaError
    return kind(f"{function}: {text}", function, text.partition(" ")[0])
