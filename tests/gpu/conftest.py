"""The GPU suite: needs a driver and a GPU; it is skipped with a reason without them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilearray_cuda

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if tilearray_cuda.device_count():
        return
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="this machine has no GPU"))
