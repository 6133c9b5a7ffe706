"""The calls that `scripts/sanitize` runs on a GPU: they run on the host, and a wrong result is seen."""

from __future__ import annotations

import pytest
from support import families


@pytest.mark.parametrize("name", families.FAMILIES)
def test_each_family_runs(name):
    assert families.differences(name, "cpu") == []
    assert len(families.FAMILIES[name](families.Inputs("cpu"))) > 1


def test_wrong_results_are_seen(monkeypatch):
    number = iter(range(9))
    monkeypatch.setattr(families, "FAMILIES", {"wrong": lambda of: [of(3), of(3) + next(number)]})
    (told,) = families.differences("wrong", "cpu")
    assert told.startswith("wrong, result 1: ")
