"""Promotion of one call, written down as an expression body.

A `Body` is what a backend computes for one element: inputs, then nodes in order, then which node each output stores.
It is built from an op's row, the semantics and the operands' dtypes; no shape enters. One op is a body of one call,
a cast is a node, and several calls or outputs are possible, so a fused expression is a body as well.

``float16 + float32`` under ``array-api``, for example, is::

    inputs   ("array", "float16"), ("array", "float32")
    nodes    0: ("input", 0)   1: ("cast", 0, "float32")   2: ("input", 1)   3: ("call", "add", (1, 2), "float32")
    outputs  (3,)

Operands are rounded to the promoted dtype first and then widened to the compute dtype (float32 for the 16- and 8-bit
floats); the result is rounded once. Promotion methods are those of FlagGems and of torch's type promotion.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilearray import dtypes
from tilearray.engine.caches import TwoGenerations
from tilearray.errors import DTypeError
from tilearray.ops.options import check_dtype
from tilearray.promotion.lattice import names
from tilearray.promotion.operands import ZeroDim
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.semantics import Semantics
from tilearray.promotion.storing import can_cast_same_kind
from tilearray.promotion.systems import ARRAY_API

if TYPE_CHECKING:
    from tilearray.ops.op import Op

Node = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TypedScalar:
    """A Python number that is taken as one dtype, whatever the semantics would give it. Interned by `typed_scalar`."""

    dtype: np.dtype


_TYPED = {dtype: TypedScalar(dtype) for dtype in dtypes.ALL}


def typed_scalar(dtype: np.dtype) -> TypedScalar:
    """Return the `TypedScalar` of a dtype."""
    return _TYPED[dtype]


Type = np.dtype | ZeroDim | ScalarClass | TypedScalar


class Promotion(enum.Enum):
    """How a result dtype follows from the operands' common dtype."""

    DEFAULT = "the common dtype; 8- and 16-bit floats compute in float32"
    NO_OPMATH = "the common dtype, and none wider in between"
    BITWISE = "the common dtype; semantics may ask for operands of one dtype"
    INT_TO_FLOAT = "the common dtype; integers become a float"
    TRUE_DIVISION = "the common dtype; integers become the float of true division"
    ALWAYS_BOOL = "bool; the common dtype decides, but integers are compared exactly"
    COMPLEX_TO_FLOAT = "the common dtype; complex becomes the float of its parts"
    BOOL_TO_LONG = "the common dtype; bool becomes the default integer"
    ALWAYS_FLOAT = "a float: the default one for integers, that of the parts for complex"
    FLOAT_TO_BOOL = "bool; the common dtype decides, and integers count as the float of true division"
    FLOAT64 = "float64, complex128 for complex"
    ALWAYS_INT32 = "int32"
    TRUTH = "bool; every operand by itself is true where it is not 0"


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """An expression over typed inputs; hashed by identity, so keep it in the cache that made it.

    Nodes of an op are inputs, casts and calls; a cast that does not round to nearest even, or that saturates, says so:
    ``("cast", node, dtype, mode, saturate)``, the mode as in `tilearray.ops.options`. Kernels that move elements have
    three more, which cuda alone knows: ``("index",)`` is the position of the element in a dense result, an int64;
    ``("gather", input, node)`` is the element of an input that lies as many elements further as the node says;
    ``("report", condition, value, input)`` leaves a value in the first word of an input where a condition is true.
    `places` has for each output the node that says how far from its own place an element is stored.
    """

    inputs: tuple[tuple[str, str], ...]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    output_dtypes: tuple[str, ...]
    scalar_dtypes: tuple[np.dtype | None, ...]
    result: np.dtype
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Typing:
    """The dtypes of one call: what each operand is cast to in turn, what the call returns and what is stored."""

    casts: tuple[tuple[np.dtype, ...], ...]
    function: str
    returns: np.dtype
    result: np.dtype


BODIES: TwoGenerations[Body] = TwoGenerations(2048)


