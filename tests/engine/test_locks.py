"""A lock is free after an interrupt at any bytecode of a block, also where Python 3.14 delivers one after the entry."""

from __future__ import annotations

import inspect

import pytest
from support.interrupts import interrupted_everywhere
from support.threads import in_threads

from tilearray.engine import locks
from tilearray_cuda import locks as of_cuda
from tilearray_host import locks as of_host

MODULES = (locks, of_cuda, of_host)


def test_the_locks_of_the_backends_are_copies_to_the_letter():
    first, *others = (inspect.getsource(module).split('"""', 2)[2] for module in MODULES)
    assert others == [first, first]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("depth", [0, 1])
def test_an_interrupted_block_leaves_the_lock_as_it_was(module, depth):
    lock, body = module.Lock(), []

    def work():
        with lock:
            body.append(1)

    for _ in range(depth):
        lock.acquire()
    for _ in interrupted_everywhere(work):
        for _ in range(depth):
            lock.release()
        (free,) = in_threads(1, lambda _: lock.acquire(timeout=5) and (lock.release() or True))
        assert free is True
        for _ in range(depth):
            lock.acquire()
    for _ in range(depth):
        lock.release()
    assert body


@pytest.mark.parametrize("module", MODULES)
def test_a_lock_is_reentrant_and_excludes_others(module):
    lock = module.Lock()
    with lock, lock:
        assert in_threads(1, lambda _: lock.acquire(timeout=0.01)) == [False]
    assert in_threads(1, lambda _: lock.acquire() and (lock.release() or True)) == [True]
