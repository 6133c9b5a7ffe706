"""NumPy's names on a device, with drawn arrays, against NumPy."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from support.oracles.formats import dtype_of
from support.oracles.sorting import drawn, view_of
from tilearray.numpy_names import signals
from tilearray.numpy_names.quantiles import METHODS

INTEGERS = ("int8", "uint8", "int16", "uint32", "int64", "uint64")


def _shape(rng: np.random.Generator, axes: int, largest: int = 7) -> tuple[int, ...]:
    """Small sizes, of which few are 0."""
    return tuple(int(size) for size in rng.integers(0 if rng.random() < 0.1 else 1, largest, axes))


@np.errstate(all="ignore")  # of casts of NaN and of large numbers
def check_repeats(device: Any, seed: int, cases: int, largest: int = 7) -> None:
    """Repeat by counts on the device: of any integers, of any layout, for each element or for all."""
    rng = np.random.default_rng(seed)
    for number in range(cases):
        dtype = str(rng.choice(["bool", "uint8", "bfloat16", "float32", "float64", "complex128"]))
        host = drawn(rng, "float32", _shape(rng, int(rng.integers(1, 4)), largest)).astype(dtype_of(dtype))
        axis = [None, *range(-host.ndim, host.ndim)][int(rng.integers(0, 2 * host.ndim + 1))]
        size = host.size if axis is None else host.shape[axis]
        shape = [(size,), (1,), ()][int(rng.choice([0, 0, 0, 0, 1, 2]))]
        counts = rng.integers(0, int(rng.choice([1, 2, 5])), shape).astype(str(rng.choice(INTEGERS)))
        mine = ta.repeat(view_of(rng, host, device), view_of(rng, counts, device), axis=axis)
        wanted = np.repeat(host, counts.astype(np.int64), axis=axis)
        told = f"#{number} {dtype} {host.shape} {axis} {counts}"
        assert (mine.shape, mine.dtype, str(mine.device)) == (wanted.shape, wanted.dtype, "cuda:0"), told
        assert ta.to_numpy(mine).tobytes() == wanted.tobytes(), told
    x = ta.asarray([1, 2], device=device)
    with pytest.raises(ta.ShapeError, match=r"repeat: expected counts >= 0, got -1; write 0 for no copies"):
        ta.repeat(x, ta.asarray([5, -1], dtype="int8", device=device))
    with pytest.raises(ta.ShapeError, match=r"repeat: expected one count or 2, got counts of shape \(3,\)"):
        ta.repeat(x, ta.asarray([1, 2, 3], device=device))
    with pytest.raises(ta.DTypeError, match="repeat: expected integers as counts, got float32"):
        ta.repeat(x, ta.asarray([1.0, 2.0], device=device))
    with pytest.raises(ta.DeviceError, match="repeat: the operands are on cpu and on "):
        ta.repeat(ta.asarray([1, 2], device="cpu"), x)


# --- functions that NumPy computes on the host ---------------------------------------------------------------------

FLOATS = ("float16", "bfloat16", "float32", "float64")
UNITS = {1: 0.3, 2: 0.02, 4: 2e-5, 8: 1e-9}


def _numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], special: float = 0.1) -> np.ndarray:
    """Numbers of a moderate size, many of them equal; sometimes NaNs and infinities among floats."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in INTEGERS:
        return rng.integers(0 if dtype.startswith("u") else -9, 10, shape).astype(dtype)
    found = np.asarray(np.round(rng.standard_normal(shape) * 4, int(rng.integers(0, 4))))
    if rng.random() < 0.3 and not dtype.startswith("complex"):  # products of complex infinities have no one value
        found = np.where(rng.random(shape) < special, rng.choice([np.nan, np.inf, -np.inf], shape), found)
    if dtype.startswith("complex"):
        return (found + 1j * rng.integers(-5, 5, shape)).astype(dtype)
    return found.astype(np.float32 if dtype != "float64" else dtype).astype(dtype_of(dtype))


