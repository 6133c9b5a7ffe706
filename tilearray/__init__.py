"""NumPy-like expressions over strided arrays that you already hold, on the GPU or the host, without a copy.

``ta.asarray(x)`` takes arrays of NumPy, torch, CuPy and JAX as they are; operators promote through a dtype lattice,
broadcast, and run as one kernel on any layout. See `tilearray.ops.arithmetic` for the table of operations.
"""

from importlib import import_module as _import_module
from os import environ as _environ
from typing import TYPE_CHECKING

from tilearray import cuda as cuda
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray, from_dlpack
from tilearray.arrays.fills import (
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
from tilearray.arrays.frameworks import array_agnostic, to_cupy, to_jax, to_torch
from tilearray.arrays.triangular import eye, meshgrid, tril, triu
from tilearray.dtypes import (
    bfloat16,
    complex64,
    complex128,
    finfo,
    float4_e2m1fn,
    float4_e2m1fn_x2,
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
    FusionError,
    GradientError,
    ImplicitTransferError,
    IndexingError,
    InterchangeError,
    LayoutError,
    LinAlgError,
    OperandError,
    ParameterError,
    PromotionError,
    ScalarOverflowError,
    SemanticsError,
    ShapeError,
    TileArrayError,
    WriteError,
)
from tilearray.functions import inspection as _inspection
from tilearray.functions.conversion import astype, set_transfer_guard, to_device, to_numpy
from tilearray.functions.diagonals import diag, trace
from tilearray.functions.indexing.gather import set_index_check
from tilearray.functions.indexing.take import take, take_along_axis
from tilearray.functions.inspection import array_namespace_info as __array_namespace_info__
from tilearray.functions.joining import concat, roll, stack
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
from tilearray.functions.printing import get_printoptions, printoptions, set_printoptions
from tilearray.functions.products import (
    dot,
    einsum,
    inner,
    matmul,
    matrix_transpose,
    matvec,
    tensordot,
    vdot,
    vecdot,
    vecmat,
)
from tilearray.functions.reductions import all, any, count_nonzero, max, mean, min, prod, std, sum, var
from tilearray.functions.repeating import repeat, tile
from tilearray.functions.scans import cumulative_prod, cumulative_sum, diff
from tilearray.functions.searching import argmax, argmin, argsort, nonzero, searchsorted, sort, where
from tilearray.functions.sets import isin, unique_all, unique_counts, unique_inverse, unique_values
from tilearray.functions.softmax import log_softmax, logsumexp, softmax
from tilearray.functions.sum_to_shape import sum_to_shape, unbroadcast_axes
from tilearray.functions.tensor_products import cross, kron, outer
from tilearray.geometry.layout import broadcast_shapes
from tilearray.interchange.waiting import Waiting as _Waiting
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
    gcd,
    greater,
    greater_equal,
    lcm,
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
)
from tilearray.ops.composed import (
    angle,
    clip,
    divmod,
    frexp,
    isclose,
    left_shift,
    mod,
    nan_to_num,
    power,
    right_shift,
    round,
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
    entr,
    erf,
    erfc,
    erfinv,
    exp,
    exp2,
    expit,
    expm1,
    gamma,
    hypot,
    lgamma,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    logit,
    ndtr,
    rad2deg,
    rsqrt,
    sin,
    sinc,
    sinh,
    sqrt,
    tan,
    tanh,
    xlog1py,
    xlogy,
)
from tilearray.ops.explain_promotion import PromotionExplanation, explain_promotion
from tilearray.ops.hooks import HOOKS as _HOOKS
from tilearray.ops.number_parts import (
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
    sign,
    signbit,
    trunc,
)
from tilearray.ops.signatures import show as _show
from tilearray.promotion.semantics import Semantics

