"""The stages of a call, as text: what its `Plan` holds, and the source of the kernel that a GPU runs it with.

A plan depends on dtypes and layouts alone, and source is text: neither needs a GPU, and nothing is compiled.

>>> import tilearray as ta
>>> x, row = ta.zeros((480, 640), dtype="uint8", device="cpu"), ta.zeros(480, device="cpu")
>>> _, (plan,) = planned(lambda: x.T + row)
>>> print(*stages(plan), sep="\\n")
dtypes  x0: uint8, x1: float32
body    out0: float32 = add(float32(x0), x1)
result  float32 of shape (640, 480), strides (1, 640), on cpu
loop    480 x 640: out0 (640, 1), x0 (640, 1), x1 (1, 0)
class   lookup, 2 axes, int32 indices
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, cast

from tilearray.engine.caches import PLANS, leaves
from tilearray.engine.context import STATE
from tilearray.engine.expression import Expression
from tilearray.engine.plan import ALIGNED, Plan
from tilearray.geometry.loop import LayoutCase, layout_class

ARCHITECTURE = 90


def planned(compute: Callable[[], Any]) -> tuple[Any, list[Plan]]:
    """Return what a call returns, and the plans that it ran: each once, those of one operation together.

    All plans that there are in the process are forgotten first: they are made anew where they are needed.
    """
    PLANS.clear()
    result = compute()
    return result, [cast(Plan, plan) for plan in dict.fromkeys(leaves(STATE.get().plans))]


def stages(plan: Plan) -> list[str]:
    """Return a line for each stage: dtypes, what is computed, the result, the collapsed loop and its layout class."""
    body, loop, target = plan.expression, plan.loop, plan.signature
    arrays = [name for name, (kind, _) in zip(_inputs(body), body.inputs) if kind == "array"]
    strides = [f"{name} {given}" for name, given in zip(["out0", *arrays], loop.strides)]
    shape = " x ".join(map(str, loop.shape))
    facts = [
        loop.case.value,
        f"{len(loop.shape)} ax{'i' if len(loop.shape) == 1 else 'e'}s",
        f"int{loop.index_bits} indices",
    ]
    return [
        f"dtypes  {', '.join(map(_operand, _inputs(body), body.inputs))}",
        f"body    out0: {body.output_dtypes[0]} = {_expression(body, body.outputs[0])}",
        f"result  {target.dtype.name} of shape {target.layout.shape}, strides {target.layout.strides}, "
        f"on {target.device}",
        f"loop    {shape}: {', '.join(strides)}",
        f"class   {', '.join(facts)}",
    ]


def architecture_of(plan: Plan) -> int:
    """Return the compute capability of the GPU that a plan is for; 90, an H200's, for a plan on the host."""
    return getattr(plan.signature.device.backend, "arch", ARCHITECTURE)


def kernel_source(plan: Plan) -> str:
    """Return the Triton source of a plan's kernel on its GPU, or on an H200; operands at multiples of 16 bytes.

    Raises
    ------
    NotImplementedError
        If the operation does not run on GPUs yet.
    """
    generate = importlib.import_module("tilearray_cuda.kernels.source").generate
    make_spec = importlib.import_module("tilearray_cuda.kernels.spec").make_spec
    if plan.loop.case is LayoutCase.EMPTY:
        return "# no elements: nothing is launched\n"
    spec = make_spec(plan.expression, layout_class(plan.loop), ALIGNED[: len(plan.loop.strides)])
    return generate(spec, architecture_of(plan)).text


def _inputs(body: Expression) -> list[str]:
    return [f"x{position}" for position in range(len(body.inputs))]


def _operand(name: str, given: tuple[str, str]) -> str:
    kind, dtype = given
    return f"{name}: {dtype}{' (a number)' if kind == 'scalar' else ''}"


def _expression(body: Expression, position: int) -> str:
    """A node of the body with all that it is computed from; a cast is written as a call of the dtype, with its mode."""
    kind, *rest = body.nodes[position]
    if kind == "input":
        return f"x{rest[0]}"
    if kind == "index":
        return "index"
    if kind == "gather":
        return f"x{rest[0]}[{_expression(body, cast(int, rest[1]))}]"
    if kind == "cast":
        how = [str(rest[2]), *(["saturate"] if rest[3] else [])] if len(rest) > 2 else []
        return f"{rest[1]}({', '.join([_expression(body, cast(int, rest[0])), *how])})"
    arguments = cast(Sequence[int], rest[1])
    return f"{rest[0]}({', '.join(_expression(body, argument) for argument in arguments)})"