def _alike(found: Any, wanted: Any, told: str) -> None:
    """Compare results with those of the host: shapes and dtypes, places of NaNs, integers exactly, floats nearly."""
    if isinstance(wanted, (tuple, list)):
        assert type(found) is type(wanted), told
        for mine, theirs in zip(found, wanted, strict=True):
            _alike(mine, theirs, told)
        return
    if isinstance(wanted, float):
        assert (type(found), found) == (float, wanted), told
        return
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), told
    assert str(found.device) == "cuda:0", told
    here, there = ta.to_numpy(found), ta.to_numpy(wanted)
    if wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(here, there, told)
        return
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    unit = UNITS[wanted.dtype.itemsize // (2 if wanted.dtype.kind == "c" else 1)]
    here, there = here.astype(wide), there.astype(wide)
    largest = np.abs(there[np.isfinite(there)]).max(initial=1.0)
    np.testing.assert_allclose(here, there, unit, unit * largest, err_msg=told)


class _Case:
    """A call on the device and the same one on the host, with arrays of the same values."""

    def __init__(self, rng: np.random.Generator, device: Any) -> None:
        self.rng = rng
        self._device = device
        self.told: list[str] = []
        self.arrays: list[tuple[Any, Any]] = []

    def dtype(self, *kinds: tuple[str, ...]) -> str:
        """One of some dtypes."""
        found = str(self.rng.choice([name for kind in kinds for name in kind]))
        self.told.append(found)
        return found

    def array(self, dtype: str, shape: tuple[int, ...], values: Any = None) -> tuple[Any, Any]:
        """The same values on the device, in any layout, and on the host."""
        host = _numbers(self.rng, dtype, shape) if values is None else values.astype(dtype_of(dtype))
        self.told.append(f"{host.dtype.name}{host.shape}")
        return view_of(self.rng, host, self._device), ta.asarray(host, device="cpu")

    def compare(self, name: str, *arguments: Any, **options: Any) -> None:
        """Compare both results. A pair is an array here and there."""
        shown = [x for x in (*arguments, *options.items()) if not _is_pair(x)]
        results = []
        for place in (0, 1):
            given = [_picked(x, place) for x in arguments]
            results.append(getattr(ta, name)(*given, **{key: _picked(x, place) for key, x in options.items()}))
        _alike(*results, f"{name} {self.told} {shown}")


def _is_pair(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], ta.Array)


def _picked(given: Any, place: int) -> Any:
    return given[place] if _is_pair(given) else given


REALS = (("bool",), INTEGERS, FLOATS, FLOATS)
COMPLEX = (("complex64", "complex128"),)


def _covariance(case: _Case) -> None:
    rng = case.rng
    rows, columns = _shape(rng, 2)
    shape = (rows, columns) if rng.random() < 0.8 else (columns,)
    dtype = case.dtype(INTEGERS, FLOATS, *COMPLEX)
    given = [case.array(dtype, shape)]
    rowvar = bool(rng.random() < 0.7)
    if rng.random() < 0.4 and (rowvar or rows != 1):  # NumPy does not transpose one row of more variables
        given.append(case.array(dtype, shape))
    options: dict[str, Any] = {"rowvar": rowvar}
    if rng.random() < 0.3:
        case.compare("corrcoef", *given, **options)
        return
    options["bias"] = bool(rng.random() < 0.3)
    options["ddof"] = [None, 0, 1, 2, 9][int(rng.integers(0, 5))]
    observations = columns if rowvar or len(shape) == 1 else rows
    counts = rng.integers(1, 4, observations)
    if rng.random() < 0.3 and observations:
        options["fweights"] = case.array("int64", (), counts)
    if rng.random() < 0.3 and observations:
        options["aweights"] = case.array("float64", (), rng.random(observations) + 0.1)
    case.compare("cov", *given, **options)


def _products(case: _Case) -> None:
    rng = case.rng
    kinds = (("bool",), INTEGERS, FLOATS, *COMPLEX)
    dtype = case.dtype(*kinds)
    other = dtype if rng.random() < 0.7 else case.dtype(kinds[1] if dtype in INTEGERS else (dtype,))
    sizes = [int(rng.integers(1, 9)) for _ in range(2)]
    mode = str(rng.choice(["full", "same", "valid"]))
    pair = [case.array(each, (size,)) for each, size in zip((dtype, other), sizes, strict=True)]
    case.compare(str(rng.choice(["convolve", "correlate"])), *pair, mode=mode)


def _gradient(case: _Case) -> None:
    rng = case.rng
    shape = tuple(int(size) for size in rng.integers(3, 7, int(rng.integers(1, 4))))
    x = case.array(case.dtype(INTEGERS, FLOATS, *COMPLEX), shape)
    axis = [None, int(rng.integers(-len(shape), len(shape))), 0][int(rng.integers(0, 3))]
    sizes = shape if axis is None else (shape[axis],)
    spacings: list[Any] = [[], [0.5], [2]][int(rng.integers(0, 3))]
    if rng.random() < 0.5:
        places = [np.cumsum(rng.integers(1, 4, size)) * (0.5 if rng.random() < 0.5 else 1) for size in sizes]
        dtypes = [str(rng.choice(["float32", "float64", "int32" if np.all(p % 1 == 0) else "float64"])) for p in places]
        spacings = [case.array(d, (), p) if rng.random() < 0.8 else 3.0 for d, p in zip(dtypes, places, strict=True)]
    options = {} if axis is None else {"axis": axis}
    case.compare("gradient", x, *spacings, edge_order=int(rng.integers(1, 3)), **options)


