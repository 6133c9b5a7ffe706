"""`Plan`: all parts of a call that do not depend on addresses or values, decided once and frozen.

A plan joins two independent halves: the `Expression` (dtypes only) and the `Loop` (geometry only). A kernel serves
every loop of its loop class, so a new shape costs planning, not compilation::

    shapes, strides -> broadcast -> result layout -> collapsed loop -> loop class ─┐
    dtypes, scalars -> result_type -> expression ──────────────────────────────────┴-> kernel -> bound to the loop

A plan is a list of launches, nearly always one. A reduction in segments has two, with scratch memory between them
(`tilearray.engine.stages`). A product through a library may have copies before and after it.

A `Recipe` keeps the result of the lower line for all operands of the same traits. It also keeps the kernel of each
layout pattern that it has planned. Most new shapes have a known pattern, and reuse its kernel without full planning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np

from tilearray import dtypes
from tilearray.engine.backend import AnyLoop, Call, Kernel, LaunchList, ProductKernel, Products
from tilearray.engine.caches import KERNELS, RECIPES
from tilearray.engine.call import (
    BindNew,
    Careful,
    Move,
    Stage,
    bind_new,
    call_of,
    padded_call,
    rule_of,
    selecting_call,
    staged_call,
)
from tilearray.engine.devices import Device, common_device
from tilearray.engine.expression import Expression, copying
from tilearray.engine.operation import OperandType, Operation, TypedScalar, expression_of
from tilearray.engine.signature import Signature, Traits, dense_signature, interned, signature_of, traits_of
from tilearray.engine.stages import reductions_of, split_scan, split_selection
from tilearray.geometry.fast_path import pattern_of
from tilearray.geometry.layout import Layout
from tilearray.geometry.loop import LayoutCase, Loop, flat_loop, make_loop
from tilearray.geometry.reduction import make_reduction
from tilearray.geometry.result import geometry_of, row_result_layout
from tilearray.geometry.scan import ScanLoop, make_scan
from tilearray.geometry.shapes import broadcast_shapes, reduced_shape
from tilearray.geometry.strides import broadcast_strides, dense_strides
from tilearray.promotion.operands import zero_dim
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.semantics import Semantics


@dataclass(slots=True, eq=False)
class Plan:
    """One operation, ready to run on all memory of these signatures.

    Attributes
    ----------
    operation, expression, loop
        The inputs of the plan.
    signature : Signature
        The signature of the result, or of the target.
    kernel : object
        The backend's kernel, or None if there are no elements.
    call : callable
        ``call(stream, *operands)``, or ``call(stream, out, *operands)`` if there is a target. It returns the result.
    stages : tuple of Stage
        All launches in order, if there are several; `loop` and `kernel` are then those of the first one.
    """

    operation: Operation
    expression: Expression
    loop: AnyLoop
    signature: Signature
    kernel: Any
    call: Call
    stages: tuple[Stage, ...] = ()


Key = Signature | ScalarClass | TypedScalar

PATTERNS = 64
"""The number of patterns that a recipe keeps."""

_new_loop = cast(Callable[..., Loop], tuple.__new__)  # pyright: ignore[reportUnknownMemberType]
"""Makes a `Loop` in half the time that the class needs."""


class Recipe:
    """The common part of all calls of an operation on operands of the same traits.

    Attributes
    ----------
    operation, expression, device
        The computation and its device.
    facts_of_matrix : callable
        The function of the backend that `pattern_of` calls.
    rule : Rule
        The checks of each call.
    result : Traits
        The traits of the new array, or of the target.
    known : dict
        For each pattern of the operands' layouts: the case of its loops, their kernel, and the function that binds
        the kernel to a loop.
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
        """Plan a call that makes a new array. If its pattern is known, reuse the kernel of the pattern."""
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
        """Plan a call from its layouts."""
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
        """Keep the kernel of a plan for all loops of its pattern."""
        if len(self.known) >= PATTERNS:
            self.known.clear()
        self.known[pattern] = plan.loop.case, plan.kernel, bind_new(self.device.backend, plan.kernel, self.rule)

    def _new_signature(self, layout: Layout, keys: Sequence[Key]) -> Signature:
        """Return the signature of a new array. Often an operand already has it."""
        traits = self.result
        for key in keys:
            if isinstance(key, Signature) and key.layout is layout and key.traits is traits and key.interned:
                return key
        return interned(layout, traits)


