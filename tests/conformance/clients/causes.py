"""Why a client's test or call fails, and whose it is: a table of patterns.

The first row that fits counts. A failure that no row covers is "not judged yet", and stands in the record as it is.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Cause(NamedTuple):
    """A pattern of the name of the test, one of its message, the reason, and the project that would have to change."""

    test: str
    message: str
    reason: str
    whose: str


OPEN = Cause("", "", "not judged yet", "open")
CAUSES: tuple[Cause, ...] = (
    Cause(
        "array_api::",
        "has no attribute '__array_namespace__'",
        "`einops.array_api` asks arrays for the standard's namespace, which these do not have",
        "CuPy, torch",
    ),
    Cause(
        "test_input_validation",
        "Regex pattern did not match.*(be broadcast|out of range|cval)",
        "the test matches the words of the messages of libraries that it knows",
        "SciPy's test",
    ),
    Cause(
        "mismatched_dtypes.*(xlogy|xlog1py|rel_entr)",
        "float32 Desired: float64",
        "int64 with float32 is float64 in NumPy and float32 here; the standard leaves it open",
        "the standard",
    ),
    Cause("test_array_api_lazy", "DID NOT RAISE", "a test of lazy libraries; ours computes at once", "SciPy's test"),
    Cause(
        "TestXP_Mean.*test_dtype",
        "inf location mismatch",
        "expects a mean of float32 to overflow; ours accumulates in float64",
        "SciPy's test",
    ),
    Cause(
        "Test(Cum|Rel)freq.*float32",
        "Not equal to tolerance",
        "a float32 on the edge of a bin; the test is skipped there for torch, CuPy and JAX",
        "SciPy's test",
    ),
    Cause(
        "test_gh22601_infinite_elements",
        "inf values mismatch",
        "a complex sum of -0 is -0 here, whose logarithm is at -pi; SciPy makes pi of it, and NumPy's sum is 0",
        "SciPy's test",
    ),
    Cause(
        "test_rank17",
        "flags: writeable is read-only",
        "sets `x.flags.writeable`, which this version could not; it passes now, and the next record omits it",
        "tilearray",
    ),
    Cause(
        "test_incompatible_dtype",
        "int64",
        "`int_array[...] = 1.1` raises; the docstring allows it, and the test expects it of array-api-strict alone",
        "array-api-extra",
    ),
    Cause(
        r"ndimage/tests/test_filters.*\[cupy",
        "RuntimeError",
        "SciPy calls `cupyx.scipy.ndimage`, which has no modes for each axis and accepts other arguments",
        "CuPy",
    ),
    Cause(
        r"TestCov::.*weights\[cupy",
        "Not equal to tolerance",
        "`cupy.cov` centres with the plain mean, also where it is given weights",
        "CuPy",
    ),
    Cause(
        r"multilabel_confusion_matrix-numpy to cupy",
        "Unsupported type <class 'numpy.ndarray'>",
        "scikit-learn keeps NumPy's unique values in the metadata of a dtype, and CuPy takes the dtype over",
        "scikit-learn",
    ),
    Cause("test_delegates", "fallback should not be used", "`nunique` knows a list of libraries", "array-api-extra"),
    Cause(
        "xr.DataArray",
        "Vectorized indexing is not supported",
        "xarray indexes arrays of the standard along one axis at a time",
        "xarray",
    ),
    Cause(
        "test_cupy_core.py::test_asanyarray|test_cupy_unsupported",
        "DID NOT RAISE",
        "expects that CuPy refuses; ours take the call",
        "dask's test",
    ),
    Cause("test_cupy_creation.py::test_diagonal", "", "an empty diagonal is NumPy's, unless chunks are CuPy's", "dask"),
    Cause(
        "test_cupy_linalg.py",
        "No module named 'cupy",
        "SciPy, which dask calls for triangles, asks CuPy's stand-in for modules",
        "the stand-in",
    ),
    Cause("pd.Series", "KeyError", "a Series takes ndarrays, lists and its own arrays as a mask", "pandas"),
    Cause(
        "plt.(boxplot|errorbar)",
        "other result",
        "takes any other object than an ndarray for a list of its rows or of objects",
        "matplotlib",
    ),
    Cause(
        "memoryview",
        "a bytes-like object is required",
        "a class written in Python has no buffer before Python 3.12; write `memoryview(x.data)`",
        "Python",
    ),
    Cause(
        "sparse.COO",
        "returned NotImplemented|UnsupportedError|NotImplementedError",
        "sparse takes ndarrays, numbers and its own arrays as operands",
        "sparse",
    ),
    Cause("unique_values", "other result", "NumPy does not sort `unique_values`; ours are sorted", "NumPy"),
    Cause(
        "assert_equal",
        "bool: expected an array of one element",
        "compares anything but ndarrays with `==` and takes the truth of the result; `assert_array_equal` passes",
        "NumPy",
    ),
)


def of(test: str, message: str) -> Cause:
    """The first row that fits a failure; a line break in a message counts as a blank."""
    message = " ".join(message.split())
    for cause in CAUSES:
        if re.search(cause.test, test) and re.search(cause.message, message):
            return cause
    return OPEN
