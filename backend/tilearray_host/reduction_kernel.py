"""Expressions with a reduction, executed by NumPy: what is computed before it, the reduction, and what comes after.

`tilearray_host.reduction` reduces in the order that every device keeps. If the order has no influence, or may be any,
one call of NumPy reduces a whole view.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tilearray_host import reduction
from tilearray_host.calls import Slot, bind_reduction
from tilearray_host.casts import assigns, caster, dtype_named, is_narrow_float, scalar
from tilearray_host.float_errors import quietly
from tilearray_host.functions import FORWARDS, FORWARDS_OF_COMPLEX, forwards, function_named
from tilearray_host.lanes import Bound, finish
from tilearray_host.memory import allocate
from tilearray_host.reduction_functions import LEAST, LEAST_OF_FLOAT32, MOST, MOST_OF_FLOAT32, OF_REDUCTIONS
from tilearray_host.rounded_casts import rounded_caster
from tilearray_host.scratch import give_back, layout_of, take
from tilearray_host.threads import in_threads

Ints = tuple[int, ...]
Launch = Callable[..., None]
Function = Callable[..., Any]
Written = tuple[Function, list[Slot], list[tuple[int, ...]], tuple[int, ...]]
"""The first arguments of `tilearray_host.calls.bind_reduction`."""


class Part(NamedTuple):
    """One of the values of a reduction."""

    position: int


class Whole(NamedTuple):
    """How all elements are combined at once.

    Attributes
    ----------
    combine : callable
        ``combine(*views)`` returns the values of a reduction; a view has the shape of the loop, a number has no axes.
    places : list of int
        The operands that it takes, by their places among all operands.
    """

    combine: Callable[..., list[Any]]
    places: list[int]


POSITION = "position"
_INT64 = np.dtype(np.int64)
MOST_VIEWS = 8
"""The most views of a call that is written out."""
COMPUTED = 2**14
"""The elements from which values that are reduced in any order are computed for whole rows of a block."""
ANY_ORDER = 2**17
"""The elements of a block of such values."""
SMALL = 2**20
"""The elements up to which a launch keeps the parts of its loop."""


class ReductionKernel:
    """An expression with a reduction, with its functions looked up."""

    def __init__(self, expression: Any) -> None:
        kinds = [("array", name) for name in expression.output_dtypes] + list(expression.inputs)
        self.operands = [(kind, dtype_named(name)) for kind, name in kinds]
        steps = steps_of(expression)
        node = next(position for position, step in enumerate(steps) if isinstance(step, reduction.Reduce))
        self._look_at(steps, node, expression.nodes[node][2], expression.outputs)
        self._usual = _usual_norm(self, expression)

    def _look_at(self, steps: list[Any], node: int, reduced: tuple[int, ...], stores: tuple[int, ...]) -> None:
        """Find the parts of an expression: its steps, the one that reduces, what it reduces, and what is stored."""
        self.steps, self.reduced, self.stores = steps, reduced, stores
        self.reduce: reduction.Reduce = steps[node]
        before = needed(self.steps, self.reduced)
        self.reads = [place for place in before if not isinstance(self.steps[place], tuple)]
        self.before = [place for place in before if isinstance(self.steps[place], tuple)]
        after = list(enumerate(self.steps))[node + 1 :]
        self.parts = {place: step.position for place, step in after if isinstance(step, Part)}
        self.after = [place for place, step in after if isinstance(step, tuple) and place not in self.parts]
        read = {argument for place in self.after for argument in self.steps[place][2]}
        self.numbers = {place: step for place, step in enumerate(self.steps) if isinstance(step, int) and place in read}
        self.last = len(self.steps) - 1 if self.stores == (len(self.steps) - 1,) else -1
        only = self.last >= 0 and len(self.parts) == 1 and all(_assigns(self.steps[place][0]) for place in self.after)
        self.assigns = only and len(self.after) <= 1
        self.as_it_is = _is_read_as_it_is(self.steps, self.reduce, self.reduced)

    def bind(self, loop: Any) -> Launch:
        """Return the launch of this kernel over a loop: a function of the operands' memory."""
        slots, walk = slots_of(self.operands, loop), reduction.Walk(loop)
        run = self._run(loop, walk, slots)
        if self._usual is not None:
            usual, stored = self._usual._run(loop, walk, slots), (0, *walk.output(slots[0]))
            run = _usually_launched(usual, run, stored, len(self.stores) > 1)

        def launch(stream: Any, *operands: Any) -> None:
            quietly(run, operands)

        return launch

    def _run(self, loop: Any, walk: reduction.Walk, slots: list[Slot]) -> Callable[[Sequence[Any]], None]:
        """Return ``run(operands)``."""
        whole = self._in_any_order(loop, slots)
        return self._in_parts(loop, walk, slots) if whole is None else self._finishing(whole, loop, walk, slots)

    def bind_call(self, loop: Any, rule: Any, signature: Any, gaps: Any) -> Launch:
        """Return the call of this kernel over a loop: a function of a stream and operands that returns a new array."""
        del gaps
        slots, walk = slots_of(self.operands, loop), reduction.Walk(loop)
        found = self._at_once(loop, walk, slots)
        usual = None if self._usual is None else self._usual._in_a_call(loop, walk, slots)
        if found is None:
            found = self._in_a_call(loop, walk, slots)
        if found is None and usual is None and self._in_any_order(loop, slots) is None:
            found = self._in_a_part(walk, slots)
            if found is not None and self._usual is not None:
                part = self._usual._in_a_part(walk, slots)
                assert part is not None  # it reads the same views
                found = (_usually(part[0], found[0]), *found[1:])
        if found is not None:
            return bind_reduction(*found, rule, signature)
        call = self._launching(loop, rule, signature)
        return call if usual is None else _usually_called(bind_reduction(*usual, rule, signature), call, signature)

    def _launching(self, loop: Any, rule: Any, signature: Any) -> Launch:
        """Return a call that makes memory for the result, and launches this kernel."""
        launch, numbers = self.bind(loop), rule.numbers[1:]

        def call(stream: Any, *operands: Any) -> Any:
            given: list[Any] = []
            for operand, number in zip(operands, numbers, strict=True):
                given += (operand._buffer, operand._offset) if number is None else (number(operand), 0)
            buffer = allocate(signature.nbytes, stream)
            launch(stream, buffer, 0, *given)
            return operands[0].__class__._make(buffer, 0, signature)

        return call

    def _at_once(self, loop: Any, walk: reduction.Walk, slots: list[Slot]) -> Written | None:
        """Return what `bind_reduction` takes if one call of NumPy makes the result itself, in any order."""
        stored = self.steps[self.stores[0]]
        if walk.segments.total > 1 or len(self.stores) > 1 or not isinstance(stored, Part):
            return None
        node = self.reduce
        found: tuple[Any, ...] | None
        if len(node.dtypes) == 1:
            given = (node, self.steps, self.reduced[0], loop)
            found = _whole(*given) or _products(*given)
        else:
            found = None if walk.outer else _position(node, self.steps, self.reduced)
        if found is None or any(slots[1 + source][2] is None for source in found[1:]):
            return None
        out_dtype, out_shift, out_strides = slots[0]
        assert out_strides is not None  # only a number has none
        shape, strides = walk.output_geometry(out_strides)
        read = tuple([1 + source for source in found[1:]])
        views = [(out_dtype, out_shift, strides), *[slots[place] for place in read]]
        return found[0], views, [shape, *[loop.shape] * len(read)], read

    def _bound(self, walk: reduction.Walk, slots: list[Slot]) -> Bound:
        """Return the reduction in parts over a loop."""
        strides = [
            walk.positions() if self.steps[node] is POSITION else self._slot(slots, node)[2] for node in self.reads
        ]
        return Bound(self, self.reduce, walk, strides, self.as_it_is)

    def _slot(self, slots: list[Slot], node: int) -> Slot:
        """Return the slot of an input."""
        return slots[len(self.stores) + self.steps[node]]

    def _in_a_part(self, walk: reduction.Walk, slots: list[Slot]) -> Written | None:
        """Return what `bind_reduction` takes if all is one part; else None."""
        bound = self._bound(walk, slots)
        (place, *others) = itertools.islice(bound.places(), 2)
        if others or len(self.stores) > 1 or len(place.part.views) > MOST_VIEWS or POSITION in self.steps:
            return None
        out_dtype, shift, out_strides = slots[0]
        assert out_strides is not None  # only a number has none
        shape, strides = walk.output_geometry(out_strides, out_dtype.itemsize)
        found: list[Slot] = [(out_dtype, shift, strides)]
        shapes, reads = [shape], list[int]()
        for view in place.part.views:
            node = self.reads[view.read]
            dtype, shift, given = self._slot(slots, node)
            found.append((dtype, shift + view.distance, None if given is None else view.strides))
            shapes.append(view.shape)
            reads.append(1 + self.steps[node])
        for number in self.numbers.values():
            found.append(slots[1 + number])
            shapes.append(())
            reads.append(1 + number)
        if len(reads) < len(found) - 1 or found[1][2] is None:
            return None
        return place.part.run, found, shapes, tuple(reads)

    def _in_parts(self, loop: Any, walk: reduction.Walk, slots: list[Slot]) -> Callable[[Sequence[Any]], None]:
        """Return ``run(operands)``, which reduces part after part."""
        if POSITION in self.steps:
            batches = [(self._bound(walk, slots), slots)]
        else:
            loops = reduction.batches(loop, len(self.stores))
            all_slots = [slots_of(self.operands, each) for each in loops]
            batches = [(self._bound(reduction.Walk(e), s), s) for e, s in zip(loops, all_slots, strict=True)]
        several = len(self.stores) > 1

        def parts() -> Iterator[Work]:
            return itertools.chain.from_iterable([self._work(*batch) for batch in batches])

        elements = math.prod(loop.shape)
        known = list(parts()) if elements <= SMALL else None

        def reduced(operands: Sequence[Any], work: Work) -> None:
            reduce, given, stored = work
            out = [_viewed(operands, *view) for view in stored]
            reduce(*[_viewed(operands, *view) for view in given], out=out if several else out[0])

        def run(operands: Sequence[Any]) -> None:
            in_threads(partial(reduced, operands), parts() if known is None else known, elements)

        return run if known is None or len(known) > 1 else lambda operands: reduced(operands, known[0])

    def _work(self, bound: Bound, slots: list[Slot]) -> Iterator[Work]:
        """Yield for each part ``run(*given, out=out)``, what it is given, and where it stores."""
        walk, outputs = bound.walk, len(self.stores)
        numbers = [(outputs + number, *slots[outputs + number], ()) for number in self.numbers.values()]
        for part, distances, key in bound.places():
            given: list[Operand] = []
            for view in part.views:
                distance = distances[view.read] + view.distance
                node = self.reads[view.read]
                if self.steps[node] is POSITION:
                    given.append((None, _INT64, distance, view.strides, view.shape))
                else:
                    dtype, shift, strides = self._slot(slots, node)
                    strides = None if strides is None else view.strides
                    given.append((outputs + self.steps[node], dtype, shift + distance, strides, view.shape))
            stored: list[Operand] = [(i, *walk.output(slot, key)) for i, slot in enumerate(slots[:outputs])]
            yield part.run, [*given, *numbers], stored

    def _in_any_order(self, loop: Any, slots: list[Slot]) -> Whole | None:
        """Return how one call of NumPy combines all elements, if their order has no influence or is not given."""
        node, outputs = self.reduce, len(self.stores)
        kept = (*loop.shape[: loop.kept], loop.shape[-2])
        whole: tuple[Any, ...] | None
        if len(node.dtypes) == 1:
            given = (node, self.steps, self.reduced[0], loop)
            whole = _whole(*given) or _products(*given)
        else:
            whole = _searched(node, self.steps, self.reduced) if len(loop.shape) - 2 == loop.kept else None
        function, *sources = whole or (None,)
        places = [outputs + source for source in sources]
        if function is None or any(slots[place][2] is None for place in places):  # a number has no strides
            return self._computed_in_any_order(loop, slots)

        def combine(*views: Any) -> list[Any]:
            found: list[Any] = [np.empty(kept, dtype) for dtype in node.dtypes]
            function(*views, out=found if len(found) > 1 else found[0])
            return found

        return Whole(combine, places)

    def _computed_in_any_order(self, loop: Any, slots: list[Slot]) -> Whole | None:
        """Return the same of computed values. They are computed and reduced block by block, so they stay in the cache.

        The sum of products of two of them takes no memory for the products.
        """
        node = self.reduce
        ufunc = _whole_ufunc(node, loop)
        if len(node.dtypes) != 1 or node.dtypes[0].kind not in node.combine.in_any_order:
            return None
        if POSITION in [self.steps[read] for read in self.reads] or math.prod(loop.shape) < COMPUTED:
            return None
        arrays = self._arrays([read for read in self.reads if self._slot(slots, read)[2] is not None])
        factors = _factors(node, self.steps, self.reduced[0], loop)
        factors = factors if arrays.issuperset(factors) else ()
        if ufunc is None and not factors:
            return None
        axes = (*range(loop.kept, len(loop.shape) - 2), len(loop.shape) - 1)
        kept, dtype, (value,) = (*loop.shape[: loop.kept], loop.shape[-2]), node.dtypes[0], self.reduced
        places = [len(self.stores) + self.steps[read] for read in self.reads]
        elements = math.prod(loop.shape)
        parts = [(part, *_kept(part, axes)) for part in _parts_in_any_order(loop)]
        if not all(is_first for *_, is_first in parts):
            elements = 0  # one thread: parts have results in common
        add_products = _sum_of_products(loop)
        before = [place for place in self.before if place != value or not factors]
        made = [self.steps[place][1] for place in before if place in arrays]
        temporaries = {shape: _temporaries(loop, made, shape) for shape in {_extents(part) for part, *_ in parts}}
        first_array = next(read for read in self.reads if read in arrays)

        def combine(*views: Any) -> list[Any]:
            found = np.empty(kept, dtype)

            def combine_part(work: tuple[tuple[slice, ...], tuple[slice, ...], bool]) -> None:
                part, results, is_first = work
                values: dict[int, Any] = {
                    read: view[part] if view.ndim else view  # a number has no axes
                    for read, view in zip(self.reads, views, strict=True)
                }
                size, given = temporaries[values[first_array].shape]
                piece, unused = take(size), iter(given)
                for place in before:
                    function, kind, arguments = self.steps[place]
                    if place in arrays:
                        shape, offset, strides = next(unused)
                        values[place] = np.ndarray(shape, kind, piece, offset, strides)
                    else:
                        values[place] = np.empty((), kind)
                    function(*[values[argument] for argument in arguments], out=values[place])
                if factors:
                    some = np.empty(found[results].shape, dtype)
                    add_products(*[values[factor] for factor in factors], out=some)
                else:
                    assert ufunc is not None  # as there are no factors
                    some = reduction.reduced(ufunc, values[value], axes, dtype)
                if not is_first:
                    (some,) = node.combine.pair([found[results]], [some])
                found[results] = some
                give_back(piece)

            in_threads(combine_part, parts, elements)
            return [found]

        return Whole(combine, places)

    def _arrays(self, reads: Sequence[int]) -> set[int]:
        """Return the nodes before the reduction that have a value for each element, as some inputs have."""
        found = set(reads)
        for place in self.before:
            if found.intersection(self.steps[place][2]):
                found.add(place)
        return found

    def _in_a_call(self, loop: Any, walk: reduction.Walk, slots: list[Slot]) -> Written | None:
        """Return what `bind_reduction` takes if one call of NumPy combines all elements, and one result is stored."""
        whole, last = self._in_any_order(loop, slots), self.stores[0]
        if whole is None or walk.segments.total > 1 or len(self.stores) > 1 or slots[whole.places[0]][2] is None:
            return None
        combine, places = whole
        numbers = [1 + number for number in self.numbers.values()]
        out_dtype, shift, strides = slots[0]
        assert strides is not None  # only a number has none
        shape, strides = walk.output_geometry(strides)
        given = [slots[place] for place in places]
        shapes = [shape, *[() if slot[2] is None else loop.shape for slot in given], *[()] * len(numbers)]
        count, steps, parts = len(places), self.steps, self.parts.items()
        results = set(self.parts)
        for node in self.after:
            if results.intersection(steps[node][2]):
                results.add(node)

        def run(*views: Any, out: Any) -> None:
            found = combine(*views[:count])
            values = dict(zip(self.numbers, views[count:], strict=True))
            for node, part in parts:
                values[node] = found[part]
            for node in self.after:
                function, dtype, arguments = steps[node]
                values[node] = out if node == last else np.empty(shape if node in results else (), dtype)
                function(*[values[argument] for argument in arguments], out=values[node])
            if last in self.parts:
                out[...] = values[last]

        read = [(out_dtype, shift, strides), *given, *[slots[number] for number in numbers]]
        return run, read, shapes, (*places, *numbers)

    def _finishing(
        self, whole: Whole, loop: Any, walk: reduction.Walk, slots: list[Slot]
    ) -> Callable[[Sequence[Any]], None]:
        """Return ``run(operands)``, which computes what follows on the results of all elements, and stores it."""
        node, outputs, count = self.reduce, len(self.stores), loop.segments.total
        kept = (*loop.shape[: loop.kept], loop.shape[-2])
        stored = [(i, *walk.output(slot)) for i, slot in enumerate(slots[:outputs])]
        given = [(place, *slots[place], loop.shape) for place in whole.places]
        numbers = [(outputs + number, *slots[outputs + number], ()) for number in self.numbers.values()]

        def run(operands: Sequence[Any]) -> None:
            outs = [_viewed(operands, *view) for view in stored]
            combined = whole.combine(*[_viewed(operands, *view) for view in given])
            found = [part.reshape((*kept[:-1], 1, kept[-1])) for part in combined]
            if count > 1:  # the first segment has all, and the others have nothing
                for number, (first, identity, dtype) in enumerate(
                    zip(found, node.identities, node.dtypes, strict=True)
                ):
                    found[number] = np.full(outs[0].shape, identity, dtype)
                    found[number][..., :1, :] = first
            finish(self, found, [_viewed(operands, *number) for number in numbers], outs)

        return run


