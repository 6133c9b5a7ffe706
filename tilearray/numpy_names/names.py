"""NumPy's names that the standard does not have: where each one is, and what to write for those that are missing.

`import tilearray` does not import the modules of `tilearray.numpy_names`. The package looks a name up here when a
program uses it for the first time. A name that is nowhere is an AttributeError that says what to write.
"""

from __future__ import annotations

from typing import Final

LATER: Final = {
    "aliases": """
        absolute amax amin arccos arccosh arcsin arcsinh arctan arctan2 arctanh around bitwise_not bool_ byte
        cdouble concatenate conjugate csingle degrees double fix half int_ intc intp invert longlong ndarray
        radians short single ubyte uint uintc uintp ulonglong ushort
    """,
    "applying": """
        apply_along_axis apply_over_axes ndenumerate ndindex vectorize
    """,
    "arrays": """
        array asanyarray ascontiguousarray asfortranarray copy frombuffer fromfunction fromiter geomspace
        identity logspace
    """,
    "choosing": """
        choose compress copyto extract fill_diagonal piecewise place put put_along_axis putmask select
    """,
    "comparing": """
        allclose array_equal array_equiv in1d iscomplex iscomplexobj isneginf isposinf isreal isrealobj isscalar
        issubdtype may_share_memory real_if_close shares_memory
    """,
    "counting": """
        bincount
    """,
    "covariances": """
        corrcoef cov
    """,
    "distinct": """
        argpartition ediff1d intersect1d lexsort partition setdiff1d setxor1d union1d unique
    """,
    "files": """
        load save savez savez_compressed
    """,
    "grids": """
        c_ diag_indices diag_indices_from diagflat indices ix_ mgrid ogrid r_ tri tril_indices tril_indices_from
        triu_indices triu_indices_from vander
    """,
    "histograms": """
        digitize histogram histogram2d histogram_bin_edges histogramdd
    """,
    "inserting": """
        delete insert
    """,
    "interpolation": """
        interp
    """,
    "nan_reductions": """
        cumprod cumsum nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile
        nanprod nanquantile nanstd nansum nanvar
    """,
    "numbers": """
        bartlett blackman fabs fmax fmin hamming hanning kaiser modf rint
    """,
    "numpy_objects": """
        complexfloating dtype errstate euler_gamma floating generic geterr index_exp inexact integer iterable
        number s_ seterr signedinteger unsignedinteger
    """,
    "padding": """
        pad
    """,
    "places": """
        argwhere flatnonzero ravel_multi_index unravel_index
    """,
    "signals": """
        convolve correlate gradient unwrap
    """,
    "stacking": """
        append array_split atleast_1d atleast_2d atleast_3d block column_stack dsplit dstack hsplit hstack
        resize split vsplit vstack
    """,
    "statistics": """
        average median percentile poly polyfit polyval ptp quantile roots trapezoid
    """,
    "views": """
        fliplr flipud ndim ravel rollaxis rot90 shape size swapaxes trim_zeros
    """,
}
"""The public names of each module of `tilearray.numpy_names`."""

MODULE_OF: Final = {name: module for module, names in LATER.items() for name in names.split()}

_NO_NUMBERS = "tilearray has dtypes of numbers only; keep such data in a NumPy array"
_FILES = "write ta.asarray(np.{name}(...))"
_OUT = "write np.{name}(..., ta.to_numpy(x))"
_PRINT = "write np.{name}(ta.to_numpy(x)), or str(x)"

MISSING: Final = {
    # modules of NumPy
    "testing": "write np.testing: its functions take Arrays on the host",
    "ma": "write ta.where(mask, x, value), or reductions with where=mask: there are no masked arrays",
    "char": _NO_NUMBERS,
    "rec": _NO_NUMBERS,
    "strings": _NO_NUMBERS,
    "polynomial": "write np.polynomial with ta.to_numpy(x)",
    # dtypes that are not numbers, or that are not the same on every machine
    **dict.fromkeys(
        ["object_", "str_", "bytes_", "void", "datetime64", "timedelta64", "recarray", "record"], _NO_NUMBERS
    ),
    "character": _NO_NUMBERS,
    "flexible": _NO_NUMBERS,
    "longdouble": "write ta.float64, the widest float",
    "clongdouble": "write ta.complex128, the widest complex dtype",
    "float128": "write ta.float64, the widest float",
    "complex256": "write ta.complex128, the widest complex dtype",
    "long": "write ta.int64 or ta.int32: its width depends on the machine",
    "ulong": "write ta.uint64 or ta.uint32: its width depends on the machine",
    # names that NumPy has removed
    "Inf": "write ta.inf",
    "Infinity": "write ta.inf",
    "infty": "write ta.inf",
    "PINF": "write ta.inf",
    "NINF": "write -ta.inf",
    "NaN": "write ta.nan",
    "NAN": "write ta.nan",
    "NZERO": "write -0.0",
    "PZERO": "write 0.0",
    "alltrue": "write ta.all",
    "sometrue": "write ta.any",
    "product": "write ta.prod",
    "cumproduct": "write ta.cumprod",
    "trapz": "write ta.trapezoid",
    "row_stack": "write ta.vstack",
    "msort": "write ta.sort(x, 0)",
    "round_": "write ta.round",
    "float_": "write ta.float64",
    "complex_": "write ta.complex128",
    "bool8": "write ta.bool",
    "int0": "write ta.int64",
    "uint0": "write ta.uint64",
    "True_": "write True",
    "False_": "write False",
    "isfortran": "write x.flags.f_contiguous",
    "asscalar": "write x.item()",
    "asfarray": "write ta.asarray(x, dtype=float)",
    "find_common_type": "write ta.result_type",
    "matrix": "write ta.asarray with two axes, and x @ y for products",
    "mat": "write ta.asarray with two axes, and x @ y for products",
    # files and text
    **dict.fromkeys(["loadtxt", "genfromtxt", "fromfile", "fromstring", "memmap", "fromregex"], _FILES),
    "savetxt": _OUT,
    **dict.fromkeys(["array2string", "array_repr", "array_str", "format_float_positional"], _PRINT),
    # machinery of NumPy
    "nditer": "write a loop over ta.ndenumerate(x), or operations of whole arrays",
    "flatiter": "write ta.ravel(x)",
    "broadcast": "write ta.broadcast_arrays or ta.broadcast_shapes",
    "ufunc": "write ta.add and the other operations: they have reduce, accumulate, reduceat, outer and at",
    "frompyfunc": "write ta.vectorize",
    "require": "write ta.asarray(x, dtype, order)",
    "bmat": "write ta.block",
    # names of torch, CuPy and JAX
    "cat": "write ta.concat",
    "clamp": "write ta.clip",
    "from_numpy": "write ta.asarray",
    "as_tensor": "write ta.asarray",
    "tensor": "write ta.array",
    "Tensor": "write ta.Array",
    "permute": "write ta.permute_dims",
    "unsqueeze": "write ta.expand_dims",
    "numel": "write x.size",
    "asnumpy": "write ta.to_numpy",
    "from_torch": "write ta.asarray",
    "from_cupy": "write ta.asarray",
    "from_jax": "write ta.asarray",
    "ElementwiseKernel": "write an expression of operations",
    "RawKernel": "write the kernel with Triton or CuPy, over memory that DLPack shares",
    "device": "write ta.Device",
    "synchronize": "write ta.cuda.synchronize",
}
"""What to write for a name that is not here."""
