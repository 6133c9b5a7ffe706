"""cuBLAS in NumPy: each function checks its arguments as the library does, and computes on memory of the process."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import ml_dtypes
import numpy as np

from support.elsewhere import Elsewhere
from tilearray.engine.call import _call
from tilearray.engine.devices import CPU
from tilearray_cuda.libraries import cublas, cublaslt, numbers
from tilearray_host.casts import caster
from tilearray_host.functions import function_named
from tilearray_host.kernel import _slots, dtype_named
from tilearray_host.memory import Buffer

_DTYPES = {2: "e", 14: ml_dtypes.bfloat16, 0: "f", 1: "d", 4: "F", 5: "D"}
"""The numbers of ``cudaDataType``."""
_LETTERS = {"s": 0, "d": 1, "c": 4, "z": 5}


def _view(address: int, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """Memory as an array; strides in elements."""
    itemsize = np.dtype(dtype).itemsize
    span = itemsize * (1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)))
    raw = np.ctypeslib.as_array((ctypes.c_ubyte * span).from_address(address))
    return np.ndarray(shape, dtype, raw, 0, [stride * itemsize for stride in strides])


def _matrix(address: int, code: int, transposed: int, rows: int, columns: int, pitch: int) -> np.ndarray:
    """``op(x)`` of that many rows and columns, from column-major memory."""
    height, width = (columns, rows) if transposed else (rows, columns)
    assert pitch >= max(1, height), "the leading dimension is less than the rows that are stored"
    found = _view(address, _DTYPES[code], (height, width), (1, pitch))
    return found.T if transposed else found


def _number(address: int, compute: int) -> float:
    """A real number in the dtype of the sums."""
    kind = ctypes.c_double if compute == numbers.DOUBLE else ctypes.c_float
    return kind.from_address(address).value


class FakeCublas:
    """The functions that `tilearray_cuda.libraries.cublas` calls.

    Attributes
    ----------
    calls : list of str
        The functions that were called.
    alignments : list of int
        For each product of matrices, the largest power of two up to 128 that divides all bytes which decide on fast
        kernels: addresses, leading dimensions and the sizes along dense axes.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.alignments: list[int] = []

    def gemm_ex(self, handle, opa, opb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c, ctype, ldc, *how):
        self.calls.append("gemm_ex")
        self._gemm(opa, opb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c, ctype, ldc, *how)

    def gemm_strided_batched_ex(
        self, handle, opa, opb, m, n, k, alpha, a, atype, lda, stepa, b, btype, ldb, stepb, beta, c, ctype, ldc, stepc,
        count, *how
    ):  # fmt: skip
        self.calls.append("gemm_strided_batched_ex")
        assert count > 0
        assert stepc >= ldc * (n - 1) + m or count == 1, "the results overlap"
        for i in range(count):
            at = [x + i * step * np.dtype(_DTYPES[atype]).itemsize for x, step in ((a, stepa), (b, stepb), (c, stepc))]
            self._gemm(opa, opb, m, n, k, alpha, at[0], atype, lda, at[1], btype, ldb, beta, at[2], ctype, ldc, *how)

    def _gemm(
        self, opa, opb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c, ctype, ldc, compute, algorithm
    ):  # fmt: skip
        assert min(m, n, k) > 0
        assert ldc >= max(1, m)
        assert atype == btype == ctype
        assert compute == (numbers.DOUBLE if ctype in (1, 5) else numbers.SINGLE)
        assert algorithm == -1
        assert (_number(alpha, compute), _number(beta, compute)) == (1, 0)
        itemsize = np.dtype(_DTYPES[atype]).itemsize
        elements = lda, ldb, ldc, k if opa else m, n if opb else k, m
        self.alignments.append(math.gcd(128, a, b, c, *[itemsize * each for each in elements]))
        wide = np.result_type({2: "f", 14: "f"}.get(atype, _DTYPES[atype]))
        x, y = _matrix(a, atype, opa, m, k, lda), _matrix(b, btype, opb, k, n, ldb)
        out = _view(c, _DTYPES[ctype], (m, n), (1, ldc))
        with np.errstate(invalid="ignore"):
            out[...] = (x.astype(wide) @ y.astype(wide)).astype(out.dtype)

    def _gemv(self, letter, trans, m, n, alpha, a, lda, x, incx, beta, y, incy):
        self.calls.append(f"{letter}gemv")
        code = _LETTERS[letter]
        compute = numbers.DOUBLE if letter in "dz" else numbers.SINGLE
        assert (_number(alpha, compute), _number(beta, compute)) == (1, 0)
        assert min(m, n, incx, incy) > 0
        rows, columns = (n, m) if trans else (m, n)
        matrix = _matrix(a, code, trans, rows, columns, lda)
        out = _view(y, _DTYPES[code], (rows,), (incy,))
        out[...] = matrix @ _view(x, _DTYPES[code], (columns,), (incx,))

    def __getattr__(self, name: str) -> Any:
        plain = name.removesuffix("_64")
        if plain[1:] == "gemv":
            return lambda handle, *arguments: self._gemv(plain[0], *arguments)
        if plain == name:
            raise AttributeError(name)
        self.calls.append(name)
        return getattr(self, plain)


