"""How the library's dtypes live in a kernel: in memory, in registers, and as arguments.

Floats of at most 8 bits are bytes to a kernel: it moves them unchanged, and converts them in integer arithmetic, which
is the same on every architecture. A bool is a byte in memory and a bit in registers. A complex64 is one 64-bit word in
memory, a complex128 two float64, and both are pairs of floats in registers.
"""

from __future__ import annotations

from typing import NamedTuple


class Storage(NamedTuple):
    """A dtype in a kernel.

    Attributes
    ----------
    kind : "bool", "int", "uint", "float", "bits" (a narrow float as a byte) or "complex"
    itemsize : bytes in memory
    pointer : Triton's name of the memory's type
    register : Triton's type in registers (of each part, for complex)
    argument : Triton's name of a number passed by value, and its `struct` format
    """

    kind: str
    itemsize: int
    pointer: str
    register: str
    argument: tuple[str, str]


STORAGE: dict[str, Storage] = {
    "bool": Storage("bool", 1, "*i8", "tl.int1", ("i8", "b")),
    **{
        f"int{n}": Storage("int", n // 8, f"*i{n}", f"tl.int{n}", (f"i{n}", "bhiq"[k]))
        for k, n in enumerate((8, 16, 32, 64))
    },
    **{
        f"uint{n}": Storage("uint", n // 8, f"*u{n}", f"tl.uint{n}", (f"u{n}", "BHIQ"[k]))
        for k, n in enumerate((8, 16, 32, 64))
    },
    "float16": Storage("float", 2, "*fp16", "tl.float16", ("fp32", "f")),
    "bfloat16": Storage("float", 2, "*bf16", "tl.bfloat16", ("fp32", "f")),
    "float32": Storage("float", 4, "*fp32", "tl.float32", ("fp32", "f")),
    "float64": Storage("float", 8, "*fp64", "tl.float64", ("fp64", "d")),
    "complex64": Storage("complex", 8, "*u64", "tl.float32", ("fp32", "f")),
    "complex128": Storage("complex", 16, "*fp64", "tl.float64", ("fp64", "d")),
}
STORAGE |= {
    name: Storage("bits", 1, "*u8", "tl.uint8", ("u8", "B"))
    for name in (
        "float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz",
        "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn",
    )
}  # fmt: skip
STORAGE["float4_e2m1fn_x2"] = Storage("bits", 1, "*u8", "tl.uint8", ("u8", "B"))  # only moved
ITEMSIZE = {name: storage.itemsize for name, storage in STORAGE.items()}


class Bits(NamedTuple):
    """A float of at most 8 bits: its format, and the codes of its limits.

    `signless` says that the code of -0 is that of NaN, so that there is one zero.
    """

    mantissa: int
    bias: int
    largest: int
    beyond: int
    nan: int
    infinity: int  # 0xFF if there is none: no magnitude equals it
    signless: bool = False


BITS: dict[str, Bits] = {
    "float8_e4m3fn": Bits(3, 7, 0x7E, 0x7F, 0x7F, 0xFF),
    "float8_e5m2": Bits(2, 15, 0x7B, 0x7C, 0x7E, 0x7C),
    "float8_e3m4": Bits(4, 3, 0x6F, 0x70, 0x78, 0x70),
    "float8_e4m3": Bits(3, 7, 0x77, 0x78, 0x7C, 0x78),
    "float8_e4m3b11fnuz": Bits(3, 11, 0x7F, 0x80, 0x80, 0xFF, signless=True),
    "float8_e4m3fnuz": Bits(3, 8, 0x7F, 0x80, 0x80, 0xFF, signless=True),
    "float8_e5m2fnuz": Bits(2, 16, 0x7F, 0x80, 0x80, 0xFF, signless=True),
    "float8_e8m0fnu": Bits(0, 127, 0xFE, 0xFF, 0xFF, 0xFF),  # has functions of its own: no sign, no zero
    "float4_e2m1fn": Bits(1, 1, 0x7, 0x7, 0x0, 0xFF),  # its sign is bit 3, and NaN becomes zero
}
