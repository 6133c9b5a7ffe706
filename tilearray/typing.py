"""Types for annotations: what may stand where the library takes an operand, a dtype, a device or a name.

A program imports them for its own annotations: ``from tilearray.typing import DTypeLike``. Names are `Literal` types,
so that a checker finds ``dtype="flaot32"`` before the program runs. A name that is only known at run time goes through
``np.dtype(name)`` or ``typing.cast(DTypeName, name)``.

Each type is defined beside the rule that it describes; here they are together.
"""

from tilearray.dtypes import DTypeLike, DTypeName, ForeignDType, HasDType
from tilearray.engine.devices import DeviceLike, DeviceName, DeviceObject
from tilearray.engine.signature import HostData, Operand
from tilearray.geometry.shapes import Axes, Axis, ShapeLike
from tilearray.ops.options import CastMode, DirectedMode, FastMode, NamedMode, RoundingMode
from tilearray.promotion.semantics import SemanticsName

__all__ = [
    "Axes",
    "Axis",
    "CastMode",
    "DTypeLike",
    "DTypeName",
    "DeviceLike",
    "DeviceName",
    "DeviceObject",
    "DirectedMode",
    "FastMode",
    "ForeignDType",
    "HasDType",
    "HostData",
    "NamedMode",
    "Operand",
    "RoundingMode",
    "SemanticsName",
    "ShapeLike",
]
