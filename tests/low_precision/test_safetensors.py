"""Files in the safetensors format: written and read here, by a writer of its own, and by the package if it is there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.oracles.formats import dtype_of

import tilearray as ta
from tilearray.errors import InterchangeError, OperandError

NAMES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu", "I16": "int16", "U16": "uint16", "F16": "float16", "BF16": "bfloat16",
    "I32": "int32", "U32": "uint32", "F32": "float32", "C64": "complex64", "F64": "float64", "I64": "int64",
    "U64": "uint64",
}  # fmt: skip


def written(path: Path, entries: dict[str, Any], data: bytes, padding: str = "") -> Path:
    """A file by the format's description: the size of the header, the header, the data."""
    header = json.dumps(entries).encode() + padding.encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    return path


def entry(dtype: str, shape: list[int], first: int, last: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


@pytest.mark.parametrize("padding", ["", " ", "   ", "       "])
def test_reads_each_dtype_at_any_place(tmp_path: Path, padding: str) -> None:
    entries, data, wanted = {"__metadata__": {"format": "pt"}}, b"", {}
    for place, (name, dtype) in enumerate(NAMES.items()):
        x = np.array([[0, 1, 2], [3, 4, place % 2]]).astype(dtype_of(dtype))
        entries[f"{place} é"] = entry(name, [2, 3], len(data), len(data) + x.nbytes)
        data += x.tobytes()
        wanted[f"{place} é"] = x
    path = written(tmp_path / "x", entries, data, padding)
    found = ta.load_safetensors(path, device="cpu")
    assert list(found) == list(wanted)
    for name, x in wanted.items():
        assert found[name].dtype == x.dtype
        assert ta.to_numpy(found[name]).tobytes() == x.tobytes()
    assert ta.safetensors_metadata(path) == {"format": "pt"}


def test_arrays_on_the_host_are_views_of_the_file(tmp_path: Path) -> None:
    x = np.arange(1000, dtype=np.float32)
    path = written(tmp_path / "x", {"x": entry("F32", [10, 100], 0, 4000)}, x.tobytes(), " " * 3)
    header = int.from_bytes(path.read_bytes()[:8], "little")
    path = written(tmp_path / "x", {"x": entry("F32", [10, 100], 0, 4000)}, x.tobytes(), " " * (3 + -header % 8))
    found = ta.load_safetensors(path, device="cpu")["x"]
    with path.open("r+b") as file:
        file.seek(-4000, os.SEEK_END)
        file.write(np.float32(7).tobytes())
    assert found[0, :2].tolist() == [7.0, 1.0]
    with pytest.raises(ta.WriteError, match="read-only"):
        found[0, 0] = 1.0


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "x.safetensors"
    arrays = {
        f"{dtype} {kind}": view
        for dtype in (*NAMES.values(), "float8_e4m3fnuz", "float8_e5m2fnuz")
        for x in [ta.asarray(rng.integers(0, 3, (6, 8))).astype(dtype)]
        for kind, view in (
            ("plain", x),
            ("transposed", x.T),
            ("part", x[::-2, 1::3]),
            ("0-d", x[0, 0]),
            ("none", x[:0]),
        )
    }
    path.write_bytes(b"old")
    ta.save_safetensors(path, arrays, {"a": "ü"})
    assert list(tmp_path.iterdir()) == [path]
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert int.from_bytes(content[:8], "little") % 8 == 0
    assert header.pop("__metadata__") == {"a": "ü"}
    assert max(facts["data_offsets"][1] for facts in header.values()) == len(content) - 8 - int.from_bytes(
        content[:8], "little"
    )
    found = ta.load_safetensors(path, device="cpu")
    assert found.keys() == arrays.keys()
    for name, x in arrays.items():
        assert (found[name].dtype, found[name].shape) == (x.dtype, x.shape)
        assert repr(found[name].tolist()) == repr(x.tolist())
        assert header[name]["data_offsets"][0] % x.itemsize == 0


def test_float4_is_packed(tmp_path: Path) -> None:
    x = ta.asarray([[0.5, 6.0, -1.0, 0.0]]).astype("float4_e2m1fn")
    ta.save_safetensors(tmp_path / "x", {"x": x})
    content = (tmp_path / "x").read_bytes()
    assert b'{"dtype":"F4","shape":[1,4],"data_offsets":[0,2]}' in content
    found = ta.load_safetensors(tmp_path / "x", device="cpu")["x"]
    assert (found.dtype, found.shape) == (ta.float4_e2m1fn_x2, (1, 2))
    assert ta.unpack_float4(found).tolist() == x.tolist()
    ta.save_safetensors(tmp_path / "y", {"x": found})
    assert (tmp_path / "y").read_bytes() == content


def test_the_package_reads_and_writes_alike(tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy")
    x = {"a": np.arange(6, dtype=np.int16).reshape(2, 3), "b": np.ones(3)}
    package.save_file(x, tmp_path / "x")
    assert {name: each.tolist() for name, each in ta.load_safetensors(tmp_path / "x", device="cpu").items()} == {
        name: each.tolist() for name, each in x.items()
    }
    ta.save_safetensors(tmp_path / "y", {name: ta.asarray(each) for name, each in x.items()})
    assert {name: each.tolist() for name, each in package.load_file(tmp_path / "y").items()} == {
        name: each.tolist() for name, each in x.items()
    }


DAMAGED: dict[str, tuple[bytes | dict[str, Any], bytes, str]] = {
    "short": (b"abc", b"", "the header has 6513249 bytes, and the file 3"),
    "long header": ((1000).to_bytes(8, "little"), b"{}", "the header has 1000 bytes, and the file 10"),
    "no JSON": ((2).to_bytes(8, "little"), b"{]", "the header is not JSON"),
    "no object": ((2).to_bytes(8, "little"), b"[]", "the header is not a JSON object"),
    "twice": ((14).to_bytes(8, "little"), b'{"a":1,"a": 2}', "the header is not JSON: a name occurs twice"),
    "no shape": ({"x": {"dtype": "F32"}}, b"", "'x' has no dtype, shape and data_offsets"),
    "negative": ({"x": entry("U8", [-1], 0, 1)}, b"a", r"'x' has sizes \[-1, 0, 1\]"),
    "too large": ({"x": entry("U8", [0, 2**70], 0, 0)}, b"", r"'x' has sizes \[0, 1180591620717411303424, 0, 0\]"),
    "too many axes": ({"x": entry("U8", [1] * 65, 0, 1)}, b"a", r"'x' has sizes \[1, 1"),
    "metadata": ({"__metadata__": [1]}, b"", r"the metadata are not strings by name: \[1\]"),
    "metadata of numbers": ({"__metadata__": {"a": 1}}, b"", "the metadata are not strings by name: {'a': 1}"),
    "size": ({"x": entry("F32", [2], 0, 4)}, b"abcd", r"'x' has 4 bytes for shape \(2,\) of float32"),
    "gap": ({"x": entry("U8", [1], 1, 2)}, b"ab", "an array begins at byte 1, and the one before it ends at 0"),
    "rest": ({"x": entry("U8", [1], 0, 1)}, b"ab", "the arrays have 1 bytes, and the file has 2 for them"),
    "too far": ({"x": entry("U8", [3], 0, 3)}, b"ab", "the arrays have 3 bytes, and the file has 2 for them"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files(case: str, tmp_path: Path) -> None:
    start, data, why = DAMAGED[case]
    path = tmp_path / "x"
    if isinstance(start, bytes):
        path.write_bytes(start + data)
    else:
        written(path, start, data)
    with pytest.raises(InterchangeError, match=f"^load_safetensors: .*x' is not a file in the safetensors.*: {why}"):
        ta.load_safetensors(path)
    if "header" in why or "metadata" in why:
        with pytest.raises(InterchangeError, match=f"^safetensors_metadata: .*{why}"):
            ta.safetensors_metadata(path)


def test_errors(tmp_path: Path) -> None:
    written(tmp_path / "x", {"x": entry("F6_E2M3", [4], 0, 3)}, b"abc")
    with pytest.raises(
        InterchangeError, match=r"'x' in .* has dtype 'F6_E2M3', which tilearray lacks; write the array"
    ):
        ta.load_safetensors(tmp_path / "x")
    written(tmp_path / "x", {"x": entry(["F32"], [1], 0, 4)}, b"abcd")  # type: ignore[arg-type]
    with pytest.raises(InterchangeError, match=r"has dtype \['F32'\], which tilearray lacks"):
        ta.load_safetensors(tmp_path / "x")
    written(tmp_path / "x", {"__metadata__": None}, b"")
    assert (ta.load_safetensors(tmp_path / "x"), ta.safetensors_metadata(tmp_path / "x")) == ({}, {})
    for call in (ta.load_safetensors, ta.safetensors_metadata, lambda path: ta.save_safetensors(path, {})):
        with pytest.raises(OperandError, match=r"_safetensors: expected a path, got int|_metadata: expected a path"):
            call(5)  # type: ignore[arg-type]
    with pytest.raises(
        OperandError, match=r"^save_safetensors: expected a mapping of names to Arrays, got list; write"
    ):
        ta.save_safetensors(tmp_path / "y", [ta.ones(1)])  # type: ignore[arg-type]
    with pytest.raises(OperandError, match=r"^save_safetensors: expected metadata of strings by name, got"):
        ta.save_safetensors(tmp_path / "y", {}, ["a"])  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        ta.load_safetensors(tmp_path / "y")
    with pytest.raises(OperandError, match=r"^save_safetensors: expected an Array for 'x', got list"):
        ta.save_safetensors(tmp_path / "y", {"x": [1]})  # type: ignore[dict-item]
    with pytest.raises(OperandError, match=r"^save_safetensors: expected names that are strings, got 3"):
        ta.save_safetensors(tmp_path / "y", {3: ta.ones(1)})  # type: ignore[dict-item]
    with pytest.raises(OperandError, match="the format has no complex128 of shape"):
        ta.save_safetensors(tmp_path / "y", {"x": ta.ones(1, dtype="complex128")})
    with pytest.raises(OperandError, match="expected metadata of strings by name"):
        ta.save_safetensors(tmp_path / "y", {}, {"a": 1})  # type: ignore[dict-item]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