def _interpolation(case: _Case) -> None:
    rng = case.rng
    size = int(rng.integers(1, 9))
    dtype = case.dtype(INTEGERS[2:], FLOATS)
    places = np.sort(rng.integers(0, 20, size)) if rng.random() < 0.3 else np.sort(rng.choice(40, size, replace=False))
    shape = _shape(rng, int(rng.integers(0, 3)))
    kind = case.dtype(INTEGERS, FLOATS)
    beside = _numbers(rng, "float64", shape) if kind in FLOATS else rng.integers(0, 20, shape)
    x = case.array(kind, (), np.where(rng.random(shape) < 0.4, rng.choice(places - 9, shape), beside))
    xp, fp = case.array(dtype, (), places - 9), case.array(case.dtype(INTEGERS, FLOATS, *COMPLEX), (size,))
    options = {side: float(rng.integers(-50, 50)) for side in ("left", "right") if rng.random() < 0.3}
    if rng.random() < 0.3 and len(set((places % 7).tolist())) == size:
        options["period"] = float(rng.choice([7, -7]))
    case.compare("interp", x, xp, fp, **options)


def _angles(case: _Case) -> None:
    rng = case.rng
    shape = _shape(rng, int(rng.integers(1, 4)))
    dtype = case.dtype(("int8", "int32", "int64"), ("float32", "float64"))
    x = case.array(dtype, (), rng.integers(-40, 40, shape) / (1 if "i" in dtype[:1] else 8))
    options: dict[str, Any] = {"axis": int(rng.integers(-len(shape), len(shape)))}
    if rng.random() < 0.7:
        options["period"] = [4, 5, 2.5, 8][int(rng.integers(0, 4))]
    if rng.random() < 0.3:
        options["discont"] = 3
    case.compare("unwrap", x, **options)


def _sets(case: _Case) -> None:
    rng = case.rng
    kind = [INTEGERS[:5], FLOATS, COMPLEX[0]][int(rng.integers(0, 3))]
    shapes = [_shape(rng, int(rng.integers(1, 3))) for _ in range(2)]
    pair = [case.array(case.dtype(kind), shape) for shape in shapes]
    name = str(rng.choice(["union1d", "intersect1d", "setdiff1d", "setxor1d"]))
    options: dict[str, Any] = {"return_indices": True} if name == "intersect1d" and rng.random() < 0.5 else {}
    case.compare(name, *pair, **options)


def _slices(case: _Case) -> None:
    rng = case.rng
    shape = _shape(rng, int(rng.integers(1, 4)), 5)
    dtype = case.dtype(INTEGERS, ("float32", "float64"), *COMPLEX)
    values = rng.integers(0, 3, shape) + (1j * rng.integers(0, 2, shape) if dtype.startswith("c") else 0)
    flags = [True, *(rng.random(2) < 0.5).tolist()] if rng.random() < 0.7 else [False, False, False]
    case.compare("unique", case.array(dtype, (), values), *flags, axis=int(rng.integers(-len(shape), len(shape))))


def _neighbours(case: _Case) -> None:
    rng = case.rng
    dtype = case.dtype(INTEGERS, FLOATS, *COMPLEX)
    x = case.array(dtype, _shape(rng, int(rng.integers(0, 3))))
    given = [None, case.array(dtype, _shape(rng, 1))]
    if not dtype.startswith("u"):  # which cannot store signed integers
        given += [3, case.array("int8", (2,))]
    ends = [given[int(rng.integers(0, len(given)))] for _ in "ab"]
    case.compare("ediff1d", x, to_end=ends[0], to_begin=ends[1])


def _places(case: _Case) -> None:
    rng = case.rng
    dims = tuple(int(size) for size in rng.integers(1, 7, int(rng.integers(1, 4))))
    shape, order = _shape(rng, int(rng.integers(0, 3))), str(rng.choice(["C", "F"]))
    if rng.random() < 0.5:
        dtype = case.dtype(INTEGERS)
        x = case.array(dtype, (), rng.integers(0, min(int(np.prod(dims)), 127), shape))
        case.compare("unravel_index", x, dims, order=order)
        return
    mode = str(rng.choice(["raise", "wrap", "clip"]))
    low, high = (0, 0) if mode == "raise" else (-9, 9)
    index = [case.array("int32", (), rng.integers(low, size + high, shape)) for size in dims]
    told = f"ravel_multi_index {case.told} {dims} {mode} {order}"
    mine, theirs = (ta.ravel_multi_index(tuple(x[side] for x in index), dims, mode, order) for side in (0, 1))
    _alike(mine, theirs, told)


