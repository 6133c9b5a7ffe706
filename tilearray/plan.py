"""Operands -> a frozen Plan: everything about a call that does not depend on addresses or values.

A plan joins the two halves of a call that are decided apart: the `Body` (dtypes only) and the `Loop` (geometry only).
A kernel serves every loop of its layout class, so a shape that was never seen costs planning, not compilation::

    shapes, strides -> broadcast -> result layout -> collapsed loop -> layout class ─┐
    dtypes, scalars -> result_type -> body ──────────────────────────────────────────┴-> kernel -> bound to the loop
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilearray.base import Signature, signature_of
from tilearray.body import Body, Type, TypedScalar, body_of
from tilearray.caches import KERNELS
from tilearray.calls import Call, call_of
from tilearray.deciding import zero_dim
from tilearray.devices import Device, common_device
from tilearray.geometry import geometry_of
from tilearray.layout import Layout
from tilearray.loop import LayoutCase, LayoutClass, Loop, class_key
from tilearray.rounding import check_device
from tilearray.scalars import ScalarClass

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
    layout, loop = geometry_of(op.name, [array.layout for array in arrays], None if out is None else out.layout)
    target = _new_signature(layout, body.result, device, arrays) if out is None else out
    kernel = None
    if loop.case is not LayoutCase.EMPTY:
        aligned = _aligned([target, *arrays], loop) if device.wants_alignment else ALIGNED[: len(arrays) + 1]
        kernel = kernel_of(body, loop, aligned, device)
    call = call_of(op, body, loop, kernel, keys, target, new=out is None)
    return Plan(op, body, loop, target, kernel, call)


def types_of(keys: tuple[Key, ...], semantics: Semantics) -> tuple[Type, ...]:
    """Return what decides dtypes of operands of these keys, under semantics that may tell 0-d arrays from others."""
    if semantics.zero_dim:
        return tuple([_type_of(key) if isinstance(key, Signature) else key for key in keys])
    return tuple([key.dtype if isinstance(key, Signature) else key for key in keys])


def _type_of(array: Signature) -> Type:
    return array.dtype if array.layout.shape else zero_dim(array.dtype)


def _new_signature(layout: Layout, dtype: np.dtype, device: Device, operands: list[Signature]) -> Signature:
    """The signature of a new array: mostly that of an operand."""
    for operand in operands:
        if operand.layout is layout and operand.dtype is dtype and operand.aligned and operand.interned:
            return operand
    return signature_of(layout, dtype, device)


ALIGNED = (True,) * 64
"""For a device that does not care."""


def kernel_of(body: Body, loop: Loop, aligned: tuple[bool, ...], device: Device) -> Any:
    """Return the kernel of a body for the loop's layout class, compiled on the first call."""
    shape_free = class_key(loop)
    key = (body, shape_free, aligned, device.name)
    kernel = KERNELS.get(key)
    if kernel is None:
        kernel = KERNELS.put(key, device.backend.compile(body, LayoutClass(*shape_free), aligned))
    return kernel


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
