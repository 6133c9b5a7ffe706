"""Every function of NumPy that dispatches, called with Arrays on the host: NumPy's values, and Arrays for its arrays.

`CALLS` has a call for each function; NumPy itself, on ndarrays of the same values, is the oracle. `REFUSED` lists the
functions that cannot work, and why. A function of a newer NumPy needs a line in one of the two.
"""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest

import tilearray as ta

SOURCE = {
    "a": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]]),  # symmetric, positive definite
    "b": np.array([[True, False, True], [False, False, True], [True, True, True]]),
    "c": np.array([1 + 2j, -3j, 0.5, -1 - 1j]),
    "i": np.array([3, 1, 4, 1, 5, 2]),
    "j": np.array([1, 5, 9, 2, 6, 3]),
    "n": np.array([1.5, np.nan, -2.0, np.inf, 0.0, -0.0]),
    "t": np.arange(24.0).reshape(2, 3, 4),
    "u": np.array([7, 0, 255], np.uint8),
    "v": np.array([0.5, -1.5, 2.25, 3.0, -0.75]),
    "w": np.array([0.1, 0.2, 0.3, 0.4, 1.0]),
}
NEGATIVE = {name: value[..., ::-1].copy()[..., ::-1] for name, value in SOURCE.items()}  # by negative strides


def written(call):
    """A call that writes to its argument: the argument after it."""

    def wrapped(f, d):
        target = d.fresh(d.v)
        call(f, d, target)
        return target

    return wrapped


def saved(call):
    """A call that writes to a file: the bytes."""

    def wrapped(f, d):
        file = io.BytesIO()
        call(f, d, file)
        return file.getvalue()

    return wrapped


def eigen(found):
    """Eigenvalues and the matrix that they and the vectors make: vectors alone are unique up to their signs."""
    values, vectors = (np.asarray(part) for part in found)
    return values, vectors @ np.diag(values) @ np.linalg.inv(vectors)


