"""Rows of the op table: exponentials, logarithms, roots, trigonometry and special functions.

Each row is the public function of its name. `tilearray.ops.arithmetic` explains rows, `tilearray.ops` is the table.
"""

from __future__ import annotations

from tilearray.ops.op import Op
from tilearray.ops.options import DirectedOrApprox, Fast, Flushing, directed
from tilearray.ops.promotion_methods import Promotion
from tilearray.ops.row import ANY, REAL

INT_TO_FLOAT, TRUE_DIVISION = Promotion.INT_TO_FLOAT, Promotion.TRUE_DIVISION

# fmt: off
# name, summary, arity, kinds, promotion, then the special properties of the row

# exponentials, logarithms, roots
exp = Op("exp", "Exponential.", 1, ANY, INT_TO_FLOAT, exact=False, domain=(-80.0, 80.0),
         triton={"float": "libdevice.exp({x})", "complex": "complex_exp({x})"},
         options=Fast({"full": "libdevice.exp({x})", "approx": "exp_approx({x})"},
                      {"full": "2 ulp", "approx": "2 + floor(abs(1.173 * x)) ulp"}),
         derivative=("g * conj(out)",),
         example=("ta.exp(ta.asarray([0]))", "Array([1.], dtype=float32, device='cpu')"))
exp2 = Op("exp2", "2 to the power of x.", 1, ANY, INT_TO_FLOAT, exact=False, domain=(-100.0, 100.0),
          triton={"float": "libdevice.exp2({x})", "complex": "complex_exp2({x})"},
          options=Flushing(flush_to_zero=True),
          derivative=("g * conj(out) * ln2",),
          example=("ta.exp2(ta.asarray([0]))", "Array([1.], dtype=float32, device='cpu')"))
expm1 = Op("expm1", "exp(x) - 1, accurate near 0.", 1, ANY, INT_TO_FLOAT,
           exact=False, domain=(-10.0, 10.0),
           triton={"float": "libdevice.expm1({x})", "complex": "complex_expm1({x})"},
           derivative=("g * (conj(out) + 1)",),
           example=("ta.expm1(ta.asarray([0.0]))", "Array([0.], dtype=float32, device='cpu')"))
log = Op("log", "Natural logarithm.", 1, ANY, INT_TO_FLOAT, exact=False, domain=(1e-6, 1e6),
         triton={"float": "libdevice.log({x})", "complex": "complex_log({x})"},
         derivative=("g / conj(x)",),
         example=("ta.log(ta.asarray([1.0]))", "Array([0.], dtype=float32, device='cpu')"))
log2 = Op("log2", "Logarithm to base 2.", 1, ANY, INT_TO_FLOAT, exact=False, domain=(1e-6, 1e6),
          triton={"float": "libdevice.log2({x})", "complex": "complex_log2({x})"},
          derivative=("g / (conj(x) * ln2)",),
          example=("ta.log2(ta.asarray([8.0]))", "Array([3.], dtype=float32, device='cpu')"))
log10 = Op("log10", "Logarithm to base 10.", 1, ANY, INT_TO_FLOAT, exact=False, domain=(1e-6, 1e6),
           triton={"float": "libdevice.log10({x})", "complex": "complex_log10({x})"},
           derivative=("g / (conj(x) * ln10)",),
           example=("ta.log10(ta.asarray([1.0]))", "Array([0.], dtype=float32, device='cpu')"))
log1p = Op("log1p", "log(1 + x), accurate near 0.", 1, ANY, INT_TO_FLOAT,
           exact=False, domain=(-0.9, 100.0),
           triton={"float": "libdevice.log1p({x})", "complex": "complex_log1p({x})"},
           derivative=("g / (conj(x) + 1)",),
           example=("ta.log1p(ta.asarray([0.0]))", "Array([0.], dtype=float32, device='cpu')"))
logaddexp = Op("logaddexp", "log(exp(x1) + exp(x2)), without overflow.", 2, REAL, INT_TO_FLOAT,
               exact=False, domain=(-80.0, 80.0),
               triton={"float": "log_add_exp({x}, {y})"},
               derivative=("g / (1 + exp(y - x))", "g / (1 + exp(x - y))"),
               example=("ta.logaddexp(ta.asarray([-1000.0]), -2000.0)", "Array([-1000.], dtype=float32, device='cpu')"))
logaddexp2 = Op("logaddexp2", "log2(2**x1 + 2**x2), without overflow.", 2, REAL, INT_TO_FLOAT,
                exact=False, domain=(-80.0, 80.0),
                triton={"float": "log_add_exp2({x}, {y})"},
                derivative=("g / (1 + exp2(y - x))", "g / (1 + exp2(x - y))"),
                example=("ta.logaddexp2(ta.asarray([1.0]), 1.0)", "Array([2.], dtype=float32, device='cpu')"))
