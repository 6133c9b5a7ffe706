"""Expressions with a reduction, executed by NumPy: what is computed before it, the reduction, and what comes after.

`tilearray_host.reduction` reduces in the order that every device keeps. If the order has no influence on the result,
one call of NumPy reduces a whole view.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilearray_host import reduction
from tilearray_host.calls import Slot, bind_reduction
from tilearray_host.casts import assigns, caster, dtype_named, is_narrow_float, scalar
from tilearray_host.float_errors import quietly
from tilearray_host.functions import FUNCTIONS
from tilearray_host.memory import allocate
from tilearray_host.reduction_functions import OF_REDUCTIONS
from tilearray_host.rounded_casts import rounded_caster

Launch = Callable[..., None]
Function = Callable[..., None]
Bound = tuple[Function, list[Slot], list[tuple[int, ...]], tuple[int, ...]]
"""The first arguments of `tilearray_host.calls.bind_reduction`."""


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
        self.steps = steps_of(expression)
        self.node = next(position for position, step in enumerate(self.steps) if isinstance(step, reduction.Reduce))
        self.reduced: tuple[int, ...] = expression.nodes[self.node][2]
        self.before = needed(self.steps, self.reduced)
        self.after = [
            (position, step)
            for position, step in enumerate(self.steps)
            if isinstance(step, (Part, int)) or position > self.node
        ]
        self.last = len(self.steps) - 1 if self.stores == (len(self.steps) - 1,) else -1
        self.widened = _widened(self.steps, self.node, self.reduced)
        self.reads = [step for step in (self.steps[position] for position in self.before) if isinstance(step, int)]

    def bind(self, loop: Any) -> Launch:
        """Return the launch of this kernel over a loop: a function of the operands' memory."""
        slots, outputs, walk = slots_of(self.operands, loop), len(self.stores), reduction.Walk(loop)
        whole = self._in_any_order(loop) or self._of_views(loop, walk, slots)

        def launch(stream: Any, *operands: Any) -> None:
            given = [_operand(slot, *pair) for slot, pair in zip(slots, zip(*[iter(operands)] * 2), strict=True)]
            outs = [walk.output(place) for place in given[:outputs]]
            quietly(whole or self._reduce, walk, outs, given[outputs:])

        return launch

    def bind_call(self, loop: Any, rule: Any, signature: Any, gaps: Any) -> Launch:
        """Return the call of this kernel over a loop: a function of a stream and operands that returns a new array."""
        del gaps
        slots, walk = slots_of(self.operands, loop), reduction.Walk(loop)
        found = self._at_once(loop, walk, slots)
        if found is None and self._in_any_order(loop) is None:
            found = self._in_lanes(loop, walk, slots)
        if found is not None:
            return bind_reduction(*found, rule, signature)
        launch, takes = self.bind(loop), rule.numbers[1:]

        def call(stream: Any, *operands: Any) -> Any:
            given: list[Any] = []
            for operand, take in zip(operands, takes, strict=True):
                given += (operand._buffer, operand._offset) if take is None else (take(operand), 0)
            buffer = allocate(signature.nbytes, stream)
            launch(stream, buffer, 0, *given)
            return operands[0].__class__._make(buffer, 0, signature)

        return call

    def _at_once(self, loop: Any, walk: reduction.Walk, slots: list[Slot]) -> Bound | None:
        """Return what `bind_reduction` takes if one call of NumPy makes the result itself, in any order."""
        if walk.segments.total > 1 or len(self.operands) != 2 or not isinstance(self.steps[self.stores[0]], Part):
            return None
        node = self.steps[self.node]
        if len(node.dtypes) == 1:
            found = _whole(node, self.steps, self.reduced[0], loop)
        else:
            found = None if walk.outer else _position(node, self.steps, self.reduced)
        if found is None:
            return None
        out_dtype, out_shift, out_strides = slots[0]
        assert out_strides is not None  # only a number has none
        shape, strides = walk.output_geometry(out_strides)
        return found[0], [(out_dtype, out_shift, strides), slots[1]], [shape, loop.shape], (1,)

    def _in_lanes(self, loop: Any, walk: reduction.Walk, slots: list[Slot]) -> Bound | None:
        """Return what `bind_reduction` takes if one ufunc reduces views of the operand, and there are few lanes."""
        source, node = self.widened, self.steps[self.node]
        if source is None or walk.outer or walk.segments.total > 1 or len(self.stores) > 1:
            return None
        (out_dtype, out_shift, out_strides), (dtype, shift, strides) = slots[0], slots[1 + source]
        assert out_strides is not None  # only a number has none
        assert strides is not None
        (part, *others) = itertools.islice(reduction.parts_of(walk, strides), 2)
        if others or math.prod(part.lanes) > reduction.KEPT_LANES:
            return None
        shape, out_strides = walk.output_geometry(out_strides, out_dtype.itemsize)
        views = [view for view in (part.whole, part.rest) if view is not None]
        numbers = [place for place, slot in enumerate(slots[1:], 1) if slot[2] is None]
        if len(self.operands) > 2 + len(numbers):  # what comes after reads another array
            return None
        run = self._finished(reduction.in_lanes(walk, node, part), len(views), [place - 1 for place in numbers])
        return (
            run,
            [(out_dtype, out_shift, out_strides), *[(dtype, shift + apart, steps) for _, steps, apart in views]]
            + [slots[place] for place in numbers],
            [shape, *[tuple(size) for size, _, _ in views], *[()] * len(numbers)],
            (*[1 + source] * len(views), *numbers),
        )

    def _finished(self, reduced: Function, views: int, numbers: list[int]) -> Function:
        """Return ``run(*views, *numbers, out=out)``: a reduction of views, and what comes after it."""
        steps = [step for _, step in self.after if isinstance(step, tuple) and not isinstance(step, Part)]
        if not numbers and (not steps or (len(steps) == 1 and steps[0][0].assigns)):
            return lambda *given, out: reduced(_assign, given, out)
        inputs: list[Any] = [None] * (len(self.operands) - 1)

        def run(*given: np.ndarray, out: np.ndarray) -> None:
            known = inputs.copy()
            for place, number in zip(numbers, given[views:]):
                known[place] = number
            reduced(lambda found: self._finish([found], [out], known), given[:views])

        return run

    def _in_any_order(self, loop: Any) -> Function | None:
        """Return the launch of one call of NumPy, if the order has no influence on the result; else None."""
        node = self.steps[self.node]
        kept, count = (*loop.shape[: loop.kept], loop.shape[-2]), loop.segments.total
        if len(node.dtypes) == 1:
            whole = _whole(node, self.steps, self.reduced[0], loop)
        else:
            whole = _searched(node, self.steps, self.reduced) if len(loop.shape) - 2 == loop.kept else None
        if whole is None:
            return None
        function, source = whole
        shape = loop.shape

        def reduce(walk: reduction.Walk, outs: list[np.ndarray], inputs: list[Any]) -> None:
            place = inputs[source]
            view = np.ndarray(shape, place.dtype, place.memory, place.offset, place.strides)
            found: list[Any] = [np.empty(kept, dtype) for dtype in node.dtypes]
            function(view, out=found if len(found) > 1 else found[0])
            found = [part.reshape((*kept[:-1], 1, kept[-1])) for part in found]
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
                if position == self.last:
                    function(*operands, out=outs[0])
                    return
                values[position] = np.empty(max([x.shape for x in operands], key=len), dtype)  # others are numbers
                function(*operands, out=values[position])
        for out, store in zip(outs, self.stores, strict=True):
            out[...] = values[store]