CALLS = {
    "all": lambda f, d: f(d.b, 1),
    "allclose": lambda f, d: f(d.v, d.v + 1e-9),
    "amax": lambda f, d: f(d.a, 0),
    "amin": lambda f, d: f(d.a, axis=1, keepdims=True),
    "angle": lambda f, d: (f(d.c), f(d.c, deg=True)),
    "any": lambda f, d: f(d.b, axis=0),
    "append": lambda f, d: (f(d.v, [1, 2]), f(d.a, d.a, axis=0)),
    "apply_along_axis": lambda f, d: f(np.median, 1, d.a),
    "apply_over_axes": lambda f, d: f(np.sum, d.t, [0, 2]),
    "argmax": lambda f, d: (f(d.a), f(d.a, 1)),
    "argmin": lambda f, d: (f(d.a), f(d.a, axis=0, keepdims=True)),
    "argpartition": lambda f, d: np.take(d.v, f(d.v, 2))[2],
    "argsort": lambda f, d: (f(d.v), f(d.a, 0, kind="stable"), f(d.a, None, "stable")),
    "argwhere": lambda f, d: f(d.b),
    "around": lambda f, d: (f(d.v), f(d.a / 3, 2)),
    "array2string": lambda f, d: f(d.a, precision=2),
    "array_equal": lambda f, d: (f(d.a, d.a.T), f(d.a, d.v)),
    "array_equiv": lambda f, d: f(d.v, d.t),
    "array_repr": lambda f, d: f(d.v),
    "array_split": lambda f, d: f(d.v, 3),
    "array_str": lambda f, d: f(d.v),
    "astype": lambda f, d: (f(d.v, np.float32), f(d.i, "complex128")),
    "atleast_1d": lambda f, d: (f(d.v), f(d.v[0]), f(d.v, 3)),
    "atleast_2d": lambda f, d: f(d.v),
    "atleast_3d": lambda f, d: (f(d.v), f(d.a)),
    "average": lambda f, d: (f(d.v), f(d.v, weights=d.w), f(d.a, 0, returned=True)),
    "bincount": lambda f, d: (f(d.i), f(d.i[:5], d.w, minlength=8)),
    "block": lambda f, d: f([[d.a, d.a], [d.a, np.zeros((3, 3))]]),
    "broadcast_arrays": lambda f, d: f(d.a, d.a[0]),
    "broadcast_to": lambda f, d: f(d.v, (2, 5)),
    "can_cast": lambda f, d: (f(d.v, "float32"), f(d.v, "float32", casting="same_kind"), f(d.v, "int8", "unsafe")),
    "choose": lambda f, d: f(d.i[1:4] % 2, [d.v[:3], d.w[:3]]),
    "clip": lambda f, d: (f(d.v, -1, 1), f(d.v, None, d.w), f(d.u, -1, 300)),
    "column_stack": lambda f, d: f([d.v, d.w]),
    "common_type": lambda f, d: f(d.v, d.c),
    "compress": lambda f, d: f([True, False, True], d.a, axis=1),
    "concat": lambda f, d: f([d.a, d.a], axis=1),
    "concatenate": lambda f, d: (
        f([d.v, d.w]),
        f([d.a, d.a], None),
        f([d.a, d.t], None),
        f([d.i, d.v], dtype="float32"),
    ),
    "convolve": lambda f, d: f(d.v, d.w, "same"),
    "copy": lambda f, d: (f(d.a), f(d.a.T, order="F")),
    "copyto": written(lambda f, d, t: f(t, d.w, where=d.v > 0)),
    "corrcoef": lambda f, d: f(d.a),
    "correlate": lambda f, d: f(d.v, d.w, "full"),
    "count_nonzero": lambda f, d: (f(d.b), f(d.b, 0), f(d.b, axis=1, keepdims=True)),
    "cov": lambda f, d: (f(d.a), f(d.v, d.w, ddof=0)),
    "cross": lambda f, d: f(d.a, d.a[0]),
    "cumprod": lambda f, d: (f(d.a, 1), f(d.a)),
    "cumsum": lambda f, d: (f(d.a, axis=0), f(d.a), f(d.i, dtype="float64")),
    "cumulative_prod": lambda f, d: f(d.v, include_initial=True),
    "cumulative_sum": lambda f, d: f(d.a, axis=1),
    "delete": lambda f, d: (f(d.v, 1), f(d.a, [0, 2], axis=1)),
    "diag": lambda f, d: (f(d.v), f(d.a, 1)),
    "diag_indices_from": lambda f, d: f(d.a),
    "diagflat": lambda f, d: f(d.v, -1),
    "diagonal": lambda f, d: (f(d.a), f(d.t, 1, 1, 2)),
    "diff": lambda f, d: (f(d.v), f(d.a, 2, 0), f(d.b), f(d.v, prepend=0, append=[1, 2])),
    "digitize": lambda f, d: (f(d.v, d.w), f(d.v, [0, 1], right=True)),
    "dot": lambda f, d: (f(d.a, d.a), f(d.v, d.w), f(d.v, 2)),
    "dsplit": lambda f, d: f(d.t, 2),
    "dstack": lambda f, d: f([d.a, d.a]),
    "ediff1d": lambda f, d: f(d.v, to_begin=0),
    "einsum": lambda f, d: (f("ij,kj->ik", d.a, d.a), f("i,i", d.v, d.w, optimize=True)),
    "einsum_path": lambda f, d: f("ij,jk", d.a, d.a)[0],
    "empty_like": lambda f, d: np.shape(f(d.t)),
    "expand_dims": lambda f, d: f(d.v, (0, 2)),
    "extract": lambda f, d: f(d.v > 0, d.v),
    "fill_diagonal": written(lambda f, d, t: f(t[:4].reshape((2, 2)), 9)),
    "fix": lambda f, d: f(d.v),
    "flatnonzero": lambda f, d: f(d.b),
    "flip": lambda f, d: (f(d.a), f(d.a, 1)),
    "fliplr": lambda f, d: f(d.a),
    "flipud": lambda f, d: f(d.a),
    "full_like": lambda f, d: (f(d.v, 7), f(d.v, 3, "int8"), f(d.v, 1, shape=(2, 2))),
    "geomspace": lambda f, d: f(d.w[0], d.w[4], 5),
    "gradient": lambda f, d: (f(d.v), f(d.a), f(d.v, d.w)),
    "histogram": lambda f, d: (f(d.v, 3), f(d.v, d.w, density=True)),
    "histogram2d": lambda f, d: f(d.v, d.w, 2),
    "histogram_bin_edges": lambda f, d: f(d.v, "auto"),
    "histogramdd": lambda f, d: f(d.a, 2),
    "hsplit": lambda f, d: f(d.i, 2),
    "hstack": lambda f, d: f([d.v, d.w]),
    "i0": lambda f, d: f(d.v),
    "imag": lambda f, d: f(d.c),
    "inner": lambda f, d: (f(d.a, d.a), f(d.v, d.w)),
    "insert": lambda f, d: (f(d.v, 1, 9), f(d.a, [0, 1], 0, axis=1)),
    "interp": lambda f, d: f(d.v, d.w, d.v, left=-1),
    "intersect1d": lambda f, d: f(d.i, d.j, return_indices=True),
    "iscomplex": lambda f, d: f(d.c),
    "iscomplexobj": lambda f, d: (f(d.c), f(d.v)),
    "isclose": lambda f, d: (f(d.v, d.v + 1e-9), f(d.n, d.n, equal_nan=True), f(d.v, d.w, 0.5, 0.1)),
    "isin": lambda f, d: (f(d.i, d.j), f(d.i, [1, 2], invert=True)),
    "isneginf": lambda f, d: f(d.n),
    "isposinf": lambda f, d: f(d.n),
    "isreal": lambda f, d: f(d.c),
    "isrealobj": lambda f, d: (f(d.c), f(d.v)),
    "ix_": lambda f, d: f(d.i, d.j),
    "kron": lambda f, d: f(d.a, d.v),
    "lexsort": lambda f, d: f((d.i, d.j)),
    "linspace": lambda f, d: (f(d.v[0], d.v[3], 5), f(d.v, d.w, 3, axis=1), f(d.v[0], 1, 3, retstep=True)),
    "logspace": lambda f, d: f(d.v[0], d.v[2], 4),
    "matrix_transpose": lambda f, d: f(d.t),
    "max": lambda f, d: (f(d.n), f(d.a, 1, initial=3.5), f(d.c)),
    "may_share_memory": lambda f, d: (f(d.a, d.a.T), f(d.a, d.v)),
    "mean": lambda f, d: (f(d.v), f(d.a, 0, keepdims=True), f(d.a, where=d.a > 0)),
    "median": lambda f, d: (f(d.v), f(d.a, axis=1, keepdims=True), f(d.n)),
    "meshgrid": lambda f, d: (f(d.v, d.w), f(d.v, d.w, indexing="ij", sparse=True)),
    "min": lambda f, d: (f(d.n), f(d.a, 1)),
    "min_scalar_type": lambda f, d: f(d.v),
    "moveaxis": lambda f, d: f(d.t, [0, 1], [-1, 0]),
    "nan_to_num": lambda f, d: (f(d.n), f(d.n, nan=1, posinf=2)),
    "nanargmax": lambda f, d: f(d.n),
    "nanargmin": lambda f, d: f(d.n),
    "nancumprod": lambda f, d: f(d.n[:3]),
    "nancumsum": lambda f, d: f(d.n),
    "nanmax": lambda f, d: (f(d.n), f(d.a, axis=0)),
    "nanmean": lambda f, d: (f(d.n[:3]), f(d.a, axis=0)),
    "nanmedian": lambda f, d: (f(d.n), f(d.a, axis=0)),
    "nanmin": lambda f, d: (f(d.n), f(d.a, axis=0, keepdims=True)),
    "nanpercentile": lambda f, d: f(d.n[:3], [20, 50]),
    "nanprod": lambda f, d: f(d.n[:3]),
    "nanquantile": lambda f, d: f(d.n[:3], 0.3),
    "nanstd": lambda f, d: f(d.n[:3], ddof=1),
    "nansum": lambda f, d: (f(d.n), f(d.a, 1)),
    "nanvar": lambda f, d: f(d.n[:3]),
    "ndim": lambda f, d: f(d.t),
    "nonzero": lambda f, d: f(d.b),
    "ones_like": lambda f, d: (f(d.t), f(d.v, dtype="int8")),
    "outer": lambda f, d: f(d.v, d.w),
    "packbits": lambda f, d: f(d.b, axis=1),
    "pad": lambda f, d: (f(d.v, 2), f(d.a, 1, "edge"), f(d.v, (1, 2), "reflect")),
    "partition": lambda f, d: np.sort(f(d.v, 2)[:3]),
    "percentile": lambda f, d: (f(d.v, 30), f(d.a, [25, 75], axis=0)),
    "permute_dims": lambda f, d: f(d.t, (1, 2, 0)),
    "piecewise": lambda f, d: f(d.v, [d.v < 0, d.v >= 0], [-1, 1]),
    "place": written(lambda f, d, t: f(t, d.v > 0, [7, 8])),
    "poly": lambda f, d: f(d.v),
    "polyadd": lambda f, d: f(d.v, d.w[:2]),
    "polyder": lambda f, d: f(d.v),
    "polydiv": lambda f, d: f(d.v, d.w[:2]),
    "polyfit": lambda f, d: (f(d.w, d.v, 2), f(d.w, d.v, 1, w=d.w, cov=True)),
    "polyint": lambda f, d: f(d.v),
    "polymul": lambda f, d: f(d.v, d.w),
    "polysub": lambda f, d: f(d.v, d.w),
    "polyval": lambda f, d: f(d.v, d.w),
    "prod": lambda f, d: (f(d.v), f(d.a, 1), f(d.i, dtype="float64"), f(d.v, where=d.v > 0)),
    "ptp": lambda f, d: (f(d.v), f(d.a, 1)),
    "put": written(lambda f, d, t: f(t, [0, 2], [7, 8])),
    "put_along_axis": written(lambda f, d, t: f(t, d.i[:2] % 2, 9, 0)),
    "putmask": written(lambda f, d, t: f(t, d.v > 0, d.w)),
    "quantile": lambda f, d: (f(d.v, 0.3), f(d.v, d.w, method="lower")),
    "ravel": lambda f, d: (f(d.a), f(d.a.T, order="K")),
    "ravel_multi_index": lambda f, d: f((d.i % 3, d.j % 4), (3, 4)),
    "real": lambda f, d: f(d.c),
    "real_if_close": lambda f, d: (f(d.c), f(d.c[2:3])),
    "repeat": lambda f, d: (f(d.v, 2), f(d.a, [1, 0, 2], axis=1)),
    "reshape": lambda f, d: (f(d.t, (4, -1)), f(d.t, (4, 6), order="F")),
    "resize": lambda f, d: f(d.v, (2, 4)),
    "result_type": lambda f, d: f(d.v, d.c),
    "roll": lambda f, d: (f(d.v, 2), f(d.a, (1, 1), (0, 1))),
    "rollaxis": lambda f, d: f(d.t, 2),
    "roots": lambda f, d: np.sort_complex(f(d.v)),
    "rot90": lambda f, d: f(d.a),
    "round": lambda f, d: (f(d.v), f(d.v / 3, 2)),
    "save": saved(lambda f, d, file: f(file, d.v)),
    "savetxt": saved(lambda f, d, file: f(file, d.a)),
    "savez": saved(lambda f, d, file: f(file, d.v, name=d.a)),
    "savez_compressed": saved(lambda f, d, file: f(file, d.v)),
    "searchsorted": lambda f, d: (f(d.w, d.v), f(d.w, 0.25, side="right"), f(d.v, d.w, sorter=np.argsort(d.v))),
    "select": lambda f, d: f([d.v < 0, d.v > 2], [d.v, d.w], 9),
    "setdiff1d": lambda f, d: f(d.i, d.j),
    "setxor1d": lambda f, d: f(d.i, d.j),
    "shape": lambda f, d: f(d.t),
    "shares_memory": lambda f, d: (f(d.a, d.a.T), f(d.a[0], d.a[1])),
    "sinc": lambda f, d: f(d.v),
    "size": lambda f, d: (f(d.t), f(d.t, 1)),
    "sort": lambda f, d: (f(d.v), f(d.a, 0), f(d.n), f(d.a, None), f(d.c)),
    "sort_complex": lambda f, d: f(d.c),
    "split": lambda f, d: (f(d.i, 3), f(d.v, [1, 3])),
    "squeeze": lambda f, d: (f(d.v[None]), f(d.v[:, None], 1)),
    "stack": lambda f, d: f([d.v, d.w], axis=1),
    "std": lambda f, d: (f(d.v), f(d.a, 1, ddof=1), f(d.a, mean=np.mean(d.a, keepdims=True))),
    "sum": lambda f, d: (f(d.v), f(d.a, (0, 1)), f(d.a, 1, where=d.a > 0, initial=2), f(d.b), f(d.u)),
    "swapaxes": lambda f, d: f(d.t, 0, 2),
    "take": lambda f, d: (f(d.v, [0, 2]), f(d.a, [[0, 5]]), f(d.a, [4], axis=1, mode="wrap")),
    "take_along_axis": lambda f, d: (f(d.a, np.argsort(d.a, 1), 1), f(d.a, np.argsort(d.a, None), None)),
    "tensordot": lambda f, d: (f(d.a, d.a, 1), f(d.t, d.t, ([0, 1], [0, 1]))),
    "tile": lambda f, d: f(d.v, (2, 2)),
    "trace": lambda f, d: (f(d.a), f(d.a, 1)),
    "transpose": lambda f, d: (f(d.t), f(d.t, (1, 0, 2))),
    "trapezoid": lambda f, d: (f(d.v), f(d.v, d.w)),
    "tril": lambda f, d: f(d.a, -1),
    "tril_indices_from": lambda f, d: f(d.a),
    "trim_zeros": lambda f, d: f(np.concatenate([d.v * 0, d.v])),
    "triu": lambda f, d: f(d.a, 1),
    "triu_indices_from": lambda f, d: f(d.a),
    "union1d": lambda f, d: f(d.i, d.j),
    "unique": lambda f, d: (f(d.i), f(d.i, True, True, True), f(d.a, axis=0)),
    "unique_all": lambda f, d: f(d.i),
    "unique_counts": lambda f, d: f(d.i),
    "unique_inverse": lambda f, d: f(d.i),
    "unique_values": lambda f, d: np.sort(f(d.i)),
    "unpackbits": lambda f, d: f(d.u),
    "unravel_index": lambda f, d: f(d.i, (3, 4)),
    "unstack": lambda f, d: f(d.t, axis=1),
    "unwrap": lambda f, d: f(d.v * 3),
    "vander": lambda f, d: f(d.v, 3),
    "var": lambda f, d: (f(d.v), f(d.a, axis=0, correction=1), f(d.c)),
    "vdot": lambda f, d: (f(d.v, d.w), f(d.c, d.c)),
    "vsplit": lambda f, d: f(d.a, 3),
    "vstack": lambda f, d: f([d.v, d.w]),
    "where": lambda f, d: (f(d.v > 0, d.v, 0), f(d.i, d.i, -1), f(d.v), f(d.b)),
    "zeros_like": lambda f, d: (f(d.t), f(d.v, dtype="bool", shape=3)),
    "linalg.cholesky": lambda f, d: f(d.a),
    "linalg.cond": lambda f, d: (f(d.a), f(d.a, 1)),
    "linalg.cross": lambda f, d: f(d.a, d.a[0] + 1),
    "linalg.det": lambda f, d: f(d.a),
    "linalg.diagonal": lambda f, d: f(d.a, offset=1),
    "linalg.eig": lambda f, d: eigen(f(d.a)),
    "linalg.eigh": lambda f, d: eigen(f(d.a)),
    "linalg.eigvals": lambda f, d: np.sort(f(d.a)),
    "linalg.eigvalsh": lambda f, d: f(d.a),
    "linalg.inv": lambda f, d: f(d.a),
    "linalg.lstsq": lambda f, d: f(d.a[:, :2], d.a[:, 2])[0],
    "linalg.matmul": lambda f, d: f(d.a, d.a),
    "linalg.matrix_norm": lambda f, d: (f(d.a), f(d.a, ord=1)),
    "linalg.matrix_power": lambda f, d: (f(d.a, 3), f(d.a, -1)),
    "linalg.matrix_rank": lambda f, d: f(d.a),
    "linalg.matrix_transpose": lambda f, d: f(d.t),
    "linalg.multi_dot": lambda f, d: f([d.a, d.a, d.a]),
    "linalg.norm": lambda f, d: (f(d.v), f(d.a, "fro"), f(d.a, axis=0)),
    "linalg.outer": lambda f, d: f(d.v, d.w),
    "linalg.pinv": lambda f, d: f(d.a[:, :2]),
    "linalg.qr": lambda f, d: (np.abs(f(d.a)[1]), f(d.a, "r") ** 2),
    "linalg.slogdet": lambda f, d: f(d.a),
    "linalg.solve": lambda f, d: f(d.a, d.a[0]),
    "linalg.svd": lambda f, d: (f(d.a)[1], f(d.a, compute_uv=False)),
    "linalg.svdvals": lambda f, d: f(d.a),
    "linalg.tensordot": lambda f, d: f(d.a, d.a, axes=1),
    "linalg.tensorinv": lambda f, d: f(d.a.reshape((3, 1, 3)), 1),
    "linalg.tensorsolve": lambda f, d: f(d.a, d.a[0]),
    "linalg.trace": lambda f, d: f(d.a),
    "linalg.vecdot": lambda f, d: f(d.a, d.a),
    "linalg.vector_norm": lambda f, d: (f(d.v), f(d.a, ord=1, axis=1)),
    "fft.fft": lambda f, d: (f(d.v), f(d.v, 4), f(d.a, axis=0)),
    "fft.fft2": lambda f, d: f(d.a),
    "fft.fftn": lambda f, d: f(d.t),
    "fft.fftshift": lambda f, d: f(d.v),
    "fft.hfft": lambda f, d: f(d.c),
    "fft.ifft": lambda f, d: f(d.c, norm="ortho"),
    "fft.ifft2": lambda f, d: f(d.a),
    "fft.ifftn": lambda f, d: f(d.t),
    "fft.ifftshift": lambda f, d: f(d.v),
    "fft.ihfft": lambda f, d: f(d.v),
    "fft.irfft": lambda f, d: f(d.c),
    "fft.irfft2": lambda f, d: f(d.a),
    "fft.irfftn": lambda f, d: f(d.a),
    "fft.rfft": lambda f, d: f(d.v),
    "fft.rfft2": lambda f, d: f(d.a),
    "fft.rfftn": lambda f, d: f(d.t),
    "lib.scimath.arccos": lambda f, d: f(d.v),
    "lib.scimath.arcsin": lambda f, d: f(d.v),
    "lib.scimath.arctanh": lambda f, d: f(d.v),
    "lib.scimath.log": lambda f, d: f(d.v),
    "lib.scimath.log10": lambda f, d: f(d.v),
    "lib.scimath.log2": lambda f, d: f(d.v),
    "lib.scimath.logn": lambda f, d: f(3, d.v),
    "lib.scimath.power": lambda f, d: f(d.v, 0.5),
    "lib.scimath.sqrt": lambda f, d: f(d.v),
    "lib.stride_tricks.sliding_window_view": lambda f, d: f(d.v, 3),
}

