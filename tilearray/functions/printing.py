"""Arrays as text, in NumPy's layout and under ``np.printoptions``, with dtype and device.

Only the elements that are shown are fetched from the device: if NumPy would summarise an axis by ``...``, its two ends
and one element between them are fetched, and NumPy summarises those to the same text.
"""

from __future__ import annotations

import numpy as np

from tilearray.engine.signature import ArrayBase
from tilearray.functions.conversion import to_numpy
from tilearray.functions.indexing.views import get


def array_repr(x: ArrayBase) -> str:
    """Return the text of ``repr(x)``.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.zeros((2, 0), dtype="int8")
    Array([], shape=(2, 0), dtype=int8, device='cpu')
    """
    options = np.get_printoptions()
    head = "Array("
    body = "[]" if x.size == 0 else _text(x, ", ", head)
    hidden = x.size > options["threshold"] or (x.size == 0 and x.shape != (0,))
    facts = ([f"shape={x.shape}"] if hidden else []) + [f"dtype={x.dtype.name}", f"device={str(x.device)!r}"]
    tail = ", ".join(facts) + ")"
    last = len(head) * ("\n" not in body) + len(body) - body.rfind("\n") - 1
    gap = " " if last + len(", ") + len(tail) <= options["linewidth"] else "\n" + " " * len(head)
    return f"{head}{body},{gap}{tail}"


def array_str(x: ArrayBase) -> str:
    """Return the text of ``str(x)``."""
    if x.ndim == 0:
        return str(to_numpy(x))  # as NumPy's: the number itself, whatever the printoptions
    return "[]" if x.size == 0 else _text(x, " ", "")


def _text(x: ArrayBase, separator: str, prefix: str) -> str:
    options = np.get_printoptions()
    summarised = x.size > options["threshold"]
    shown = _ends(x, 0, options["edgeitems"]) if summarised else to_numpy(x)
    return np.array2string(
        shown,
        separator=separator,
        prefix=prefix,
        suffix="," if prefix else "",
        threshold=0 if summarised else x.size,
        formatter=_formatter(shown),  # type: ignore[arg-type]
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


def _formatter(shown: np.ndarray) -> dict[str, object] | None:
    """NumPy does not align the elements of ml_dtypes' floats; this gives them one width."""
    if shown.dtype.kind in "biufc":
        return None
    width = max(len(str(value)) for value in shown.reshape(-1))

    def aligned(value: object) -> str:
        return str(value).rjust(width)

    return {"all": aligned}