def needed(steps: list[Any], wanted: tuple[int, ...]) -> list[int]:
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


def _whole(node: reduction.Reduce, steps: list[Any], value: int, loop: Any) -> tuple[Function, int] | None:
    """Return ``run(view, out=out)``, which reduces all at once, and the input that it reads; or None."""
    ufunc, dtype = node.combine.whole, node.dtypes[0]
    if ufunc is None or dtype.kind not in node.combine.in_any_order:
        return None
    axes, reduce = (*range(loop.kept, len(loop.shape) - 2), len(loop.shape) - 1), ufunc.reduce
    source = _through(steps, value, "widens")
    if isinstance(source, int):
        if ufunc in reduction.EXTREMES:
            return _extreme(ufunc, axes, dtype), source
        return (lambda view, *, out: reduce(view, axes, dtype, out)), source
    if ufunc in (np.logical_and, np.logical_or) and isinstance(source := _through(steps, value, "tests"), int):
        return (lambda view, *, out: reduce(view, axes, None, out)), source
    is_one = math.prod((*loop.shape[: loop.kept], loop.shape[-2])) == 1  # only then NumPy counts without a copy
    if is_one and ufunc is np.add and isinstance(source := _through(steps, value, "widens", "tests"), int):
        return (lambda view, *, out: out.fill(np.count_nonzero(view))), source
    return None


