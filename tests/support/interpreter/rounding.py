"""Substitutes for libdevice's directed roundings and for PTX in Triton's interpreter.

The roundings are those of tests/support/oracles/rounding.py.

Instructions on words that hold four bytes are run one by one.
"""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

from support.interpreter.threads_of_ptx import run_in_threads
from support.oracles import rounding as exact

SUFFIXES = {"rz": "rz", "rm": "rd", "rp": "ru"}
OPERATIONS = {"add": exact.add, "mul": exact.multiply, "div": exact.divide, "sqrt": exact.sqrt, "fma": exact.fma}
PTX: dict[str, Any] = {
    "div": lambda x, y: np.divide(x, y),
    "rcp": lambda x: np.reciprocal(x),
    "sqrt": lambda x: np.sqrt(x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "ex2": lambda x: np.exp2(x),
    "lg2": lambda x: np.log2(x),
    "tanh": lambda x: np.tanh(x),
}

WORDS: dict[str, Any] = {
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "shl": lambda x, y: x << y,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "lop3": lambda *given: sum(_bits(given[:3], row) for row in range(8) if int(given[3]) >> row & 1),
    "shr": lambda x, y: x >> y,
    "mov": lambda x: x,
    "mul": lambda x, y: x * y,
    "mad": lambda x, y, z: x * y + z,
    "prmt": lambda x, y, selector: _permuted(x, y, int(selector)),
    "max": lambda *given: _of_pairs(np.maximum, given),  # with .NaN
    "min": lambda *given: _of_pairs(np.fmin, given),
    "fma": lambda *given: _rounded_pairs(lambda x, y, z: x * y + z, given),
    "abs": lambda x: x & np.uint32(0x7FFF7FFF),
    "set": lambda x, y: sum((a > b).astype(np.uint32) * np.uint32(0xFFFF0000 >> 16 * k) for k, (a, b) in _halves(x, y)),
    "shf": lambda low, high, bits: ((high.astype("u8") << np.uint64(32) | low) >> np.minimum(bits, 32)).astype("u4"),
}


def _bits(given: Any, row: int) -> Any:
    """Where the bits of three words are those of a row of a truth table."""
    x, y, z = (word if row >> place & 1 else ~word for place, word in zip((2, 1, 0), given, strict=True))
    return x & y & z


def _halves(*given: Any) -> Any:
    """The upper and the lower bfloat16 of words, as float32."""
    words = np.broadcast_arrays(*[np.atleast_1d(np.asarray(word, np.uint32)) for word in given])
    upper, lower = np.uint32(0xFFFF0000), np.uint32(16)
    return enumerate([[(w & upper).view(np.float32) for w in words], [(w << lower).view(np.float32) for w in words]])


def _of_pairs(function: Any, given: Any) -> Any:
    """What a function that is exact makes of pairs of bfloat16 in words."""
    with np.errstate(all="ignore"):
        upper, lower = [function(*pair).view(np.uint32) for _, pair in _halves(*given)]
    return upper | lower >> np.uint32(16)


def _rounded_pairs(function: Any, given: Any) -> Any:
    """What a function makes of pairs of bfloat16, rounded to bfloat16; float64 holds products, and sums near 128."""
    found: list[Any] = []
    for _, pair in _halves(*given):
        with np.errstate(all="ignore"):
            found.append(function(*[x.astype(np.float64) for x in pair]).astype(ml_dtypes.bfloat16))
    upper, lower = (pair.view(np.uint16).astype(np.uint32) for pair in found)
    return upper << np.uint32(16) | lower


def _permuted(x: Any, y: Any, selector: int) -> Any:
    """The bytes of two words that a selector names; a name from 8 on takes the sign of a byte."""
    found = np.zeros_like(x)
    for place in range(4):
        name = selector >> 4 * place & 15
        byte = (y if name & 4 else x) >> np.uint32(8 * (name & 3)) & np.uint32(255)
        found = (
            found | (byte >> np.uint32(7)) * np.uint32(255 << 8 * place)
            if name & 8
            else (found | byte << np.uint32(8 * place))
        )
    return found


def computed_on_words(asm: str, kind: Any, pack: int, arrays: Any) -> Any:
    """What instructions on words make of each element, or of each four, whose bytes share a register."""
    arrays = np.broadcast_arrays(*arrays)
    shape, size = arrays[0].shape, arrays[0].size
    fours = [np.resize(array.ravel(), -(-size // pack) * pack) for array in arrays]
    words = [word for four in fours for word in ([four.view(np.uint32)] if pack * four.itemsize == 4 else
             np.ascontiguousarray(four.reshape(-1, pack).T))]  # fmt: skip
    registers: dict[str, Any] = {f"${k + 1}": word for k, word in enumerate(words)}
    pattern = r"(\w+)(?:\.r\.clamp|\.NaN|\.lo|\.rn|\.gt\.u32)?\.(?:[bu]32|bf16x2) ([^;]+);"
    with np.errstate(over="ignore"):
        for name, operands in re.findall(pattern, asm):
            to, *sources = operands.split(", ")
            values = [registers[x] if x in registers else np.uint32(int(x, 0) & 0xFFFFFFFF) for x in sources]
            registers[to] = WORDS[name](*values)
    return registers["$0"].view(kind)[:size].reshape(shape)


def functions() -> dict[str, Any]:
    """libdevice's functions by name, on NumPy arrays."""
    found: dict[str, Any] = {}
    for mode, suffix in SUFFIXES.items():
        for name, operation in OPERATIONS.items():
            found[f"{name}_{suffix}"] = lambda *xs, f=operation, mode=mode: _with_positive_nan(f(*xs, mode))
        found[f"double2float_{suffix}"] = lambda x, mode=mode: exact.cast(x, "float32", mode)
        for name in ("ll2double", "ull2double"):
            found[f"{name}_{suffix}"] = lambda x, mode=mode: exact.cast(x, "float64", mode)
    return found


def _with_positive_nan(x: np.ndarray) -> np.ndarray:
    """NaN without a sign, as GPUs compute it; x86 gives it one."""
    return np.where(np.isnan(x), np.full_like(x, np.nan), x)


def _narrowed(x: np.ndarray, name: str) -> np.ndarray:
    """Return the codes of ``cvt.rn.satfinite``."""
    dtype = np.dtype(ml_dtypes.float8_e4m3fn if name == "e4m3" else ml_dtypes.float8_e5m2)
    largest = np.float32(ml_dtypes.finfo(dtype).max)
    with np.errstate(all="ignore"):
        return np.clip(x, -largest, largest).astype(dtype).view(np.uint8)


def _awaited(interpreter: Any, tl: Any, places: np.ndarray) -> np.ndarray:
    """Words that other programs store, once all are; a volatile load lets those programs run."""
    handle = interpreter.TensorHandle(places.astype(np.uint64), tl.pointer_type(tl.int64))
    words = np.zeros(places.shape, np.int64)
    while not words.all():
        words = interpreter.interpreter_builder.create_load(handle, None, True).data
    return words


def _counted(places: np.ndarray) -> np.ndarray:
    """How many elements of a warp have the place of the first one of them, and 0 for the others."""
    found = np.zeros(places.size, np.int32)
    for start in range(0, places.size, 32):
        _, first, counts = np.unique(places.ravel()[start : start + 32], return_index=True, return_counts=True)
        found[start + first] = counts
    return found.reshape(places.shape)


def mend(interpreter: Any, tl: Any, libdevice: Any) -> None:
    """Give the interpreter what it has not."""

    def on_tensors(function: Any) -> Any:
        def apply(*tensors: Any) -> Any:
            found = np.asarray(function(*np.broadcast_arrays(*(tensor.handle.data for tensor in tensors))))
            is_block = any(tensor.type.is_block() for tensor in tensors)
            scalar = getattr(tl, found.dtype.name)
            return tl.tensor(
                interpreter.TensorHandle(found, scalar),
                tl.block_type(scalar, list(found.shape)) if is_block else scalar,
            )

        return apply

    def inline_asm_elementwise(
        asm: str, constraints: str, args: Any, dtype: Any, is_pure: bool = True, pack: int = 1
    ) -> Any:
        if ".shared" in asm or "%tid.x" in asm:
            results = len(dtype) if isinstance(dtype, tuple) else 1
            given = np.broadcast_arrays(*[arg.handle.data for arg in args])
            found = run_in_threads(asm, results, pack, list(map(np.ascontiguousarray, given)), interpreter._interpreter)
            blocks = [on_tensors(lambda _, each=each: each)(args[0]) for each in found]
            return tuple(blocks) if isinstance(dtype, tuple) else blocks[0]
        converts = re.fullmatch(r"\{ \.reg \.b16 h; cvt\.(\w+)\.f16\.f32 h, \$1; cvt\.u32\.u16 \$0, h; \}", asm)
        if converts:
            assert (constraints, len(args), dtype) == ("=r,f", 1, tl.uint32)
            return on_tensors(lambda x: exact.cast(x, "float16", converts[1]).view(np.uint16).astype(np.uint32))(*args)
        narrows = re.search(r"cvt\.rn\.satfinite\.(e4m3|e5m2)x2\.f32 h, (\$4, \$3|\$1, \$1);", asm)
        if narrows:
            is_block = narrows[2] == "$4, $3"
            assert (constraints, dtype, pack) == (("=r,f,f,f,f", tl.uint8, 4) if is_block else ("=r,f", tl.uint32, 1))
            kind = np.uint8 if is_block else np.uint32
            return on_tensors(lambda x: _narrowed(x, narrows[1]).astype(kind))(*args)
        if "cvt.rn.f16x2.e4m3x2 t, h;" in asm:
            assert (constraints, dtype, pack) == ("=f,r", tl.float32, 1)
            return on_tensors(lambda x: x.astype(np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32))(*args)
        if constraints.startswith("=r,r"):
            bits = [arg.dtype.primitive_bitwidth for arg in args]
            assert constraints == "=r" + ",r" * sum(max(1, each * pack // 32) for each in bits)
            assert dtype.primitive_bitwidth * pack == 32
            assert all(each in (32 // pack, 32) for each in bits)
            kind = interpreter._get_np_dtype(dtype)
            found = on_tensors(lambda *arrays: computed_on_words(asm, kind, pack, arrays))(*args)
            type_ = tl.block_type(dtype, found.type.shape) if found.type.is_block() else dtype
            return tl.tensor(interpreter.TensorHandle(found.handle.data, dtype), type_)  # bfloat16 is uint16 in NumPy
        if " again: ld.relaxed.gpu.global.u64 $0, [$1];" in asm:
            assert (constraints, dtype, is_pure) == ("=&l,l", tl.int64, False)
            return on_tensors(lambda places: _awaited(interpreter, tl, places))(*args)
        if "match.any.sync.b64 lanes, $1, 0xffffffff;" in asm:
            assert (constraints, dtype, is_pure, pack) == ("=r,l", tl.int32, False, 1)
            return on_tensors(_counted)(*args)
        registers = ", ".join(f"${k}" for k in range(len(args) + 1))
        name, flushes = re.fullmatch(rf"(\w+)\.(?:full|approx)(\.ftz)?\.f32 {re.escape(registers)};", asm).groups()  # type: ignore[union-attr]
        assert (constraints, dtype) == (",".join(["=f", *["f"] * len(args)]), tl.float32)

        def computed(*xs: Any) -> Any:
            found = PTX[name](*map(exact.flushed, xs) if flushes else xs)
            return exact.flushed(found) if flushes else found

        return on_tensors(computed)(*args)

    def create_splat(self: Any, block: Any, value: Any) -> Any:
        """What two scalars compare to is bool; the interpreter takes it for a number of their dtype."""
        return interpreter.TensorHandle(np.full(block.shape, value.data, value.data.dtype), value.dtype.scalar)

    interpreter.InterpreterBuilder.create_splat = create_splat
    for name, function in functions().items():
        setattr(libdevice, name, on_tensors(function))
    tl.inline_asm_elementwise = inline_asm_elementwise
