"""Run a drawn call and judge it, in the property tests of all devices.

A call runs on a device, and the rules predict its outcome. It must return exactly that or raise one of the predicted
errors, and it must write nothing else.
"""

from __future__ import annotations

import math
import operator
import os
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import tilearray as ta
from support.drawing import OPERATORS, Case, Place
from support.oracles.calls import Operand, Outcome, disagreements, predict, predict_assignment, predict_astype
from support.oracles.formats import dtype_of, exact
from support.oracles.promotion import SEMANTICS
from tilearray.errors import BroadcastError, WriteError
from tilearray.ops import PUBLIC

EXAMPLES = int(os.environ.get("TILEARRAY_EXAMPLES", 150))
SEED = int(os.environ.get("TILEARRAY_SEED", 0))
COUNTS = dict(zip(SEMANTICS, (EXAMPLES, max(EXAMPLES // 2, 1), *(max(EXAMPLES // 3, 1),) * 3), strict=True))
LEAST = {"array-api": 0.5, "triton": 0.2, "cutile": 0.05, "torch": 0.1, "numpy": 0.2}
"""The part of the calls that has to give a result, by semantics. Where about a half does, one run of 50 may have a
quarter: draws resemble each other, and depend on the modules that are loaded."""
Errors = set[type[Exception]]


def many(
    strategy: st.SearchStrategy[Case],
    check: Callable[[Case], bool],
    key: str,
    count: int = EXAMPLES,
    least: float = 0.25,
    fillings: int = 1,
) -> None:
    """Draw cases, and see that they were that many, and that enough of them gave a result rather than an error.

    Each drawn call is checked with so many `fillings` of its buffers, which are cases of their own: on a GPU they have
    the same kernels.
    """
    ran = computed = 0

    @settings(
        max_examples=-(-count // fillings),
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @seed(zlib.crc32(f"{key} {SEED}".encode()))
    @given(strategy)
    def run(case: Case) -> None:
        nonlocal ran, computed
        for filling in range(fillings):
            ran += 1
            computed += check(case.refilled(filling) if filling else case)

    run()
    assert ran >= count
    assert computed >= int(least * count), f"{computed} of {count} calls gave a result"


# --- memory: what a call may write --------------------------------------------------------------------------------


class Memory:
    """Two copies of a case's buffers: NumPy's, which stay as they are, and tilearray's on a device."""

    def __init__(self, device: str, buffers: list[np.ndarray], readonly: int | None = None) -> None:
        self.device = device
        self.before = buffers
        copies = [buffer.copy() for buffer in buffers]
        if readonly is not None and device == "cpu":
            copies[readonly].flags.writeable = False
        self.arrays = [ta.asarray(copy, copy=None if device == "cpu" else True, device=device) for copy in copies]

    @property
    def after(self) -> list[np.ndarray]:
        """What is in tilearray's buffers now; on the host the very memory."""
        return [ta.to_numpy(array) for array in self.arrays]

    def numpy(self, place: Place) -> np.ndarray:
        return place.view.of_numpy(self.before[place.buffer].view(dtype_of(place.dtype)))

    def tilearray(self, place: Place) -> ta.Array:
        flat = self.arrays[place.buffer]
        return place.view.of_tilearray(flat if flat.dtype.name == place.dtype else flat.view(place.dtype))

    def written(self, place: Place) -> np.ndarray:
        return place.view.of_numpy(self.after[place.buffer].view(dtype_of(place.dtype)))

    def shared(self, result: ta.Array) -> bool:
        """Whether a result lies in memory of the case; told by addresses, so on every device alike."""
        first, last = result._span()
        return any(first < end and start < last for start, end in (array._span() for array in self.arrays))

    def assert_untouched(self, target: Place | None = None) -> None:
        """Nothing has changed, but for the elements of a target."""
        for number, (before, after) in enumerate(zip(self.before, self.after, strict=True)):
            old, new = before.view(np.uint8), after.view(np.uint8)
            if target is not None and target.buffer == number:
                size = dtype_of(target.dtype).itemsize
                others = np.ones(old.size // size, bool)
                others[target.view.of_numpy(np.arange(others.size)).ravel()] = False
                others = np.repeat(others, size)
                old, new = old[others], new[others]
            assert old.tobytes() == new.tobytes(), f"buffer {number} was written to where nothing should be"


def target_errors(memory: Memory, place: Place, readonly: bool, shape: tuple[int, ...]) -> Errors:
    errors: Errors = set()
    length = memory.before[place.buffer].view(dtype_of(place.dtype)).size
    if readonly or place.view.overlaps_itself(length):
        errors.add(WriteError)
    try:
        fits = np.broadcast_shapes(shape, place.view.shape) == place.view.shape
    except ValueError:
        fits = False
    return errors if fits else errors | {BroadcastError}


def assert_result(got: np.ndarray, shape: tuple[int, ...], expected: Outcome) -> None:
    """Shape, dtype and every element."""
    assert (got.shape, got.dtype) == (shape, dtype_of(expected.dtype))
    assert disagreements(exact(got), expected) == []


def attempt(errors: Errors | frozenset[type[Exception]], call: Callable[[], Any], memory: Memory) -> Any:
    """Make a call; where errors are predicted see that one of them comes, and that nothing is written."""
    if not errors:
        return call()
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    assert caught.type in errors, f"{caught.type.__name__}: {caught.value}, expected one of {errors}"
    memory.assert_untouched()
    return None


# --- the operations -----------------------------------------------------------------------------------------------


def seen(memory: Memory, operand: Any, shape: tuple[int, ...]) -> Operand:
    """An operand as the oracle takes it."""
    if isinstance(operand, Place):
        values = exact(np.broadcast_to(memory.numpy(operand), shape))
        return Operand(operand.dtype, values, point=not operand.view.shape)
    if isinstance(operand, np.generic):
        return Operand(operand.dtype.name, exact(np.asarray(operand)) * math.prod(shape), point=True)
    return Operand(None, [operand] * math.prod(shape), operand)


def function_of(name: str, case: Case) -> Callable[..., Any]:
    if case.form == "function":
        return PUBLIC[name]
    word = OPERATORS[name]
    return getattr(operator, word if case.form == "operator" else f"i{word.rstrip('_')}")


def check_call(name: str, semantics: str, case: Case, device: str = "cpu") -> bool:
    """Make one call; return whether it gave a result."""
    readonly = case.readonly and device == "cpu"  # memory of another device is never read-only
    memory = Memory(device, case.buffers, case.out.buffer if readonly and case.out else None)
    shape = np.broadcast_shapes(*[operand.view.shape for operand in case.operands if isinstance(operand, Place)])
    expected = predict(
        name, [seen(memory, operand, shape) for operand in case.operands], semantics, case.out and case.out.dtype
    )
    errors = set(expected.errors)
    if case.out is not None:
        errors |= target_errors(memory, case.out, readonly, shape)
    made = {id(o): memory.tilearray(o) if isinstance(o, Place) else o for o in [*case.operands, case.out]}
    operands, out = [made[id(operand)] for operand in case.operands], made[id(case.out)]
    function, keywords = function_of(name, case), {"out": out} if case.form == "function" else {}
    result = attempt(errors, lambda: function(*operands, **keywords), memory)
    if errors:
        return False
    assert type(result) is ta.Array
    memory.assert_untouched(case.out)
    if case.out is None:
        assert_result(ta.to_numpy(result), shape, expected)
        assert_again(result, function(*operands), memory)
    else:
        assert result is out
        assert_result(memory.written(case.out), case.out.view.shape, broadcast(expected, shape, case.out.view.shape))
    return True


def broadcast(expected: Outcome, shape: tuple[int, ...], target: tuple[int, ...]) -> Outcome:
    """The outcome repeated to a larger target."""
    if shape == target:
        return expected
    places = np.broadcast_to(np.arange(math.prod(shape)).reshape(shape), target).ravel().tolist()
    values, ulps = [expected.values[i] for i in places], [expected.ulps[i] for i in places]
    return expected._replace(values=values, ulps=ulps)


def assert_again(result: ta.Array, again: ta.Array, memory: Memory) -> None:
    """The plan, now in the cache, gives the same bits, and no result shares memory with anything."""
    assert ta.to_numpy(result).tobytes() == ta.to_numpy(again).tobytes()
    assert result.strides == again.strides
    assert not memory.shared(result)
    assert result._span()[0] != again._span()[0] or result.size == 0


# --- casts and assignment -----------------------------------------------------------------------------------------


def check_astype(case: Case, device: str = "cpu") -> bool:
    memory, (source,) = Memory(device, case.buffers), case.operands
    expected = predict_astype(seen(memory, source, source.view.shape), case.dtype)
    result = attempt(expected.errors, lambda: memory.tilearray(source).astype(case.dtype), memory)
    if expected.errors:
        return False
    memory.assert_untouched()
    assert_result(ta.to_numpy(result), source.view.shape, expected)
    assert not memory.shared(result)
    return True


def check_setitem(case: Case, device: str = "cpu") -> bool:
    memory, (value,), target = Memory(device, case.buffers), case.operands, case.out
    shape = value.view.shape if isinstance(value, Place) else ()
    expected = predict_assignment(seen(memory, value, shape), target.dtype)
    errors = expected.errors | target_errors(memory, target, False, shape)
    array, given = memory.tilearray(target), memory.tilearray(value) if isinstance(value, Place) else value
    attempt(errors, lambda: operator.setitem(array, ..., given), memory)
    if errors:
        return False
    memory.assert_untouched(target)
    assert_result(memory.written(target), target.view.shape, broadcast(expected, shape, target.view.shape))
    return True
