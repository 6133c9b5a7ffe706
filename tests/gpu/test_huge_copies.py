"""Copies and sums of permuted arrays of 2**26 elements and more, which exceed every cache and use other kernels.

Where the rows that are read begin at no multiples of 256 bytes, the columns of tiles begin where such multiples do.
Every element is compared with NumPy's, and of a target's memory only its elements change.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta
from tilearray.geometry.loop import make_loop
from tilearray_cuda.kernels.schedules.skewed_columns import SkewedColumns

# axes and pitches of the source and of the target: (planes, rows, columns), and the lengths of a row and a plane
LAYOUTS = {
    "columns of two axes": ((400, 180, 964), (964, 173_568), (400, 72_000)),
    "columns of one axis": ((256, 292, 900), (900, 262_848), (256, 74_752)),
    "odd rows": ((272, 300, 901), (901, 270_336), (272, 81_600)),
    "pitches": ((272, 300, 901), (911, 273_408), (288, 86_400)),
}


@pytest.fixture(autouse=True)
def emptied():
    ta.cuda.empty_cache()
    yield
    ta.cuda.empty_cache()


def memory(dtype: str, size: int) -> np.ndarray:
    """Return bytes with a prime period."""
    words = -(-size * np.dtype(dtype).itemsize // 16) * 8
    return np.resize(np.arange(65_521, dtype=np.uint16), words).view(dtype)[:size]


def box(x, shape: tuple[int, int, int], pitches: tuple[int, int], start: int = 0):
    """Return the view of flat memory, of NumPy or ours, with pitches of rows and planes."""
    planes, rows, columns = shape
    row, plane = pitches
    whole = x[start : start + planes * plane].reshape((planes, plane))[:, : rows * row]
    return whole.reshape((planes, rows, row))[:, :, :columns]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "int64"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_copies_of_permuted_arrays(name: str, dtype: str) -> None:
    shape, pitches, out_pitches = LAYOUTS[name]
    planes, _, columns = shape
    for start in (0, 1) if name == "pitches" else (16 // np.dtype(dtype).itemsize,):
        source = memory(dtype, planes * pitches[1] + start)
        target = np.full(columns * out_pitches[1] + start, 7, dtype)
        ours = ta.asarray(target, device="cuda", copy=True)
        read = box(ta.asarray(source, device="cuda", copy=True), shape, pitches, start).permute_dims(2, 1, 0)
        written = box(ours, shape[::-1], out_pitches, start)
        loop = make_loop(read.shape, [written._signature.layout.strides, read._signature.layout.strides])
        skew = SkewedColumns.facts(loop)
        assert skew is not None
        assert (skew.tile.huge, skew.pitch) == (True, 64)
        written[...] = read
        box(target, shape[::-1], out_pitches, start)[...] = box(source, shape, pitches, start).transpose(2, 1, 0)
        assert ta.to_numpy(ours).tobytes() == target.tobytes(), (name, dtype, start)
        ta.add(written, read, out=written)
        box(target, shape[::-1], out_pitches, start)[...] *= 2
        assert ta.to_numpy(ours).tobytes() == target.tobytes(), (name, dtype, start, "added")
        del ours, read, written  # the next round needs their memory


@pytest.mark.whole_gpu
def test_copies_of_complex_numbers() -> None:
    """Both parts of complex128, to columns of one axis and of two axes; and complex64."""
    for name in ("columns of two axes", "columns of one axis"):
        shape, pitches, _ = LAYOUTS[name]
        planes = shape[0]
        for dtype in ("complex64", "complex128"):
            source = memory("uint16", planes * pitches[1] * np.dtype(dtype).itemsize // 2) % 30_000
            source = source.view(dtype)
            found = ta.empty(shape[::-1], dtype=dtype, device="cuda")
            found[...] = box(ta.asarray(source, device="cuda", copy=True), shape, pitches).permute_dims(2, 1, 0)
            wanted = np.ascontiguousarray(box(source, shape, pitches).transpose(2, 1, 0))
            assert ta.to_numpy(found).tobytes() == wanted.tobytes(), (name, dtype)
