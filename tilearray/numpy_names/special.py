"""SciPy's module of the same name, as far as there are ops: SciPy itself asks a namespace for it.

With ``SCIPY_ARRAY_API=1`` the functions of `scipy.special` are ours for Arrays where this module has the name. The
others compute over a copy on the host, so they refuse an Array on a GPU.
"""

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
    "cbrt", "entr", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gamma", "gammaln", "log1p", "log_softmax",
    "logit", "logsumexp", "ndtr", "softmax", "xlog1py", "xlogy",
]
# fmt: on