def body_of(op: Op, semantics: Semantics, types: tuple[Type, ...], out: np.dtype | None) -> Body:
    """Return the body of `op` for operands of `types`, stored as `out` where that is given."""
    key = (op, semantics, types, out)
    found = BODIES.get(key)
    if found is None:
        made = _build(op, semantics, types, out)
        same = (op, made.inputs, made.nodes, made.outputs, made.output_dtypes)  # asked for by other types, too
        found = BODIES.put(key, BODIES.put(same, made))
    return found


def _build(op: Op, semantics: Semantics, types: tuple[Type, ...], out: np.dtype | None) -> Body:
    typing = typing_of(op, semantics, types)
    stored = typing.result if out is None else _stored_as(op, semantics, typing.result, out)
    nodes: list[Node] = []

    def add(*node: object) -> int:
        nodes.append(node)
        return len(nodes) - 1

    inputs: list[tuple[str, str]] = []
    scalars: list[np.dtype | None] = []
    arguments: list[int] = []
    for position, (given, casts) in enumerate(zip(types, typing.casts, strict=True)):
        is_scalar = isinstance(given, ScalarClass | TypedScalar)
        current = casts[0] if isinstance(given, ScalarClass) else plain_dtype(given)
        inputs.append(("scalar" if is_scalar else "array", current.name))
        scalars.append(current if is_scalar else None)
        argument = add("input", position)
        for target in casts:
            if target != current:
                argument, current = add("cast", argument, target.name), target
        arguments.append(argument)
    last = arguments[0]
    if not op.moves:
        last = add("call", typing.function, tuple(arguments), typing.returns.name, _triton(op, typing))
    how = () if op.choice is None else op.choice.cast
    clamps = op.choice is not None and op.choice.saturate  # what has the dtype already, too: infinities
    for before, after, needed in ((typing.returns, typing.result, False), (typing.result, stored, clamps)):
        if needed or before != after:
            last = add("cast", last, after.name, *how)
    return Body(tuple(inputs), tuple(nodes), (last,), (stored.name,), tuple(scalars), stored)


def _triton(op: Op, typing: Typing) -> str | None:
    """The row's expression for the kind that is computed in."""
    computed = typing.casts[op.masks][-1]
    kind = dtypes.info(computed).kind
    chosen = f"trunc {kind}" if typing.function == op.truncating else kind
    for name in (computed.name, chosen, kind, "any"):
        if name in op.triton:
            return op.triton[name]
    return None


def typing_of(op: Op, semantics: Semantics, types: Sequence[Type]) -> Typing:
    """Decide the dtypes of one call of `op`, or say why the op does not take these operands."""
    if op.promotion is Promotion.TRUTH:
        return Typing(((dtypes.bool_,),) * op.arity, op.name, dtypes.bool_, dtypes.bool_)
    plain = [plain_type(given) for given in types]
    end = op.arity - op.exponents
    mask_casts = tuple((check_mask(op, given),) for given in plain[: op.masks])
    exponent_casts = tuple((check_exponent(op, given),) for given in plain[end:])
    rest = plain[op.masks : end]
    if op.promotion is Promotion.ALWAYS_BOOL and len(rest) > 1 and _all_integers(rest):
        return _exact_comparison(op, semantics, rest)
    operands = [given.dtype if isinstance(given, TypedScalar) else given for given in types[op.masks : end]]
    common = computed_as(op, semantics, semantics.result_type(operands, op.name))
    _check_kind(op, semantics, common)
    check_dtype(op, common)
    if op.promotion is Promotion.BITWISE and semantics.same_bits:
        _check_same_bits(op, operands)
    compute = common if op.narrow or op.promotion in _NEVER_WIDER else opmath(common)
    result = _returned_as(op.promotion, common)
    returns = compute if result == common else result
    truncates = semantics.integer_division == "trunc" and dtypes.info(common).kind in ("int", "uint")
    function = op.truncating if truncates and op.truncating is not None else op.function or op.name
    wide = op.name in semantics.wide_numbers
    casts = [(compute,) if wide and isinstance(given, ScalarClass) else (common, compute) for given in rest]
    return Typing((*mask_casts, *casts, *exponent_casts), function, returns, result)