class FakeProducts(cublas.Products):
    """The products of a device in host memory."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self.library = FakeCublas()
        self.scaled = FakeScaledProducts(device)

    @property
    def _handles(self) -> Any:
        return self

    def is_small(self, dtype: Any, rows: int, depth: int, columns: int) -> bool:
        """The stand-in computes all products."""
        return False

    def run(self, stream: int, function: Any, *addresses: int) -> None:
        """What `Handles.run` does."""
        function(0, *addresses)

    def kernel(self, dtype: Any, loop: Any, aligned: tuple[bool, bool]) -> cublas.LibraryProduct:
        return cublas.LibraryProduct(self._device, self, self.library, dtype, loop, aligned)


class Streamed(Buffer):
    """Memory on the legacy stream."""

    stream = 0


class Words:
    """Words for reports in memory of the process."""

    def __init__(self) -> None:
        self.in_use: list[Streamed] = []

    def take(self, count: int, stream: int, refusal: str = "") -> list[Streamed]:
        words = [Streamed(np.zeros(16, np.uint8), False) for _ in range(count)]
        self.in_use += words
        return words

    def read(self, words: list[Streamed], stream: int) -> list[int | None]:
        self.in_use = [word for word in self.in_use if word not in words]
        return [int(word.memory.view(np.int64)[0]) or None for word in words]

    def check(self) -> None:
        """Nothing is deferred."""


def _bytes(buffer: Any) -> np.ndarray:
    return buffer.memory.reshape(-1).view(np.uint8)


class Reporting:
    """A kernel with reports and gathers, which the host's backend does not have, node by node."""

    def __init__(self, expression: Any) -> None:
        self.expression = expression
        kinds = [("array", name) for name in expression.output_dtypes] + list(expression.inputs)
        self.operands = [(kind, dtype_named(name)) for kind, name in kinds]

    def bind(self, loop: Any) -> Any:
        slots = _slots(self, loop)  # type: ignore[arg-type]

        def view(slot: Any, buffer: Any, offset: int) -> Any:
            dtype, shift, strides = slot
            if strides is None:
                return dtype.type(buffer)
            return np.ndarray(loop.shape, dtype, _bytes(buffer), offset + shift, strides)

        def launch(stream: Any, *operands: Any) -> None:
            pairs = list(zip(operands[::2], operands[1::2], strict=True))
            out, *inputs = [view(slot, *pair) for slot, pair in zip(slots, pairs, strict=True)]
            values: list[Any] = []
            for node in self.expression.nodes:
                match node:
                    case ("input", place):
                        found = inputs[place]
                    case ("cast", argument, name):
                        target = dtype_named(name)
                        found = caster(values[argument].dtype, target)(values[argument], target, None)
                    case ("constant", number, name):
                        found = np.array(number, dtype_named(name))
                    case ("index",):
                        found = np.arange(out.size).reshape(out.shape)
                    case ("call", name, arguments, dtype, _):
                        given = [values[argument] for argument in arguments]
                        found = np.empty(np.broadcast_shapes(*map(np.shape, given)), dtype_named(dtype))
                        function_named(name, found.dtype)(*given, out=found)
                    case ("gather", place, distance):
                        (dtype, _, _), (buffer, offset) = slots[1 + place], pairs[1 + place]
                        places = offset // dtype.itemsize + values[distance]
                        assert (places >= 0).all(), "before the memory"
                        found = _bytes(buffer).view(dtype)[places]
                    case ("report", condition, value, place):
                        found = None
                        if values[condition].any():
                            inputs[place].flat[0] = values[value]
                    case _:
                        raise NotImplementedError(node[0])
                values.append(found)
            out[...] = values[self.expression.outputs[0]]

        return launch


