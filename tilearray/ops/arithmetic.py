"""Rows of the op table: arithmetic, bits, comparison, logic and selection.

A row is the public function of its name. It is also the source of its operator, its documentation, its tests and its
kernels. To add an operation, add a row, name its function in the backends, and add an oracle to the tests: CONTRIBUTING
lists the steps. Mathematical functions are in `tilearray.ops.elementary`. Rounding, signs and other parts of numbers
are in `tilearray.ops.number_parts`. Public functions that combine several rows are in `tilearray.ops.composed`.
"""

from __future__ import annotations

import numpy as np

from tilearray import dtypes
from tilearray.engine.context import STATE
from tilearray.ops.op import Op
from tilearray.ops.options import Directed, DirectedOrFast, Extreme, directed
from tilearray.ops.promotion_methods import Promotion
from tilearray.ops.row import ANY, NUMERIC, REAL, B, F, I, Row
from tilearray.promotion.scalars import Number

DEFAULT, NO_OPMATH, BITWISE = Promotion.DEFAULT, Promotion.NO_OPMATH, Promotion.BITWISE
TRUE_DIVISION, ALWAYS_BOOL, TRUTH = Promotion.TRUE_DIVISION, Promotion.ALWAYS_BOOL, Promotion.TRUTH
COMPLEX_TO_FLOAT, BOOL_TO_LONG = Promotion.COMPLEX_TO_FLOAT, Promotion.BOOL_TO_LONG
FLOAT_TO_BOOL, FLOAT64 = Promotion.FLOAT_TO_BOOL, Promotion.FLOAT64


def _refuse_negative_exponent(op: Row, position: int, number: Number, dtype: np.dtype) -> None:
    """Raise ValueError if the base is an integer and the exponent is a negative Python number."""
    if position == 1 and dtypes.info(dtype).kind in ("int", "uint") and isinstance(number, int) and number < 0:
        raise ValueError(
            f"{op.name}: Integers to negative integer powers are not allowed, got {number}; "
            f"write x.astype({STATE.get().semantics.defaults['float'].name!r}) ** {number}"
        )


# NumPy's quotient of an infinity is NaN, and -1 below zero for an infinite divisor.
_INFINITE_DIVISOR_BELOW_ZERO = "is_infinite({y}) & ((({x} < 0) & ({y} > 0)) | (({x} > 0) & ({y} < 0)))"
_FLOOR_DIVIDE_IN_NUMPY = (
    "tl.where(is_infinite({x}) & ({y} != 0), {x} - {x}, "
    f"tl.where({_INFINITE_DIVISOR_BELOW_ZERO}, zero_like({{x}}) - 1, floor_divide_float({{x}}, {{y}})))"
)

# fmt: off
# name, summary, arity, kinds, promotion, then the special properties of the row

# arithmetic
add = Op("add", "Sum; for bool, logical or.", 2, ANY, DEFAULT, "+",
         triton={"any": "{x} + {y}", "bool": "{x} | {y}", "complex": "complex_add({x}, {y})",
                 **dict.fromkeys(("int8", "uint8"), "add_bytes({x}, {y})")},
         options=Directed(directed("libdevice.add_{mode}({x}, {y})"), flush_to_zero=True),
         derivative=("g", "g"),
         example=("ta.add(ta.asarray([1, 2]), 10)", "Array([11, 12], dtype=int64, device='cpu')"))
subtract = Op("subtract", "Difference.", 2, NUMERIC, DEFAULT, "-",
              triton={"any": "{x} - {y}", "complex": "complex_subtract({x}, {y})",
                      **dict.fromkeys(("int8", "uint8"), "subtract_bytes({x}, {y})")},
              options=Directed(directed("libdevice.add_{mode}({x}, {y} * -1.0)"), flush_to_zero=True),
              derivative=("g", "-g"),
              example=("ta.subtract(ta.asarray([1, 2]), 10)", "Array([-9, -8], dtype=int64, device='cpu')"))
multiply = Op("multiply", "Product; for bool, logical and.", 2, ANY, DEFAULT, "*",
              triton={"any": "{x} * {y}", "bool": "{x} & {y}", "complex": "complex_multiply({x}, {y})"},
              options=Directed(directed("libdevice.mul_{mode}({x}, {y})"), flush_to_zero=True),
              derivative=("g * conj(y)", "g * conj(x)"),
              example=("ta.multiply(ta.asarray([1, 2]), 10)", "Array([10, 20], dtype=int64, device='cpu')"))