class ReductionRecipe(Recipe):
    """The common part of all calls of a reduction on operands of the same traits."""

    __slots__ = ()

    def plan_new(self, keys: Sequence[Key], layouts: list[Layout]) -> Plan:
        """Plan a call that makes a new array: with one launch, or with two and scratch memory between them."""
        from tilearray.engine.reducing import Reducing  # here: few programs need it

        walk = self.operation.reduced
        assert walk is not None
        if walk.multiplies:
            return self._plan_product(keys, *layouts)
        if walk.spread or reductions_of(self.expression) > 1:
            return self._plan_rows(keys, layouts[0])
        shape = layouts[0].shape
        kept = reduced_shape(shape, walk.axes, False)
        layout = Layout.of(kept)
        target = Layout.of(reduced_shape(shape, walk.axes, True)) if walk.keepdims else layout
        signature = signature_of(target, self.result.dtype, self.device)
        if not layout.size:
            return Plan(self.operation, self.expression, flat_loop(0, 1), signature, None, self._empty(signature))
        arrays = _arrays(keys)
        strides = tuple([broadcast_strides(each.shape, each.strides, shape) for each in layouts])
        reducing = Reducing(walk, shape, strides, arrays[0].itemsize)
        parts = reducing.parts(self.expression, whole=not self.device.backend.cuts(self.expression))
        assert parts is not None  # only other inputs may not fit
        first, *rest = [
            _stage(part.expression, part.loop, [] if turn else _read(keys, part.reads), self.device, part.reads)
            for turn, part in enumerate(parts)
        ]
        if not rest:
            call = call_of(self.rule, first.loop, first.kernel, keys, signature, new=True)
            return Plan(self.operation, self.expression, first.loop, signature, first.kernel, call)
        stages = (first, rest[0])
        count = first.loop.segments.total
        names = first.expression.output_dtypes
        scratch = [dense_signature((layout.size * count,), dtypes.as_dtype(name), self.device) for name in names]
        call = staged_call(self.rule, self.device.backend, signature, stages, tuple(scratch))
        return Plan(self.operation, self.expression, first.loop, signature, first.kernel, call, stages)

    def _plan_rows(self, keys: Sequence[Key], given: Layout) -> Plan:
        """Plan a call that goes over rows several times, in one launch: `held_rows` was asked before."""
        walk = self.operation.reduced
        assert walk is not None
        if walk.spread:
            target = row_result_layout(given, walk.axes)
            outputs = target.strides
        else:
            target = Layout.of(reduced_shape(given.shape, walk.axes, walk.keepdims))
            outputs = Layout.of(reduced_shape(given.shape, walk.axes, False)).strides
        signature, arrays = signature_of(target, self.result.dtype, self.device), _arrays(keys)
        loop = make_reduction(
            given.shape, walk.axes, [outputs], [given.strides], arrays[0].itemsize, held=True, spread=walk.spread
        )
        stage = _stage(self.expression, loop._replace(held=True), arrays, self.device, ())
        call = call_of(self.rule, stage.loop, stage.kernel, keys, signature, new=True)
        return Plan(self.operation, self.expression, stage.loop, signature, stage.kernel, call)

    def _plan_product(self, keys: Sequence[Key], x1: Layout, x2: Layout) -> Plan:
        """Plan a matrix product without empty axes, in one launch, or in one call of a library that takes it."""
        from tilearray.geometry.product import make_product, one_column, one_row  # here: few programs need it

        shape = (*x1.shape[-2:-1], *(x2.shape[-1:] if x2.ndim > 1 else ()))  # a vector has no axis in the result
        x1, x2 = one_row(x1), one_column(x2)
        stacks = broadcast_shapes(x1.shape[:-2], x2.shape[:-2], function=self.operation.name)
        layout = Layout.of((*stacks, x1.shape[-2], x2.shape[-1]))
        strides = [broadcast_strides(each.shape, each.strides, (*stacks, *each.shape[-2:])) for each in (x1, x2)]
        loop = make_product(stacks, (x1.shape[-2], x2.shape[-1], x1.shape[-1]), [layout.strides, *strides])
        signature = signature_of(Layout.of((*stacks, *shape)), self.result.dtype, self.device)
        arrays = _arrays(keys)
        products = library_of(arrays, self.result.dtype)
        if products is None:
            kernel = _stage(self.expression, loop, arrays, self.device, ()).kernel
        else:
            kernel = products.kernel(self.result.dtype, loop, (arrays[0].aligned, arrays[1].aligned))
            if any(kernel.copies):
                call = self._padded(kernel, loop, [signature, *arrays])
                return Plan(self.operation, self.expression, loop, signature, kernel, call)
        call = call_of(self.rule, loop, kernel, keys, signature, new=True)
        return Plan(self.operation, self.expression, loop, signature, kernel, call)

    def _padded(self, kernel: ProductKernel, loop: Loop, arrays: Sequence[Signature]) -> Call:
        """Return the call of a product of a library, between copies to and from memory where it is faster.

        The arrays are the result and both operands.
        """
        backend = self.device.backend
        moves: list[Move | None] = []
        for place, (copy, array) in enumerate(zip(kernel.copies, arrays, strict=True)):
            if copy is None:
                moves.append(None)
                continue
            strides = (copy.padded, copy.strides) if place else (copy.strides, copy.padded)
            moving = make_loop(copy.shape, strides)
            moved = kernel_of(copying(array.dtype), moving, (True, array.aligned), self.device)
            moves.append(Move(backend.bind(moved, moving), copy.size * array.itemsize))
        return padded_call(backend, arrays[0], backend.bind(kernel, loop), moves)

    def _empty(self, signature: Signature) -> Call:
        return call_of(self.rule, flat_loop(0, 1), None, (), signature, new=True)