def plain_dtype(given: np.dtype | ZeroDim | TypedScalar) -> np.dtype:
    """Return the dtype of an operand that has one."""
    return given if isinstance(given, np.dtype) else given.dtype


def plain_type(given: Type) -> np.dtype | ScalarClass:
    """Return an operand's dtype, or the class of a Python number."""
    return given if isinstance(given, ScalarClass) else plain_dtype(given)


_NEVER_WIDER = {Promotion.NO_OPMATH, Promotion.BITWISE}
_BY_DIVISION = {Promotion.TRUE_DIVISION, Promotion.FLOAT_TO_BOOL}
_BY_FUNCTION = {Promotion.INT_TO_FLOAT, Promotion.ALWAYS_FLOAT, Promotion.ALWAYS_INT32}


def computed_as(op: Op, semantics: Semantics, common: np.dtype) -> np.dtype:
    """Return what the operands are rounded to: the common dtype, or what an op takes in its place.

    Examples
    --------
    >>> import tilearray as ta
    >>> computed_as(ta.sqrt, ta.get_semantics(), ta.int8)
    dtype('float32')
    """
    kind = dtypes.info(common).kind
    if kind in ("bool", "int", "uint"):
        if op.promotion in _BY_DIVISION:
            return semantics.true_division
        if op.promotion in _BY_FUNCTION:
            return semantics.integer_functions.get(common, semantics.true_division)
    if kind == "bool" and op.promotion is Promotion.BOOL_TO_LONG:
        return semantics.defaults["int"]
    if op.promotion is Promotion.FLOAT64 and dtypes.info(common).arithmetic:
        return dtypes.complex128 if kind == "complex" else dtypes.float64
    return common


def _returned_as(promotion: Promotion, common: np.dtype) -> np.dtype:
    """The result dtype of operands that were rounded to a dtype."""
    if promotion in (Promotion.ALWAYS_BOOL, Promotion.FLOAT_TO_BOOL):
        return dtypes.bool_
    if promotion in (Promotion.COMPLEX_TO_FLOAT, Promotion.ALWAYS_FLOAT):
        return REAL_PART.get(common, common)
    return dtypes.int32 if promotion is Promotion.ALWAYS_INT32 else common


def opmath(dtype: np.dtype) -> np.dtype:
    """Return the dtype that values of `dtype` are computed in: float32 for the narrower floats.

    Examples
    --------
    >>> import tilearray as ta
    >>> opmath(ta.bfloat16), opmath(ta.int8)
    (dtype('float32'), dtype('int8'))
    """
    row = dtypes.info(dtype)
    return dtypes.float32 if row.kind == "float" and row.bits < 32 else dtype


REAL_PART = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}
_WORDS = {"bool": "bool", "int": "signed integer", "uint": "unsigned integer", "float": "float", "complex": "complex"}


def check_mask(op: Op, given: np.dtype | ScalarClass) -> np.dtype:
    """Return bool, the dtype of a condition, or say that the operand is none."""
    if given is not ScalarClass.BOOL and given != dtypes.bool_:
        name = given.name if isinstance(given, np.dtype) else "a Python number"
        raise DTypeError(f"{op.name}: the condition must be bool, got {name}; write `condition != 0`")
    return dtypes.bool_


def check_exponent(op: Op, given: np.dtype | ScalarClass) -> np.dtype:
    """Return int64, the dtype of an exponent, or say that the operand is none."""
    if isinstance(given, np.dtype):
        fits = dtypes.info(given).kind in ("bool", "int", "uint") and given != dtypes.uint64
    else:
        fits = given in _INTEGER_SCALARS or given is ScalarClass.HUGE  # whose value is checked
    if not fits:
        name = given.name if isinstance(given, np.dtype) else "a Python number that is none"
        raise DTypeError(f"{op.name}: the exponent must be an integer of int64, got {name}; write n.astype('int64')")
    return dtypes.int64


