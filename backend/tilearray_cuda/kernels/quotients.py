"""Quotients by one number for many elements: products with its reciprocal, which is computed once.

A division of float32 takes a dozen instructions, one of them a branch. A product with the reciprocal does not have the
bits of a division everywhere: the functions of the library, `quotient_float32` and so on, say why theirs do.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tilearray_cuda.kernels.spec import KernelSpec

DIVISION = "tl.math.div_rn({x}, {y})"
"""The division of float32, correctly rounded."""
NARROW = ("bfloat16", "float16")


def with_quotients(spec: KernelSpec, once: Collection[int]) -> KernelSpec:
    """Return a spec whose divisions by a node of `once`, which has one value for many elements, are quotients."""
    nodes = list(spec.nodes)
    for number, node in enumerate(spec.nodes):
        match node:
            case ("call", name, (x, y), "float32", template) if template == DIVISION and y in once and x not in once:
                kind = _kind(spec, number, x, y)
                nodes[number] = ("call", name, (x, y), "float32", f"quotient_{kind}({{x}}, {{y}})")
            case _:
                pass
    return spec._replace(nodes=tuple(nodes))


def with_narrow_quotients(spec: KernelSpec) -> KernelSpec:
    """Return a spec whose divisions of bfloat16 that are rounded to it are quotients, which have no branch."""
    nodes = list(spec.nodes)
    for number, node in enumerate(spec.nodes):
        match node:
            case ("call", name, (x, y), "float32", template) if template == DIVISION:
                if _kind(spec, number, x, y) == "bfloat16":
                    nodes[number] = ("call", name, (x, y), "float32", "quotient_bfloat16({x}, {y})")
            case _:
                pass
    return spec._replace(nodes=tuple(nodes))


def _kind(spec: KernelSpec, number: int, x: int, y: int) -> str:
    """Return the dtype of both operands if their quotient is rounded to it at once, else float32."""
    dtype = _widened(spec, x)
    used = [node for node in spec.nodes if number in _arguments(node)]
    rounded = number not in spec.stores and all(node[0] == "cast" and node[2:] == (dtype,) for node in used)
    return dtype if dtype in NARROW and _widened(spec, y) == dtype and rounded else "float32"


def _widened(spec: KernelSpec, number: int) -> str:
    """Return the dtype that a node casts from, if that is an operand's or another cast's, else ""."""
    match spec.nodes[number]:
        case ("cast", argument, _):
            source = spec.nodes[argument]
        case _:
            return ""
    match source:
        case ("input", position):
            return spec.operands[spec.outputs + position].dtype
        case ("cast", _, dtype, *_):
            return dtype
        case _:
            return ""


def _arguments(node: Any) -> tuple[int, ...]:
    """Return the nodes that a node reads."""
    match node:
        case ("cast", argument, *_):
            return (argument,)
        case ("call" | "reduce", _, arguments, *_):
            return arguments
        case _:
            return ()
