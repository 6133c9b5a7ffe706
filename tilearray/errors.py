"""Every exception that tilearray raises on purpose.

Each class is also one of Python's own exceptions, so that code written for NumPy (``except TypeError``) keeps
working, and ``except TileArrayError`` catches exactly what this library diagnosed itself::

    TileArrayError
    ├── DTypeError (TypeError)               an unknown or unsupported dtype, or an op that does not take it
    │   └── PromotionError                   two dtypes without a common one
    ├── ScalarOverflowError (OverflowError)  a Python number that the dtype cannot hold
    ├── ShapeError (ValueError)              shapes, axes or sizes that do not fit
    │   ├── AxisError (IndexError)           an axis that the array does not have
    │   └── BroadcastError                   shapes that do not broadcast
    ├── LayoutError (ValueError)             strides or alignment that an operation cannot use
    ├── WriteError (ValueError)              a write through a read-only view or one that overlaps itself
    ├── IndexingError (IndexError)           an index out of bounds or of the wrong kind
    ├── DeviceError (ValueError)             an unknown device, or operands on different ones
    │   └── DeviceUnavailableError           a device that this machine or installation does not have
    ├── SemanticsError (ValueError)          a name that is no semantics, or a lattice that is none
    ├── ImplicitTransferError (TypeError)    device data asked for by a host-only protocol
    ├── InterchangeError (BufferError)       memory that cannot be shared as asked
    ├── ExpressionError (ValueError)         text that is no expression of arrays, or an expression that fails
    └── OperandError (TypeError)             something that is no array, and not a Python number either

A message says which function was called, what it expected, what came, and what to write instead.
"""

from __future__ import annotations


class TileArrayError(Exception):
    """Base class of all errors that tilearray raises on purpose."""


class DTypeError(TileArrayError, TypeError):
    """A dtype is unknown, unsupported, or not accepted by the operation."""


class PromotionError(DTypeError):
    """The semantics in force define no common dtype for the operands."""


class ScalarOverflowError(TileArrayError, OverflowError):
    """A Python integer does not fit the dtype that the operation gives it."""


class ShapeError(TileArrayError, ValueError):
    """A shape, an axis or a size does not fit the operation."""


class AxisError(ShapeError, IndexError):
    """An axis is out of bounds."""


class BroadcastError(ShapeError):
    """Shapes cannot be broadcast to a common one."""


class LayoutError(TileArrayError, ValueError):
    """Strides, bounds or alignment make the requested view impossible."""


class WriteError(TileArrayError, ValueError):
    """The target of a write is read-only, or several of its elements share memory."""


class IndexingError(TileArrayError, IndexError):
    """An index is out of bounds, or of a kind that indexing does not take."""


class DeviceError(TileArrayError, ValueError):
    """A device is unknown, or the operands live on different ones."""


class DeviceUnavailableError(DeviceError):
    """The device exists by name, but not on this machine or in this installation."""


class SemanticsError(TileArrayError, ValueError):
    """A name is no semantics, or declared edges make no lattice."""


class ImplicitTransferError(TileArrayError, TypeError):
    """A host-only protocol asked for data that lives on another device."""


class InterchangeError(TileArrayError, BufferError):
    """Memory cannot be exchanged with another library in the way that was asked for."""


class ExpressionError(TileArrayError, ValueError):
    """An expression given as text is outside of the grammar, or fails; the message quotes the part that does."""


class OperandError(TileArrayError, TypeError):
    """An operand is neither a tilearray Array nor a Python or NumPy number."""


def type_name(value: object) -> str:
    """Return the name of a value's type for an error message, with its module unless that is builtins.

    >>> type_name(3), type_name(__import__("fractions").Fraction(1))
    ('int', 'fractions.Fraction')
    """
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