if TYPE_CHECKING:  # at run time __getattr__ imports them when a program uses one
    from builtins import bool as _bool

    from tilearray import distributed as distributed
    from tilearray import fft as fft
    from tilearray import linalg as linalg
    from tilearray import random as random
    from tilearray.arrays.fusion.foreach import foreach
    from tilearray.arrays.fusion.fuse import fuse
    from tilearray.arrays.fusion.lazy import lazy
    from tilearray.arrays.fusion.pointwise import pointwise
    from tilearray.engine.signature import Operand
    from tilearray.explaining.draw import draw
    from tilearray.explaining.explain import explain
    from tilearray.functions.largest import top_k
    from tilearray.gradients.functions import grad, jvp, value_and_grad, vjp
    from tilearray.low_precision.packing import pack_float4, unpack_float4
    from tilearray.low_precision.quantize import dequantize, quantize
    from tilearray.low_precision.safetensors import load_safetensors, safetensors_metadata, save_safetensors
    from tilearray.low_precision.scaled_products import scaled_matmul
    from tilearray.numpy_names import lib as lib
    from tilearray.numpy_names import special as special
    from tilearray.numpy_names.aliases import (
        absolute,
        amax,
        amin,
        arccos,
        arccosh,
        arcsin,
        arcsinh,
        arctan,
        arctan2,
        arctanh,
        around,
        bitwise_not,
        bool_,
        byte,
        cdouble,
        concatenate,
        conjugate,
        csingle,
        degrees,
        double,
        fix,
        half,
        int_,
        intc,
        intp,
        invert,
        longlong,
        ndarray,
        radians,
        short,
        single,
        ubyte,
        uint,
        uintc,
        uintp,
        ulonglong,
        ushort,
    )
    from tilearray.numpy_names.applying import apply_along_axis, apply_over_axes, ndenumerate, ndindex, vectorize
    from tilearray.numpy_names.arrays import (
        array,
        asanyarray,
        ascontiguousarray,
        asfortranarray,
        copy,
        frombuffer,
        fromfunction,
        fromiter,
        geomspace,
        identity,
        logspace,
    )
    from tilearray.numpy_names.choosing import (
        choose,
        compress,
        copyto,
        extract,
        fill_diagonal,
        piecewise,
        place,
        put,
        put_along_axis,
        putmask,
        select,
    )
    from tilearray.numpy_names.comparing import (
        allclose,
        array_equal,
        array_equiv,
        in1d,
        iscomplex,
        iscomplexobj,
        isneginf,
        isposinf,
        isreal,
        isrealobj,
        isscalar,
        issubdtype,
        may_share_memory,
        real_if_close,
        shares_memory,
    )
    from tilearray.numpy_names.counting import bincount
    from tilearray.numpy_names.covariances import corrcoef, cov
    from tilearray.numpy_names.distinct import (
        argpartition,
        ediff1d,
        intersect1d,
        lexsort,
        partition,
        setdiff1d,
        setxor1d,
        union1d,
        unique,
    )
    from tilearray.numpy_names.files import load, save, savez, savez_compressed
    from tilearray.numpy_names.grids import (
        c_,
        diag_indices,
        diag_indices_from,
        diagflat,
        indices,
        ix_,
        mgrid,
        ogrid,
        r_,
        tri,
        tril_indices,
        tril_indices_from,
        triu_indices,
        triu_indices_from,
        vander,
    )
    from tilearray.numpy_names.histograms import (
        digitize,
        histogram,
        histogram2d,
        histogram_bin_edges,
        histogramdd,
    )
    from tilearray.numpy_names.inserting import delete, insert
    from tilearray.numpy_names.interpolation import interp
    from tilearray.numpy_names.nan_reductions import (
        cumprod,
        cumsum,
        nanargmax,
        nanargmin,
        nancumprod,
        nancumsum,
        nanmax,
        nanmean,
        nanmedian,
        nanmin,
        nanpercentile,
        nanprod,
        nanquantile,
        nanstd,
        nansum,
        nanvar,
    )
    from tilearray.numpy_names.numbers import (
        bartlett,
        blackman,
        fabs,
        fmax,
        fmin,
        hamming,
        hanning,
        kaiser,
        modf,
        rint,
    )
    from tilearray.numpy_names.numpy_objects import (
        complexfloating,
        dtype,
        errstate,
        euler_gamma,
        floating,
        generic,
        geterr,
        index_exp,
        inexact,
        integer,
        iterable,
        number,
        s_,
        seterr,
        signedinteger,
        unsignedinteger,
    )
    from tilearray.numpy_names.padding import pad
    from tilearray.numpy_names.places import argwhere, flatnonzero, ravel_multi_index, unravel_index
    from tilearray.numpy_names.signals import convolve, correlate, gradient, unwrap
    from tilearray.numpy_names.stacking import (
        append,
        array_split,
        atleast_1d,
        atleast_2d,
        atleast_3d,
        block,
        column_stack,
        dsplit,
        dstack,
        hsplit,
        hstack,
        resize,
        split,
        vsplit,
        vstack,
    )
    from tilearray.numpy_names.statistics import (
        average,
        median,
        percentile,
        poly,
        polyfit,
        polyval,
        ptp,
        quantile,
        roots,
        trapezoid,
    )
    from tilearray.numpy_names.views import (
        fliplr,
        flipud,
        ndim,
        ravel,
        rollaxis,
        rot90,
        shape,
        size,
        swapaxes,
        trim_zeros,
    )
    from tilearray.tile_space.grid import tiles

    def evaluate(
        expression: str, /, *, out: Array | None = None, contract: _bool = False, **arrays: Operand
    ) -> Array: ...


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
    "ExpressionError", "FusionError", "GradientError", "ImplicitTransferError", "IndexingError", "InterchangeError",
    "LayoutError", "LinAlgError", "OperandError", "ParameterError", "PromotionError", "PromotionExplanation",
    "ScalarOverflowError", "Semantics", "SemanticsError", "ShapeError", "TileArrayError", "WriteError",
    "__array_api_version__", "__array_namespace_info__", "__version__", "abs", "absolute", "acos", "acosh", "add",
    "all", "allclose", "amax", "amin", "angle", "any", "append", "apply_along_axis", "apply_over_axes", "arange",
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argpartition",
    "argsort", "argwhere", "around", "array", "array_agnostic", "array_equal", "array_equiv", "array_split",
    "as_strided", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "asin", "asinh", "astype", "atan",
    "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "average", "bartlett", "bfloat16", "bincount",
    "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "blackman", "block", "bool", "bool_", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "byte",
    "c_", "can_cast", "cbrt", "cdouble", "ceil", "choose", "clip", "column_stack", "complex64", "complex128",
    "complexfloating", "compress", "concat", "concatenate", "conj", "conjugate", "convolve", "copy", "copysign",
    "copyto", "corrcoef", "correlate", "cos", "cosh", "count_nonzero", "cov", "cross", "csingle", "cumprod", "cumsum",
    "cumulative_prod", "cumulative_sum", "default_device", "deg2rad", "degrees", "delete", "dequantize", "devices",
    "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "diff", "digitize", "distributed", "divide",
    "divmod", "dot", "double", "draw", "dsplit", "dstack", "dtype", "e", "ediff1d", "einsum", "empty", "empty_like",
    "entr", "equal", "erf", "erfc", "erfinv", "errstate", "euler_gamma", "evaluate", "exp", "exp2", "expand",
    "expand_dims", "expit", "explain", "explain_promotion", "expm1", "extract", "eye", "fabs", "fft", "fill_diagonal",
    "finfo", "fix", "flatnonzero", "flip", "fliplr", "flipud", "float4_e2m1fn", "float4_e2m1fn_x2", "float8_e3m4",
    "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "float16", "float32", "float64", "float_power", "floating", "floor", "floor_divide", "fma",
    "fmax", "fmin", "fmod", "foreach", "frexp", "from_dlpack", "frombuffer", "fromfunction", "fromiter", "full",
    "full_like", "fuse", "gamma", "gcd", "generic", "geomspace", "get_printoptions", "get_semantics", "geterr", "grad",
    "gradient", "greater", "greater_equal", "half", "hamming", "hanning", "heaviside", "histogram", "histogram2d",
    "histogram_bin_edges", "histogramdd", "hsplit", "hstack", "hypot", "identity", "iinfo", "imag", "in1d", "index_exp",
    "indices", "inexact", "inf", "inner", "insert", "int8", "int16", "int32", "int64", "int_", "intc", "integer",
    "interp", "intersect1d", "intp", "invert", "isclose", "iscomplex", "iscomplexobj", "isdtype", "isfinite", "isin",
    "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "issubdtype", "iterable", "ix_", "jvp",
    "kaiser", "kron", "lazy", "lcm", "ldexp", "left_shift", "less", "less_equal", "lexsort", "lgamma", "lib", "linalg",
    "linspace", "load", "load_safetensors", "log", "log1p", "log2", "log10", "log_softmax", "logaddexp", "logaddexp2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logspace", "logsumexp", "longlong", "matmul",
    "matrix_transpose", "matvec", "max", "maximum", "may_share_memory", "mean", "median", "meshgrid", "mgrid", "min",
    "minimum", "mod", "modf", "moveaxis", "multiply", "nan", "nan_to_num", "nanargmax", "nanargmin", "nancumprod",
    "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd",
    "nansum", "nanvar", "ndarray", "ndenumerate", "ndim", "ndindex", "ndtr", "negative", "newaxis", "nextafter",
    "nonzero", "not_equal", "number", "ogrid", "ones", "ones_like", "outer", "pack_float4", "pad", "partition",
    "percentile", "permute_dims", "pi", "piecewise", "place", "pointwise", "poly", "polyfit", "polyval", "positive",
    "pow", "power", "printoptions", "prod", "promote_types", "ptp", "put", "put_along_axis", "putmask", "quantile",
    "quantize", "r_", "rad2deg", "radians", "random", "ravel", "ravel_multi_index", "real", "real_if_close",
    "reciprocal", "remainder", "repeat", "reshape", "resize", "result_type", "right_shift", "rint", "roll", "rollaxis",
    "roots", "rot90", "round", "rsqrt", "s_", "safetensors_metadata", "save", "save_safetensors", "savez",
    "savez_compressed", "scaled_matmul", "searchsorted", "select", "semantics", "set_default_device", "set_index_check",
    "set_printoptions", "set_semantics", "set_transfer_guard", "setdiff1d", "seterr", "setxor1d", "shape",
    "shares_memory", "short", "sign", "signbit", "signedinteger", "sin", "sinc", "single", "sinh", "size",
    "sliding_window_view", "softmax", "sort", "special", "split", "sqrt", "square", "squeeze", "stack", "std",
    "subtract", "sum", "sum_to_shape", "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile",
    "tiles", "to_cupy", "to_device", "to_jax", "to_numpy", "to_torch", "top_k", "trace", "transpose", "trapezoid",
    "tri", "tril", "tril_indices", "tril_indices_from", "trim_zeros", "triu", "triu_indices", "triu_indices_from",
    "true_divide", "trunc", "ubyte", "uint", "uint8", "uint16", "uint32", "uint64", "uintc", "uintp", "ulonglong",
    "unbroadcast_axes", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "unpack_float4", "unravel_index", "unsignedinteger", "unstack", "unwrap", "ushort", "value_and_grad", "vander",
    "var", "vdot", "vecdot", "vecmat", "vectorize", "view", "vjp", "vsplit", "vstack", "where", "xlog1py", "xlogy",
    "zeros", "zeros_like",
]
# fmt: on

