"""Powers by a number: 2 and 3 cost products, whatever the loop.

An array may also be one number in a program, but only in some loops: there a power by 3 would have other bits than in a
fused function with another loop. A number is one in all of them.
"""

from __future__ import annotations

from tilearray_cuda.kernels.spec import KernelSpec

POWER = "libdevice.pow({x}, {y})"
BY_NUMBER = "power_by_number({x}, {y})"


def with_powers(spec: KernelSpec) -> KernelSpec:
    """Return a spec whose powers by a number try products."""
    nodes = list(spec.nodes)
    for number, node in enumerate(spec.nodes):
        match node:
            case ("call", name, (x, y), dtype, template) if template == POWER and _is_number(spec, y):
                nodes[number] = ("call", name, (x, y), dtype, BY_NUMBER)
            case _:
                pass
    return spec._replace(nodes=tuple(nodes))


def _is_number(spec: KernelSpec, number: int) -> bool:
    """Whether a node is a number, which is an argument of the kernel or part of its text, or a cast of one."""
    match spec.nodes[number]:
        case ("cast", argument, *_):
            return _is_number(spec, argument)
        case ("input", position):
            return spec.operands[spec.outputs + position].strides is None
        case (kind, *_):
            return kind == "constant"
