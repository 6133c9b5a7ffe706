"""Fourier transforms over a library that only notes its calls: plans, streams, workspaces, contexts and captures."""

from __future__ import annotations

import pytest

from tilearray_cuda.errors import CaptureError
from tilearray_cuda.libraries import cufft
from tilearray_cuda.runtime.driver import api, call
from tilearray_cuda.runtime.streams import Stream


class Library:
    """A library whose plans are the numbers from 1 on."""

    def __init__(self):
        self.made, self.nbytes, self.calls, self.context = 0, 1000, [], None

    def create(self):
        self.made += 1
        return self.made

    def set_auto_allocation(self, plan, on):
        assert not on

    def xt_make_plan_many(self, *arguments):
        return self.nbytes

    def set_stream(self, plan, stream):
        self.calls.append(("set_stream", plan, stream))

    def set_work_area(self, plan, address):
        self.calls.append(("set_work_area", plan, address))

    def xt_exec(self, plan, source, target, direction):
        self.context = int(call(api.cuCtxGetCurrent))
        self.calls.append(("xt_exec", plan, direction))

    def destroy(self, plan):
        self.calls.append(("destroy", plan))

    def noted(self):
        """The names of the calls since this was last asked."""
        names = [name for name, *_ in self.calls]
        self.calls.clear()
        return names


@pytest.fixture
def library(monkeypatch):
    library = Library()
    monkeypatch.setattr(cufft, "bindings", lambda name: library)
    return library


@pytest.fixture
def transform(device, library):
    """Return ``transform(size, stream)``, which keeps what it planned."""
    transforms, planned = cufft.Transforms(device), {}
    memory = device.allocate(8000, 0), 0

    def run(size, stream=0):
        if size not in planned:
            planned[size] = transforms.planned("c2c", "complex64", (size,), (1,), (1,), ())
        transforms.run(stream, planned[size], False, memory, memory)

    return run


def test_a_plan_is_given_its_stream_and_workspace_when_they_change(device, library, transform, side):
    transform(8)
    assert library.noted() == ["set_stream", "set_work_area", "xt_exec"]
    transform(8)
    assert library.noted() == ["xt_exec"]
    kept = device.allocate(library.nbytes, 0)  # the memory of the workspace
    transform(8)
    assert library.noted() == ["set_work_area", "xt_exec"]
    transform(8, side)
    assert library.noted() == ["set_stream", "set_work_area", "xt_exec"]
    del kept


def test_a_plan_that_needs_no_workspace_is_given_none(library, transform):
    library.nbytes = 0
    for _ in range(2):
        transform(8)
    assert library.calls == [("set_stream", 1, 0), ("set_work_area", 1, 0), *[("xt_exec", 1, -1)] * 2]


def test_the_plan_that_was_used_longest_ago_is_destroyed_and_made_again(library, transform, monkeypatch):
    monkeypatch.setattr(cufft, "PLANS_KEPT", 2)
    for size in (8, 9, 8):
        transform(size)
    library.calls.clear()
    transform(10)
    assert library.calls[0] == ("destroy", 2)
    transform(8)
    assert library.made == 3
    transform(9)
    assert (library.made, library.calls[-1]) == (4, ("xt_exec", 4, -1))
    assert ("destroy", 3) in library.calls


def test_a_transform_runs_in_the_context_of_its_device(device, library, transform):
    transform(8)
    call(api.cuCtxSetCurrent, 0)
    transform(8)
    assert library.context == int(device.context)


def test_the_workspace_of_a_captured_transform_belongs_to_the_graph(device, library, transform, stub):
    stream = Stream(device)
    transform(8, stream.handle)
    library.calls.clear()
    stub.capture(stream.handle, 7)
    try:
        transform(8, stream.handle)
    finally:
        stub.capture(stream.handle, 0)
    assert library.noted() == ["set_work_area", "xt_exec"]
    transform(8, stream.handle)
    assert library.noted() == ["set_work_area", "xt_exec"]


def test_no_transform_escapes_the_capture_of_torch(library, transform, use_torch):
    transform(8)
    library.calls.clear()
    use_torch(capturing=True)
    with pytest.raises(CaptureError):
        transform(8)
    assert library.calls == []
