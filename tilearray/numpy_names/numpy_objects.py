"""Names that are NumPy's own objects: classes of dtypes, the context of floating-point errors, helpers of indexing.

They say nothing about arrays, so a program may use ours and NumPy's beside each other.
"""

from __future__ import annotations

import numpy as np

# fmt: off
dtype = np.dtype
generic, number, integer, inexact = np.generic, np.number, np.integer, np.inexact
signedinteger, unsignedinteger = np.signedinteger, np.unsignedinteger
floating, complexfloating = np.floating, np.complexfloating
errstate, seterr, geterr = np.errstate, np.seterr, np.geterr
index_exp, s_ = np.index_exp, np.s_
iterable = np.iterable
euler_gamma = np.euler_gamma
# fmt: on