# Dtypes that NumPy's ufunc takes and our op of the same name refuses, and values that differ by design.
REFUSED_DTYPES = {
    *(
        f"{name} bool"
        for name in ("absolute", "bitwise_left_shift", "left_shift", "bitwise_right_shift", "right_shift")
    ),
    *(
        f"{name} bool"
        for name in ("abs", "ceil", "conj", "conjugate", "divmod", "floor", "floor_divide", "fmod", "mod")
    ),
    *(f"{name} bool" for name in ("pow", "power", "remainder", "rint", "signbit", "trunc")),
    *(f"{name} complex128" for name in ("greater", "greater_equal", "less", "less_equal", "maximum", "minimum")),
}
OTHER_VALUES = {f"reciprocal {kind}" for kind in ("int64", "int8", "bool")}  # NumPy computes 1 // x

REFUSED = dict.fromkeys(
    ("busday_count", "busday_offset", "datetime_as_string", "is_busday"), "dates: tilearray has no such dtypes"
)


def discovered():
    """The functions of NumPy that dispatch, by name."""
    found = {}
    for prefix, module in (
        ("", np),
        ("linalg.", np.linalg),
        ("fft.", np.fft),
        ("lib.scimath.", np.lib.scimath),
        ("lib.stride_tricks.", np.lib.stride_tricks),
    ):
        for name in dir(module):
            function = getattr(module, name)
            if type(function).__name__ == "_ArrayFunctionDispatcher" and not name.startswith("_"):
                found[prefix + name] = function
    return found