def _lengths(case: _Case) -> tuple[str, tuple[Any, Any], int | None, int, tuple[int, ...]]:
    """An array whose length changes: its dtype, both arrays, the axis, its size, and the shape of the axes behind."""
    rng = case.rng
    shape = _shape(rng, int(rng.integers(1, 4)), int(rng.choice([7, 30])))
    dtype = case.dtype(("bool",), INTEGERS, FLOATS, *COMPLEX)
    axis = [None, int(rng.integers(-len(shape), len(shape)))][int(rng.integers(0, 2))]
    size = int(np.prod(shape)) if axis is None else shape[axis]
    return dtype, case.array(dtype, shape), axis, size, () if axis is None else shape[axis % len(shape) + 1 :]


def _insertion(case: _Case) -> None:
    rng = case.rng
    dtype, x, axis, size, rest = _lengths(case)
    kind, count = int(rng.integers(0, 5)), int(rng.integers(0, int(rng.choice([4, 20]))))
    where = int(rng.integers(-size, size + 1))
    if kind == 0:
        case.compare("insert", x, where, case.array(dtype, rest), axis=axis)
    elif kind == 1 and axis is None:
        case.compare("insert", x, [where], case.array(dtype, (count,)), axis=axis)
    elif kind == 2:
        case.compare("insert", x, slice(None, None, int(rng.choice([1, 2, -3]))), 1, axis=axis)
    elif kind == 3:
        case.compare("insert", x, rng.random(size) < 0.5, 1, axis=axis)
    else:
        obj = rng.integers(-size, size + 1, count)
        values = case.array(dtype, (count, *[1] * len(rest)) if rng.random() < 0.5 else ())
        case.compare("insert", x, obj.tolist(), values, axis=axis)


def _deletion(case: _Case) -> None:
    rng = case.rng
    _, x, axis, size, _ = _lengths(case)
    places: Any = rng.integers(-size, size, int(rng.integers(0, 20))) if size else np.empty(0, np.int64)
    start, step = int(rng.integers(-size, size + 1)), int(rng.choice([1, 2, 3, -1, -2]))
    several: list[Any] = [places.tolist(), places, places[:1].reshape(1, -1), rng.random(size) < 0.5]
    several += [slice(start, None, step), slice(None, start, step), *places[:2].tolist()]
    case.compare("delete", x, several[int(rng.integers(0, len(several)))], axis=axis)


def _paddings(case: _Case) -> None:
    """Modes that compute elements. Not ramps of integers: where NumPy's are 1 off depends on all lines."""
    rng = case.rng
    mode = str(rng.choice(["linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric"]))
    shape = _shape(rng, int(rng.integers(1, 4)))
    is_empty = 0 in shape
    widths = [(0, 0) if is_empty else tuple(map(int, rng.integers(0, 12, 2))) for _ in shape]
    options: dict[str, Any] = {}
    if mode in ("reflect", "symmetric"):
        options["reflect_type"] = "odd"
    elif rng.random() < 0.6:
        name = "end_values" if mode == "linear_ramp" else "stat_length"
        options[name] = int(rng.integers(1, 7)) if rng.random() < 0.5 else (2, 3)
    kinds = (FLOATS,) if mode == "linear_ramp" else (("bool",), INTEGERS, FLOATS)
    x = case.array(case.dtype(*kinds) if mode != "reflect" else case.dtype(INTEGERS, FLOATS), shape)
    case.compare("pad", x, widths, mode, **options)


def _fits(case: _Case) -> None:
    """Polynomials through points, on a device that factors matrices; floats of one dtype, which bounds the errors."""
    rng = case.rng
    count, deg = int(rng.integers(6, 12)), int(rng.integers(0, 4))
    dtype = case.dtype(("int8", "int64"), FLOATS)
    other = dtype if dtype in FLOATS else case.dtype(("int32",), FLOATS)
    x = case.array(dtype, (), rng.permutation(count) - 3.0)
    y = case.array(other, (), rng.integers(-9, 9, (count,) if rng.random() < 0.6 else (count, 2)) * 1.0)
    options: dict[str, Any] = {"w": case.array("float32", (), rng.random(count) + 0.5)} if rng.random() < 0.4 else {}
    kind = int(rng.integers(0, 4))
    options |= [{}, {"full": True}, {"cov": True}, {"cov": "unscaled"}][kind]
    case.compare("polyfit", x, y, deg, **options)


def _zeros(case: _Case) -> None:
    """Polynomials with given roots, of which complex ones may have their conjugates beside them."""
    rng = case.rng
    dtype = case.dtype(("int8", "int64"), FLOATS, *COMPLEX)
    zeros = rng.integers(-3, 4, int(rng.integers(1, 5))) + 0j
    if dtype.startswith("complex"):
        zeros += 1j * rng.integers(-1, 2, zeros.shape)
        zeros = np.append(zeros, zeros.conj()) if rng.random() < 0.5 else zeros
    case.compare("poly", case.array(dtype, (), zeros if dtype.startswith("complex") else zeros.real))


