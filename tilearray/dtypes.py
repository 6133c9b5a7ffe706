"""The dtype table: one row per dtype. The library reads every fact about a dtype from its row.

A dtype *is* an ``np.dtype`` instance, NumPy's or ml_dtypes'. The library has no dtype class of its own, because clients
compare, hash and inspect dtypes, and NumPy, CuPy and JAX already share these objects. `DTypeInfo` holds the facts that
such an object lacks or states wrongly: bfloat16 has kind 'V', and float8_e5m2 alone of the 8-bit floats has kind 'f'.

Arithmetic is defined for the dtypes of `ARITHMETIC`. The dtypes of `STORAGE_ONLY` can be viewed, copied and cast. An
element of a dtype of `PACKED` is a byte with two floats: it can be viewed and copied, and `tilearray.unpack_float4`
gives the floats. To NumPy it is a structure with one field, which has the format's name, so files tell it from bytes.

Every dtype that a caller writes passes through `as_dtype`. It returns the table's own object, so equal dtypes are
identical, or it raises an error that gives the reason. It recognises dtypes of torch, Triton and JAX by the module
that defines their class, and so never imports a framework.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

import ml_dtypes
import numpy as np

from tilearray.errors import DTypeError, shown

Kind = Literal["bool", "int", "uint", "float", "complex", "pair"]

KIND_NAMES: Final[dict[Kind, str]] = {
    "bool": "bool",
    "int": "signed integer",
    "uint": "unsigned integer",
    "float": "float",
    "complex": "complex",
    "pair": "packed pair of floats",
}
"""The kinds in words, for error messages."""


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """The format of a floating-point dtype. A code is the bits of a value as an unsigned integer.

    The backends import nothing of the library, so the CUDA backend has its own table of the formats that it converts.

    Attributes
    ----------
    mantissa : int
        The number of mantissa bits, without the implicit leading bit.
    bias : int
        The bias of the exponent.
    largest : int
        The code of the largest finite value.
    infinity : int or None
        The code of +inf; None if the format has no infinity.
    """

    mantissa: int
    bias: int
    largest: int
    infinity: int | None


@dataclass(frozen=True, slots=True)
class DTypeInfo:
    """The facts about one dtype.

    Attributes
    ----------
    name : str
        The name by which `as_dtype` finds the dtype.
    dtype : numpy.dtype
        The dtype itself.
    kind : {"bool", "int", "uint", "float", "complex", "pair"}
        The kind. Signed and unsigned integers are different kinds; every real floating-point format is "float".
    bits : int
        The width of a value. It is ``8 * dtype.itemsize``, except for float4_e2m1fn: 4 bits, stored in a byte.
    triton : str or None
        The name in Triton's signatures; None if Triton does not have the dtype.
    dlpack : tuple of int
        DLPack's type code and bits, of each lane; an element of kind "pair" has two lanes.
    arithmetic : bool
        False if the dtype is for storage only.
    format : FloatFormat or None
        The floating-point format; None for all other kinds.
    """

    name: str
    dtype: np.dtype
    kind: Kind
    bits: int
    triton: str | None
    dlpack: tuple[int, int]
    arithmetic: bool
    format: FloatFormat | None


def _row(
    scalar_type: Any,
    kind: Kind,
    triton: str | None,
    dlpack_code: int,
    format: FloatFormat | None = None,
    *,
    bits: int = 0,
    arithmetic: bool = True,
) -> DTypeInfo:
    dtype = np.dtype(scalar_type)
    bits = bits or 8 * dtype.itemsize
    return DTypeInfo(dtype.name, dtype, kind, bits, triton, (dlpack_code, bits), arithmetic, format)


def _storage(
    scalar_type: Any, triton: str | None, dlpack_code: int, format: FloatFormat, *, bits: int = 0
) -> DTypeInfo:
    return _row(scalar_type, "float", triton, dlpack_code, format, bits=bits, arithmetic=False)


# DLPack's type codes: DLDataTypeCode in dlpack.h, version 1.1.
_TABLE: Final = (
    _row(np.bool_, "bool", "i1", 6),
    _row(np.int8, "int", "i8", 0),
    _row(np.int16, "int", "i16", 0),
    _row(np.int32, "int", "i32", 0),
    _row(np.int64, "int", "i64", 0),
    _row(np.uint8, "uint", "u8", 1),
    _row(np.uint16, "uint", "u16", 1),
    _row(np.uint32, "uint", "u32", 1),
    _row(np.uint64, "uint", "u64", 1),
    _row(ml_dtypes.float8_e4m3fn, "float", "fp8e4nv", 10, FloatFormat(3, 7, 0x7E, None)),
    _row(ml_dtypes.float8_e5m2, "float", "fp8e5", 12, FloatFormat(2, 15, 0x7B, 0x7C)),
    _row(np.float16, "float", "fp16", 2, FloatFormat(10, 15, 0x7BFF, 0x7C00)),
    _row(ml_dtypes.bfloat16, "float", "bf16", 4, FloatFormat(7, 127, 0x7F7F, 0x7F80)),
    _row(np.float32, "float", "fp32", 2, FloatFormat(23, 127, 0x7F7F_FFFF, 0x7F80_0000)),
    _row(np.float64, "float", "fp64", 2, FloatFormat(52, 1023, 0x7FEF_FFFF_FFFF_FFFF, 0x7FF0_0000_0000_0000)),
    _row(np.complex64, "complex", None, 5),
    _row(np.complex128, "complex", None, 5),
    _storage(ml_dtypes.float8_e3m4, None, 7, FloatFormat(4, 3, 0x6F, 0x70)),
    _storage(ml_dtypes.float8_e4m3, None, 8, FloatFormat(3, 7, 0x77, 0x78)),
    _storage(ml_dtypes.float8_e4m3b11fnuz, None, 9, FloatFormat(3, 11, 0x7F, None)),
    _storage(ml_dtypes.float8_e4m3fnuz, "fp8e4b8", 11, FloatFormat(3, 8, 0x7F, None)),
    _storage(ml_dtypes.float8_e5m2fnuz, "fp8e5b16", 13, FloatFormat(2, 16, 0x7F, None)),
    _storage(ml_dtypes.float8_e8m0fnu, None, 14, FloatFormat(0, 127, 0xFE, None)),
    _storage(ml_dtypes.float4_e2m1fn, None, 17, FloatFormat(1, 1, 0x7, None), bits=4),
)

_FLOAT4: Final = _TABLE[-1]
_PAIRS: Final = (
    DTypeInfo("float4_e2m1fn_x2", np.dtype([("float4_e2m1fn_x2", "u1")]), "pair", 8, None, _FLOAT4.dlpack, False, None),
)

DESCRIPTORS: Final = {
    row.dtype: np.dtype([(row.name, f"u{row.dtype.itemsize}")]) for row in _TABLE if row.dtype.isbuiltin != 1
}
"""For each dtype of ml_dtypes a structure with one field of its name, by which files of NumPy's format tell it."""
_OF_DESCRIPTORS: Final = {descriptor: dtype for dtype, descriptor in DESCRIPTORS.items()}

