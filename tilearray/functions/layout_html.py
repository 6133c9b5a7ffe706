"""Arrays in notebooks: dtype, shape, strides, and a drawing of the layout in memory.

The drawing has two parts. The grid has the last two axes, and in each cell the element's position in the buffer. The
strip is the memory from the lowest element on: the elements of the array are filled, others are gaps. Both follow from
the layout, so nothing is copied from a device. Only an array in host memory shows its values, and only if they are
few. Colours are those of the text around it, so the drawing is right in light and dark themes.
"""

from __future__ import annotations

from html import escape

from numpy import printoptions

from tilearray.dtypes import info
from tilearray.engine.signature import ArrayBase
from tilearray.errors import TileArrayError
from tilearray.functions.printing import array_str

_ROWS, _COLUMNS, _STRIP = 4, 8, 48
_AXES = 16  # axes in the table; others are counted
_TEXT = 1000  # characters of values
_HEIGHT = 18


def array_html(x: ArrayBase) -> str:
    """Return the HTML of an array for a notebook, less than 4 kB and without scripts.

    Examples
    --------
    >>> import tilearray as ta
    >>> text = array_html(ta.zeros((4, 6), dtype="int8", device="cpu")[:, ::-2])
    >>> "int8 (4, 3) on cpu, 12 bytes" in text, "backwards in steps of 2" in text
    (True, True)
    """
    title = f"{info(x.dtype).name} {x.shape} on {x.device}, {x.size * x.dtype.itemsize} bytes"
    rows = "".join(
        f"<tr><td>{axis}<td>{size}<td>{stride}<td style='text-align:left'>{step(size, stride)}"
        for axis, (size, stride) in enumerate(zip(x.shape[:_AXES], x.strides))
    )
    table = f"<table><tr><th>axis<th>size<th>stride<th>in memory{rows}</table>" if rows else ""
    more = f"<p>and {x.ndim - _AXES} more axes" if x.ndim > _AXES else ""
    drawing = layout_svg(x) if x.size else ""
    return f"<div><b>Array</b> <code>{escape(title)}</code>{table}{more}{drawing}{_values(x)}</div>"


def step(size: int, stride: int) -> str:
    """Return in words how an axis walks memory.

    >>> step(3, 1), step(3, 0), step(3, -6), step(1, 6)
    ('adjacent', 'repeated, broadcast', 'backwards in steps of 6', 'one element')
    """
    if size <= 1:
        return "one element" if size else "no elements"
    if stride == 0:
        return "repeated, broadcast"
    way = "backwards" if stride < 0 else ""
    length = "" if abs(stride) == 1 else f"in steps of {abs(stride)}"
    return " ".join(filter(None, (way, length))) or "adjacent"


def lowest(x: ArrayBase) -> int:
    """Return the position in the buffer of the lowest element of an array that has elements."""
    return x.offset + sum((size - 1) * stride for size, stride in zip(x.shape, x.strides) if stride < 0)


def occupied(shape: tuple[int, ...], strides: tuple[int, ...], limit: int) -> set[int]:
    """Return the distances below `limit` from the lowest element at which there are elements.

    >>> sorted(occupied((2, 3), (8, -2), 16))
    [0, 2, 4, 8, 10, 12]
    """
    found = {0}
    for size, stride in zip(shape, map(abs, strides)):
        if stride:
            steps = range(0, min(size * stride, limit), stride)
            found = {start + distance for start in found for distance in steps if start + distance < limit}
    return found


def layout_svg(x: ArrayBase) -> str:
    """Return the grid of positions above the strip of memory, as SVG, of an array that has elements."""
    (rows, columns), (down, right) = ((1, 1, *values)[-2:] for values in (x.shape, x.strides))
    cells = [
        [str(x.offset + row * down + column * right) for column in range(min(columns, _COLUMNS))]
        for row in range(min(rows, _ROWS))
    ]
    width = 8 + 7 * max(len(cell) for line in cells for cell in line)
    boxes = "".join(
        f"M{place * width} {row * _HEIGHT}h{width}v{_HEIGHT}h-{width}z"
        for row, line in enumerate(cells)
        for place in range(len(line))
    )
    words = "".join(
        f'<text x="{place * width + 4}" y="{row * _HEIGHT + 13}">{cell}</text>'
        for row, line in enumerate(cells)
        for place, cell in enumerate(line)
    )
    top, across = len(cells) * _HEIGHT, len(cells[0]) * width
    if columns > _COLUMNS:
        words += f'<text x="{across + 4}" y="13">…</text>'
    if rows > _ROWS:
        top += _HEIGHT
        words += f'<text x="4" y="{top - 5}">…</text>'
    start = lowest(x)
    filled = "".join(f"M{8 * place} {top + 8}h7v9h-7z" for place in sorted(occupied(x.shape, x.strides, _STRIP)))
    words += f'<text x="0" y="{top + 32}">memory from element {start} of the buffer</text>'
    size = f'width="{max(across + 20, 8 * _STRIP + 8)}" height="{top + 38}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" font-size="11" fill="currentColor">'
        f'<path d="{boxes}" fill="none" stroke="currentColor" opacity=".5"/><path d="{filled}"/>'
        f'<path d="M0 {top + 17.5}h{8 * _STRIP}" stroke="currentColor" opacity=".5"/>{words}</svg>'
    )


def _values(x: ArrayBase) -> str:
    """The values as text, if the array is in host memory and the text is short; else how to see them."""
    hint = "<p><code>print(x)</code> shows the values"
    if x.device.type != "cpu":
        return hint
    try:
        with printoptions(threshold=64, edgeitems=2):
            text = array_str(x)
    except TileArrayError:  # a value that is not known yet
        return hint
    return f"<pre>{escape(text)}</pre>" if len(text) <= _TEXT else hint
