"""The dtype table: one row per dtype, and everything that is asked about a dtype is read from its row.

A dtype *is* an ``np.dtype`` instance, NumPy's or ml_dtypes'. There is no class of our own, because clients compare,
hash and inspect what they get, and NumPy, CuPy and JAX share these objects already. What such an object does not know,
or says wrongly (bfloat16 has kind 'V', float8_e5m2 has kind 'f' and the others have not), stands in `DTypeInfo`.

Arithmetic is defined for the dtypes of `ARITHMETIC`. Those of `STORAGE_ONLY` can be viewed, copied and cast.

Whatever names a dtype enters through `as_dtype`, which returns the table's own object (so that identity implies
equality) or says why there is none. It recognises dtypes of torch, Triton and JAX by where their class is defined, and
so never imports a framework.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import ml_dtypes
import numpy as np

from tilearray.errors import DTypeError

Kind = Literal["bool", "int", "uint", "float", "complex"]


@dataclass(frozen=True, slots=True)
class DTypeInfo:
    """What the library knows of one dtype.

    Attributes
    ----------
    name : str
        The name under which `as_dtype` finds it.
    dtype : numpy.dtype
        The dtype itself.
    kind : {"bool", "int", "uint", "float", "complex"}
        Signed and unsigned integers apart; every real floating-point format is "float".
    bits : int
        The width of a value. It is ``8 * dtype.itemsize`` but for float4_e2m1fn: 4 bits, stored in a byte.
    triton : str or None
        The name in Triton's signatures; None where Triton has no such dtype.
    dlpack : tuple of int
        DLPack's type code and bits.
    arithmetic : bool
        False where a dtype is for storage only.
    """

    name: str
    dtype: np.dtype
    kind: Kind
    bits: int
    triton: str | None
    dlpack: tuple[int, int]
    arithmetic: bool


def _row(
    scalar_type: Any, kind: Kind, triton: str | None, dlpack_code: int, *, bits: int = 0, arithmetic: bool = True
) -> DTypeInfo:
    dtype = np.dtype(scalar_type)
    bits = bits or 8 * dtype.itemsize
    return DTypeInfo(dtype.name, dtype, kind, bits, triton, (dlpack_code, bits), arithmetic)


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
    _row(ml_dtypes.float8_e4m3fn, "float", "fp8e4nv", 10),
    _row(ml_dtypes.float8_e5m2, "float", "fp8e5", 12),
    _row(np.float16, "float", "fp16", 2),
    _row(ml_dtypes.bfloat16, "float", "bf16", 4),
    _row(np.float32, "float", "fp32", 2),
    _row(np.float64, "float", "fp64", 2),
    _row(np.complex64, "complex", None, 5),
    _row(np.complex128, "complex", None, 5),
    _row(ml_dtypes.float8_e3m4, "float", None, 7, arithmetic=False),
    _row(ml_dtypes.float8_e4m3, "float", None, 8, arithmetic=False),
    _row(ml_dtypes.float8_e4m3b11fnuz, "float", None, 9, arithmetic=False),
    _row(ml_dtypes.float8_e4m3fnuz, "float", "fp8e4b8", 11, arithmetic=False),
    _row(ml_dtypes.float8_e5m2fnuz, "float", "fp8e5b16", 13, arithmetic=False),
    _row(ml_dtypes.float8_e8m0fnu, "float", None, 14, arithmetic=False),
    _row(ml_dtypes.float4_e2m1fn, "float", None, 17, bits=4, arithmetic=False),
)

_BY_DTYPE: Final = {row.dtype: row for row in _TABLE}
_BY_NAME: Final = {row.name: row.dtype for row in _TABLE}
# Triton prints integers as int8 and the other dtypes as its signatures name them.
_BY_TRITON_NAME: Final = {"int1": np.dtype(np.bool_)} | {row.triton: row.dtype for row in _TABLE if row.triton}

ALL: Final = tuple(row.dtype for row in _TABLE)
ARITHMETIC: Final = tuple(row.dtype for row in _TABLE if row.arithmetic)
STORAGE_ONLY: Final = tuple(row.dtype for row in _TABLE if not row.arithmetic)

(bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64) = ALL[:9]
(float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64, complex64, complex128) = ALL[9:17]
(float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fnuz) = ALL[17:21]
(float8_e5m2fnuz, float8_e8m0fnu, float4_e2m1fn) = ALL[21:]

_PYTHON_TYPES: Final[dict[object, np.dtype]] = {bool: bool_, int: int64, float: float64, complex: complex128}

# Dtypes that exist elsewhere: a pattern of their names, why they are not here, what to write instead.
_REFUSED: Final = tuple(
    (re.compile(pattern), reason, instead)
    for pattern, reason, instead in (
        ("tf32|tensorfloat", "is a rounding of tensor cores, not a format in memory", "'float32'"),
        ("b?complex32|chalf", "has half-precision parts, which nothing here computes with", "'complex64'"),
        ("qu?int", "is quantized", "'int8' or 'uint8', and keep scale and zero point beside it"),
        ("bits?[0-9]*", "has bits but no values", "'uint8' and view the data as that"),
        ("u?int[1-7]($|x|_)", "has no address for a single value, a byte being the smallest", "'int8' or 'uint8'"),
        ("float6", "has no byte-wise layout that libraries agree on", "'float8_e4m3fn'"),
        ("float4_e2m1fn_x2", "packs two values in a byte", "'float4_e2m1fn', which holds one value in a byte"),
        ("c?longdouble|float(80|96|128)|complex(192|256)", "has no arithmetic on GPUs", "'float64' or 'complex128'"),
        ("void|record", "is structured or raw memory", "one dtype per field, and an array for each"),
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
        If the dtype is none of the table's.

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
        An ``np.dtype``, a name (NumPy's short ones, such as "f4", too), a Python, NumPy or ml_dtypes scalar type, or
        a dtype of torch, CuPy, JAX or Triton. Python types mean what they mean to NumPy: ``int`` is int64.
    function : str
        The function that was called, for the error message.

    Returns
    -------
    numpy.dtype
        The table's own object.

    Raises
    ------
    DTypeError
        If there is no such dtype, or it is not supported; the message says what to write instead.

    Examples
    --------
    >>> from tilearray.dtypes import as_dtype
    >>> as_dtype("f4"), as_dtype("bfloat16"), as_dtype(bool)
    (dtype('float32'), dtype(bfloat16), dtype('bool'))
    """
    if isinstance(obj, np.dtype):
        return _supported(obj, function)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(obj, str):
        return _from_name(obj, function)
    if isinstance(obj, type):
        return _from_type(cast("type[object]", obj), function)
    return _from_framework(obj, function)


