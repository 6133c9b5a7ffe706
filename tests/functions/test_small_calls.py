"""The host time of small calls, counted: Python functions that a known call on the host enters, NumPy's not counted.

A count above the bound means that a call does something again that it need do only once.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from support.changing_semantics import dtypes_after_changes

import tilearray as ta
from tilearray.commands.explain_plan import planned
from tilearray.engine.caches import PLANS
from tilearray.engine.devices import CPU, using_device
from tilearray_host import lanes
from tilearray_host.threads import most_threads

CALLS: dict[str, int] = {
    "x + y": 2,
    "x * 2.0": 3,
    "x[5]": 1,
    "x[1:]": 1,
    "x[None]": 2,
    "m[..., None, 2]": 2,
    "m[np.int64(3), 4]": 3,
    "m[place, 1:]": 6,
    "x[5] = 1.0": 7,
    "x[1:] = x[:-1]": 6,
    "x[:] = host": 6,
    "x[:3] = [1, 2, 3]": 9,
    "x[idx]": 13,
    "x[idx] = 1.0": 17,
    "x[idx] = x[idx]": 28,
    "x.copy()": 3,
    "x.astype(ta.int32)": 9,
    "x.astype(ta.float64)": 6,
    "ta.asarray([1.0, 2.0])": 11,
    "ta.asarray(3.0)": 11,
    "ta.asarray(x)": 5,
    "ta.asarray(host)": 11,
    "ta.zeros(1000)": 9,
    "ta.ones(1000)": 15,
    "ta.full(1000, 2.5)": 19,
    "ta.arange(1000)": 7,
    "ta.arange(0.0, 1000.0)": 7,
    "ta.eye(30)": 14,
    "ta.sum(x)": 6,
    "ta.mean(x)": 10,
    "ta.mean(m, axis=(0, 1))": 11,
    "ta.cumulative_sum(x)": 21,
    "ta.max(x)": 4,
    "ta.argmax(x)": 4,
    "ta.any(x)": 4,
    "ta.concat([x, y])": 7,
    "ta.stack([x, y])": 12,
    "ta.linalg.diagonal(m)": 14,
    "ta.take_along_axis(x, idx)": 22,
    "ta.repeat(x, 2)": 8,
    "ta.tile(x, 3)": 7,
    "ta.sort(x)": 28,
    "m @ m": 15,
    "ta.dot(x, y)": 15,
    "ta.linalg.vector_norm(x)": 10,
}


def entered(call: Callable[[], Any]) -> list[str]:
    """The functions of the library that a call enters after it was made before.

    They are the fewest of three calls: a cache that is full may be emptied before any of them.
    """
    for _ in range(3):
        call()
    return min((_entered_once(call) for _ in range(3)), key=len)


def _entered_once(call: Callable[[], Any]) -> list[str]:
    found: list[str] = []

    def profile(frame: Any, event: str, argument: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and ("tilearray" in path.rpartition("/tests/")[2]):
            found.append(frame.f_code.co_qualname)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("statement", CALLS)
def test_a_known_call_enters_few_functions(statement: str) -> None:
    names: dict[str, Any] = {
        "ta": ta,
        "x": ta.asarray(np.arange(1000, dtype="float32"), device="cpu"),
        "y": ta.asarray(np.ones(1000, "float32"), device="cpu"),
        "np": np,
        "host": np.ones(1000, "float32"),
        "place": ta.asarray(3, device="cpu"),
        "idx": ta.asarray(np.arange(1000)[::-1].copy(), device="cpu"),
        "mask": ta.asarray(np.arange(1000) % 3 == 0, device="cpu"),
        "m": ta.asarray(np.ones((30, 30)), device="cpu"),
    }
    code = compile(statement, "<statement>", "exec")
    with using_device(CPU):
        found = entered(lambda: exec(code, names))
    assert len(found) <= CALLS[statement], found


def test_a_known_import_of_a_host_tensor_enters_few_functions() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(1000)
    with using_device(CPU):
        found = entered(lambda: ta.asarray(tensor))
    assert len(found) <= 7, found


@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "count_nonzero", "argmax", "argmin"]
)
def test_a_known_reduction_does_not_answer_for_other_words(name: str) -> None:
    """``True == 1 == 1.0`` as keys of a dictionary; each call is to do what it does before any plan is known."""
    function = getattr(ta, name)
    axes: list[Any] = [0, 1, -1, None, True, 1.0, 2, "0", [0], np.int64(1)]
    words = [(axis, keepdims) for axis in axes for keepdims in (0, True, 1.0)]

    def outcome(x: Any, axis: Any, keepdims: Any) -> Any:
        try:
            return ta.to_numpy(function(x, axis=axis, keepdims=keepdims)).tolist()
        except (ta.TileArrayError, TypeError) as error:
            return type(error), str(error)

    fresh = []
    for one in words:
        PLANS.clear()
        fresh.append(outcome(ta.asarray([[1.0, 2.0, 0.0], [4.0, 3.0, 5.0]], device="cpu"), *one))
    x = ta.asarray([[1.0, 2.0, 0.0], [4.0, 3.0, 5.0]], device="cpu")
    for _ in range(3):
        assert [outcome(x, *one) for one in words] == fresh


def test_a_known_variance_does_not_answer_for_a_correction() -> None:
    x = ta.asarray([1.0, 2.0, 3.0, 6.0], dtype="float64", device="cpu")
    for _ in range(3):
        assert ta.var(x).item() == 3.5
        assert ta.var(x, ddof=2).item() == ta.var(x, correction=2).item() == 7.0
        assert ta.var(x, ddof=True).item() == 14 / 3
        assert ta.var(x[::2]).item() == 1.0


def test_a_known_sum_follows_the_semantics_and_the_options() -> None:
    x = ta.asarray([100, 100], dtype="int8", device="cpu")
    for _ in range(3):
        assert ta.sum(x).dtype == ta.int64
        with ta.semantics("array-api", int="int32"):
            assert ta.sum(x).dtype == ta.int32
        assert ta.sum(x, dtype="int8").item() == -56
        assert ta.sum(x, initial=1).item() == 201
        assert ta.sum(x, where=ta.asarray([True, False], device="cpu")).item() == 100
        out = ta.zeros((), dtype="int64", device="cpu")
        assert ta.sum(x, out=out) is out
        assert ta.sum([1, 2]).item() == 3


@pytest.mark.parametrize(
    ("call", "dtypes"),
    [
        (lambda x, y: ta.sum(x), ("int64", "int32")),
        (lambda x, y: ta.mean(x), ("float32", "float64")),
        (lambda x, y: ta.var(x), ("float32", "float64")),
        (lambda x, y: ta.logsumexp(x), ("float32", "float64")),
        (lambda x, y: ta.softmax(x), ("float32", "float64")),
        (lambda x, y: ta.vecdot(x, y), ("int16", "uint8")),
        (lambda x, y: ta.concat([x, y]), ("int16", "uint8")),
        (lambda x, y: ta.stack([x, y]), ("int16", "uint8")),
        (lambda x, y: x[None] @ y[:, None], ("int16", "uint8")),
        (lambda x, y: ta.dot(x, y), ("int16", "uint8")),
        (lambda x, y: ta.fft.fft(x), ("complex64", "complex128")),
        (lambda x, y: ta.linalg.vector_norm(x), ("float32", "float64")),
    ],
    ids=[
        "sum",
        "mean",
        "var",
        "logsumexp",
        "softmax",
        "vecdot",
        "concat",
        "stack",
        "matmul",
        "dot",
        "fft",
        "vector_norm",
    ],
)
def test_a_call_is_not_remembered_while_another_thread_changes_the_semantics(
    call: Callable[..., Any], dtypes: tuple[str, str]
) -> None:
    sizes = iter(range(3, 10**6))

    def operands() -> tuple[Any, Any]:
        size = next(sizes)
        return ta.ones(size, dtype="int8", device="cpu"), ta.ones(size, dtype="uint8", device="cpu")

    assert dtypes_after_changes(call, operands) == {dtypes}


def test_a_known_concat_does_not_answer_for_others() -> None:
    x, y = (ta.asarray(np.arange(6.0).reshape(2, 3) + first, device="cpu") for first in (0, 10))
    for _ in range(3):
        for axis in (0, 1, -1):
            assert np.array_equal(ta.concat([x, y], axis=axis), np.concatenate([x, y], axis))
        assert ta.concat((x,)).shape == (2, 3)
        assert ta.concat([x, y[:0]]).shape == (2, 3)
        assert ta.concat([x, y], dtype="float32").dtype == ta.float32
        assert ta.concat([x, y.T], axis=None).shape == (12,)
        with pytest.raises(ta.TileArrayError):
            ta.concat([x, y], axis=1.0)
        with pytest.raises(ta.ShapeError, match="concat: expected at least one array"):
            ta.concat([])
        with pytest.raises(ta.TileArrayError):
            ta.concat([x, "y"])
    first = ta.concat([x, y])
    first[...] = 0
    assert ta.concat([x, y]).tolist() != first.tolist()


def test_reductions_keep_little_memory() -> None:
    lanes._KEEPERS.clear()
    for size in range(10**6, 10**6 + 40):
        assert ta.var(ta.ones(size, device="cpu")).item() == 0
    kept = {id(spare): spare for spare, _ in lanes._KEEPERS}.values()
    assert 0 < sum(memory.nbytes for spare in kept for memory in spare) <= lanes.KEPT_BYTES
    assert all(len(spare) <= min(spare.notes, most_threads()) for spare in kept)
    assert ta.var(ta.ones(10**6, device="cpu")).item() == 0  # it gave its memory up


def test_reductions_of_many_shapes_keep_the_memory_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "NOTES", 5)
    lanes._KEEPERS.clear()
    for size in range(3, 30):
        assert ta.sum(ta.ones(size, device="cpu")).item() == size
    assert len(lanes._KEEPERS) == 5
    assert ta.sum(ta.ones(3, device="cpu")).item() == 3  # it gave its memory up


def test_reductions_count_the_memory_that_they_keep() -> None:
    x = ta.ones(10**6, device="cpu")
    ta.var(x)
    PLANS.clear()
    lanes._KEEPERS.clear()
    tracemalloc.start()
    try:
        ta.var(x)
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    counted = sum(size for _, size in lanes._KEEPERS)
    assert 0.9 * kept <= counted <= kept


def test_threads_do_not_share_the_lanes_of_a_sum() -> None:
    x = [ta.full(1000, float(number), device="cpu") for number in range(8)]
    wanted = [1000.0 * number for number in range(8)]

    def sums(_: int) -> bool:
        return all([ta.sum(each).item() for each in x] == wanted for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(sums, range(16)))


def test_the_host_cuts_a_reduction_only_where_the_order_counts() -> None:
    x = ta.ones(10**5, device="cpu")
    launches = {ta.sum: 2, ta.max: 0, ta.argmax: 0, ta.any: 0}
    for function, count in launches.items():
        _, (plan,) = planned(partial(function, x))
        assert len(plan.stages) == count
        _, (again,) = planned(partial(function, x))  # the words find no plan that was dropped
        assert again is not plan


@pytest.mark.parametrize("function", [ta.diagonal, lambda x, axis: ta.take_along_axis(x, x, axis), ta.stack])
def test_a_known_axis_does_not_answer_for_others(function: Callable[..., Any]) -> None:
    """``True == 1 == 1.0`` as keys of a dictionary."""
    x = ta.zeros((2, 2), dtype="int64", device="cpu")

    def outcome(axis: Any) -> Any:
        try:
            return ta.to_numpy(function([x] if function is ta.stack else x, axis)).tolist()
        except (ta.TileArrayError, TypeError) as error:
            return type(error), str(error)

    others = [True, 1.0, np.int64(1), "1", [1]]
    fresh = [outcome(axis) for axis in others]
    assert outcome(1) == outcome(1)
    assert [outcome(axis) for axis in others] == fresh
