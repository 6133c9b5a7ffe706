"""The contract between the library and a backend, complete and typed.

All that crosses it is plain: integers, strings, tuples, ndarrays, an `Expression`, a `Loop`, and the backend's own
objects. A backend imports nothing of the library. A part that a backend lacks is an attribute that is None: the library
asks for the part, and says which function is missing on which device. It never asks which device it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tilearray.engine.expression import Expression
from tilearray.geometry.loop import Loop
from tilearray.geometry.reduction import ReductionLoop
from tilearray.geometry.scan import ScanLoop

Ints = tuple[int, ...]
AnyLoop = Loop | ReductionLoop | ScanLoop
Stream = Any
"""The stream that orders work: on cuda the handle of a stream, an int. The host has none and ignores it."""
Launch = Callable[..., None]
"""Called with a stream, then ``buffer, byte offset`` or ``number, 0`` for the outputs and each input."""
LaunchList = Callable[[Any, Sequence[Any], list[int], Sequence[Any]], bool]
"""Called with a stream, for each member the buffers and the addresses of its outputs and inputs, and the numbers. It
returns False if it cannot launch now, as while a graph is captured."""
Call = Callable[..., Any]
"""Called with a stream and the operands, the target first if there is one; returns the result."""
Kernel = Any
"""A backend's own object: an expression, ready for every loop of one class."""
Member = tuple[Any, Stream, tuple[Any, int], tuple[Any, int]]
"""The part of one device in a collective operation: its backend, a stream, and the memory that is read and written,
each as a buffer and the bytes from its start to the first element."""
Gap = tuple[int, int, bool]
"""An operand shares memory with the target if the distance of their addresses lies between two numbers of bytes; the
third says whether it is the same view if the distance is 0."""


