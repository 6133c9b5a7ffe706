"""Kernels that are compiled ahead: which ones are chosen, and that calls look up exactly those."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest
from support.cubins import kernel_of
from support.kernels import ELEMENTWISE
from support.recorder import Recorder

import tilearray as ta
from tilearray.commands.cache import warm
from tilearray_cuda.kernels import disk_cache

Output = pytest.CaptureFixture[str]


# --- what is chosen ---------------------------------------------------------------------------------------------------


def rows(ops: str, dtypes: str = "float32", mixed: bool = False) -> list[warm.Row]:
    given = [ta.dtypes.as_dtype(name) for name in dtypes.split()]
    return [row for name in ops.split() for row in warm.rows_of(warm.ROWS[name], given, mixed)]


def select(ops: str, dtypes: str = "float32", layouts: str = "contiguous", **options: Any) -> warm.Selection:
    chosen = list(warm.LAYOUTS) if layouts == "all" else layouts.split()
    return warm.select(rows(ops, dtypes, **options), chosen, [90], ta.get_semantics())


def names(selection: warm.Selection) -> list[str]:
    return [source.name for source, _ in selection.jobs]


def test_rows_have_one_dtype_each_unless_they_are_mixed():
    assert list(map(str, rows("add sin", "int8 float32"))) == [
        "add int8 int8", "add float32 float32", "sin int8", "sin float32",
    ]  # fmt: skip
    assert list(map(str, rows("add", "int8 float32", mixed=True))) == [
        "add int8 int8", "add int8 float32", "add float32 int8", "add float32 float32",
    ]  # fmt: skip
    assert list(map(str, rows("where", "int8"))) == ["where bool int8 int8"]
    assert list(map(str, rows("astype", "int8 bool"))) == [
        "astype int8 int8", "astype int8 bool", "astype bool int8", "astype bool bool",
    ]  # fmt: skip


def test_rows_that_are_not_supported_have_a_reason():
    found = select("add bitwise_and exp subtract", "float32 complex64 bool")
    assert names(found) == [
        *["add_flat"] * 3, "bitwise_and_flat", *["exp_flat"] * 3, *["subtract_flat"] * 2,
    ]  # fmt: skip
    assert list(found.unsupported) == [
        "bitwise_and float32 float32",
        "bitwise_and complex64 complex64",
        "subtract bool bool",
    ]
    assert found.unsupported["subtract bool bool"].startswith("subtract: expected dtypes of kind ")
    casts = select("astype", "float32 float8_e3m4 complex64").unsupported
    assert casts["astype complex64 float32"].startswith("astype: float32 cannot hold complex64")
    assert list(casts) == ["astype complex64 float32", "astype complex64 float8_e3m4"]


def test_the_semantics_in_force_decide():
    assert names(select("floor_divide", "int32")) == ["floor_divide_flat"]
    with ta.semantics("triton"):
        assert names(select("floor_divide", "int32")) == ["floor_divide_trunc_flat"]


def test_every_architecture_has_its_own_kernel():
    found = warm.select(rows("add"), ["contiguous"], [80, 100], ta.get_semantics())
    assert [arch for _, arch in found.jobs] == [80, 100]


def test_layouts_reach_every_case_and_each_adds_kernels():
    cases = {
        layout: {
            warm.request_of(call, ta.get_semantics()).loop_class[0]
            for row in rows("add where")
            for call in warm.calls_of(row, layout)
            if call.out is None  # not all results fit the targets of in-place operators
        }
        for layout in warm.LAYOUTS
    }
    assert set.union(*cases.values()) == ELEMENTWISE - {"empty"}
    everything = set(select("add", layouts="all").jobs)
    for layout in warm.LAYOUTS:
        others = " ".join(name for name in warm.LAYOUTS if name != layout)
        only = everything - set(select("add", layouts=others).jobs)
        assert only or layout == "contiguous", layout


# --- the same kernels as a call looks up ----------------------------------------------------------------------------


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    pytest.importorskip("cuda.bindings")
    from tilearray_cuda.runtime import launch

    recorder = Recorder()

    def record(source: str, arch: int, options: Any, label: str, make: object) -> disk_cache.Cubin:
        recorder.keys.add(disk_cache.key_of(source, arch, options))
        return kernel_of("anything")

    monkeypatch.setattr(disk_cache, "load_or_compile", record)
    function = SimpleNamespace(parameters=None, threads=128, shared=0)
    monkeypatch.setattr(launch, "load_function", lambda device, cubin: function)
    return recorder


def in_place(target: Any, value: Any) -> None:
    target += value


def written(target: Any, value: Any) -> None:
    target[...] = value


# layout -> expressions over new arrays of any size; shapes are other ones than those that kernels are prepared with
EXPRESSIONS: dict[str, list[Callable[[Callable[..., Any]], object]]] = {
    "contiguous": [lambda new: new(7) + new(7), lambda new: new(3, 5, 7) + new(3, 5, 7)],
    "scalar": [
        lambda new: new(9) + 2.5,
        lambda new: 2 + new(3, 4),
        lambda new: new(9) + np.float32(1),
        lambda new: new() + new(9),
        lambda new: new(3) + new(3),
        lambda new: in_place(new(3, 3), 4),
    ],
    "row": [
        lambda new: new(5, 3200) + new(3200),
        lambda new: new(3) + new(640, 480, 3),
        lambda new: new(48) + new(5, 48),
        lambda new: in_place(new(640, 480, 3), new(3)),
    ],
    "column": [lambda new: new(5, 320) + new(5, 1), lambda new: new(7, 1, 1) + new(7, 31, 1001)],
    "outer": [lambda new: new(80, 1) + new(160), lambda new: new(5) + new(3, 1)],
    "transposed": [
        lambda new: new(3200, 64) + new(64, 3200).T,
        lambda new: new(33, 99).T + new(99, 33),
        lambda new: in_place(new(64, 64).T, new(64, 64)),
    ],
    "permuted": [
        lambda new: new(16, 32, 64) + new(64, 32, 16).T,
        lambda new: new(3, 32, 64) + ta.permute_dims(new(3, 64, 32), (0, 2, 1)),
        lambda new: ta.permute_dims(new(16, 64, 32), (0, 2, 1)) + new(64, 32, 16).T,
    ],
    "sliced": [
        lambda new: new(5, 3200)[:, :1600] + new(5, 1600),
        lambda new: new(5, 33)[:, :30] + new(5, 33)[:, :30],
        lambda new: new(64, 4097)[:, :4095] + new(64, 4095),
        lambda new: in_place(new(64, 4096)[:, :4000], new(64, 4000)),
    ],
    "shifted": [
        lambda new: new(50)[1:] + new(50)[:-1],
        lambda new: new(50)[3:] + new(50)[3:],
        lambda new: in_place(new(50)[1:], new(50)[1:]),
        lambda new: new(7, 2001)[:, 1:] + new(7, 2000),
    ],
    "strided": [
        lambda new: new(50)[::3] + new(50)[::2][:17],
        lambda new: new(34)[::2] + new(17),
        lambda new: in_place(new(50)[::5], new(10)),
    ],
    "reversed": [
        lambda new: new(50)[::-1] + new(50),
        lambda new: new(49)[::-1] + new(49)[::-1],
        lambda new: new(64, 3200)[:, ::-1] + new(64, 3200),
        lambda new: new(64, 3200)[::-1] + new(64, 3200),
        lambda new: in_place(new(49)[::-1], new(49)),
    ],
    "large": [lambda new: new(2**16, 2**16) + new(2**16, 2**16)],
}


@pytest.mark.parametrize("layout", warm.LAYOUTS)
def test_a_call_looks_up_the_kernels_that_were_warmed(layout: str, gpu: Recorder):
    warmed = gpu.warmed(select("add", layouts=layout))
    for number, expression in enumerate(EXPRESSIONS[layout]):
        asked = gpu.looked_up(lambda expression=expression: expression(gpu.array))
        assert len(asked) <= 1  # none: the kernel was found in memory, as another expression's
        assert asked <= warmed, (layout, number)


def sums(layout: str, new: Callable[..., Any]) -> None:
    """Sums in which each operand has its turn: of long and short rows, of even and odd pitch."""
    new(3) + new(3)
    for m, n in ((16, 64), (16, 3), (16, 640), (16, 641), (4096, 4096), (4095, 4097)):
        column, row, matrix = new(m, 1), new(n), new(m, n)
        pairs = {
            "row": (matrix, row),
            "column": (matrix, column),
            "outer": (row, column),
            "transposed": (matrix, new(n, m).T),
        }
        x, y = pairs[layout]
        x + y, y + x


@pytest.mark.parametrize("layout", ["row", "column", "outer", "transposed"])
def test_no_more_is_warmed_than_calls_look_up(layout: str, gpu: Recorder):
    asked = gpu.looked_up(lambda: sums(layout, gpu.array))
    assert asked == gpu.warmed(select("add", layouts=layout))


def test_another_layout_was_not_warmed(gpu: Recorder):
    warmed = gpu.warmed(select("add", layouts="contiguous scalar row column"))
    asked = gpu.looked_up(lambda: gpu.array(64, 64) + gpu.array(64, 64).T)
    assert len(asked) == 1
    assert not asked & warmed


OTHER_CALLS: list[tuple[str, str, str, Callable[[Callable[..., Any]], object]]] = [
    ("multiply", "uint8", "scalar", lambda new: new(5, dtype="uint8") * 0.5),
    ("less", "bool", "contiguous", lambda new: new(5, dtype="bool") < new(5, dtype="bool")),
    ("clip", "int64", "scalar", lambda new: ta.clip(new(5, dtype="int64"), 0, 9)),
    ("where", "float16", "scalar", lambda new: ta.where(new(5, dtype="bool"), new(5, dtype="float16"), 0)),
    ("where", "float32", "row", lambda new: ta.where(new(64, dtype="bool"), new(5, 64), new(64))),
    ("sin", "bfloat16", "reversed", lambda new: ta.sin(new(50, dtype="bfloat16")[::-1])),
    ("add", "complex64", "scalar", lambda new: new(5, dtype="complex64") + 1),
    ("setitem", "float32", "transposed", lambda new: new(64, 64).T.copy()),
    ("setitem", "float32", "transposed", lambda new: written(new(64, 64), new(64, 64).T)),
    ("setitem", "int8", "strided", lambda new: written(new(64, dtype="int8")[::2], 7)),
    ("setitem", "float8_e3m4", "contiguous", lambda new: new(64, dtype="float8_e3m4").copy()),
    ("astype", "float32 int16", "sliced", lambda new: new(64, 99)[:, :90].astype("int16")),
    ("astype", "float32 int16", "contiguous", lambda new: new(64, dtype="int16").astype("float32")),
]


@pytest.mark.parametrize(("op", "dtypes", "layout", "expression"), OTHER_CALLS)
def test_other_ops_and_dtypes(op: str, dtypes: str, layout: str, expression: Callable[..., object], gpu: Recorder):
    asked = gpu.looked_up(lambda: expression(gpu.array))
    assert len(asked) == 1
    assert asked <= gpu.warmed(select(op, dtypes, layout))


def test_mixed_dtypes_are_warmed_where_they_are_asked_for(gpu: Recorder):
    asked = gpu.looked_up(lambda: gpu.array(5) + gpu.array(5, dtype="int64"))
    assert len(asked) == 1
    assert not asked & gpu.warmed(select("add", "int64 float32"))
    assert asked <= gpu.warmed(select("add", "int64 float32", mixed=True))


# --- one kernel -------------------------------------------------------------------------------------------------------


def test_labels_name_the_dtypes_and_keys_do_not_depend_on_them(gpu: Recorder):
    jobs = [*select("add", "int8 float16", mixed=True).jobs, *select("astype", "float32 int16").jobs]
    labels = {source.label for source, _ in jobs}
    assert {"add_flat int8 float16 -> float16", "add_flat float16 int8 -> float16"} <= labels
    assert "copy_flat float32 -> int16" in labels
    source, arch = jobs[0]
    before = gpu.looked_up(lambda: warm.compile_one(source, arch))
    assert gpu.looked_up(lambda: warm.compile_one(source._replace(label="another"), arch)) == before


def test_errors_of_the_compiler_are_part_of_the_outcome(gpu: Recorder, capsys: Output, monkeypatch: pytest.MonkeyPatch):
    def raises(*arguments: object) -> NoReturn:
        print("pages of PTX")
        raise RuntimeError("no registers left")

    monkeypatch.setattr(disk_cache, "load_or_compile", raises)
    outcome = warm.compile_one(*select("add").jobs[0])
    label = "add_flat float32 float32 -> float32 sm_90"
    assert outcome == warm.Outcome(label, False, "RuntimeError: no registers left", 0)
    assert capsys.readouterr().out == ""


def test_the_warning_of_the_cache_ends_the_work(gpu: Recorder, monkeypatch: pytest.MonkeyPatch):
    def unkept(*arguments: object) -> disk_cache.Cubin:
        warnings.warn("no room left", disk_cache.CacheWarning, stacklevel=2)
        return kernel_of("anything")

    monkeypatch.setattr(disk_cache, "load_or_compile", unkept)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(disk_cache.CacheWarning, match="no room left"):
            warm.compile_one(*select("add").jobs[0])
