"""Types for annotations: what may stand where the library takes an operand, a dtype, a device or a name.

A program imports them for its own annotations: ``from tilearray.typing import DTypeLike``. Names are `Literal` types,
so that a checker finds ``dtype="flaot32"`` before the program runs. A name that is only known at run time goes through
``np.dtype(name)`` or ``typing.cast(DTypeName, name)``.

The module lies below all folders that use it, and the classes of arrays above it. Only a checker follows these imports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, SupportsIndex, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from tilearray.array_object import Array as Array
    from tilearray.engine.signature import ArrayBase

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
    "Shape",
]

HostData: TypeAlias = (
    "complex | np.generic | np.ndarray[Any, Any] | list[Any] | tuple[Any, ...]"  # complex: all numbers
)
"""A number, an ndarray or a list: operands that are not Arrays. Beside an Array on a GPU, only numbers are."""

Operand: TypeAlias = "ArrayBase | HostData"
"""An operand of a function or an operator."""

Shape: TypeAlias = "SupportsIndex | Sequence[SupportsIndex]"
"""The extents of the axes; an int is the extent of one axis."""

Axis: TypeAlias = "int | None"
"""One axis; None means all elements."""

Axes: TypeAlias = "int | Sequence[int] | None"
"""One axis or several; None means all."""

SemanticsName = Literal["array-api", "triton", "cutile", "torch", "numpy"]
"""The names of the semantics."""

# --- rounding --------------------------------------------------------------------------------------------------------

DirectedMode = Literal["rn", "rz", "rm", "rp"]
"""The rounding modes of correctly rounded functions: to nearest, toward zero, toward -infinity, toward +infinity."""

FastMode = Literal["full", "approx"]
"""The rounding modes that are instructions of GPUs."""

CastMode = Literal["rn", "rz", "rm", "rp", "ra", "rzi"]
"""The rounding modes of casts."""

RoundingMode = Literal["rn", "rz", "rm", "rp", "ra", "rzi", "full", "approx"]
"""All rounding modes."""


class NamedMode(Protocol):
    """A member of another library's enumeration of rounding modes, such as ``cuda.tile.RoundingMode``."""

    @property
    def name(self) -> str: ...


# --- dtypes ----------------------------------------------------------------------------------------------------------

DTypeName = Literal[
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    # NumPy's codes with the number of bytes
    "i1",
    "i2",
    "i4",
    "u1",
    "u2",
    "u4",
    "f2",
    "f4",
    "f8",
    "c8",
    "c16",
    # short names with the number of bits: `SHORT_NAMES` of tilearray.dtypes
    "i16",
    "i32",
    "i64",
    "u16",
    "u32",
    "u64",
    "e4m3",
    "e5m2",
    "e2m1",
    "fp16",
    "bf16",
    "fp32",
    "fp64",
    "f32",
    "f64",
    "c64",
    "c128",
]
"""The names of dtypes, and NumPy's short names without those that also name a number of bits."""


class ForeignDType(Protocol):
    """A dtype of another library: torch's has an itemsize, as NumPy's does."""

    @property
    def itemsize(self) -> int: ...


DTypeLike: TypeAlias = "DTypeName | np.dtype[Any] | type[Any] | ForeignDType"
"""A dtype, its name, a Python or NumPy scalar type, or a dtype of another library."""


class HasDType(Protocol):
    """An array of any library."""

    @property
    def dtype(self) -> Any: ...


# --- devices ---------------------------------------------------------------------------------------------------------

DeviceName = Literal[
    "cpu",
    "cuda",
    "cuda:0",
    "cuda:1",
    "cuda:2",
    "cuda:3",
    "cuda:4",
    "cuda:5",
    "cuda:6",
    "cuda:7",
    "cuda:8",
    "cuda:9",
    "cuda:10",
    "cuda:11",
    "cuda:12",
    "cuda:13",
    "cuda:14",
    "cuda:15",
]
"""The names of devices. A host with more GPUs writes ``ta.devices()[16]``."""


class DeviceObject(Protocol):
    """A device: `tilearray.Device`, or one of another library with the same names, such as ``torch.device``."""

    @property
    def type(self) -> str: ...
    @property
    def index(self) -> Any: ...


DeviceLike: TypeAlias = "DeviceName | DeviceObject"
"""A device or its name."""
