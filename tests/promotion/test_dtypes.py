"""The dtype table against a second one written by hand, against the bit patterns, and against other libraries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import ml_dtypes
import numpy as np
import pytest
from support.capsules import field

from tilearray import dtypes
from tilearray.dtypes import as_dtype, dtype_of, finfo, iinfo, info, isdtype
from tilearray.errors import DTypeError
from tilearray.typing import DTypeName

# name                kind      bits bytes Triton     DLPack  arithmetic
TABLE = """
bool                  bool      8    1     i1         6       yes
int8                  int       8    1     i8         0       yes
int16                 int       16   2     i16        0       yes
int32                 int       32   4     i32        0       yes
int64                 int       64   8     i64        0       yes
uint8                 uint      8    1     u8         1       yes
uint16                uint      16   2     u16        1       yes
uint32                uint      32   4     u32        1       yes
uint64                uint      64   8     u64        1       yes
float8_e4m3fn         float     8    1     fp8e4nv    10      yes
float8_e5m2           float     8    1     fp8e5      12      yes
float16               float     16   2     fp16       2       yes
bfloat16              float     16   2     bf16       4       yes
float32               float     32   4     fp32       2       yes
float64               float     64   8     fp64       2       yes
complex64             complex   64   8     -          5       yes
complex128            complex   128  16    -          5       yes
float8_e3m4           float     8    1     -          7       no
float8_e4m3           float     8    1     -          8       no
float8_e4m3b11fnuz    float     8    1     -          9       no
float8_e4m3fnuz       float     8    1     fp8e4b8    11      no
float8_e5m2fnuz       float     8    1     fp8e5b16   13      no
float8_e8m0fnu        float     8    1     -          14      no
float4_e2m1fn         float     4    1     -          17      no
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]
NAMES = [row[0] for row in ROWS]


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_row(row: list[str]) -> None:
    name, kind, bits, itemsize, triton, dlpack, arithmetic = row
    dtype = numpy_dtype(name)
    found = info(dtype)
    assert (found.name, found.dtype, found.kind, found.bits) == (name, dtype, kind, int(bits))
    assert found.triton == (None if triton == "-" else triton)
    assert found.dlpack == (int(dlpack), int(bits))
    assert found.arithmetic == (arithmetic == "yes")
    assert dtype.itemsize == int(itemsize)
    assert getattr(dtypes, "bool_" if name == "bool" else name) is found.dtype


def test_the_tuples_list_every_row_once() -> None:
    assert [dtype.name for dtype in dtypes.ALL] == NAMES
    assert [dtype.name for dtype in dtypes.ARITHMETIC] == NAMES[:17]
    assert [dtype.name for dtype in dtypes.STORAGE_ONLY] == NAMES[17:]


def dlpack_code(tensor: object) -> tuple[int, int]:
    """Type code and bits that an array exports."""
    capsule = tensor.__dlpack__()
    return field(capsule, "code").value, field(capsule, "bits").value


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith(("bfloat", "float8", "float4"))])
def test_dlpack_codes_are_numpys(name: str) -> None:
    assert info(numpy_dtype(name)).dlpack == dlpack_code(np.zeros(1, name))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_dlpack_codes_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    assert info(numpy_dtype(name)).dlpack == dlpack_code(torch.zeros(1, dtype=getattr(torch, name)))


@pytest.mark.parametrize("name", NAMES)
def test_as_dtype_returns_the_tables_object(name: str) -> None:
    dtype = numpy_dtype(name)
    expected = info(dtype).dtype
    for spelling in (name, dtype, dtype.type, expected):
        assert as_dtype(spelling) is expected
    assert dtype_of(np.zeros(2, dtype), "f") is expected
    assert dtype_of(dtype.type(1), "f") is expected


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("f4", "float32"),
        ("<f4", "float32"),
        ("=f8", "float64"),
        ("e", "float16"),
        ("?", "bool"),
        ("b", "int8"),
        ("u2", "uint16"),
        ("D", "complex128"),
        (bool, "bool"),
        (int, "int64"),
        (float, "float64"),
        (complex, "complex128"),
        (np.longlong, "int64"),
        (np.dtype(np.longlong), "int64"),
        (np.dtype("f4", metadata={"unit": "m"}), "float32"),
    ],
)
def test_as_dtype_accepts_numpys_spellings(spelling: object, name: str) -> None:
    assert as_dtype(spelling) is info(np.dtype(name)).dtype


SHORT = [
    *("i16", "i32", "i64", "u16", "u32", "u64", "fp16", "fp32", "fp64", "f32", "f64", "c64", "c128"),
    *("bf16", "e4m3", "e5m2", "e2m1"),
]


