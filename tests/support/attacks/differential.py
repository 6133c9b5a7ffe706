"""Random calls, here and in NumPy, on the same values: equal results under semantics `numpy` and `array-api`.

Values are small multiples of one half, infinities and NaN: sums and products of them are exact in every float dtype, so
nearly all results must be equal, whatever dtype they are computed in. Under `numpy` the dtype must be NumPy's as well.

On a GPU each call is made with several sets of values: a new call has to be compiled, which takes far longer.
"""

from __future__ import annotations

import operator
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tilearray as ta
from support.attacks import formulas
from support.attacks.outcome import Outcome
from tilearray.errors import TileArrayError

DTYPES = ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "float32", "float64", "complex64")
REAL = tuple(name for name in DTYPES if name != "complex64")
WHOLE = ("int8", "uint8", "int16", "int32", "uint32", "int64")
FLOATS = ("float16", "float32", "float64")

VALUES = 20
"""On a GPU, how many cases in turn are one call with other values: it compiles its kernels once."""

Call = Callable[["Case", Any, list[Any]], Any]
"""``call(case, namespace, arrays)``; of the case it takes numbers, such as an axis, that both namespaces share."""


class Case:
    """One call: the arrays of both sides, and what else was drawn. `pick` draws the same for both.

    `values` draws the elements of the arrays, and `rng` everything else; without `values`, `rng` draws all.
    """

    def __init__(self, rng: random.Random, device: str, values: random.Random | None = None) -> None:
        self.rng = rng
        self.values = values or rng
        self.device = device
        self.shape = tuple([rng.choice([1, 2, 3, 4, 5]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))])
        luck = rng.random()
        if self.shape and luck < 0.04:
            self.shape = (0, *self.shape[1:])
        elif self.shape and luck < 0.1:  # long enough for lanes of reductions
            self.shape = (*self.shape[:-1], 70)
        self.seed = rng.random()
        self.drawn = random.Random(self.seed)

    @classmethod
    def of(cls, shape: tuple[int, ...], seed: float, device: str) -> Case:
        """A case that draws as another one did; it makes no arrays."""
        found = cls(random.Random(0), device)
        found.shape, found.seed = shape, seed
        found.again()
        return found

    def again(self) -> None:
        """Draw the same again, for the other side."""
        self.drawn = random.Random(self.seed)

    def pick(self, *choices: Any) -> Any:
        return self.drawn.choice(choices)

    def axis(self, *others: Any) -> Any:
        ndim = len(self.shape)
        return self.pick(*others, *range(-ndim, ndim)) if ndim or others else 0

    def pair(self, dtypes: tuple[str, ...]) -> tuple[Any, np.ndarray]:
        """The same array here and in NumPy, often a view."""
        rng, values_of, dtype = self.rng, self.values, self.rng.choice(dtypes)
        shape = tuple([1 if rng.random() < 0.08 else n for n in self.shape])
        special = values_of.random() < 0.3
        count = int(np.prod(shape)) * 2
        numbers = [values_of.choice(SPECIAL if special and values_of.random() < 0.2 else PLAIN) for _ in range(count)]
        if dtype == "complex64":
            values = np.array([complex(x, values_of.choice(PLAIN)) for x in numbers], "complex64")
        elif dtype in FLOATS:
            values = np.array(numbers, dtype)
        else:
            values = np.array([int(abs(x)) if np.isfinite(x) else 0 for x in numbers], dtype)
        host = values.reshape((*shape[:-1], shape[-1] * 2) if shape else (2,))
        ours = ta.asarray(host.copy(), device=self.device)
        way = rng.choice(["gaps", "head", "back", "gaps", "head", "back", "column", "row"])
        if not shape:
            return ours[0], host[0, ...]
        cut: Any = {"gaps": slice(None, None, 2), "back": slice(None, None, -2)}.get(way, slice(shape[-1]))
        ours, host = ours[..., cut], host[..., cut]
        once: Any = {"column": (..., slice(1)), "row": slice(1)}.get(way)
        if once is not None:  # one column or row, repeated
            ours, host = ta.broadcast_to(ours[once], shape), np.broadcast_to(host[once], shape)
        return ours, host


