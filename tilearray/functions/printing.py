"""Arrays as text, in NumPy's layout and under ``ta.printoptions``, with dtype and device.

Only the elements that are shown are fetched from the device: if NumPy would summarise an axis by ``...``, its two ends
and one element between them are fetched, and NumPy summarises those to the same text.

NumPy cannot format the floats of ml_dtypes. Such an element is replaced by the float64 that has its shortest decimal:
the fewest digits that round to the element in its own dtype. NumPy then formats it as any float.

The options are NumPy's own, so ``np.printoptions`` and ``ta.printoptions`` are the same function.
"""

from __future__ import annotations

import numpy as np
from numpy import get_printoptions, printoptions, set_printoptions

from tilearray.dtypes import info
from tilearray.engine.signature import ArrayBase
from tilearray.errors import OperandError
from tilearray.functions.conversion import in_float64, pairs_of, to_numpy
from tilearray.functions.indexing.views import get

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]

_WHOLE = 1e8  # NumPy prints larger numbers with an exponent, and an integer below that is shown exactly


def array_repr(x: ArrayBase) -> str:
    """Return the text of ``repr(x)``.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.zeros((2, 0), dtype="int8")
    Array([], shape=(2, 0), dtype=int8, device='cpu')
    >>> with ta.printoptions(precision=2):
    ...     ta.asarray([1, 1 / 3], dtype="bfloat16")
    Array([1.  , 0.33], dtype=bfloat16, device='cpu')
    """
    options = get_printoptions()
    head = "Array("
    body = "[]" if x.size == 0 else _text(x, ", ", head)
    hidden = x.size > options["threshold"] or (x.size == 0 and x.shape != (0,))
    facts = ([f"shape={x.shape}"] if hidden else []) + [f"dtype={info(x.dtype).name}", f"device={str(x.device)!r}"]
    tail = ", ".join(facts) + ")"
    last = len(head) * ("\n" not in body) + len(body) - body.rfind("\n") - 1
    gap = " " if last + len(", ") + len(tail) <= options["linewidth"] else "\n" + " " * len(head)
    return f"{head}{body},{gap}{tail}"


def array_str(x: ArrayBase) -> str:
    """Return the text of ``str(x)``."""
    if x.ndim == 0:
        return str(_readable(to_numpy(x)))  # as NumPy's: the number itself, whatever the printoptions
    return "[]" if x.size == 0 else _text(x, " ", "")


def array_format(x: ArrayBase, spec: str) -> str:
    """Return the text of ``format(x, spec)``: of the number if there is one element, else of the text of the array.

    Raises
    ------
    OperandError
        If the array has several elements, and text does not have such a format.

    Examples
    --------
    >>> import tilearray as ta
    >>> f"{ta.asarray(2.5):.2f}", f"{ta.asarray([1, 2]):>8}"
    ('2.50', '   [1 2]')
    """
    if spec and x.size == 1:
        return format(to_numpy(x).item(), spec)
    try:
        return format(array_str(x), spec)
    except ValueError:
        raise OperandError(
            f"format: expected one element for the format {spec!r}, got shape {x.shape}; write the format of each "
            f"element, [f'{{value:{spec}}}' for value in x], or with ta.printoptions(precision=2): str(x)"
        ) from None


def _text(x: ArrayBase, separator: str, prefix: str) -> str:
    options = get_printoptions()
    summarised = x.size > options["threshold"]
    shown = _ends(x, 0, options["edgeitems"]) if summarised else to_numpy(x)
    return np.array2string(
        in_float64(shown) if _is_narrow(shown) and options["floatmode"] == "fixed" else _readable(shown),
        separator=separator,
        prefix=prefix,
        suffix="," if prefix else "",
        threshold=0 if summarised else x.size,
    )


def _ends(x: ArrayBase, axis: int, edge: int) -> np.ndarray:
    """Return `x` with the inside of every long axis reduced to one element, from `axis` on."""
    if axis == x.ndim:
        return to_numpy(x)
    size, before = x.shape[axis], (slice(None),) * axis
    if size <= 2 * edge:
        return _ends(x, axis + 1, edge)
    cuts = (slice(0, edge + 1), slice(size - max(edge, 1), size))  # NumPy always shows the last one
    return np.concatenate([_ends(get(x, (*before, cut)), axis + 1, edge) for cut in cuts], axis=axis)


def _is_narrow(shown: np.ndarray) -> bool:
    """Whether the elements are floats of ml_dtypes."""
    return shown.dtype.isbuiltin != 1 and not shown.dtype.names and info(shown.dtype).kind == "float"


def _readable(shown: np.ndarray) -> np.ndarray:
    """Return floats of ml_dtypes as the float64 of their shortest decimals. Integers below `_WHOLE` stay exact.

    Examples
    --------
    >>> from tilearray.dtypes import bfloat16
    >>> _readable(np.array([1 / 3, 257.0, 1e30]).astype(bfloat16)).tolist()
    [0.334, 256.0, 1e+30]
    """
    if shown.dtype.names:
        return pairs_of(shown)
    if not _is_narrow(shown):
        return shown
    from tilearray_host.casts import cast

    exact = in_float64(shown).reshape(-1)
    found = exact.copy()
    left = np.flatnonzero(np.isfinite(exact) & ~((exact == np.trunc(exact)) & (np.abs(exact) < _WHOLE)))
    for digits in range(5):  # bfloat16, the widest of them, needs four digits
        short = np.array([float(f"{value:.{digits}e}") for value in exact[left]])
        right = cast(short, shown.dtype).astype(np.float64) == exact[left]
        found[left[right]] = short[right]
        left = left[~right]
    return found.reshape(shown.shape)
