"""Semantics in force: blocks nest, threads and tasks keep to themselves, and what promotion answers follows."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextvars import copy_context

import ml_dtypes
import numpy as np
import pytest

import tilearray as ta
from tilearray import dtypes
from tilearray.engine.context import (
    STATE,
    can_cast,
    get_semantics,
    plans_of,
    promote_types,
    result_type,
    semantics,
    set_semantics,
)
from tilearray.errors import DTypeError, OperandError, PromotionError, ScalarOverflowError, SemanticsError
from tilearray.promotion.systems import ARRAY_API, TRITON


@pytest.fixture(autouse=True)
def _default_again() -> Iterator[None]:
    yield
    set_semantics("array-api")
    assert get_semantics() is ARRAY_API, "a test left a block open"


def in_force() -> str:
    return get_semantics().name


def test_blocks_nest() -> None:
    assert in_force() == "array-api"
    with semantics("triton") as outer:
        assert outer is TRITON is get_semantics()
        with semantics(ARRAY_API):
            assert in_force() == "array-api"
        assert in_force() == "triton"
    assert in_force() == "array-api"


def test_an_exception_leaves_the_block() -> None:
    with pytest.raises(KeyError), semantics("triton"):
        raise KeyError
    assert in_force() == "array-api"


def test_one_object_may_be_entered_again() -> None:
    block, other = semantics("triton"), semantics("array-api")
    with block:
        with other:
            with block:
                assert in_force() == "triton"
            assert in_force() == "array-api"
        assert in_force() == "triton"
    assert in_force() == "array-api"
    with block:
        assert in_force() == "triton"


def test_blocks_may_end_in_another_order() -> None:
    first, second, third = semantics("triton"), semantics("array-api"), semantics("triton")
    first.__enter__()
    second.__enter__()
    third.__enter__()
    second.__exit__(None, None, None)
    assert in_force() == "triton"
    third.__exit__(None, None, None)
    assert in_force() == "triton"
    first.__exit__(None, None, None)
    assert in_force() == "array-api"
    first.__exit__(None, None, None)  # once too often
    assert in_force() == "array-api"


def test_an_outer_block_may_end_first() -> None:
    first, second = semantics("triton"), semantics("array-api")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert in_force() == "array-api"
    set_semantics("triton")
    assert in_force() == "array-api"  # the inner block still stands
    second.__exit__(None, None, None)
    assert in_force() == "triton"


def test_interleaved_generators() -> None:
    def steps(name: str) -> Iterator[str]:
        with semantics(name):
            yield in_force()
            yield "done"

    one, other = steps("triton"), steps("array-api")
    assert (next(one), next(other)) == ("triton", "array-api")
    one.close()
    assert in_force() == "array-api"
    other.close()
    assert in_force() == "array-api"


def test_set_semantics_changes_what_is_under_the_blocks() -> None:
    with semantics("array-api"):
        set_semantics("triton")
        assert in_force() == "array-api"
    assert in_force() == "triton"
    with pytest.raises(
        SemanticsError, match=r"set_semantics: unknown semantics 'numpi'; write 'array-api' or 'triton'"
    ):
        set_semantics("numpi")
    assert in_force() == "triton"


def test_a_bad_name_fails_before_the_block() -> None:
    with pytest.raises(SemanticsError, match=r"semantics: unknown semantics 'Triton'; write 'array-api' or 'triton'"):
        semantics("Triton")


def test_plans_belong_to_the_semantics() -> None:
    outside = STATE.get().plans
    assert outside is plans_of(ARRAY_API)
    with semantics("triton"):
        inside = STATE.get().plans
        assert inside is plans_of(TRITON) is not outside
        with semantics("array-api"):
            assert STATE.get().plans is outside
    set_semantics("triton")
    assert STATE.get().plans is inside


def test_the_stream_stays() -> None:
    def inside() -> None:
        block, inner = semantics("triton"), semantics("array-api")
        block.__enter__()
        STATE.get().stream = "stream"
        inner.__enter__()
        assert STATE.get().stream == "stream"
        block.__exit__(None, None, None)
        assert STATE.get().stream == "stream"

    copy_context().run(inside)


def test_threads_do_not_see_each_others_blocks() -> None:
    barrier = threading.Barrier(3, timeout=30)
    block = semantics("triton")  # one object, used by two threads at once
    seen: dict[str, list[str]] = {"first": [], "second": [], "bystander": []}

    def user(name: str) -> None:
        for _ in range(50):
            barrier.wait()
            with block:
                barrier.wait()
                seen[name].append(in_force())
                barrier.wait()
            seen[name].append(in_force())

    def bystander() -> None:
        for _ in range(50):
            barrier.wait()
            barrier.wait()
            seen["bystander"].append(in_force())
            barrier.wait()

    threads = [threading.Thread(target=user, args=(name,)) for name in ("first", "second")]
    threads.append(threading.Thread(target=bystander))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {
        "first": ["triton", "array-api"] * 50,
        "second": ["triton", "array-api"] * 50,
        "bystander": ["array-api"] * 50,
    }


def test_tasks_start_with_their_makers_blocks_and_keep_their_own() -> None:
    async def child(entered: asyncio.Event, left: asyncio.Event) -> list[str]:
        seen = [in_force()]
        with semantics("array-api"):
            entered.set()
            await left.wait()  # meanwhile the maker leaves the block in which this task was made
            seen.append(in_force())
        return [*seen, in_force()]

    async def maker() -> tuple[list[str], list[str]]:
        entered, left = asyncio.Event(), asyncio.Event()
        seen = []
        with semantics("triton"):
            task = asyncio.create_task(child(entered, left))
            await entered.wait()
            seen.append(in_force())
        seen.append(in_force())
        left.set()
        return seen, await task

    assert asyncio.run(maker()) == (["triton", "array-api"], ["triton", "array-api", "triton"])


def test_interleaved_tasks() -> None:
    async def task(name: str) -> bool:
        for _ in range(20):
            with semantics(name):
                await asyncio.sleep(0)
                if in_force() != name:
                    return False
            if in_force() != "array-api":
                return False
        return True

    async def main() -> list[bool]:
        return await asyncio.gather(*(task(name) for name in ("triton", "array-api", "triton")))

    assert asyncio.run(main()) == [True] * 3


def run(code: str, value: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TILEARRAY_SEMANTICS": value, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)


def test_the_environment_names_the_default() -> None:
    code = "from tilearray.engine.context import *; print(get_semantics(), promote_types('int8', 'uint8'))"
    assert run(code, "triton").stdout.split() == ["triton", "uint8"]
    for value in ("array-api", ""):
        assert run(code, value).stdout.split() == ["array-api", "int16"]


def test_a_bad_name_in_the_environment_is_named() -> None:
    failed = run("import tilearray; tilearray.get_semantics()", "tritn")
    assert failed.returncode == 1
    assert "TILEARRAY_SEMANTICS: unknown semantics 'tritn'; write 'array-api' or 'triton'" in failed.stderr


# --- What promotion answers -----------------------------------------------------------------------------------------


def test_promote_types_follows_the_semantics() -> None:
    assert promote_types("int8", dtypes.uint8) is dtypes.int16
    with semantics("triton"):
        assert promote_types("int8", dtypes.uint8) is dtypes.uint8
    with pytest.raises(PromotionError, match="promote_types: int8 and uint64 have no common dtype"):
        promote_types("uint64", "int8")
    with pytest.raises(DTypeError, match="promote_types: dtype 'tf32' is not supported"):
        promote_types("tf32", "int8")


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((np.zeros(2, "int8"), 3), "int8"),
        ((np.zeros(2, "int8"), 2.5), "float32"),
        ((np.zeros(2, "int8"), 1e300), "float64"),
        ((np.zeros(2, "float16"), 1e300), "float16"),
        ((np.zeros(2, "float16"), 10**30), "float16"),
        ((np.zeros(2, "bool"), 2**40), "int64"),
        ((np.zeros(2, "float16"), np.float64(2.5)), "float64"),  # a NumPy scalar is typed
        ((np.zeros(2, "float16"), np.array(2.5)), "float64"),  # and so is a 0-d array
        ((np.zeros(2, "float16"), ml_dtypes.bfloat16(1)), "float32"),
        (("int8", dtypes.uint8, float), "float64"),
        ((np.zeros(2, "float64"), 1j), "complex128"),
        ((3,), "int64"),
        ((2**63,), "uint64"),
        ((True, 2.5), "float32"),
    ],
)
def test_result_type_of_arrays_dtypes_and_numbers(operands: tuple[object, ...], expected: str) -> None:
    assert result_type(*operands).name == expected
    assert result_type(*reversed(operands)).name == expected


def test_result_type_takes_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    assert result_type(torch.zeros(2, dtype=torch.bfloat16), torch.float8_e5m2, 3) is dtypes.bfloat16


def test_result_type_follows_the_semantics() -> None:
    with semantics("triton"):
        assert result_type(3) is dtypes.int32
        assert result_type(np.zeros(2, "int8"), np.uint64(3)) is dtypes.uint64


def test_result_type_refuses() -> None:
    with pytest.raises(
        OperandError, match="result_type: expected at least one array, dtype or number, got none; write"
    ):
        result_type()
    with pytest.raises(ScalarOverflowError, match="result_type: no integer dtype holds an integer beyond 64 bits"):
        result_type("bool", 2**64)
    with pytest.raises(DTypeError, match=r"result_type: expected a dtype, got \[1\] of type list"):
        result_type([1], 2)


def test_can_cast_is_promotion_that_changes_nothing() -> None:
    for one in dtypes.ALL:
        for other in dtypes.ALL:
            try:
                expected = promote_types(one, other) == other
            except PromotionError:
                expected = False
            assert can_cast(one, other) is expected
    assert can_cast(np.zeros(2, "uint8"), "int16")
    assert not can_cast("int8", "uint8")
    assert not can_cast("uint64", "int8")
    with semantics("triton"):
        assert can_cast("int8", "uint8")


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_can_cast_has_numpys_rules(casting) -> None:
    numpys = [dtype for dtype in dtypes.ARITHMETIC if dtype.isbuiltin == 1]
    with semantics("numpy"):
        for one in numpys:
            for other in numpys:
                assert can_cast(one, other, casting) is np.can_cast(one, other, casting)
    with pytest.raises(OperandError, match=r"^can_cast: expected casting as 'no', .* got 'some'; write casting='uns"):
        can_cast("int8", "int16", casting="some")  # type: ignore[arg-type]


def test_plans_found_by_the_class_of_a_number_are_of_one_semantics() -> None:
    """Semantics share the body of ``x * 3``; torch takes no number of more than 64 bits, planned before or not."""
    x = ta.ones(2, dtype="float32", device="cpu")
    for name in ("array-api", "torch", "array-api", "torch"):
        with semantics(name):
            assert (x * True).tolist() == [1, 1]
            assert (x * 3).tolist() == [3, 3]
            if name == "array-api":
                assert (x * 2**70).tolist() == [2.0**70] * 2
            else:
                with pytest.raises(ta.ScalarOverflowError):
                    x * 2**70


def test_plans_tell_0d_arrays_from_others_where_the_semantics_do() -> None:
    x = ta.ones(2, dtype="float16", device="cpu")
    point = ta.ones((), dtype="float64", device="cpu")
    for _ in range(2):
        for name, expected in (("array-api", "float64"), ("torch", "float16")):
            with semantics(name):
                assert (x * point).dtype.name == (x + 0 * point).dtype.name == expected


def test_thousands_of_blocks_end_in_any_order() -> None:
    """Suspended generators hold them; the first ends below all others."""

    def suspended() -> Iterator[None]:
        with semantics("triton"):
            yield

    blocks = [suspended() for _ in range(3000)]
    for block in blocks:
        next(block)
    blocks.pop(0).close()
    assert in_force() == "triton"
    for block in blocks:
        block.close()
    assert in_force() == "array-api"


def test_the_semantics_of_the_environment_are_read_at_the_first_use() -> None:
    code = (
        "import os, tilearray as ta\n"
        "for act in (ta.get_semantics, lambda: ta.zeros(3), lambda: ta.add(1, 2), ta.get_semantics):\n"
        "    try:\n        act()\n    except ta.SemanticsError as error:\n        print(str(error)[:50])\n"
        "if hasattr(os, 'fork') and os.fork() == 0:\n    os._exit(0)\n"
        "ta.set_semantics('torch')\nprint(ta.get_semantics(), ta.zeros(3).dtype)\n"
    )
    environment = {**os.environ, "TILEARRAY_SEMANTICS": "tritn", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["TILEARRAY_SEMANTICS: unknown semantics 'tritn'; wr"] * 4 + ["torch float32"]
