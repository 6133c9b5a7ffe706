"""`Op`: a callable row of the table. The row *is* the public function.

The key of a plan is ``(op, key, key, ...)``. The key of an array is its interned signature: dtype, shape, strides and
device. The key of a Python number is its Python class if the plan depends only on the class, else its value class.
Therefore a key contains all facts that its plan depends on. This module finds plans under signatures and Python
classes. `tilearray.ops.execute` runs all other calls.

For a type checker ``Op("exp", ..., 1, ...)`` is a `Unary`: a row whose call takes one operand. The classes `Unary`,
`Binary` and so on say the operands and options of a call; no object has such a class at run time.
"""

# pyright: reportOverlappingOverload=false
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from tilearray.engine.context import STATE
from tilearray.engine.signature import ArrayBase
from tilearray.errors import ScalarOverflowError
from tilearray.ops.execute import execute
from tilearray.ops.hooks import HOOKS
from tilearray.ops.options import Directed, DirectedOrApprox, DirectedOrFast, Extreme, Fast, Flushing
from tilearray.ops.row import Row
from tilearray.ops.ufunc_methods import UfuncMethods

One = Literal[1]
Two = Literal[2]
Three = Literal[3]
Four = Literal[4]


class Op(UfuncMethods, Row):
    """One elementwise operation: a row of the table in `tilearray.ops`, and the public function of its name."""

    __module__ = "tilearray"

    def _call(self, *operands: Any, out: Any = None, **options: Any) -> Any:
        if options:  # one test for all: where, dtype, casting, rounding, flush_to_zero, propagate_nan
            return HOOKS.call(self, operands, out, options)
        state = STATE.get()
        try:
            plan = state.plans[self] if out is None else state.plans[self.into][out._signature]
            for operand in operands:
                plan = plan[operand._signature if isinstance(operand, ArrayBase) else operand.__class__]
            call = plan.call
        except (KeyError, AttributeError, TypeError):  # no such plan yet, or a wrong number of operands
            call = None
        if call is not None:
            try:
                if self.arity == 2:  # unrolled: a call with * costs more than the options
                    x, y = operands
                    return call(state.stream, x, y) if out is None else call(state.stream, out, x, y)
                if out is not None:
                    return call(state.stream, out, *operands)
                return call(state.stream, operands[0]) if self.arity == 1 else call(state.stream, *operands)
            except ScalarOverflowError:  # the number needs another dtype, or is an error
                pass
        return execute(self, operands, out)

    if TYPE_CHECKING:  # the class of a row follows from its arity and its options
        # fmt: off
        @overload
        def __new__(cls, name: str, doc: str, arity: One, *row: Any, options: Fast, **_: Any) -> FastUnary: ...
        @overload
        def __new__(cls, name: str, doc: str, arity: One, *row: Any, options: Flushing, **_: Any) -> FlushingUnary: ...
        @overload
        def __new__(cls, name: str, doc: str, arity: One, *row: Any, options: DirectedOrApprox, **_: Any) -> Root: ...
        @overload
        def __new__(cls, name: str, doc: str, arity: Two, *row: Any, options: Directed, **_: Any) -> RoundedBinary: ...
        @overload
        def __new__(cls, name: str, doc: str, arity: Two, *row: Any, options: DirectedOrFast, **_: Any) -> Quotient: ...
        @overload
        def __new__(cls, name: str, doc: str, arity: Two, *row: Any, options: Extreme, **_: Any) -> ExtremeBinary: ...
        @overload
        def __new__(cls, name: str, doc: str, arity: Three, *row: Any, options: Directed, **_: Any) -> FusedTernary: ...
        @overload
        def __new__(cls, name: str, doc: str, arity: One, *row: Any, **_: Any) -> Unary: ...
        @overload
        def __new__(cls, name: str, doc: str, arity: Two, *row: Any, **_: Any) -> Binary: ...
        @overload
        def __new__(cls, name: str, doc: str, arity: Three, *row: Any, **_: Any) -> Ternary: ...
        @overload
        def __new__(cls, name: str, doc: str, arity: Four, *row: Any, **_: Any) -> Quaternary: ...
        def __new__(cls, *row: Any, **_: Any) -> Any: ...
        def __call__(self, *operands: Any, **options: Any) -> Any: ...
        # fmt: on
    else:
        __call__ = _call


