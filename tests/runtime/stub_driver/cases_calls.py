"""Written calls over a stub that computes: ``x + y`` of int64 from the operator to memory, and their checks."""

from __future__ import annotations

import ctypes
import gc
from collections import Counter

import numpy as np
import pytest
from support.threads import in_threads

import tilearray as ta
from tilearray import cuda
from tilearray.engine import caches, call, plan
from tilearray.functions import operators, ordering
from tilearray_cuda import kernel
from tilearray_cuda.device import open_device
from tilearray_cuda.errors import CaptureError, CudaError
from tilearray_cuda.kernels.disk_cache import Cubin
from tilearray_cuda.runtime.interop import borrow


@pytest.fixture(autouse=True)
def adding(monkeypatch, stub):
    """Use the stub's addition as the kernel of contiguous sums; other kernels do nothing."""

    def cubin_of(source, arch, contract):
        adds = source.name == "add_flat"
        return Cubin(b"STUB 6", "stub_add", 4, 0) if adds else Cubin(b"other", source.name, 4, 0)

    caches.PLANS.clear()
    caches.RECIPES.clear()
    caches.KERNELS.clear()
    monkeypatch.setattr(kernel, "cubin_of", cubin_of)
    yield
    caches.PLANS.clear()
    caches.RECIPES.clear()
    caches.KERNELS.clear()


@pytest.fixture
def whole(monkeypatch):
    """Count the calls of `rule.whole`."""
    counted = Counter()
    rule, execute = call.rule_of, operators.execute

    def executed(operation, operands, out=None):
        counted[operation.name] += 1
        return execute(operation, operands, out)

    def counting(operation, expression, careful):
        return rule(operation, expression, executed)

    caches.RECIPES.clear()
    call.RULES.clear()
    monkeypatch.setattr(plan, "rule_of", counting)
    monkeypatch.setattr(operators, "execute", executed)
    return counted


def array(*values):
    return ta.asarray(np.array(values, "int64"), device="cuda:0")


def memory(x):
    """Return the elements of a contiguous array; the stub's memory is host memory."""
    return list((ctypes.c_int64 * x.size).from_address(x._address))


def launches(stub):
    return [call for call in stub.log() if call.name == "cuLaunchKernel"]


def test_a_sum_from_the_operator_to_memory():
    x, y, o = array(1, 2, 3), array(10, 20, 30), array(0, 0, 0)
    for _ in range(3):
        assert memory(x + y) == [11, 22, 33]
        assert ta.add(x, y, out=o) is o
        assert memory(o) == [11, 22, 33]
    x += y
    x += y
    assert memory(x) == [21, 42, 63]
    assert memory(y[1:] + y[:-1]) == [30, 50]
    assert memory(x + x) == [42, 84, 126]


def test_threads_share_plans_and_not_arguments(stub):
    stub.give_way(True)
    array(1) + array(1)
    wrong = []

    def body(seed):
        x, y, total = array(seed), array(1000 * seed), array(0)
        for step in range(300):
            if memory(x + y) != [1001 * seed]:
                wrong.append(("new", seed, step))
            total += x
            if memory(total) != [seed * (step + 1)]:
                wrong.append(("into", seed, step))

    assert in_threads(8, lambda number: body(number + 1), interval=1e-5) == [None] * 8
    assert wrong == []


def test_only_a_target_that_shares_memory_goes_the_whole_way(whole, stub):
    x = array(*range(8))
    cases = [
        (x[:4], x[4:], False),  # neighbours
        (x[4:], x[:4], False),
        (x, x, False),
        (x[1:5], x[1:5], False),  # the same view, made twice
        (x[1:5], x[2:6], True),
        (x[2:6], x[1:5], True),
        (x[:4], x[3:7], True),  # one element
        (x[4:], x[1:5], True),
        (x[::2], x[1::2], True),  # interleaved: their byte ranges overlap
    ]
    for target, operand, shares in cases:
        target += operand
        whole.clear()
        stub.start_log()
        target += operand
        assert whole["add"] == shares, (target._offset, operand._offset)
        assert len(launches(stub)) == 1 + shares  # a copy of the operand