@pytest.mark.parametrize("name", SHORT)
def test_short_names_count_bits_or_name_a_format(name: str) -> None:
    found = info(as_dtype(name))
    letters = name.rstrip("0123456789")
    if name[0] == "e":
        full = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e2m1": "float4_e2m1fn"}[name]
        assert found.dtype == numpy_dtype(full)
        assert (found.format.mantissa, found.bits) == (int(name[-1]), int(name[1]) + int(name[-1]) + 1)
    else:
        kind = {"i": "int", "u": "uint", "c": "complex"}.get(letters, "float")
        assert (found.kind, found.bits) == (kind, int(name.removeprefix(letters)))
        assert (found.name == "bfloat16") == (letters == "bf")
    with pytest.raises(TypeError):  # NumPy gives the name no other meaning
        np.dtype(name)


def test_every_short_name_is_tested_and_every_name_of_the_tables_is_known() -> None:
    assert sorted(dtypes.SHORT_NAMES) == sorted(SHORT)
    text = (Path(__file__).parents[2] / "docs/promotion.md").read_text()
    used = {name for row in re.findall(r"^\| +\| bool (.*)\|$", text, re.MULTILINE) for name in row.split(" | ")}
    used = {name.strip(" |") for name in used} - {"`True`", ""}
    assert used >= {"i8", "bf16", "e4m3", "c128"}
    for name in used - {"i8", "u8", "f16"}:
        assert as_dtype(name) in dtypes.ALL


def test_the_names_for_checkers_are_names_of_dtypes() -> None:
    names = get_args(DTypeName)
    assert {as_dtype(name) for name in names} == {*dtypes.ALL, *dtypes.PACKED}
    assert {*dtypes.SHORT_NAMES, *NAMES} <= set(names)


def test_every_torch_dtype_is_taken_by_its_name_or_refused() -> None:
    torch = pytest.importorskip("torch")
    found = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    taken = {str(value).removeprefix("torch.") for value in found if _is_taken(value)}
    assert taken == {
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
        "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
        "float8_e5m2fnuz", "float8_e8m0fnu",
    }  # fmt: skip
    assert len(found) > len(taken)
    assert dtype_of(torch.zeros(2, dtype=torch.bfloat16), "f") is dtypes.bfloat16


def _is_taken(value: object) -> bool:
    try:
        return as_dtype(value).name == str(value).removeprefix("torch.")
    except DTypeError as error:
        return "is not supported: it " not in str(error)