_BY_DTYPE: Final = {row.dtype: row for row in (*_TABLE, *_PAIRS)}
_BY_NAME: Final = {row.name: row.dtype for row in (*_TABLE, *_PAIRS)}
# Triton prints integers as int8, and all other dtypes as in its signatures.
_BY_TRITON_NAME: Final = {"int1": np.dtype(np.bool_)} | {row.triton: row.dtype for row in _TABLE if row.triton}

ALL: Final = tuple(row.dtype for row in _TABLE)
ARITHMETIC: Final = tuple(row.dtype for row in _TABLE if row.arithmetic)
STORAGE_ONLY: Final = tuple(row.dtype for row in _TABLE if not row.arithmetic)
PACKED: Final = tuple(row.dtype for row in _PAIRS)

bool_: Final = _BY_NAME["bool"]
int8: Final = _BY_NAME["int8"]
int16: Final = _BY_NAME["int16"]
int32: Final = _BY_NAME["int32"]
int64: Final = _BY_NAME["int64"]
uint8: Final = _BY_NAME["uint8"]
uint16: Final = _BY_NAME["uint16"]
uint32: Final = _BY_NAME["uint32"]
uint64: Final = _BY_NAME["uint64"]
float8_e4m3fn: Final = _BY_NAME["float8_e4m3fn"]
float8_e5m2: Final = _BY_NAME["float8_e5m2"]
float16: Final = _BY_NAME["float16"]
bfloat16: Final = _BY_NAME["bfloat16"]
float32: Final = _BY_NAME["float32"]
float64: Final = _BY_NAME["float64"]
complex64: Final = _BY_NAME["complex64"]
complex128: Final = _BY_NAME["complex128"]
float8_e3m4: Final = _BY_NAME["float8_e3m4"]
float8_e4m3: Final = _BY_NAME["float8_e4m3"]
float8_e4m3b11fnuz: Final = _BY_NAME["float8_e4m3b11fnuz"]
float8_e4m3fnuz: Final = _BY_NAME["float8_e4m3fnuz"]
float8_e5m2fnuz: Final = _BY_NAME["float8_e5m2fnuz"]
float8_e8m0fnu: Final = _BY_NAME["float8_e8m0fnu"]
float4_e2m1fn: Final = _BY_NAME["float4_e2m1fn"]
float4_e2m1fn_x2: Final = _BY_NAME["float4_e2m1fn_x2"]

