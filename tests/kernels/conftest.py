"""What the tests of the kernel cache share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tilearray_cuda.kernels.disk_cache import DEFAULT_LIMIT, CubinCache


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[..., CubinCache]:
    """Each call is a process of its own, as far as the cache can tell: the directory is shared, memory is not."""
    return lambda limit=DEFAULT_LIMIT: CubinCache(tmp_path / "cubins", limit)
