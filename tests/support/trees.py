"""Random programs of elementwise operations: run as they are, and fused.

`grow` builds a program step by step while it runs it, so nearly every step is valid: operations of the table on arrays
of mixed dtypes and layouts, earlier results and numbers, casts, views, and in-place operations. `play` runs a program
on arrays of any device, also while it is traced.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tilearray as ta
from support.drawing import OPERATORS, pool
from support.oracles.formats import dtype_of, kind_of
from tilearray.errors import FusionError, TileArrayError
from tilearray.ops import PUBLIC

DTYPES = [
    *("bool", "int8", "uint8", "int32", "int64", "uint32", "float16", "bfloat16"),
    *("float32", "float32", "float64", "float64", "complex64"),
]
NUMBERS = [0, 1, 2, -3, 0.5, -1.5, 2.0, 1e-3, 300, True, 1e300, 0.0, -0.0, float("inf"), float("nan"), 1j, 2**40]
MODES = ["rz", "rp", "rm"]
VIEWS: dict[str, Callable[[Any], Any]] = {
    "T": lambda x: x.T,
    "all": lambda x: x[...],
    "tail": lambda x: x[1:],
    "head": lambda x: x[:-1],
    "last": lambda x: x[..., 1:],
    "first": lambda x: x[..., :-1],
    "even": lambda x: x[..., ::2],
    "back": lambda x: x[..., ::-1],
    "turned": lambda x: x[::-1],
    "row": lambda x: x[0],
    "column": lambda x: x[..., :1],
    "new": lambda x: x[None],
    "newest": lambda x: x[..., None],
    "flat": lambda x: ta.reshape(x, -1),
    "moved": lambda x: ta.moveaxis(x, 0, -1),
    "wide": lambda x: ta.broadcast_to(x, (2, *x.shape)),
    "diagonal": lambda x: ta.diagonal(x),
    "flipped": lambda x: ta.flip(x),
    "real": lambda x: x.real,
}
REDUCTIONS = [
    "sum",
    "sum",
    "mean",
    "max",
    "min",
    "prod",
    "any",
    "all",
    "count_nonzero",
    "var",
    "std",
    "softmax",
    "argmax",
]
IN_PLACE = ["add", "subtract", "multiply", "maximum"]
Step = tuple[Any, ...]


@dataclass
class Tree:
    """A program: arrays as (values, recipe of a view), numbers, steps, and the values that it returns."""

    arrays: list[tuple[np.ndarray, str]]
    numbers: list[Any]
    steps: list[Step] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)

    def operands(self, device: Any = "cpu") -> list[ta.Array]:
        """New arrays on a device: views of memory of their own."""
        return [LAYOUTS[recipe](ta.asarray(values.copy(), device=device)) for values, recipe in self.arrays]

    def play(self, arrays: list[Any], numbers: list[Any]) -> list[Any]:
        """Run the program."""
        values = list(arrays)
        for step in self.steps:
            values.append(run(step, values, numbers))
        return [values[place] for place in self.returned]


LAYOUTS: dict[str, Callable[[ta.Array], ta.Array]] = {
    "dense": lambda x: x,
    "transposed": lambda x: ta.asarray(x.T.copy()).T if x.ndim == 2 else x,
    "gaps": lambda x: ta.repeat(x.to_device("cpu"), 2, axis=-1).to_device(x.device)[..., ::2] if x.ndim else x,
    "back": lambda x: x[..., ::-1] if x.ndim else x,
    "repeated": lambda x: ta.broadcast_to(x[:1], x.shape) if x.ndim and x.shape[0] else x,
}


def run(step: Step, values: list[Any], numbers: list[Any]) -> Any:
    """Run one step on the values before it."""

    def taken(given: Any) -> Any:
        kind, what = given
        return values[what] if kind == "value" else numbers[what] if kind == "number" else what

    match step:
        case ("op", name, operands, options):
            return PUBLIC[name](*map(taken, operands), **options)
        case ("operator", name, left, right):
            return getattr(operator, OPERATORS[name])(taken(left), taken(right))
        case ("view", name, given):
            return VIEWS[name](taken(given))
        case ("cast", dtype, given, options):
            return taken(given).astype(dtype, **options)
        case ("where", mask, left, right):
            return ta.where(taken(mask), taken(left), taken(right))
        case ("clip", given, low, high):
            return ta.clip(taken(given), taken(low), taken(high))
        case ("reduce", name, given, options):
            return getattr(ta, name)(taken(given), **options)
        case ("in-place", name, target, given):
            return PUBLIC[name](taken(target), taken(given), out=taken(target))
        case ("set", target, given):
            taken(target)[...] = taken(given)
            return taken(target)
    raise AssertionError(step)


class _Growing:
    def __init__(self, rng: random.Random, in_place: bool, reductions: bool, exact: bool) -> None:
        self.rng = rng
        names = (NAMES, OPERATOR_NAMES, REDUCTIONS)
        self.names, self.operators, self.reduced = EXACT if exact else names
        self.in_place = in_place
        self.reductions = reductions
        shape = tuple([rng.choice([1, 2, 3, 4, 4, 5, 7]) for _ in range(rng.choice([0, 1, 2, 2, 2, 3]))])
        if shape and rng.random() < 0.05:
            shape = (0, *shape[1:])
        self.tree = Tree([self.array(shape) for _ in range(rng.randint(1, 4))], [rng.choice(NUMBERS) for _ in range(2)])

    def array(self, shape: tuple[int, ...]) -> tuple[np.ndarray, str]:
        rng = self.rng
        own = tuple(
            [1 if rng.random() < 0.12 else n for n in shape[rng.choice([0, 0, 0, len(shape) // 2, len(shape)]) :]]
        )
        dtype = rng.choice(DTYPES)
        count = int(np.prod(own))
        values = pool(dtype)[[rng.randrange(65536) for _ in range(count)]].reshape(own)
        return values, rng.choice(list(LAYOUTS) if rng.random() < 0.5 else ["dense"])

    def operand(self, count: int, numbers: bool = True) -> tuple[str, Any]:
        luck = self.rng.random()
        if luck < 0.1 and numbers:
            return "number", self.rng.randrange(2)
        if luck < 0.2 and numbers:
            return "constant", self.rng.choice(NUMBERS)
        recent = self.rng.random() < 0.5
        return "value", self.rng.randrange(max(0, count - 4) if recent else 0, count)

    def step(self, count: int) -> Step:
        rng, luck = self.rng, self.rng.random()
        if self.reductions and rng.random() < 0.2:
            return self.reduction(count)
        if luck < 0.35:
            return "operator", rng.choice(self.operators), self.operand(count, False), self.operand(count)
        if luck < 0.6:
            name = rng.choice(self.names)
            options = (
                {"rounding": rng.choice(MODES)} if rng.random() < 0.1 and "rz" in PUBLIC[name].options.rounding else {}
            )
            arity = PUBLIC[name].arity
            return "op", name, tuple([self.operand(count, place > 0) for place in range(arity)]), options
        if luck < 0.78:
            return "view", rng.choice(list(VIEWS)), self.operand(count, False)
        if luck < 0.86:
            options = {"saturate": True} if rng.random() < 0.2 else {}
            return "cast", rng.choice(DTYPES), self.operand(count, False), options
        if luck < 0.91 or not self.in_place:
            kind = rng.choice(["where", "clip"])
            return kind, self.operand(count, False), self.operand(count), self.operand(count)
        kind = rng.choice(["set", "in-place"])
        target = ("value", rng.randrange(count))
        return (kind, *([rng.choice(IN_PLACE)] if kind == "in-place" else []), target, self.operand(count))

    def reduction(self, count: int) -> Step:
        rng = self.rng
        name = rng.choice(self.reduced)
        axis = rng.choice([None, 0, -1, -1, 1, (0, 1), (0, -1)])
        options = {"axis": rng.choice([None, 0, -1, 1]) if name == "argmax" else axis}
        if name != "softmax" and rng.random() < 0.5:
            options["keepdims"] = True
        return "reduce", name, self.operand(count, False), options


def grow(
    rng: random.Random, nodes: int = 40, *, in_place: bool = False, reductions: bool = False, exact: bool = False
) -> Tree:
    """Return a random program of at most `nodes` steps. With a small chance its last step is an error.

    `exact` draws operations that have the same results on all devices; some of complex numbers differ.
    """
    growing = _Growing(rng, in_place, reductions, exact)
    tree = growing.tree
    values: list[Any] = tree.operands()
    wanted = rng.randint(1, nodes)
    for _ in range(3 * nodes):
        step = growing.step(len(values))
        try:
            found = run(step, values, tree.numbers)
        except Exception:
            if rng.random() < 0.02:
                tree.steps.append(step)
                values.append(None)
                break
            continue
        if not isinstance(found, ta.Array) or found.size > 2000:
            continue
        tree.steps.append(step)
        values.append(found)
        if len(tree.steps) >= wanted:
            break
    first = len(tree.arrays)
    made = range(first, len(values))
    tree.returned = sorted({*rng.sample(made, min(len(made), 2)), *made[-1:]})
    return tree


NAMES = [name for name in PUBLIC if name not in ("lgamma", "erfinv", "sinc")]
OPERATOR_NAMES = [name for name in OPERATORS if PUBLIC[name].arity == 2]
EXACT = (
    [name for name in NAMES if PUBLIC[name].exact],
    [name for name in OPERATOR_NAMES if PUBLIC[name].exact],
    [name for name in REDUCTIONS if name != "softmax"],
)
"""Those of the operations, the operators and the reductions that are exact."""


def outcome(action: Callable[[], list[Any]]) -> Any:
    """Return what an action gives, or the class and the text of its error."""
    try:
        return action()
    except (TileArrayError, ValueError, TypeError, OverflowError, IndexError, NotImplementedError) as error:
        return error


def bits(x: ta.Array) -> tuple[Any, ...]:
    """The dtype, the shape and the bits of an array, all NaNs alike."""
    array = np.ascontiguousarray(ta.to_numpy(x)).reshape(-1)
    kind = kind_of(x.dtype.name)
    plain = array.view(f"f{array.itemsize // 2}").copy() if kind == "complex" else array.copy()
    if kind in ("float", "complex"):
        with np.errstate(all="ignore"):
            plain[plain != plain] = np.float32("nan").astype(plain.dtype)
    return x.dtype, x.shape, plain.tobytes()


def check(tree: Tree, device: Any = "cpu", eagerly_on: Any = None) -> str:
    """Run a program as it is and fused, and compare results, targets and errors. Return the kind of the outcome.

    The program runs as it is on another device where one is given.
    """
    eager, given = tree.operands(device if eagerly_on is None else eagerly_on), tree.operands(device)
    expected = outcome(lambda: tree.play(eager, tree.numbers))
    fused = ta.fuse(lambda arrays, numbers: tree.play(arrays, numbers))
    found = outcome(lambda: fused(given, tree.numbers))
    if isinstance(found, FusionError):
        return f"refused: {found}"
    if isinstance(expected, NotImplementedError) and isinstance(found, Exception):
        return "error"  # of the compiler, which a fused function meets last
    if isinstance(expected, Exception) or isinstance(found, Exception):
        assert type(found) is type(expected), (expected, found)
        return "error"
    for one, other in zip(expected, found, strict=True):
        assert bits(one) == bits(other), (one, other)
    for one, other in zip(eager, given, strict=True):
        assert bits(one) == bits(other), (one, other)
    again = tree.operands(device)
    for one, other in zip(expected, fused(again, tree.numbers), strict=True):
        assert bits(one) == bits(other), "the second call"
    return "equal"


def check_recorded(
    tree: Tree, rng: random.Random, device: Any = "cpu", eagerly_on: Any = None, limits: tuple[int, ...] = (1, 2, 5, 64)
) -> str:
    """Run a program as it is and in a recording block, and compare results, targets and errors at their step.

    Values may be dropped after their last use, and some results are read before the end. `limits` are numbers of
    operations after which recorded ones run. The program runs as it is on another device where one is given.
    """
    eager, given = tree.operands(device if eagerly_on is None else eagerly_on), tree.operands(device)
    expected = outcome(lambda: _play_step_by_step(tree, eager, random.Random(0), drops=False, reads=False))
    drops, limit = rng.random() < 0.7, rng.choice(limits)

    def recorded() -> list[Any]:
        with ta.lazy(operations=limit):
            return _play_step_by_step(tree, given, rng, drops=drops, reads=rng.random() < 0.3)

    found = outcome(recorded)
    if isinstance(expected, Exception) or isinstance(found, Exception):
        assert type(found) is type(expected), (expected, found)
        assert str(found).split(":")[0] == str(expected).split(":")[0], "the step of the error"
    else:
        for one, other in zip(expected, found, strict=True):
            assert bits(one) == bits(other), (one, other)
            assert one.strides == other.strides
            assert type(other) is ta.Array
    for one, other in zip(eager, given, strict=True):
        assert bits(one) == bits(other), (one, other)
    return "error" if isinstance(expected, Exception) else "equal"


def _play_step_by_step(tree: Tree, arrays: list[Any], rng: random.Random, *, drops: bool, reads: bool) -> list[Any]:
    last = {place: turn for turn, step in enumerate(tree.steps) for place in _values_of(step)}
    values: list[Any] = list(arrays)
    for turn, step in enumerate(tree.steps):
        try:
            values.append(run(step, values, tree.numbers))
        except Exception as error:
            error.args = (f"step {turn}: {error}",)
            raise
        if drops:
            for place, final in last.items():
                if final == turn and place not in tree.returned:
                    values[place] = None
        if reads and rng.random() < 0.1:
            str(values[-1])
    return [values[place] for place in tree.returned]


def _values_of(step: Any) -> list[int]:
    """The places of the values that a step, or a part of one, reads or writes."""
    if not isinstance(step, tuple):
        return []
    if len(step) == 2 and step[0] == "value":
        return [step[1]]
    return [place for part in step for place in _values_of(part)]


__all__ = ["Tree", "bits", "check", "check_recorded", "dtype_of", "grow", "outcome"]
