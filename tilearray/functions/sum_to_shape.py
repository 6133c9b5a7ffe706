"""What undoes a broadcast, as the gradient of a broadcast operation needs it: `sum_to_shape` and its axes."""

from __future__ import annotations

from collections.abc import Sequence

from tilearray.engine.array_type import A
from tilearray.engine.signature import HostData
from tilearray.errors import ShapeError
from tilearray.functions.arguments import as_array, check_kind
from tilearray.functions.manipulation import reshape
from tilearray.functions.reduce import reduce
from tilearray.geometry.shapes import as_shape
from tilearray.ops.row import ANY


def unbroadcast_axes(shape: int | Sequence[int], result_shape: int | Sequence[int], /) -> tuple[int, ...]:
    """Return the axes of a result along which an operand was broadcast: those that it lacks, and those of size 1 there.

    Parameters
    ----------
    shape : int or tuple of int
        The shape of the operand.
    result_shape : int or tuple of int
        The shape of the result, to which that of the operand broadcasts.

    Returns
    -------
    tuple of int
        The gradient of the operand is the sum over these axes, reshaped to `shape`: see `sum_to_shape`.

    Raises
    ------
    ShapeError
        If `shape` does not broadcast to `result_shape`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.unbroadcast_axes((2, 1), (4, 2, 3))
    (0, 2)
    """
    return _axes("unbroadcast_axes", as_shape(shape, "unbroadcast_axes"), as_shape(result_shape, "unbroadcast_axes"))


def _axes(function: str, wanted: tuple[int, ...], given: tuple[int, ...]) -> tuple[int, ...]:
    added = len(given) - len(wanted)
    pairs = list(zip(wanted, given[max(added, 0) :]))
    if added < 0 or not all(size in (1, other) for size, other in pairs):
        raise ShapeError(
            f"{function}: expected a shape that broadcasts to {given}, got {wanted}; "
            f"write sizes of x or 1, without the first axes if those are added"
        )
    repeated = [added + place for place, (size, other) in enumerate(pairs) if size != other]
    return (*range(added), *repeated)


def sum_to_shape(x: A | HostData, shape: int | Sequence[int], /) -> A:
    """Return the sums over all axes that broadcasting from a shape adds or repeats.

    Parameters
    ----------
    x : Array
        Of any kind but the storage dtypes.
    shape : int or tuple of int
        A shape that broadcasts to that of `x`.

    Returns
    -------
    Array
        Of the dtype of `x`, also for narrow integers. If broadcasting adds and repeats nothing, it is `x` itself.

    Raises
    ------
    ShapeError
        If `shape` does not broadcast to the shape of `x`.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.sum_to_shape(ta.ones((4, 2, 3)), (2, 1)).tolist()
    [[12.0], [12.0]]
    """
    x = as_array("sum_to_shape", x)
    check_kind("sum_to_shape", x.dtype, ANY)
    wanted = as_shape(shape, "sum_to_shape")
    axes = _axes("sum_to_shape", wanted, x.shape)
    return reshape(reduce("sum", x, axes, x.dtype, False), wanted) if axes else x
