"""Our arrays beside objects of other libraries and of Python: operators from both sides, constructors, plots, pickles.

A group needs the package of its name; without it the calls of the group are skipped.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from clients.calls import part as part

PACKAGE = "numpy"
SEMANTICS = "array-api"
PACKAGES = {"pandas": "pd", "pint": "pint", "sparse": "sparse", "opt_einsum": "oe", "matplotlib": "mpl", "PIL": "PIL"}


def missing(checkout: Path | None) -> str | None:
    return None


def needed(group: str) -> bool:
    """Whether the package of a group is installed."""
    return group not in PACKAGES or importlib.util.find_spec(group) is not None


def names(array: Callable[[Any], Any]) -> dict[str, Any]:
    """Lines `x` and `y`, a matrix `a`, integers `i`, a mask `m`, a picture `g`; NumPy's `X` beside them."""
    found: dict[str, Any] = {
        "x": array(np.array([1.0, 2.0, 3.0, 4.0])),
        "y": array(np.array([0.5, 0.25, 2.0, 8.0])),
        "a": array(np.arange(12.0).reshape(3, 4)),
        "i": array(np.array([2, 0, 1, 2])),
        "m": array(np.array([True, False, True, True])),
        "g": array((np.arange(48).reshape(4, 4, 3) * 5).astype(np.uint8)),
        "X": np.array([10.0, 20.0, 30.0, 40.0]),
        "np": np,
    }
    for package, name in PACKAGES.items():
        if importlib.util.find_spec(package):
            found[name] = importlib.import_module(package)
    if "mpl" in found:
        found["mpl"].use("agg")
        found["plt"] = importlib.import_module("matplotlib.pyplot")
        found["plt"].close("all")
    if "PIL" in found:
        found["Image"] = importlib.import_module("PIL.Image")
    if "pint" in found:
        found["ureg"] = registry(found["pint"])
    for module in ("pickle", "copy", "math", "statistics", "json", "array", "struct"):
        found[module] = importlib.import_module(module)
    return found


@functools.cache
def registry(pint: Any) -> Any:
    """The units, which take a second to read."""
    return pint.UnitRegistry()