class ScanRecipe(Recipe):
    """The common part of all calls of a scan on operands of the same traits."""

    __slots__ = ()

    def plan_new(self, keys: Sequence[Key], layouts: list[Layout]) -> Plan:
        """Plan a call that makes a new array."""
        scanned = self.operation.scanned
        assert scanned is not None
        (given,), axis = layouts, scanned.axis
        more = [size + (scanned.initial and place == axis) for place, size in enumerate(given.shape)]
        layout = Layout.of(tuple(more))
        signature = signature_of(layout, self.result.dtype, self.device)
        if not given.size:
            empty = flat_loop(0, 1)
            call = call_of(self.rule, empty, None, keys, signature, new=True)
            return Plan(self.operation, self.expression, empty, signature, None, call)
        shift, itemsize = layout.strides[axis] if scanned.initial else 0, _arrays(keys)[0].itemsize
        loop = _shifted(make_scan(given.shape, axis, [layout.strides], [given.strides], itemsize), shift)
        is_columns = loop.case is LayoutCase.SCAN_COLUMNS
        if is_columns and loop.segments.total > 1 and not self.device.backend.scans_whole:
            return self._plan_segments(keys, given, loop.segments.total, signature, shift)
        stage = _stage(self.expression, loop, _arrays(keys), self.device, ())
        call = call_of(self.rule, loop, stage.kernel, keys, signature, new=True)
        return Plan(self.operation, self.expression, loop, signature, stage.kernel, call)

    def _plan_segments(self, keys: Sequence[Key], given: Layout, count: int, result: Signature, shift: int) -> Plan:
        """Plan a launch that finds the totals of segments of columns, and one that scans."""
        assert self.operation.scanned is not None
        axis, halves = self.operation.scanned.axis, split_scan(self.expression)
        kept = (*given.shape[:axis], 1, *given.shape[axis + 1 :])
        strides = broadcast_strides(kept, dense_strides(kept), given.shape)
        totals = tuple([stride * count for stride in strides])
        itemsize = _arrays(keys)[0].itemsize
        loop = make_scan(given.shape, axis, [totals], [given.strides], itemsize)
        first = _stage(halves.first, loop, _arrays(keys), self.device, halves.first_reads)
        loop = make_scan(given.shape, axis, [result.layout.strides], [totals, given.strides], itemsize, leading=1)
        second = _stage(halves.second, _shifted(loop, shift), _arrays(keys), self.device, halves.second_reads)
        scratch = (dense_signature((prod(kept) * count,), dtypes.as_dtype(halves.names[0]), self.device),)
        call = staged_call(self.rule, self.device.backend, result, (first, second), scratch)
        return Plan(self.operation, self.expression, first.loop, result, first.kernel, call, (first, second))


