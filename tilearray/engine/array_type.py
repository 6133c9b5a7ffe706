"""The class of arrays, as annotations below `tilearray.arrays` name it.

A result has the class of its operands, so these modules need no more than `ArrayBase`. A type checker reads the stub
`array_type.pyi`, in which `Array` is the public class with its operators. `Tiles`, which a method returns, stands there
alone.
"""

from __future__ import annotations

from typing import TypeVar

from tilearray.engine.signature import ArrayBase

Array = ArrayBase
A = TypeVar("A", bound=ArrayBase)
"""The class of the operands; for a checker `Array` where no operand decides."""