def _histograms(case: _Case) -> None:
    rng = case.rng
    size = int(rng.integers(1, 60))
    dtypes = [case.dtype(("uint8", "int16", "int64", "float16", "float32", "float64")) for _ in "xy"]
    columns = [case.array(dtype, (), np.round(rng.standard_normal(size) * 5 + 20, 1)) for dtype in dtypes]
    options: dict[str, Any] = {"density": True} if rng.random() < 0.3 else {}
    if rng.random() < 0.3:
        options["weights"] = case.array(str(rng.choice(["float64", "int32"])), (size,), rng.integers(0, 9, size))
    if rng.random() < 0.3:
        options["range"] = [[10.0, 25.0], [5.0, 30.0]]
    bins = [int(rng.integers(1, 9)), [3, 4], [[10.0, 20.0, 30.0], 5], [15.0, 18.0, 20.0, 22.0]][int(rng.integers(0, 4))]
    if rng.random() < 0.5:
        case.compare("histogram2d", *columns, bins=bins, **options)
        return
    dtype = case.dtype(("int32", "float32", "float64"))
    x = case.array(dtype, (), np.round(rng.standard_normal((size, 3)) * 5 + 20, 1))
    if "range" in options:
        options["range"] = [*options["range"], [0.0, 40.0]]
    found = [ta.histogramdd(*given) for given in ((x[0], 3), (x[1], 3))]
    _alike(tuple(found[0][1]), tuple(found[1][1]), f"histogramdd {case.told}")
    case.compare("histogramdd", x, bins=[2, 3, [10.0, 15.0, 21.0]], **options)


def _rules(case: _Case) -> None:
    """Histograms of which a rule chooses the number of bins."""
    rng = case.rng
    rule = str(rng.choice(["auto", "doane", "fd", "rice", "scott", "sqrt", "sturges"]))
    size = int(rng.choice([1, 2, 3, 30, 200]))
    if rng.random() < 0.1:
        rule, size = "stone", 20
    dtype = case.dtype(("int8", "uint8", "int64", "float16", "float32", "float64"))
    x = case.array(dtype, (), rng.standard_normal(size) * float(rng.choice([1, 20])))
    span = None if rng.random() < 0.6 else (-3, 5)
    case.compare("histogram", x, rule, span)
    case.compare("histogram_bin_edges", x, rule, span)


def _divisors(case: _Case) -> None:
    rng = case.rng
    shape = _shape(rng, int(rng.integers(0, 3)))
    pair: list[Any] = []
    for dtype in [case.dtype(INTEGERS)] * 2:
        whole = drawn(rng, dtype, shape)
        few = rng.integers(0, 60, shape).astype(dtype)
        pair.append(case.array(dtype, (), np.where(rng.random(shape) < 0.5, few, whole)))
    if rng.random() < 0.2:
        pair[1] = (pair[1][0][:1], pair[1][1][:1]) if shape else 12
    case.compare(str(rng.choice(["gcd", "lcm"])), *pair)


def _quantiles(case: _Case) -> None:
    rng = case.rng
    shape = tuple(int(size) for size in rng.integers(1, 7, 2))
    x = case.array(case.dtype(INTEGERS, FLOATS), shape)
    axis = [None, 0, 1, (0, 1)][int(rng.integers(0, 4))]
    count = int(np.prod(shape)) if axis in (None, (0, 1)) else shape[axis]
    methods = sorted(METHODS)
    part = int(rng.integers(0, count + 1)) / count if rng.random() < 0.5 else float(rng.choice([0.0, 0.3, 0.77, 1.0]))
    case.compare("quantile", x, part, axis=axis, method=methods[int(rng.integers(0, len(methods)))])


DRAWN = {
    "covariance": _covariance,
    "products": _products,
    "gradient": _gradient,
    "interpolation": _interpolation,
    "angles": _angles,
    "divisors": _divisors,
    "quantiles": _quantiles,
    "sets": _sets,
    "slices": _slices,
    "neighbours": _neighbours,
    "places": _places,
    "insertion": _insertion,
    "deletion": _deletion,
    "paddings": _paddings,
    "fits": _fits,
    "zeros": _zeros,
    "histograms": _histograms,
    "rules": _rules,
}


def check_drawn(device: Any, name: str, seed: int, cases: int) -> None:
    """Compare the functions of one of `DRAWN` with the host's."""
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy: of few observations, and of deviations that are 0
        for _ in range(cases):
            DRAWN[name](_Case(rng, device))


def check_deletions(device: Any) -> None:
    """Delete at places and by masks that lie on the device."""
    host = np.arange(12.0).reshape(3, 4)
    x = ta.asarray(host, device=device)
    for places, axis in (([0, -1], 0), ([2], 1), (3, None), ([], 0), ([True, False, True], 0)):
        given = np.asarray(places, None if np.size(places) else np.int64)
        found = ta.delete(x, ta.asarray(given, device=device), axis)
        np.testing.assert_array_equal(ta.to_numpy(found), np.delete(host, given, axis))