def test_a_target_that_is_read_only_is_refused_on_a_hit():
    x, y = array(1, 2, 3), array(1, 2, 3)
    x += y
    buffer = y._buffer
    y._buffer = borrow(0, buffer.pointer, buffer.nbytes, buffer, True, 0)
    x += y
    with pytest.raises(ta.WriteError, match="add: the target is read-only"):
        y += x
    with pytest.raises(ta.WriteError, match="add: the target is read-only"):
        ta.add(x, x, out=y)
    assert memory(y) == [1, 2, 3]


def test_operands_of_other_streams_are_waited_for(stub):
    x, y = array(1, 2), array(3, 4)
    x + y
    side = cuda.Stream("cuda:0")
    stub.start_log()
    with cuda.stream(side) as handle:
        z = x + y
        x += y
    order = [(call.name, call.stream) for call in stub.log() if call.name != "cuMemAllocFromPoolAsync"]
    launched = order.index(("cuLaunchKernel", handle))
    assert order[:launched].count(("cuStreamWaitEvent", handle)) == 2
    assert z._buffer.stream == x._buffer.stream == handle
    assert memory(z) == [4, 6]


def test_a_capture_of_torch_is_not_spoiled(stub, use_torch):
    x, y = array(1, 2), array(3, 4)
    x += y
    x + y
    use_torch(capturing=True)
    stub.start_log()
    with pytest.raises(CaptureError, match=r"write with ta\.cuda\.stream\(torch\.cuda\.current_stream\(\)\)"):
        x + y
    with pytest.raises(CaptureError):
        x += y
    assert stub.log() == []


def test_a_result_that_is_not_made_gives_its_memory_back(stub):
    x, y = array(1, 2), array(3, 4)
    x + y
    gc.collect()
    live = cuda.memory_statistics("cuda:0").live
    stub.fail("cuLaunchKernel", 700)
    with pytest.raises(CudaError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        x + y
    gc.collect()  # the error and its traceback
    assert cuda.memory_statistics("cuda:0").live == live
    assert memory(x + y) == [4, 6]


@pytest.mark.parametrize(
    ("failing", "skip"), [("cuMemAllocFromPoolAsync", 0), ("cuLaunchKernel", 0), ("cuLaunchKernel", 1)]
)
def test_a_selection_that_fails_gives_its_word_back(stub, failing, skip):
    """Not before it has waited: a kernel that was launched may write to the word."""
    x = array(1, 2)
    chosen = x == x
    x[chosen]
    unused = open_device(0).index_errors._unused
    before = len(unused)
    cuda.empty_cache("cuda:0")
    stub.fail(failing, 2, skip, times=2)
    stub.start_log()
    with pytest.raises(MemoryError):
        x[chosen]
    assert len(unused) == before
    assert stub.log()[-1].name == "cuStreamSynchronize"
    stub.reset()
    assert x[chosen].shape == (0,)


@pytest.mark.parametrize("function", [ta.sort, ta.argsort])
def test_a_known_sort_only_allocates_and_launches(function, monkeypatch, stub, use_torch):
    """What the first one did, on any stream; a launch that fails gives all memory back."""
    x = ta.empty((10_000,), dtype="float32", device="cuda:0")
    stub.start_log()
    function(x)
    first = len(launches(stub))
    monkeypatch.setattr(ordering, "_rows_of", None)
    side = cuda.Stream("cuda:0")
    stub.start_log()
    with cuda.stream(side) as handle:
        found = function(x)
    made = Counter([(call.name, call.stream) for call in stub.log()])
    assert made["cuStreamWaitEvent", handle] == 1
    assert made["cuLaunchKernel", handle] == first
    assert found._buffer.stream == handle
    assert (found.shape, found.dtype) == (x.shape, x.dtype if function is ta.sort else ta.int64)
    for wrong in ({"axis": -1.0}, {"axis": 1}, {"descending": "no"}):
        with pytest.raises(ta.TileArrayError, match="sort: expected"):
            function(x, **wrong)
    gc.collect()
    live = cuda.memory_statistics("cuda:0").live
    stub.fail("cuLaunchKernel", 700, skip=first - 1)
    with pytest.raises(CudaError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        function(x)
    gc.collect()  # the error and its traceback
    assert cuda.memory_statistics("cuda:0").live == live
    use_torch(capturing=True)
    with pytest.raises(CaptureError):
        function(x)
