"""Blocks that set different fields of the state: each keeps its own, whatever the order in which they end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import permutations

import pytest

from tilearray.cuda import stream
from tilearray.engine.context import STATE, Block, plans_of, semantics, set_semantics
from tilearray.errors import OperandError
from tilearray.promotion.systems import ARRAY_API, TRITON


class On(Block):
    """A stream block over a handle that no driver knows."""

    __slots__ = ("_handle",)
    _field = "stream"

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def _value(self) -> int:
        return self._handle


@pytest.fixture(autouse=True)
def _default_again() -> Iterator[None]:
    yield
    set_semantics("array-api")
    assert in_force() == ("array-api", 0), "a test left a block open"


def in_force() -> tuple[str, int]:
    state = STATE.get()
    assert state.plans is plans_of(state.semantics)
    return state.semantics.name, state.stream


def test_blocks_of_both_kinds_nest() -> None:
    assert in_force() == ("array-api", 0)
    with On(16):
        assert in_force() == ("array-api", 16)
        with semantics("triton"):
            assert in_force() == ("triton", 16)
            with On(32), semantics("array-api"):
                assert in_force() == ("array-api", 32)
            assert in_force() == ("triton", 16)
        with stream(None):
            assert in_force() == ("array-api", 0)
        assert in_force() == ("array-api", 16)


def test_every_order_of_ending() -> None:
    """Four blocks, ended in all 24 orders: after each end, the topmost block left of a kind is in force."""
    streams = [(On(handle), 0, handle) for handle in (16, 32)]
    rules = [(semantics(name), 1, name) for name in ("triton", "array-api")]
    made = [streams[0], rules[0], streams[1], rules[1]]
    for start in range(4):
        blocks = made[start:] + made[:start]
        for order in permutations(range(4)):
            for block, _, _ in blocks:
                block.__enter__()
            left = list(range(4))
            for ended in order:
                blocks[ended][0].__exit__(None, None, None)
                left.remove(ended)
                expected: list[object] = [0, "array-api"]
                for position in left:
                    _, kind, value = blocks[position]
                    expected[kind] = value
                assert in_force() == (expected[1], expected[0]), (start, order, left)


def test_set_semantics_reaches_into_stream_blocks() -> None:
    seen: list[tuple[str, int]] = []
    entered, changed = threading.Event(), threading.Event()

    def elsewhere() -> None:
        with On(48), On(64):
            entered.set()
            assert changed.wait(30)
            seen.append(in_force())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    assert entered.wait(30)
    with On(16):
        set_semantics("triton")
        assert in_force() == ("triton", 16)
        with semantics("array-api"), On(32):
            set_semantics("array-api")
            set_semantics("triton")
            assert in_force() == ("array-api", 32)
            assert STATE.get().semantics is ARRAY_API
        assert in_force() == ("triton", 16)
    changed.set()
    thread.join()
    assert seen == [("triton", 64)]
    assert STATE.get().semantics is TRITON


def test_a_stream_block_left_above_follows_the_default_again() -> None:
    below, above = semantics("triton"), On(16)
    below.__enter__()
    above.__enter__()
    set_semantics("array-api")
    assert in_force() == ("triton", 16)
    below.__exit__(None, None, None)
    assert in_force() == ("array-api", 16)
    set_semantics("triton")
    assert in_force() == ("triton", 16)
    above.__exit__(None, None, None)
    set_semantics("array-api")


def test_objects_that_are_not_streams_are_refused_without_a_driver() -> None:
    with pytest.raises(OperandError, match="stream: expected a stream, got 'x' of type str"):
        stream("x")
    with pytest.raises(OperandError, match="the per-thread default stream, which is a different stream in each thread"):
        stream(2)
    assert repr(stream(0)) == "<stream block 0x0>"
