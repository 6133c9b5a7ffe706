"""Products of matrices of 8-bit floats with scales through cuBLASLt, on hardware that multiplies them: sm_89 and later.

The library reads both operands along the summed axis, so the first one in C order and the second one in Fortran order.
The sums are not the fast ones: a tensor core adds up a few products at a time, and these sums are added up as float32.
A scale is one number in device memory, or a vector of one for each row of the result and one for each column.
"""

from __future__ import annotations

import ctypes
import functools
from collections import OrderedDict
from typing import Any

from tilearray_cuda.errors import MissingLibraryError
from tilearray_cuda.libraries.bindings import bindings
from tilearray_cuda.libraries.handles import Handles
from tilearray_cuda.libraries.numbers import NUMBERS, ONE, SINGLE, WORKSPACE, ZERO
from tilearray_cuda.locks import Lock
from tilearray_cuda.runtime.driver import after_fork

PLANS_KEPT = 256
LEAST_ARCH = 89
UNIT = 16
"""What sizes, leading dimensions and addresses are multiples of."""
CODES = {"float8_e4m3fn": 28, "float8_e5m2": 29}
"""The numbers of the dtypes in ``cudaDataType``."""
RESULTS = ("float16", "bfloat16", "float32")
_TRANSA, _SCALE_A, _SCALE_B, _FAST, _MODE_A, _MODE_B = 3, 17, 18, 25, 31, 32
"""Numbers of ``cublasLtMatmulDescAttributes_t``."""
_VECTOR = 3
"""``CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F``"""
_WORKSPACE_BYTES = 1
"""``CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES``"""
_HEURISTIC = 96
"""The bytes of ``cublasLtMatmulHeuristicResult_t``, which begins with the algorithm."""

Key = tuple[str, str, str, tuple[int, int, int], tuple[int, int], bool]
"""The dtypes of both operands and the result; rows, depth and columns; the elements from one row of `x1`, and from one
column of `x2`, to the next; whether the scales are vectors."""


