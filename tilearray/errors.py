"""Every exception that tilearray raises on purpose.

Each class also derives from one of Python's own exceptions. Code written for NumPy (``except TypeError``) thus keeps
working. ``except TileArrayError`` catches exactly the errors that this library diagnosed itself::

    TileArrayError
    ├── DTypeError (TypeError)               a dtype that is unknown, unsupported, or not accepted by the operation
    │   └── PromotionError                   operands without a common dtype
    ├── ScalarOverflowError (OverflowError)  a Python number that the dtype cannot hold
    ├── ShapeError (ValueError)              shapes, axes or sizes that do not fit
    │   ├── AxisError (NumPy's AxisError)    an axis that the array does not have
    │   └── BroadcastError                   shapes that do not broadcast
    ├── ParameterError (ValueError)          a parameter of a distribution beyond its range, or a state of another kind
    ├── LayoutError (ValueError)             strides or alignment that an operation cannot use
    ├── WriteError (ValueError)              a write through a read-only view or one that overlaps itself
    ├── IndexingError (IndexError)           an index out of bounds or of the wrong kind
    ├── DeviceError (ValueError)             an unknown device, or operands on different devices
    │   └── DeviceUnavailableError           a device that this machine or installation does not have
    ├── SemanticsError (ValueError)          an unknown semantics, or edges that do not form a lattice
    ├── ImplicitTransferError (TypeError)    a host-only protocol applied to data on a device
    ├── InterchangeError (BufferError)       memory that cannot be shared as requested
    ├── ExpressionError (ValueError)         text that is not an array expression, or an expression that fails
    ├── FusionError (TypeError)              a function that cannot run as one kernel
    ├── GradientError (TypeError)            a function, or a part of one, that has no derivative
    ├── OperandError (TypeError)             an operand that is neither an array nor a Python number
    ├── LinAlgError (numpy.linalg.LinAlgError)   a decomposition or an inverse that a matrix does not have
    └── CudaError (RuntimeError)             the driver, or a GPU's memory: see `tilearray_cuda.errors`

The errors of the CUDA backend (``tilearray_cuda.errors.CudaError`` and its subclasses, such as ``OutOfMemoryError``)
join the tree below `TileArrayError` when the library opens a GPU.

A message names the function that was called, the expected value, the given value, and what to write instead.
"""

from __future__ import annotations

import reprlib
import sys
from typing import Any

import numpy as np


class TileArrayError(Exception):
    """Base class of all errors that tilearray raises on purpose."""


class DTypeError(TileArrayError, TypeError):
    """A dtype is unknown or unsupported, or the operation does not accept it."""


class PromotionError(DTypeError):
    """The semantics in force define no common dtype for the operands."""


class ScalarOverflowError(TileArrayError, OverflowError):
    """A Python integer does not fit the dtype that the operation gives it."""


class ShapeError(TileArrayError, ValueError):
    """A shape, an axis or a size does not fit the operation."""


class AxisError(ShapeError, np.exceptions.AxisError):
    """An axis is out of bounds. NumPy's class derives from `ValueError` and `IndexError`."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Make the error again by its class: NumPy's has slots, which the pickles of dask's workers leave out."""
        return type(self), self.args


class BroadcastError(ShapeError):
    """The shapes do not broadcast to a common shape."""


class ParameterError(TileArrayError, ValueError):
    """A parameter of a distribution is beyond its range, or a state belongs to another generator."""


class LayoutError(TileArrayError, ValueError):
    """Strides, bounds or alignment make the requested view impossible."""


class WriteError(TileArrayError, ValueError):
    """The target of a write is read-only, or several of its elements share memory."""


class IndexingError(TileArrayError, IndexError):
    """An index is out of bounds, or indexing does not accept its kind."""


class DeviceError(TileArrayError, ValueError):
    """A device is unknown, or the operands are on different devices."""


class DeviceUnavailableError(DeviceError):
    """The device name is valid, but this machine or installation does not have the device."""


class SemanticsError(TileArrayError, ValueError):
    """A semantics is unknown, or the declared edges do not form a lattice."""


class ImplicitTransferError(TileArrayError, TypeError):
    """A host-only protocol requested data that is on another device."""


class InterchangeError(TileArrayError, BufferError):
    """Memory cannot be exchanged with another library as requested."""


class ExpressionError(TileArrayError, ValueError):
    """The text of an expression is outside of the grammar, or its computation fails; the message quotes that part."""


class FusionError(TileArrayError, TypeError):
    """A function cannot be fused: it needs values while it is traced, or runs an operation that is not elementwise."""


class GradientError(TileArrayError, TypeError):
    """A function cannot be differentiated: an operation of it has no derivative, or an argument has no gradient."""


class OperandError(TileArrayError, TypeError):
    """An operand is neither a tilearray Array nor a Python or NumPy number."""


class LinAlgError(TileArrayError, np.linalg.LinAlgError):
    """A matrix does not have the decomposition or the inverse, or the iteration that computes it does not converge."""


def type_name(value: object) -> str:
    """Return the name of a value's type for an error message, with its module unless that is builtins.

    >>> type_name(3), type_name(__import__("fractions").Fraction(1))
    ('int', 'fractions.Fraction')
    """
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


class _Short(reprlib.Repr):
    """Bounded text of any object: long containers and strings are cut, and a ``__repr__`` that raises is left out."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlist, self.maxtuple = 4, 8, 8
        self.maxstring = self.maxother = 120

    def repr1(self, x: Any, level: int) -> str:
        """Return the text of an object by its type's name, for Python's own types only: other types share names."""
        return super().repr1(x, level) if type(x).__module__ == "builtins" else self.repr_instance(x, level)

    def repr_int(self, x: int, level: int) -> str:
        """Return an integer in digits, up to 128 bits: Python writes no integers of thousands of digits."""
        return repr(x) if x.bit_length() <= 128 else f"an integer of {x.bit_length()} bits"


shown = _Short().repr
"""Return the text of a caller's object for an error message, as `repr` does, but always short."""


def frames_of_the_library() -> int:
    """Return the number of calls from the caller up to the code of the user, as the stacklevel of a warning."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tilearray":
        frame, count = frame.f_back, count + 1
    return count
