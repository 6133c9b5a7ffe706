"""Elementwise operations: the row of an op, and its call.

The call reads as the sentence of the design: look the plan up; where there is none promote, broadcast and plan; then
launch. The row *is* the public function. Operands are Arrays, Python numbers and NumPy scalars; anything else is an
error that says what to write, and in an operator ``NotImplemented`` where the other type may know better.

A plan is found under ``(op, key, key, ...)``, a key being an array's interned signature or a Python number's value
class, so that everything a plan depends on is part of its key: dtype, shape, strides, device, and for numbers the
dtype that their value asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter
from inspect import Signature as CallSignature
from typing import Any

import numpy as np

from tilearray.engine.caches import PLANS
from tilearray.engine.context import STATE, State, plans_of
from tilearray.engine.plan import Key, Plan, make_plan
from tilearray.engine.signature import A, ArrayBase, Signature, empty_array, signature_of
from tilearray.errors import OperandError, ScalarOverflowError, WriteError
from tilearray.ops.numbers import as_operands, class_that_decides, numbers_alone, scalar_key, type_name
from tilearray.ops.options import NONE, Choice, Options, parameters, variant
from tilearray.ops.typing import Promotion, typed_scalar
from tilearray.promotion.scalars import Number, ScalarClass, as_number

# Kinds that rows accept.
B = frozenset({"bool"})
I = frozenset({"int", "uint"})  # noqa: E741
F = frozenset({"float"})
C = frozenset({"complex"})
REAL = B | I | F
NUMERIC = I | F | C
ANY = B | NUMERIC


@dataclass(frozen=True, eq=False)
class Op:
    """One elementwise operation: a row of the table in `tilearray.ops.arithmetic`, and the public function of its name.

    Attributes
    ----------
    name : the function's name, and the backends' name for it
    summary : one line of documentation
    arity : number of operands
    kinds : the dtype kinds accepted, after promotion
    promotion : how the result dtype follows from the common dtype
    operator : the Python operator, or ""
    ufunc : NumPy's name of the same function, where it differs
    truncating : the backends' name of the variant that truncates integer division
    masks : number of leading operands that are bool conditions and take no part in promotion
    exponents : number of trailing operands that are integers and take no part in promotion
    narrow : whether floats narrower than float32 are computed as they are, not in float32
    exact : whether the result is exact (rounded once), so that backends agree bit for bit
    domain : where random operands of tests and benchmarks are drawn from
    moves : whether nothing is called: the operand is cast and stored, as astype and assignment do
    part_of : the public function that is made of this row, where the row is not itself public
    casts_freely : whether ``out`` may have any dtype (assignment and astype, not arithmetic)
    refuse_scalar : a check of Python-number operands by position and common dtype
    example : the documented example: a call, and what it prints
    triton : the expression in Triton over ``{x} {y} {z} {w}``, by dtype or kind; "any" is the rest, "trunc int" C's
    options : what a call may ask for by keyword: rounding, flush_to_zero, propagate_nan
    choice : what this row was derived for, where it is a variant of a row; see `tilearray.ops.options`
    function : the backends' name of a variant
    """

    name: str
    summary: str
    arity: int
    kinds: frozenset[str]
    promotion: Promotion = Promotion.DEFAULT
    operator: str = ""
    ufunc: str = ""
    truncating: str | None = None
    masks: int = 0
    exponents: int = 0
    narrow: bool = False
    exact: bool = True
    domain: tuple[float, float] | None = None
    moves: bool = False
    part_of: str = ""
    casts_freely: bool = False
    refuse_scalar: Callable[[Op, int, Number, np.dtype], None] | None = None
    example: tuple[str, str] = ("", "")
    triton: Mapping[str, str] = field(default_factory=dict[str, str])
    options: Options = NONE
    choice: Choice | None = None
    function: str = ""
    into: object = field(default_factory=object, repr=False)
    __module__ = "tilearray"

    def __post_init__(self) -> None:
        object.__setattr__(self, "__name__", self.name)
        object.__setattr__(self, "__qualname__", self.name)
        object.__setattr__(self, "__doc__", _documentation(self))
        object.__setattr__(self, "__signature__", _signature(self))

    def __repr__(self) -> str:
        return f"<elementwise op tilearray.{self.name}>"

    def __call__(
        self,
        *operands: Any,
        out: Any = None,
        rounding: Any = None,
        flush_to_zero: bool = False,
        propagate_nan: bool = True,
    ) -> Any:
        if rounding is not None or flush_to_zero is not False or propagate_nan is not True:
            return variant(self, rounding, flush_to_zero, propagate_nan)(*operands, out=out)
        state = STATE.get()
        try:
            plan = state.plans[self] if out is None else state.plans[self.into][out._signature]
            for operand in operands:
                plan = plan[operand._signature if isinstance(operand, ArrayBase) else operand.__class__]
            call = plan.call
        except (KeyError, AttributeError, TypeError):  # no such plan yet, or another number of operands
            call = None
        if call is not None:
            try:
                if self.arity == 2:  # written out: a call with * takes longer than the options do
                    x, y = operands
                    return call(state.stream, x, y) if out is None else call(state.stream, out, x, y)
                if out is not None:
                    return call(state.stream, out, *operands)
                return call(state.stream, operands[0]) if self.arity == 1 else call(state.stream, *operands)
            except ScalarOverflowError:  # the number fits another dtype, or is an error
                pass
        return execute(self, operands, out)

    def execute(self, operands: Sequence[Any], out: Any = None) -> Any:
        """Call with nothing looked up beforehand; see `execute`."""
        return execute(self, operands, out)

    def __reduce__(self) -> str:
        return self.name


def execute(op: Op, operands: Sequence[Any], out: Any = None) -> Any:
    """Run `op` on any mixture of Arrays and numbers; write into `out` where it is given, else make the result."""
    if len(operands) != op.arity:
        raise TypeError(f"{op.name}: expected {op.arity} operands, got {len(operands)}")
    if out is not None:
        check_target(op.name, out)
        operands = [_unaliased(operand, out) for operand in operands]
    keys: list[Key] = []
    numbers = 0
    for operand in operands:
        if isinstance(operand, ArrayBase):
            keys.append(operand._signature)
            continue
        key = scalar_key(op, operand, operands)
        if key is None:
            return execute(op, as_operands(op, operands, out), out)
        keys.append(key)
        numbers += 1
    if numbers == op.arity and out is None:
        return execute(op, numbers_alone(op, operands), out)
    state = STATE.get()
    if out is None:
        return _planned(op, keys, None, state).call(state.stream, *operands)
    return _planned(op, keys, out, state).call(state.stream, out, *operands)


def _planned(op: Op, keys: list[Key], out: ArrayBase | None, state: State) -> Plan:
    """The plan of a call: looked up, or made on the first call of these signatures.

    The root is that of the semantics planned for: another thread may set others meanwhile.
    """
    semantics = state.semantics
    root = plans_of(semantics)
    path = (op, *keys) if out is None else (op.into, out._signature, *keys)
    found: Any = root
    for key in path:
        found = found.get(key)
        if found is None:
            break
    else:
        return found
    found = PLANS.find_old(root, path)
    if found is None:
        found = make_plan(op, semantics, keys, None if out is None else out._signature)
    PLANS.keep(root, path, found)
    for key in keys:
        if key.__class__ is ScalarClass:
            target = None if out is None else out._signature.dtype
            kind = class_that_decides(op, semantics, tuple(keys), target, found.body)
            if kind is not None:
                PLANS.keep(root, tuple([kind if isinstance(key, ScalarClass) else key for key in path]), found)
            break
    return found


def new_array(cls: type[A], signature: Signature) -> A:
    """Return uninitialised memory of a signature whose layout is dense, ordered by the stream in force."""
    return empty_array(cls, signature, STATE.get().stream)


def stored_as(op: Op, x: A, dtype: np.dtype) -> A:
    """Return a new array of the values of `x` in another dtype, cast as `op` casts: a row that moves."""
    signature = x._signature
    return execute(op, (x,), new_array(x.__class__, signature_of(signature.layout.dense(), dtype, signature.device)))


def check_target(function: str, out: Any) -> None:
    """Raise unless `out` is an Array that may be written: not read-only, no two elements in one place."""
    if not isinstance(out, ArrayBase):
        raise OperandError(
            f"{function}: expected a tilearray Array as out, got {type_name(out)}; write out=ta.empty(...)"
        )
    if out._buffer.readonly:
        raise WriteError(f"{function}: the target is read-only; write to x.copy() instead")
    if out._signature.layout.overlaps_itself:
        layout = out._signature.layout
        raise WriteError(
            f"{function}: the target has several elements in one place (shape {layout.shape}, strides "
            f"{layout.strides}); write to x.copy() instead"
        )


def _unaliased(operand: Any, out: ArrayBase) -> Any:
    """Return `operand`, or a copy of it where it shares memory with `out` and is not the very same view."""
    if operand is out or not isinstance(operand, ArrayBase):
        return operand
    if not overlap(operand, out):
        return operand
    mine, target = operand._signature, out._signature
    same_elements = mine.layout == target.layout and mine.itemsize == target.itemsize
    return operand if same_elements and operand._address == out._address else copy_of(operand)


def overlap(x: ArrayBase, y: ArrayBase) -> bool:
    """Whether two arrays may share memory: whether the bytes that they lie in do."""
    if x._signature.device is not y._signature.device:
        return False
    first, last = x._span()
    start, end = y._span()
    return start < last and first < end


def copy_of(x: A) -> A:
    """Return a dense copy of an array, its axes in the same order of strides."""
    from tilearray.ops.arithmetic import assign

    return execute(assign, (x,))


def fill(out: A, number: Number, function: str) -> A:
    """Write a Python number, taken as the dtype of `out`, to every element."""
    from tilearray.ops.arithmetic import assign

    check_target(function, out)
    dtype = out._signature.dtype
    state = STATE.get()
    plan = _planned(assign, [typed_scalar(dtype)], out, state)
    return plan.call(state.stream, out, as_number(number, dtype, function))


def _signature(op: Op) -> CallSignature:
    """What `inspect.signature` says: operands by position, ``out`` and options by name."""
    names = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in _names(op)]
    keywords = {"out": None, **op.options.names}
    return CallSignature(
        [*names, *[Parameter(name, Parameter.KEYWORD_ONLY, default=usual) for name, usual in keywords.items()]]
    )


def _names(op: Op) -> list[str]:
    return [f"x{position + 1}" for position in range(op.arity)] if op.arity > 1 else ["x"]


def _documentation(op: Op) -> str:
    names = _names(op)
    kinds = ", ".join(kind for kind in ("bool", "int", "uint", "float", "complex") if kind in op.kinds)
    call, printed = op.example
    return (
        f"{op.summary}\n\n"
        f"Parameters\n----------\n"
        f"{', '.join(names)} : Array or number\n    Operands of kind {kinds}; they broadcast against each other.\n"
        f"out : Array, optional\n    Where to write the result; its dtype may be narrower within the same kind.\n"
        f"{parameters(op.options)}\n"
        f"Returns\n-------\nArray\n    Dtype: {op.promotion.value}.\n\n"
        f"Raises\n------\n"
        f"PromotionError, DTypeError\n    If the dtypes have no common one, or the op does not take it.\n"
        f"BroadcastError\n    If the shapes do not broadcast.\n\n"
        f"Examples\n--------\n>>> import tilearray as ta\n>>> {call}\n{printed}\n"
    )
