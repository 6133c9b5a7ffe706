"""Operands -> a frozen Plan: everything about a call that does not depend on addresses or values.

A plan joins the two halves of a call that are decided apart: the `Body` (dtypes only) and the `Loop` (geometry only).
A kernel serves every loop of its layout class, so a shape that was never seen costs planning, not compilation::

    shapes, strides -> broadcast -> result layout -> collapsed loop -> layout class ─┐
    dtypes, scalars -> result_type -> body ──────────────────────────────────────────┴-> kernel -> bound to the loop
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tilearray.base import Signature, signature_of
from tilearray.body import Body, Type, TypedScalar, body_of
from tilearray.caches import KERNELS
from tilearray.deciding import zero_dim
from tilearray.devices import Device, Launch, common_device
from tilearray.errors import BroadcastError
from tilearray.layout import Layout, broadcast_shapes, result_layout
from tilearray.loop import LayoutCase, Loop, layout_class, make_loop
from tilearray.scalars import ScalarClass

if TYPE_CHECKING:
    from tilearray.elementwise import Op
    from tilearray.promotion import Semantics


class Plan(NamedTuple):
    """One call, ready to launch on any memory of these signatures."""

    op: Any
    body: Body
    loop: Loop
    signature: Signature
    launch: Launch


Key = Signature | ScalarClass | TypedScalar


def make_plan(op: Op, semantics: Semantics, keys: tuple[Key, ...], out: Signature | None) -> Plan:
    """Plan `op` for operands of these keys; `out` is the target's signature, if there is a target."""
    arrays: list[Signature] = []
    types: list[Type] = []
    for key in keys:
        if isinstance(key, Signature):
            arrays.append(key)
            types.append(zero_dim(key.dtype) if semantics.zero_dim and not key.layout.shape else key.dtype)
        else:
            types.append(key)
    device = common_device(op.name, arrays if out is None else [*arrays, out])
    body = body_of(op, semantics, tuple(types), None if out is None else out.dtype)
    layouts = [array.layout for array in arrays]
    shape = _shape(op, layouts, None if out is None else out.layout.shape)
    layouts = [layout if layout.shape == shape else layout.broadcast_to(shape) for layout in layouts]
    target = signature_of(result_layout(shape, layouts), body.result, device) if out is None else out
    loop = make_loop(shape, [target.layout.strides, *[layout.strides for layout in layouts]])
    if loop.case is LayoutCase.EMPTY:
        return Plan(op, body, loop, target, _nothing)
    aligned = _aligned([target, *arrays], loop) if device.wants_alignment else ALIGNED[: len(arrays) + 1]
    return Plan(op, body, loop, target, device.backend.bind(kernel_of(body, loop, aligned, device), loop))


ALIGNED = (True,) * 64
"""For a device that does not care."""


def _nothing(stream: Any, *operands: Any) -> None:
    """The launch of an empty loop."""


def kernel_of(body: Body, loop: Loop, aligned: tuple[bool, ...], device: Device) -> Any:
    """Return the kernel of a body for the loop's layout class, compiled on the first call."""
    shape_free = layout_class(loop)
    key = (body, shape_free, aligned, device.name)
    kernel = KERNELS.get(key)
    return kernel if kernel is not None else KERNELS.put(key, device.backend.compile(body, shape_free, aligned))


def _aligned(operands: list[Signature], loop: Loop) -> tuple[bool, ...]:
    """Whether each operand's first element, where the loop starts, lies at a multiple of 16 bytes."""
    return tuple(
        [
            operand.aligned and (shift * operand.itemsize) % 16 == 0
            for operand, shift in zip(operands, loop.shifts, strict=True)
        ]
    )


def _shape(op: Op, layouts: list[Layout], target: tuple[int, ...] | None) -> tuple[int, ...]:
    """The shape that the operands broadcast to, and which a target must have or be broadcast to from."""
    shape = layouts[0].shape if layouts else ()
    for layout in layouts:
        if layout.shape != shape:
            shape = broadcast_shapes(*[layout.shape for layout in layouts], function=op.name)
            break
    if target is None or target == shape:
        return shape
    if broadcast_shapes(shape, target, function=op.name) != target:
        raise BroadcastError(
            f"{op.name}: the operands broadcast to shape {shape}, which does not fit the target's {target}; "
            f"write a target of shape {shape}"
        )
    return target
