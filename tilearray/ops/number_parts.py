"""Rows of the op table: rounding, and the parts of numbers: sign, exponent, real and imaginary part.

Each row is the public function of its name. `tilearray.ops.arithmetic` explains rows, `tilearray.ops` is the table.
"""

from __future__ import annotations

from tilearray.dtypes import ARITHMETIC, info
from tilearray.ops.op import Op
from tilearray.ops.promotion_methods import Promotion
from tilearray.ops.row import ANY, NUMERIC, REAL, F, I

DEFAULT, INT_TO_FLOAT, ALWAYS_BOOL = Promotion.DEFAULT, Promotion.INT_TO_FLOAT, Promotion.ALWAYS_BOOL
COMPLEX_TO_FLOAT, ALWAYS_FLOAT = Promotion.COMPLEX_TO_FLOAT, Promotion.ALWAYS_FLOAT
ALWAYS_INT32 = Promotion.ALWAYS_INT32

_BITS = {
    row.name: f"tl.int{row.bits}, 0x{2 ** (row.bits - 1) - 1:X}, 0x{row.format.infinity or row.format.largest:X}"
    for row in map(info, ARITHMETIC)
    if row.format is not None
}
"""How kernels read a float as an integer: its type, the bits below the sign, and the largest code that is not NaN."""


def _on_bits(function: str, operands: str, of_bytes: str = "") -> dict[str, str]:
    """Return for each dtype the call of a device function on the bits of a float; 8-bit floats may have their own."""
    chosen = {name: of_bytes if of_bytes and name.startswith("float8") else function for name in _BITS}
    return {name: f"{chosen[name]}({operands}, {bits})" for name, bits in _BITS.items()}


# fmt: off
# name, summary, arity, kinds, promotion, then the special properties of the row

# rounding to integers
floor = Op("floor", "The largest integer <= x, in the dtype of x.", 1, I | F, DEFAULT, bool_in_numpy=True,
           triton={"any": "{x}", "float": "tl.math.floor({x})"},
           derivative=("0",),
           example=("ta.floor(ta.asarray([1.5, -1.5]))", "Array([ 1., -2.], dtype=float32, device='cpu')"))
ceil = Op("ceil", "The smallest integer >= x, in the dtype of x.", 1, I | F, DEFAULT, bool_in_numpy=True,
          triton={"any": "{x}", "float": "tl.math.ceil({x})"},
          derivative=("0",),
          example=("ta.ceil(ta.asarray([1.5, -1.5]))", "Array([ 2., -1.], dtype=float32, device='cpu')"))
trunc = Op("trunc", "x rounded toward 0 to an integer, in the dtype of x.", 1, I | F, DEFAULT, bool_in_numpy=True,
           triton={"any": "{x}", "float": "libdevice.trunc({x})"},
           derivative=("0",),
           example=("ta.trunc(ta.asarray([1.5, -1.5]))", "Array([ 1., -1.], dtype=float32, device='cpu')"))
nearest = Op("round", "The integer nearest to x, ties to even, in the dtype of x; complex numbers part by part.",
             1, NUMERIC, DEFAULT, ufunc="rint", part_of="round",
             triton={"any": "{x}", "float": "libdevice.rint({x})", "complex": "complex_round({x})"},
             derivative=("0",),
             example=("ta.round(ta.asarray([0.5, 1.5]))", "Array([0., 2.], dtype=float32, device='cpu')"))

# classes of floats
isnan = Op("isnan", "Whether a value is NaN.", 1, ANY, ALWAYS_BOOL,
           triton={"any": "{x} != {x}", "complex": "complex_isnan({x})"},
           derivative=(),
           example=("ta.isnan(ta.asarray([1.0, float('nan')]))", "Array([False,  True], dtype=bool, device='cpu')"))
isinf = Op("isinf", "Whether a value is infinite.", 1, ANY, ALWAYS_BOOL,
           triton={"any": "{x} != {x}", "float": "is_infinite({x})", "complex": "complex_isinf({x})"},
           derivative=(),
           example=("ta.isinf(ta.asarray([1.0, -float('inf')]))", "Array([False,  True], dtype=bool, device='cpu')"))
isfinite = Op("isfinite", "Whether a value is neither infinite nor NaN.", 1, ANY, ALWAYS_BOOL,
              triton={"any": "{x} == {x}", "float": "is_finite({x})", "complex": "complex_isfinite({x})"},
              derivative=(),
              example=("ta.isfinite(ta.asarray([1.0, float('nan')]))",
                       "Array([ True, False], dtype=bool, device='cpu')"))

# sign
sign = Op("sign", "-1, 0 or 1 with the sign of x, NaN for NaN; x / abs(x) for complex numbers.", 1, NUMERIC, DEFAULT,
          triton={"int": "sign_int({x})", "uint": "sign_int({x})", "float": "sign_float({x})",
                  "complex": "complex_sign({x})"},
          derivative=("0 if is_real(x) else where(x == 0, 0, (g - out * real(conj(out) * g)) / abs(x))",),
          example=("ta.sign(ta.asarray([-3, 0, 5]))", "Array([-1,  0,  1], dtype=int64, device='cpu')"))