def _usual_norm(kernel: ReductionKernel, expression: Any) -> ReductionKernel | None:
    """Return the kernel of a norm of numbers whose squares neither overflow nor underflow; None if it is no norm.

    It adds up one square of each number instead of two or three, in the same order. Where a norm takes several
    launches, the first one stores three sums, and this one the same sum three times.
    """
    called = [node[1] if node[0] == "call" else None for node in expression.nodes]
    if called[-6:] == ["square_of_large", "square_of_small", None, None, None, None] and len(kernel.stores) == 3:
        part = kernel.stores[0]
        steps, stores = kernel.steps[: part + 1], (part,) * 3
    elif called[-4:-2] == ["usable_sum", "sqrt"] or called[-3:-1] == ["usable_of_float32", "sqrt"]:
        root = len(called) - called[::-1].index("sqrt") - 1
        part = expression.nodes[root - 1][2][0]
        step = kernel.steps[root][0], kernel.reduce.dtypes[0], (part,)
        steps = [*kernel.steps[: part + 1], *[None] * (root - part - 1), step]
        stores = (root,)
    else:
        return None
    steps[part - 1] = kernel.reduce._replace(dtypes=kernel.reduce.dtypes[:1])
    found = copy.copy(kernel)
    found._look_at(steps, part - 1, kernel.reduced[:1], stores)
    return found


