"""Objects with ``__index__`` that say something else each time: each is read once, and no view remembers a lie."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest

import tilearray as ta


class Cursor:
    """An index that says one thing after another, and the last one from then on."""

    def __init__(self, *readings: int) -> None:
        self.readings = readings
        self.read = 0

    def __index__(self) -> int:
        self.read += 1
        return self.readings[min(self.read, len(self.readings)) - 1]


def matrix() -> ta.Array:
    """All tests share its layout, and with it the views that are remembered."""
    return ta.asarray(np.arange(600.0).reshape(20, 30))


def test_a_slice_that_changes_leaves_the_views_of_others_alone():
    whole = ta.asarray(np.arange(1000.0))
    for readings in ((50, 0, 50), (50, 0, 0, 50), (0, 50, 50)):
        x = whole[:100]
        x[Cursor(*readings) :]
        x[: Cursor(*readings)]
        x[(slice(Cursor(*readings), None),)]
        assert (x[50:].tolist(), x[:50].tolist()) == (np.arange(50.0, 100).tolist(), np.arange(50.0).tolist())


def test_an_array_of_its_own_memory_is_still_viewed_after_it():
    y = ta.asarray(np.arange(97.0))
    y[Cursor(40, 0, 40) :]
    assert y[40:].tolist() == list(range(40, 97))
    y[40:] = 0
    assert y.tolist() == [*range(40), *[0] * 57]


KEYS = {
    "int": lambda c: c,
    "slice": lambda c: slice(c, None),
    "stop": lambda c: slice(None, c),
    "step": lambda c: slice(None, None, c),
    "from the end": lambda c: slice(c, None, -1),
    "tuple of one": lambda c: (slice(c, None),),
    "two slices": lambda c: (slice(1, None), slice(c, None)),
    "slice and int": lambda c: (slice(c, None), 3),
    "newaxis after": lambda c: (slice(c, None), None),
    "ellipsis after": lambda c: (slice(c, None), ...),
    "newaxis before": lambda c: (None, slice(c, None)),
    "list after": lambda c: (slice(c, None), [1, 2]),
    "array before": lambda c: (np.array([1, 2]), slice(c, None)),
    "index and list": lambda c: (c, [0, 2, 1]),
}


def parts_of(key: object) -> list[object]:
    entries = key if isinstance(key, tuple) else (key,)
    return [part for e in entries for part in ([e.start, e.stop, e.step] if isinstance(e, slice) else [e])]


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
@pytest.mark.parametrize("name", KEYS)
def test_every_part_is_read_once_as_numpy_reads_it(name, again):
    source = np.arange(600.0).reshape(20, 30)
    x = ta.asarray(source, copy=True)
    if again:
        x[KEYS[name](2)]
    for use in ("get", "set"):
        cursor, theirs = Cursor(2, 7, 4, 5), Cursor(2, 7, 4, 5)
        key, expected = KEYS[name](cursor), source[KEYS[name](theirs)]
        if use == "get":
            assert x[key].tolist() == expected.tolist()
        else:
            x[key] = ta.asarray(-expected)
        assert cursor.read == theirs.read == sum(part is cursor for part in parts_of(key))
    changed = source.copy()
    changed[KEYS[name](2)] *= -1
    assert ta.to_numpy(x).tolist() == changed.tolist()


@pytest.mark.parametrize("kind", [int, slice])
def test_what_says_that_it_is_of_another_class_is_no_index(kind):
    x, key, size = matrix(), Mock(spec=kind), Mock(spec=int)
    x[0], x[5:], x[0, 1:]
    for wrong in (key, (key, 0), (0, key)):
        with pytest.raises(ta.IndexingError, match="expected an int, a slice"):
            x[wrong]
    for make in (lambda: ta.zeros(size), lambda: ta.zeros((size,)), lambda: ta.flip(x, axis=size)):
        with pytest.raises(ta.ShapeError, match=r"write .* as ints"):
            make()


def test_as_strided_checks_the_offset_that_it_uses():
    x = ta.asarray(np.arange(100.0))
    for readings in ((2, 2**40), (2, 2, 2**40), (2, -(2**40))):
        view = ta.as_strided(x, (3,), (1,), Cursor(*readings))
        assert view.tolist() == [2, 3, 4]
    view = ta.as_strided(x, (Cursor(3, 2**40), 2), (Cursor(1, 2**40), 1), 0)
    assert view.tolist() == [[0, 1], [1, 2], [2, 3]]


CALLS = {
    "reshape": (lambda x, c: ta.reshape(x, (c, -1)), 20),
    "broadcast_to": (lambda x, c: ta.broadcast_to(x, (c, 20, 30)), 2),
    "zeros": (lambda x, c: ta.zeros((c, 2)), 3),
    "eye": (lambda x, c: ta.eye(c), 3),
    "roll": (lambda x, c: ta.roll(x, c, axis=1), 3),
    "roll axis": (lambda x, c: ta.roll(x, 3, axis=c), 1),
    "flip": (lambda x, c: ta.flip(x, axis=c), 1),
    "permute_dims": (lambda x, c: ta.permute_dims(x, (c, 0)), 1),
    "moveaxis": (lambda x, c: ta.moveaxis(x, c, 0), 1),
    "expand_dims": (lambda x, c: ta.expand_dims(x, axis=c), 1),
    "take": (lambda x, c: ta.take(x, [0, 1], axis=c), 1),
    "take of one": (lambda x, c: ta.take(x, ta.asarray(2), axis=c), 1),
    "sum": (lambda x, c: ta.sum(x, axis=c), 1),
    "unstack": (lambda x, c: ta.stack(ta.unstack(x, axis=c)), 1),
    "concat": (lambda x, c: ta.concat([x, x], axis=c), 1),
    "repeat": (lambda x, c: ta.repeat(x, c, axis=0), 2),
    "tile": (lambda x, c: ta.tile(x, (c, 2)), 2),
    "diagonal": (lambda x, c: ta.diagonal(x, offset=c), 4),
    "sliding_window_view": (lambda x, c: ta.sliding_window_view(x, c, axis=0), 3),
    "tril": (lambda x, c: ta.tril(x, k=c), 2),
    "diff": (lambda x, c: ta.diff(x, n=c), 2),
    "item": (lambda x, c: ta.asarray(x.item(c)), 35),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_function_reads_its_ints_once(name):
    call, wanted = CALLS[name]
    cursor = Cursor(wanted, 0, 10**6)
    found = call(matrix(), cursor)
    assert (cursor.read, found.tolist()) == (1, call(matrix(), wanted).tolist())
