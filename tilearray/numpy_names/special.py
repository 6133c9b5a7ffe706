"""SciPy's module of the same name: SciPy itself asks a namespace for it.

With ``SCIPY_ARRAY_API=1`` the functions of `scipy.special` are ours for Arrays where this module has the name. Those
that are no ops are SciPy's own on the host, and formulas of `special_on_gpu` on a GPU. For names that are not here
SciPy computes over a copy on the host, and so refuses an Array on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.functions.conversion import astype
from tilearray.functions.numpy_memory import run_with_numpy
from tilearray.functions.softmax import log_softmax as log_softmax
from tilearray.functions.softmax import logsumexp as logsumexp
from tilearray.functions.softmax import softmax as softmax
from tilearray.ops.elementary import (
    cbrt,
    entr,
    erf,
    erfc,
    erfinv,
    exp2,
    expit,
    expm1,
    gamma,
    log1p,
    logit,
    ndtr,
    xlog1py,
    xlogy,
)
from tilearray.ops.elementary import lgamma as gammaln

# fmt: off
__all__ = [
    "cbrt", "chdtr", "chdtrc", "entr", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gamma", "gammainc",
    "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "ndtr",
    "ndtri", "polygamma", "psi", "softmax", "xlog1py", "xlogy", "zeta",
]
# fmt: on


def _function(name: str) -> Callable[..., Array]:
    """SciPy's function of Arrays on the host; on a GPU the formula in float64, rounded once to SciPy's dtype."""

    def function(*operands: Any) -> Array:
        gpus = [x.device for x in operands if isinstance(x, Array) and not x.device.backend.on_host]
        if not gpus:
            return run_with_numpy(f"special.{name}", getattr(import_module("scipy.special"), name), operands, {})
        given = [x if isinstance(x, Array) else asarray(x, dtype=dtypes.float64, device=gpus[0]) for x in operands]
        formula = getattr(import_module("tilearray.numpy_names.special_on_gpu"), name)
        found = formula(*[astype(x, dtypes.float64, copy=False) for x in given])
        kinds = [getattr(x, "dtype", x if isinstance(x, (int, float)) else dtypes.float64) for x in operands]
        return astype(found, np.result_type(np.float32, *kinds), copy=False)

    function.__name__ = function.__qualname__ = name
    return function


chdtr, chdtrc, gammainc, gammaincc = map(_function, ("chdtr", "chdtrc", "gammainc", "gammaincc"))
polygamma, psi, zeta = map(_function, ("polygamma", "psi", "zeta"))
i0, i0e, i1, i1e = map(_function, ("i0", "i0e", "i1", "i1e"))
log_ndtr, ndtri = map(_function, ("log_ndtr", "ndtri"))