class SelectionRecipe(Recipe):
    """The common part of all calls of a selection on operands of the same traits."""

    __slots__ = ()

    def plan_new(self, keys: Sequence[Key], layouts: list[Layout]) -> Plan:
        """Plan launches that count, add the counts, and store. The result is a tuple of arrays with one axis."""
        from tilearray.geometry.selection import make_selection  # here: few programs need it

        shape, strides = layouts[0].shape, [layout.strides for layout in layouts]
        signature, arrays = signature_of(Layout.of((0,)), self.result.dtype, self.device), _arrays(keys)
        names = [dtypes.as_dtype(name) for name in self.expression.output_dtypes]
        if not layouts[0].size:
            call = selecting_call(self.device, (), names)
            return Plan(self.operation, self.expression, flat_loop(0, 1), signature, None, call)
        halves, nowhere = split_selection(self.expression), (0,) * len(shape)
        reads = halves.first_reads
        loop = make_selection(shape, [nowhere], [strides[place] for place in reads])
        first = _stage(halves.first, loop, [arrays[place] for place in reads], self.device, reads)
        assert halves.between is not None
        counts = make_selection(shape, [nowhere], [nowhere])
        between = _stage(halves.between, counts, [], self.device, ())
        reads = halves.second_reads
        merges = not any(node[0] == "coordinate" for node in self.expression.nodes)
        written = [nowhere] * (len(names) + 1)
        loop = make_selection(shape, written, [strides[place] for place in reads], merges=merges)
        second = _stage(halves.second, loop, [arrays[place] for place in reads], self.device, reads)
        stages = (first, between, second)
        call = selecting_call(self.device, stages, names)
        return Plan(self.operation, self.expression, loop, signature, first.kernel, call, stages)


class FoldRecipe(Recipe):
    """The common part of all calls of a fold on operands of the same traits. Arrays have the axes of the loop."""

    __slots__ = ()

    def plan(self, keys: Sequence[Key], layouts: list[Layout], out: Signature | None) -> Plan:
        """Plan a call that writes to a target."""
        from tilearray.geometry.fold import make_fold  # here: few programs need it

        assert out is not None
        loop = make_fold(out.layout.shape, [out.layout.strides, *[layout.strides for layout in layouts]])
        arrays = [out, *_arrays(keys)]
        aligned = _aligned(arrays, loop) if self.device.wants_alignment else ALIGNED[: len(arrays)]
        kernel = kernel_of(self.expression, loop, aligned, self.device)
        call = call_of(self.rule, loop, kernel, keys, out, new=False)
        return Plan(self.operation, self.expression, loop, out, kernel, call)


class SegmentRecipe(Recipe):
    """The common part of all calls that walk the segments of one array, the first, and write a target of any shape."""

    __slots__ = ()

    def plan(self, keys: Sequence[Key], layouts: list[Layout], out: Signature | None) -> Plan:
        """Plan a call that writes to a target."""
        from tilearray.geometry.selection import make_bins, make_selection  # here: few programs need it

        assert out is not None
        given, *others = layouts
        nowhere = (0,) * given.ndim
        walked = [nowhere], [given.strides, *[nowhere] * len(others)]
        kind, *parts = self.expression.nodes[-1]
        if kind == "bins":
            loop = make_bins(given.shape, *walked, cast(int, parts[-1]))
        else:
            loop = make_selection(given.shape, *walked)
        stage = _stage(self.expression, loop, _arrays(keys), self.device, ())
        call = call_of(self.rule, loop, stage.kernel, keys, out, new=False)
        return Plan(self.operation, self.expression, loop, out, stage.kernel, call)