CALLS = {
    "pandas": [
        "pd.Series(x)",
        "pd.DataFrame(a)",
        "pd.DataFrame({'x': x, 'y': y})",
        "pd.Series(X) + x",
        "x + pd.Series(X)",
        "x < pd.Series(X)",
        "pd.Series(X) * 2 - x",
        "pd.Series(X)[m]",
        "pd.Series(X).iloc[i]",
        "pd.Series(X).isin(x)",
        "pd.Index(x)",
        "pd.cut(x, 2).codes",
        "pd.to_datetime(i)",
        "pd.unique(np.asarray(i))",
        "pd.Series(X, index=i)",
        "np.add(pd.Series(X), x)",
        "pd.concat([pd.Series(x), pd.Series(y)])",
        "pd.DataFrame(a).assign(z=x[:3])",
        "pd.Series(X).where(m, x)",
        "pd.get_dummies(pd.Series(i))",
    ],
    "pint": [
        "(x * ureg.metre).magnitude",
        "(x * ureg.metre + y * ureg.metre).magnitude",
        "ureg.Quantity(x, 'cm').to('m').magnitude",
        "(ureg.Quantity(x, 'm') / ureg.Quantity(y, 's')).magnitude",
        "ureg.Quantity(x, 'm').sum().magnitude",
        "ureg.Quantity(x, 'm').mean().magnitude",
        "ureg.Quantity(x, 'm').max().magnitude",
        "ureg.Quantity(x, 'm').std().magnitude",
        "np.sqrt(ureg.Quantity(x, 'm')).magnitude",
        "np.where(m, ureg.Quantity(x, 'm'), ureg.Quantity(y, 'm')).magnitude",
        "np.linalg.norm(ureg.Quantity(x, 'm')).magnitude",
        "np.dot(ureg.Quantity(x, 'm'), ureg.Quantity(y, 'm')).magnitude",
        "np.concatenate([ureg.Quantity(x, 'm'), ureg.Quantity(y, 'm')]).magnitude",
        "ureg.Quantity(x, 'm')[1].magnitude",
        "ureg.Quantity(x, 'm').reshape((2, 2)).magnitude",
        "(ureg.Quantity(x, 'm') > ureg.Quantity(2.0, 'm'))",
    ],
    "sparse": [
        "(sparse.COO.from_numpy(np.asarray(a)) * 2.0).todense()",
        "(sparse.COO(np.asarray(a)) * a).todense()",
        "(a * sparse.COO(np.asarray(a))).todense()",
        "sparse.COO(np.asarray(a)) @ x",
        "sparse.COO(np.asarray(a)) + a",
        "a + sparse.COO(np.asarray(a))",
    ],
    "opt_einsum": [
        "oe.contract('ij,ij->i', a, a)",
        "oe.contract('ij,kj->ik', a, a)",
        "oe.contract('i,i->', x, y)",
        "oe.contract('ij,j,kj->ik', a, x, a)",
        "oe.contract_expression('ij,j->i', (3, 4), (4,))(a, x)",
    ],
    "matplotlib": [
        "plt.figure(); plt.plot(x, y)[0].get_xydata()",
        "plt.figure(); plt.scatter(x, y).get_offsets()",
        "plt.figure(); np.asarray(plt.imshow(a).get_array())",
        "plt.figure(); plt.hist(x, bins=2)[:2]",
        "plt.figure(); np.asarray(plt.pcolormesh(a).get_array())",
        "plt.figure(); [bar.get_height() for bar in plt.bar(x, y)]",
        "plt.figure(); [bar.get_width() for bar in plt.barh(x, y)]",
        "plt.figure(); plt.hist2d(x, y, bins=2)[:3]",
        "plt.figure(); np.asarray(plt.quiver(x, y, x, y).U)",
        "plt.figure(); plt.errorbar(x, y, yerr=y)[0].get_ydata()",
        "plt.figure(); plt.fill_between(x, y).get_paths()[0].vertices",
        "plt.figure(); plt.stem(x, y)[0].get_ydata()",
        "plt.figure(); plt.boxplot(a)['medians'][0].get_ydata()",
        "plt.figure(); np.asarray(plt.contour(a).levels)",
        "plt.figure(); plt.step(x, y)[0].get_xydata()",
        "plt.figure(); plt.axhline(x[0]).get_ydata()",
        "plt.figure(); plt.xlim(x[0], x[3])",
    ],
    "PIL": [
        "np.asarray(Image.fromarray(g))",
        "np.asarray(Image.fromarray(g[:, :, 0]))",
        "np.asarray(Image.fromarray(g[::-1, :, 0]))",
        "np.asarray(Image.fromarray(g[:, :, 0].T))",
        "np.asarray(Image.fromarray(a.astype('float32')))",
        "np.asarray(Image.frombytes('RGB', (4, 4), g.tobytes()))",
    ],
    "python": [
        "pickle.loads(pickle.dumps(x))",
        "copy.copy(x)",
        "copy.deepcopy(a)",
        "math.sqrt(x[2])",
        "math.fsum(x)",
        "statistics.mean(x.tolist())",
        "sum(x)",
        "max(x)",
        "min(x)",
        "sorted(x.tolist())",
        "list(x)",
        "[float(one) for one in x]",
        "len(a)",
        "float(x[0])",
        "int(i[0])",
        "complex(x[1])",
        "bool(m[0])",
        "round(x[1])",
        "round(x[3], 1)",
        "abs(-x)",
        "divmod(x, 2.0)",
        "pow(x, 2)",
        "range(i[0])",
        "[10, 20, 30][i[1]]",
        "'%.2f' % x[0]",
        "f'{x[1]:.3f}'",
        "memoryview(x).tolist()",
        "memoryview(x.data).tolist()",
        "x.tobytes()",
        "json.dumps(x.tolist())",
        "list(zip(x, y))",
        "list(map(float, x))",
        "any(m)",
        "all(m)",
        "2.0 in x",
        "[*x]",
        "list(reversed(x))",
        "list(enumerate(i))",
        "array.array('d', x.tolist())",
        "struct.pack('d', x[0])",
    ],
    "ndarray": [
        "x + X",
        "X + x",
        "X - x",
        "X * x",
        "x @ X",
        "X @ x",
        "x < X",
        "X < x",
        "x == X",
        "X == x",
        "x ** X[0]",
        "np.float64(2.0) * x",
        "x * np.float64(2.0)",
        "x + np.float32(1.0)",
        "np.array(3.0) * x",
        "x + [1.0, 2.0, 3.0, 4.0]",
        "[1.0, 2.0, 3.0, 4.0] + x",
        "x - (1.0, 1.0, 1.0, 1.0)",
        "x += X; x",
        "X += x; X",
        "x[:] = X; x",
        "x[1:3] = [7.0, 8.0]; x",
        "x[m] = X[:3]; x",
        "X[np.asarray(m)] = x[:3]; X",
        "X[i]",
        "X[m]",
        "x[np.array([0, 2])]",
        "x[[0, 2]]",
        "x[np.array([True, False, True, False])]",
        "x[np.int64(1)]",
        "np.maximum(x, X)",
        "np.where(m, x, X)",
        "np.concatenate([x, X])",
        "np.stack([X, x])",
    ],
}
