"""Expressions with a reduction, executed by NumPy: what is computed before it, the reduction, and what comes after.

`tilearray_host.reduction` reduces in the order that every device keeps. If the order has no influence on the result,
one call of NumPy reduces a whole view.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilearray_host import reduction
from tilearray_host.calls import Slot
from tilearray_host.casts import caster, dtype_named, is_narrow_float, scalar
from tilearray_host.float_errors import quietly
from tilearray_host.functions import FUNCTIONS
from tilearray_host.memory import allocate
from tilearray_host.reduction_functions import OF_REDUCTIONS
from tilearray_host.rounded_casts import rounded_caster

Launch = Callable[..., None]
Function = Callable[..., None]


class Part(NamedTuple):
    """One of the values of a reduction."""

    position: int


POSITION = "position"
SMALL = 2**20
"""The elements up to which a launch keeps the parts of its loop."""


class ReductionKernel:
    """An expression with a reduction, with its functions looked up."""

    def __init__(self, expression: Any) -> None:
        kinds = [("array", name) for name in expression.output_dtypes] + list(expression.inputs)
        self.operands = [(kind, dtype_named(name)) for kind, name in kinds]
        self.stores: tuple[int, ...] = expression.outputs
        self.steps = _steps(expression)
        self.node = next(position for position, step in enumerate(self.steps) if isinstance(step, reduction.Reduce))
        self.reduced: tuple[int, ...] = expression.nodes[self.node][2]
        self.before = _needed(self.steps, self.reduced)
        self.after = [
            (position, step)
            for position, step in enumerate(self.steps)
            if isinstance(step, (Part, int)) or position > self.node
        ]
        self.widened = _widened(self.steps, self.node, self.reduced)
        self.reads = [step for step in (self.steps[position] for position in self.before) if isinstance(step, int)]

    def bind(self, loop: Any) -> Launch:
        """Return the launch of this kernel over a loop: a function of the operands' memory."""
        slots, outputs, walk = _slots(self, loop), len(self.stores), reduction.Walk(loop)
        whole = self._in_any_order(loop) or self._of_views(loop, walk, slots)

        def launch(stream: Any, *operands: Any) -> None:
            given = [_operand(slot, *pair) for slot, pair in zip(slots, zip(*[iter(operands)] * 2), strict=True)]
            outs = [walk.output(place) for place in given[:outputs]]
            quietly(whole or self._reduce, walk, outs, given[outputs:])

        return launch

    def bind_call(self, loop: Any, rule: Any, signature: Any, gaps: Any) -> Launch:
        """Return the call of this kernel over a loop: a function of a stream and operands that returns a new array."""
        del gaps
        launch, takes = self.bind(loop), rule.numbers[1:]

        def call(stream: Any, *operands: Any) -> Any:
            given: list[Any] = []
            for operand, take in zip(operands, takes, strict=True):
                given += (operand._buffer, operand._offset) if take is None else (take(operand), 0)
            buffer = allocate(signature.nbytes, stream)
            launch(stream, buffer, 0, *given)
            return operands[0].__class__._make(buffer, 0, signature)

        return call

    def _in_any_order(self, loop: Any) -> Function | None:
        """Return the launch of one call of NumPy, if the order has no influence on the result; else None."""
        node = self.steps[self.node]
        kept = math.prod((*loop.shape[: loop.kept], loop.shape[-2]))
        axes = (*range(loop.kept, len(loop.shape) - 2), len(loop.shape) - 1)
        if len(node.dtypes) == 1:
            whole = _whole(node, self.steps, self.reduced[0], kept == 1)
        else:
            whole = _searched(node, self.steps, self.reduced) if len(axes) == 1 else None
        if whole is None:
            return None
        function, source = whole
        shape, count = loop.shape, loop.segments.total

        def reduce(walk: reduction.Walk, outs: list[np.ndarray], inputs: list[Any]) -> None:
            place = inputs[source]
            view = np.ndarray(shape, place.dtype, place.memory, place.offset, place.strides)
            found = [np.expand_dims(part, -2) for part in function(view, axes, node.dtypes[0])]
            if count > 1:  # the first segment has all, and the others have nothing
                for number, (first, identity, dtype) in enumerate(
                    zip(found, node.identities, node.dtypes, strict=True)
                ):
                    found[number] = np.full(outs[0].shape, identity, dtype)
                    found[number][..., :1, :] = first
            self._finish(found, outs, inputs)

        return reduce

    def _of_views(self, loop: Any, walk: reduction.Walk, slots: list[Slot]) -> Function | None:
        """Return the launch that reduces views of the operand, if one ufunc does; else None."""
        source, node = self.widened, self.steps[self.node]
        if source is None or walk.outer:
            return None
        _, _, strides = slots[len(self.stores) + source]
        assert strides is not None
        shape = (*walk.slow_kept, walk.segments.total, walk.fast)
        known = list(reduction.parts_of(walk, strides)) if math.prod(loop.shape) <= SMALL else None

        def reduce(walk: reduction.Walk, outs: list[np.ndarray], inputs: list[Any]) -> None:
            found = np.empty(shape, node.dtypes[0])
            parts = reduction.parts_of(walk, strides) if known is None else known
            reduction.reduce_views(walk, node, parts, inputs[source], found)
            self._finish([found], outs, inputs)

        return reduce

    def _reduce(self, walk: reduction.Walk, outs: list[np.ndarray], inputs: list[Any]) -> None:
        node = self.steps[self.node]
        parts = [np.empty(outs[0].shape, dtype) for dtype in node.dtypes]
        places = [inputs[position] for position in self.reads]
        places += [None] if any(self.steps[step] is POSITION for step in self.before) else []
        reduction.reduce_all(walk, node, places, self._evaluate, parts)
        self._finish(parts, outs, inputs)

    def _evaluate(self, views: list[np.ndarray]) -> list[np.ndarray]:
        """Compute the values that are reduced, each in memory of its own."""
        shape = np.broadcast_shapes(*[view.shape for view in views])
        values: dict[int, np.ndarray] = {}
        for position in self.before:
            step = self.steps[position]
            if isinstance(step, int):
                values[position] = views[self.reads.index(step)]
            elif step is POSITION:
                values[position] = views[-1]
            else:
                function, dtype, arguments = step
                values[position] = np.empty(shape, dtype)
                function(*[values[argument] for argument in arguments], out=values[position])
        return [
            values[place] if values[place].base is None else np.array(np.broadcast_to(values[place], shape), order="C")
            for place in self.reduced
        ]

    def _finish(self, parts: list[np.ndarray], outs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        """Compute the nodes after the reduction from its parts, and store the outputs."""
        values: dict[int, np.ndarray] = {}
        for position, step in self.after:
            if isinstance(step, Part):
                values[position] = parts[step.position]
            elif isinstance(step, int):
                values[position] = inputs[step]
            else:
                function, dtype, arguments = step
                operands = [values[argument] for argument in arguments]
                shape = operands[0].shape if len(operands) == 1 else np.broadcast_shapes(*[x.shape for x in operands])
                values[position] = np.empty(shape, dtype)
                function(*operands, out=values[position])
        for out, store in zip(outs, self.stores, strict=True):
            out[...] = values[store]


def _needed(steps: list[Any], wanted: tuple[int, ...]) -> list[int]:
    """Return the nodes that some nodes need, in order."""
    found: set[int] = set()
    open_nodes = list(wanted)
    while open_nodes:
        position = open_nodes.pop()
        if position not in found:
            found.add(position)
            step = steps[position]
            open_nodes += step[2] if isinstance(step, tuple) else ()
    return sorted(found)


def _widened(steps: list[Any], number: int, values: tuple[int, ...]) -> int | None:
    """Return the input whose elements, widened at most, are reduced by one ufunc; or None."""
    node = steps[number]
    if len(values) != 1 or node.combine.whole is None or node.dtypes[0].kind == "c":
        return None
    return _through(steps, values[0], "widens")


def _whole(node: reduction.Reduce, steps: list[Any], value: int, is_one: bool) -> tuple[Callable[..., Any], int] | None:
    """Return a function of a view, axes and a dtype that reduces all at once, and the input that it reads; or None.

    `is_one` says that there is one result: only then NumPy counts without a copy.
    """
    ufunc, kind = node.combine.whole, node.dtypes[0].kind
    if ufunc is None or kind not in node.combine.in_any_order:
        return None
    source = _through(steps, value, "widens")
    if isinstance(source, int):
        return (lambda view, axes, dtype: [reduction.reduced(ufunc, view, axes, dtype)]), source
    if ufunc in (np.logical_and, np.logical_or) and isinstance(source := _through(steps, value, "tests"), int):
        return (lambda view, axes, dtype: [ufunc.reduce(view, axis=axes)]), source
    if is_one and ufunc is np.add and isinstance(source := _through(steps, value, "widens", "tests"), int):
        return (lambda view, axes, dtype: [np.full(np.delete(view.shape, axes), np.count_nonzero(view))]), source
    return None


def _searched(
    node: reduction.Reduce, steps: list[Any], values: tuple[int, ...]
) -> tuple[Callable[..., Any], int] | None:
    """Return a function of a view and its last axis that finds the best element and its position; or None.

    NumPy finds the first of equals, and NaN before all, in its own dtypes.
    """
    search = {np.maximum: np.argmax, np.minimum: np.argmin}.get(node.combine.extreme)  # type: ignore[arg-type]
    source = _through(steps, values[0], "widens") if values else None
    if search is None or not isinstance(source, int) or steps[values[-1]] is not POSITION:
        return None

    def function(view: np.ndarray, axes: Any, dtype: np.dtype) -> list[np.ndarray]:
        position = search(view, axis=-1, keepdims=True)
        return [np.take_along_axis(view, position, -1)[..., 0].astype(dtype), position[..., 0]]

    return function, source


def _through(steps: list[Any], value: int, *kinds: str) -> int | None:
    """Return the input from which a value is made by casts of some kinds alone, of each kind at most one."""
    step = steps[value]
    if isinstance(step, int):
        return step
    kind = getattr(step[0], "kind", "") if isinstance(step, tuple) else ""
    if kind not in kinds:
        return None
    return _through(steps, step[2][0], *[other for other in kinds if other != kind])


def _slots(kernel: ReductionKernel, loop: Any) -> list[Slot]:
    """Return one slot for each operand, outputs first. The loop has no strides for numbers."""
    arrays = iter(zip(loop.strides, loop.shifts))
    slots: list[Slot] = []
    for kind, dtype in kernel.operands:
        strides, shift = (None, 0) if kind == "scalar" else next(arrays)
        size = dtype.itemsize
        slots.append((dtype, shift * size, None if strides is None else tuple([stride * size for stride in strides])))
    return slots


def _operand(slot: Slot, memory: Any, offset: int) -> Any:
    """Return where an operand lies, or a 0-d array for a number."""
    dtype, shift, strides = slot
    return scalar(memory, dtype) if strides is None else reduction.Place(memory.memory, offset + shift, dtype, strides)


def _steps(expression: Any) -> list[Any]:
    """Return the step of each node. An input becomes its position."""
    steps: list[Any] = []
    dtypes: list[np.dtype] = []
    for node in expression.nodes:
        match node:
            case ("input", position):
                dtypes.append(dtype_named(expression.inputs[position][1]))
                steps.append(position)
            case ("cast", argument, dtype, *rounding):
                target = dtype_named(dtype)
                steps.append((_cast(dtypes[argument], target, *rounding), target, (argument,)))
                dtypes.append(target)
            case ("call", name, arguments, dtype, _):
                dtypes.append(dtype_named(dtype))
                steps.append((OF_REDUCTIONS.get(name) or FUNCTIONS[name], dtypes[-1], arguments))
            case ("reduce", how, _, names):
                dtypes.append(dtype_named(names[0]))
                steps.append(reduction.Reduce.of(how, names))
            case ("part", node, position):
                dtypes.append(dtype_named(expression.nodes[node][3][position]))
                steps.append(Part(position))
            case ("position",):
                dtypes.append(np.dtype(np.int64))
                steps.append(POSITION)
            case _:
                raise NotImplementedError(f"{node[0]}: the host runs no such node; it indexes with NumPy")
    return steps


def _cast(source: np.dtype, target: np.dtype, *rounding: Any) -> Callable[..., Any]:
    convert = rounded_caster(source, target, *rounding) if rounding else caster(source, target)

    def function(x: np.ndarray, *, out: np.ndarray) -> None:
        convert(x, target, out)

    if not rounding and source.kind in "biufc" and target == np.bool_:
        function.kind = "tests"  # type: ignore[attr-defined]
    elif not rounding and (np.can_cast(source, target) or (is_narrow_float(source) and target == np.float32)):
        function.kind = "widens"  # type: ignore[attr-defined]
    return function
