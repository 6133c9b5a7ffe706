"""`Row`: one elementwise operation of the table as data, with its dtypes, its expression and its documentation.

A row implements `tilearray.engine.operation.Operation`. It does not run itself: `tilearray.ops.execute` runs rows, and
`tilearray.ops.op.Op` is a callable row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter
from inspect import Signature as CallSignature

import numpy as np

from tilearray import dtypes
from tilearray.engine.devices import Device
from tilearray.engine.expression import Expression, ExpressionBuilder
from tilearray.engine.operation import OperandType, TypedScalar
from tilearray.errors import DTypeError
from tilearray.ops.numpy_loops import loop_dtype
from tilearray.ops.options import NONE, USUAL, Choice, Options, check_device, check_dtype, parameters
from tilearray.ops.promotion_methods import (
    NEVER_WIDER,
    Promotion,
    all_integers,
    check_exponent,
    computed_as,
    opmath,
    returned_as,
)
from tilearray.ops.signatures import LateSignature, TypeText
from tilearray.promotion.lattice import names
from tilearray.promotion.operands import Operand, ZeroDim
from tilearray.promotion.scalars import Number, ScalarClass, as_number
from tilearray.promotion.semantics import Semantics
from tilearray.promotion.storing import can_cast_same_kind
from tilearray.promotion.systems import ARRAY_API

# The kinds of dtypes that rows accept.
B = frozenset({"bool"})
I = frozenset({"int", "uint"})  # noqa: E741
F = frozenset({"float"})
C = frozenset({"complex"})
REAL = B | I | F
NUMERIC = I | F | C
ANY = B | NUMERIC
MOVED = ANY | frozenset({"pair"})


@dataclass(frozen=True, slots=True)
class CallTyping:
    """The dtypes of one call of a row.

    Attributes
    ----------
    casts : for each operand, its casts in order
    function : the name of the function in the backends
    returns : the dtype that the function returns
    result : the dtype of a new result
    """

    casts: tuple[tuple[np.dtype, ...], ...]
    function: str
    returns: np.dtype
    result: np.dtype


@dataclass(frozen=True, eq=False)
class Row:
    """One elementwise operation.

    Attributes
    ----------
    name : the name of the function, also in the backends
    summary : one line of documentation
    arity : the number of operands
    kinds : the accepted kinds of the common dtype
    bool_in_numpy : whether semantics `numpy` also accept bools
    promotion : how the result dtype follows from the common dtype
    operator : the Python operator, or ""
    ufunc : the name of NumPy's ufunc, if it differs
    truncating : the name in the backends of the variant for truncating integer division
    in_numpy : the name in the backends of the variant for semantics `numpy`
    masks : the number of leading operands that are bool conditions, without influence on promotion
    exponents : the number of trailing operands that are integer exponents, without influence on promotion
    narrow : whether the row computes 8- and 16-bit floats in their own dtype instead of float32
    exact : whether the result is exact (rounded once), so that backends agree bit for bit
    domain : the range of random operands in tests and benchmarks
    moves : whether the row only casts and stores its operand, as astype and assignment do
    part_of : the public function that uses this row, if the row itself is not public
    casts_freely : whether ``out`` may have any dtype (only astype)
    refuse_scalar : a check of Python numbers, by position and common dtype
    example : the documented example: a call and its output
    triton : the expression in Triton over ``{x} {y} {z} {w}``, by dtype or kind; "any" is the default, "trunc int" is
        for truncating integer division, "numpy float" for semantics `numpy`, "float by number" for a last operand that
        is a number in the call: an array of one number is computed as any array, in a fused function as well
    derivative : for each operand what it adds to the gradient, as an expression over the cotangent ``g``, the operands
        ``x y z w`` and the result ``out``; "0" if the function is flat, "" for conditions and exponents, () for a row
        without derivative. `tilearray.gradients.rules` has the vocabulary
    options : the keyword options of a call: rounding, flush_to_zero, propagate_nan
    choice : the options of a variant; see `tilearray.ops.variants`
    function : the name of a variant in the backends
    into : the key of the plans that write to a target
    """

    name: str
    summary: str
    arity: int
    kinds: frozenset[str]
    promotion: Promotion = Promotion.DEFAULT
    operator: str = ""
    ufunc: str = ""
    truncating: str | None = None
    in_numpy: str = ""
    bool_in_numpy: bool = False
    masks: int = 0
    exponents: int = 0
    narrow: bool = False
    exact: bool = True
    domain: tuple[float, float] | None = None
    moves: bool = False
    part_of: str = ""
    casts_freely: bool = False
    refuse_scalar: Callable[[Row, int, Number, np.dtype], None] | None = None
    example: tuple[str, str] = ("", "")
    triton: Mapping[str, str] = field(default_factory=dict[str, str])
    derivative: tuple[str, ...] | None = None
    options: Options = NONE
    choice: Choice | None = None
    function: str = ""
    into: object = field(default_factory=object, repr=False)
    reduced = scanned = None
    selects = False
    __module__ = "tilearray"

    def __post_init__(self) -> None:
        object.__setattr__(self, "__name__", self.name)
        object.__setattr__(self, "__qualname__", self.name)
        object.__setattr__(self, "__doc__", _documentation(self))
        object.__setattr__(self, "__signature__", LateSignature.of(partial(_signature, self)))
        object.__setattr__(self, "__call__", self)  # IPython shows one signature: that of the row

    def __repr__(self) -> str:
        return f"<elementwise op tilearray.{self.name}>"

    def __reduce__(self) -> str:
        return self.name

    # ------------------------------------------------------------------ the interface Operation

    @property
    def passes_numbers(self) -> bool:
        """Whether a call may pass a Python number to the kernel without `number`, if its class matches and it fits."""
        return self.refuse_scalar is None

    def number(self, position: int, number: Number, dtype: np.dtype, /) -> Number:
        """Return a Python number as `dtype`. Raise an error if it does not fit or the row refuses it."""
        checked = number != 0 if position < self.masks else as_number(number, dtype, self.name)
        if self.refuse_scalar is not None:
            self.refuse_scalar(self, position, checked, dtype)
        return checked

    def check_device(self, device: Device, /) -> None:
        """Raise DeviceError if a variant needs an instruction that the device does not have."""
        check_device(self.name, self.options, self.choice, device)

    def typing(self, semantics: Semantics, types: Sequence[OperandType], /) -> CallTyping:
        """Decide the dtypes of one call. If the op does not accept the operands, raise an error that says why."""
        name, promotion = self.name, self.promotion
        if promotion is Promotion.TRUTH:
            return CallTyping(((dtypes.bool_,),) * self.arity, name, dtypes.bool_, dtypes.bool_)
        plain = [_plain_type(given) for given in types]
        end = self.arity - self.exponents
        mask_casts = ((dtypes.bool_,),) * self.masks
        exponent_casts = tuple((check_exponent(name, given),) for given in plain[end:])
        rest = plain[self.masks : end]
        if promotion is Promotion.ALWAYS_BOOL and len(rest) > 1 and all_integers(rest):
            return self._exact_comparison(semantics, rest)
        operands = [given.promotes_as if isinstance(given, TypedScalar) else given for given in types[self.masks : end]]
        common = self.common_dtype(semantics, [*operands, *plain[end:]], [])
        self._check_kind(semantics, common)
        if not self.moves:
            check_dtype(name, self.choice, common)
        if promotion is Promotion.BITWISE and semantics.same_bits:
            self._check_same_bits(operands)
        compute = common if self.narrow or promotion in NEVER_WIDER else opmath(common)
        result = returned_as(promotion, common)
        returns = compute if result == common else result
        truncates = semantics.integer_division == "trunc" and dtypes.info(common).kind in ("int", "uint")
        function = self.truncating if truncates and self.truncating is not None else self.function or name
        if semantics.rule == "numpy" and self.in_numpy and self.choice is None:
            function = self.in_numpy
        wide = name in semantics.wide_numbers
        casts = [(compute,) if wide and isinstance(given, ScalarClass) else (common, compute) for given in rest]
        return CallTyping((*mask_casts, *casts, *exponent_casts), function, returns, result)

    def common_dtype(self, semantics: Semantics, operands: Sequence[Operand], steps: list[str], /) -> np.dtype:
        """Return the dtype to which operands are rounded, and write the steps of the decision to `steps`.

        `operands` are all operands but the conditions.
        """
        taking = operands[: len(operands) - self.exponents]
        common = semantics.decide(taking, self.name, steps)
        if semantics.rule == "numpy":
            alone = all(isinstance(operand, ScalarClass) for operand in operands)
            given = [common] * len(taking) if alone else taking
            found = loop_dtype(self.name, self.ufunc or self.name, [*given, *operands[len(taking) :]])
            if found is not None:
                if found != common:
                    steps.append(f"numpy.{self.ufunc or self.name} computes these operands in {found.name}")
                return found
        taken = computed_as(self.promotion, semantics, common)
        if taken != common:
            steps.append(f"{self.name} converts {common.name} to {taken.name}")
        return taken

    def expression(self, semantics: Semantics, types: tuple[OperandType, ...], out: np.dtype | None, /) -> Expression:
        """Return the expression for operands of `types`. `out` is the dtype of the target, or None."""
        typing = self.typing(semantics, types)
        stored = typing.result if out is None else self._stored_as(semantics, types, typing.result, out)
        builder = ExpressionBuilder()
        arguments: list[int] = []
        for given, casts in zip(types, typing.casts, strict=True):
            is_number = isinstance(given, ScalarClass | TypedScalar)
            current = casts[0] if isinstance(given, ScalarClass) else plain_dtype(given)
            argument = builder.number(current) if is_number else builder.array(current)
            for target in casts:
                argument, current = builder.cast(argument, current, target), target
            arguments.append(argument)
        last = arguments[0]
        if not self.moves:
            last = builder.call(typing.function, tuple(arguments), typing.returns, self._triton(typing, types[-1]))
        choice = self.choice or USUAL
        clamps = bool(choice.saturate)  # infinities, even if the dtype stays the same
        for before, after, needed in ((typing.returns, typing.result, False), (typing.result, stored, clamps)):
            if needed or before != after:
                last = builder.node("cast", last, after.name, *choice.cast(self.moves and after in semantics.saturates))
        return builder.build([last], [stored])

    # ------------------------------------------------------------------ parts of typing and expression

    def _triton(self, typing: CallTyping, last: OperandType) -> str | None:
        """Return the expression in Triton for the dtype of the computation, and the last operand."""
        computed = typing.casts[self.masks][-1]
        kind = dtypes.info(computed).kind
        prefix = {self.truncating: "trunc ", self.in_numpy: "numpy "}.get(typing.function, "")
        chosen = f"{prefix}{kind}"
        by_number = f"{kind} by number" if isinstance(last, ScalarClass | TypedScalar) else ""
        for name in (by_number, computed.name, chosen, kind, "any"):
            if name in self.triton:
                return self.triton[name]
        return None

    def _exact_comparison(self, semantics: Semantics, types: Sequence[np.dtype | ScalarClass]) -> CallTyping:
        """Compare the values of integers exactly under all semantics, as NumPy 2 does.

        The operands are cast to a dtype that holds both. uint64 and a signed integer have no such dtype: the backend
        gets uint64 and int64, and compares signs first.
        """
        signed = any(isinstance(given, np.dtype) and dtypes.info(given).kind == "int" for given in types)
        if signed and dtypes.uint64 in types:
            casts = tuple((dtypes.uint64 if given == dtypes.uint64 else dtypes.int64,) for given in types)
        else:
            casts = ((ARRAY_API.result_type(types, self.name),),) * len(types)
        self._check_kind(semantics, casts[0][0])
        return CallTyping(casts, self.name, dtypes.bool_, dtypes.bool_)

    def _check_kind(self, semantics: Semantics, common: np.dtype) -> None:
        row = dtypes.info(common)
        if self.promotion in NEVER_WIDER and row.kind in self.kinds:
            return
        dtypes.check_arithmetic(self.name, common)
        if common not in semantics.arithmetic and not (self.promotion is Promotion.ALWAYS_BOOL and row.kind == "bool"):
            raise DTypeError(
                f"{self.name}: semantics {semantics.name!r} do not compute with {common.name}; "
                f"{_INSTEAD_OF[row.kind]} first"
            )
        if row.kind not in self.kinds and not (row.kind == "bool" and self.bool_in_numpy and semantics.rule == "numpy"):
            accepted = dtypes.kinds_in_words(self.kinds)
            raise DTypeError(
                f"{self.name}: expected dtypes of kind {accepted}, got {common.name}; {self._instead(row.kind)}"
            )

    def _instead(self, kind: str) -> str:
        if kind == "bool":
            return "write x.astype('int8') first" if "int" in self.kinds else "write x.astype('float32') first"
        if kind == "complex":
            return "write x.real, x.imag or ta.abs(x)" if "float" in self.kinds else "write x.real.astype('int64')"
        return "write x.astype('int64') first" if "int" in self.kinds else "write `x != 0`"

    def _check_same_bits(self, operands: Sequence[np.dtype | ZeroDim | ScalarClass]) -> None:
        """Raise DTypeError if arrays differ in dtype, for semantics whose bitwise operations do not cast."""
        found = {plain_dtype(given) for given in operands if not isinstance(given, ScalarClass)}
        if len(found) > 1:
            raise DTypeError(
                f"{self.name}: expected operands of one dtype, got {names(found)}; write x.astype(...) for one of them"
            )

    def _stored_as(
        self, semantics: Semantics, types: tuple[OperandType, ...], result: np.dtype, out: np.dtype
    ) -> np.dtype:
        """Return `out`, the dtype of the target, if the target may store the result. Otherwise raise DTypeError.

        Assignment casts within the kind, and freely under the semantics of NumPy.
        """
        if self.casts_freely or (self.moves and semantics.inplace == "numpy"):
            if result != out and "pair" in (dtypes.info(result).kind, dtypes.info(out).kind):
                raise DTypeError(
                    f"{self.name}: {dtypes.info(result).name} does not become {dtypes.info(out).name}, because a pair "
                    f"is not a number; {_INSTEAD_OF_PAIRS[dtypes.info(out).kind == 'pair']}"
                )
            if dtypes.info(result).kind == "complex" and dtypes.info(out).kind not in ("complex", "bool"):
                raise DTypeError(
                    f"{self.name}: {out.name} cannot hold {result.name}: the imaginary part would be lost; "
                    f"write x.real.astype({out.name!r})"
                )
        elif not (can_cast_same_kind(result, out) if self.moves else semantics.stores(result, out)):
            raise DTypeError(
                f"{self.name}: expected a target that can store the {dtypes.info(result).name} result, got "
                f"{dtypes.info(out).name}; write a target of dtype {dtypes.info(result).name}, or target[...] = "
                f"result.astype({dtypes.info(out).name!r})"
                f"{_if_unasked(semantics, types, result)}"
            )
        return out


def _if_unasked(semantics: Semantics, types: tuple[OperandType, ...], result: np.dtype) -> str:
    """Return how to change the dtype of a result if no operand has it, and only the semantics ask for it."""
    given = [plain_dtype(given) for given in types if not isinstance(given, ScalarClass)]
    if semantics.rule == "numpy" or result != semantics.defaults["float"] or result in given:
        return ""
    name = semantics.name.partition(",")[0]
    return f". {result.name} is the default float: see ta.semantics({name!r}, float=...)"


_INSTEAD_OF_PAIRS = (
    "write ta.unpack_float4(x).astype(...)",
    "write ta.pack_float4(x.astype('float4_e2m1fn'))",
)
"""What gives numbers of pairs, and pairs of numbers."""
_INSTEAD_OF = {"complex": "write x.real, x.imag", "float": "write x.astype('float32')"} | dict.fromkeys(
    ("bool", "int", "uint"), "write x.astype('int32')"
)


def plain_dtype(given: np.dtype | ZeroDim | TypedScalar) -> np.dtype:
    """Return the dtype of an array, of a 0-d array or of a typed number."""
    return given if isinstance(given, np.dtype) else given.dtype


def _plain_type(given: OperandType) -> np.dtype | ScalarClass:
    return given if isinstance(given, ScalarClass) else plain_dtype(given)


# --- documentation --------------------------------------------------------------------------------------------------


def _signature(row: Row) -> CallSignature:
    """Return the signature for `inspect.signature`: operands by position, ``out`` also, and options by name."""
    modes = ", ".join(map(repr, row.options.rounding))
    types = {**_TYPES, "rounding": f"Literal[{modes}] | None"}
    operand = TypeText("Operand")
    operands = [Parameter(name, Parameter.POSITIONAL_ONLY, annotation=operand) for name in _operand_names(row)]
    out = Parameter("out", Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=TypeText(types["out"]))
    keywords = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=usual, annotation=TypeText(types[name]))
        for name, usual in {"where": True, "dtype": None, "casting": "same_kind", **row.options.names}.items()
    ]
    return CallSignature([*operands, out, *keywords], return_annotation=TypeText("Array"))


_TYPES = {
    "out": "Array | None",
    "where": "Operand",
    "dtype": "DTypeLike | None",
    "casting": "Literal['safe', 'same_kind', 'unsafe']",
} | dict.fromkeys(("flush_to_zero", "propagate_nan"), "bool")
"""The types of the options of calls."""


def _operand_names(row: Row) -> list[str]:
    return [f"x{position + 1}" for position in range(row.arity)] if row.arity > 1 else ["x"]


def _documentation(row: Row) -> str:
    kinds = ", ".join(kind for kind in ("bool", "int", "uint", "float", "complex") if kind in row.kinds)
    call, printed = row.example
    return (
        f"{row.summary}\n\n"
        f"Parameters\n----------\n"
        f"{', '.join(_operand_names(row))} : Array, ndarray, list or number\n"
        f"    Operands of kind {kinds}; they broadcast against each other.\n"
        f"out : Array, optional\n    The target of the result; its dtype may be narrower within the same kind.\n"
        f"where : bool Array, optional\n    Where to compute. Other elements of `out` stay; without `out` they are 0.\n"
        f"dtype : dtype or name, optional\n    The dtype of the result; the operands are cast to it first.\n"
        f"casting : {{'same_kind', 'safe', 'unsafe'}}\n    Which casts to `dtype` and to `out` are allowed: by the "
        f"rule of the semantics,\n    without loss, or all; floats are truncated to integers.\n"
        f"{parameters(row.options)}\n"
        f"Returns\n-------\nArray\n    Dtype: {row.promotion.value}.\n\n"
        f"Raises\n------\n"
        f"PromotionError, DTypeError\n    If the operands have no common dtype, or the op does not accept it.\n"
        f"BroadcastError\n    If the shapes do not broadcast.\n\n"
        f"Examples\n--------\n>>> import tilearray as ta\n>>> {call}\n{printed}\n"
    )
