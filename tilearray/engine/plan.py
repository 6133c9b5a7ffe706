"""Operands -> a frozen Plan: everything about a call that does not depend on addresses or values.

A plan joins the two halves of a call that are decided apart: the `Expression` (dtypes only) and the `Loop` (geometry
only). A kernel serves every loop of its class, so a shape that was never seen costs planning, not compilation::

    shapes, strides -> broadcast -> result layout -> collapsed loop -> loop class ─┐
    dtypes, scalars -> result_type -> expression ──────────────────────────────────┴-> kernel -> bound to the loop

A `Recipe` keeps what the lower line has found, for all operands of the same kinds, and the kernels of the patterns that
it has met: most shapes never seen have the pattern of another one, and are bound to its kernel at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from tilearray.engine.backend import Call, Kernel
from tilearray.engine.caches import KERNELS, RECIPES
from tilearray.engine.call import BindNew, Careful, bind_new, call_of, rule_of
from tilearray.engine.devices import Device, common_device
from tilearray.engine.expression import Expression
from tilearray.engine.operation import OperandType, Operation, TypedScalar, expression_of
from tilearray.engine.signature import Signature, Traits, interned, traits_of
from tilearray.geometry.fast_path import pattern_of
from tilearray.geometry.layout import Layout
from tilearray.geometry.loop import LayoutCase, Loop
from tilearray.geometry.result import geometry_of
from tilearray.promotion.operands import zero_dim
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.semantics import Semantics


@dataclass(slots=True, eq=False)
class Plan:
    """One operation, ready to run on any memory of these signatures.

    Attributes
    ----------
    operation, expression, loop
        What was planned.
    signature : Signature
        Of the result, or of the target.
    kernel : object
        The backend's kernel; None where there are no elements.
    call : callable
        ``call(stream, *operands)`` returns the result; ``call(stream, out, *operands)`` where there is a target.
    """

    operation: Operation
    expression: Expression
    loop: Loop
    signature: Signature
    kernel: Any
    call: Call


Key = Signature | ScalarClass | TypedScalar

PATTERNS = 64
"""Patterns that a recipe knows."""

_new_loop = cast(Callable[..., Loop], tuple.__new__)  # pyright: ignore[reportUnknownMemberType]
"""In half the time of the class itself."""


class Recipe:
    """What all calls of an op on operands of the same kinds have in common.

    Attributes
    ----------
    operation, expression, device
        What is computed, and where.
    facts_of_matrix : callable
        The backend's, for patterns.
    rule : Rule
        What the calls check.
    result : Traits
        Of the new array, or of the target.
    known : dict
        For a pattern of the operands' layouts the case of its loops, their kernel, and what makes calls of it.
    """

    __slots__ = ("device", "expression", "facts_of_matrix", "known", "operation", "result", "rule")

    def __init__(
        self, operation: Operation, expression: Expression, device: Device, result: Traits, careful: Careful
    ) -> None:
        self.operation = operation
        self.expression = expression
        self.device = device
        self.facts_of_matrix = device.backend.facts_of_matrix
        self.rule = rule_of(operation, expression, careful)
        self.result = result
        self.known: dict[int, tuple[LayoutCase, Any, BindNew]] = {}

    def plan_new(self, keys: Sequence[Key], layouts: list[Layout]) -> Plan:
        """Plan a call that makes a new array: from its pattern, if that is known."""
        found = pattern_of(layouts, self.facts_of_matrix)
        if found is None:
            return self.plan(keys, layouts, None)
        pattern, shape, strides, written = found
        known = self.known.get(pattern)
        if known is None:
            plan = self.plan(keys, layouts, None)
            if plan.loop[:2] == (shape, strides):
                self._learn(pattern, plan)
            return plan
        case, kernel, bind_loop = known
        if written is None:
            signature = interned(Layout(shape, strides[0], shape[0] * shape[1]), self.result)
        else:
            signature = self._new_signature(written, keys)
        loop = _new_loop(Loop, (shape, strides, (0,) * len(strides), case, 32))
        return Plan(self.operation, self.expression, loop, signature, kernel, bind_loop(loop, signature))

    def plan(self, keys: Sequence[Key], layouts: list[Layout], out: Signature | None) -> Plan:
        """Plan any call: all that depends on the layouts is decided here."""
        device = self.device
        layout, loop = geometry_of(self.operation.name, layouts, None if out is None else out.layout)
        target = self._new_signature(layout, keys) if out is None else out
        kernel = None
        if loop.case is not LayoutCase.EMPTY:
            arrays = [target, *[key for key in keys if isinstance(key, Signature)]]
            aligned = _aligned(arrays, loop) if device.wants_alignment else ALIGNED[: len(arrays)]
            kernel = kernel_of(self.expression, loop, aligned, device)
        call = call_of(self.rule, loop, kernel, keys, target, new=out is None)
        return Plan(self.operation, self.expression, loop, target, kernel, call)

    def _learn(self, pattern: int, plan: Plan) -> None:
        """Remember a plan for the loops of its pattern."""
        if len(self.known) >= PATTERNS:
            self.known.clear()
        self.known[pattern] = plan.loop.case, plan.kernel, bind_new(self.device.backend, plan.kernel, self.rule)

    def _new_signature(self, layout: Layout, keys: Sequence[Key]) -> Signature:
        """The signature of a new array: mostly that of an operand."""
        traits = self.result
        for key in keys:
            if isinstance(key, Signature) and key.layout is layout and key.traits is traits and key.interned:
                return key
        return interned(layout, traits)


def make_plan(
    operation: Operation, semantics: Semantics, keys: Sequence[Key], out: Signature | None, careful: Careful
) -> Plan:
    """Plan an operation for operands of these keys; `out` is the target's signature, if there is a target."""
    path: list[Any] = [operation, semantics.key, None if out is None else out.traits]
    layouts: list[Layout] = []
    for key in keys:
        if isinstance(key, Signature):
            path.append(key.traits)
            layouts.append(key.layout)
        else:
            path.append(key)
    known = tuple(path)
    recipe: Recipe = RECIPES.get(known) or RECIPES.put(known, _recipe(careful, operation, semantics, *known[2:]))
    return recipe.plan_new(keys, layouts) if out is None else recipe.plan(keys, layouts, out)