sqrt = Op("sqrt", "Square root, correctly rounded for real dtypes.", 1, ANY, INT_TO_FLOAT,
          triton={"float32": "tl.math.sqrt_rn({x})", "float": "tl.math.sqrt({x})", "complex": "complex_sqrt({x})"},
          options=DirectedOrApprox(directed("libdevice.sqrt_{mode}({x})") | {"approx": "sqrt_approx({x})"},
                                   {"approx": "a relative error of 2**-23"}, flush_to_zero=True),
          derivative=("g / (2 * conj(out))",),
          example=("ta.sqrt(ta.asarray([4, 9]))", "Array([2., 3.], dtype=float32, device='cpu')"))
rsqrt = Op("rsqrt", "1 / sqrt(x).", 1, REAL, INT_TO_FLOAT, exact=False, domain=(1e-6, 1e6),
           triton={"float": "libdevice.rsqrt({x})"},
           options=Flushing(flush_to_zero=True),
           derivative=("-0.5 * g * out * out * out",),
           example=("ta.rsqrt(ta.asarray([4, 16]))", "Array([0.5 , 0.25], dtype=float32, device='cpu')"))
cbrt = Op("cbrt", "Cube root, also of negative numbers.", 1, REAL, INT_TO_FLOAT, exact=False, domain=(-1e6, 1e6),
          triton={"float": "libdevice.cbrt({x})"},
          derivative=("g / (3 * out * out)",),
          example=("ta.cbrt(ta.asarray([-8.0]))", "Array([-2.], dtype=float32, device='cpu')"))
hypot = Op("hypot", "sqrt(x1**2 + x2**2), without overflow.", 2, REAL, INT_TO_FLOAT, exact=False, domain=(-1e6, 1e6),
           triton={"float": "libdevice.hypot({x}, {y})"},
           derivative=("g * (x / out)", "g * (y / out)"),
           example=("ta.hypot(ta.asarray([3.0]), 4.0)", "Array([5.], dtype=float32, device='cpu')"))

# trigonometry
sin = Op("sin", "Sine of an angle in radians.", 1, ANY, INT_TO_FLOAT, exact=False, domain=(-100.0, 100.0),
         triton={"float": "libdevice.sin({x})", "complex": "complex_sin({x})"},
         derivative=("g * conj(cos(x))",),
         example=("ta.sin(ta.asarray([0.0]))", "Array([0.], dtype=float32, device='cpu')"))
cos = Op("cos", "Cosine of an angle in radians.", 1, ANY, INT_TO_FLOAT, exact=False, domain=(-100.0, 100.0),
         triton={"float": "libdevice.cos({x})", "complex": "complex_cos({x})"},
         derivative=("-g * conj(sin(x))",),
         example=("ta.cos(ta.asarray([0]))", "Array([1.], dtype=float32, device='cpu')"))
tan = Op("tan", "Tangent of an angle in radians.", 1, ANY, INT_TO_FLOAT, exact=False, domain=(-100.0, 100.0),
         triton={"float": "libdevice.tan({x})", "complex": "complex_tan({x})"},
         derivative=("g * conj(1 + out * out)",),
         example=("ta.tan(ta.asarray([0.0]))", "Array([0.], dtype=float32, device='cpu')"))
asin = Op("asin", "Arc sine, in [-pi/2, pi/2] for real numbers.", 1, ANY, INT_TO_FLOAT,
          ufunc="arcsin", exact=False, domain=(-1.0, 1.0),
          triton={"float": "libdevice.asin({x})", "complex": "complex_asin({x})"},
          derivative=("g / conj(sqrt(1 - x * x))",),
          example=("ta.asin(ta.asarray([0.0]))", "Array([0.], dtype=float32, device='cpu')"))
acos = Op("acos", "Arc cosine, in [0, pi] for real numbers.", 1, ANY, INT_TO_FLOAT,
          ufunc="arccos", exact=False, domain=(-1.0, 1.0),
          triton={"float": "libdevice.acos({x})", "complex": "complex_acos({x})"},
          derivative=("-g / conj(sqrt(1 - x * x))",),
          example=("ta.acos(ta.asarray([1.0]))", "Array([0.], dtype=float32, device='cpu')"))
atan = Op("atan", "Arc tangent, in [-pi/2, pi/2] for real numbers.", 1, ANY, INT_TO_FLOAT,
          ufunc="arctan", exact=False, domain=(-100.0, 100.0),
          triton={"float": "libdevice.atan({x})", "complex": "complex_atan({x})"},
          derivative=("g / conj(x * x + 1)",),
          example=("ta.atan(ta.asarray([0.0]))", "Array([0.], dtype=float32, device='cpu')"))
