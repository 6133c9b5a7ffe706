"""The text of a cast between two dtypes in registers: one rounding from the exact value, as on the host."""

from __future__ import annotations

from tilearray_cuda.dtypes import BITS, STORAGE

Value = tuple[str, ...]
"""What names a value in registers: one expression, or two for the parts of a complex one."""


class UnsupportedCastError(TypeError):
    """A conversion that kernels do not have (yet)."""


def cast_text(value: Value, source: str, target: str) -> Value:
    """Return expressions of `target` for a value of `source`.

    Examples
    --------
    >>> cast_text(("v",), "float32", "float16")
    ('v.to(tl.float16)',)
    >>> cast_text(("v",), "uint8", "complex64")
    ('v.to(tl.float32)', 'zeros_of(v.to(tl.float32))')
    """
    if source == target:
        return value
    before, after = STORAGE[source].kind, STORAGE[target].kind
    if after == "bool":
        return (_truth(value, source),)
    if after == "complex":
        part = "float32" if target == "complex64" else "float64"
        if before == "complex":
            other = "float32" if source == "complex64" else "float64"
            return _real(value[0], other, part), _real(value[1], other, part)
        real = _real(value[0], source, part)
        return real, f"zeros_of({real})"
    if before == "complex":
        raise UnsupportedCastError(f"{source} does not become {target}: the imaginary part would be lost")
    return (_real(value[0], source, target),)


def _truth(value: Value, source: str) -> str:
    if STORAGE[source].kind == "bits":
        _format(source)
        return f"({value[0]} & 0x7F) != 0"
    if source == "bfloat16":  # Triton's interpreter compares the bits of bfloat16
        value = cast_text(value, source, "float32")
    return " | ".join(f"({part} != 0)" for part in value)


def _real(value: str, source: str, target: str) -> str:
    if source == target:
        return value
    if STORAGE[source].kind == "bits":
        return _real(_decode(value, source), "float32", target)
    if STORAGE[target].kind == "bits":
        return _encode(_to_float32(value, source), target)
    if STORAGE[target].kind in ("int", "uint"):
        return _to_integer(value, source, target)
    return _to_float(value, source, target)


def _to_integer(value: str, source: str, target: str) -> str:
    storage = STORAGE[target]
    if STORAGE[source].kind != "float":
        return f"{value}.to({storage.register})"
    if source in ("float16", "bfloat16"):
        value = f"{value}.to(tl.float32)"
    bits = 8 * storage.itemsize
    if storage.kind == "uint":
        return f"float_to_uint({value}, {2**bits - 1}, {float(2**bits)!r}, {storage.register})"
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return f"float_to_int({value}, {low}, {high}, {float(low)!r}, {float(high + 1)!r}, {storage.register})"


def _to_float(value: str, source: str, target: str) -> str:
    register = STORAGE[target].register
    if target in ("float32", "float64"):
        return f"{value}.to({register})"
    if source == "float32":
        return f"{value}.to({register})"
    return f"{_to_float32(value, source)}.to({register})"


def _to_float32(value: str, source: str) -> str:
    """float32 of a value that is rounded further: exact where float32 holds it, else rounded to odd."""
    kind, itemsize = STORAGE[source].kind, STORAGE[source].itemsize
    if source == "float32":
        return value
    if source == "float64":
        return f"odd_float32({value})"
    if kind in ("int", "uint") and itemsize == 8:
        return f"odd_float32(odd_float64_{kind}({value}))"
    if kind in ("int", "uint") and itemsize == 4:
        return f"odd_float32({value}.to(tl.float64))"
    return f"{value}.to(tl.float32)"


def _format(name: str) -> tuple[int, ...]:
    if name not in BITS:
        raise UnsupportedCastError(f"{name} is moved but not converted on cuda; convert it on the host")
    return BITS[name]


def _decode(value: str, name: str) -> str:
    mantissa, bias, largest, _, _, infinity = _format(name)
    return f"bits8_to_float32({value}, {mantissa}, {bias}, {largest:#x}, {infinity:#x})"


def _encode(value: str, name: str) -> str:
    mantissa, bias, largest, beyond, nan, _ = _format(name)
    return f"float32_to_bits8({value}, {mantissa}, {bias}, {largest:#x}, {beyond:#x}, {nan:#x})"
