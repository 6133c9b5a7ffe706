"""xarray over our arrays: a DataArray or Dataset whose data is an Array, beside the same over a ndarray."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from clients.calls import part as part

PACKAGE = "xarray"
SEMANTICS = "array-api"


def missing(checkout: Path | None) -> str | None:
    if importlib.util.find_spec("xarray") is None:
        return "xarray: expected an installed xarray; write: pip install xarray"
    return None


def names(array: Callable[[Any], Any]) -> dict[str, Any]:
    """Two-dimensional `a` and `b` (`n` with NaN), integers `i`, a mask `m`, a line `t`, a cube `c`, a Dataset `ds`."""
    import xarray as xr

    x, y = [10.0, 20.0, 30.0], [0, 1, 2, 3]
    values = np.arange(12.0).reshape(3, 4)

    def of(data: Any, dims: tuple[str, ...] = ("x", "y")) -> Any:
        coordinates = {name: one for name, one in (("x", x), ("y", y)) if name in dims}
        return xr.DataArray(array(data), dims=dims, coords=coordinates, name="v")

    holes = np.where(values % 5 == 3, np.nan, values)
    found = {
        "a": of(values),
        "b": of(np.cos(values) + 2.0),
        "n": of(holes),
        "i": of(np.arange(12).reshape(3, 4) % 5),
        "m": of(values % 3 == 0),
        "t": of(np.array([3.0, 1.0, 2.0, 5.0]), ("y",)),
        "c": of(np.arange(24.0).reshape(2, 3, 4), ("z", "x", "y")),
    }
    dataset = xr.Dataset({"p": found["a"].rename(None), "q": found["n"].rename(None)})
    return {**found, "ds": dataset, "v": found["a"].variable, "xr": xr, "np": np, "A": array}


CALLS = {
    "make": [
        "a",
        "a.copy()",
        "a.astype('float32')",
        "a.rename('w')",
        "a.assign_coords(y=[4, 5, 6, 7])",
        "xr.zeros_like(a)",
        "xr.ones_like(i)",
        "xr.full_like(a, 7.0)",
        "a.expand_dims('k')",
        "a.to_dataset()",
        "v.to_base_variable()",
    ],
    "arithmetic": [
        "a + b",
        "a - 1.5",
        "2.0 / b",
        "a * t",
        "b ** 2",
        "-a",
        "abs(-a)",
        "a // 3.0",
        "i % 3",
        "a > b",
        "(a > 2.0) & (b < 2.5)",
        "~m",
        "a == a",
        "a += 1.0; a",
        "a.round()",
        "a.clip(2.0, 8.0)",
        "ds + 1.0",
        "ds['p'] * ds['q']",
    ],
    "functions": [
        "np.sin(a)",
        "np.maximum(a, b)",
        "np.sqrt(b)",
        "np.isnan(n)",
        "np.where(m, a, b)",
        "xr.where(m, a, 0.0)",
        "xr.apply_ufunc(np.exp, -a)",
        "xr.apply_ufunc(lambda x: x * 2, a)",
        "xr.dot(a, b, dim='y')",
        "a.dot(t)",
        "a.conj()",
        "a.real",
        "a.T",
        "a.isnull()",
        "n.notnull()",
        "a.isin([1.0, 5.0])",
    ],
    "reduce": [
        "a.sum()",
        "a.sum('x')",
        "a.mean()",
        "a.mean('y')",
        "a.max('x')",
        "a.min()",
        "a.std('x')",
        "a.var()",
        "a.var('x', ddof=1)",
        "a.prod('y')",
        "a.median('x')",
        "m.any('x')",
        "m.all()",
        "a.count('x')",
        "a.argmax('x')",
        "a.argmin()",
        "a.idxmax('x')",
        "a.cumsum('y')",
        "b.cumprod('x')",
        "a.quantile(0.3)",
        "a.quantile([0.25, 0.75], dim='x')",
        "i.sum('x')",
        "i.mean()",
        "ds.mean()",
        "ds.max('x')",
    ],
    "skipna": [
        "n.sum()",
        "n.mean('x')",
        "n.max('y')",
        "n.min()",
        "n.std()",
        "n.var('x')",
        "n.median()",
        "n.cumsum('x')",
        "n.quantile(0.5, dim='y')",
        "n.mean(skipna=False)",
        "n.count()",
        "n.argmax('x')",
        "n.fillna(0.0)",
        "n.where(n > 2.0)",
        "n.where(n > 2.0, -1.0)",
        "n.dropna('x')",
        "n.interpolate_na('y')",
    ],
    "index": [
        "a[0]",
        "a[:, 1:3]",
        "a.isel(x=1)",
        "a.isel(x=[0, 2])",
        "a.sel(x=20.0)",
        "a.sel(x=[10.0, 30.0], y=slice(1, 2))",
        "a.sel(x=19.0, method='nearest')",
        "a[{'x': xr.DataArray([0, 1], dims='k'), 'y': xr.DataArray([2, 3], dims='k')}]",
        "a.where(m, drop=True)",
        "a.head(x=2)",
        "a[::-1]",
        "a.loc[10.0]",
        "float(a[1, 1])",
    ],
    "assign": [
        "a[0] = 5.0; a",
        "a[0] = a[1]; a",
        "a.loc[{'x': 20.0}] = -1.0; a",
        "a[:, 0] = np.array([7.0, 8.0, 9.0]); a",
        "a[0, 0] = np.float64(3.0); a",
        "a[{'x': 0, 'y': 1}] = np.array(4.0); a",
    ],
    "shape": [
        "a.transpose('y', 'x')",
        "c.stack(k=('x', 'y'))",
        "a.stack(k=('x', 'y')).unstack('k')",
        "a.squeeze()",
        "xr.concat([a, b], 'x')",
        "xr.concat([a, b], 'new')",
        "xr.merge([a.rename('p'), b.rename('q')])",
        "xr.broadcast(a, t)[1]",
        "a.pad(x=1, constant_values=0.0)",
        "a.pad(y=(1, 2), mode='edge')",
        "a.pad(y=1, mode='reflect')",
        "a.roll(x=1, roll_coords=False)",
        "a.shift(y=1)",
        "a.reindex(x=[10.0, 15.0, 20.0])",
        "a.sortby('x', ascending=False)",
        "a.diff('x')",
        "a.coarsen(x=1, y=2).mean()",
        "a.rolling(y=2).mean()",
        "a.rolling(y=2).construct('w')",
        "a.groupby('y').mean()",
        "a.groupby('x').map(lambda g: g - g.mean())",
        "c.weighted(t).mean('y')",
    ],
    "numeric": [
        "a.differentiate('x')",
        "a.integrate('x')",
        "a.interp(x=15.0)",
        "a.argsort()",
        "a.cumulative('x').sum()",
        "xr.corr(a, b)",
        "xr.cov(a, b, dim='x')",
        "a.polyfit('x', 1)",
        "xr.testing.assert_allclose(a, a + 1e-12)",
        "a.equals(a.copy())",
        "a.identical(a)",
    ],
    "leave": [
        "a.values",
        "a.to_pandas()",
        "a.to_series()",
        "a.to_dict()['data']",
        "a[0, 1].item()",
        "repr(a)[:10]",
    ],
}
