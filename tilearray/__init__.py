"""NumPy-like expressions over strided arrays that you already hold, on the GPU or the host, without a copy.

``ta.asarray(x)`` takes arrays of NumPy, torch, CuPy and JAX as they are; operators promote through a dtype lattice,
broadcast, and run as one kernel on any layout. See `tilearray.ops.arithmetic` for the table of operations.
"""

from tilearray import cuda as cuda
from tilearray.array import Array
from tilearray.creation.asarray import asarray, from_dlpack
from tilearray.creation.fills import (
    arange,
    empty,
    empty_like,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from tilearray.creation.triangular import eye, meshgrid, tril, triu
from tilearray.dtypes import (
    bfloat16,
    complex64,
    complex128,
    finfo,
    float4_e2m1fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    isdtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tilearray.dtypes import bool_ as bool
from tilearray.engine.context import can_cast, get_semantics, promote_types, result_type, semantics, set_semantics
from tilearray.engine.devices import Device, default_device, devices, set_default_device
from tilearray.errors import (
    AxisError,
    BroadcastError,
    DeviceError,
    DeviceUnavailableError,
    DTypeError,
    ExpressionError,
    ImplicitTransferError,
    IndexingError,
    InterchangeError,
    LayoutError,
    OperandError,
    PromotionError,
    ScalarOverflowError,
    SemanticsError,
    ShapeError,
    TileArrayError,
    WriteError,
)
from tilearray.frameworks import array_agnostic, to_cupy, to_jax, to_torch
from tilearray.functions import inspection as _inspection
from tilearray.functions.conversion import astype, set_transfer_guard, to_device, to_numpy
from tilearray.functions.indexing.gather import set_index_check
from tilearray.functions.indexing.take import take, take_along_axis
from tilearray.functions.inspection import array_namespace_info as __array_namespace_info__
from tilearray.functions.joining import concat, repeat, roll, stack, tile
from tilearray.functions.linalg import einsum, matmul, matrix_transpose, tensordot, vecdot
from tilearray.functions.manipulation import (
    as_strided,
    broadcast_arrays,
    broadcast_to,
    diagonal,
    expand,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    reshape,
    sliding_window_view,
    squeeze,
    transpose,
    unstack,
    view,
)
from tilearray.functions.reductions import all, any, count_nonzero, max, mean, min, prod, std, sum, var
from tilearray.functions.scans import cumulative_prod, cumulative_sum, diff
from tilearray.functions.searching import argmax, argmin, argsort, nonzero, searchsorted, sort
from tilearray.functions.sets import isin, unique_all, unique_counts, unique_inverse, unique_values
from tilearray.geometry.layout import broadcast_shapes
from tilearray.ops.arithmetic import (
    abs,
    add,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    divide,
    equal,
    float_power,
    floor_divide,
    fma,
    fmod,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    positive,
    pow,
    reciprocal,
    remainder,
    square,
    subtract,
    where,
)
from tilearray.ops.composed import (
    clip,
    divmod,
    frexp,
    isclose,
    left_shift,
    mod,
    nan_to_num,
    power,
    right_shift,
    true_divide,
)
from tilearray.ops.elementary import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    cos,
    cosh,
    deg2rad,
    erf,
    erfc,
    erfinv,
    exp,
    exp2,
    expm1,
    hypot,
    lgamma,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    rad2deg,
    rsqrt,
    sin,
    sinc,
    sinh,
    sqrt,
    tan,
    tanh,
)
from tilearray.ops.explain_promotion import PromotionExplanation, explain_promotion
from tilearray.ops.number_parts import (
    angle,
    ceil,
    conj,
    copysign,
    floor,
    heaviside,
    imag,
    isfinite,
    isinf,
    isnan,
    ldexp,
    nextafter,
    real,
    round,
    sign,
    signbit,
    trunc,
)
from tilearray.promotion.semantics import Semantics

__version__ = "0.1.0.dev0"
__array_api_version__ = _inspection.API_VERSION
newaxis = None
inf = float("inf")
nan = float("nan")
pi = 3.141592653589793
e = 2.718281828459045

# fmt: off
__all__ = [
    "Array", "AxisError", "BroadcastError", "DTypeError", "Device", "DeviceError", "DeviceUnavailableError",
    "ExpressionError", "ImplicitTransferError", "IndexingError", "InterchangeError", "LayoutError", "OperandError",
    "PromotionError", "PromotionExplanation", "ScalarOverflowError", "Semantics", "SemanticsError", "ShapeError",
    "TileArrayError", "WriteError", "__array_api_version__", "__array_namespace_info__", "__version__", "abs", "acos",
    "acosh", "add", "all", "angle", "any", "arange", "argmax", "argmin", "argsort", "array_agnostic", "as_strided",
    "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh", "bfloat16", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bool", "broadcast_arrays",
    "broadcast_shapes", "broadcast_to", "can_cast", "cbrt", "ceil", "clip", "complex64", "complex128", "concat",
    "conj", "copysign", "cos", "cosh", "count_nonzero", "cumulative_prod", "cumulative_sum", "default_device",
    "deg2rad", "devices", "diagonal", "diff", "divide", "divmod", "e", "einsum", "empty", "empty_like", "equal", "erf",
    "erfc", "erfinv", "exp", "exp2", "expand", "expand_dims", "explain_promotion", "expm1", "eye", "finfo", "flip",
    "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "float32", "float64", "float_power", "floor",
    "floor_divide", "fma", "fmod", "frexp", "from_dlpack", "full", "full_like", "get_semantics", "greater",
    "greater_equal", "heaviside", "hypot", "iinfo", "imag", "inf", "int8", "int16", "int32", "int64", "isclose",
    "isdtype", "isfinite", "isin", "isinf", "isnan", "ldexp", "left_shift", "less", "less_equal", "lgamma", "linspace",
    "log", "log1p", "log2", "log10", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul",
    "matrix_transpose", "max", "maximum", "mean", "meshgrid", "min", "minimum", "mod", "moveaxis", "multiply", "nan",
    "nan_to_num", "negative", "newaxis", "nextafter", "nonzero", "not_equal", "ones", "ones_like", "permute_dims",
    "pi", "positive", "pow", "power", "prod", "promote_types", "rad2deg", "real", "reciprocal", "remainder", "repeat",
    "reshape", "result_type", "right_shift", "roll", "round", "rsqrt", "searchsorted", "semantics",
    "set_default_device", "set_index_check", "set_semantics", "set_transfer_guard", "sign", "signbit", "sin", "sinc",
    "sinh", "sliding_window_view", "sort", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "take",
    "take_along_axis", "tan", "tanh", "tensordot", "tile", "to_cupy", "to_device", "to_jax", "to_numpy", "to_torch",
    "transpose", "tril", "triu", "true_divide", "trunc", "uint8", "uint16", "uint32", "uint64", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "unstack", "var", "vecdot", "view", "where", "zeros",
    "zeros_like",
]
# fmt: on
