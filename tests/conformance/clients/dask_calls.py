"""dask.array over our arrays: chunks are Arrays, and stay Arrays until the result."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from clients.calls import part as part

PACKAGE = "dask"
SEMANTICS = "array-api"


def missing(checkout: Path | None) -> str | None:
    if importlib.util.find_spec("dask") is None:
        return "dask: expected an installed dask; write: pip install 'dask[array]'"
    return None


def names(array: Callable[[Any], Any]) -> dict[str, Any]:
    """Matrices `x` and `y` (`n` has NaN, `w` signs) in four chunks, integers `i`, a mask `m`, lines `t` and `u`."""
    import dask.array as da

    values = np.arange(48.0).reshape(6, 8)

    def of(data: Any, chunks: Any = (3, 4)) -> Any:
        return da.from_array(array(data), chunks=chunks, asarray=False)

    return {
        "x": of(values),
        "y": of(np.cos(values) + 2.0),
        "w": of(np.sin(values)),
        "n": of(np.where(values % 7 == 3, np.nan, values)),
        "i": of(np.arange(48).reshape(6, 8) % 7),
        "m": of(values % 3 == 0),
        "t": of(np.array([3.0, 1.0, 2.0, 5.0, 4.0, 0.0]), 3),
        "u": of(np.array([0.5, 1.5, 2.5, 3.5, 4.5, 5.5]), 2),
        "s": of(np.cos(np.arange(16.0)).reshape(4, 4) + 4 * np.eye(4), (2, 2)),
        "da": da,
        "np": np,
        "A": array,
    }


CALLS = {
    "make": [
        "x",
        "x.astype('float32')",
        "x.copy()",
        "x.rechunk((2, 8))",
        "da.asarray(x)",
        "da.ones_like(x)",
        "da.zeros_like(x)",
        "da.full_like(x, 3.0)",
        "da.empty_like(x).shape",
        "da.from_array(A([1.0, 2.0]), asarray=False)",
    ],
    "elementwise": [
        "x + y",
        "x - 1.0",
        "2.0 / y",
        "x * t[:, None]",
        "y ** 2",
        "-x",
        "abs(w)",
        "x // 5.0",
        "i % 3",
        "x > y",
        "(x > 3) & m",
        "~m",
        "da.sin(x)",
        "da.exp(-x)",
        "da.sqrt(y)",
        "da.maximum(x, y)",
        "da.arctan2(w, y)",
        "da.hypot(x, y)",
        "da.isnan(n)",
        "da.where(m, x, y)",
        "da.where(m, x, 0.0)",
        "da.clip(x, 3.0, 9.0)",
        "da.round(y, 2)",
        "x.round(1)",
        "da.sign(w)",
        "da.real(x)",
        "da.conj(x)",
        "da.angle(w)",
        "np.cos(x)",
        "np.add(x, y)",
    ],
    "reduce": [
        "x.sum()",
        "x.sum(axis=0)",
        "x.sum(axis=1, keepdims=True)",
        "x.mean()",
        "x.mean(axis=1)",
        "x.std()",
        "x.var(axis=0)",
        "x.var(axis=0, ddof=1)",
        "x.max()",
        "x.min(axis=0)",
        "y.prod(axis=1)",
        "m.any(axis=0)",
        "m.all()",
        "x.argmax(axis=0)",
        "x.argmin(axis=1)",
        "x.cumsum(axis=0)",
        "y.cumprod(axis=1)",
        "i.sum()",
        "i.mean(axis=0)",
        "np.sum(x)",
        "da.ptp(x, axis=0)",
        "da.average(x, axis=0)",
        "da.median(x.rechunk((6, 4)), axis=0)",
        "da.count_nonzero(m)",
        "da.linalg.norm(x)",
        "da.topk(t, 2)",
    ],
    "nan": [
        "da.nansum(n)",
        "da.nanmean(n, axis=0)",
        "da.nanmax(n, axis=1)",
        "da.nanmin(n)",
        "da.nanstd(n)",
        "da.nan_to_num(n)",
    ],
    "index": [
        "x[0]",
        "x[1:5, ::2]",
        "x[:, [0, 3, 5]]",
        "x[::-1]",
        "x[x > 5.0]",
        "x[0, 0]",
        "da.take(x, [0, 2], axis=1)",
        "x[2:4] = 1.0; x",
        "x[m] = 0.0; x",
        "float(x[1, 1])",
    ],
    "shape": [
        "x.T",
        "x.reshape((3, 2, 8))",
        "x.ravel()",
        "da.concatenate([x, y], axis=0)",
        "da.stack([x, y])",
        "da.vstack([x, y])",
        "da.hstack([x, y])",
        "da.broadcast_to(t[:, None], (6, 8))",
        "da.roll(x, 2, axis=1)",
        "da.flip(x, 0)",
        "da.swapaxes(x, 0, 1)",
        "da.moveaxis(x, 0, 1)",
        "da.expand_dims(x, 0)",
        "da.squeeze(x[:1])",
        "da.tile(t, 2)",
        "da.repeat(t, 2)",
        "da.pad(x, 1, mode='constant')",
        "da.diff(x, axis=0)",
    ],
    "blocks": [
        "x.map_blocks(lambda c: c * 2.0)",
        "da.map_blocks(lambda c, d: c + d, x, y)",
        "x.map_overlap(lambda c: c + 1.0, depth=1, boundary='reflect')",
        "da.blockwise(lambda a, b: a + b, 'ij', x, 'ij', y, 'ij', dtype='float64')",
        "da.overlap.overlap(x, depth=1, boundary='none').shape",
        "da.apply_along_axis(lambda r: r.sum(), 1, x.rechunk((3, 8)), dtype='float64', shape=())",
    ],
    "linear": [
        "x @ x.T",
        "da.dot(t, u)",
        "da.tensordot(x, x, axes=([0], [0]))",
        "da.einsum('ij,ij->i', x, y)",
        "da.outer(t, u)",
        "da.linalg.qr(x.rechunk((3, 8)))[1].shape",
        "abs(da.linalg.svd(x.rechunk((3, 8)))[1])",
        "da.tril(s)",
        "da.triu(s, 1)",
        "da.diag(t)",
        "da.diagonal(s)",
    ],
    "others": [
        "da.unique(i)",
        "da.bincount(i.ravel(), minlength=8)",
        "da.histogram(x, bins=4, range=(0, 48))[0]",
        "da.isin(i, [1, 2])",
        "da.digitize(t, np.array([1.0, 3.0]))",
        "da.allclose(x, x)",
        "da.percentile(t, 50)",
        "da.gradient(x, axis=0)",
        "da.searchsorted(da.arange(5, chunks=5), t)",
        "da.corrcoef(t, u)",
        "da.cov(t, u)",
    ],
}