divide = Op("divide", "True quotient; integers give the default float.", 2, ANY, TRUE_DIVISION, "/",
            triton={"float32": "tl.math.div_rn({x}, {y})", "float": "{x} / {y}", "complex": "complex_divide({x}, {y})"},
            options=DirectedOrFast(directed("libdevice.div_{mode}({x}, {y})")
                                   | {"full": "divide_full({x}, {y})", "approx": "divide_approx({x}, {y})"},
                                   {"full": "2 ulp", "approx": "2 ulp where abs(x2) is in [2**-126, 2**126]"},
                                   flush_to_zero=True),
            derivative=("g / conj(y)", "-(g / conj(y)) * conj(out)"),
            example=("ta.divide(ta.asarray([1, 2]), 4)", "Array([0.25, 0.5 ], dtype=float32, device='cpu')"))
floor_divide = Op("floor_divide", "Quotient rounded down (toward zero for the integers of C-like semantics).",
                  2, I | F, DEFAULT, "//", truncating="floor_divide_trunc", in_numpy="floor_divide_numpy",
                  triton={"int": "floor_divide_int({x}, {y})", "uint": "divide_uint({x}, {y})",
                          "trunc int": "truncate_divide_int({x}, {y})", "float": "floor_divide_float({x}, {y})",
                          "numpy float": _FLOOR_DIVIDE_IN_NUMPY},
                  derivative=("0", "0"),
                  example=("ta.floor_divide(ta.asarray([7, -7]), 2)", "Array([ 3, -4], dtype=int64, device='cpu')"))
remainder = Op("remainder", "Remainder of floor division, with the sign of x2 (in C-like semantics the sign of x1).",
               2, I | F, DEFAULT, "%", truncating="remainder_trunc",
               triton={"int": "remainder_int({x}, {y})", "uint": "remainder_uint({x}, {y})",
                       "trunc int": "truncate_remainder_int({x}, {y})", "float": "remainder_float({x}, {y})"},
               derivative=("g", "-g * floor_divide(x, y)"),
               example=("ta.remainder(ta.asarray([7, -7]), 2)", "Array([1, 1], dtype=int64, device='cpu')"))
pow = Op("pow", "Power; integers wrap, and only 1 and -1 have negative powers.", 2, NUMERIC, DEFAULT, "**",
         ufunc="power", exact=False, domain=(0.1, 10.0), refuse_scalar=_refuse_negative_exponent,
         in_numpy="pow_numpy",
         triton={"int": "power_int({x}, {y})", "uint": "power_uint({x}, {y})", "float": "libdevice.pow({x}, {y})",
                 "float by number": "power_by_number({x}, {y})", "complex": "complex_pow({x}, {y})"},
         derivative=("where(y == 0, 0, g * conj(y * pow(x, y - 1)))",
                     "where((x == 0) & (real(y) >= 0), 0, g * conj(out * log(x)))"),
         example=("ta.pow(ta.asarray([2, 3]), 2)", "Array([4, 9], dtype=int64, device='cpu')"))
float_power = Op("float_power", "Power, computed in float64 or complex128.", 2, ANY, FLOAT64, exact=False,
                 domain=(0.1, 10.0),
                 triton={"float": "libdevice.pow({x}, {y})", "float by number": "power_by_number({x}, {y})",
                         "complex": "complex_pow({x}, {y})"},
                 derivative=("where(y == 0, 0, g * conj(y * float_power(x, y - 1)))",
                             "where((x == 0) & (real(y) >= 0), 0, g * conj(out * log(x)))"),
                 example=("ta.float_power(ta.asarray([2, 3]), -1)",
                          "Array([0.5       , 0.33333333], dtype=float64, device='cpu')"))
fmod = Op("fmod", "Remainder of division toward zero, with the sign of x1.", 2, I | F, DEFAULT,
          triton={"int": "truncate_remainder_int({x}, {y})", "uint": "remainder_uint({x}, {y})",
                  "float": "libdevice.fmod({x}, {y})"},
          derivative=("g", "-g * sign(x) * sign(y) * floor_divide(abs(x), abs(y))"),
          example=("ta.fmod(ta.asarray([7, -7]), 2)", "Array([ 1, -1], dtype=int64, device='cpu')"))
