"""The assembly that orders and counts the digits of a block, and ranks elements, run for all threads on NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.interpreter.threads_of_ptx import run_in_threads

from tilearray_cuda.kernels.block_order import (
    DIGITS,
    LISTED,
    count_function,
    list_functions,
    order_function,
    place_text,
    warps_of,
)

SIZES = (256, 512, 2048, 4096, 8192)
_ORDER = {size: order_function(size) for size in SIZES}


def assembly(text: str) -> tuple[str, int]:
    """The assembly of a Triton function, and the elements of a thread."""
    return "".join(re.findall(r'^        "(.*)"$', text, re.MULTILINE)), int(re.search(r"pack=(\d+)", text)[1])  # type: ignore[index]


def place_of(size: int) -> np.ndarray:
    """The place of each index."""
    return eval(place_text(size), {"index": np.arange(size)})


@st.composite
def digits(draw: st.DrawFn, most: int) -> np.ndarray:
    """Digits of a block: random, few different ones, sorted, or with long runs."""
    size, seed = draw(st.sampled_from(SIZES)), draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    found = rng.choice(rng.integers(0, most, draw(st.sampled_from([1, 2, 3, 32, 1000]))), size).astype(np.int32)
    kind = draw(st.sampled_from(["random", "sorted", "runs"]))
    return np.sort(found) if kind == "sorted" else np.repeat(found, 40)[:size] if kind == "runs" else found


@given(digits(DIGITS), st.integers(0, 2**32))
def test_orders_are_stable(digit, seed):
    size = digit.size
    begin = np.zeros(size, np.int32)
    begin[:DIGITS] = np.random.default_rng(seed).integers(-(2**31), 2**31, DIGITS)
    asm, pack = assembly(_ORDER[size])
    index = np.arange(size, dtype=np.int32)
    source, slot = run_in_threads(asm, 2, pack, [digit[place_of(size)], index, begin])
    order = np.argsort(digit, kind="stable")
    place = place_of(size)
    given = np.empty_like(order)
    given[place] = np.arange(size)  # the index that has a place
    np.testing.assert_array_equal(source, given[order][place])
    first = np.searchsorted(digit[order], np.arange(DIGITS))
    wanted = begin[digit[order]].astype(np.int64) + np.arange(size) - first[digit[order]]
    np.testing.assert_array_equal(slot, wanted.astype(np.int32)[place])


def test_other_distributions_of_a_block_stop_the_kernel():
    asm, pack = assembly(_ORDER[512])
    index = np.arange(512, dtype=np.int32)
    with pytest.raises(AssertionError, match="a trap"):
        run_in_threads(asm, 2, pack, [index % 7, index ^ 1, index])


@given(st.sampled_from([1, 2]), st.data())
def test_counts_leave_out_what_is_not_a_digit(parts, data):
    digit = data.draw(digits(parts * DIGITS + 3))
    asm, pack = assembly(count_function(digit.size, parts))
    (found,) = run_in_threads(asm, 1, pack, [digit, np.arange(digit.size, dtype=np.int32)])
    most = min(parts * DIGITS, digit.size)
    np.testing.assert_array_equal(found[:most], np.bincount(digit, minlength=most)[:most])
    assert not found[most:].any()


@pytest.mark.parametrize("size", SIZES)
def test_shared_memory_is_less_than_a_block_has_without_asking(size):
    declared = sum(map(int, re.findall(r"\.b8 \w+\[(\d+)\]", _ORDER[size])))
    assert 4 * size < declared < 48 << 10
    assert size % (32 * warps_of(size)) == 0


@given(st.sampled_from([0.0, 0.001, 0.01, 0.24, 0.26, 0.5, 0.99, 1.0]), st.integers(0, 2**32))
def test_lists_have_the_chosen_elements_in_order(share, seed):
    chosen = np.random.default_rng(seed).random(LISTED) < share
    words = np.packbits(chosen, bitorder="little").view(np.int32)
    (make, pack), (read, pack_of_places) = map(assembly, list_functions())
    assert pack == pack_of_places == 1
    total, listed = run_in_threads(make, 2, pack, [words, np.arange(32, dtype=np.int32)])
    assert (total == chosen.sum()).all()
    places = np.arange(256, dtype=np.int32)
    found = [run_in_threads(read, 1, pack, [places + k, places * 0 + listed[0]])[0] for k in range(0, LISTED, 256)]
    np.testing.assert_array_equal(np.concatenate(found)[: total[0]], np.flatnonzero(chosen))


def test_lists_of_other_distributions_stop_the_kernel():
    asm, pack = assembly(list_functions()[0])
    with pytest.raises(AssertionError, match="a trap"):
        run_in_threads(asm, 2, pack, [np.zeros(32, np.int32), np.arange(32, dtype=np.int32) ^ 1])