def _are_usual(found: np.ndarray, are_sums: bool) -> bool:
    """Whether norms, or parts of sums, of which up to 2**64 are added up, tell that squares were in range."""
    least, most = (LEAST, MOST) if found.dtype == np.float64 else (LEAST_OF_FLOAT32, MOST_OF_FLOAT32)
    least, most = (least, most * 2.0**-64) if are_sums else (math.sqrt(least), math.sqrt(most))
    return least < found.item() < most if found.size == 1 else bool(np.all((found > least) & (found < most)))


def _usually(usual: Function, always: Function) -> Function:
    """Return `always`, or `usual` where all norms that it gives tell that squares were in range."""

    def run(*given: Any, out: np.ndarray) -> None:
        usual(*given, out=out)
        if not _are_usual(out, False):
            always(*given, out=out)

    return run


def _usually_called(usual: Function, always: Function, signature: Any) -> Function:
    """Return the same for calls that make new arrays of a signature."""
    count, dtype = signature.nbytes // signature.itemsize, signature.dtype

    def call(stream: Any, *operands: Any) -> Any:
        found = usual(stream, *operands)
        norms = np.ndarray((count,), dtype, found._buffer.memory, found._offset)
        return found if _are_usual(norms, False) else always(stream, *operands)

    return call


def _usually_launched(
    usual: Callable[[Sequence[Any]], None], always: Callable[[Sequence[Any]], None], stored: Operand, are_sums: bool
) -> Callable[[Sequence[Any]], None]:
    """Return the same for functions of operands. `stored` is the view of what the first output takes."""

    def run(operands: Sequence[Any]) -> None:
        usual(operands)
        if not _are_usual(_viewed(operands, *stored), are_sums):
            always(operands)

    return run