_PYTHON_TYPES: Final[dict[object, np.dtype]] = {bool: bool_, int: int64, float: float64, complex: complex128}

SHORT_NAMES: Final[dict[str, np.dtype]] = {
    **{
        f"{code}{bits}": _BY_NAME[f"{kind}{bits}"]
        for code, kind in (("i", "int"), ("u", "uint"))
        for bits in (16, 32, 64)
    },
    "e4m3": float8_e4m3fn,  # without infinities, as GPUs, torch and ONNX have it; ml_dtypes also has an IEEE-like one
    "e5m2": float8_e5m2,
    "e2m1": float4_e2m1fn,
    "fp16": float16,
    "bf16": bfloat16,
    "fp32": float32,
    "fp64": float64,
    "f32": float32,
    "f64": float64,
    "c64": complex64,
    "c128": complex128,
}
"""Names of kernels and papers that `as_dtype` accepts beside the names of the table and NumPy's codes."""

# Names that two groups of people read as different dtypes: the reading in bits and the reading in bytes or another.
_AMBIGUOUS: Final = {
    "i8": ("int64 (8 bytes) to NumPy and int8 (8 bits) to GPU compilers", "'int64' or 'int8'"),
    "u8": ("uint64 (8 bytes) to NumPy and uint8 (8 bits) to GPU compilers", "'uint64' or 'uint8'"),
    "f16": ("float128 (16 bytes) to NumPy and float16 (16 bits) to GPU compilers", "'float16'"),
    "fp8": ("one of several 8-bit formats", "'e4m3' or 'e5m2'"),
    "float8": ("one of several 8-bit formats", "'e4m3' or 'e5m2'"),
}

# Dtypes of other libraries that this one does not have: a pattern of their names, the reason, what to write instead.
_REFUSED: Final = tuple(
    (re.compile(pattern), reason, instead)
    for pattern, reason, instead in (
        ("tf32|tensorfloat", "is a rounding of tensor cores, not a format in memory", "'float32'"),
        ("b?complex32|chalf", "has half-precision parts, and no operation computes with them", "'complex64'"),
        ("qu?int", "is quantized", "'int8' or 'uint8', and keep scale and zero point beside it"),
        ("bits?[0-9]*", "has bits but no values", "'uint8' and view the data as that"),
        ("u?int[1-7]($|x|_)", "is smaller than a byte, so a single value has no address", "'int8' or 'uint8'"),
        ("float6", "has no byte-wise layout that libraries agree on", "'float8_e4m3fn'"),
        ("c?longdouble|float(80|96|128)|complex(192|256)", "has no arithmetic on GPUs", "'float64' or 'complex128'"),
        ("void|record", "is structured or raw memory", "one array for each field, each with its own dtype"),
        ("object", "holds Python objects", "a numeric dtype"),
        ("str|bytes|unicode|String", "holds text", "a numeric dtype"),
        ("datetime|timedelta", "holds dates or durations", "'int64' and view the data as that"),
    )
)


def info(dtype: np.dtype, /) -> DTypeInfo:
    """Return the row of a dtype.

    Raises
    ------
    DTypeError
        If the table does not have the dtype.

    Examples
    --------
    >>> from tilearray import dtypes
    >>> dtypes.info(dtypes.bfloat16).kind
    'float'
    """
    found = _BY_DTYPE.get(dtype)
    return found if found is not None else _BY_DTYPE[_supported(dtype, "info")]


