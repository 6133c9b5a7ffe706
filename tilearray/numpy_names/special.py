"""SciPy's module of the same name: SciPy itself asks a namespace for it.

With ``SCIPY_ARRAY_API=1`` the functions of `scipy.special` are ours for Arrays where this module has the name. Those
that are no ops are SciPy's own on the host, and on a GPU formulas of `special_on_gpu`, `bessel_on_gpu`, `beta_on_gpu`
and `closed_forms_on_gpu`. For names that are not here SciPy computes over a copy on the host, and so refuses an Array
on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.functions.conversion import astype
from tilearray.functions.numpy_memory import run_with_numpy
from tilearray.functions.softmax import log_softmax as log_softmax
from tilearray.functions.softmax import logsumexp as logsumexp
from tilearray.functions.softmax import softmax as softmax
from tilearray.missing_names import MissingNameError
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
    sinc,
    xlog1py,
    xlogy,
)
from tilearray.ops.elementary import lgamma as gammaln

# fmt: off
__all__ = [
    "betainc", "betaincc", "boxcox", "boxcox1p", "cbrt", "chdtr", "chdtrc", "cosdg", "cosm1", "cotdg", "ellipk",
    "ellipkm1", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "exp10", "expit", "expm1", "exprel", "fdtr", "fdtrc",
    "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn", "gdtr", "gdtrc", "huber", "i0", "i0e", "i1", "i1e",
    "inv_boxcox", "inv_boxcox1p", "j0", "j1", "k0", "k0e", "k1", "k1e", "kl_div", "log1p", "log_ndtr", "log_softmax",
    "loggamma", "logit", "logsumexp", "ndtr", "ndtri", "pdtr", "pdtrc", "polygamma", "pseudo_huber", "psi", "radian",
    "rel_entr", "rgamma", "sinc", "sindg", "softmax", "stdtr", "tandg", "xlog1py", "xlogy", "y0", "y1", "zeta", "zetac",
]
# fmt: on


def _function(name: str, formulas: str = "special_on_gpu") -> Callable[..., Array]:
    """SciPy's function of Arrays on the host; on a GPU the formula in float64, rounded once to SciPy's dtype.

    `formulas` is the module of the formula.
    """

    def function(*operands: Any) -> Array:
        gpus = [x.device for x in operands if isinstance(x, Array) and not x.device.backend.on_host]
        if not gpus:
            host = [_widened(x) if isinstance(x, Array) else x for x in operands]
            return run_with_numpy(f"special.{name}", getattr(import_module("scipy.special"), name), (*host,), {})
        given = [x if isinstance(x, Array) else asarray(x, dtype=dtypes.float64, device=gpus[0]) for x in operands]
        formula = getattr(import_module(f"tilearray.numpy_names.{formulas}"), name)
        found = formula(*[astype(x, dtypes.float64, copy=False) for x in given])
        kinds = [getattr(x, "dtype", x if isinstance(x, (int, float)) else dtypes.float64) for x in operands]
        return astype(found, np.result_type(*[np.result_type(np.float32, kind) for kind in kinds]), copy=False)

    function.__name__ = function.__qualname__ = name
    return function


def _widened(x: Array) -> Array:
    """An Array that float32 holds as float32, for which some of SciPy's functions have no loop and others have one."""
    return astype(x, dtypes.float32, copy=False) if np.result_type(np.float32, x.dtype) == np.float32 else x


chdtr, chdtrc, gammainc, gammaincc = map(_function, ("chdtr", "chdtrc", "gammainc", "gammaincc"))
gdtr, gdtrc, pdtr, pdtrc = map(_function, ("gdtr", "gdtrc", "pdtr", "pdtrc"))
polygamma, psi, zeta = map(_function, ("polygamma", "psi", "zeta"))
i0, i0e, i1, i1e = map(_function, ("i0", "i0e", "i1", "i1e"))
log_ndtr, ndtri = map(_function, ("log_ndtr", "ndtri"))

_bessel = partial(_function, formulas="bessel_on_gpu")
j0, j1, y0, y1 = map(_bessel, ("j0", "j1", "y0", "y1"))
k0, k0e, k1, k1e = map(_bessel, ("k0", "k0e", "k1", "k1e"))

_of_beta = partial(_function, formulas="beta_on_gpu")
betainc, betaincc, stdtr = map(_of_beta, ("betainc", "betaincc", "stdtr"))
fdtr, fdtrc = map(_of_beta, ("fdtr", "fdtrc"))

_closed = partial(_function, formulas="closed_forms_on_gpu")
cosdg, cotdg, radian, sindg, tandg = map(_closed, ("cosdg", "cotdg", "radian", "sindg", "tandg"))
cosm1, exp10, exprel = map(_closed, ("cosm1", "exp10", "exprel"))
boxcox, boxcox1p, inv_boxcox, inv_boxcox1p = map(_closed, ("boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p"))
huber, kl_div, pseudo_huber, rel_entr = map(_closed, ("huber", "kl_div", "pseudo_huber", "rel_entr"))
erfcx, gammasgn, loggamma, rgamma, zetac = map(_closed, ("erfcx", "gammasgn", "loggamma", "rgamma", "zetac"))
ellipk, ellipkm1 = map(_closed, ("ellipk", "ellipkm1"))

if not TYPE_CHECKING:  # a checker knows all names, and would let each misspelled one pass

    def __getattr__(name):
        """Say what to write for a name that is missing."""
        advice = f"write scipy.special.{name}, which takes Arrays of the host; dir(ta.special) lists what is here"
        raise MissingNameError(name, __all__, "special", advice)


def __dir__() -> list[str]:
    return sorted(__all__)
