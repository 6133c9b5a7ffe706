"""Counts of a planned operation: driver calls, Python frames, plans, kernels. No clocks.

The numbers are those of today's hit path. A change that increases one makes every small operation slower.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest

import tilearray as ta
from benchmarks import dispatch
from tilearray.engine import caches, plan
from tilearray.engine import execute as engine
from tilearray.functions.indexing import views
from tilearray.geometry.layout import Layout
from tilearray.ops import op
from tilearray_cuda import kernel
from tilearray_cuda.kernels.disk_cache import Cubin
from tilearray_cuda.runtime import launch


class Counted:
    """Counts the steps that an operation takes only once: the general call, plan, compilation, layout."""

    def __init__(self, monkeypatch):
        self.calls = Counter()
        for owner, name in (
            (engine, "make_plan"),
            (op, "execute"),
            (kernel, "cubin_of"),
            (plan, "geometry_of"),
            (views, "_taken"),
            (views, "_made"),
            (views, "_transposed"),
            (Layout, "__init__"),
        ):
            monkeypatch.setattr(owner, name, self.counting(name, getattr(owner, name)))

    def counting(self, name, function):
        def counted(*args, **kwargs):
            self.calls[name] += 1
            return function(*args, **kwargs)

        return counted


@pytest.fixture
def counted(monkeypatch, stub):
    caches.PLANS.clear()
    caches.RECIPES.clear()
    caches.KERNELS.clear()
    monkeypatch.setattr(
        kernel, "cubin_of", lambda source, arch, contract: Cubin(b"other", source.name, source.tile.warps, 0)
    )
    return Counted(monkeypatch)


def vector(size=1000, dtype="float32"):
    return ta.empty((size,), dtype=dtype, device="cuda:0")


def frames_of(call):
    """The names of the Python functions that a call enters, without those of cuda-python; their number is tested."""
    entered = []

    def profile(frame, event, argument):
        if event == "call" and "bindings" not in frame.f_code.co_filename:
            entered.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered[1:]  # without the call itself


HIT, FREED = 2, 1
"""Python frames of an operation that was planned before, and of an array that is freed."""

CALLS = [
    ("a + b", lambda a, b, m: a + b, HIT + FREED, 1),
    ("a < b", lambda a, b, m: a < b, HIT + FREED, 1),
    ("a * 2.0", lambda a, b, m: a * 2.0, HIT + FREED, 1),
    ("2.0 * a", lambda a, b, m: 2.0 * a, HIT + FREED, 1),
    ("-a", lambda a, b, m: -a, HIT + FREED, 1),
    ("a += b", lambda a, b, m: a.__iadd__(b), HIT, 1),
    ("a += 2.0", lambda a, b, m: a.__iadd__(2.0), HIT, 1),
    ("add(a, b)", lambda a, b, m: ta.add(a, b), HIT + FREED, 1),
    ("add(a, b, out=a)", lambda a, b, m: ta.add(a, b, out=a), HIT, 1),
    ("where(c, a, b)", lambda a, b, m: ta.where(a < b, a, b), 1 + 2 * (HIT + FREED), 2),
    ("m + m.T", lambda a, b, m: m + m.T, 1 + HIT + FREED, 1),
    ("roll(m)", lambda a, b, m: ta.roll(m, 5, axis=1), 6 + FREED, 1),
    ("roll(m, flat)", lambda a, b, m: ta.roll(m, 5), 6 + FREED, 1),
    ("tril(m)", lambda a, b, m: ta.tril(m, -1), 4 + FREED, 1),
    ("triu(m)", lambda a, b, m: ta.triu(m), 4 + FREED, 1),
    ("tile(a)", lambda a, b, m: ta.tile(a, (2, 3)), 5 + FREED, 1),
    ("repeat(a)", lambda a, b, m: ta.repeat(a, 3), 5 + FREED, 1),
    ("pad(m)", lambda a, b, m: ta.pad(m, 1), 5 + FREED, 1),
    ("diff(a)", lambda a, b, m: ta.diff(a), 5 + FREED, 1),
    ("clip(a)", lambda a, b, m: ta.clip(a, 0, 1), 1 + HIT + FREED, 1),
    ("dot(a, b)", lambda a, b, m: ta.dot(a, b), 5 + FREED, 1),
    ("cumulative_sum(m)", lambda a, b, m: ta.cumulative_sum(m, axis=0), 3 + FREED, 1),
    ("concat([a, b])", lambda a, b, m: ta.concat([a, b]), 8, 1),
    ("stack of eight", lambda a, b, m: ta.stack([a, b] * 4), 8, 1),
]


@pytest.mark.parametrize(("call", "frames", "launches"), [case[1:] for case in CALLS], ids=[case[0] for case in CALLS])
def test_a_hit_is_two_frames_and_a_launch(counted, stub, call, frames, launches):
    operands = vector(), vector(), ta.empty((32, 32), dtype="float32", device="cuda:0")

    def again():
        call(*operands)

    again()
    again()
    before = stub.calls()
    again()
    assert stub.calls() - before == launches
    entered = frames_of(again)[1:]  # less the lambda
    assert len(entered) <= frames, entered


HOST = np.ones(1000, "float32")
RNG = ta.random.default_rng(3, device="cuda:0")
KNOWN = [
    ("add.at, atomic", lambda x, i: ta.add.at(x, i, x, mode="atomic"), 58),
    ("add.at of a number", lambda x, i: ta.add.at(x, i, 1.5, mode="atomic"), 56),
    ("add.at", lambda x, i: ta.add.at(x, i, x), 124),
    ("searchsorted", lambda x, i: ta.searchsorted(x, x), 20),
    ("histogram", lambda x, i: ta.histogram(x, 8, (0, 8)), 142),
    ("x[i]", lambda x, i: x[i], 28),
    ("take", lambda x, i: ta.take(x, i), 26),
    ("x[i] = 0.0", lambda x, i: x.__setitem__(i, 0.0), 41),
    ("x[mask]", lambda x, i: x[x > 0], 41),
    ("nonzero", lambda x, i: ta.nonzero(x), 35),
    ("integers", lambda x, i: RNG.integers(9, size=1000), 14),
    ("random", lambda x, i: RNG.random(1000), 13),
    ("standard_normal", lambda x, i: RNG.standard_normal(1000), 13),
    ("normal", lambda x, i: RNG.normal(0.0, 2.0, 1000), 13),
    ("asarray of a host array", lambda x, i: ta.asarray(HOST, device="cuda:0"), 46),
    ("copy in C order", lambda x, i: x.reshape(50, 20).T.copy(order="C"), 24),
]


@pytest.mark.parametrize(("call", "frames"), [case[1:] for case in KNOWN], ids=[case[0] for case in KNOWN])
def test_a_known_call_enters_few_functions(stub, counted, call, frames):
    x, i = vector(), vector(dtype="int64")
    for _ in range(3):
        call(x, i)
    entered = frames_of(lambda: call(x, i))[1:]  # less the lambda
    assert len(entered) <= frames, f"{len(entered)}: {' '.join(entered)}"
    assert "make_plan" not in entered


VIEWS = [
    ("a[1:]", lambda a, m: a[1:], 1),
    ("a[5]", lambda a, m: a[5], 1),
    ("a[::-2]", lambda a, m: a[::-2], 1),
    ("m[1:, ::2]", lambda a, m: m[1:, ::2], 2),
    ("m[:, -1]", lambda a, m: m[:, -1], 2),
    ("m.T", lambda a, m: m.T, 1),
    ("flip", lambda a, m: ta.flip(m, axis=1), 5),
    ("reshape", lambda a, m: ta.reshape(m, (2, -1)), 3),
    ("squeeze", lambda a, m: ta.squeeze(m), 5),
]


@pytest.mark.parametrize(("view", "frames"), [case[1:] for case in VIEWS], ids=[case[0] for case in VIEWS])
def test_a_view_taken_before_is_one_lookup(counted, stub, view, frames):
    a, m = vector(), ta.empty((32, 32), dtype="float32", device="cuda:0")
    first = view(a, m)
    before = stub.calls()
    entered = frames_of(lambda: view(a, m))[1:]  # less the lambda
    assert len(entered) <= frames, entered
    second = view(a, m)
    assert second._signature is first._signature
    assert (second._buffer, second._offset) == (first._buffer, first._offset)
    assert stub.calls() == before


def test_a_window_that_slides_is_one_view_of_two_alignments(counted):
    a = vector()
    signatures = {a[start : start + 100]._signature for start in range(500)}
    assert len(signatures) == 2
    assert {signature.aligned for signature in signatures} == {True, False}
    assert counted.calls["_taken"] + counted.calls["_made"] == 1
    for start in range(0, 500, 7):
        x = a[start : start + 100]
        assert x._signature.aligned == (x._address % 16 == 0)
        assert (x.shape, x.strides, x.offset) == ((100,), (1,), start)


def test_numbers_make_one_plan_and_one_kernel(counted):
    a, i = vector(), vector(dtype="int8")
    for number in (2.0, -3.5, 1e300, float("nan"), 7, 2**80, True):
        a * number
    for number in (1, -128, 127):
        results = i + number, i < number
        assert [result.dtype.name for result in results] == ["int8", "bool"]
    assert counted.calls["cubin_of"] == 3
    assert counted.calls["make_plan"] == 3 + 1 + 1  # float, int and bool beside float; int8 with int; the comparison
    with pytest.raises(ta.ScalarOverflowError, match="128 does not fit int8"):
        i + 128
    assert (i < 128).dtype == "bool"  # compared as int32, in a separate kernel


def test_joins_of_two_to_eight_arrays_share_three_kernels(counted):
    for count in range(2, 9):
        ta.concat([vector()] * count)
        ta.stack([vector(7)] * count)
    assert counted.calls["cubin_of"] == 3


def block_and_row(pool, size):
    matrix = pool.reshape(128, 128)
    return matrix[: size - 1000, : size - 1010], pool[: size - 1010]


MISSES = [
    ("length", lambda pool, size: (pool[:size], pool[:size]), 0, 17),
    ("matrix and row", lambda pool, size: (pool.reshape(128, 128)[: size - 1000], pool[:128]), 0, 18),
    ("block and row", block_and_row, 1, 24),
    ("matrix and transpose", lambda pool, size: transposed_pair(pool.reshape(128, 128), size - 1000), 1, 23),
    ("block and number", lambda pool, size: (block_and_row(pool, size)[0], 2.0), 1, 28),
]
KINDS = [case[0] for case in MISSES]


@pytest.mark.parametrize(("make", "layouts"), [case[1:3] for case in MISSES], ids=KINDS)
def test_a_shape_never_seen_of_a_known_pattern_is_not_planned(counted, stub, make, layouts):
    """It costs its launch and the layout of its result; all other steps were taken for an earlier shape."""
    pool = vector(1 << 14)
    operands = [make(pool, size) for size in range(1030, 1126)]
    for x, y in operands[:16]:
        ta.add(x, y)
    for x, _ in operands:
        vector(x.size)  # free blocks of all sizes exist now
    counted.calls.clear()
    before = stub.calls()
    for x, y in operands[16:]:
        ta.add(x, y)
    assert stub.calls() - before == 80
    assert counted.calls == {"execute": 80, "make_plan": 80, **({"__init__": 80} if layouts else {})}


@pytest.mark.parametrize(("make", "functions"), [(case[1], case[3]) for case in MISSES], ids=KINDS)
def test_a_shape_never_seen_enters_few_functions(counted, make, functions):
    pool = vector(1 << 14)
    for size in range(1070, 1086):
        add = ta.add(*make(pool, size))
    x, y = make(pool, 1086)
    del add
    entered = [name for name in frames_of(lambda: ta.add(x, y)) if name not in ("counted", "<listcomp>")]
    assert "make_plan" in entered
    assert len(entered) <= functions, " ".join(entered)


def transposed_pair(matrix, size):
    return matrix[:size, :100], matrix.T[:size, :100]


def test_a_number_that_does_not_fit_gives_its_frame_back(counted):
    i = vector(dtype="int8")
    i + 1
    for _ in range(5):
        with pytest.raises(ta.ScalarOverflowError):
            i + 1000
    planned = next(iter(caches.leaves(caches.PLANS._young[id(engine.plans_of(ta.get_semantics()))])))
    assert len(planned.kernel.arguments.frames) == launch.SPARE_FRAMES


def test_signatures_that_leave_the_table_let_go(counted, monkeypatch):
    from tilearray.engine import signature

    monkeypatch.setattr(signature, "SIGNATURES", caches.TwoGenerations(8, signature.Signature.forget))
    x = ta.empty((200,), dtype="float32", device="cuda:0")
    first = x._signature
    y = x
    for _ in range(100):
        y = y[1:]
    assert not first.interned
    assert first.views == {}
    assert (x[1:].shape, x._signature.interned) == ((199,), True)
    assert x.T.shape == (200,)


def test_the_profile_names_every_part(counted, capsys):
    assert dispatch.main(["--repeats", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("bare launch: ")
    for name in (*dispatch.OPERATIONS, *dispatch.VIEWS, *dict(dispatch.PARTS), *dict(dispatch.NEVER_SEEN)):
        assert f"| {name} |" in printed


def test_known_calls_launch_on_the_active_stream(counted, stub):
    """In new memory of that stream."""
    m = ta.empty((32, 32), dtype="float32", device="cuda:0")
    rng = ta.random.default_rng(1, device="cuda:0")
    calls = [lambda: ta.roll(m, 5), lambda: ta.tril(m), lambda: ta.tile(m, (2, 1)), lambda: rng.random(8)]
    calls += [lambda: ta.diff(m), lambda: ta.concat([m, m])]
    for call in calls:
        for _ in range(3):
            call()
        stream = ta.cuda.Stream("cuda:0")
        with ta.cuda.stream(stream):
            stub.start_log()
            found = [call(), call()]
        launches = [each for each in stub.log() if each.name == "cuLaunchKernel"]
        assert [each.stream for each in launches] == [stream.handle] * 2
        assert found[0]._buffer.pointer != found[1]._buffer.pointer
        assert [each._buffer.stream for each in found] == [stream.handle] * 2
        stub.library.stub_logging(0)