signbit = Op("signbit", "Whether the sign bit is set, also for zeros and NaN.", 1, I | F, ALWAYS_BOOL, narrow=True,
             triton={"int": "{x} < 0", "uint": "{x} != {x}", **_on_bits("sign_bit", "{x}")},
             derivative=(),
             example=("ta.signbit(ta.asarray([0.0, -0.0]))", "Array([False,  True], dtype=bool, device='cpu')"))
copysign = Op("copysign", "The magnitude of x1 with the sign of x2.", 2, REAL, INT_TO_FLOAT, narrow=True,
              triton=_on_bits("copy_sign", "{x}, {y}"),
              derivative=("g * sign(x) * sign(out)", "0"),
              example=("ta.copysign(ta.asarray([1.0, 2.0]), -0.0)", "Array([-1., -2.], dtype=float32, device='cpu')"))
heaviside = Op("heaviside", "0 for x1 < 0, 1 for x1 > 0, x2 for x1 == 0.", 2, REAL, INT_TO_FLOAT,
               triton={"float": "heaviside({x}, {y})"},
               derivative=("0", "where(x == 0, g, 0)"),
               example=("ta.heaviside(ta.asarray([-2.0, 0.0, 2.0]), 0.5)",
                        "Array([0. , 0.5, 1. ], dtype=float32, device='cpu')"))

# significand and exponent
nextafter = Op("nextafter", "The next value after x1 toward x2, in the common dtype.", 2, REAL,
               INT_TO_FLOAT, narrow=True,
               triton=_on_bits("next_after", "{x}, {y}", of_bytes="next_code"),
               derivative=(),
               example=("ta.nextafter(ta.asarray([1.0]), 2.0)", "Array([1.0000001], dtype=float32, device='cpu')"))
ldexp = Op("ldexp", "x1 * 2**x2, in the dtype of x1; x2 is an integer.", 2, REAL, INT_TO_FLOAT, exponents=1,
           triton={"float": "libdevice.ldexp({x}, exponent_int32({y}))"},
           derivative=("ldexp(g, y)", ""),
           example=("ta.ldexp(ta.asarray([0.75]), 4)", "Array([12.], dtype=float32, device='cpu')"))
frexp_mantissa = Op("frexp_mantissa", "First result of frexp: x / 2**exponent, in [0.5, 1) or 0.", 1, REAL,
                    INT_TO_FLOAT, part_of="frexp",
                    triton={"float": "frexp_mantissa({x})"},
                    derivative=("ldexp(g, -frexp_exponent(x))",),
                    example=("ta.frexp(ta.asarray([12.0]))[0]", "Array([0.75], dtype=float32, device='cpu')"))
frexp_exponent = Op("frexp_exponent", "Second result of frexp: the exponent; 0 for 0, infinity and NaN.", 1, REAL,
                    ALWAYS_INT32, part_of="frexp",
                    triton={"float": "frexp_exponent({x})"},
                    derivative=(),
                    example=("ta.frexp(ta.asarray([12.0]))[1]", "Array([4], dtype=int32, device='cpu')"))

# complex numbers
real = Op("real", "The real part.", 1, NUMERIC, COMPLEX_TO_FLOAT, bool_in_numpy=True,
          triton={"any": "{x}", "complex": "complex_real({x})"},
          derivative=("g",),
          example=("ta.real(ta.asarray([3 + 4j]))", "Array([3.], dtype=float32, device='cpu')"))
imag = Op("imag", "The imaginary part, 0 for real numbers.", 1, NUMERIC, COMPLEX_TO_FLOAT, bool_in_numpy=True,
          triton={"any": "zero_like({x})", "complex": "complex_imag({x})"},
          derivative=("0 if is_real(x) else g * 1j",),
          example=("ta.imag(ta.asarray([3 + 4j]))", "Array([4.], dtype=float32, device='cpu')"))
conj = Op("conj", "The complex conjugate.", 1, NUMERIC, DEFAULT, ufunc="conjugate",
          triton={"any": "{x}", "complex": "complex_conj({x})"},
          derivative=("conj(g)",),
          example=("ta.conj(ta.asarray([3 + 4j]))", "Array([3.-4.j], dtype=complex64, device='cpu')"))
argument = Op("angle", "The angle of a complex number in radians; pi for negative real numbers.", 1, ANY, ALWAYS_FLOAT,
              part_of="angle", exact=False, domain=(-100.0, 100.0),
              triton={"float": "libdevice.atan2(zero_like({x}), {x})", "complex": "complex_angle({x})"},
              derivative=("0 if is_real(x) else where(x == 0, 0, g * 1j * x / square(abs(x)))",),
              example=("ta.angle(ta.asarray([1j]))", "Array([1.5707964], dtype=float32, device='cpu')"))
# fmt: on