_NAMESPACES = {
    "distributed": "distributed",
    "fft": "fft",
    "lib": "numpy_names.lib",
    "linalg": "linalg",
    "random": "random",
    "special": "numpy_names.special",
}
"""Namespaces that are imported when they are first used."""
_LATE = {
    "dequantize": "low_precision.quantize",
    "draw": "explaining.draw",
    "evaluate": "commands.eval.evaluate",
    "explain": "explaining.explain",
    "foreach": "arrays.fusion.foreach",
    "fuse": "arrays.fusion.fuse",
    "grad": "gradients.functions",
    "jvp": "gradients.functions",
    "lazy": "arrays.fusion.lazy",
    "load_safetensors": "low_precision.safetensors",
    "pack_float4": "low_precision.packing",
    "pointwise": "arrays.fusion.pointwise",
    "quantize": "low_precision.quantize",
    "safetensors_metadata": "low_precision.safetensors",
    "save_safetensors": "low_precision.safetensors",
    "scaled_matmul": "low_precision.scaled_products",
    "top_k": "functions.largest",
    "tiles": "tile_space.grid",
    "unpack_float4": "low_precision.packing",
    "value_and_grad": "gradients.functions",
    "vjp": "gradients.functions",
}
"""Functions of modules that are imported when they are first used."""