def _check_kind(op: Op, semantics: Semantics, common: np.dtype) -> None:
    row = dtypes.info(common)
    if op.promotion in (Promotion.NO_OPMATH, Promotion.BITWISE) and row.kind in op.kinds:
        return
    if not row.arithmetic:
        raise DTypeError(
            f"{op.name}: {common.name} is a storage dtype, it is not computed with; write x.astype('float32') first"
        )
    if common not in semantics.arithmetic and not (op.promotion is Promotion.ALWAYS_BOOL and row.kind == "bool"):
        raise DTypeError(
            f"{op.name}: semantics {semantics.name!r} do not compute with {common.name}; {_INSTEAD_OF[row.kind]} first"
        )
    if row.kind not in op.kinds:
        accepted = ", ".join(_WORDS[kind] for kind in _WORDS if kind in op.kinds)
        raise DTypeError(f"{op.name}: expected dtypes of kind {accepted}, got {common.name}; {_instead(op, row.kind)}")


_INSTEAD_OF = {"complex": "write x.real, x.imag", "float": "write x.astype('float32')"} | dict.fromkeys(
    ("bool", "int", "uint"), "write x.astype('int32')"
)


def _check_same_bits(op: Op, operands: Sequence[np.dtype | ZeroDim | ScalarClass]) -> None:
    """Raise unless all arrays have one dtype, for semantics whose bitwise operations convert nothing."""
    found = {plain_dtype(given) for given in operands if not isinstance(given, ScalarClass)}
    if len(found) > 1:
        raise DTypeError(
            f"{op.name}: expected operands of one dtype, got {names(found)}; write x.astype(...) for one of them"
        )


def _instead(op: Op, kind: str) -> str:
    if kind == "bool":
        return "write x.astype('int8') first" if "int" in op.kinds else "write x.astype('float32') first"
    if kind == "complex":
        return "write x.real, x.imag or ta.abs(x)"
    return "write x.astype('int64') first" if "int" in op.kinds else "write `x != 0`"


def _stored_as(op: Op, semantics: Semantics, result: np.dtype, out: np.dtype) -> np.dtype:
    """Return `out`, the dtype of an ``out=`` or in-place target, if the result may be stored so.

    Assignment, which computes nothing, has one rule in all semantics.
    """
    if op.casts_freely:
        if dtypes.info(result).kind == "complex" and dtypes.info(out).kind not in ("complex", "bool"):
            raise DTypeError(
                f"astype: {result.name} does not become {out.name}: the imaginary part would be lost; "
                f"write x.real.astype({out.name!r})"
            )
    elif not (can_cast_same_kind(result, out) if op.moves else semantics.stores(result, out)):
        raise DTypeError(
            f"{op.name}: the result is {result.name}, which is not cast to the {out.name} of the target; "
            f"write a target of dtype {result.name}, or target[...] = result.astype({out.name!r})"
        )
    return out


_INTEGER_SCALARS = {ScalarClass.BOOL, ScalarClass.INT32, ScalarClass.UINT32, ScalarClass.INT64, ScalarClass.UINT64}


def _all_integers(types: Sequence[np.dtype | ScalarClass]) -> bool:
    """Whether every operand is an integer or a bool."""
    return all(
        given in _INTEGER_SCALARS
        if isinstance(given, ScalarClass)
        else dtypes.info(given).kind in ("bool", "int", "uint")
        for given in types
    )


def _exact_comparison(op: Op, semantics: Semantics, types: Sequence[np.dtype | ScalarClass]) -> Typing:
    """Compare integers as numbers, whatever the semantics would promote them to, as NumPy 2 does.

    The operands meet in a dtype that holds both. uint64 and a signed integer have none: they reach the backend as
    they are (the signed one as int64), and it compares signs first.
    """
    signed = any(isinstance(given, np.dtype) and dtypes.info(given).kind == "int" for given in types)
    if signed and dtypes.uint64 in types:
        casts = tuple((dtypes.uint64 if given == dtypes.uint64 else dtypes.int64,) for given in types)
    else:
        casts = ((ARRAY_API.result_type(types, op.name),),) * len(types)
    _check_kind(op, semantics, casts[0][0])
    return Typing(casts, op.name, dtypes.bool_, dtypes.bool_)
