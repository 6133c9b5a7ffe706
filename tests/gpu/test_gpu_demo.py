"""The demo on a GPU: the host's bits in every step but those with functions such as exp."""

from __future__ import annotations

import pytest

from tilearray.commands.demo import command
from tilearray.commands.demo.beside import beside
from tilearray.commands.demo.pipeline import run

pytest.importorskip("matplotlib")


def test_the_steps_have_the_bits_of_the_host():
    device = command.gpu()
    assert device is not None
    photo = command.photograph()
    done = list(beside(photo, list(run(photo, repeats=1)), device, 2))
    assert len(done) == 14
    assert {other.result.device for other in done} == {device}
    assert all(other.ulps == 0 for other in done if other.step.ulps == 0)