atan2 = Op("atan2", "The angle of the point (x2, x1), in [-pi, pi].", 2, REAL, INT_TO_FLOAT,
           ufunc="arctan2", exact=False, domain=(-100.0, 100.0),
           triton={"float": "libdevice.atan2({x}, {y})"},
           derivative=("where((x == 0) & (y == 0), 0, g * (y / hypot(x, y) / hypot(x, y)))",
                       "where((x == 0) & (y == 0), 0, -g * (x / hypot(x, y) / hypot(x, y)))"),
           example=("ta.atan2(ta.asarray([0.0]), 1.0)", "Array([0.], dtype=float32, device='cpu')"))
sinh = Op("sinh", "Hyperbolic sine.", 1, ANY, INT_TO_FLOAT, exact=False, domain=(-80.0, 80.0),
          triton={"float": "libdevice.sinh({x})", "complex": "complex_sinh({x})"},
          derivative=("g * conj(cosh(x))",),
          example=("ta.sinh(ta.asarray([0.0]))", "Array([0.], dtype=float32, device='cpu')"))
cosh = Op("cosh", "Hyperbolic cosine.", 1, ANY, INT_TO_FLOAT, exact=False, domain=(-80.0, 80.0),
          triton={"float": "libdevice.cosh({x})", "complex": "complex_cosh({x})"},
          derivative=("g * conj(sinh(x))",),
          example=("ta.cosh(ta.asarray([0]))", "Array([1.], dtype=float32, device='cpu')"))
tanh = Op("tanh", "Hyperbolic tangent.", 1, ANY, INT_TO_FLOAT, exact=False, domain=(-10.0, 10.0),
          triton={"float": "libdevice.tanh({x})", "complex": "complex_tanh({x})"},
          options=Fast({"full": "libdevice.tanh({x})", "approx": "tanh_approx({x})"},
                       {"full": "2 ulp", "approx": "a relative error of 2**-10.987"}),
          derivative=("g * conj(1 - out * out)",),
          example=("ta.tanh(ta.asarray([0.0]))", "Array([0.], dtype=float32, device='cpu')"))
asinh = Op("asinh", "Inverse hyperbolic sine.", 1, ANY, INT_TO_FLOAT, ufunc="arcsinh", exact=False, domain=(-1e6, 1e6),
           triton={"float": "libdevice.asinh({x})", "complex": "complex_asinh({x})"},
           derivative=("g / conj(sqrt(x * x + 1))",),
           example=("ta.asinh(ta.asarray([0.0]))", "Array([0.], dtype=float32, device='cpu')"))
acosh = Op("acosh", "Inverse hyperbolic cosine.", 1, ANY, INT_TO_FLOAT,
           ufunc="arccosh", exact=False, domain=(1.0, 1e6),
           triton={"float": "libdevice.acosh({x})", "complex": "complex_acosh({x})"},
           derivative=("g / conj(sqrt(x - 1) * sqrt(x + 1))",),
           example=("ta.acosh(ta.asarray([1.0]))", "Array([0.], dtype=float32, device='cpu')"))
atanh = Op("atanh", "Inverse hyperbolic tangent.", 1, ANY, INT_TO_FLOAT,
           ufunc="arctanh", exact=False, domain=(-1.0, 1.0),
           triton={"float": "libdevice.atanh({x})", "complex": "complex_atanh({x})"},
           derivative=("g / conj(1 - x * x)",),
           example=("ta.atanh(ta.asarray([0.0]))", "Array([0.], dtype=float32, device='cpu')"))
sinc = Op("sinc", "sin(pi x) / (pi x); 1 at 0.", 1, REAL, TRUE_DIVISION, exact=False, domain=(-100.0, 100.0),
          triton={"float": "sinc({x})"},
          derivative=("where(x == 0, 0, g * ((cos(pi * x) - out) / x))",),
          example=("ta.sinc(ta.asarray([0]))", "Array([1.], dtype=float32, device='cpu')"))
deg2rad = Op("deg2rad", "Radians of an angle in degrees.", 1, REAL, INT_TO_FLOAT, exact=False, domain=(-360.0, 360.0),
             triton={"float": "{x} * 0.017453292519943295"},
             derivative=("deg2rad(g)",),
             example=("ta.deg2rad(ta.asarray([180.0]))", "Array([3.1415927], dtype=float32, device='cpu')"))
rad2deg = Op("rad2deg", "Degrees of an angle in radians.", 1, REAL, INT_TO_FLOAT, exact=False, domain=(-7.0, 7.0),
             triton={"float": "{x} * 57.29577951308232"},
             derivative=("rad2deg(g)",),
             example=("ta.rad2deg(ta.asarray([ta.pi]))", "Array([180.], dtype=float32, device='cpu')"))

