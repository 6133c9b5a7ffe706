"""Matrix products through cuBLAS: floats of 16, 32 and 64 bits, and complex numbers.

Products of narrow floats are added up in float32, and neither TF32 nor sums in 16 bits are allowed. A product is one
call, planned once for a loop: its arguments are fixed except for three addresses. Its numbers alpha and beta are in
memory of this module. The order of the sums is the library's, and depends on the GPU and on the library's version.

The library has fast kernels for 16-bit floats only where addresses, leading dimensions and dense sizes are multiples of
16 bytes. Large products of other matrices are products of padded copies: see `padded`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tilearray_cuda.errors import MissingLibraryError
from tilearray_cuda.libraries import gemm
from tilearray_cuda.libraries.bindings import bindings
from tilearray_cuda.libraries.cublaslt import ScaledProducts
from tilearray_cuda.libraries.handles import Handles
from tilearray_cuda.libraries.numbers import NUMBERS, ONE, WORKSPACE, ZERO, Numbers

_NO_REDUCED_SUMS = 16
"""``CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION``; TF32 is off unless it is asked for."""
_DEFAULT = -1
"""``CUBLAS_GEMM_DEFAULT``: the library chooses the algorithm."""
MOST = 2**31 - 1
"""The largest size, leading dimension and matrix for which we call the functions without ``_64``."""


SMALL = {"float16": 2**28, "bfloat16": 2**28, "float32": 2**27, "float64": 2**18}
"""The most multiplications of small products. On an H200, 16 rows by 4096x4096 bfloat16 took a kernel of ours 17.4 us
and cuBLAS 23.6 us; 512x512 float32 took 18.8 and 24.7 us. A call for 64x64 float32 took 9.0 us of the host, and 13.7 us
with cuBLAS."""
DEEP, RESULTS = 1024, 16
"""The longest sums of small products, and the results for each element of a longer one: a program of ours adds a whole
sum, and cuBLAS cuts it. On an H200 63 x 16383 by 16383 x 63 bfloat16 took ours 215 us and cuBLAS 14.6 us."""

UNITS = {"float16": 8, "bfloat16": 8}
"""The elements of 16 bytes, for dtypes whose fast kernels demand them; float32 without TF32 has no such kernels."""
PITCH = 64
"""What the leading dimension of a padded copy is a multiple of: elements of 16 bits, so 128 bytes."""
LAUNCH = 2**28
BYTE = 2**5
"""The fewest multiplications that are worth one copy: for its launch, and for each byte that it reads and writes.