if not TYPE_CHECKING:  # a checker knows all names, and would let each misspelled one pass

    def __getattr__(name):
        """Import a namespace, or a name of `tilearray.numpy_names`, when it is used for the first time."""
        if name in _NAMESPACES:
            return _import_module(f"tilearray.{_NAMESPACES[name]}")
        if name in _LATE:
            value = getattr(_import_module(f"tilearray.{_LATE[name]}"), name)
            _show([value])
            globals()[name] = value
            return value
        names = _import_module("tilearray.numpy_names.names")
        module = names.MODULE_OF.get(name)
        if module is None:
            written = names.MISSING.get(name, "").format(name=name)
            raise _import_module("tilearray.missing_names").MissingNameError(name, __all__, written=written)
        value = getattr(_import_module(f"tilearray.numpy_names.{module}"), name)
        _show([value])
        globals()[name] = value
        return value


_HOOKS.operator = lambda library, function: _import_module(f"tilearray.gradients.{library}_operator").operator_of(
    function
)
_HOOKS.fuse = lambda function: _import_module("tilearray.arrays.fusion.fuse").fuse(function)
_HOOKS.fingerprint = lambda array: _import_module("tilearray.dask.tokens").fingerprint(array)
_HOOKS.tiles = lambda *args, **options: _import_module("tilearray.tile_space.grid").tiles(*args, **options)


def __dir__() -> list[str]:
    return sorted([*__all__, "cuda"])


_show([globals().get(_name) for _name in __all__])
_Waiting(
    {
        "dask.sizeof": "tilearray.dask.chunks:size",
        "dask.array.backends": "tilearray.dask.chunks:lookups",
        "distributed.protocol.cuda": "tilearray.dask.serialize:register",
        "einops._backends": "tilearray.arrays.einops_backend:register",
    }
).start()
if _environ.get("TILEARRAY_DEBUG"):
    _import_module("tilearray.explaining.debug").start(_environ["TILEARRAY_DEBUG"])
del TYPE_CHECKING
