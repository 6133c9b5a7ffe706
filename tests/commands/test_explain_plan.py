"""The stages of a call: what is planned is what runs, and the source is the one that is compiled for a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tilearray as ta
from tilearray.commands.cache import warm
from tilearray.commands.explain_plan import architecture_of, kernel_source, planned, stages
from tilearray.engine.devices import Device
from tilearray.engine.plan import Plan


def x(*shape: int, dtype: str = "float32") -> ta.Array:
    return ta.zeros(shape, dtype=dtype, device="cpu")


def test_plans_are_those_of_the_call_and_made_anew():
    a, b = x(3, 4), x(4, 3)
    a + b.T
    for _ in range(2):
        result, plans = planned(lambda: ta.sqrt(a + b.T) + a)
        assert [plan.operation.name for plan in plans] == ["add", "add", "sqrt"]
        assert ta.to_numpy(result).tolist() == [[0.0] * 4] * 3
    assert planned(lambda: a.T)[1] == []


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        (
            lambda: x(8, dtype="float16") * x(8, dtype="float16"),
            ["dtypes  x0: float16, x1: float16", "graph   out0: float16 = float16(multiply(float32(x0), float32(x1)))"],
        ),
        (
            lambda: ta.where(x(4, dtype="bool"), x(3, 4), 1),
            ["dtypes  x0: bool, x1: float32, x2: float32 (a number)", "graph   out0: float32 = where(x0, x1, x2)"],
        ),
        (lambda: x(2, 3).astype("int8"), ["dtypes  x0: float32", "graph   out0: int8 = int8(x0)"]),
        (
            lambda: ta.divide(x(8, dtype="float16"), 3, rounding="rm"),
            [
                "dtypes  x0: float16, x1: float16 (a number)",
                "graph   out0: float16 = float16(divide_rm(float32(x0), float32(x1)), rm)",
            ],
        ),
        (
            lambda: x(8).astype("float8_e5m2", saturate=True),
            ["dtypes  x0: float32", "graph   out0: float8_e5m2 = float8_e5m2(x0, rn, saturate)"],
        ),
        (lambda: x(2, 3).copy(), ["dtypes  x0: float32", "graph   out0: float32 = x0"]),
    ],
)
def test_the_body_is_written_as_calls(call: object, lines: list[str]):
    _, plans = planned(call)  # type: ignore[arg-type]
    assert stages(plans[-1])[:2] == lines


@pytest.mark.parametrize("layout", ["contiguous", "row", "transposed", "strided", "reversed"])
def test_the_source_is_one_that_is_compiled_ahead(layout: str):
    calls = {
        "contiguous": lambda: x(7) + x(7),
        "row": lambda: x(5, 3200) + x(3200),
        "transposed": lambda: x(3200, 64) + x(64, 3200).T,
        "strided": lambda: x(50)[::3] + x(50)[::2][:17],
        "reversed": lambda: x(64)[::-1] + x(64),
    }
    rows = warm.rows_of(warm.ROWS["add"], [ta.float32], False)
    ahead = {source.text for source, _ in warm.select(rows, [layout], [90], ta.get_semantics()).jobs}
    _, plans = planned(calls[layout])
    assert plans[-1].operation.name == "add"
    assert kernel_source(plans[-1]) in ahead


def test_the_architecture_is_the_gpus_or_an_h200s():
    _, (plan,) = planned(lambda: ta.asarray([1, 2], device="cpu").copy())
    assert architecture_of(plan) == 90
    device = Device("gpu of another kind", 0)
    device.backend = type("Backend", (), {"arch": 120})()  # type: ignore[assignment]
    signature = warm.signature_of(plan.signature.layout, plan.signature.dtype, device)
    elsewhere = Plan(plan.operation, plan.expression, plan.loop, signature, None, plan.call)
    assert architecture_of(elsewhere) == 120


def test_nodes_that_move_elements_are_written_as_indices():
    _, (plan,) = planned(lambda: ta.asarray([1, 2], device="cpu").copy())
    nodes = (("index",), ("cast", 0, "int32"), ("gather", 0, 1))
    moving = Plan(
        plan.operation, replace(plan.expression, nodes=nodes, outputs=(2,)), plan.loop, plan.signature, None, plan.call
    )
    assert stages(moving)[1] == "graph   out0: int64 = x0[int32(index)]"
