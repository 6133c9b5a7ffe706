"""The stages of a call as text: the contents of its `Plan`, and the source of its GPU kernel.

A plan depends only on dtypes and layouts, and source is text. So neither needs a GPU, and nothing is compiled.

>>> import tilearray as ta
>>> x, row = ta.zeros((480, 640), dtype="uint8", device="cpu"), ta.zeros(480, device="cpu")
>>> _, (plan,) = planned(lambda: x.T + row)
>>> print(*stages(plan), sep="\\n")
dtypes  x0: uint8, x1: float32
graph   out0: float32 = add(float32(x0), x1)
result  float32 of shape (640, 480), strides (1, 640), on cpu
loop    480 x 640: out0 (640, 1), x0 (640, 1), x1 (1, 0)
class   broadcast, 2 axes, int32 indices
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tilearray.engine.backend import AnyLoop
from tilearray.engine.caches import PLANS
from tilearray.engine.execute import plans_in_force
from tilearray.engine.expression import Expression
from tilearray.engine.plan import ALIGNED, Plan
from tilearray.explaining.wording import class_text, graph_text, inputs_text, loop_text
from tilearray.geometry.loop import LayoutCase

ARCHITECTURE = 90


def planned(compute: Callable[[], Any]) -> tuple[Any, list[Plan]]:
    """Return the result of a call, and the plans that it ran: each once, with the plans of one operation together.

    First, all plans of the process are dropped. Later calls make them again.
    """
    PLANS.clear()
    result = compute()
    return result, [*dict.fromkeys(plans_in_force())]


def stages(plan: Plan) -> list[str]:
    """Return a line for each stage: dtypes, what is computed, the result, the collapsed loop and its case."""
    graph, loop, target = plan.expression, plan.loop, plan.signature
    launches = [f"launch  1: {plan.stages[0].loop.segments.total} segments, 2: their results"] if plan.stages else []
    return [
        f"dtypes  {inputs_text(graph)}",
        f"graph   {graph_text(graph)}",
        f"result  {target.dtype.name} of shape {target.layout.shape}, strides {target.layout.strides}, "
        f"on {target.device}",
        f"loop    {loop_text(graph, loop)}",
        f"class   {class_text(loop)}",
        *launches,
    ]


def architecture_of(plan: Plan) -> int:
    """Return the compute capability of a plan's GPU. For a plan on the host it is 90, that of an H200."""
    return getattr(plan.signature.device.backend, "arch", ARCHITECTURE)


def kernel_source(plan: Plan) -> str:
    """Return the Triton source of a plan's kernels for its GPU (an H200 for the host) and operands aligned to 16 bytes.

    Raises
    ------
    NotImplementedError
        If GPUs do not support the operation yet.
    """
    if plan.loop.case is LayoutCase.EMPTY:
        return "# no elements, so no launch\n"
    launches = [(stage.expression, stage.loop) for stage in plan.stages] or [(plan.expression, plan.loop)]
    return "\n\n".join(_source(expression, loop, architecture_of(plan)) for expression, loop in launches)


def _source(expression: Expression, loop: AnyLoop, arch: int) -> str:
    """Return the Triton source of a kernel."""
    generate = importlib.import_module("tilearray_cuda.kernels.source").generate
    make_spec = importlib.import_module("tilearray_cuda.kernels.spec").make_spec
    loop_class = importlib.import_module("tilearray_cuda.kernels.schedules.choose").loop_class
    return generate(make_spec(expression, loop_class(loop), ALIGNED[: len(loop.strides)]), arch).text