gcd = Op("gcd", "Greatest common divisor, not negative; that of x and 0 is abs(x).", 2, I, DEFAULT,
         triton={"any": "common_divisor({x}, {y})"},
         derivative=(),
         example=("ta.gcd(ta.asarray([12, 18]), 8)", "Array([4, 2], dtype=int64, device='cpu')"))
lcm = Op("lcm", "Least common multiple, not negative, wrapping.", 2, I, DEFAULT,
         triton={"any": "common_multiple({x}, {y})"},
         derivative=(),
         example=("ta.lcm(ta.asarray([4, 6]), 6)", "Array([12,  6], dtype=int64, device='cpu')"))
fma = Op("fma", "x1 * x2 + x3; floats are rounded once, to float32 or wider.", 3, I | F, DEFAULT,
         triton={"any": "{x} * {y} + {z}", "float": "libdevice.fma({x}, {y}, {z})"},
         options=Directed(directed("libdevice.fma_{mode}({x}, {y}, {z})"), flush_to_zero=True),
         derivative=("g * y", "g * x", "g"),
         example=("ta.fma(ta.asarray([1.0, 2.0]), 3, 0.5)", "Array([3.5, 6.5], dtype=float32, device='cpu')"))
reciprocal = Op("reciprocal", "1 / x; integers give the default float.", 1, ANY, TRUE_DIVISION,
                triton={"int": "tl.where(({x} == 1) | ({x} == -1), {x}, zero_like({x}))",
                        "uint": "tl.where({x} == 1, {x}, zero_like({x}))",
                        "float": "libdevice.rcp_rn({x})", "complex": "complex_reciprocal({x})"},
                derivative=("-g * conj(out * out)",),
                example=("ta.reciprocal(ta.asarray([2, 4]))", "Array([0.5 , 0.25], dtype=float32, device='cpu')"))
negative = Op("negative", "Negation; unsigned integers wrap.", 1, NUMERIC, DEFAULT, "-x",
              triton={"any": "0 - {x}", "float": "{x} * -1.0", "complex": "complex_negative({x})"},
              derivative=("-g",),
              example=("ta.negative(ta.asarray([1, -2]))", "Array([-1,  2], dtype=int64, device='cpu')"))
positive = Op("positive", "A copy of the values.", 1, NUMERIC, DEFAULT, "+x",
              triton={"any": "{x}"},
              derivative=("g",),
              example=("ta.positive(ta.asarray([1, -2]))", "Array([ 1, -2], dtype=int64, device='cpu')"))
abs = Op("abs", "Absolute value; for complex, the modulus.", 1, NUMERIC, COMPLEX_TO_FLOAT, "abs(x)", ufunc="absolute",
         bool_in_numpy=True,
         triton={"any": "tl.abs({x})", "bool": "{x}", "uint": "{x}", "complex": "complex_abs({x})"},
         derivative=("g * sign(x)",),
         example=("ta.abs(ta.asarray([3 + 4j]))", "Array([5.], dtype=float32, device='cpu')"))
square = Op("square", "Product with itself; bool becomes the default integer.", 1, ANY, BOOL_TO_LONG,
            triton={"any": "{x} * {x}", "complex": "complex_square({x})"},
            derivative=("2 * g * conj(x)",),
            example=("ta.square(ta.asarray([True, False]))", "Array([1, 0], dtype=int64, device='cpu')"))

# bits
bitwise_and = Op("bitwise_and", "Bitwise and; for bool, logical and.", 2, B | I, BITWISE, "&",
                 triton={"any": "{x} & {y}"},
                 derivative=(),
                 example=("ta.bitwise_and(ta.asarray([6, 5]), 4)", "Array([4, 4], dtype=int64, device='cpu')"))
bitwise_or = Op("bitwise_or", "Bitwise or; for bool, logical or.", 2, B | I, BITWISE, "|",
                triton={"any": "{x} | {y}"},
                derivative=(),
                example=("ta.bitwise_or(ta.asarray([6, 5]), 1)", "Array([7, 5], dtype=int64, device='cpu')"))
bitwise_xor = Op("bitwise_xor", "Bitwise exclusive or.", 2, B | I, BITWISE, "^",
                 triton={"any": "{x} ^ {y}"},
                 derivative=(),
                 example=("ta.bitwise_xor(ta.asarray([6, 5]), 1)", "Array([7, 4], dtype=int64, device='cpu')"))
