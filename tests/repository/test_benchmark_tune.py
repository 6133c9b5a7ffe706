"""benchmarks/tune.py as far as it goes without a GPU: sources with other tiles, and launches of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from support.cubins import empty_cache
from support.kernels import body_for, kernel_for, needs_triton

pytestmark = needs_triton
pytest.importorskip("cuda.bindings")

from benchmarks import tune  # noqa: E402 - needs cuda-python
from tilearray_cuda.kernels import tuned_tiles  # noqa: E402
from tilearray_cuda.kernels.schedules.schedule import Tile  # noqa: E402


def given() -> tune.Operation:
    """A sum over arrays that have addresses only."""
    kernel = kernel_for(body_for("add", ["float32", "float32"]), (4096,), [(1,)] * 3)
    array = SimpleNamespace(nbytes=4 * 4096, _buffer=SimpleNamespace(nbytes=4 * 4096, pointer=1 << 20), _offset=0)
    return tune.Operation((array, array, array), kernel.loop, kernel.schedule)


def test_a_source_has_the_tile_that_is_tried():
    schedule = given().schedule
    tried = tune.source_of(tune.with_tile(schedule, Tile(1, 256, 2)))
    assert (tried.tile, tried.constants) == (Tile(1, 256, 2), (("BLOCK", 256),))
    assert tune.with_tile(schedule, Tile(1, 256, 2)).programs() == "-(-(n0 + 0) // 256)"
    as_it_is = kernel_for(body_for("add", ["float32", "float32"]), (4096,), [(1,)] * 3).source
    assert tune.source_of(tune.with_tile(schedule, None)) == as_it_is


def test_a_candidate_is_bound_and_timed(monkeypatch):
    bound = []
    given_by_the_driver = {"parameters": None, "device": None, "reference": None, "launch": None}
    function = SimpleNamespace(**given_by_the_driver, threads=64, shared=0)
    monkeypatch.setattr(tune.launch, "load_function", lambda device, cubin: function)
    monkeypatch.setattr(tune, "seconds", lambda call: bound.append(call) or 0.5)
    schedule = tune.with_tile(given().schedule, Tile(1, 256, 2))
    assert tune.timed(None, given(), schedule, None) == 3 * 4 * 4096 / 0.5
    assert callable(bound[0])


def test_a_tile_that_the_device_refuses_has_no_rate(monkeypatch):
    def refuse(device, cubin):
        raise RuntimeError("too much shared memory")

    monkeypatch.setattr(tune.launch, "load_function", refuse)
    assert tune.timed(None, given(), given().schedule, None) == 0.0


def test_every_case_is_a_sum_of_views_or_a_copy_of_one():
    class View(SimpleNamespace):
        def __getitem__(self, key):
            return self

        @property
        def T(self):
            return self

        def permute_dims(self, *axes):
            return self

    for case in tune.CASES.values():
        assert len(case.views(*[View() for _ in case.shapes])) == len(case.shapes) in (1, 2)
        assert case.tiles


def of(key, gains):
    """What a case found: how much faster than the table's tile others are."""
    return {"key": key, "gains": [(Tile(*sizes), gain) for sizes, gain in gains.items()]}


def test_winners_are_faster_in_all_cases_of_a_kind():
    first = of(("flat", 4), {(1, 512, 4): 1.1, (1, 512, 2): 1.3, (1, 256, 4): 1.2})
    second = of(("flat", 4), {(1, 512, 4): 1.1, (1, 512, 2): 0.99, (1, 256, 4): 1.0, (1, 2048, 8): 2.0})
    assert tune.winners([first]) == {("flat", 4): (1, 512, 2)}
    assert tune.winners([first, second, of(("flat", 8), {(1, 512, 4): 1.02})]) == {("flat", 4): (1, 512, 4)}
    assert tune.winners([of(("flat", 8), {})]) == {}


def test_only_tiles_that_a_table_may_have_are_written():
    schedule = given().schedule
    assert tune.can_be_written(schedule, ("flat", 4), Tile(1, 2048, 8))
    assert not tune.can_be_written(schedule, ("flat", 4), Tile(1, 8192, 8))
    assert not tune.can_be_written(schedule, ("flat", 4), None)


def test_winners_are_kept_beside_those_of_other_kinds(monkeypatch, tmp_path):
    tmp_path.chmod(0o700)
    gpu = SimpleNamespace(name="NVIDIA A100", arch=80)
    monkeypatch.setattr(tune.ta, "devices", lambda: (SimpleNamespace(backend=gpu),))
    empty_cache(tmp_path / "cubins", monkeypatch)
    first = of(("flat", 4), {(1, 512, 4): 1.1})
    assert tune.written([first]).startswith("1 of 1 kinds are faster than the tables on NVIDIA A100; wrote ")
    tune.written([of(("flat", 8), {(1, 512, 2): 1.2})])
    assert tuned_tiles.tiles_of(gpu.name) == {("flat", 4): (1, 512, 4), ("flat", 8): (1, 512, 2)}
    tune.written([of(("flat", 4), {(1, 512, 4): 1.0})])
    assert tuned_tiles.tiles_of(gpu.name) == {("flat", 8): (1, 512, 2)}
