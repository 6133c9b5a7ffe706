"""PTX for the threads of a block together, as Triton functions: one piece takes all elements of a thread at once.

Element k of thread t has the index ``t + k * threads`` in Triton's blocks. `place_text` gives its place in the block:
each warp has a run of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

BITS = 8
"""The bits of a digit."""
DIGITS = 1 << BITS
WARP = 32
OF_A_THREAD = 16
"""The most elements of a thread of a block of `warps_of`."""
LEAST_WARPS = DIGITS // WARP
"""The least warps of a block: a thread sums the counters of a digit."""


def warps_of(size: int) -> int:
    """Return the warps of a block of so many elements, a power of two of at least 256.

    >>> warps_of(256), warps_of(8192)
    (8, 16)
    """
    return max(LEAST_WARPS, size // (WARP * OF_A_THREAD))


def items_of(size: int, warps: int = 0) -> int:
    """Return the elements of a thread of such a block, which has the warps of `warps_of` unless others are given."""
    return size // (WARP * (warps or warps_of(size)))


def place_text(size: int, warps: int = 0) -> str:
    """Return the place in a block of so many elements that has an index, in Triton.

    >>> place_text(4096)
    'index % 32 + index // 32 % 8 * 512 + index // 256 * 32'
    >>> place_text(8192, 8)
    'index % 32 + index // 32 % 8 * 1024 + index // 256 * 32'
    """
    warps, items = warps or warps_of(size), items_of(size, warps)
    return f"index % {WARP} + index // {WARP} % {warps} * {WARP * items} + index // {WARP * warps} * {WARP}"


def names_of_words(words: int) -> list[str]:
    """Return the names of the words of an element."""
    return [f"word{word}" for word in range(words)]


def registers(items: int, count: int) -> list[list[str]]:
    """Return the names of operands: for each result and each input, those of a thread's elements."""
    return [[f"${operand * items + item}" for item in range(items)] for operand in range(count)]


def function_text(
    signature: str, lines: Iterator[str], outputs: int, inputs: int, items: int, addresses: int = 0
) -> str:
    """Return a Triton function that calls assembly for all elements of a thread. The last inputs may be addresses."""
    operands = ["=&r"] * (outputs * items) + ["r"] * (inputs * items) + ["l"] * (addresses * items)
    constraints = ",".join(operands)
    asm = "".join(f'\n        "{line} "' for line in lines)
    given = signature.partition("(")[2].removesuffix(")")
    types = ", ".join(["tl.int32"] * outputs)
    types = f"({types})" if outputs > 1 else types
    return "\n".join(
        [
            f"def {signature}:",
            f"    asm: tl.constexpr = ({asm}",
            "    )",
            f'    constraints: tl.constexpr = "{constraints}"',
            "    return tl.inline_asm_elementwise(",
            f"        asm, constraints, [{given}], {types}, is_pure=False, pack={items}",
            "    )",
        ]
    )


def checked(index: Sequence[str], threads: int) -> Iterator[str]:
    """Yield the lines that stop the kernel if elements have other indices, in registers x and y, if p says so.

    Those of a thread are sums of the ones of its elements 1, 2, 4, ...
    """
    yield "mov.b32 y, 0;"
    for k in (0, *[1 << bit for bit in range(len(index).bit_length() - 1)]):
        yield f"add.u32 x, thread, {threads * k}; xor.b32 x, x, {index[k]}; or.b32 y, y, x;"
    yield "setp.ne.u32 p, y, 0; @p trap;"


def summed_over_lanes(register: str) -> Iterator[str]:
    """Yield the lines that add the values of all earlier lanes to a register. They use registers x and q."""
    for lanes in (1, 2, 4, 8, 16):
        yield f"shfl.sync.up.b32 x|q, {register}, {lanes}, 0, -1; @q add.u32 {register}, {register}, x;"


def zeros(found: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a result of no use."""
    for one in found:
        yield f"mov.b32 {one}, 0;"


def with_decorator(functions: Sequence[str]) -> list[str]:
    """Return the texts of functions as parts of a kernel's source."""
    return [f"@triton.jit\n{text}\n\n" for text in functions]