bitwise_invert = Op("bitwise_invert", "Every bit inverted; for bool, logical not.", 1, B | I, NO_OPMATH, "~x",
                    ufunc="invert",
                    triton={"any": "~{x}"},
                    derivative=(),
                    example=("ta.bitwise_invert(ta.asarray([0, 5]))", "Array([-1, -6], dtype=int64, device='cpu')"))
bitwise_left_shift = Op("bitwise_left_shift", "Bits shifted left; a count beyond the width gives 0.",
                        2, I, NO_OPMATH, "<<", ufunc="left_shift",
                        triton={"any": "shift_left({x}, {y}, {width})"},
                        derivative=(),
                        example=("ta.bitwise_left_shift(ta.asarray([1, 3]), 2)",
                                 "Array([ 4, 12], dtype=int64, device='cpu')"))
bitwise_right_shift = Op("bitwise_right_shift", "Bits shifted right; the sign is kept.", 2, I, NO_OPMATH, ">>",
                         ufunc="right_shift",
                         triton={"int": "shift_right_int({x}, {y}, {width})",
                                 "uint": "shift_right_uint({x}, {y}, {width})"},
                         derivative=(),
                         example=("ta.bitwise_right_shift(ta.asarray([8, -8]), 2)",
                                  "Array([ 2, -2], dtype=int64, device='cpu')"))

# comparison
equal = Op("equal", "Whether the operands are equal; integers compare exactly.", 2, ANY, ALWAYS_BOOL, "==",
           triton={"any": "{x} == {y}", "complex": "complex_equal({x}, {y})"},
           derivative=(),
           example=("ta.equal(ta.asarray([1, 2]), 2)", "Array([False,  True], dtype=bool, device='cpu')"))
not_equal = Op("not_equal", "Whether the operands differ.", 2, ANY, ALWAYS_BOOL, "!=",
               triton={"any": "{x} != {y}", "complex": "complex_not_equal({x}, {y})"},
               derivative=(),
               example=("ta.not_equal(ta.asarray([1, 2]), 2)", "Array([ True, False], dtype=bool, device='cpu')"))
less = Op("less", "Whether x1 < x2.", 2, REAL, ALWAYS_BOOL, "<",
          triton={"any": "{x} < {y}"},
          derivative=(),
          example=("ta.less(ta.asarray([1, 2]), 2)", "Array([ True, False], dtype=bool, device='cpu')"))
less_equal = Op("less_equal", "Whether x1 <= x2.", 2, REAL, ALWAYS_BOOL, "<=",
                triton={"any": "{x} <= {y}"},
                derivative=(),
                example=("ta.less_equal(ta.asarray([1, 2]), 1)", "Array([ True, False], dtype=bool, device='cpu')"))
greater = Op("greater", "Whether x1 > x2.", 2, REAL, ALWAYS_BOOL, ">",
             triton={"any": "{x} > {y}"},
             derivative=(),
             example=("ta.greater(ta.asarray([1, 2]), 300)", "Array([False, False], dtype=bool, device='cpu')"))
greater_equal = Op("greater_equal", "Whether x1 >= x2.", 2, REAL, ALWAYS_BOOL, ">=",
                   triton={"any": "{x} >= {y}"},
                   derivative=(),
                   example=("ta.greater_equal(ta.asarray([1, 2]), 2)",
                            "Array([False,  True], dtype=bool, device='cpu')"))

# logic
logical_and = Op("logical_and", "Whether both operands are true; NaN and all values but 0 are true.", 2, ANY, TRUTH,
                 triton={"any": "{x} & {y}"},
                 derivative=(),
                 example=("ta.logical_and(ta.asarray([0, 3]), True)",
                          "Array([False,  True], dtype=bool, device='cpu')"))
logical_or = Op("logical_or", "Whether at least one operand is true.", 2, ANY, TRUTH,
                triton={"any": "{x} | {y}"},
                derivative=(),
                example=("ta.logical_or(ta.asarray([0, 3]), False)", "Array([False,  True], dtype=bool, device='cpu')"))
logical_xor = Op("logical_xor", "Whether exactly one operand is true.", 2, ANY, TRUTH,
                 triton={"any": "{x} ^ {y}"},
                 derivative=(),
                 example=("ta.logical_xor(ta.asarray([0, 3]), True)",
                          "Array([ True, False], dtype=bool, device='cpu')"))
