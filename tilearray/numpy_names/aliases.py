"""NumPy's other names of functions and dtypes of tilearray: one table, a line for each name.

A name stands here if the function is that of NumPy in every respect but its name. `tilearray.numpy_names` has functions
of their own for the rest.
"""

from __future__ import annotations

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.functions.joining import concat
from tilearray.functions.reductions import max, min
from tilearray.ops.arithmetic import abs, bitwise_invert
from tilearray.ops.composed import round
from tilearray.ops.elementary import acos, acosh, asin, asinh, atan, atan2, atanh, deg2rad, rad2deg
from tilearray.ops.number_parts import conj, trunc

# fmt: off
absolute = abs
amax, amin = max, min
arccos, arccosh = acos, acosh
arcsin, arcsinh = asin, asinh
arctan, arctan2, arctanh = atan, atan2, atanh
around = round
bitwise_not = invert = bitwise_invert
concatenate = concat
conjugate = conj
degrees, radians = rad2deg, deg2rad
fix = trunc
ndarray = Array

byte, short, intc, longlong = dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64
ubyte, ushort, uintc, ulonglong = dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64
int_, uint, intp, uintp = dtypes.int64, dtypes.uint64, dtypes.int64, dtypes.uint64
half, single, double = dtypes.float16, dtypes.float32, dtypes.float64
csingle, cdouble = dtypes.complex64, dtypes.complex128
bool_ = dtypes.bool_
# fmt: on
