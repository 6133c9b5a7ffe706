"""Products of views of arrays, found again by the words of a call and the signatures of its operands.

`tensordot` and `einsum` choose views of their operands, multiply them, and return a view of the product. All of it
follows from the words and the signatures, except which memory is read. The sum over axes of one operand is found again
in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE
from tilearray.engine.execute import is_recorded, run
from tilearray.engine.operation import Operation
from tilearray.engine.plan import Key
from tilearray.engine.signature import Signature
from tilearray.functions.reduce import refuse

Words = tuple[Any, ...]
"""The function, and arguments of which no two are equal and read differently.

If the dtype of the product depends on the semantics, `State.changes` is among them.
"""


class Made(NamedTuple):
    """How a product was made: an operation, the arrays that it took, and which operand each of them is a view of."""

    operation: Operation
    arrays: Sequence[Any]
    places: Sequence[int]


class _Planned(NamedTuple):
    """A product of views.

    Attributes
    ----------
    operation : Operation
    views : list of Key
        The signatures of the views, which begin where the operands do.
    places : sequence of int
        The operand of each view.
    result : Signature
        That of the view of the product.
    """

    operation: Operation
    views: list[Key]
    places: Sequence[int]
    result: Signature

    def __call__(self, operands: Sequence[Any]) -> Any:
        """Return the product of operands."""
        given = [_viewed(operands[place], view) for place, view in zip(self.places, self.views)]
        return _viewed(run(self.operation, self.views, given, None, refuse), self.result)


_KNOWN: TwoGenerations[_Planned] = TwoGenerations(512)


def again(words: Words, operands: Sequence[Any]) -> Any:
    """Return the product for which a call has asked in the same words, for such operands; None if it is not planned."""
    state = STATE.get()
    if state.recording is not None:
        return None
    try:
        planned = _KNOWN.get((words, state.semantics.key, *[x._signature for x in operands]))
    except (AttributeError, TypeError):  # not an Array, or not hashable
        return None
    return None if planned is None else planned(operands)


def remember(words: Words, operands: Sequence[Any], made: Made | None, product: Any, result: Any) -> None:
    """Keep how a call made a product, of which its result is a view.

    Nothing is kept if an operand was copied, the result is no such view, or the call was recorded.
    """
    if made is None or any(is_recorded(x._signature.device) for x in operands):
        return
    pairs = [*[(operands[place], view) for place, view in zip(made.places, made.arrays)], (product, result)]
    if all(x._buffer is y._buffer and x._offset == y._offset for x, y in pairs):
        key = (words, STATE.get().semantics.key, *[x._signature for x in operands])
        views: list[Key] = [view._signature for view in made.arrays]
        _KNOWN.put(key, _Planned(made.operation, views, made.places, result._signature))


def _viewed(x: Any, signature: Any) -> Any:
    buffer = x._buffer  # a pending array gets its memory and its class
    return x.__class__._make(buffer, x._offset, signature)