# special functions (the host calls SciPy)
erf = Op("erf", "Error function.", 1, REAL, INT_TO_FLOAT, exact=False, domain=(-4.0, 4.0),
         triton={"float": "libdevice.erf({x})"},
         derivative=("g * (two_by_root_pi * exp(-x * x))",),
         example=("ta.erf(ta.asarray([0.0]))", "Array([0.], dtype=float32, device='cpu')"))
erfc = Op("erfc", "1 - erf(x), accurate for large x.", 1, REAL, INT_TO_FLOAT,
          exact=False, domain=(-4.0, 9.0),
          triton={"float": "libdevice.erfc({x})"},
          derivative=("-g * (two_by_root_pi * exp(-x * x))",),
          example=("ta.erfc(ta.asarray([0.0]))", "Array([1.], dtype=float32, device='cpu')"))
erfinv = Op("erfinv", "Inverse of the error function.", 1, REAL, INT_TO_FLOAT, exact=False, domain=(-1.0, 1.0),
            triton={"float": "libdevice.erfinv({x})"},
            derivative=("g * exp(out * out) / two_by_root_pi",),
            example=("ta.erfinv(ta.asarray([0.0]))", "Array([0.], dtype=float32, device='cpu')"))
lgamma = Op("lgamma", "Logarithm of the absolute value of the gamma function.", 1, REAL, INT_TO_FLOAT,
            exact=False, domain=(0.1, 100.0),
            triton={"float": "libdevice.lgamma({x})"},
            derivative=("g * digamma(x)",),
            example=("ta.lgamma(ta.asarray([1.0]))", "Array([0.], dtype=float32, device='cpu')"))
gamma = Op("gamma", "Gamma function: (x - 1)! for integers.", 1, REAL, INT_TO_FLOAT, exact=False, domain=(0.1, 30.0),
           triton={"float": "libdevice.tgamma({x})"},
           derivative=("g * (out * digamma(x))",),
           example=("ta.gamma(ta.asarray([5.0]))", "Array([24.], dtype=float32, device='cpu')"))
ndtr = Op("ndtr", "Distribution function of the standard normal distribution, accurate for small results.", 1, REAL,
          INT_TO_FLOAT, exact=False, domain=(-9.0, 4.0),
          triton={"float": "libdevice.normcdf({x})"},
          derivative=("g * (0.3989422804014327 * exp(x * x / -2))",),
          example=("ta.ndtr(ta.asarray([0.0]))", "Array([0.5], dtype=float32, device='cpu')"))
expit = Op("expit", "Logistic function, 1 / (1 + exp(-x)), without overflow.", 1, REAL, INT_TO_FLOAT,
           exact=False, domain=(-80.0, 20.0),
           triton={"float": "expit({x})"},
           derivative=("g * (out * (1 - out))",),
           example=("ta.expit(ta.asarray([0.0]))", "Array([0.5], dtype=float32, device='cpu')"))
logit = Op("logit", "log(x / (1 - x)), the inverse of expit, accurate near 0.5.", 1, REAL, INT_TO_FLOAT,
           exact=False, domain=(0.0, 1.0),
           triton={"float": "logit({x})"},
           derivative=("where(out == out, g / (x * (1 - x)), out)",),
           example=("ta.logit(ta.asarray([0.5]))", "Array([0.], dtype=float32, device='cpu')"))
entr = Op("entr", "-x log(x); 0 at 0, and -infinity below.", 1, REAL, INT_TO_FLOAT, exact=False, domain=(0.0, 10.0),
          triton={"float": "entr({x})"},
          derivative=("g * (-1 - log(x))",),
          example=("ta.entr(ta.asarray([0.0]))", "Array([0.], dtype=float32, device='cpu')"))
xlogy = Op("xlogy", "x1 log(x2); 0 where x1 is 0 and x2 is not NaN.", 2, REAL, INT_TO_FLOAT,
           exact=False, domain=(0.0, 100.0),
           triton={"float": "times_log({x}, {y}, libdevice.log({y}))"},
           derivative=("where((x == 0) & (y <= 0), 0, xlogy(g, y))", "g * (x / y)"),
           example=("ta.xlogy(ta.asarray([0.0]), 0.0)", "Array([0.], dtype=float32, device='cpu')"))
xlog1py = Op("xlog1py", "x1 log(1 + x2), accurate near 0; 0 where x1 is 0 and x2 is not NaN.", 2, REAL, INT_TO_FLOAT,
             exact=False, domain=(-0.9, 100.0),
             triton={"float": "times_log({x}, {y}, libdevice.log1p({y}))"},
             derivative=("where((x == 0) & (y <= -1), 0, xlog1py(g, y))", "g * (x / (1 + y))"),
             example=("ta.xlog1py(ta.asarray([0.0]), -1.0)", "Array([0.], dtype=float32, device='cpu')"))
# fmt: on