def dtype_of(obj: object, function: str) -> np.dtype:
    """Return the dtype of an array, or of whatever `as_dtype` takes."""
    if isinstance(obj, np.dtype | str | type):
        return as_dtype(obj, function)  # pyright: ignore[reportUnknownArgumentType]
    return as_dtype(getattr(obj, "dtype", obj), function)


def _supported(dtype: np.dtype, function: str) -> np.dtype:
    row = _BY_DTYPE.get(dtype)
    if row is not None:
        return row.dtype
    if dtype.name in _BY_NAME:  # the name leaves out the byte order
        raise DTypeError(
            f"{function}: dtype {dtype.str!r} is {dtype.name} in foreign byte order; "
            f"write x.astype({dtype.name!r}) in NumPy first"
        )
    raise _refusal(dtype.name, function)


def _from_name(name: str, function: str) -> np.dtype:
    known = _BY_NAME.get(name)
    if known is not None:
        return known
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):  # NumPy parses "f4,i4", and trips over "f4,,"
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
    """Return the dtype that a framework's own dtype object stands for."""
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
    raise DTypeError(
        f"{function}: expected a dtype, got {obj!r:.60} of type {type(obj).__name__}; write a name such as 'float32', "
        f"or a dtype of tilearray, NumPy, ml_dtypes or torch"
    )


def _refusal(name: str, function: str) -> DTypeError:
    for pattern, reason, instead in _REFUSED:
        if pattern.match(name):
            return DTypeError(f"{function}: dtype {name!r} is not supported: it {reason}; write {instead}")
    return DTypeError(f"{function}: {name!r} is no dtype; write one of {', '.join(_BY_NAME)}")


@dataclass(frozen=True, slots=True)
class FInfo:
    """Limits of a floating-point dtype, as Python numbers; of a complex one, those of its parts."""

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
    """Return the limits of a floating-point or complex dtype.

    Parameters
    ----------
    type : dtype or array
        A dtype, whatever `as_dtype` takes, or an array.

    Returns
    -------
    FInfo
        With ``bits``, ``eps``, ``max``, ``min``, ``smallest_normal`` and ``dtype``.

    Raises
    ------
    DTypeError
        If the dtype is an integer or bool.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.finfo("bfloat16").eps
    0.0078125
    >>> ta.finfo(ta.complex64).dtype
    dtype('float32')
    """
    row = info(dtype_of(type, "finfo"))
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
        A dtype, whatever `as_dtype` takes, or an array.

    Returns
    -------
    IInfo
        With ``bits``, ``max``, ``min`` and ``dtype``.

    Raises
    ------
    DTypeError
        If the dtype is no integer.

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
    """Return whether a dtype is of a kind, as the array API standard defines the kinds.

    Parameters
    ----------
    dtype : dtype
        Whatever `as_dtype` takes.
    kind : str, dtype or tuple of them
        A dtype, or "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" or
        "numeric". A tuple asks whether one of its members matches.

    Raises
    ------
    DTypeError
        If `kind` is neither.

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


KIND_NAMES = {
    "bool": "bool",
    "int": "signed integer",
    "uint": "unsigned integer",
    "float": "float",
    "complex": "complex",
}
"""The kinds of dtypes, in words."""


def kinds_in_words(kinds: Collection[str]) -> str:
    """Return kinds for an error message.

    >>> kinds_in_words({"float", "int"})
    'signed integer, float'
    """
    return ", ".join(words for kind, words in KIND_NAMES.items() if kind in kinds)


def check_arithmetic(function: str, dtype: np.dtype) -> None:
    """Raise DTypeError if a dtype is for storage only."""
    if not info(dtype).arithmetic:
        raise DTypeError(
            f"{function}: {dtype.name} is a storage dtype, it is not computed with; write x.astype('float32') first"
        )