def _parts_in_any_order(loop: Any) -> Iterator[tuple[slice, ...]]:
    """Yield parts of a loop in the order of memory: of columns, some rows of all."""
    if loop.neighbours:
        yield from reduction.slices(loop.shape, ANY_ORDER)
        return
    *slow, fast, last = loop.shape
    for *slower, along, kept in reduction.slices((*slow, last, fast), ANY_ORDER):
        yield (*slower, kept, along)


def _extents(part: tuple[slice, ...]) -> Ints:
    return tuple([each.stop - each.start for each in part])


def _temporaries(loop: Any, dtypes: Sequence[np.dtype], shape: Ints) -> tuple[int, list[tuple[Ints, int, Ints]]]:
    """Return the bytes of computed values of a part of a loop, and for each dtype their shape, offset and strides.

    They lie in the order of the operands' memory.
    """
    size, found = layout_of([(dtype, ()) for dtype in dtypes], shape)
    *slow, fast, last = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    steps = (*slow, fast, last) if loop.neighbours else (*slow, 1, shape[-2])
    return size, [(shape, offset, tuple([step * dtype.itemsize for step in steps])) for _, dtype, offset in found]


def _kept(part: tuple[slice, ...], axes: tuple[int, ...]) -> tuple[tuple[slice, ...], bool]:
    """Return the results of a part of a loop, and whether it has the first elements of them."""
    kept = tuple([each for axis, each in enumerate(part) if axis not in axes])
    return kept, all(part[axis].start == 0 for axis in axes)


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


