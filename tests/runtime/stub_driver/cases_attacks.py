"""Attacks over the stub, whose kernels do nothing: calls end, raise what they may, and lose no memory."""

from __future__ import annotations

import pytest
from cases_collectives import library  # noqa: F401 - a fixture
from support.attacks import api, memory

from tilearray.engine import caches
from tilearray_cuda import kernel, lists
from tilearray_cuda.kernels.cubin import Cubin

SIZED_BY_VALUES = ("mask", "unique_values", "repeat")
"""Calls whose result has a size that a kernel computes."""


@pytest.fixture(autouse=True)
def kernels(monkeypatch, stub):
    """Kernels that do nothing."""

    def cubin_of(source, arch, contract):
        return Cubin(b"other", source.name, source.tile.warps, 0)

    for module in (kernel, lists):
        monkeypatch.setattr(module, "cubin_of", cubin_of)
    forgotten = (caches.PLANS, caches.RECIPES, caches.KERNELS)
    for cache in forgotten:
        cache.clear()
    yield
    for cache in forgotten:
        cache.clear()


def test_ten_thousand_calls_with_too_little_memory(monkeypatch):
    calls = {name: call for name, call in memory.CALLS.items() if name not in SIZED_BY_VALUES}
    monkeypatch.setattr(memory, "CALLS", calls)
    monkeypatch.setattr(memory, "bits", lambda x: b"")
    outcome = memory.run(10_000, 1, "cuda:0")
    assert outcome.wrong == []
    assert outcome.ends["out of memory"] == 10_000
    assert outcome.ends["right"] > 1_000


def test_calls_of_gpus(monkeypatch, library):  # noqa: F811
    """`ta.cuda` and `ta.distributed` with two GPUs, and methods of streams, events and graphs."""
    monkeypatch.setattr(api, "callables", api.of_gpus)
    monkeypatch.setattr(api, "methods", lambda: ["to_device", "copy", "__dlpack_device__"])
    monkeypatch.setattr(api, "OPERATORS", ("eq",))
    monkeypatch.setattr(api, "bits", lambda x: None)  # a kernel copies views
    outcome = api.run(3000, 1, "cuda:0")
    assert outcome.wrong == []
    assert min(outcome.ends["returned"], outcome.ends["errors of the library"]) > 500
