"""Operands -> a frozen Plan: everything about a call that does not depend on addresses or values.

A plan joins the two halves of a call that are decided apart: the `Body` (dtypes only) and the `Loop` (geometry only).
A kernel serves every loop of its layout class, so a shape that was never seen costs planning, not compilation::

    shapes, strides -> broadcast -> result layout -> collapsed loop -> layout class ─┐
    dtypes, scalars -> result_type -> body ──────────────────────────────────────────┴-> kernel -> bound to the loop
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilearray.base import Signature, signature_of
from tilearray.body import Body, Type, TypedScalar, body_of
from tilearray.caches import KERNELS
from tilearray.calls import Call, call_of
from tilearray.deciding import zero_dim
from tilearray.devices import Device, common_device
from tilearray.errors import BroadcastError
from tilearray.layout import Layout, broadcast_shapes
from tilearray.loop import INT32_END, LayoutCase, Loop, layout_class, make_loop
from tilearray.rounding import check_device
from tilearray.scalars import ScalarClass
from tilearray.strides import broadcast_strides, dense_strides, result_strides

if TYPE_CHECKING:
    from tilearray.elementwise import Op
    from tilearray.promotion import Semantics


@dataclass(slots=True, eq=False)
class Plan:
    """One operation, ready to run on any memory of these signatures.

    Attributes
    ----------
    op, body, loop
        What was planned.
    signature : Signature
        Of the result, or of the target.
    kernel : object
        The backend's kernel; None where there are no elements.
    call : callable
        ``call(stream, *operands)`` returns the result; ``call(stream, out, *operands)`` where there is a target.
    """

    op: Op
    body: Body
    loop: Loop
    signature: Signature
    kernel: Any
    call: Call


Key = Signature | ScalarClass | TypedScalar


def make_plan(op: Op, semantics: Semantics, keys: tuple[Key, ...], out: Signature | None) -> Plan:
    """Plan `op` for operands of these keys; `out` is the target's signature, if there is a target."""
    arrays = [key for key in keys if isinstance(key, Signature)]
    device = common_device(op.name, arrays if out is None else [*arrays, out])
    body = body_of(op, semantics, types_of(keys, semantics), None if out is None else out.dtype)
    check_device(op, device)
    layouts = [array.layout for array in arrays]
    shape = _shape(op, layouts, None if out is None else out.layout.shape)
    strides = [broadcast_strides(layout.shape, layout.strides, shape) for layout in layouts]
    target = signature_of(_result(shape, layouts, strides), body.result, device) if out is None else out
    loop = make_loop(shape, [target.layout.strides, *strides], small=_small(target.layout, layouts))
    kernel = None
    if loop.case is not LayoutCase.EMPTY:
        aligned = _aligned([target, *arrays], loop) if device.wants_alignment else ALIGNED[: len(arrays) + 1]
        kernel = kernel_of(body, loop, aligned, device)
    call = call_of(op, body, loop, kernel, keys, target, new=out is None)
    return Plan(op, body, loop, target, kernel, call)


def types_of(keys: tuple[Key, ...], semantics: Semantics) -> tuple[Type, ...]:
    """Return what decides dtypes of operands of these keys, under semantics that may tell 0-d arrays from others."""
    points = semantics.zero_dim
    return tuple([_type_of(key, points) if isinstance(key, Signature) else key for key in keys])


def _type_of(array: Signature, points: bool) -> Type:
    return zero_dim(array.dtype) if points and not array.layout.shape else array.dtype


ALIGNED = (True,) * 64
"""For a device that does not care."""


def kernel_of(body: Body, loop: Loop, aligned: tuple[bool, ...], device: Device) -> Any:
    """Return the kernel of a body for the loop's layout class, compiled on the first call."""
    shape_free = layout_class(loop)
    key = (body, shape_free, aligned, device.name)
    kernel = KERNELS.get(key)
    return kernel if kernel is not None else KERNELS.put(key, device.backend.compile(body, shape_free, aligned))


def _result(shape: tuple[int, ...], layouts: list[Layout], strides: list[tuple[int, ...]]) -> Layout:
    """What `result_layout` returns, of layouts whose strides in `shape` are known: an operand's own, if that is it."""
    for layout in layouts:
        if layout.contiguous and layout.shape == shape:
            dense = dense_strides(shape)
            return layout if layout.strides == dense else Layout(shape, dense)
    return Layout(shape, result_strides(shape, strides))


def _small(target: Layout, operands: list[Layout]) -> bool:
    """Whether no offset within the target or an operand needs 64 bits."""
    if target.size >= INT32_END:
        return False
    return all([layout.high - layout.low < INT32_END for layout in (target, *operands)])  # noqa: C419 - a list is faster


def _aligned(operands: list[Signature], loop: Loop) -> tuple[bool, ...]:
    """Whether each operand's first element, where the loop starts, lies at a multiple of 16 bytes."""
    if not any(loop.shifts):
        return tuple([operand.aligned for operand in operands])
    return tuple(
        [
            operand.aligned and (shift * operand.itemsize) % 16 == 0
            for operand, shift in zip(operands, loop.shifts, strict=True)
        ]
    )


def _shape(op: Op, layouts: list[Layout], target: tuple[int, ...] | None) -> tuple[int, ...]:
    """The shape that the operands broadcast to, and which a target must have or be broadcast to from."""
    shape = layouts[0].shape if layouts else ()
    if any([layout.shape != shape for layout in layouts]):  # noqa: C419 - faster
        shape = broadcast_shapes(*[layout.shape for layout in layouts], function=op.name)
    if target is None or target == shape:
        return shape
    if broadcast_shapes(shape, target, function=op.name) != target:
        raise BroadcastError(
            f"{op.name}: the operands broadcast to shape {shape}, which does not fit the target's {target}; "
            f"write a target of shape {shape}"
        )
    return target