def as_dtype(obj: object, function: str = "asarray") -> np.dtype:
    """Return the dtype that an object names.

    Parameters
    ----------
    obj : object
        An ``np.dtype``, a name (also a code of NumPy such as "f4", or one of `SHORT_NAMES`), a Python, NumPy
        or ml_dtypes scalar type, or a dtype of torch, CuPy, JAX or Triton. Python types have NumPy's meaning: ``int``
        is int64.
    function : str
        The function that was called, for the error message.

    Returns
    -------
    numpy.dtype
        The table's own object.

    Raises
    ------
    DTypeError
        If the dtype does not exist, is not supported, or has an ambiguous name ("i8", "u8", "f16", "fp8"); the message
        says what to write instead.

    Examples
    --------
    >>> from tilearray.dtypes import as_dtype
    >>> as_dtype("f4"), as_dtype("bf16"), as_dtype(bool)
    (dtype('float32'), dtype(bfloat16), dtype('bool'))
    """
    if isinstance(obj, np.dtype):
        row = _BY_DTYPE.get(obj)  # pyright: ignore[reportUnknownArgumentType]
        return _supported(obj, function) if row is None else row.dtype  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(obj, str):
        return _from_name(obj, function)
    if isinstance(obj, type):
        return _from_type(cast("type[object]", obj), function)
    return _from_framework(obj, function)


def dtype_of(obj: object, function: str) -> np.dtype:
    """Return the dtype of an array, or the dtype that an object names: see `as_dtype`."""
    if isinstance(obj, np.dtype | str | type):
        return as_dtype(obj, function)  # pyright: ignore[reportUnknownArgumentType]
    return as_dtype(getattr(obj, "dtype", obj), function)


def _supported(dtype: np.dtype, function: str) -> np.dtype:
    row = _BY_DTYPE.get(_OF_DESCRIPTORS.get(dtype, dtype))
    if row is not None:
        return row.dtype
    if dtype.name in _BY_NAME:  # a name does not include the byte order
        raise DTypeError(
            f"{function}: dtype {dtype.str!r} is {dtype.name} in foreign byte order; "
            f"write x.astype({dtype.name!r}) in NumPy first"
        )
    raise _refusal(dtype.name, function)


def _from_name(name: str, function: str) -> np.dtype:
    known = _BY_NAME.get(name) or SHORT_NAMES.get(name)
    if known is not None:
        return known
    if name in _AMBIGUOUS:
        meaning, instead = _AMBIGUOUS[name]
        raise DTypeError(f"{function}: dtype {name!r} is ambiguous: it is {meaning}; write {instead}")
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):  # NumPy parses "f4,i4", and raises SyntaxError for "f4,,"
        raise _refusal(name, function) from None
    return _supported(dtype, function)


def _from_type(cls: type[object], function: str) -> np.dtype:
    known = _PYTHON_TYPES.get(cls)
    if known is not None:
        return known
    if not issubclass(cls, np.generic):
        return _from_framework(cls, function)
    try:
        dtype = np.dtype(cast("type[Any]", cls))
    except TypeError:  # an abstract type: np.floating
        raise _refusal(cls.__name__, function) from None
    return _supported(dtype, function)


def _from_framework(obj: object, function: str) -> np.dtype:
    """Return the dtype that corresponds to a framework's own dtype object."""
    framework = type(obj).__module__.partition(".")[0]
    if framework in ("jax", "jaxlib"):  # jnp.float32 is a class that carries an np.dtype
        inner: object = getattr(obj, "dtype", None)
        if isinstance(inner, np.dtype):
            return _supported(inner, function)  # pyright: ignore[reportUnknownArgumentType]
    if framework in ("torch", "triton"):
        name = str(obj).removeprefix("torch.")
        known = _BY_NAME.get(name) or (_BY_TRITON_NAME.get(name) if framework == "triton" else None)
        if known is not None:
            return known
        raise _refusal(name, function)
    if isinstance(obj, type):
        raise _refusal(obj.__name__, function)
    instead = "write a name such as 'float32', or a dtype of tilearray, NumPy, ml_dtypes or torch"
    if isinstance(obj, int):  # zeros(2, 3), as in torch
        instead += "; write several sizes of a shape as one tuple: (2, 3)"
    raise DTypeError(f"{function}: expected a dtype, got {shown(obj):.60} of type {type(obj).__name__}; {instead}")


def _refusal(name: str, function: str) -> DTypeError:
    for pattern, reason, instead in _REFUSED:
        if pattern.match(name):
            return DTypeError(f"{function}: dtype {name!r} is not supported: it {reason}; write {instead}")
    return DTypeError(f"{function}: {name!r} is not a dtype; write one of {', '.join(_BY_NAME)}")