def _is_read_as_it_is(steps: list[Any], node: reduction.Reduce, values: tuple[int, ...]) -> bool:
    """Return whether one ufunc reduces the elements of an input as they are, or widened."""
    if len(values) != 1 or node.ufunc is None or node.dtypes[0].kind == "c":
        return False
    return _through(steps, values[0], "widens") is not None


def _assigns(function: Function) -> bool:
    """Return whether a step does what ``out[...] = x`` does."""
    return getattr(function, "assigns", False)


def _whole(node: reduction.Reduce, steps: list[Any], value: int, loop: Any) -> tuple[Function, int] | None:
    """Return ``run(view, out=out)``, which reduces all at once, and the input that it reads; or None."""
    ufunc, dtype = _whole_ufunc(node, loop), node.dtypes[0]
    axes = (*range(loop.kept, len(loop.shape) - 2), len(loop.shape) - 1)
    if ufunc is None:
        return None
    if dtype.kind not in node.combine.in_any_order:
        count = math.prod([loop.shape[axis] for axis in axes])
        if ufunc is not np.add or dtype != np.float64 or not _are_small_integers(steps[value], count):
            return None
    reduce = ufunc.reduce
    source = _through(steps, value, "widens")
    is_one = math.prod((*loop.shape[: loop.kept], loop.shape[-2])) == 1  # only then NumPy counts without a copy
    if is_one and ufunc is np.add and isinstance(counted := _counted(steps, value), int):
        return (lambda view, *, out: out.fill(np.count_nonzero(view))), counted
    if isinstance(source, int):
        if ufunc in reduction.EXTREMES:
            return _extreme(ufunc, axes, dtype), source
        return (lambda view, *, out: reduce(view, axes, dtype, out)), source
    if ufunc in (np.logical_and, np.logical_or) and isinstance(source := _through(steps, value, "tests"), int):
        return (lambda view, *, out: reduce(view, axes, None, out)), source
    return None


