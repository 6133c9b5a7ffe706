"""Ctrl-C at every bytecode: no block is lost, no block has two users, and the next operation is correct."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
from support.interrupts import interrupted, interrupted_everywhere

import tilearray as ta
from tilearray.engine import caches
from tilearray_cuda import kernel
from tilearray_cuda.kernels.disk_cache import Cubin
from tilearray_cuda.runtime.memory import allocators as sources
from tilearray_cuda.runtime.memory.allocators import ExternalSource


def check_everywhere(device, work, nbytes=1000):
    """Interrupt `work` at every bytecode; return the number of interrupts that lost blocks, and of all interrupts."""
    lost = everywhere = 0
    work()
    live = device.statistics().live
    for _ in interrupted_everywhere(work):
        everywhere += 1
        taken = [device.allocate(nbytes, 0) for _ in range(8)]  # from free blocks, without the driver
        assert len({buffer.pointer for buffer in taken}) == 8, "a block has two users"
        del taken
        if device.statistics().live != live:
            gc.collect()  # tracebacks may form cycles
        found = device.statistics().live
        lost += found != live
        live = found
    return lost, everywhere


def test_taking_memory_and_giving_it_back(device):
    def work():
        first = device.allocate(1000, 0)
        second = device.allocate(1000, 0)
        del first, second

    lost, everywhere = check_everywhere(device, work)
    assert everywhere > 60
    assert lost == 0


def test_memory_of_a_stream(device, side):
    def work():
        device.allocate(1000, side)

    lost, everywhere = check_everywhere(device, work)
    assert everywhere > 30
    assert lost == 0


def test_a_finalizer_swallows_an_interrupt_and_keeps_the_block(device):
    """The memory is allocated earlier, so that only ``Buffer.__del__`` runs."""
    held = []

    def work():
        held.clear()

    everywhere = 0
    held.append(device.allocate(1000, 0))
    for number, raised in interrupted_everywhere(work):
        everywhere += number > 4 and not raised
        held[:] = [device.allocate(1000, 0)]
        assert device.statistics().live == 1024
    assert everywhere > 5


def test_memory_that_several_streams_use(device, side):
    """Interrupts only the release: the other steps are driver calls under a lock."""
    shared = []

    def share():
        shared.append(device.allocate(1000, 0))
        device.join(shared[0], side)

    share()
    pointer, home = int(shared[0].pointer), shared[0].free
    for _ in interrupted_everywhere(shared.clear):
        assert home.sink == [] or home.sink == [(home, pointer)]
        device.memory.collect()
        assert device.statistics().live == 0
        share()
        home = shared[0].free


def test_a_buffer_that_the_collector_revived(device):
    """The collector runs the finalizers of the whole cycle; the block is free when the last reference is gone."""

    class Node:
        def __init__(self, buffer):
            self.buffer, self.me = buffer, self

        def __del__(self):
            revived.append(self.buffer)

    revived = []
    Node(device.allocate(1000, 0))
    gc.collect()
    pointer = int(revived[0].pointer)
    interrupted(revived.clear, 3)  # in the heir's finalizer
    assert device.statistics().live == 0
    assert device.allocate(1000, 0).pointer == pointer


def test_an_old_address_gives_nothing_back(device):
    """An old address of memory that its source took back does not free the new memory at the address."""
    device.memory.use(ExternalSource(lambda nbytes, stream: 1 << 20, lambda pointer, nbytes, stream: None))
    try:
        buffer = device.allocate(1000, 0)
        kept = buffer.pointer
        del buffer
        device.empty_cache()
        again = device.allocate(1000, 0)
        assert again.pointer == kept
        del kept
        assert device.statistics().live == 1024
        del again
        assert device.statistics().live == 0
    finally:
        device.memory.use(sources.driver_source(device.index))


def test_operations(monkeypatch):
    """`x + y` with a plan: every bytecode from the operator to the launch, and the release of the result."""

    def cubin_of(source, arch, contract):
        adds = source.name == "add_flat"
        return Cubin(b"STUB 6", "stub_add", 4, 0) if adds else Cubin(b"other", source.name, 4, 0)

    for cache in (caches.PLANS, caches.RECIPES, caches.KERNELS):
        cache.clear()
    monkeypatch.setattr(kernel, "cubin_of", cubin_of)
    x, y = (ta.asarray(np.array(values, "int64"), device="cuda:0") for values in ([1, 2, 3], [10, 20, 30]))

    def work():
        x + y

    lost, everywhere = check_everywhere(x._signature.device.backend, work, x.nbytes)
    assert everywhere > 100
    assert lost == 0
    for cache in (caches.PLANS, caches.RECIPES, caches.KERNELS):
        cache.clear()
    z = x + y
    assert list((ctypes.c_int64 * 3).from_address(z._address)) == [11, 22, 33]
