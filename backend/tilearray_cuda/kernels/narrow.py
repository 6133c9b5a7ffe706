"""Functions of bfloat16: approximations of float32, for results that are rounded to bfloat16 at once.

The functions of float32 in libdevice have 24 correct bits, and take up to 110 instructions. bfloat16 keeps 8 bits of
them, and memory moves its elements in the time of 30 to 40 instructions. The functions of ``library/narrow.py`` take
about that many. The quotient is correctly rounded; the others may differ in the last bit of some results.
"""

from __future__ import annotations

from typing import Any

from tilearray_cuda.kernels.spec import KernelSpec

DIVISION = "tl.math.div_rn({x}, {y})"
"""The division of float32, correctly rounded."""
OF_BFLOAT16 = {
    DIVISION: "quotient_bfloat16({x}, {y})",
    "libdevice.pow({x}, {y})": "power_bfloat16({x}, {y})",
    "power_by_number({x}, {y})": "power_by_number_bfloat16({x}, {y})",
    "libdevice.asinh({x})": "asinh_bfloat16({x})",
    "libdevice.atan({x})": "atan_bfloat16({x})",
    "libdevice.atan2({x}, {y})": "atan2_bfloat16({x}, {y})",
}
"""For the text of a call of float32 that of bfloat16."""


def with_narrow_functions(spec: KernelSpec) -> KernelSpec:
    """Return a spec whose functions of bfloat16 that are rounded to it are those of bfloat16."""
    nodes = list(spec.nodes)
    for number, node in enumerate(spec.nodes):
        match node:
            case ("call", name, arguments, "float32", template) if template in OF_BFLOAT16:
                if narrow_dtype(spec, number, arguments) == "bfloat16":
                    nodes[number] = ("call", name, arguments, "float32", OF_BFLOAT16[template])
            case _:
                pass
    return spec._replace(nodes=tuple(nodes))


def narrow_dtype(spec: KernelSpec, number: int, arguments: tuple[int, ...]) -> str:
    """Return the dtype of all arguments of a call if its result is rounded to that dtype at once, else ""."""
    first, *others = [_widened(spec, argument) for argument in arguments]
    users = [node for node in spec.nodes if number in _arguments(node)]
    rounded = number not in spec.stores and all(node[0] == "cast" and node[2:] == (first,) for node in users)
    return first if rounded and all(dtype == first for dtype in others) else ""


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
        case ("cast" | "constant", _, dtype, *_):
            return dtype
        case _:
            return ""


def _arguments(node: Any) -> tuple[int, ...]:
    """Return the nodes that a node reads."""
    match node:
        case ("cast", argument, *_):
            return (argument,)
        case ("call" | "reduce" | "carry", _, arguments, *_):
            return arguments
        case _:
            return ()
