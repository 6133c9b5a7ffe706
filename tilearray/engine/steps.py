"""Functions that only launch known operations one after the other, noted once and then run as one call.

Which operations a sort runs, and on what memory, follows from the signature of the array. To find this out takes longer
than the launches. So the first call notes them, and a call that allocates, launches and returns the result
(`tilearray.engine.call.steps_call`) is remembered (`tilearray.engine.remembered`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

from tilearray import dtypes
from tilearray.engine.array_type import A
from tilearray.engine.backend import Buffer, Call
from tilearray.engine.caches import leaf_at
from tilearray.engine.call import Place, Step, steps_call
from tilearray.engine.context import STATE, plans_of
from tilearray.engine.execute import keys_of, run_fixed
from tilearray.engine.operation import FixedOperation
from tilearray.engine.remembered import Words, again, remember
from tilearray.engine.signature import ArrayBase, Signature, signature_of
from tilearray.engine.watch import WATCH
from tilearray.geometry.layout import Layout


def run_in_steps(words: Words, x: A, function: Callable[[Steps], A]) -> A:
    """Return the result of a function of an array, or make the call that is remembered for it.

    Parameters
    ----------
    words : Words
    x : Array
    function : callable
        It must do nothing but allocate memory, make views, and run the operations that it notes. All of it must follow
        from the words and the signature of the array. The result is one of the arrays that it wrote.
    """
    known = again(words, x)
    if known is not None:
        return known
    steps = Steps(x)
    found = function(steps)
    call = steps.call_for(found)
    if call is not None:
        remember(words, (x,), call)
    return found


class _Written(NamedTuple):
    """A buffer that launches write: a reference that lets it go, its bytes, and the first launch."""

    buffer: ReferenceType[Buffer]
    nbytes: int
    turn: int


class Steps:
    """Runs operations on an array and on new memory, and notes them.

    Nothing is noted if there is no array, if calls are recorded or watched, or if an operation is no single launch of
    the array and of what launches before it wrote.
    """

    def __init__(self, x: ArrayBase | None) -> None:
        self._notes = x is not None and WATCH.plan is None and STATE.get().recording is None
        self._given: Any = x
        self._steps: list[Step] = []
        self._written: list[_Written] = []  # the steps name these buffers -1, -2, ...

    def run(self, operation: FixedOperation, operands: Sequence[Any], out: A) -> A:
        """Run an operation as `run_fixed` does, and note it."""
        run_fixed(operation, operands, out)
        return self.note((operation.into, out._signature, *keys_of(operation, operands)), operands, out)

    def note(self, path: tuple[Any, ...], operands: Sequence[Any], out: A) -> A:
        """Note an operation that was run, by the path to its plan. Return its result."""
        plan = leaf_at(plans_of(STATE.get().semantics), path) if self._notes else None
        # a device that records calls makes no plan, and another thread may have evicted it
        if plan is None or plan.kernel is None or plan.stages:
            self._notes = False
            return out
        read = [self._place(x) if isinstance(x, ArrayBase) else x for x in operands]
        target = self._place(out)
        if target is None:
            self._written.append(_Written(ref(out._buffer), out._buffer.nbytes, len(self._steps)))
            target = self._place(out)
        self._notes = target is not None and target.position < 0 and None not in read
        self._steps.append(Step(plan.kernel, plan.loop, (target, *read)))  # type: ignore[arg-type]
        return out

    def _place(self, x: ArrayBase) -> Place | None:
        """Return where an array lies: in the given one, or in a buffer that is written; else None."""
        if x._buffer is self._given._buffer:
            return Place(0) if x._offset == self._given._offset else None
        for number, written in enumerate(self._written):
            if written.buffer() is x._buffer:
                return Place(~number, x._offset)
        return None

    def call_for(self, result: ArrayBase) -> Call | None:
        """Return the call that runs what was noted and returns a result; None if it cannot."""
        place, signature = self._place(result) if self._notes else None, result._signature
        if place is None or place.position >= 0:
            return None
        if not signature.layout.contiguous or signature.nbytes != result._buffer.nbytes:
            return None
        homes, memory = self._homes(place.position, signature)
        steps = [
            step._replace(operands=tuple([_moved(operand, homes) for operand in step.operands])) for step in self._steps
        ]
        return steps_call((None,), True, signature.device.backend, steps, memory)

    def _homes(self, result: int, signature: Signature) -> tuple[dict[int, int], list[Signature]]:
        """Return which memory each buffer has in a call, and the signatures of this memory. The first is the result.

        Buffers of one size share memory: from the last launch back, a buffer has memory that no launch after it needs.
        """
        homes, memory, free = {result: -1}, [signature], list[int]()
        for turn in reversed(range(len(self._steps))):
            used = {x.position for x in self._steps[turn].operands if isinstance(x, Place) and x.position < 0}
            for position in used - homes.keys():
                nbytes = self._written[~position].nbytes
                home = next((home for home in free if memory[~home].nbytes == nbytes), None)
                if home is None:
                    memory.append(signature_of(Layout.of((nbytes,)), dtypes.uint8, signature.device))
                    home = -len(memory)
                else:
                    free.remove(home)
                homes[position] = home
            free += [homes[position] for position in used if self._written[~position].turn == turn]
        return homes, memory


def _moved(operand: Any, homes: dict[int, int]) -> Any:
    """Return an operand of a launch with the memory of its buffer."""
    is_written = isinstance(operand, Place) and operand.position < 0
    return operand._replace(position=homes[operand.position]) if is_written else operand
