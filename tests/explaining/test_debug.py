"""``TILEARRAY_DEBUG``: each level prints what runs, and without it nothing watches."""

from __future__ import annotations

import re
import sys

import pytest
from support.processes import in_fresh_python

import tilearray as ta
from tilearray.engine.caches import PLANS
from tilearray.engine.watch import WATCH
from tilearray.errors import OperandError
from tilearray.explaining import debug

LABELS = re.compile(r"^   (\w+) ", re.MULTILINE)


@pytest.fixture
def level():
    """A function that sets the level; afterwards nothing watches, and no plan prints."""

    def set_level(text: str) -> None:
        PLANS.clear()
        debug.start(text)

    yield set_level
    debug.start("0")
    PLANS.clear()


def printed(capsys: pytest.CaptureFixture[str], *, fused: bool = False) -> str:
    x = ta.asarray([1.0, 2.0], dtype="float32", device="cpu")
    capsys.readouterr()
    if fused:
        assert ta.fuse(lambda x: x * 2 + 1)(x).tolist() == [3.0, 5.0]
    else:
        assert (x + 1).tolist() == (x + 1).tolist() == [2.0, 3.0]
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_nothing_watches_without_it(capsys):
    assert (WATCH.plan, WATCH.launch) == (None, None)
    assert printed(capsys) == ""
    assert "tilearray.explaining" not in in_fresh_python("import sys, tilearray; print(sorted(sys.modules))")


def test_level_1_prints_a_line_for_each_run(level, capsys):
    level("1")
    assert printed(capsys).splitlines() == ["tilearray runs add(float32 (2,), number) -> float32 (2,) on cpu"] * 2
    (line,) = printed(capsys, fused=True).splitlines()
    assert line == "tilearray runs fused(float32, float32, float32) -> float32 over 2 on cpu"


@pytest.mark.parametrize("fused", [False, True])
def test_level_2_prints_each_plan_once_and_level_3_its_source(level, capsys, fused):
    for number, stages in (("2", []), ("3", ["source"])):
        level(number)
        text = printed(capsys, fused=fused)
        assert LABELS.findall(text) == ["inputs", "graph", "loop", "class", "memory", "runs", *stages]
        assert text.count("tilearray plans ") == 1
        assert text.count("tilearray runs ") == (1 if fused else 2)


def test_level_4_prints_times(level, capsys):
    level("4")
    runs = [line for line in printed(capsys).splitlines() if line.startswith("tilearray runs")]
    assert len(runs) == 2
    assert all(re.search(r" on cpu: [\d.e+]+ µs, [\d.e-]+ GB/s$", line) for line in runs)


def test_reductions_in_two_launches_and_empty_loops(level, capsys):
    level("2")
    ta.sum(ta.zeros((1000, 4000), device="cpu"))
    ta.exp(ta.zeros(0, device="cpu"))
    text = capsys.readouterr().err
    assert text.count("reduce_rows") == 2
    assert text.count("tilearray runs sum") == 1
    assert "tilearray plans exp(float32 (0,)) -> float32 (0,) on cpu\ntilearray runs exp" in text


def test_an_explanation_prints_nothing_of_fused_functions(level, capsys):
    level("1")
    ta.explain(ta.fuse(lambda x: x + 1), ta.ones(3, device="cpu"))
    assert "fused" not in capsys.readouterr().err


def test_the_variable_is_read_at_the_import(monkeypatch):
    monkeypatch.setenv("TILEARRAY_DEBUG", "1")
    code = "import sys, tilearray as ta; sys.stderr = sys.stdout; ta.ones(2, device='cpu') * 2"
    assert "tilearray runs multiply(float32 (2,), number)" in in_fresh_python(code)
    monkeypatch.setenv("TILEARRAY_DEBUG", "")
    assert in_fresh_python(code) == ""


def test_a_level_that_does_not_exist():
    with pytest.raises(
        OperandError, match=r"^TILEARRAY_DEBUG: expected a level from 0 to 4, got '5'; write TILEARRAY_DEBUG=1$"
    ):
        debug.start("5")
    assert sys.modules["tilearray.explaining.debug"] is debug