@np.errstate(all="ignore")  # of casts of NaN and of large numbers
def check_paddings(device: Any, seed: int, cases: int, largest: int = 7) -> None:
    """Pad by every mode, twice the same call; where nothing is recorded, elements and constants are one launch."""
    rng = np.random.default_rng(seed)
    for number in range(cases):
        dtype = str(rng.choice(["bool", "uint8", "int16", "bfloat16", "float32", "uint64", "complex128"]))
        axes = int(rng.integers(1, 5))
        shape = tuple(int(size) for size in rng.integers(1, largest, axes))
        host = drawn(rng, "float32", shape).astype(dtype_of(dtype))
        mode: Any = rng.choice(["constant", "edge", "reflect", "symmetric", "wrap"])
        width: Any = rng.integers(0, 4, (axes, 2)) * rng.integers(0, 6, (axes, 2))
        width = int(rng.integers(0, 9)) if rng.random() < 0.3 else [(int(a), int(b)) for a, b in width]
        options: Any = {"constant_values": int(rng.integers(0, 2))} if mode == "constant" and rng.random() < 0.5 else {}
        x = view_of(rng, host, device)
        wanted = np.pad(host, width, mode, **options)
        for _ in range(2):
            mine = ta.pad(x, width, str(mode), **options)
            told = f"#{number} {dtype} {shape} {width} {mode} {options}"
            assert (mine.shape, mine.dtype, mine.device) == (wanted.shape, wanted.dtype, x.device), told
            assert ta.to_numpy(mine).tobytes() == wanted.tobytes(), told


def check_long_products(device: Any, elements: int = 50_000, others: int = 101) -> None:
    """Convolve so many elements that the ends are computed apart; a NaN counts only where it lies beside an element."""
    rng = np.random.default_rng(4)
    long, short = rng.integers(-9, 9, elements), rng.integers(-9, 9, others).astype(np.float64)
    assert elements * others > signals._AT_ONCE
    for first in (2.0, np.nan):
        short[0] = first
        for mode in ("full", "same", "valid"):
            for name, pair in (("convolve", (short, long)), ("correlate", (long, short)), ("correlate", (short, long))):
                mine = getattr(ta, name)(*[ta.asarray(x, device=device) for x in pair], mode)
                wanted = getattr(np, name)(*pair, mode)
                np.testing.assert_array_equal(ta.to_numpy(mine), wanted, f"{name} {mode}")
                if mode == "full":  # by functions that have gradients
                    call = partial(getattr(ta, name), mode=mode)
                    mine, _ = ta.vjp(call, *[ta.asarray(x.astype(np.float64), device=device) for x in pair])
                    np.testing.assert_array_equal(ta.to_numpy(mine), wanted, f"vjp of {name}")


PRODUCTS = ("bool", "int8", "uint16", "int32", "uint64", *("float16", "float32", "float64", "complex64", "complex128"))
LENGTHS = (1, 2, 7, 8, 9, 31, 64, 129, 255, 256, 257, 263, 300, 520)


def check_windows(device: Any) -> None:
    """Windows of many points, of few and of none; the second call may be another one than the first."""
    for name, *more in (("bartlett",), ("blackman",), ("hamming",), ("hanning",), ("kaiser", 3.5)):
        for points in (0, 1, 2, 7, 1000, 1000):
            found = getattr(ta, name)(points, *more, device=device)
            assert found.device == ta.zeros(1, device=device).device
            wanted = getattr(np, name)(points, *more)
            np.testing.assert_allclose(ta.to_numpy(found), wanted, 1e-6, 1e-7, err_msg=f"{name}({points})")