DISPATCHED = discovered()


def data(convert, source):
    made = SimpleNamespace(**{name: convert(value) for name, value in source.items()})
    made.fresh = lambda x: x.copy()
    return made


def check(found, want, name, *, dtypes):
    """Compare a result with NumPy's: Arrays with arrays, in the order of nested tuples."""
    if isinstance(want, (tuple, list)):
        assert isinstance(found, (tuple, list)), name
        assert len(found) == len(want), name
        assert getattr(found, "_fields", ()) in (getattr(want, "_fields", ()), ()), name
        for one, other in zip(found, want):
            check(one, other, name, dtypes=dtypes)
    elif isinstance(want, (np.ndarray, np.generic)):
        assert isinstance(found, (ta.Array, np.ndarray, bool, int, np.generic)), (name, type(found))
        assert isinstance(found, ta.Array) or np.ndim(want) == 0 or name in ("linalg.eig", "linalg.eigh"), name
        host = np.asarray(found)
        assert host.shape == want.shape, name
        assert np.allclose(host, want, rtol=1e-6, atol=1e-7, equal_nan=True), (name, host, want)
        if dtypes:
            assert host.dtype == want.dtype, (name, host.dtype, want.dtype)
    else:
        assert found == want, (name, found, want)


@pytest.mark.filterwarnings(
    "ignore::RuntimeWarning", "ignore::DeprecationWarning", "ignore::numpy.exceptions.RankWarning"
)
@pytest.mark.parametrize("semantics", ["array-api", "numpy"])
def test_every_function_gives_numpys_values(semantics):
    """Under the semantics "numpy" the dtypes are NumPy's, too."""
    calls = {name: call for name, call in CALLS.items() if name in DISPATCHED}
    with ta.semantics(semantics):
        for source in (SOURCE, NEGATIVE):
            theirs, ours = data(lambda x: x, source), data(ta.asarray, source)
            for name, call in calls.items():
                want = call(DISPATCHED[name], theirs)
                check(call(DISPATCHED[name], ours), want, name, dtypes=semantics == "numpy")
    assert len(calls) >= 250