BIND_THEMSELVES = (cublas.LibraryProduct, Reporting)
"""The kernels that bind themselves."""


class FakeGpu(Elsewhere):
    """NumPy's kernels in memory of the process, with a stand-in of cuBLAS."""

    index = 0

    def __init__(self) -> None:
        self.products = FakeProducts(self)
        self.call_writer = self
        self.index_errors = Words()

    def compile(self, expression: Any, loop_class: Any, aligned: Any) -> Any:
        if any(node[0] == "report" for node in expression.nodes):
            return Reporting(expression)
        return CPU.backend.compile(expression, loop_class, aligned)

    def allocate(self, nbytes: int, stream: Any = None) -> Streamed:
        """New memory holds NaN of each dtype, so that whoever reads it shows."""
        return Streamed(np.full(nbytes, 255, np.uint8), False)

    def from_numpy(self, array: np.ndarray, *, copy: bool, stream: Any = None) -> tuple[Streamed, int]:
        buffer, offset = super().from_numpy(array, copy=copy)
        return Streamed(buffer.memory, False), offset

    def join(self, *use: Any) -> None:
        """There is one stream."""

    def bind(self, kernel: Any, loop: Any) -> Any:
        return kernel.bind(loop) if isinstance(kernel, BIND_THEMSELVES) else CPU.backend.bind(kernel, loop)

    def bind_call(self, kernel: Any, loop: Any, rule: Any, signature: Any, gaps: Any) -> Any:
        if isinstance(kernel, cublas.LibraryProduct):
            return kernel.bind_call(loop, rule, signature, gaps)
        return _call(self.bind(kernel, loop), rule, signature, gaps)

    def bind_fused(self, *given: Any) -> None:
        """Return None: the host's launch would make memory without a stream."""

    def bind_steps(self, *given: Any) -> None:
        """Return None, as `bind_fused`."""

    def bind_new(self, kernel: Any, rule: Any) -> Any:
        return lambda loop, signature: self.bind_call(kernel, loop, rule, signature, ())


