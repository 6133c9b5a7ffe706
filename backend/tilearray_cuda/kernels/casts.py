"""The text of a cast between two dtypes in registers: one rounding from the exact value, as on the host.

A directed rounding may take several steps: two roundings in one direction equal one. A rounding to nearest may not. So
a value with more bits than float32 is first rounded to odd, which no narrower float mistakes for a tie.
"""

from __future__ import annotations

from typing import NamedTuple

from tilearray_cuda.kernels.storage import BITS, STORAGE, Bits

Value = tuple[str, ...]
"""The names of a value in registers: one expression, or two for the parts of a complex one."""

DIRECTED = {"rz": "rz", "rm": "rd", "rp": "ru"}
"""Directed roundings, and libdevice's names of them."""
MODES = ("rn", *DIRECTED, "ra")
INTEGRAL = {
    "rzi": "{}", "rni": "libdevice.rint({})", "rmi": "libdevice.floor({})", "rpi": "libdevice.ceil({})",
    "rai": "round_away({})",
}  # fmt: skip
"""Roundings to integers, and the functions that round to an integral float; the cast itself truncates."""
NARROW: dict[str, Bits] = {
    "float16": Bits(10, 15, 0x7BFF, 0x7C00, 0x7E00, 0x7C00),
    "bfloat16": Bits(7, 127, 0x7F7F, 0x7F80, 0x7FC0, 0x7F80),
    **BITS,
}
COMPUTED = ("float8_e4m3fn", "float8_e5m2")
"""The formats of 8 bits that have arithmetic; the others are cast alone."""
FIRST_WITH_FLOAT8 = 89
"""The first architecture with instructions that cast float32 to the formats of `COMPUTED`, saturating."""
LARGEST = {"float32": 2.0**128 - 2.0**104, "float64": 2.0**1023 * (2 - 2.0**-52)}


class UnsupportedCastError(TypeError):
    """A conversion that kernels lack."""


class Rounding(NamedTuple):
    """How a value becomes one of a dtype that does not hold it."""

    mode: str = "rn"
    saturate: bool = False
    arch: int = 80


def cast_text(
    value: Value, source: str, target: str, mode: str = "rn", saturate: bool = False, arch: int = 80
) -> Value:
    """Return expressions of `target` for a value of `source`.

    Parameters
    ----------
    value : tuple of str
        The expressions of the value.
    source, target : str
        The names of dtypes.
    mode : {"rn", "rz", "rm", "rp", "ra", "rzi", "rni", "rmi", "rpi", "rai"}
        The rounding of a float target: to nearest even, toward zero, down, up, to nearest with ties away from zero.
        A float becomes an integer in the modes that end in "i"; "rn" and "rz" mean "rzi".
    saturate : bool
        Whether a value beyond the range of `target` becomes its largest finite float, or its nearest integer.
    arch : int
        The architecture, such as 90: some have instructions for casts to float8.

    Raises
    ------
    UnsupportedCastError
        If kernels lack the conversion, or this mode of it.

    Examples
    --------
    >>> cast_text(("v",), "float32", "float16")
    ('v.to(tl.float16)',)
    >>> cast_text(("v",), "uint8", "complex64")
    ('v.to(tl.float32)', 'zeros_of(v.to(tl.float32))')
    >>> cast_text(("v",), "float64", "float32", "rm")
    ('libdevice.double2float_rd(v)',)
    """
    if source == target and not saturate:
        return value
    how = Rounding(mode, saturate, arch)
    before, after = STORAGE[source].kind, STORAGE[target].kind
    if after == "bool":
        return (_truth(value, source),)
    if after == "complex":
        part = "float32" if target == "complex64" else "float64"
        if before == "complex":
            other = "float32" if source == "complex64" else "float64"
            return _real(value[0], other, part, how), _real(value[1], other, part, how)
        real = _real(value[0], source, part, how)
        return real, f"zeros_of({real})"
    if before == "complex":
        raise UnsupportedCastError(f"{source} does not become {target}: the imaginary part would be lost")
    return (_real(value[0], source, target, how),)


def _truth(value: Value, source: str) -> str:
    if STORAGE[source].kind == "bits":
        return f"({value[0]} & 0x7F) != 0" if source in COMPUTED else f"{_decode(value[0], source)} != 0"
    if source == "bfloat16":  # Triton's interpreter compares the bits of bfloat16
        value = cast_text(value, source, "float32")
    return " | ".join(f"({part} != 0)" for part in value)


def _real(value: str, source: str, target: str, how: Rounding) -> str:
    if source == target and not how.saturate:
        return value
    if STORAGE[source].kind == "bits":
        decoded = _decode(value, source)
        if target == "float32":
            return _clamped(decoded, target) if how.saturate else decoded
        return _real(decoded, "float32", target, how)
    if STORAGE[target].kind in ("int", "uint"):
        return _to_integer(value, source, target, how)
    if how.mode not in MODES:
        raise UnsupportedCastError(f"{source} becomes {target} in modes {', '.join(MODES)}, not in {how.mode!r}")
    if target in LARGEST:
        return _to_wide(value, source, target, how)
    return _to_narrow(_to_float32(value, source), target, how)