UFUNCS = {x: name for name in dir(np) if isinstance(x := getattr(np, name), np.ufunc) and x.signature is None}
OPERANDS = {
    "float64": [np.array([0.5, 0.25, 0.75]), np.array([0.25, 0.75, 0.5])],
    "int64": [np.array([7, 1, 3]), np.array([2, 1, 5])],
    "int8": [np.array([7, 1, 3], np.int8), np.array([2, 1, 5], np.int8)],
    "bool": [np.array([True, False, True]), np.array([True, True, False])],
    "complex128": [np.array([0.5 + 1j, 2 - 1j, 0.25j]), np.array([1 - 1j, 0.5, 2 + 3j])],
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_ufunc_gives_numpys_values_or_refuses_a_dtype():
    refused = set()
    with ta.semantics("numpy"):
        for ufunc, name in UFUNCS.items():
            for kind, operands in OPERANDS.items():
                given = operands[: ufunc.nin]
                try:
                    want = ufunc(*given)
                except TypeError:
                    continue
                try:
                    found = ufunc(*map(ta.asarray, given))
                except ta.DTypeError:
                    refused.add(f"{name} {kind}")
                    continue
                if f"{name} {kind}" not in OTHER_VALUES:
                    check(found, want, f"{name} {kind}", dtypes=False)
    assert len(UFUNCS) > 80
    assert refused <= REFUSED_DTYPES


def test_every_function_that_dispatches_has_a_call():
    missing = sorted(DISPATCHED.keys() - CALLS.keys() - REFUSED.keys())
    assert len(missing) <= 4 * (np.__version__ > "2.5"), missing
    for name in REFUSED:
        assert name not in CALLS