logical_not = Op("logical_not", "Whether the operand is 0.", 1, ANY, TRUTH,
                 triton={"any": "~{x}"},
                 derivative=(),
                 example=("ta.logical_not(ta.asarray([0, 3]))", "Array([ True, False], dtype=bool, device='cpu')"))

# selection
minimum = Op("minimum", "The smaller operand; NaN if either is NaN.", 2, REAL, DEFAULT,
             triton={"any": "lesser({x}, {y})", "bool": "{x} & {y}"},
             options=Extreme(flush_to_zero=True, ignoring_nan="minimum_number({x}, {y})",
                             derivative_ignoring_nan=("where(x == y, g / 2, where((x < y) | isnan(y), g, 0))",
                                                      "where(x == y, g / 2, where((y < x) | isnan(x), g, 0))")),
             derivative=("where(x == y, g / 2, where(x > y, 0, g))", "where(x == y, g / 2, where(y > x, 0, g))"),
             example=("ta.minimum(ta.asarray([1, 5]), 3)", "Array([1, 3], dtype=int64, device='cpu')"))
maximum = Op("maximum", "The larger operand; NaN if either is NaN.", 2, REAL, DEFAULT,
             triton={"any": "greater({x}, {y})", "bool": "{x} | {y}"},
             options=Extreme(flush_to_zero=True, ignoring_nan="maximum_number({x}, {y})",
                             derivative_ignoring_nan=("where(x == y, g / 2, where((x > y) | isnan(y), g, 0))",
                                                      "where(x == y, g / 2, where((y > x) | isnan(x), g, 0))")),
             derivative=("where(x == y, g / 2, where(x < y, 0, g))", "where(x == y, g / 2, where(y < x, 0, g))"),
             example=("ta.maximum(ta.asarray([1, 5]), 3)", "Array([3, 5], dtype=int64, device='cpu')"))
choose = Op("where", "x2 where x1 is true, else x3.", 3, ANY, NO_OPMATH, masks=1, part_of="where",
            triton={"any": "tl.where({x}, {y}, {z})", "complex": "complex_where({x}, {y}, {z})"},
            derivative=("", "where(x, g, 0)", "where(x, 0, g)"),
            example=("ta.where(ta.asarray([True, False]), 1, ta.asarray([10, 20]))",
                     "Array([ 1, 20], dtype=int64, device='cpu')"))
clamp = Op("clip", "The nearest value to x1 within [x2, x3]; NaN if any is NaN.", 3, I | F, DEFAULT, part_of="clip",
           bool_in_numpy=True,
           triton={"bool": "({x} | {y}) & {z}", "any": "lesser(greater({x}, {y}), {z})"},
           derivative=("where((y <= x) & (x <= z), g, 0)",
                       "where((x < y) & (y < z), g, 0)",
                       "where((x > z) | (z < y), g, 0)"),
           example=("ta.clip(ta.asarray([1, 5, 9]), 2, 6)", "Array([2, 5, 6], dtype=int64, device='cpu')"))
close = Op("isclose", "Whether x1 == x2 or abs(x1 - x2) <= x4 + x3 * abs(x2).", 4, ANY, FLOAT_TO_BOOL,
           part_of="isclose",
           triton={"float": "close({x}, {y}, {z}, {w})", "complex": "complex_close({x}, {y}, {z}, {w})"},
           derivative=(),
           example=("ta.isclose(ta.asarray([1.0, 2.0]), 1.000001)",
                    "Array([ True, False], dtype=bool, device='cpu')"))
replace_nan = Op("nan_to_num", "x1, with x2 for NaN, x3 for infinity, x4 for -infinity; complex numbers part by part.",
                 4, NUMERIC, DEFAULT, part_of="nan_to_num",
                 triton={"any": "{x}", "float": "replace_nan({x}, {y}, {z}, {w})",
                         "complex": "complex_replace_nan({x}, {y}, {z}, {w})"},
                 derivative=("where(isfinite(x), g, 0)",
                             "where(isnan(x), g, 0)",
                             "where(x == inf, g, 0)",
                             "where(x == -inf, g, 0)"),
                 example=("ta.nan_to_num(ta.asarray([1.0, float('nan')]))",
                          "Array([1., 0.], dtype=float32, device='cpu')"))
# fmt: on