SHORT, SHORT_PRODUCTS = 32, 12
"""The elements of a row from which one call for each row, of the sum or of a sum of products, takes the least time."""


def _whole_ufunc(node: reduction.Reduce, loop: Any) -> np.ufunc | None:
    """Return the ufunc that combines a whole array in any order; None if there is none, or parts take less time.

    NumPy multiplies the floats of a row one after the other, and adds those of short rows in a call for each row.
    """
    ufunc, is_float = node.combine.whole, node.dtypes[0].kind in "fc"
    if is_float and loop.neighbours and ufunc in (np.add, np.multiply):
        return ufunc if ufunc is np.add and loop.shape[-1] >= SHORT else None
    return ufunc


def _products(node: reduction.Reduce, steps: list[Any], value: int, loop: Any) -> tuple[Function, int, int] | None:
    """Return ``run(x, y, out=out)``, which adds up products of two inputs in any order, and the inputs; or None."""
    first, second = [steps[factor] for factor in _factors(node, steps, value, loop)] or (None, None)
    if not isinstance(first, int) or not isinstance(second, int):
        return None
    return _sum_of_products(loop), first, second


def _factors(node: reduction.Reduce, steps: list[Any], value: int, loop: Any) -> tuple[int, ...]:
    """Return the two factors of a value whose sum in any order NumPy computes without an array of products; else ()."""
    step = steps[value]
    if node.combine is not reduction.COMBINE["add_in_any_order"] or node.dtypes[0].kind != "f":
        return ()
    if loop.neighbours and loop.shape[-1] < SHORT_PRODUCTS:
        return ()
    return step[2] if isinstance(step, tuple) and step[0] is np.multiply else ()