def _recipe(
    careful: Careful,
    operation: Operation,
    semantics: Semantics,
    out: Traits | None,
    *operands: Traits | ScalarClass | TypedScalar,
) -> Recipe:
    """Decide all that does not depend on layouts, or say why there is no such call."""
    arrays = [operand for operand in operands if isinstance(operand, Traits)]
    device = common_device(operation.name, arrays if out is None else [*arrays, out])
    types = types_of(operands, semantics)
    expression = expression_of(operation, semantics, types, None if out is None else out.dtype)
    operation.check_device(device)
    result = out or traits_of(expression.result, device, True, all(array.is_0d for array in arrays))
    return Recipe(operation, expression, device, result, careful)


def types_of(keys: tuple[Key | Traits, ...], semantics: Semantics) -> tuple[OperandType, ...]:
    """Return what decides dtypes of operands of these keys, under semantics that may tell 0-d arrays from others."""
    found = [key.traits if isinstance(key, Signature) else key for key in keys]
    return tuple([_type_of(key, semantics.zero_dim) if isinstance(key, Traits) else key for key in found])


def _type_of(array: Traits, apart: bool) -> OperandType:
    return zero_dim(array.dtype) if apart and array.is_0d else array.dtype


ALIGNED = (True,) * 64
"""For a device that does not care."""


def kernel_of(expression: Expression, loop: Loop, aligned: tuple[bool, ...], device: Device) -> Kernel:
    """Return the kernel of an expression for the class of a loop, compiled on the first call."""
    backend = device.backend
    loop_class = backend.loop_class(loop)
    key = (expression, loop_class, aligned, device.name)
    kernel = KERNELS.get(key)
    if kernel is None:
        kernel = KERNELS.put(key, backend.compile(expression, loop_class, aligned))
    return kernel


def _aligned(operands: list[Signature], loop: Loop) -> tuple[bool, ...]:
    """Whether each operand's first element, where the loop starts, lies at a multiple of 16 bytes."""
    if not any(loop.shifts):
        return tuple([operand.aligned for operand in operands])
    return tuple(
        [
            operand.aligned and (shift * operand.itemsize) % 16 == 0
            for operand, shift in zip(operands, loop.shifts, strict=True)
        ]
    )
