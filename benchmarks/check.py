"""The check of a result, before it is timed.

The oracle is NumPy over single elements. NumPy's own views (`Case.geometry`) give the position of each operand element,
and a gather from the owner's flat array copies the elements to the host. So neither the library under test nor the
views of a peer take part. Floats are computed in float64. A result may differ by a relative error of `EPSILONS` times
its precision; all other dtypes must be exact. Small results are compared whole. Large results are compared in windows:
at both corners, where tails and masks can fail, and at random places.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.cases import Case, Shape, array_of, dtype_of, hollow_arrays

EPSILONS = 4
WHOLE = 1 << 16  # results of up to this number of elements are compared whole
WINDOW = 1 << 12  # elements of a window
WINDOWS = 24

Window = tuple[slice, ...]


class MismatchError(Exception):
    """A result that differs from NumPy's."""


REFERENCE: Mapping[str, Any] = {
    "exp": np.exp,
    "add": lambda x, y, out: np.add(x, y),
    "iadd": operator.add,
    "assign": lambda target, value: value,
    "cast": lambda x, dtype: x,
    "copy": lambda x: x,
}
"""The functions in the expressions, on values instead of memory."""


def windows(shape: Shape, seed: int = 0) -> Iterator[Window]:
    """Yield the windows of a result that are compared."""
    if math.prod(shape) <= WHOLE:
        yield tuple(slice(0, extent) for extent in shape)
        return
    side = int(WINDOW ** (1 / len(shape)))
    generator = np.random.default_rng(seed)
    lasts = [max(extent - side, 0) for extent in shape]
    corners = [[0] * len(shape), lasts]
    for starts in corners + [[int(generator.integers(0, last + 1)) for last in lasts] for _ in range(WINDOWS)]:
        yield tuple(slice(start, min(start + side, extent)) for start, extent in zip(starts, shape))


def positions(view: np.ndarray, array: np.ndarray, shape: Shape, window: Window) -> np.ndarray:
    """Return the positions, in the flat array, of the elements of a view broadcast to a shape, within a window."""
    wide = np.broadcast_to(view, shape)
    start = view.__array_interface__["data"][0] - array.__array_interface__["data"][0]
    steps = zip(wide.strides, window)
    grid = np.ogrid[window]
    return sum((stride * axis for (stride, _), axis in zip(steps, grid)), np.full((), start)) // view.itemsize


def expected(case: Case, size: str, owner: Any, arrays: Mapping[str, Any]) -> list[tuple[Window, np.ndarray]]:
    """Return the expected values of every window of the result, for the arrays' current contents."""
    hollow = hollow_arrays(case, size)
    views, shape = case.geometry(size, hollow)
    cut = list(windows(shape))
    fetched = []
    for text, view in zip(case.operands, views):
        name = array_of(text)
        found = [positions(view, hollow[name], shape, window) for window in cut]
        flat = owner.take(arrays[name], np.concatenate([part.ravel() for part in found]))
        ends = np.cumsum([part.size for part in found])[:-1]
        fetched.append([part.reshape(at.shape) for part, at in zip(np.split(widened(flat), ends), found)])
    call = case.call(REFERENCE)
    values = [call(*(operand[position] for operand in fetched), None) for position in range(len(cut))]
    return [(window, np.broadcast_to(value, extents(window))) for window, value in zip(cut, values)]


def extents(window: Window) -> Shape:
    return tuple(part.stop - part.start for part in window)


def widened(values: np.ndarray) -> np.ndarray:
    """Return floats as float64, complex numbers as complex128, and other dtypes unchanged."""
    if values.dtype.kind in "fV":
        return values.astype(np.float64)
    return values.astype(np.complex128) if values.dtype.kind == "c" else values


def compare(case: Case, library: Any, result: Any, wanted: list[tuple[Window, np.ndarray]], shape: Shape) -> None:
    """Raise MismatchError unless a result has the expected shape, dtype and values."""
    if tuple(result.shape) != shape:
        raise MismatchError(f"expected shape {shape}, got {tuple(result.shape)}")
    for window, values in wanted:
        got = np.asarray(library.to_numpy(result[window]))
        if got.dtype != dtype_of(case.result_dtype):
            raise MismatchError(f"expected {case.result_dtype}, got {got.dtype}")
        wrong = differs(got, values)
        if wrong.any():
            first = tuple(int(axis[0]) for axis in np.nonzero(wrong))
            place = tuple(part.start + at for part, at in zip(window, first))
            raise MismatchError(
                f"{int(wrong.sum())} of {wrong.size} elements of a window differ; "
                f"at {place} expected {values[first]}, got {got[first]}"
            )


def differs(got: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return where `got` differs from the rounded wide values. NaN always differs: the data contain none."""
    if got.dtype.kind not in "fcV":
        return got != values
    tolerance = EPSILONS * float(ml_dtypes.finfo(got.dtype).eps)
    return ~(np.abs(widened(got) - values) <= tolerance * np.abs(values))
