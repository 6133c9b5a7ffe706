"""Calls whose results have the same dtypes, shapes, values and classes of errors on the host and on a device.

Each call is made with arrays of each kind of `KINDS`: `x` and `y` of one shape, `n` integers and `b` bools of that
shape, `w` the first five elements of `x`. Some calls are errors for some kinds. An error that names what a device lacks
(`DeviceError`) is no difference. Ops have tests of their own.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

import tilearray as ta
from support.public_calls import DIFFERENTIABLE, WITHOUT, into
from tilearray.ops.op import Op

_GRID = np.arange(1, 13).reshape(3, 4)
KINDS = {
    "int64": _GRID % 3,
    "bool": _GRID % 3 > 0,
    "float32": (_GRID % 5).astype(np.float32)[::-1, ::-1],
    "complex64": (_GRID + 1j * (_GRID % 5)).astype(np.complex64),
    "0-d": np.array(2.5, np.float32),
    "size 0": np.zeros((0, 4), np.float32),
    "no columns": np.zeros((3, 0), np.int64),
}

OPTIONS = """
    average(x, 0, y); average(x, weights=y, returned=True); bincount(n, x); bincount(n.ravel(), minlength=9)
    bincount(n.ravel(), y.ravel()); bincount(x.ravel()); clip(x, 1, 2.5); cov(w); cov(x, bias=True); diff(x, append=2.5)
    digitize(x, w); digitize(w, [1, 2, 3], True); dot(2, x); dot(x, 2); dot(x, 2.5); ediff1d(x, 1.5)
    ediff1d(x, to_end=1); einsum("...,->...", x, 2); einsum("...->", x); gradient(w, edge_order=2); gradient(w, w)
    gradient(x, axis=0); histogram(x); histogram(x, [0, 1, 2]); histogram(x, 3, density=True)
    histogram(x, 3, weights=y); histogram(x, asarray([0.0, 1.0, 2.0], "float64")); histogram2d(w, w, asarray([2, 3]))
    histogram2d(w, w, 2); histogram2d(w, w, [2, asarray([0, 2], "int16")]); histogram_bin_edges(x, 4)
    histogram_bin_edges(x, asarray([0, 1])); histogramdd((w, w), [2, 3]); histogramdd(x, 2)
    histogramdd(x, 2, weights=y); histogramdd(x, 2, weights=y[:, 0]); inner(x, 2); insert(x, 1, 2)
    insert(x, [0, 1], 2.5); interp(2.5, w, w); interp(x, sort(w), w, 0, 1); kron(2, x); lexsort((x, y))
    matmul(x, 2); median(x, 0); nanquantile(x, 0, 1); nanquantile(x, 0.3); nanvar(x, mean=1); outer(x, 2)
    percentile(x, 50, 1, keepdims=True); ptp(x, 0); quantile(x, 0.3, method="hazen"); quantile(x, 0.5, method="lower")
    quantile(x, 1, 0); quantile(x, [0, 1]); quantile(x, [0.5], -1); searchsorted(sort(w), 2); searchsorted(sort(w), 2.5)
    std(x, 0, mean=y[:1]); tensordot(x, 2, 0); trapezoid(x, dx=2); unique(x, return_counts=True); unwrap(x)
    unwrap(x, axis=0, period=4); var(x, mean=2.5); vdot(x, 2); vecdot(x, 2)
"""
"""Calls beside those of `scripts/_differentiability.py`, which has one of each public function."""

_UNLIKE = re.compile(
    r"(arg)?partition|empty|to_torch|vectorize|(abs\()?linalg\.|fft\.|special\.|random\.|to_device|save|searchsorted\(w"
)
"""The functions whose results may differ: the order of others, memory as it was, other libraries."""
_OF_COMPLEX = {"median", "nanmedian"}
"""The functions that order complex numbers on the host only, as NumPy."""


def calls() -> list[str]:
    """Return all calls, one of each function first."""
    known = {**DIFFERENTIABLE, **WITHOUT}
    listed = [one.strip() for line in OPTIONS.strip().splitlines() for one in re.split(r";\s", line)]
    functions = {name: call for name, call in known.items() if not isinstance(getattr(ta, name, None), Op)}
    return [call for call in [*functions.values(), *listed] if not _UNLIKE.match(call)]


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return getattr(ta, name)


def _called(call: str, x: np.ndarray, device: Any) -> Any:
    """The result of a call with arrays on a device, or its error."""
    count = np.arange(x.size).reshape(x.shape)
    given = {"x": x, "y": (count * 7 % 5 + 1).astype(x.dtype), "n": count % 5, "b": count % 3 == 1}
    arrays = {name: ta.asarray(value, device=device) for name, value in given.items()}
    if x.strides and min(x.strides) < 0:
        arrays["x"] = ta.asarray(np.ascontiguousarray(x[::-1, ::-1]), device=device)[::-1, ::-1]
    w = ta.reshape(arrays["x"], -1)[:5]
    m = arrays["x"] @ arrays["x"].T + 1 if x.ndim else w
    try:
        return eval(call, _Names(arrays | {"w": w, "m": m, "into": into}))
    except Exception as error:
        return error


def _facts(found: Any) -> Any:
    """What is compared of a result, beside values."""
    if isinstance(found, ta.Array):
        return found.dtype.name, found.shape
    if isinstance(found, (tuple, list)):
        return type(found), [_facts(one) for one in found]
    return type(found)


def _values(found: Any) -> list[np.ndarray]:
    if isinstance(found, (tuple, list)):
        return [value for one in found for value in _values(one)]
    return [ta.to_numpy(found).astype(np.complex128)] if isinstance(found, ta.Array) else []


def check_both(device: Any, kind: str) -> None:
    """Compare all calls with arrays of a kind."""
    x, before, unlike = KINDS[kind], ta.asarray([1]).device, []
    for call in calls():
        results: list[Any] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for place in ("cpu", str(device)):
                ta.set_default_device(place)
                results.append(_called(call, x, place))
        ta.set_default_device(str(before))
        host, there = results
        lacks = isinstance(there, ta.DeviceError) or (kind == "complex64" and call.split("(")[0] in _OF_COMPLEX)
        if lacks:
            continue
        if _facts(host) != _facts(there):
            unlike.append((call, host, there))
            continue
        for mine, theirs in zip(_values(there), _values(host), strict=True):
            np.testing.assert_allclose(mine, theirs, 1e-3, 1e-3, err_msg=f"{kind}: {call}")
    assert not unlike, f"{kind}: {unlike}"
