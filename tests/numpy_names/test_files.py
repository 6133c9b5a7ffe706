"""Files in NumPy's formats: save, savez, savez_compressed, load, and NumPy's functions of these names on Arrays.

The oracle is the file: its header is a Python literal, and its elements are bytes.
"""

from __future__ import annotations

import ast
import io
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilearray as ta
from tilearray import dtypes
from tilearray.errors import DTypeError, FusionError, GradientError, InterchangeError, OperandError

EVERY = (*dtypes.ALL, *dtypes.PACKED)
BITS = np.arange(12, dtype=np.uint8).reshape(3, 4)


def of(dtype: np.dtype) -> ta.Array:
    """Elements 0 to 11, or those bits for dtypes of one byte that are not integers."""
    made = BITS.astype("uint8")
    if dtype in dtypes.PACKED:
        return ta.asarray(made).view(dtype)
    return ta.asarray(made % 2 if dtype == np.bool_ else made).astype(dtype)


def parsed(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the elements of a file of version 1.0."""
    assert data[:8] == b"\x93NUMPY\x01\x00"
    end = 10 + int.from_bytes(data[8:10], "little")
    return ast.literal_eval(data[10:end].decode("latin1")), data[end:]


@pytest.mark.parametrize("dtype", EVERY, ids=lambda dtype: dtypes.info(dtype).name)
@pytest.mark.parametrize("save", [ta.save, np.save])
def test_a_file_tells_the_dtype_and_has_the_bytes(dtype, save):
    x, file = of(dtype), io.BytesIO()
    assert save(file, x) is None
    header, elements = parsed(file.getvalue())
    name, size = dtypes.info(dtype).name, dtype.itemsize
    named = [(name, f"<u{size}" if size > 1 else "|u1")]
    assert header == {
        "descr": named if dtype.isbuiltin != 1 else dtype.str,
        "fortran_order": False,
        "shape": (3, 4),
    }
    assert elements == ta.to_numpy(x).tobytes()
    found = ta.load(io.BytesIO(file.getvalue()), device="cpu")
    assert (found.dtype, found.shape, ta.to_numpy(found).tobytes()) == (dtype, (3, 4), elements)
    assert ta.asarray(np.load(io.BytesIO(file.getvalue())), device="cpu").dtype == dtype


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::-1, 1::2], lambda x: x[1, 2], lambda x: x[:0]])
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int16"])
def test_every_layout_there_and_back(dtype, view, tmp_path):
    x = view(of(dtypes.as_dtype(dtype, "test")))
    ta.save(tmp_path / "x", x)
    found = ta.load(tmp_path / "x.npy")
    assert (found.dtype, found.shape, found.tolist()) == (x.dtype, x.shape, x.tolist())


@pytest.mark.parametrize("name", ["savez", "savez_compressed"])
@pytest.mark.parametrize("library", [ta, np])
def test_archives_there_and_back(name, library, tmp_path):
    x, y = of(np.dtype(ml_dtypes.bfloat16)), of(np.dtype(ml_dtypes.float8_e5m2))
    path = tmp_path / "x.npz"
    getattr(library, name)(path, x, y[0], weight=y, plain=ta.asarray([1, 2]))
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == [f"{one}.npy" for one in ("weight", "plain", "arr_0", "arr_1")]
        assert parsed(archive.read("weight.npy"))[0]["descr"] == [("float8_e5m2", "|u1")]
        assert {one.compress_type for one in archive.infolist()} == {8 if name == "savez_compressed" else 0}
    found = ta.load(path)
    expected = {"weight": y, "plain": ta.asarray([1, 2]), "arr_0": x, "arr_1": y[0]}
    assert {key: (one.dtype, one.tolist()) for key, one in found.items()} == {
        key: (one.dtype, one.tolist()) for key, one in expected.items()
    }


def test_numpys_arrays_keep_their_dtypes_in_an_archive_with_arrays():
    file = io.BytesIO()
    np.savez(file, a=ta.ones(1, dtype="bfloat16"), b=np.array(["text"]), c=np.ones(1, ml_dtypes.bfloat16))
    found = np.load(io.BytesIO(file.getvalue()))
    assert found["b"].tolist() == ["text"]
    assert found["a"].dtype == found["c"].dtype == np.dtype([("bfloat16", "<u2")])


def test_host_data_is_saved_as_asarray_reads_it():
    file = io.BytesIO()
    ta.save(file, [1.5, 2.0])
    assert ta.load(io.BytesIO(file.getvalue())).dtype == ta.float32


def test_maps_share_the_file(tmp_path):
    path = tmp_path / "x.npy"
    ta.save(path, ta.zeros(3, dtype="bfloat16"))
    assert not ta.load(path, "r", device="cpu").flags.writeable
    mapped = ta.load(path, mmap_mode="r+", device="cpu")
    mapped[1] = 2.5
    del mapped
    assert ta.load(path).tolist() == [0, 2.5, 0]


def test_raw_bytes_are_bfloat16_if_they_can_be_nothing_else():
    for dtype, expected in ((ml_dtypes.bfloat16, "bfloat16"), (ml_dtypes.float8_e4m3fn, None)):
        file = io.BytesIO()
        np.save(file, np.ones(2, dtype))
        raw = io.BytesIO(file.getvalue())
        if expected:
            assert ta.load(raw).dtype == expected
        else:
            with pytest.raises(DTypeError, match=r"load: .*raw elements of 1 bytes in a file object; write ta.asarray"):
                ta.load(raw)


def written(value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, value, **options)
    return file.getvalue()


def archive_with(flags: int, method: int) -> bytes:
    """An archive of one array whose headers claim flags and a way of compression."""
    file = io.BytesIO()
    np.savez_compressed(file, x=np.ones(99))
    data = bytearray(file.getvalue())
    for header, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.index(header) + at
        data[place : place + 4] = bytes([flags, 0, method, 0])
    return bytes(data)


BAD = [
    (archive_with(0, 10), "That compression method is not supported"),
    (archive_with(1, 8), "is encrypted"),
    (archive_with(0, 14), "Bad CRC-32|[Cc]orrupt|[Ii]nvalid"),
    (archive_with(0, 12), "[Ii]nvalid data stream"),
    (b"", "No data left"),
    (b"abc", "it is neither, or is a pickle of Python objects, which is never read; write the path"),
    (b"PK\x03\x04damaged", "not a zip file"),
    (written(np.ones(3))[:-1], "EOF|cannot reshape|Failed to read"),
    (written(np.ones(3))[:40], "EOF"),
    (written(np.array([{}], dtype=object), allow_pickle=True), "Object arrays"),
]


@pytest.mark.parametrize(("data", "reason"), BAD)
def test_other_files_are_an_error_that_names_them(data, reason, tmp_path):
    path = tmp_path / "bad.npy"
    path.write_bytes(data)
    for file, name in ((path, repr(str(path))), (io.BytesIO(data), "a file object")):
        with pytest.raises(InterchangeError, match=f"(?s)^load: expected a .npy or .npz file.*({reason})") as error:
            ta.load(file)
        assert name in str(error.value)


def test_an_archive_with_another_file_is_an_error(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("readme", "text")
    with pytest.raises(InterchangeError, match=r"the member 'readme' is not a .npy file"):
        ta.load(tmp_path / "x.npz")


def test_wrong_arguments_are_named(tmp_path):
    with pytest.raises(OperandError, match=r"^load: expected the name of a file or a file object, got int; write"):
        ta.load(3)
    with pytest.raises(
        OperandError, match=r"^load: expected allow_pickle=False, got True: nothing is unpickled; leave"
    ):
        ta.load(io.BytesIO(), allow_pickle=True)  # type: ignore[arg-type]
    with pytest.raises(OperandError, match=r"^load: expected mmap_mode as 'r'"):
        ta.load(tmp_path, mmap_mode="w+")
    with pytest.raises(OperandError, match=r"^save: expected a tilearray Array, got object"):
        ta.save(tmp_path / "x.npy", object())
    with pytest.raises(OperandError, match=r"^savez: expected a tilearray Array, got NoneType; write ta.asarray"):
        ta.savez(tmp_path / "x.npz", name=None)
    with pytest.raises(DTypeError, match="holds text"):
        ta.load(io.BytesIO(written(np.array(["a"]))))
    with pytest.raises(FileNotFoundError):
        ta.load(tmp_path / "none.npy")
    assert list(Path(tmp_path).iterdir()) == []


def test_functions_that_are_recorded_write_no_files(tmp_path):
    x = ta.ones(2)
    with pytest.raises(GradientError):
        ta.grad(lambda x: ta.save(tmp_path / "x.npy", x) or ta.sum(x))(x)
    with pytest.raises(FusionError):
        ta.fuse(lambda x: ta.save(tmp_path / "x.npy", x) or x + 1)(x)


def test_arrays_elsewhere_are_copied_to_the_file(elsewhere):
    x = ta.asarray([1.5, 2.5], dtype="bfloat16", device=elsewhere)[::-1]
    for save in (ta.save, np.save):
        file = io.BytesIO()
        save(file, x)
        assert ta.load(io.BytesIO(file.getvalue()), device="cpu").tolist() == [2.5, 1.5]
    archive = io.BytesIO()
    np.savez(archive, np.ones(1), x=x)
    assert ta.load(io.BytesIO(archive.getvalue()), device="cpu")["x"].tolist() == [2.5, 1.5]
    found = ta.load(io.BytesIO(file.getvalue()), device=elsewhere)
    assert (found.device, found.dtype) == (elsewhere, ta.bfloat16)