class TritonDType:
    """Triton's dtypes print as what they are called with."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


TritonDType.__module__ = "triton.language.core"


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("int1", "bool"),
        ("int8", "int8"),
        ("uint32", "uint32"),
        ("fp16", "float16"),
        ("bf16", "bfloat16"),
        ("fp64", "float64"),
        ("fp8e4nv", "float8_e4m3fn"),
        ("fp8e5", "float8_e5m2"),
        ("fp8e4b8", "float8_e4m3fnuz"),
    ],
)
def test_as_dtype_takes_triton_dtypes(printed: str, name: str) -> None:
    assert as_dtype(TritonDType(printed)) is info(numpy_dtype(name)).dtype


@pytest.mark.parametrize("printed", ["pointer<fp32>", "fp8e4b15", "void"])
def test_as_dtype_rejects_dtypes_of_triton_alone(printed: str) -> None:
    with pytest.raises(DTypeError, match=re.escape(repr(printed))):
        as_dtype(TritonDType(printed))


def test_as_dtype_takes_jax_scalar_types() -> None:
    class JaxScalarMeta(type):
        dtype = np.dtype(ml_dtypes.bfloat16)

    JaxScalarMeta.__module__ = "jax._src.numpy.scalar_types"
    assert as_dtype(JaxScalarMeta("bfloat16", (), {})) is dtypes.bfloat16


@pytest.mark.parametrize(
    ("spelling", "shown", "reason", "instead"),
    [
        (np.dtype(">f4"), "'>f4'", "foreign byte order", "x.astype('float32')"),
        (np.dtype(ml_dtypes.bfloat16).newbyteorder(">"), "'>V2'", "foreign byte order", "x.astype('bfloat16')"),
        (np.dtype([("a", "f4"), ("b", "i4")]), "'void64'", "structured", "one array for each field"),
        ("f4,i4", "'void64'", "structured", "one array for each field"),
        (np.dtype("V8"), "'void64'", "raw memory", "one array for each field"),
        (object, "'object'", "holds Python objects", "a numeric dtype"),
        (np.dtype("O"), "'object'", "holds Python objects", "a numeric dtype"),
        (str, "'str'", "holds text", "a numeric dtype"),
        ("S3", "'bytes24'", "holds text", "a numeric dtype"),
        (np.dtypes.StringDType(), "'StringDType", "holds text", "a numeric dtype"),
        ("M8[ns]", "'datetime64[ns]'", "holds dates", "'int64'"),
        (np.longdouble, f"'{np.dtype(np.longdouble).name}'", "has no arithmetic on GPUs", "'float64'"),
        ("i8", "'i8'", "int64 (8 bytes) to NumPy and int8 (8 bits) to GPU compilers", "write 'int64' or 'int8'"),
        ("u8", "'u8'", "uint64 (8 bytes) to NumPy and uint8 (8 bits) to GPU compilers", "write 'uint64' or 'uint8'"),
        ("f16", "'f16'", "float128 (16 bytes) to NumPy and float16 (16 bits) to GPU", "write 'float16'"),
        ("fp8", "'fp8'", "ambiguous", "write 'e4m3' or 'e5m2'"),
        ("float8", "'float8'", "ambiguous", "write 'e4m3' or 'e5m2'"),
        ("tf32", "'tf32'", "rounding of tensor cores", "'float32'"),
        ("complex32", "'complex32'", "half-precision parts", "'complex64'"),
        ("chalf", "'chalf'", "half-precision parts", "'complex64'"),
        ("qint8", "'qint8'", "quantized", "'int8'"),
        ("quint4x2", "'quint4x2'", "quantized", "'int8'"),
        ("bits8", "'bits8'", "bits but no values", "'uint8'"),
        (ml_dtypes.int4, "'int4'", "a single value has no address", "'int8'"),
        ("uint7", "'uint7'", "a single value has no address", "'int8'"),
        (ml_dtypes.float6_e2m3fn, "'float6_e2m3fn'", "byte-wise layout", "'float8_e4m3fn'"),
        ("hello", "'hello'", "is not a dtype", "write one of bool, int8, "),
        ("", "''", "is not a dtype", "write one of bool, int8, "),
        ("f4,,", "'f4,,'", "is not a dtype", "write one of bool, int8, "),
        (np.floating, "'floating'", "is not a dtype", "write one of bool, int8, "),
        (list, "'list'", "is not a dtype", "write one of bool, int8, "),
        (None, "None", "expected a dtype", "a name such as 'float32'"),
        (4, "4 of type int", "expected a dtype", "a name such as 'float32'"),
        (4, "4 of type int", "expected a dtype", "write several sizes of a shape as one tuple: (2, 3)"),
        (["f4"], "['f4'] of type list", "expected a dtype", "a name such as 'float32'"),
    ],
    ids=str,
)
def test_errors_give_the_reason_and_the_alternative(spelling: object, shown: str, reason: str, instead: str) -> None:
    with pytest.raises(DTypeError) as caught:
        as_dtype(spelling, "zeros")
    message = str(caught.value)
    assert message.startswith("zeros: ")
    for part in (shown, reason, instead):
        assert part in message


def test_info_refuses_a_foreign_dtype() -> None:
    with pytest.raises(DTypeError, match="info: dtype 'object' is not supported"):
        info(np.dtype("O"))


# --- Limits ---------------------------------------------------------------------------------------------------------

SMALL_FLOATS = [row[0] for row in ROWS if row[1] == "float" and int(row[3]) <= 2]


@pytest.mark.parametrize("name", SMALL_FLOATS)
def test_finfo_equals_the_bit_patterns(name: str) -> None:
    dtype = numpy_dtype(name)
    patterns = np.arange(2 ** info(dtype).bits, dtype=f"u{dtype.itemsize}")
    with np.errstate(invalid="ignore"):  # some patterns are signalling NaNs
        values = patterns.view(dtype).astype(np.float32).astype(np.float64)
    values = np.unique(values[np.isfinite(values)])
    positive = values[values > 0]
    eps = positive[positive > 1][0] - 1
    normal = positive[:-1][np.diff(positive) == eps * positive[:-1]]  # below, the gap is wider in proportion
    found = finfo(dtype)
    assert (found.max, found.min) == (values[-1], values[0])
    assert (found.eps, found.smallest_normal) == (eps, normal[0])
    assert (found.bits, found.dtype) == (info(dtype).bits, dtype)


@pytest.mark.parametrize(
    ("name", "part", "bits", "digits", "exponent"),
    [
        ("float32", "float32", 32, 24, 128),
        ("float64", "float64", 64, 53, 1024),
        ("complex64", "float32", 32, 24, 128),
        ("complex128", "float64", 64, 53, 1024),
    ],
)
def test_finfo_of_ieee_formats(name: str, part: str, bits: int, digits: int, exponent: int) -> None:
    largest = (2.0 - 2.0 ** (1 - digits)) * 2.0 ** (exponent - 1)
    expected = dtypes.FInfo(bits, 2.0 ** (1 - digits), largest, -largest, 2.0 ** (2 - exponent), np.dtype(part))
    assert finfo(name) == expected
    assert finfo(np.zeros(3, name)) == expected
    assert {type(getattr(finfo(name), field)) for field in ("eps", "max", "min", "smallest_normal")} == {float}


@pytest.mark.parametrize("name", [row[0] for row in ROWS if row[1] in ("int", "uint")])
def test_iinfo_is_numpys(name: str) -> None:
    expected = np.iinfo(name)
    found = iinfo(name)
    assert found == dtypes.IInfo(expected.bits, int(expected.max), int(expected.min), expected.dtype)
    assert {type(found.min), type(found.max)} == {int}
    assert iinfo(np.zeros(3, name)) == found


def test_finfo_and_iinfo_name_each_other() -> None:
    with pytest.raises(DTypeError, match=r"finfo: expected a floating-point or complex dtype, got int8; write iinfo"):
        finfo("int8")
    with pytest.raises(DTypeError, match=r"finfo: expected .* got bool"):
        finfo(bool)
    with pytest.raises(DTypeError, match=r"iinfo: expected an integer dtype, got float32; write finfo"):
        iinfo("float32")
    with pytest.raises(DTypeError, match=r"finfo: expected a dtype, got 1.0"):
        finfo(1.0)


KINDS = {
    "bool": {"bool"},
    "signed integer": {"int"},
    "unsigned integer": {"uint"},
    "integral": {"int", "uint"},
    "real floating": {"float"},
    "complex floating": {"complex"},
    "numeric": {"int", "uint", "float", "complex"},
}


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_isdtype(row: list[str]) -> None:
    dtype = numpy_dtype(row[0])
    for kind, members in KINDS.items():
        assert isdtype(dtype, kind) is (row[1] in members)
    for other in NAMES:
        assert isdtype(dtype, numpy_dtype(other)) is (row[0] == other)
    assert isdtype(dtype, ("bool", "integral", numpy_dtype("float32"))) is (
        row[1] in ("bool", "int", "uint") or row[0] == "float32"
    )
    assert isdtype(dtype, ()) is False


@pytest.mark.parametrize("kind", ["floating", None, ("bool", "floating"), ("numeric", 3)])
def test_isdtype_refuses_other_kinds(kind: object) -> None:
    with pytest.raises(DTypeError, match=r"isdtype: .*or a kind: 'bool', 'signed integer'"):
        isdtype("float32", kind)


FLOATS = [dtype for dtype in dtypes.ALL if dtypes.info(dtype).kind == "float"]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: dtype.name)
def test_the_format_of_a_float_is_that_of_ml_dtypes(dtype: np.dtype):
    def code(value: float) -> int:
        return int(
            np.array([value], "float32" if dtype.itemsize < 4 else dtype).astype(dtype).view(f"u{dtype.itemsize}")[0]
        )

    limits = ml_dtypes.finfo(dtype)
    found = dtypes.info(dtype).format
    assert found is not None
    assert found.mantissa == limits.nmant
    assert found.bias == code(1.0) >> found.mantissa
    assert found.largest == code(float(limits.max))
    if found.infinity is None:
        assert not np.isinf(np.array([np.inf], "float32").astype(dtype).astype("float64")[0])
    else:
        assert found.infinity == code(np.inf)


def test_only_floats_have_a_format_and_every_kind_has_a_name():
    assert {dtype for dtype in dtypes.ALL if dtypes.info(dtype).format} == set(FLOATS)
    assert set(dtypes.KIND_NAMES) == {dtypes.info(dtype).kind for dtype in (*dtypes.ALL, *dtypes.PACKED)}


def test_the_formats_of_the_cuda_backend_are_those_of_the_rows():
    from tilearray_cuda.kernels.casts import NARROW

    for name, bits in NARROW.items():
        found = dtypes.info(np.dtype(getattr(ml_dtypes, name, name))).format
        assert found is not None
        assert (bits.mantissa, bits.bias, bits.largest) == (found.mantissa, found.bias, found.largest)
        assert bits.infinity == (0xFF if found.infinity is None else found.infinity)