PLAIN = tuple([x / 2 for x in range(-8, 9)])
SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0, 0.0)


def _called(name: str, **options: Any) -> Call:
    return lambda case, xp, arrays: getattr(xp, name)(*arrays, **options)


def _reduced(name: str) -> Call:
    def call(case: Case, xp: Any, arrays: list[Any]) -> Any:
        keepdims = case.pick(True, False)
        return getattr(xp, name)(arrays[0], axis=case.axis(None), keepdims=keepdims)

    return call


def _along(name: str, **options: Any) -> Call:
    return lambda case, xp, arrays: getattr(xp, name)(arrays[0], axis=case.axis(), **options)


def _operator(name: str) -> Call:
    def call(case: Case, xp: Any, arrays: list[Any]) -> Any:
        other = case.pick(arrays[1], arrays[1], arrays[1], 2, 3, 1.5, True)
        return getattr(operator, name)(arrays[0], other)

    return call


def _key(case: Case) -> tuple[Any, ...]:
    key: list[Any] = []
    for size in case.shape[: case.pick(0, 1, 2, 3)]:
        start, stop = case.pick(None, 0, 1, -2, 7), case.pick(None, 1, 3, -1, -9)
        single = case.pick(*range(-size, size)) if size else slice(None)
        key.append(case.pick(slice(start, stop, case.pick(1, 2, -1, -3)), slice(None), single, [single, single]))
    for _ in range(case.pick(0, 0, 1)):
        key.insert(case.pick(0, len(key)), None)
    return tuple(key)


def _read(case: Case, xp: Any, arrays: list[Any]) -> Any:
    return arrays[0][_key(case)]


def _written(case: Case, xp: Any, arrays: list[Any]) -> Any:
    x = arrays[0].copy()
    x[_key(case)] = case.pick(0, 1, 2)
    return x


def _masked(case: Case, xp: Any, arrays: list[Any]) -> Any:
    return arrays[0][arrays[0] > 0]


def _in_place(case: Case, xp: Any, arrays: list[Any]) -> Any:
    x = arrays[0].copy()
    x += arrays[0]
    x *= 2
    return x


def _overlapping(case: Case, xp: Any, arrays: list[Any]) -> Any:
    x = arrays[0].copy()
    if x.ndim and x.shape[-1] > 1:
        x[..., 1:] += x[..., :-1]
    return x


def _taken(case: Case, xp: Any, arrays: list[Any]) -> Any:
    size = case.shape[-1] if case.shape else 1
    places = np.array([case.pick(*range(-size, size)) for _ in range(3)]) if size else np.zeros(0, "int64")
    return xp.take(xp.reshape(arrays[0], -1)[:size], places if xp is np else ta.asarray(places, device=case.device))


def _pad(case: Case, xp: Any, arrays: list[Any]) -> Any:
    return xp.pad(arrays[0], case.pick(0, 1, (1, 2)), mode=case.pick("constant", "edge", "reflect", "wrap"))


def _where(case: Case, xp: Any, arrays: list[Any]) -> Any:
    return xp.where(arrays[0] > 0, arrays[0], arrays[1])


def _spread(name: str) -> Call:
    return lambda case, xp, arrays: getattr(xp, name)(arrays[0], axis=case.axis(None), ddof=case.pick(0, 1))


def _of_two_sets(name: str) -> Call:
    return lambda case, xp, arrays: getattr(xp, name)(arrays[0], arrays[1])


