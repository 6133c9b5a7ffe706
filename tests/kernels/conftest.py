"""Fixtures of the tests of kernels: an empty cache of compiled kernels, and processes where Triton interprets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.interpreter.run import Interpreter, interpreting

from tilearray_cuda.kernels.disk_cache import DEFAULT_LIMIT, CubinCache


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[..., CubinCache]:
    """Each call is a process of its own, as far as the cache can tell: the directory is shared, memory is not."""
    return lambda limit=DEFAULT_LIMIT: CubinCache(tmp_path / "cubins", limit)


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Interpreter]:
    """A process where Triton interprets single kernels; one for all files, since its start takes seconds."""
    with interpreting() as found:
        yield found


@pytest.fixture(scope="session")
def process() -> Iterator[Interpreter]:
    """A process that also has an emulated GPU, which changes the library's devices there."""
    with interpreting() as found:
        yield found
