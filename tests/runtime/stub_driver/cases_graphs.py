"""CUDA graphs of our own: what is captured, launched and destroyed, and in which order."""

from __future__ import annotations

import gc

import pytest

import tilearray as ta
from tilearray import cuda
from tilearray.errors import OperandError
from tilearray_cuda.errors import CaptureError, CudaError
from tilearray_cuda.runtime.streams import destroy_abandoned


def names(stub, *wanted):
    return [call.name for call in stub.log() if call.name in wanted]


def test_a_replay_is_between_the_work_of_the_current_stream(device, stub):
    with cuda.graph() as g:
        pass
    stub.start_log()
    g.replay()
    ordered = names(stub, "cuEventRecord", "cuStreamWaitEvent", "cuGraphLaunch")
    assert ordered == ["cuEventRecord", "cuStreamWaitEvent", "cuGraphLaunch", "cuEventRecord", "cuStreamWaitEvent"]
    calls = [call for call in stub.log() if call.name in ("cuEventRecord", "cuStreamWaitEvent", "cuGraphLaunch")]
    own = g.stream.handle
    assert [call.stream or 0 for call in calls] == [0, own, own, own, 0]


def test_memory_of_the_block_keeps_the_graph_alive(device, stub):
    with cuda.graph() as g:
        handle = cuda.current_stream().handle
        assert handle == g.stream.handle
        x = ta.empty(1000, device="cuda:0")
    assert cuda.current_stream().handle == 0
    stub.start_log()
    del g
    gc.collect()
    destroy_abandoned()
    assert "cuGraphExecDestroy" not in names(stub, "cuGraphExecDestroy")
    del x
    gc.collect()
    destroy_abandoned()
    assert names(stub, "cuGraphExecDestroy") == ["cuGraphExecDestroy"]
    assert stub.library.stub_graphs() == 0


def test_an_error_in_the_block_ends_the_capture(device, stub):
    g = cuda.graph()
    with pytest.raises(ZeroDivisionError), g:
        raise ZeroDivisionError
    assert stub.library.stub_graphs() == 0
    with pytest.raises(CaptureError, match="replay: nothing was captured; write with"):
        g.replay()
    with g:  # it can be used again
        pass
    g.replay()


def test_an_error_that_makes_the_capture_invalid_is_not_hidden(device, stub):
    stub.fail("cuStreamEndCapture", 901)
    with pytest.raises(ZeroDivisionError), cuda.graph():
        raise ZeroDivisionError
    stub.fail("cuStreamEndCapture", 901)
    with pytest.raises(CudaError, match="cuStreamEndCapture"), cuda.graph():
        pass


def test_blocks_of_one_graph_do_not_nest(device):
    with cuda.graph() as g, pytest.raises(OperandError, match="its block is active already"), g:
        pass


def test_an_update_replaces_no_memory_and_no_operations(device, stub):
    with cuda.graph() as g:
        pass
    with g.update():
        pass
    with pytest.raises(CaptureError, match="the block made new arrays"), g.update():
        ta.empty(1000, device="cuda:0")
    stub.fail("cuGraphExecUpdate", 910)
    with pytest.raises(CaptureError, match="expected the operations that were captured first"), g.update():
        pass
    assert stub.library.stub_graphs() == 0
    g.replay()


def test_a_graph_that_the_driver_refuses_leaves_nothing(device, stub):
    stub.fail("cuGraphInstantiateWithFlags", 2)
    with pytest.raises(CudaError), cuda.graph():
        pass
    assert stub.library.stub_graphs() == 0
    assert cuda.current_stream().handle == 0