class ScaledProducts:
    """The products with scales of a device."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._plans: OrderedDict[Key, _Plan | None] = OrderedDict()
        self._workspaces: dict[int, int] = {}
        self._renew_lock()
        after_fork.append(self._renew_lock)

    def _renew_lock(self) -> None:
        """Make a new lock: after a fork, a thread that no longer exists may hold the old one."""
        self._lock = Lock()

    @functools.cached_property
    def _library(self) -> Any:
        """The bindings, or None if the library is not installed or the hardware does not multiply 8-bit floats."""
        if self._device.arch < LEAST_ARCH:
            return None
        try:
            return bindings("cublasLt")
        except MissingLibraryError:
            return None

    @functools.cached_property
    def _handles(self) -> Any:
        return Handles(self._device, self._library.create, _no_stream, self._set_workspace, WORKSPACE)

    def _set_workspace(self, handle: int, address: int, nbytes: int) -> None:
        del nbytes
        self._workspaces[handle] = address

    def planned(
        self,
        stream: int,
        names: tuple[str, str, str],
        sizes: tuple[int, int, int],
        pitches: tuple[int, int],
        vectors: bool,
    ) -> Any:
        """Return what `run` takes, or None if the library does not compute such a product.

        Parameters
        ----------
        stream : int
        names : tuple of str
            The dtypes of both operands and of the result.
        sizes : tuple of int
            Rows, the summed size, and columns.
        pitches : tuple of int
            The elements from one row of the first operand to the next, and from one column of the second.
        vectors : bool
            Whether there is a scale for each row and one for each column.
        """
        if names[0] not in CODES or names[1] not in CODES or names[2] not in RESULTS or self._library is None:
            return None
        if any(size % UNIT for size in (*sizes[1:], *pitches)) or not all(sizes):
            return None
        key = (*names, sizes, pitches, vectors)
        with self._lock:
            if key not in self._plans:
                self._plans[key] = self._handles.run(stream, _made, self._library, key, self._workspaces)
                if len(self._plans) > PLANS_KEPT:
                    self._plans.popitem(last=False)
            return self._plans[key]

    def run(self, stream: int, planned: Any, *places: tuple[Any, int] | None) -> None:
        """Compute a product.

        Parameters
        ----------
        stream : int
        planned : plan
        *places : (Buffer, int) or None
            The buffers, and the bytes before the first element: of the result, both operands, and their scales, which
            may be None.
        """
        addresses: list[int] = []
        for number, place in enumerate(places):
            if place is None:
                addresses.append(0)
                continue
            buffer, offset = place
            if buffer.stream != stream:
                self._device.join(buffer, stream, not number)
            addresses.append(buffer.pointer + offset)
        self._handles.run(stream, planned, self._workspaces, stream, *addresses)


class _Plan:
    """A product of matrices of some sizes, as the library knows it. Calls at the same time have descriptions each."""

    __name__ = "cuBLASLt"

    def __init__(self, library: Any, vectors: bool, layouts: tuple[int, int, int], algorithm: Any) -> None:
        self._library = library
        self._vectors = vectors
        self._layouts = layouts
        self._algorithm = algorithm
        self._idle: list[int] = []

    def __call__(
        self, handle: int, workspaces: dict[int, int], stream: int, out: int, x1: int, x2: int, scale1: int, scale2: int
    ) -> None:
        library = self._library
        try:
            description = self._idle.pop()
        except IndexError:
            description = _description(library, self._vectors)
        try:
            _set(library, description, _SCALE_A, ctypes.c_void_p(scale2))
            _set(library, description, _SCALE_B, ctypes.c_void_p(scale1))
            of_x2, of_x1, of_out = self._layouts
            library.matmul(
                handle, description, ONE[SINGLE], x2, of_x2, x1, of_x1, ZERO, out, of_out, out, of_out,
                ctypes.addressof(self._algorithm), workspaces[handle], WORKSPACE, stream,
            )  # fmt: skip
        finally:
            self._idle.append(description)

    def __del__(self) -> None:
        for description in self._idle:
            self._library.matmul_desc_destroy(description)
        for layout in self._layouts:
            self._library.matrix_layout_destroy(layout)


def _no_stream(handle: int, stream: int) -> None:
    """Do nothing: the stream is an argument of each call."""


def _set(library: Any, description: int, attribute: int, value: Any) -> None:
    library.matmul_desc_set_attribute(description, attribute, ctypes.addressof(value), ctypes.sizeof(value))


def _description(library: Any, vectors: bool) -> int:
    """Return the description of products: the first matrix transposed, and how scales are read."""
    found = library.matmul_desc_create(SINGLE, NUMBERS["float32"].code)
    _set(library, found, _TRANSA, ctypes.c_int32(1))
    _set(library, found, _FAST, ctypes.c_int8(0))
    if vectors:
        _set(library, found, _MODE_A, ctypes.c_int32(_VECTOR))
        _set(library, found, _MODE_B, ctypes.c_int32(_VECTOR))
    return found


def _made(handle: int, library: Any, key: Key, workspaces: dict[int, int]) -> _Plan | None:
    """Return the plan of a product; None if the library has no algorithm for it."""
    first, second, result, (rows, depth, columns), (pitch1, pitch2), vectors = key
    layouts = (
        library.matrix_layout_create(CODES[second], depth, columns, pitch2),
        library.matrix_layout_create(CODES[first], depth, rows, pitch1),
        library.matrix_layout_create(NUMBERS[result].code, columns, rows, columns),
    )
    algorithm, count = (ctypes.c_uint64 * (_HEURISTIC // 8))(), ctypes.c_int32(0)
    plan = _Plan(library, vectors, layouts, algorithm)
    preference = library.matmul_preference_create()
    try:
        description = _description(library, vectors)
        plan._idle.append(description)
        for scale in (_SCALE_A, _SCALE_B) if vectors else ():  # any address: without one there is no algorithm
            _set(library, description, scale, ctypes.c_void_p(workspaces[handle]))
        nbytes = ctypes.c_uint64(WORKSPACE)
        library.matmul_preference_set_attribute(preference, _WORKSPACE_BYTES, ctypes.addressof(nbytes), 8)
        of_x2, of_x1, of_out = layouts
        library.matmul_algo_get_heuristic(
            handle, description, of_x2, of_x1, of_out, of_out, preference, 1, ctypes.addressof(algorithm),
            ctypes.addressof(count),
        )  # fmt: skip
    except Exception as error:  # of the binding: that there is no algorithm, or no such scales in this version
        if any(word in str(error) for word in ("NOT_SUPPORTED", "INVALID_VALUE")):
            return None
        raise
    finally:
        library.matmul_preference_destroy(preference)
    return plan if count.value else None