def _to_integer(value: str, source: str, target: str, how: Rounding) -> str:
    storage, kind = STORAGE[target], STORAGE[source].kind
    low, high = _limits(target)
    if kind != "float":
        clamps = how.saturate and kind != "bool"
        return f"{_clamped_integer(value, source, target) if clamps else value}.to({storage.register})"
    if how.mode not in ("rn", "rz", *INTEGRAL):
        raise UnsupportedCastError(f"{source} becomes {target} in modes {', '.join(INTEGRAL)}, not in {how.mode!r}")
    if source in ("float16", "bfloat16"):
        value = f"{value}.to(tl.float32)"
    value = INTEGRAL.get(how.mode, "{}").format(value)
    if storage.kind == "uint":
        return f"float_to_uint({value}, {high}, {float(high + 1)!r}, {storage.register})"
    return f"float_to_int({value}, {low}, {high}, {float(low)!r}, {float(high + 1)!r}, {storage.register})"


def _limits(name: str) -> tuple[int, int]:
    bits = 8 * STORAGE[name].itemsize
    return (0, 2**bits - 1) if STORAGE[name].kind == "uint" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _clamped_integer(value: str, source: str, target: str) -> str:
    (low, high), (least, greatest) = _limits(source), _limits(target)
    if least <= low and high <= greatest:
        return value
    return f"clamp_int({value}, {max(low, least)}, {min(high, greatest)})"


def _to_wide(value: str, source: str, target: str, how: Rounding) -> str:
    """Return a float32 or float64. Only float64 and integers are rounded; only floats may exceed the largest one."""
    register, kind, itemsize = STORAGE[target].register, STORAGE[source].kind, STORAGE[source].itemsize
    clamps = how.saturate and kind == "float"
    if source == target:
        return _clamped(value, target)
    if source == "float64":
        return _double_to_float(_clamped(value, target) if clamps else value, how)
    if kind == "float" or itemsize < 4 or how.mode == "rn" or (itemsize == 4 and target == "float64"):
        widened = f"{value}.to({register})"
        return _clamped(widened, target) if clamps else widened
    if itemsize == 4:
        return _double_to_float(f"{value}.to(tl.float64)", how)
    if target == "float32" and how.mode == "ra":
        return _double_to_float(f"odd_float64_{kind}({value})", how)
    if how.mode == "ra":
        raise UnsupportedCastError(f"{source} becomes float64 in modes rn, rz, rm, rp, not in 'ra'")
    double = f"libdevice.{'ull' if kind == 'uint' else 'll'}2double_{DIRECTED[how.mode]}({value})"
    return double if target == "float64" else _double_to_float(double, how)


def _double_to_float(value: str, how: Rounding) -> str:
    if how.mode == "rn":
        return f"{value}.to(tl.float32)"
    if how.mode == "ra":
        return f"float64_to_float32_away({value})"
    return f"libdevice.double2float_{DIRECTED[how.mode]}({value})"


def _to_narrow(value: str, target: str, how: Rounding) -> str:
    """Return a float narrower than float32, from a float32 that is exact or rounded to odd."""
    encodes, register = STORAGE[target].kind == "bits", STORAGE[target].register
    mantissa, bias, largest, beyond, nan, *_ = NARROW[target]
    if how.mode == "rn" and target in COMPUTED and how.arch >= FIRST_WITH_FLOAT8:
        return f"float32_to_{target.removeprefix('float8_')}({value}, {how.saturate})"
    if how.mode == "rn" and target == "float4_e2m1fn":
        return f"float32_to_e2m1fn({value})"
    if how.saturate:
        value = _clamped(value, target)
    if target == "float8_e8m0fnu":
        return f'float32_to_scale({value}, "{how.mode}")'
    if how.mode == "rn":
        return _encode(value, target) if encodes else f"{value}.to({register})"
    if target == "float16" and how.mode in DIRECTED:
        return f'float32_to_float16({value}, "{how.mode}")'
    width = 8 * STORAGE[target].itemsize
    codes = f"{largest:#x}, {beyond:#x}, {nan:#x}"
    bits = f'float32_to_bits({value}, "{how.mode}", {width}, {mantissa}, {bias}, {codes}).to(tl.uint{width})'
    return _coded(bits, value, target) if encodes else f"{bits}.to({register}, bitcast=True)"


def _clamped(value: str, target: str) -> str:
    if target in NARROW:
        mantissa, bias, largest, *_ = NARROW[target]
        fraction = largest & (2**mantissa - 1)
        return f"clamp_float({value}, {(1 + fraction / 2**mantissa) * 2.0 ** ((largest >> mantissa) - bias)!r})"
    return f"clamp_float({value}, {LARGEST[target]!r})"


def _to_float32(value: str, source: str) -> str:
    """Return float32 of a value that is rounded further: exact if float32 holds it, else rounded to odd."""
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


def _decode(value: str, name: str) -> str:
    mantissa, bias, largest, _, _, infinity, signless = NARROW[name]
    if name == "float8_e8m0fnu":
        return f"scale_to_float32({value})"
    code = f"bits8_of_bits4({value})" if name == "float4_e2m1fn" else value
    decoded = f"bits8_to_float32({code}, {mantissa}, {bias}, {largest:#x}, {infinity:#x})"
    return f"nan_of_negative_zero({decoded})" if signless else decoded


def _encode(value: str, name: str) -> str:
    mantissa, bias, largest, beyond, nan, *_ = NARROW[name]
    return _coded(f"float32_to_bits8({value}, {mantissa}, {bias}, {largest:#x}, {beyond:#x}, {nan:#x})", value, name)


def _coded(bits: str, value: str, name: str) -> str:
    """Return the code of a format for the bits of one with a sign in bit 7 and two zeros."""
    if name == "float4_e2m1fn":
        return f"bits4_of_bits8({bits})"
    return f"bits8_of_one_zero({bits}, {value})" if NARROW[name].signless else bits