On an H200, square products of bfloat16 took as they lie and by copies: of 1023 rows 26.2 and 29.2 us, of 1535 rows 86
and 32, of 4095 rows 1031 and 251. These bounds lie between the first two.
"""


class Products:
    """The matrix products of a device, where nvmath-python and cuBLAS are installed."""

    readable = staticmethod(gemm.readable)

    def __init__(self, device: Any) -> None:
        self._device = device

    def takes(self, dtype: Any) -> bool:
        """Return whether the library multiplies matrices of a dtype here."""
        return dtype.name in NUMBERS and self._handles is not None

    @functools.cached_property
    def _handles(self) -> Any:
        """The library's handles; None if it is not installed."""
        try:
            found = bindings("cublas")
        except MissingLibraryError:
            return None

        def create() -> int:
            handle = found.create()
            found.set_math_mode(handle, _NO_REDUCED_SUMS)
            return handle

        return Handles(self._device, create, found.set_stream, found.set_workspace, WORKSPACE)

    @functools.cached_property
    def scaled(self) -> Any:
        """The products of 8-bit floats with scales."""
        return ScaledProducts(self._device)

    def is_small(self, dtype: Any, rows: int, depth: int, columns: int) -> bool:
        """Return whether a kernel of ours takes less time for a product of two matrices."""
        deep = depth > max(DEEP, rows * columns // RESULTS)
        return not deep and rows * depth * columns <= SMALL.get(dtype.name, 0)

    def kernel(self, dtype: Any, loop: Any, aligned: tuple[bool, bool]) -> LibraryProduct:
        """Return what computes a loop of a product of arrays of one dtype that are `readable`.

        `aligned` says whether the elements of each array begin at a multiple of 16 bytes.
        """
        return LibraryProduct(self._device, self._handles, bindings("cublas"), dtype, loop, aligned)


class LibraryProduct:
    """A product through the library, ready for the memory of all operands of one loop.

    Attributes
    ----------
    product : gemm.Product
    copies : gemm.Copies
        The copies between which it runs.
    text : str
        The call, for people.
    """

    def __init__(
        self, device: Any, handles: Any, library: Any, dtype: Any, loop: Any, aligned: tuple[bool, bool]
    ) -> None:
        (*stacks, rows, columns, depth), (c, a, b) = loop.shape, loop.strides
        axes = [(*each, size) for *each, size in zip(c[:-3], a[:-3], b[:-3], stacks, strict=True)]
        sizes = rows, columns, depth
        product = gemm.product_of(axes, sizes, (c[-3], c[-2]), (a[-3], a[-1]), (b[-1], b[-2]))
        self.product, self.copies = padded(product, dtype, aligned)
        self._device = device
        self._run = handles.run
        name, self._call = _bound(library, NUMBERS[dtype.name], dtype.itemsize, self.product)
        self.text = f"cuBLAS: {name}, sizes {self.product.sizes}" + (
            f", {self.product.matrices} matrices" if self.product.matrices > 1 else ""
        )
        if any(self.copies):
            named = zip(("the result", "x1", "x2"), self.copies, strict=True)
            self.text += f", padded copies of {', '.join([name for name, copy in named if copy is not None])}"

    def bind(self, loop: Any) -> Callable[..., None]:
        """Return ``launch(stream, buffer, offset, ...)`` for the result and both operands; the loop is the planned."""
        del loop
        run, call, join = self._run, self._call, self._device.join

        def launch(stream: int, out: Any, start: int, x1: Any, offset1: int, x2: Any, offset2: int) -> None:
            for buffer in (out, x1, x2):
                if buffer.stream != stream:
                    join(buffer, stream, buffer is out)
            run(stream, call, out.pointer + start, x1.pointer + offset1, x2.pointer + offset2)

        return launch

    def bind_call(self, loop: Any, rule: Any, signature: Any, gaps: Any) -> Callable[..., Any]:
        """Return ``call(stream, x1, x2)``, which makes the result."""
        del loop, rule, gaps
        run, product, join, allocate = self._run, self._call, self._device.join, self._device.allocate
        nbytes, new = signature.nbytes, object.__new__

        def call(stream: int, x1: Any, x2: Any) -> Any:
            buffer1, buffer2 = x1._buffer, x2._buffer
            if buffer1.stream != stream:
                join(buffer1, stream)
            if buffer2.stream != stream:
                join(buffer2, stream)
            result = new(x1.__class__)
            result._buffer = buffer = allocate(nbytes, stream)
            result._offset = 0
            result._signature = signature
            run(stream, product, buffer.pointer, buffer1.pointer + x1._offset, buffer2.pointer + x2._offset)
            return result

        return call


def padded(product: gemm.Product, dtype: Any, aligned: tuple[bool, bool]) -> tuple[gemm.Product, gemm.Copies]:
    """Return a product with the copies of its matrices with which it is faster, if there are some.

    Stacks of matrices are multiplied as they lie, unless they are one matrix for the library.

    Memory: each copy has the bytes of its matrix, with rows rounded up to `PITCH`. Copies of operands live until the
    product is done, and that of the result until it is stored, which takes the memory of the operands' copies if the
    allocator gives it. So the copies of 4095x4095 by 4095x4095 bfloat16 are 101 MB, as are operands and result.
    """
    unit, as_it_lies = UNITS.get(dtype.name), (product, (None, None, None))
    if unit is None or product.is_vector or product.matrices > 1 or len(product.offsets) > 1:
        return as_it_lies
    found, copies = gemm.padded(product, aligned, unit, PITCH)
    copied = [copy.shape for copy in copies if copy is not None]
    rows, columns, depth = product.sizes
    nbytes = 2 * dtype.itemsize * sum([height * width for height, width in copied])
    if not copied or rows * columns * depth < LAUNCH * len(copied) + BYTE * nbytes:
        return as_it_lies
    return found, copies


def _bound(library: Any, numbers: Numbers, itemsize: int, product: gemm.Product) -> tuple[str, Callable[..., None]]:
    """Return the name of the library's function, and ``call(handle, c, a, b)`` with the addresses of a product."""
    (op_a, op_b), (rows, columns, depth), (lda, ldb, ldc) = map(int, product.transposed), product.sizes, product.pitches
    code, compute, letter = numbers
    one, zero = ONE[compute], ZERO
    spans = [pitch * size for pitch in product.pitches for size in product.sizes]
    suffix = "_64" if max(product.matrices, *spans) > MOST else ""
    if product.is_vector and letter:
        name = f"{letter}gemv{suffix}"
        gemv, step = getattr(library, name), product.vector_step
        height, width = (depth, rows) if op_a else (rows, depth)

        def one_call(handle: int, c: int, a: int, b: int) -> None:
            gemv(handle, op_a, height, width, one, a, lda, b, step, zero, c, 1)

    elif product.matrices == 1:
        name = f"gemm_ex{suffix}"
        function = getattr(library, name)

        def one_call(handle: int, c: int, a: int, b: int) -> None:
            function(
                handle, op_a, op_b, rows, columns, depth, one, a, code, lda, b, code, ldb, zero, c, code, ldc,
                compute, _DEFAULT,
            )  # fmt: skip

    else:
        name = f"gemm_strided_batched_ex{suffix}"
        function = getattr(library, name)
        (step_a, step_b, step_c), count = product.steps, product.matrices

        def one_call(handle: int, c: int, a: int, b: int) -> None:
            function(
                handle, op_a, op_b, rows, columns, depth, one, a, code, lda, step_a, b, code, ldb, step_b, zero,
                c, code, ldc, step_c, count, compute, _DEFAULT,
            )  # fmt: skip

    found = _of_operands(one_call, product, itemsize)
    found.__name__ = f"cuBLAS {name}"  # for errors
    return name, found


def _of_operands(one_call: Callable[..., None], product: gemm.Product, itemsize: int) -> Callable[..., None]:
    """Return ``call(handle, out, x1, x2)`` for all indices of a product's stacks."""
    if product.offsets == ((0, 0, 0),):
        if not product.swapped:
            return one_call
        return lambda handle, out, x1, x2: one_call(handle, out, x2, x1)
    offsets = [tuple([itemsize * each for each in index]) for index in product.offsets]

    def calls(handle: int, out: int, x1: int, x2: int) -> None:
        for c, a, b in offsets:
            first, second = (x2 + b, x1 + a) if product.swapped else (x1 + a, x2 + b)
            one_call(handle, out + c, first, second)

    return calls
