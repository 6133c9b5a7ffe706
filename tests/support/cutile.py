"""Ask cuTile for dtypes on the host: its operations run until the dtype is decided, before they emit code.

A typed operand is a tile of a dtype, a number a loosely typed constant, as in a kernel. Import it where ``cuda.tile``
can be imported.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from cuda.tile import _datatype as datatype
from cuda.tile._exception import TileTypeError, TileValueError
from cuda.tile._ir import arithmetic_ops as arithmetic
from cuda.tile._ir.type import LooselyTypedScalar, TileTy

from support.conformance import ERROR

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS, FP8 = ("float16", "bfloat16", "float32", "float64"), ("float8_e4m3fn", "float8_e5m2")
DTYPES = {name: getattr(datatype, name.replace("bool", "bool_")) for name in ("bool", *INTEGERS, *FLOATS, *FP8)}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def answer(ask: Callable[[], Any]) -> str:
    try:
        return NAMES[ask()]
    except (TileTypeError, TileValueError):
        return ERROR


class Tile:
    """A variable of a type, as much of it as deciding dtypes needs."""

    ctx = SimpleNamespace(typing_hooks=SimpleNamespace(get_tensor_like_type=TileTy))

    def __init__(self, type_: Any) -> None:
        self.type = type_

    def get_type(self) -> Any:
        return self.type

    def get_loose_type(self) -> Any:
        return self.type

    def is_constant(self) -> bool:
        return False


def tile_of(operand: Any) -> Tile:
    return Tile(TileTy(DTYPES[operand], (2,)) if isinstance(operand, str) else LooselyTypedScalar(operand))


def emit_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let operations end where they would emit, with a tile of the dtype that they have decided."""
    stand_ins: dict[str, Any] = {
        "Builder": SimpleNamespace(get_current=lambda: SimpleNamespace(ir_ctx=Tile.ctx)),
        "promote_and_broadcast_to": lambda x, type_: Tile(type_),
        "astype": lambda x, dtype: Tile(TileTy(dtype, (2,))),
        "add_operation": lambda operation, type_, **rest: Tile(type_),
        "ensure_tensorlike": lambda x, accepts: x,
        "mod_tensorlike_raw": lambda x, y: x,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(arithmetic, name, stand_in)