if TYPE_CHECKING:
    from tilearray.dtypes import DTypeLike
    from tilearray.engine.array_type import Array
    from tilearray.engine.signature import Operand
    from tilearray.ops.options import DirectedMode, FastMode, NamedMode
    from tilearray.promotion.storing import Casting

    Out: TypeAlias = ArrayBase | None

    class Unary(Op):
        def __call__(
            self,
            x: Operand,
            /,
            out: Out = None,
            *,
            where: Operand = True,
            dtype: DTypeLike | None = None,
            casting: Casting = "same_kind",
        ) -> Array: ...

    class FastUnary(Op):
        def __call__(
            self,
            x: Operand,
            /,
            out: Out = None,
            *,
            where: Operand = True,
            dtype: DTypeLike | None = None,
            casting: Casting = "same_kind",
            rounding: FastMode | NamedMode | None = None,
        ) -> Array: ...

    class FlushingUnary(Op):
        def __call__(
            self,
            x: Operand,
            /,
            out: Out = None,
            *,
            where: Operand = True,
            dtype: DTypeLike | None = None,
            casting: Casting = "same_kind",
            flush_to_zero: bool = False,
        ) -> Array: ...

    class Root(Op):
        def __call__(
            self,
            x: Operand,
            /,
            out: Out = None,
            *,
            where: Operand = True,
            dtype: DTypeLike | None = None,
            casting: Casting = "same_kind",
            rounding: DirectedMode | Literal["approx"] | NamedMode | None = None,
            flush_to_zero: bool = False,
        ) -> Array: ...

    class Binary(Op):
        def __call__(
            self,
            x1: Operand,
            x2: Operand,
            /,
            out: Out = None,
            *,
            where: Operand = True,
            dtype: DTypeLike | None = None,
            casting: Casting = "same_kind",
        ) -> Array: ...

    class RoundedBinary(Op):
        def __call__(
            self,
            x1: Operand,
            x2: Operand,
            /,
            out: Out = None,
            *,
            where: Operand = True,
            dtype: DTypeLike | None = None,
            casting: Casting = "same_kind",
            rounding: DirectedMode | NamedMode | None = None,
            flush_to_zero: bool = False,
        ) -> Array: ...

    class Quotient(Op):
        def __call__(
            self,
            x1: Operand,
            x2: Operand,
            /,
            out: Out = None,
            *,
            where: Operand = True,
            dtype: DTypeLike | None = None,
            casting: Casting = "same_kind",
            rounding: DirectedMode | FastMode | NamedMode | None = None,
            flush_to_zero: bool = False,
        ) -> Array: ...

    class ExtremeBinary(Op):
        def __call__(
            self,
            x1: Operand,
            x2: Operand,
            /,
            out: Out = None,
            *,
            where: Operand = True,
            dtype: DTypeLike | None = None,
            casting: Casting = "same_kind",
            flush_to_zero: bool = False,
            propagate_nan: bool = True,
        ) -> Array: ...

    class Ternary(Op):
        def __call__(
            self,
            x1: Operand,
            x2: Operand,
            x3: Operand,
            /,
            out: Out = None,
            *,
            where: Operand = True,
            dtype: DTypeLike | None = None,
            casting: Casting = "same_kind",
        ) -> Array: ...

    class FusedTernary(Op):
        def __call__(
            self,
            x1: Operand,
            x2: Operand,
            x3: Operand,
            /,
            out: Out = None,
            *,
            where: Operand = True,
            dtype: DTypeLike | None = None,
            casting: Casting = "same_kind",
            rounding: DirectedMode | NamedMode | None = None,
            flush_to_zero: bool = False,
        ) -> Array: ...

    class Quaternary(Op):
        def __call__(
            self,
            x1: Operand,
            x2: Operand,
            x3: Operand,
            x4: Operand,
            /,
            out: Out = None,
            *,
            where: Operand = True,
            dtype: DTypeLike | None = None,
            casting: Casting = "same_kind",
        ) -> Array: ...