def check_windowed_sums(device: Any, seed: int, cases: int) -> None:
    """Convolve and correlate arrays of any sizes and strides: sums in float64, exact integers, and nothing beyond ends.

    NaNs and infinities are at the ends of either array, where places beyond the ends of the other one are beside them.
    """
    rng = np.random.default_rng(seed)
    for number in range(cases):
        dtype, name = PRODUCTS[number % len(PRODUCTS)], str(rng.choice(["convolve", "correlate"]))
        mode = str(rng.choice(["full", "same", "valid"]))
        sizes = [int(size) for size in rng.choice(LENGTHS, 2)]
        if number % 6 == 0:  # one element fewer than the windows of a whole program read
            sizes, mode = [8, 263], "valid"
        pair = [_sampled(rng, dtype, size) for size in sizes]
        mine = getattr(ta, name)(*[view_of(rng, x, device) for x in pair], mode)
        told = f"#{number} {name} {dtype} {sizes} {mode}"
        assert (str(mine.dtype), str(mine.device)) == (dtype, "cuda:0"), told
        if dtype[0] not in "fc":
            np.testing.assert_array_equal(ta.to_numpy(mine), getattr(np, name)(*pair, mode), told)
            continue
        wide = [x.astype(np.clongdouble if dtype[0] == "c" else np.longdouble) for x in pair]
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(*wide, mode)
            bound = getattr(np, name)(*[np.abs(np.nan_to_num(x)) for x in pair], mode).astype(np.float64) * 2.0**-50
        found = ta.to_numpy(mine)
        for part in (np.real, np.imag):
            got, want = part(found), part(wanted)
            finite = np.isfinite(wanted)
            with np.errstate(all="ignore"):
                same = np.isfinite(found) == finite
                unit = np.spacing(np.abs(want[finite]).astype(got.dtype)).astype(np.float64)
            assert same.all(), told
            assert (np.abs(got[finite] - want[finite]) <= 0.5001 * unit + bound[finite]).all(), told
            if dtype[0] == "f":
                np.testing.assert_array_equal(got[~finite], want[~finite].astype(got.dtype), told)


def _sampled(rng: np.random.Generator, dtype: str, size: int) -> np.ndarray:
    """Numbers, for floats with a NaN or an infinity at an end at times."""
    if dtype == "bool":
        return rng.random(size) < 0.1
    if dtype[0] not in "fc":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, size, dtype, endpoint=True)
    x = rng.standard_normal(size).astype(dtype)
    if dtype[0] == "c":
        x += 1j * rng.standard_normal(size).astype(x.real.dtype)
    if rng.random() < 0.4:
        x[int(rng.choice([0, -1]))] = float(rng.choice([np.nan, np.inf, -np.inf]))
    return x


def check_python_data(device: Any) -> None:
    """Python data goes to the default device, and is computed there."""
    before = ta.asarray([1]).device
    ta.set_default_device(str(device))
    try:
        found = [
            *(ta.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]), ta.median([3, 1, 2]), ta.nanquantile([1.0, ta.nan], 0.5)),
            *(ta.unique([3, 1, 3]), ta.interp(2.5, [1, 2, 3], [3.0, 2.0, 0.0]), ta.gradient([1.0, 2.0, 4.0])),
        ]
    finally:
        ta.set_default_device(str(before))
    assert {str(x.device) for x in found} == {"cuda:0"}
    wanted = [[[1, -1], [-1, 1]], 2, 1, [1, 3], 1, [1, 1.5, 2]]
    assert [x.tolist() for x in found] == wanted


def check_options(device: Any) -> None:
    """Options of NumPy's functions: targets by a rule of casts, masks, degrees, no copy."""
    host, mask = np.array([1.75, np.nan, -2.5, 300.0], np.float32), np.array([True, False, True, True])
    x, where = ta.asarray(host, device=device), ta.asarray(mask, device=device)
    whole = ta.asarray([5, 6, 7, 8], dtype="int16", device=device)
    assert ta.multiply(x, 2, out=whole, where=where, casting="unsafe") is whole
    assert ta.to_numpy(whole).tolist() == [3, 6, -5, 600]
    kept = ta.asarray(host[::-1].copy(), device=device)
    assert ta.fmax(x, 0.5, kept, where=where) is kept
    np.testing.assert_array_equal(ta.to_numpy(kept), np.fmax(host, np.float32(0.5), host[::-1].copy(), where=mask))
    turned = np.array([1j, -1, 2 - 2j], np.complex64)
    found = ta.to_numpy(ta.angle(ta.asarray(turned, device=device), True))
    np.testing.assert_allclose(found, np.angle(turned, True), rtol=1e-6)
    joined = ta.concat([x[2:], whole[:1]], dtype="int64", casting="unsafe")
    assert (joined.dtype, ta.to_numpy(joined).tolist()) == (ta.int64, [-2, 300, 3])
    assert ta.nan_to_num(x, copy=False) is x
    np.testing.assert_array_equal(ta.to_numpy(x), np.nan_to_num(host))