def _sum_of_products(loop: Any) -> Function:
    """Return ``run(x, y, out=out)``, which adds up real products over the reduced axes of a loop, in any order."""
    rank = len(loop.shape)
    if loop.neighbours and rank - 2 == loop.kept:
        return _dots
    axes, kept = [*range(rank)], [*range(loop.kept), rank - 2]
    return lambda x, y, *, out: np.einsum(x, axes, y, axes, kept, out=out)


ALONE = 2**13
"""The elements of a row that is one product of vectors: BLAS shares longer ones among threads of its own."""


def _dots(x: np.ndarray, y: np.ndarray, *, out: np.ndarray) -> None:
    """Compute the dot products of rows of real numbers, in any order."""
    parts, rest = divmod(x.shape[-1], ALONE)
    whole = parts * ALONE
    if not parts:
        np.vecdot(x, y, out=out)
        return
    rows = [each[..., :whole].reshape(*each.shape[:-1], parts, ALONE) for each in (x, y)]
    np.add.reduce(np.vecdot(*rows), axis=-1, out=out)
    if rest:
        np.add(out, np.vecdot(x[..., whole:], y[..., whole:]), out=out)


def _are_small_integers(step: Any, count: int) -> bool:
    """Whether a step makes integers, cast to float64, of which it adds up a number exactly, so in any order."""
    source = getattr(step[0], "source", None) if isinstance(step, tuple) else None
    return source is not None and source.kind in "biu" and count << 8 * source.itemsize <= 2**53