EXACT_UNARY = (
    *("abs", "negative", "positive", "square", "sign", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite"),
    *("logical_not", "signbit", "real", "conj"),
)
NEAR_UNARY = ("sqrt", "exp", "sin", "cos", "tanh", "log1p", "expm1", "arctan", "arcsinh", "cbrt", "exp2", "deg2rad")
BINARY = (
    *("add", "subtract", "multiply", "maximum", "minimum", "fmax", "fmin", "equal", "less", "greater_equal"),
    *("logical_and", "logical_or", "logical_xor", "not_equal"),
)
NEAR_BINARY = ("divide", "hypot", "arctan2", "logaddexp", "copysign")
REDUCED = (
    *("sum", "max", "min", "all", "any", "count_nonzero", "nansum", "nanmax", "nanmin", "ptp"),
    *("mean", "nanmean", "median", "nanmedian"),
)
MOVED = ("ravel", "transpose", "squeeze", "flip", "atleast_2d", "nan_to_num", "copy")

CALLS: dict[str, tuple[Call, tuple[str, ...], int, bool]] = {
    **{name: (_called(name), DTYPES if name in ("abs", "square", "real", "conj") else REAL, 1, True)
       for name in EXACT_UNARY},
    **{name: (_called(name), REAL, 1, False) for name in NEAR_UNARY},
    **{name: (_called(name), REAL, 2, True) for name in BINARY},
    **{name: (_called(name), REAL, 2, False) for name in NEAR_BINARY},
    **{name: (_reduced(name), REAL, 1, name not in ("mean", "nanmean", "median", "nanmedian")) for name in REDUCED},
    **{name: (_called(name), DTYPES, 1, True) for name in MOVED},
    **{name: (_spread(name), REAL, 1, False) for name in ("var", "std", "nanvar", "nanstd")},
    **{name: (_along(name), REAL, 1, True) for name in ("cumsum", "sort", "argmax", "argmin", "diff")},
    **{f"operator {name}": (_operator(name), REAL, 2, False) for name in ("add", "sub", "mul", "truediv", "lt", "eq")},
    **{name: (_called(name), WHOLE, 2, True) for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm")},
    **{name: (_of_two_sets(name), WHOLE, 2, True)
       for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d", "isin")},
    "argsort": (_along("argsort", kind="stable"), REAL, 1, True),
    "unique": (_called("unique"), REAL, 1, True),
    "roll": (lambda case, xp, a: xp.roll(a[0], case.pick(-2, 1, 5), axis=case.axis(None)), DTYPES, 1, True),
    "repeat": (lambda case, xp, a: xp.repeat(a[0], case.pick(0, 1, 3), axis=case.axis(None)), DTYPES, 1, True),
    "tile": (lambda case, xp, a: xp.tile(a[0], case.pick(1, (2, 1), 3)), DTYPES, 1, True),
    "concatenate": (lambda case, xp, a: xp.concatenate([a[0], a[0]], axis=case.axis()), DTYPES, 1, True),
    "stack": (lambda case, xp, a: xp.stack([a[0], a[0]], axis=case.axis()), DTYPES, 1, True),
    "swapaxes": (lambda case, xp, a: xp.swapaxes(a[0], case.axis(), case.axis()), DTYPES, 1, True),
    "quantile": (lambda case, xp, a: xp.quantile(a[0], case.pick(0.0, 0.25, 0.5, 1.0)), FLOATS, 1, False),
    "searchsorted": (lambda case, xp, a: xp.searchsorted(xp.sort(xp.ravel(a[0])), a[0]), WHOLE, 1, True),
    "clip": (lambda case, xp, a: xp.clip(a[0], 0, 2), REAL, 1, True),
    "outer": (_called("outer"), WHOLE, 2, True),
    "trace": (lambda case, xp, a: xp.trace(a[0]), WHOLE, 1, True),
    "tril": (lambda case, xp, a: xp.tril(a[0], case.pick(-1, 0, 1)), DTYPES, 1, True),
    "matmul": (lambda case, xp, a: a[0] @ a[0].T, ("int32", "int64", "float32", "float64"), 1, True),
    "where": (_where, REAL, 2, True),
    "pad": (_pad, DTYPES, 1, True),
    "take": (_taken, DTYPES, 1, True),
    "x[key]": (_read, DTYPES, 1, True),
    "x[key] = value": (_written, DTYPES, 1, True),
    "x[mask]": (_masked, REAL, 1, True),
    "in place": (_in_place, FLOATS, 1, True),
    "in place, overlapping": (_overlapping, FLOATS, 1, True),
    **formulas.CALLS,
}  # fmt: skip
"""For each call: what it runs, the dtypes of its arrays, how many it takes, and whether its results are exact."""


def answer(case: Case, call: Call, xp: Any, arrays: list[Any]) -> tuple[Any, Exception | None]:
    case.again()
    try:
        return call(case, xp, arrays), None
    except (TileArrayError, TypeError, ValueError, IndexError) as error:
        return None, error


def differs(ours: Any, theirs: Any, exact: bool, same_dtype: bool) -> str:
    """Say how two results differ, or nothing."""
    found, wanted = ta.to_numpy(ta.asarray(ours).to_device("cpu")), np.asarray(theirs)
    if found.shape != wanted.shape:
        return f"shape {found.shape}, NumPy's {wanted.shape}"
    if same_dtype and found.dtype != wanted.dtype:
        return f"dtype {found.dtype}, NumPy's {wanted.dtype}"
    with np.errstate(all="ignore"):
        if exact and found.dtype.kind in "biu" and wanted.dtype.kind in "biu":
            return "" if np.array_equal(found, wanted) else f"{found.ravel()[:5]}, NumPy's {wanted.ravel()[:5]}"
        floats = [x.dtype for x in (found, wanted) if x.dtype.kind in "fc"]
        tolerance = 8 * max([float(np.finfo(dtype).eps) for dtype in floats], default=0.0)
        wide = [x.astype("complex128") for x in (found, wanted)]
        same = np.isclose(*wide, rtol=tolerance, atol=tolerance, equal_nan=True) | (wide[0] == wide[1])
        same |= np.isnan(found.astype("complex128")) & np.isnan(wanted.astype("complex128"))
    return "" if same.all() else f"{found[~same][:5]}, NumPy's {wanted[~same][:5]}"


def one(rng: random.Random, device: str, semantics: str, values: random.Random | None = None) -> tuple[str, str]:
    """Make one call; return how it ended, and what is wrong. The generators are those of `Case`."""
    name = rng.choice(list(CALLS))
    call, dtypes, count, exact = CALLS[name]
    case = Case(rng, device, values)
    pairs = [case.pair(dtypes) for _ in range(count)]
    theirs, refused = answer(case, call, np, [pair[1] for pair in pairs])
    with ta.semantics(semantics):
        ours, error = answer(case, call, ta, [pair[0] for pair in pairs])
    told = f"{name} of {', '.join(f'{pair[1].dtype} {pair[1].shape}' for pair in pairs)} under {semantics}"
    if error is not None:
        if not isinstance(error, TileArrayError) and refused is None:
            return "wrong", f"{told}: {error!r}"
        return ("refused by both" if refused is not None else "refused here"), ""
    if refused is not None:
        return "refused by NumPy", ""
    if device == "cpu" and semantics == "array-api" and _wraps(theirs, ours):
        return "of another width", ""
    wrong = differs(ours, theirs, exact, semantics == "numpy")
    return ("wrong", f"{told}: {wrong}") if wrong else ("equal", "")


def _wraps(theirs: Any, ours: Any) -> bool:
    """Whether integers of different widths may have wrapped differently."""
    mine, other = ta.asarray(ours).dtype, np.asarray(theirs).dtype
    return mine.kind in "iu" and other.kind in "iu" and mine != other


def run(cases: int, seed: int = 0, device: str = "cpu") -> Outcome:
    """Compare random calls with NumPy's, in turn under both semantics."""
    outcome, rng = Outcome("calls beside NumPy's", device), random.Random(seed)
    alike = 1 if device == "cpu" else VALUES
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number in outcome.numbers(cases):
            turn, values = number // alike, None
            if alike > 1:
                rng, values = random.Random(f"{seed} {turn}"), random.Random(f"{seed} values {number}")
            end, wrong = one(rng, device, "numpy" if turn % 2 else "array-api", values)
            outcome.count(end, cases)
            if wrong:
                outcome.fail(f"#{number} of seed {seed}: {wrong}")
    return outcome