def check_refusals(device: Any) -> None:
    """Errors say what was expected, and what to write."""
    x = ta.asarray([1.0, 2.0, 3.0], device=device)
    i = ta.asarray([1, 5], device=device)
    there = ta.asarray([1.0, 2.0, 3.0], device="cpu")
    for act, error, message in (
        (
            lambda: ta.cov(ta.zeros((1, 1, 1), device=device)),
            ta.ShapeError,
            r"cov: expected at most two axes, got shape",
        ),
        (lambda: ta.cov(x, x[1:]), ta.ShapeError, "cov: expected as many observations in both arrays, got 3 and 2"),
        (lambda: ta.cov(x, fweights=i), ta.ShapeError, r"cov: expected fweights of shape \(3,\), got \(2,\)"),
        (lambda: ta.cov(x, ddof=0.5), ta.ShapeError, "cov: expected ddof as an integer, got 0.5"),
        (lambda: ta.cov(x, there), ta.DeviceError, "cov: the operands are on cuda:0 and on cpu"),
        (lambda: ta.cov(x, [1, 2, 3]), ta.OperandError, "cov: the operands are .* and list, which is on the host"),
        (lambda: ta.convolve(x, x[:0]), ta.ShapeError, "convolve: expected arrays of one axis with elements"),
        (lambda: ta.correlate(x, x, "all"), ta.ShapeError, "correlate: expected mode as 'full', 'same' or 'valid'"),
        (lambda: ta.gradient(x[:1]), ta.ShapeError, "gradient: expected at least 2 elements along axis 0, got 1"),
        (lambda: ta.gradient(x, 1, 2), ta.OperandError, "gradient: expected a distance for each of 1 axes, got 2"),
        (lambda: ta.gradient(x, i), ta.ShapeError, r"gradient: expected 3 places along axis 0, got shape \(2,\)"),
        (lambda: ta.gradient(x, edge_order=3), ta.ShapeError, "gradient: expected edge_order as 1 or 2, got 3"),
        (lambda: ta.interp(x, x, x[1:]), ta.ShapeError, "interp: expected xp and fp of one axis, of one size"),
        (lambda: ta.interp(x, x, x, period=0), ta.ShapeError, "interp: expected a period other than 0, got 0"),
        (lambda: ta.ediff1d(i, 0.5), ta.DTypeError, "ediff1d: "),
        (
            lambda: ta.ediff1d(i, x),
            ta.DTypeError,
            "ediff1d: expected to_end of a dtype that int64 can store",
        ),
        (lambda: ta.unravel_index(i, (2, 2)), ta.ShapeError, "unravel_index: expected indices from 0 to 3, got 1 to 5"),
        (
            lambda: ta.unravel_index(x, (2, 2)),
            ta.DTypeError,
            "unravel_index: expected integers as indices",
        ),
        (lambda: ta.unravel_index(i, (9,), "A"), ta.ShapeError, "unravel_index: expected order as 'C' or 'F', got 'A'"),
        (
            lambda: ta.ravel_multi_index((i, i), (9, 2)),
            ta.ShapeError,
            "ravel_multi_index: .* from 0 to 1, got 1 to 5",
        ),
        (
            lambda: ta.ravel_multi_index((i,), (9, 2)),
            ta.ShapeError,
            "ravel_multi_index: .* for each of 2 axes, got 1",
        ),
        (lambda: ta.insert(x, 7, 1), ta.IndexingError, "insert: index 7 is out of bounds for axis 0 with size 3"),
        (lambda: ta.insert(x, i, 1), ta.DeviceError, "insert: expected arrays on the host, got one on cuda:0"),
        (lambda: ta.delete(x, i), ta.IndexingError, "out of bounds|index 5"),
        (lambda: ta.histogram2d(x, i), ta.ShapeError, "histogram2d: expected two arrays of one axis and one size"),
        (lambda: ta.gcd(x, 2), ta.DTypeError, "gcd: expected dtypes of kind .* integer, got float32; write x.astype"),
        (
            lambda: ta.histogramdd(x[None, None]),
            ta.ShapeError,
            "histogramdd: expected a row for each point, got shape",
        ),
        (lambda: ta.histogramdd((x, x[1:])), ta.ShapeError, "histogramdd: expected arrays of one axis and one size"),
        (lambda: ta.histogram(x, []), ta.ShapeError, "histogram: expected edges of bins, got none"),
        (lambda: ta.histogram(x, 2.5), ta.OperandError, "histogram: `bins` must be an integer"),
        (lambda: ta.bincount(i, minlength=2.5), ta.ShapeError, "bincount: expected minlength as an int, got float"),
        (lambda: ta.digitize(x * 1j, x), ta.DTypeError, "digitize: expected dtypes of kind bool.* got complex64"),
        (lambda: ta.interp(x * 1j, x, x), ta.DTypeError, "interp: expected dtypes of kind bool.* got complex64"),
        (lambda: ta.quantile(x[:0], 0.5), ta.ShapeError, "quantile: expected at least one element to choose from"),
        (
            lambda: ta.nanquantile(x, 0.5, method="lower"),
            ta.DeviceError,
            "nanquantile: expected method as 'linear' for an array on cuda:0, got 'lower'",
        ),
        (
            lambda: ta.quantile(x, 0.5, method="inverted_cdf", weights=x),
            ta.DeviceError,
            r"quantile: expected no weights for an array on cuda:0; leave them out, or write x.to_device\('cpu'\)",
        ),
    ):
        with pytest.raises(error, match=message):
            act()
