"""A fixture of the tests of fusion: what the host compiles."""

from __future__ import annotations

from typing import Any

import pytest

from tilearray.engine.caches import KERNELS
from tilearray_host.device import HostDevice


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The expressions that the host compiles in a test."""
    KERNELS.clear()
    found: list[Any] = []
    compile_kernel = HostDevice.compile

    def noted(self: HostDevice, expression: Any, *others: Any) -> Any:
        found.append(expression)
        return compile_kernel(self, expression, *others)

    monkeypatch.setattr(HostDevice, "compile", noted)
    return found
