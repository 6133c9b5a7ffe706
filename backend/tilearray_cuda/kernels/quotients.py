"""Quotients by one number for many elements: products with its reciprocal, which is computed once.

A division of float32 takes a dozen instructions, one of them a branch. A product with the reciprocal does not have the
bits of a division everywhere: the functions of the library, `quotient_float32` and so on, say why theirs do.
"""

from __future__ import annotations

from collections.abc import Collection

from tilearray_cuda.kernels.narrow import DIVISION, narrow_dtype
from tilearray_cuda.kernels.spec import KernelSpec

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


def _kind(spec: KernelSpec, number: int, x: int, y: int) -> str:
    """Return the dtype of both operands if their quotient is rounded to it at once, else float32."""
    dtype = narrow_dtype(spec, number, (x, y))
    return dtype if dtype in NARROW else "float32"