class Buffer(Protocol):
    """Memory on one device. Every view of it keeps it alive."""

    @property
    def pointer(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def readonly(self) -> bool: ...


class CallRule(Protocol):
    """What all calls of an expression have in common; see `tilearray.engine.call.Rule`."""

    @property
    def numbers(self) -> tuple[Callable[[Any], Any] | None, ...]: ...
    @property
    def raw(self) -> bool: ...
    @property
    def whole(self) -> Callable[[Sequence[Any], Any], Any]: ...


class CallWriter(Protocol):
    """Writes whole calls, which take less host time than a launch behind a general call.

    A written call checks Python numbers, allocates the result or checks the target, launches, and returns the result.
    """

    def bind_call(
        self, kernel: Kernel, loop: AnyLoop, rule: CallRule, signature: Any, gaps: tuple[Gap | None, ...], /
    ) -> Call:
        """Return the call of a kernel over a loop; `signature` is that of a new result, or None beside a target."""
        ...

    def bind_fused(
        self, kernel: Kernel, loop: AnyLoop, made: Sequence[Any], constants: Mapping[int, Any], public: Any, /
    ) -> Call | None:
        """Return a launch as `Backend.bind` does, which makes arrays itself; None if that saves nothing.

        The outputs that have a signature in `made` are new arrays of the class `public`. The launch returns them, one
        array or a tuple. Neither they nor the numbers in `constants`, by position, are among its arguments.
        """
        ...

    def bind_steps(
        self, steps: Sequence[Any], takes: Sequence[Any], raw: bool, memory: Sequence[Any], /
    ) -> Call | None:
        """Return the call of several launches (`tilearray.engine.call.steps_call`); None if that saves nothing."""
        ...

    def bind_new(self, kernel: Kernel, rule: CallRule, /) -> Callable[[Loop, Any], Call]:
        """Return what makes a call from a loop that starts at its operands' first elements, and a new signature."""
        ...


class IndexErrors(Protocol):
    """Words of device memory in which kernels report an index that lies outside of its axis."""

    def take(self, count: int, stream: Stream, /) -> Any:
        """Return `count` words for one launch, to be read after it."""
        ...

    def deferred(self, count: int, stream: Stream, /) -> Any:
        """Return `count` words that the next synchronizing call reads."""
        ...

    def read(self, words: Any, stream: Stream, /) -> Sequence[int | None]:
        """Wait for the launch; return the index outside for each word, or None."""
        ...


class Numbers(Protocol):
    """Words of memory in which kernels report how many elements they found."""

    def take(self, stream: Stream, /) -> Any:
        """Return an empty word for one launch, to be read after it."""
        ...

    def read(self, word: Any, stream: Stream, /) -> int:
        """Wait for the launch; return the number."""
        ...

    def give_back(self, word: Any, stream: Stream, /) -> None:
        """Wait for launches; take back a word that nobody reads."""
        ...


class Indexing(Protocol):
    """Indexing by integer arrays, joining and repeating, on a backend that does not run them as expressions."""

    def get(self, x: np.ndarray, key: Any, /) -> np.ndarray:
        """Return a copy of the elements that a key selects; IndexError if an index lies outside."""
        ...

    def set(self, x: np.ndarray, key: Any, value: np.ndarray, /) -> None:
        """Assign to the elements that a key selects; of several writes to one element the last counts."""
        ...

    def join(self, parts: Sequence[np.ndarray], axis: int, /) -> np.ndarray:
        """Return the elements of ndarrays of one dtype, one after the other along an axis."""
        ...

    def repeat(self, x: np.ndarray, count: int, axis: int | None, /) -> np.ndarray:
        """Return an array with every element `count` times; along the only axis of the result if `axis` is None."""
        ...


class Unique(Protocol):
    """The distinct elements of an array, and all that was asked for about them."""

    @property
    def values(self) -> np.ndarray: ...
    @property
    def indices(self) -> np.ndarray | None: ...
    @property
    def inverse(self) -> np.ndarray | None: ...
    @property
    def counts(self) -> np.ndarray | None: ...


class Sorting(Protocol):
    """Sorting, searching and sets: ascending with NaN last, or the reverse of it; indices are int64.

    Sorting is stable, except where a call says otherwise.
    """

    def nonzero(self, x: np.ndarray, /) -> tuple[np.ndarray, ...]: ...
    def sort(self, x: np.ndarray, axis: int, descending: bool, /) -> np.ndarray: ...
    def argsort(self, x: np.ndarray, axis: int, descending: bool, stable: bool, /) -> np.ndarray: ...
    def partition(self, x: np.ndarray, places: np.ndarray, axis: int, /) -> np.ndarray: ...
    def argpartition(self, x: np.ndarray, places: np.ndarray, axis: int, /) -> np.ndarray: ...

    def searchsorted(
        self, x: np.ndarray, values: np.ndarray, dtype: np.dtype, side: str, order: np.ndarray | None, /
    ) -> np.ndarray:
        """Return where values belong in a sorted array, all rounded to one dtype; `order` sorts the array."""
        ...

    def unique(self, x: np.ndarray, indices: bool, inverse: bool, counts: bool, /) -> Unique:
        """Return the distinct elements in ascending order; every NaN is distinct."""
        ...

    def isin(self, x: np.ndarray, others: np.ndarray, dtype: np.dtype | None, invert: bool, /) -> np.ndarray:
        """Return which elements are among others, compared in a dtype, or as integers if it is None."""
        ...


class LinearAlgebra(Protocol):
    """Products of matrices and tensors; operands are rounded to the dtype of the result first."""

    def matmul(self, x1: np.ndarray, x2: np.ndarray, dtype: np.dtype, /) -> np.ndarray: ...

    def tensordot(self, x1: np.ndarray, x2: np.ndarray, axes: tuple[Ints, Ints], dtype: np.dtype, /) -> np.ndarray: ...

    def einsum(self, subscripts: str, operands: tuple[np.ndarray, ...], dtype: np.dtype, /) -> np.ndarray:
        """Return the sum of products that subscripts describe; ValueError if they do not fit the operands."""
        ...


class Products(Protocol):
    """Matrix products by a library of the device, of arrays of one dtype; all others are kernels."""

    def takes(self, dtype: np.dtype, /) -> bool:
        """Whether the library is installed and multiplies matrices of a dtype."""
        ...

    def readable(self, shape: Ints, strides: Ints, /) -> bool:
        """Whether the library reads stacks of matrices, or a vector, without a copy."""
        ...

    @property
    def scaled(self) -> ScaledProducts:
        """The products of 8-bit floats with scales."""
        ...

    def is_small(self, dtype: np.dtype, rows: int, depth: int, columns: int, /) -> bool:
        """Whether a kernel takes less time for a product of two matrices."""
        ...

    def kernel(self, dtype: np.dtype, loop: Loop, aligned: tuple[bool, bool], /) -> ProductKernel:
        """Return what multiplies arrays of a dtype over the loop of a product; all operands are `readable`.

        `aligned` says which of both arrays begin at a multiple of 16 bytes.
        """
        ...


class ProductKernel(Protocol):
    """A product by a library, for the loop of its operands."""

    @property
    def copies(self) -> tuple[PaddedCopy | None, PaddedCopy | None, PaddedCopy | None]:
        """The memory that it needs instead of that of the result and of both operands; None if it takes that."""
        ...


class PaddedCopy(Protocol):
    """A matrix in memory of `size` elements of its own, with its strides where it lies, and there (`padded`)."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def strides(self) -> tuple[int, int]: ...
    @property
    def padded(self) -> tuple[int, int]: ...
    @property
    def size(self) -> int: ...


class ScaledProducts(Protocol):
    """Products of two matrices of 8-bit floats by a library, with scales that are numbers or vectors of float32."""

    def planned(
        self,
        stream: Stream,
        names: tuple[str, str, str],
        sizes: tuple[int, int, int],
        pitches: tuple[int, int],
        vectors: bool,
        /,
    ) -> Any:
        """Return what `run` takes, or None if the library does not compute such a product.

        The dtypes of both operands and of the result; rows, depth and columns; the elements from one row of the first
        operand to the next, and from one column of the second; whether there is a scale for each row and column.
        """
        ...

    def run(self, stream: Stream, planned: Any, /, *places: tuple[Any, int] | None) -> None:
        """Write the product. Places are the result, both operands and their scales, or None without scales.

        A place is a buffer, and the bytes before the first element.
        """
        ...


class Matrices(Protocol):
    """Decompositions, inverses, determinants and norms of stacks of matrices.

    Operands are rounded to a dtype first, a float or complex dtype except in `matrix_power` and `multi_dot`. Narrow
    floats are computed as float32. Results have that dtype, or where mathematics makes them real or complex, the real
    or complex dtype of its precision; complex64 is the narrowest. Shapes fit, and ``numpy.linalg.LinAlgError`` says
    that a decomposition does not exist or that its iteration does not converge.
    """

    def cholesky(self, x: np.ndarray, upper: bool, dtype: np.dtype, /) -> np.ndarray: ...

    def qr(self, x: np.ndarray, mode: str, dtype: np.dtype, /) -> tuple[np.ndarray, np.ndarray]:
        """Return both factors; `mode` is "reduced" or "complete"."""
        ...

    def svd(
        self, x: np.ndarray, full_matrices: bool, hermitian: bool, dtype: np.dtype, /
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

    def svdvals(self, x: np.ndarray, hermitian: bool, dtype: np.dtype, /) -> np.ndarray: ...

    def eig(self, x: np.ndarray, dtype: np.dtype, /) -> tuple[np.ndarray, np.ndarray]:
        """Return eigenvalues and eigenvectors, always complex."""
        ...

    def eigvals(self, x: np.ndarray, dtype: np.dtype, /) -> np.ndarray: ...

    def eigh(self, x: np.ndarray, lower: bool, dtype: np.dtype, /) -> tuple[np.ndarray, np.ndarray]:
        """Return real eigenvalues, ascending, and eigenvectors; only one triangle of a matrix is read."""
        ...

    def eigvalsh(self, x: np.ndarray, lower: bool, dtype: np.dtype, /) -> np.ndarray: ...
    def inv(self, x: np.ndarray, dtype: np.dtype, /) -> np.ndarray: ...

    def solve(self, x1: np.ndarray, x2: np.ndarray, dtype: np.dtype, /) -> np.ndarray:
        """Return the solutions of ``x1 @ x = x2``; `x2` has at least two axes, or is one vector for all matrices."""
        ...

    def lstsq(
        self, a: np.ndarray, b: np.ndarray, rcond: float | None, dtype: np.dtype, /
    ) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
        """Return the least-squares solution, the residuals, the rank and the singular values of one system."""
        ...

    def pinv(self, x: np.ndarray, rtol: np.ndarray | None, hermitian: bool, dtype: np.dtype, /) -> np.ndarray: ...
    def matrix_power(self, x: np.ndarray, n: int, dtype: np.dtype, /) -> np.ndarray: ...
    def multi_dot(self, arrays: Sequence[np.ndarray], dtype: np.dtype, /) -> np.ndarray: ...
    def det(self, x: np.ndarray, dtype: np.dtype, /) -> np.ndarray: ...
    def slogdet(self, x: np.ndarray, dtype: np.dtype, /) -> tuple[np.ndarray, np.ndarray]: ...

    def matrix_rank(
        self, x: np.ndarray, tol: np.ndarray | None, rtol: np.ndarray | None, hermitian: bool, dtype: np.dtype, /
    ) -> np.ndarray:
        """Return how many singular values are above `tol`, or `rtol` times the largest one; None is the default."""
        ...

    def cond(self, x: np.ndarray, ord: Any, dtype: np.dtype, /) -> np.ndarray: ...

    def matrix_norm(self, x: np.ndarray, ord: Any, keepdims: bool, dtype: np.dtype, /) -> np.ndarray:
        """Return the norms of the matrices in the last two axes; `ord` is "nuc", or 1, 2, inf of either sign."""
        ...


class Factors(Protocol):
    """Factors of matrices on a device, in memory that is given by addresses.

    Matrices lie in column-major order, one after the other without gaps, and are overwritten. `dtype` is "float32",
    "float64", "complex64" or "complex128", `count` the number of matrices, none of them empty. For each matrix an int32
    at `info` is 0 if the factors exist.

    `potrf`, `getrf`, `getrs` and `getri` take the address of an array of the addresses of all matrices if these are one
    call, and `matinv` always does; all others that of the first matrix.
    """

    def is_one_call(self, function: str, n: int, count: int, /) -> bool:
        """Whether matrices of n rows are one call of "potrf", or of "getrf" and what follows. Pivots are int32 then."""
        ...

    def inverts_at_once(self, n: int, /) -> bool:
        """Whether `matinv` takes matrices of n rows."""
        ...

    def inverts_stacks(self, n: int, count: int, /) -> bool:
        """Whether `getri` takes stacks of matrices of n rows."""
        ...

    def svd_function(self, m: int, n: int, count: int, /) -> str:
        """The name of the function for singular values of matrices with m >= n.

        It is "gesvd" or "gesvdj_batched". Both take the same arguments.
        """
        ...

    def fetch(self, stream: Stream, info: int, count: int, /) -> Callable[[], np.ndarray]:
        """Begin to copy the int32 of matrices to the host; the result waits for the copy, not for later work.

        Many are copied when the result is called, so their memory must live until then.
        """
        ...

    def take_word(self, stream: Stream, /) -> Any:
        """Return a word in which kernels report inf and NaN, to be given to `is_reported`."""
        ...

    def is_reported(self, word: Any, stream: Stream, /) -> bool:
        """Wait for a stream; return whether a kernel has made a report in a word, and take the word back."""
        ...

    def potrf(self, stream: Stream, dtype: str, lower: bool, n: int, count: int, a: int, info: int, /) -> None:
        """Overwrite one triangle of Hermitian matrices with their Cholesky factors."""
        ...

    def getrf(self, stream: Stream, dtype: str, n: int, count: int, a: int, pivots: int, info: int, /) -> None:
        """Overwrite matrices with their LU factors; write n pivots for each, counted from 1: int64 if a loop."""
        ...

    def getrs(
        self, stream: Stream, dtype: str, n: int, columns: int, count: int, a: int, pivots: int, b: int, info: int, /
    ) -> None:
        """Overwrite right sides with solutions, from what `getrf` gave."""
        ...

    def getri(self, stream: Stream, dtype: str, n: int, count: int, a: int, pivots: int, b: int, info: int, /) -> None:
        """Write inverses to other memory, from what `getrf` gave in one call."""
        ...

    def matinv(self, stream: Stream, dtype: str, n: int, count: int, a: int, b: int, info: int, /) -> None:
        """Write inverses of small matrices to other memory, and leave the matrices as they are."""
        ...

    def geqrf(self, stream: Stream, dtype: str, m: int, n: int, count: int, a: int, tau: int, info: int, /) -> None:
        """Overwrite matrices of m rows and n columns with R, and reflections below it; write factors of these."""
        ...

    def orgqr(
        self, stream: Stream, dtype: str, m: int, n: int, k: int, count: int, a: int, step: int, tau: int, info: int, /
    ) -> None:
        """Overwrite k reflections with the first n columns of Q; `step` is the elements from one matrix to the next."""
        ...

    def syevd(
        self, stream: Stream, dtype: str, vectors: bool, lower: bool, n: int, count: int, a: int, w: int, info: int, /
    ) -> None:
        """Write ascending eigenvalues of Hermitian matrices; overwrite these with eigenvectors if asked."""
        ...

    def gesvd(
        self, stream: Stream, dtype: str, vectors: bool, full: bool, m: int, n: int, count: int, a: int, s: int, u: int,
        vt: int, info: int, /,
    ) -> None:  # fmt: skip
        """Write descending singular values of matrices with m >= n; and both factors if asked."""
        ...

    def gesvdj_batched(
        self, stream: Stream, dtype: str, vectors: bool, full: bool, m: int, n: int, count: int, a: int, s: int, u: int,
        v: int, info: int, /,
    ) -> None:  # fmt: skip
        """Do the same, but write V, not its adjoint, and a square U. Memory for both factors is given always."""
        ...

    def geev(self, stream: Stream, dtype: str, n: int, count: int, a: int, w: int, vectors: int, info: int, /) -> None:
        """Write complex eigenvalues, and right eigenvectors of complex matrices, unless their address is 0."""
        ...


class Fourier(Protocol):
    """Discrete Fourier transforms along axes, which are different and not negative.

    Each axis is cut or padded with zeros to its size first. `norm` says which direction divides by the sizes: the
    inverse if "backward", the other if "forward", both by the square root if "ortho". Operands are rounded to `dtype`,
    that of the result or its counterpart, float32 or wider.
    """

    def transform(
        self, x: np.ndarray, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: np.dtype, /
    ) -> np.ndarray:
        """Return a complex transform of complex numbers; `dtype` is complex."""
        ...

    def from_real(
        self, x: np.ndarray, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: np.dtype, /
    ) -> np.ndarray:
        """Return the first half of a transform of real numbers along the last of `axes`; `dtype` is real."""
        ...

    def to_real(
        self, x: np.ndarray, sizes: Ints, axes: Ints, inverse: bool, norm: str, dtype: np.dtype, /
    ) -> np.ndarray:
        """Return the real transform of numbers of which the first half along the last of `axes` is given.

        The rest is the mirrored conjugate. `sizes` are those of the result, and `dtype` is complex.
        """
        ...

    def once(
        self,
        method: str,
        shape: Ints,
        given: np.dtype,
        sizes: Ints,
        axes: Ints,
        inverse: bool,
        norm: str,
        dtype: np.dtype,
        /,
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return the function that is a method for ndarrays of a shape and the dtype `given`."""
        ...


class Lists(Protocol):
    """One launch of an elementwise expression over the arrays of many calls, the members of a list."""

    def compile(self, expression: Expression, loop_class: Any, aligned: tuple[bool, ...], /) -> Kernel:
        """Return the kernel of an expression for lists of loops of one class."""
        ...

    def bind(self, kernel: Kernel, loops: Sequence[Loop], /) -> LaunchList:
        """Fix the loops of the members."""
        ...


class Transforms(Protocol):
    """Fourier transforms along one to three axes.

    `kind` is "c2c", or "r2c" and "c2r" if the result or the operand has the first half of the last axis. `sizes` are
    those of the transform, `source` and `target` the strides of the operand and of the result along its axes. `others`
    has for each other axis its size, and the strides of the operand and of the result.
    """

    def planned(
        self,
        kind: str,
        dtype: str,
        sizes: Ints,
        source: Ints,
        target: Ints,
        others: tuple[tuple[int, int, int], ...],
        /,
    ) -> Any:
        """Return what `run` takes, or None if elements as they lie cannot be transformed.

        A copy with the transformed axes last can. `dtype` is "complex64" or "complex128".
        """
        ...

    def run(
        self, stream: Stream, planned: Any, inverse: bool, read: tuple[Any, int], written: tuple[Any, int], /
    ) -> None:
        """Transform one memory to another or, if "c2c", to the same; nothing is divided by the sizes.

        Memory is a buffer, and the bytes from its start to the first element. "c2r" overwrites its operand.
        """
        ...


class Collectives(Protocol):
    """Operations over memory of several devices, each in the order of `members`; see `tilearray.distributed`."""

    @property
    def operations(self) -> Collection[str]:
        """The names of reductions."""
        ...

    @property
    def dtypes(self) -> Collection[str]:
        """The names of dtypes that can be reduced."""
        ...

    def all_reduce(self, members: Sequence[Member], count: int, dtype: str, operation: str, /) -> None:
        """Write the reduction of `count` elements of all devices to each."""
        ...

    def reduce_scatter(self, members: Sequence[Member], count: int, dtype: str, operation: str, /) -> None:
        """Write a part of `count` reduced elements to each device."""
        ...

    def all_gather(self, members: Sequence[Member], nbytes: int, /) -> None:
        """Write the bytes of all devices, one after the other, to each."""
        ...

    def broadcast(self, members: Sequence[Member], nbytes: int, root: int, /) -> None:
        """Write the bytes of one device to each."""
        ...


class Backend(Protocol):
    """The operations of a device."""

    @property
    def call_writer(self) -> CallWriter | None: ...
    @property
    def lists(self) -> Lists | None: ...
    @property
    def index_errors(self) -> IndexErrors | None: ...
    @property
    def numbers(self) -> Numbers | None: ...
    @property
    def indexing(self) -> Indexing | None: ...
    @property
    def sorting(self) -> Sorting | None: ...
    @property
    def linear_algebra(self) -> LinearAlgebra | None: ...
    @property
    def products(self) -> Products | None: ...
    @property
    def matrices(self) -> Matrices | None: ...
    @property
    def factors(self) -> Factors | None: ...
    @property
    def fourier(self) -> Fourier | None: ...
    @property
    def transforms(self) -> Transforms | None: ...
    @property
    def collectives(self) -> Collectives | None: ...
    @property
    def on_host(self) -> bool:
        """Whether the memory is the process's own, so that NumPy reaches it without a copy."""
        ...

    @property
    def scans_whole(self) -> bool:
        """Whether one launch scans all segments of columns; else a launch before it finds their totals."""
        ...

    @property
    def holds_rows(self) -> bool:
        """Whether a launch may go over a row several times and read it once; else that takes several launches."""
        ...

    @property
    def most_members(self) -> int:
        """The most programs of a launch that may wait for each other, and so share columns; 0 if none may."""
        ...

    @property
    def most_bins(self) -> int:
        """The most integers of which a program may count each in memory of its own, a power of two; 0 if none."""
        ...

    @property
    def computes_places(self) -> bool:
        """Whether expressions compute where they read and write: gathers, searches, and results that are combined."""
        ...

    @property
    def approximates(self) -> bool:
        """Whether the device has instructions for ``rounding="approx"`` and ``"full"``."""
        ...

    # ------------------------------------------------------------------ kernels

    def loop_class(self, loop: AnyLoop, /) -> Hashable:
        """Return all facts of a loop that a kernel's code may depend on. There are finitely many."""
        ...

    def facts_of_matrix(self, size: int, columns: int, outer: int, inner: int, /) -> int:
        """Return all that `loop_class` finds in one array of a small loop over a matrix, beside the loop's case.

        A number from 0 to 63, or -1 if such loops must be planned. `outer` and `inner` are the array's strides, not
        negative; the result is in C order.
        """
        ...

    def compile(self, expression: Expression, loop_class: Any, aligned: tuple[bool, ...], /) -> Kernel:
        """Return the kernel of an expression for every loop of one class."""
        ...

    def cuts(self, expression: Expression, /) -> bool:
        """Whether a long reduction is cut into segments; if not, their order must have no influence on the result."""
        ...

    def bind(self, kernel: Kernel, loop: AnyLoop, /) -> Launch:
        """Fix the loop of a kernel."""
        ...

    # ------------------------------------------------------------------ memory

    def own_stream(self, stream: Stream, /) -> Stream:
        """Return a stream if it is one of this device, else this device's default stream."""
        ...

    def is_captured(self, stream: Stream, /) -> bool:
        """Whether work of a stream is captured now, so that no call may wait for it."""
        ...

    def allocate(self, nbytes: int, stream: Stream, /) -> Buffer:
        """Return uninitialised memory of `nbytes` bytes, aligned for every dtype."""
        ...

    def to_numpy(self, buffer: Any, offset: int, shape: Ints, strides: Ints, dtype: np.dtype, /) -> np.ndarray:
        """Return a strided view as an ndarray: the same memory where NumPy can reach it, else a copy."""
        ...

    def from_numpy(self, array: np.ndarray, /, *, copy: bool, stream: Stream = None) -> tuple[Buffer, int]:
        """Return a buffer that holds `array`'s elements at its strides, and the byte offset of element 0."""
        ...

    def adopt(self, memory: np.ndarray, readonly: bool, signature: Any, /) -> Buffer:
        """Return the buffer of an ndarray of one axis, which holds all elements of arrays of a signature, without gaps.

        Only the host is called so. Nobody else changes the ndarray itself.
        """
        ...

    def elements(self, x: Any, /) -> np.ndarray:
        """Return the elements of an array on the host; the caller does not keep the ndarray, nor change its shape."""
        ...

    def from_device(self, other: Any, buffer: Any, offset: int, nbytes: int, /, *, stream: Stream = None) -> Buffer:
        """Return a copy of bytes of another device of the same backend."""
        ...