class RowsRecipe(Recipe):
    """The common part of all calls that sort or partition the rows of one dense array of two axes, the first."""

    __slots__ = ()

    def plan(self, keys: Sequence[Key], layouts: list[Layout], out: Signature | None) -> Plan:
        """Plan a call that writes to a target: dense rows, or the counts of blocks."""
        from tilearray.geometry.sorting import make_partition, make_rows, swept_block  # here: few programs need it

        assert out is not None
        rows, extent = layouts[0].shape
        whole = str(self.expression.nodes[-1][0]).endswith("sort")
        dense = (0 if rows == 1 else extent, 1)
        operands = [dense] * 2 + [(0, 0)] * (len(layouts) - 1)
        is_swept = any(node[0] == "rank" and node[3] == "swept" for node in self.expression.nodes)
        block = swept_block(out.itemsize) if is_swept else 0
        loop = make_rows(rows, extent, operands) if whole else make_partition(rows, extent, operands, block)
        stage = _stage(self.expression, loop, _arrays(keys), self.device, ())
        call = call_of(self.rule, loop, stage.kernel, keys, out, new=False)
        return Plan(self.operation, self.expression, loop, out, stage.kernel, call)


class RunsRecipe(Recipe):
    """The common part of all calls that count or store the distinct elements of runs.

    The first array has the elements, and the second one says where runs start. The target has a size for each run, or
    room for all elements.
    """

    __slots__ = ()

    def plan(self, keys: Sequence[Key], layouts: list[Layout], out: Signature | None) -> Plan:
        """Plan a call that writes to a target."""
        from tilearray.geometry.sorting import make_runs  # here: few programs need it

        assert out is not None
        given, starts, *others = layouts
        loop = make_runs(starts.size, given.size, [(1,), (1,), (0,), *[(0,)] * len(others)])
        stage = _stage(self.expression, loop, _arrays(keys), self.device, ())
        call = call_of(self.rule, loop, stage.kernel, keys, out, new=False)
        return Plan(self.operation, self.expression, loop, out, stage.kernel, call)


def library_of(arrays: Sequence[Signature], dtype: np.dtype) -> Products | None:
    """Return the library of a device that multiplies arrays as they lie; None if a kernel does, or there is none."""
    products = common_device("matmul", arrays).backend.products
    if products is None or any(array.dtype != dtype for array in arrays) or not products.takes(dtype):
        return None
    layouts = [array.layout for array in arrays]
    if not all(products.readable(layout.shape, layout.strides) for layout in layouts):
        return None
    if len(layouts) == 2 and all(layout.ndim == 2 for layout in layouts):
        (rows, depth), columns = layouts[0].shape, layouts[1].shape[1]
        if rows > 1 and columns > 1 and products.is_small(dtype, rows, depth, columns):
            return None
    return products


def _arrays(keys: Sequence[Key]) -> list[Signature]:
    return [key for key in keys if isinstance(key, Signature)]


def _read(keys: Sequence[Key], reads: tuple[int, ...]) -> list[Signature]:
    """The signatures of the arrays among operands that a launch reads, in its order."""
    return _arrays([keys[place] for place in reads])


def _shifted(loop: ScanLoop, shift: int) -> ScanLoop:
    """Return a loop whose output begins some elements further."""
    first, *others = loop.shifts
    return loop._replace(shifts=(first + shift, *others))


def _stage(
    expression: Expression,
    loop: Any,
    arrays: list[Signature],
    device: Device,
    reads: tuple[int, ...],
) -> Stage:
    """Return one launch of several. Its outputs are new memory, as are the inputs before those that `arrays` has."""
    aligned = ALIGNED[: len(loop.strides)]
    if device.wants_alignment:
        written = [(True, dtypes.as_dtype(name).itemsize) for name in expression.output_dtypes]
        read = [(array.aligned, array.itemsize) for array in arrays]
        scratch = [(True, 16)] * (len(aligned) - len(written) - len(read))
        operands = zip([*written, *scratch, *read], loop.shifts, strict=True)
        aligned = tuple([start and shift * size % 16 == 0 for (start, size), shift in operands])
    return Stage(expression, loop, kernel_of(expression, loop, aligned, device), reads)