def _counted(steps: list[Any], value: int) -> int | None:
    """Return the input if a value is 1 for each of its elements that is not 0, and 0 for the others; or None."""
    step = steps[value]
    if not isinstance(step, tuple) or not getattr(step[0], "of_bools", False):
        return None
    return _through(steps, step[2][0], "tests")


def _extreme(ufunc: np.ufunc, axes: tuple[int, ...], dtype: np.dtype) -> Function:
    """Return ``run(view, out=out)`` for largest or smallest elements."""
    reduce = ufunc.reduce

    def run(view: np.ndarray, *, out: np.ndarray) -> None:
        reduce(view, axes, dtype, out)
        if np.count_nonzero(out) < out.size:  # a zero, of which NumPy does not tell the sign
            out[...] = reduction.signed(ufunc, out, view, "reduce", axis=axes)

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


Operand = tuple[int | None, np.dtype, int, tuple[int, ...] | None, tuple[int, ...]]
"""A view of an operand of a launch: its number, dtype, byte offset, strides and shape. A Python number has no strides.
Positions of elements have no number; their offset and strides count elements."""
Work = tuple[Function, list[Operand], list[Operand]]
"""A part of a reduction: ``run(*given, out=out)``, what it is given, and where it stores."""


def _viewed(
    operands: Sequence[Any],
    number: int | None,
    dtype: np.dtype,
    offset: int,
    strides: tuple[int, ...] | None,
    shape: tuple[int, ...],
) -> np.ndarray:
    """Return a view of one of the operands of a launch: memory and offset, or number and 0, of each."""
    if number is None:
        assert strides is not None
        return reduction.positions(shape, strides, offset)
    memory = operands[2 * number]
    if strides is None:
        return scalar(memory, dtype)
    return np.ndarray(shape, dtype, memory.memory, operands[2 * number + 1] + offset, strides)


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
                steps.append((_called(name, arguments, steps, dtypes), dtypes[-1], arguments))
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


def _called(name: str, arguments: Sequence[int], steps: list[Any], dtypes: list[np.dtype]) -> Function:
    """Return the function of a call. `steps` and `dtypes` are those of the nodes up to it; the last one is its own."""
    function = OF_REDUCTIONS.get(name) or function_named(name, dtypes[-1])
    is_complex = any(dtypes[node].kind == "c" for node in (*arguments, -1))
    if name in (FORWARDS_OF_COMPLEX if is_complex else FORWARDS) and any(isinstance(steps[x], int) for x in arguments):
        return lambda *given, out: function(*map(forwards, given), out=out)
    return function


def _cast(source: np.dtype, target: np.dtype, *rounding: Any) -> Callable[..., Any]:
    convert = rounded_caster(source, target, *rounding) if rounding else caster(source, target)

    def assign(x: np.ndarray, *, out: np.ndarray) -> None:
        out[...] = x

    def cast(x: np.ndarray, *, out: np.ndarray) -> None:
        convert(x, target, out)

    function: Any = assign if not rounding and assigns(convert) else cast
    function.assigns = function is assign
    function.source = source
    function.of_bools = source == np.bool_
    if not rounding and source.kind in "biufc" and target == np.bool_:
        function.kind = "tests"
    elif not rounding and (np.can_cast(source, target) or (is_narrow_float(source) and target == np.float32)):
        function.kind = "widens"
    return function