@dataclass(frozen=True, slots=True)
class FInfo:
    """Limits of a floating-point dtype, or of the parts of a complex dtype, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class IInfo:
    """Limits of an integer dtype, as Python numbers."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def finfo(type: Any, /) -> FInfo:
    """Return the limits of a floating-point dtype, or of the parts of a complex dtype.

    Parameters
    ----------
    type : dtype or array
        A dtype, any object that `as_dtype` accepts, or an array.

    Returns
    -------
    FInfo
        With ``bits``, ``eps``, ``max``, ``min``, ``smallest_normal`` and ``dtype``.

    Raises
    ------
    DTypeError
        If the dtype is an integer dtype or bool.

    Of a dtype of `PACKED` they are the limits of each of the two floats.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.finfo("bfloat16").eps
    0.0078125
    >>> ta.finfo(ta.complex64).dtype
    dtype('float32')
    """
    row = info(dtype_of(type, "finfo"))
    if row.kind == "pair":
        row = _FLOAT4
    if row.kind not in ("float", "complex"):
        raise DTypeError(f"finfo: expected a floating-point or complex dtype, got {row.name}; write iinfo for integers")
    limits = cast(Any, ml_dtypes.finfo(row.dtype))
    return FInfo(
        bits=row.bits // 2 if row.kind == "complex" else row.bits,
        eps=float(limits.eps),
        max=float(limits.max),
        min=float(limits.min),
        smallest_normal=float(limits.smallest_normal),
        dtype=np.dtype(limits.dtype),
    )


def iinfo(type: Any, /) -> IInfo:
    """Return the limits of an integer dtype.

    Parameters
    ----------
    type : dtype or array
        A dtype, any object that `as_dtype` accepts, or an array.

    Returns
    -------
    IInfo
        With ``bits``, ``max``, ``min`` and ``dtype``.

    Raises
    ------
    DTypeError
        If the dtype is not an integer dtype.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.iinfo("uint8").max
    255
    """
    row = info(dtype_of(type, "iinfo"))
    if row.kind == "int":
        half = 2 ** (row.bits - 1)
        return IInfo(row.bits, half - 1, -half, row.dtype)
    if row.kind == "uint":
        return IInfo(row.bits, 2**row.bits - 1, 0, row.dtype)
    raise DTypeError(f"iinfo: expected an integer dtype, got {row.name}; write finfo for floating-point dtypes")


KINDS: Final[dict[str, tuple[Kind, ...]]] = {
    "bool": ("bool",),
    "signed integer": ("int",),
    "unsigned integer": ("uint",),
    "integral": ("int", "uint"),
    "real floating": ("float",),
    "complex floating": ("complex",),
    "numeric": ("int", "uint", "float", "complex"),
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype belongs to a kind. The array API standard defines the kinds.

    Parameters
    ----------
    dtype : dtype
        Any object that `as_dtype` accepts.
    kind : str, dtype or tuple of them
        A dtype, or "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" or
        "numeric". A tuple matches if one of its members matches.

    Raises
    ------
    DTypeError
        If `kind` is neither a dtype nor the name of a kind.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.isdtype(ta.bfloat16, "real floating"), ta.isdtype("uint8", (ta.int8, "bool"))
    (True, False)
    """
    row = info(as_dtype(dtype, "isdtype"))
    if isinstance(kind, tuple):
        matches = [_is_kind(row, member) for member in cast("tuple[object, ...]", kind)]  # checks every member
        return any(matches)
    return _is_kind(row, kind)


def _is_kind(row: DTypeInfo, kind: object) -> bool:
    if isinstance(kind, str) and kind in KINDS:
        return row.kind in KINDS[kind]
    try:
        return row.dtype == as_dtype(kind, "isdtype")
    except DTypeError as error:
        raise DTypeError(f"{error}; or a kind: {', '.join(map(repr, KINDS))}") from None


def kinds_in_words(kinds: Collection[str]) -> str:
    """Return kinds for an error message.

    >>> kinds_in_words({"float", "int"})
    'signed integer, float'
    """
    return ", ".join(words for kind, words in KIND_NAMES.items() if kind in kinds)


def check_arithmetic(function: str, dtype: np.dtype) -> None:
    """Raise DTypeError if a dtype is for storage only."""
    row = info(dtype)
    if not row.arithmetic:
        instead = "ta.unpack_float4(x).astype('float32')" if row.kind == "pair" else "x.astype('float32')"
        raise DTypeError(f"{function}: {row.name} is a storage dtype, it is not computed with; write {instead} first")


# --- types for annotations ------------------------------------------------------------------------------------------

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
    "float4_e2m1fn_x2",
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