def make_plan(
    operation: Operation, semantics: Semantics, keys: Sequence[Key], out: Signature | None, careful: Careful
) -> Plan:
    """Plan an operation for operands of these keys. `out` is the signature of the target, if there is a target."""
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
    """Decide the parts that do not depend on layouts. If the call is invalid, raise an error."""
    arrays = [operand for operand in operands if isinstance(operand, Traits)]
    device = common_device(operation.name, arrays if out is None else [*arrays, out])
    types = types_of(operands, semantics)
    expression = expression_of(operation, semantics, types, None if out is None else out.dtype)
    operation.check_device(device)
    result = out or traits_of(expression.result, device, True, all(array.is_0d for array in arrays))
    if operation.selects:
        return SelectionRecipe(operation, expression, device, result, careful)
    kinds = [str(node[0]) for node in expression.nodes]
    written = _WRITTEN.get(next((kind for kind in ("distinct", "windows") if kind in kinds), kinds[-1]))
    if written is not None:
        return written(operation, expression, device, result, careful)
    made = ScanRecipe if operation.scanned else ReductionRecipe if operation.reduced else Recipe
    return made(operation, expression, device, result, careful)


_WRITTEN = {
    **dict.fromkeys(("fold", "fold_words", "fold_places", "windows"), FoldRecipe),
    **dict.fromkeys(("bins", "marks"), SegmentRecipe),
    **dict.fromkeys(("digits", "histograms", "rank", "sort", "argsort"), RowsRecipe),
    **dict.fromkeys(("sizes", "distinct"), RunsRecipe),
}
"""Recipes of expressions that only write to targets, by their last node, or by one that others follow."""


def types_of(keys: tuple[Key | Traits, ...], semantics: Semantics) -> tuple[OperandType, ...]:
    """Return the operand types of keys. Some semantics distinguish 0-d arrays from other arrays."""
    found = [key.traits if isinstance(key, Signature) else key for key in keys]
    return tuple([_type_of(key, semantics.zero_dim) if isinstance(key, Traits) else key for key in found])


def _type_of(array: Traits, apart: bool) -> OperandType:
    return zero_dim(array.dtype) if apart and array.is_0d else array.dtype


ALIGNED = (True,) * 64
"""The alignment of operands on a device that ignores alignment."""


def kernel_of(expression: Expression, loop: AnyLoop, aligned: tuple[bool, ...], device: Device) -> Kernel:
    """Return the kernel of an expression for the class of a loop, compiled on the first call."""
    backend = device.backend
    loop_class = backend.loop_class(loop)
    key = (expression, loop_class, aligned, device.name)
    kernel = KERNELS.get(key)
    if kernel is None:
        kernel = KERNELS.put(key, backend.compile(expression, loop_class, aligned))
    return kernel


def list_launch_of(
    expression: Expression, loop_class: Any, aligned: tuple[bool, ...], loops: Sequence[Loop], device: Device
) -> LaunchList:
    """Return the launch of an expression over a list of loops of a class. The first call compiles its kernel."""
    lists = device.backend.lists
    assert lists is not None  # the caller has asked
    key = ("list", expression, loop_class, aligned, device.name)
    kernel = KERNELS.get(key)
    if kernel is None:
        kernel = KERNELS.put(key, lists.compile(expression, loop_class, aligned))
    return lists.bind(kernel, loops)


def _aligned(operands: list[Signature], loop: Loop | ScanLoop) -> tuple[bool, ...]:
    """Return for each operand whether the element at the start of the loop is 16-byte aligned."""
    if not any(loop.shifts):
        return tuple([operand.aligned for operand in operands])
    return tuple(
        [
            operand.aligned and (shift * operand.itemsize) % 16 == 0
            for operand, shift in zip(operands, loop.shifts, strict=True)
        ]
    )