def _assign(found: np.ndarray, out: np.ndarray) -> None:
    out[...] = found


def _extreme(ufunc: np.ufunc, axes: tuple[int, ...], dtype: np.dtype) -> Function:
    """Return ``run(view, out=out)`` for largest or smallest elements."""
    reduce = ufunc.reduce

    def run(view: np.ndarray, *, out: np.ndarray) -> None:
        reduce(view, axes, dtype, out)
        if np.count_nonzero(out) < out.size:  # a zero, of which NumPy does not tell the sign
            out[...] = reduction.signed(ufunc, out, view, reduce, axis=axes)

    return run


SEARCHES = {np.maximum: "argmax", np.minimum: "argmin"}
"""NumPy finds the first of equals, and NaN before all, in its own dtypes."""


def _search(node: reduction.Reduce, steps: list[Any], values: tuple[int, ...]) -> tuple[str, int] | None:
    """Return NumPy's name of a search along one axis, and the input that it reads; or None."""
    search = SEARCHES.get(node.combine.extreme)  # type: ignore[arg-type]
    source = _through(steps, values[0], "widens") if values else None
    return (search, source) if search and isinstance(source, int) and steps[values[-1]] is POSITION else None


def _position(node: reduction.Reduce, steps: list[Any], values: tuple[int, ...]) -> tuple[Function, int] | None:
    """Return ``run(view, out=out)``, which finds the position of the best element along the last axis; or None."""
    found = _search(node, steps, values)
    if found is None:
        return None
    name, source = found
    return (lambda view, *, out: getattr(view, name)(-1, out)), source


def _searched(node: reduction.Reduce, steps: list[Any], values: tuple[int, ...]) -> tuple[Function, int] | None:
    """Return ``run(view, out=[best, position])``, which finds the best element and its position; or None."""
    found = _search(node, steps, values)
    if found is None:
        return None
    name, source = found

    def run(view: np.ndarray, *, out: list[np.ndarray]) -> None:
        position = getattr(view, name)(-1, keepdims=True)
        out[0][...] = np.take_along_axis(view, position, -1)[..., 0]
        out[1][...] = position[..., 0]

    return run, source


def _through(steps: list[Any], value: int, *kinds: str) -> int | None:
    """Return the input from which a value is made by casts of some kinds alone, of each kind at most one."""
    step = steps[value]
    if isinstance(step, int):
        return step
    kind = getattr(step[0], "kind", "") if isinstance(step, tuple) else ""
    if kind not in kinds:
        return None
    return _through(steps, step[2][0], *[other for other in kinds if other != kind])


def slots_of(operands: Sequence[tuple[str, np.dtype]], loop: Any) -> list[Slot]:
    """Return one slot for each operand, outputs first. The loop has no strides for numbers."""
    arrays = iter(zip(loop.strides, loop.shifts))
    slots: list[Slot] = []
    for kind, dtype in operands:
        strides, shift = (None, 0) if kind == "scalar" else next(arrays)
        size = dtype.itemsize
        slots.append((dtype, shift * size, None if strides is None else tuple([stride * size for stride in strides])))
    return slots


def _operand(slot: Slot, memory: Any, offset: int) -> Any:
    """Return where an operand lies, or a 0-d array for a number."""
    dtype, shift, strides = slot
    return scalar(memory, dtype) if strides is None else reduction.Place(memory.memory, offset + shift, dtype, strides)


def steps_of(expression: Any) -> list[Any]:
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
            case ("reduce" | "scan", how, _, names):
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

    function.assigns = not rounding and assigns(convert)  # type: ignore[attr-defined]
    if not rounding and source.kind in "biufc" and target == np.bool_:
        function.kind = "tests"  # type: ignore[attr-defined]
    elif not rounding and (np.can_cast(source, target) or (is_narrow_float(source) and target == np.float32)):
        function.kind = "widens"  # type: ignore[attr-defined]
    return function