class FakeCublasLt:
    """The functions of cuBLASLt that `tilearray_cuda.libraries.cublaslt` calls, with the rules of 8-bit floats.

    Attributes
    ----------
    calls : list of (int, int, int, bool)
        The sizes of each product, and whether it had vectors of scales.
    layouts : dict
        The layouts that exist.
    takes_vectors : bool
        Whether scales may be vectors, as the library's version and the GPU decide.
    """

    takes_vectors = True

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, int, bool]] = []
        self.layouts: dict[int, tuple[int, int, int, int]] = {}
        self.descriptions: dict[int, dict[int, int]] = {}
        self._next = 1

    def _number(self) -> int:
        self._next += 1
        return self._next

    def matrix_layout_create(self, code: int, rows: int, columns: int, pitch: int) -> int:
        assert pitch >= rows
        self.layouts[number := self._number()] = (code, rows, columns, pitch)
        return number

    def matrix_layout_destroy(self, number: int) -> None:
        del self.layouts[number]

    def matmul_desc_create(self, compute: int, scale: int) -> int:
        assert (compute, scale) == (68, 0)
        self.descriptions[number := self._number()] = {}
        return number

    def matmul_desc_destroy(self, number: int) -> None:
        del self.descriptions[number]

    def matmul_desc_set_attribute(self, number: int, attribute: int, address: int, nbytes: int) -> None:
        assert nbytes == {3: 4, 17: 8, 18: 8, 25: 1, 31: 4, 32: 4}[attribute]
        self.descriptions[number][attribute] = int.from_bytes(ctypes.string_at(address, nbytes), "little")

    def matmul_preference_create(self) -> int:
        return self._number()

    def matmul_preference_destroy(self, number: int) -> None:
        """Nothing is kept."""

    def matmul_preference_set_attribute(self, number: int, attribute: int, address: int, nbytes: int) -> None:
        assert (attribute, nbytes) == (1, 8)

    def matmul_algo_get_heuristic(
        self, handle, description, a, b, c, d, preference, wanted, found, count
    ):  # fmt: skip
        assert wanted == 1
        self._check(description, a, b, c, d)
        ctypes.c_uint64.from_address(found).value = 7
        ctypes.c_int32.from_address(count).value = 1

    def _check(self, description: int, a: int, b: int, c: int, d: int) -> tuple[int, int, int]:
        told = self.descriptions[description]
        assert told[3] == 1
        assert told[25] == 0
        (kind_a, depth, rows, pitch_a), (kind_b, depth_too, columns, pitch_b) = self.layouts[a], self.layouts[b]
        kind_c, rows_too, columns_too, pitch_c = self.layouts[c]
        assert c == d
        assert (depth, rows, columns) == (depth_too, rows_too, columns_too)
        if told.get(31) and not (self.takes_vectors and told.get(17) and told.get(18)):
            raise RuntimeError("NOT_SUPPORTED (15): vectors of scales")
        if kind_a == kind_b == 29:
            raise RuntimeError("NOT_SUPPORTED (15): both are of float8_e5m2")
        assert {kind_a, kind_b} <= {28, 29}
        assert kind_c in (0, 2, 14)
        assert not any(size % 16 for size in (depth, rows, pitch_a, pitch_b, pitch_c))
        return rows, depth, columns

    def matmul(
        self, handle, description, alpha, a, of_a, b, of_b, beta, c, of_c, d, of_d, algorithm, workspace, nbytes, stream
    ):  # fmt: skip
        rows, depth, columns = self._check(description, of_a, of_b, of_c, of_d)
        assert (_number(alpha, 68), _number(beta, 68)) == (1, 0)
        assert ctypes.c_uint64.from_address(algorithm).value == 7
        assert (workspace, nbytes) == (4096, numbers.WORKSPACE)
        assert not any(address % 16 for address in (a, b, d))
        told = self.descriptions[description]
        vectors = told.get(31) == told.get(32) == 3
        self.calls.append((rows, depth, columns, vectors))
        kinds = {28: ml_dtypes.float8_e4m3fn, 29: ml_dtypes.float8_e5m2}
        x = _view(a, kinds[self.layouts[of_a][0]], (depth, rows), (1, self.layouts[of_a][3])).T
        y = _view(b, kinds[self.layouts[of_b][0]], (depth, columns), (1, self.layouts[of_b][3]))
        one = np.ones(1, "f")
        scale_a = _view(told[17], "f", (rows,) if vectors else (1,), (1,)) if told[17] else one
        scale_b = _view(told[18], "f", (columns,) if vectors else (1,), (1,)) if told[18] else one
        out = _view(d, _DTYPES[self.layouts[of_d][0]], (rows, columns), (1, self.layouts[of_d][3]))
        out[...] = (x.astype("f") @ y.astype("f") * scale_a[:, None] * scale_b).astype(out.dtype)


class FakeScaledProducts(cublaslt.ScaledProducts):
    """The products with scales of a device in host memory."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._library = FakeCublasLt()
        self._handles = self
        self._workspaces[0] = 4096

    def run(self, stream: int, function: Any, *arguments: Any) -> Any:
        """What the class does, or `Handles.run`."""
        if isinstance(function, cublaslt._Plan) and not isinstance(arguments[0], dict):
            return super().run(stream, function, *arguments)
        return function(0, *arguments)
