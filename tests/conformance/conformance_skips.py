"""A pytest plugin: skips the tests that skips.txt lists, with the reason that stands there.

It also lets NumPy copy arrays from a GPU, as three tests of linalg do with their own results.

A line is the beginning of a test's name, two spaces, ``#`` and the reason; "on cuda: " before the reason says that the
test runs on the host. A line that begins the name of no test is an
error when the whole suite is run, so that the list cannot outlive its reasons.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import tilearray as ta

SKIPS = Path(__file__).with_name("skips.txt")


def pytest_configure() -> None:
    ta.set_transfer_guard("allow")


def read(text: str) -> dict[str, str]:
    """Return the reasons by the beginnings of names."""
    skips: dict[str, str] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, _, reason = line.partition("  # ")
        if not reason.strip() or name in skips:
            raise pytest.UsageError(f"{SKIPS.name}: expected 'NAME  # REASON', each name once, got {line!r}")
        skips[name] = reason.strip()
    return skips


def on_device(reason: str, device: str) -> bool:
    """Return whether a reason counts on a device.

    >>> on_device("on cuda: no copy", "cpu"), on_device("on cuda: no copy", "cuda"), on_device("no copy", "cpu")
    (False, True, True)
    """
    return not reason.startswith("on ") or reason.startswith(f"on {device}: ")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is listed."""
    skips = {name: why for name, why in read(SKIPS.read_text()).items() if on_device(why, ta.default_device().type)}
    unused = set(skips)
    for item in items:
        for name, reason in skips.items():
            if item.nodeid.startswith(name):
                item.add_marker(pytest.mark.skip(reason=reason))
                unused.discard(name)
    if unused and config.args == ["array_api_tests"] and not config.getoption("keyword"):
        raise pytest.UsageError(f"{SKIPS.name}: no test begins with {', '.join(sorted(unused))}; delete the lines")
