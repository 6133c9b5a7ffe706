"""`draw`: how an operation walks memory, as text and as SVG: its collapsed loop, its programs, its operands.

The facts are those of `tilearray.explaining.explain`. For each launch there is the loop with the part of the first
program, and for each array a grid: the last two axes of the loop, and in each cell the place of the element in memory,
counted from the element that the loop visits first. A line joins the cells in the order of memory: along rows it is
the order of the loop, and down the columns it is a transposed operand. Colours are those of the text around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import prod
from typing import Any, NamedTuple

from tilearray.dtypes import info
from tilearray.engine.signature import ArrayBase
from tilearray.errors import OperandError, type_name
from tilearray.explaining.explain import as_ours, explain
from tilearray.explaining.explanation import Explanation, Launch, Memory
from tilearray.explaining.kernels import GpuKernel
from tilearray.functions.layout_html import layout_svg, lowest, occupied, step
from tilearray.geometry.loop import LayoutCase
from tilearray.ops.signatures import show

_ROWS, _COLUMNS = 4, 6
_LAUNCHES, _ARRAYS, _STRIP = 8, 8, 48
_LINE, _CELL, _WIDTH, _SIDE = 16, 18, 900, 140
_MOST_LINES = 24  # between tiles; more are a grey area
_ELEMENTWISE = frozenset(
    {LayoutCase.FLAT, LayoutCase.STRIDED, LayoutCase.BROADCAST, LayoutCase.ROWS, LayoutCase.TILE, LayoutCase.MIXED}
)

Cells = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Drawing:
    """A drawing: text if it is printed, SVG in a notebook. `draw` makes it.

    Attributes
    ----------
    title, text, svg : str
        What is drawn in one line, all of it as text, and all of it as SVG.
    """

    title: str
    text: str
    svg: str

    def __repr__(self) -> str:
        return self.text

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f"<div><b>{escape(self.title)}</b>{self.svg}</div>"


def draw(x: Any, /, *args: Any, arch: int | str | None = None, **kwargs: Any) -> Drawing:
    """Draw the layout of an array, or how a function walks memory.

    Parameters
    ----------
    x : array or callable
        An array; or an operation or a function of arrays, which runs without memory as in `explain`.
    *args, **kwargs
        The arguments of the function.
    arch : int or str, optional
        A compute capability, as 90 or "sm_90": draw the kernels of such a GPU, which need not be there.

    Returns
    -------
    Drawing
        ``str()`` of it is text; a notebook shows SVG.

    Raises
    ------
    OperandError
        If `x` is neither, or an array has arguments, or the function cannot be explained.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.zeros((480, 640), device="cpu")
    >>> ta.draw(ta.add, x, ta.zeros((640, 480), device="cpu").T)
    add on cpu under array-api: 1 launch, 3.69 MB
    1. add: a loop of 480 x 640, tile
       one call of NumPy over whole views
       out0 float32: in steps of 640; adjacent
           0     1     2     3     4     5 ...
         640   641   642   643   644   645
        1280  1281  1282  1283  1284  1285
        1920  1921  1922  1923  1924  1925
         ...
       x0 float32: in steps of 640; adjacent
           0     1     2     3     4     5 ...
         640   641   642   643   644   645
        1280  1281  1282  1283  1284  1285
        1920  1921  1922  1923  1924  1925
         ...
       x1 float32: adjacent; in steps of 480
           0   480   960  1440  1920  2400 ...
           1   481   961  1441  1921  2401
           2   482   962  1442  1922  2402
           3   483   963  1443  1923  2403
         ...
    """
    if not callable(x):
        array = as_ours(x)
        if not isinstance(array, ArrayBase):
            raise OperandError(
                f"draw: expected an array, or a function and its arguments, got {type_name(x)}; write ta.draw(x) or "
                f"ta.draw(ta.add, x, y)"
            )
        if args or kwargs or arch is not None:
            raise OperandError("draw: expected a function before other arguments, got an array; write ta.draw(x)")
        return _of_array(array)
    return _of_call(explain(x, *args, arch=arch, **kwargs))


# --- arrays ----------------------------------------------------------------------------------------------------------


def _of_array(x: ArrayBase) -> Drawing:
    title = f"{info(x.dtype).name} {x.shape} on {x.device}, {x.size * x.dtype.itemsize} bytes"
    lines = [title]
    lines += [
        f"axis {axis}: {size}, {step(size, stride)}" for axis, (size, stride) in enumerate(zip(x.shape, x.strides))
    ]
    if not x.size:
        return Drawing(title, "\n".join(lines), _svg([(0, 0, "")], title))
    lines += _cells_text(_cells(x.shape, x.strides, x.offset), x.shape)
    filled = occupied(x.shape, x.strides, _STRIP)
    strip = "".join("#" if place in filled else "." for place in range(_STRIP)).rstrip(".")
    lines.append(f"memory from element {lowest(x)} of the buffer: {strip}")
    return Drawing(title, "\n".join(lines), layout_svg(x))


# --- calls -----------------------------------------------------------------------------------------------------------


class _Panel(NamedTuple):
    """A launch: its heading, how programs share its loop, and the launch."""

    heading: str
    sharing: str
    launch: Launch


def _of_call(explained: Explanation) -> Drawing:
    panels = [
        _Panel(f"{heading}: a loop of {_times(launch.shape)}, {_case(launch).value}", sharing(launch), launch)
        for number, each in enumerate(explained.steps, 1)
        for heading, launch in _headings(f"{number}. {each.name}", each.launches)
    ]
    rest = len(panels) - _LAUNCHES
    more = [f"and {rest} more launch{'' if rest == 1 else 'es'}"] if rest > 0 else []
    shown = panels[:_LAUNCHES]
    lines = [line for panel in shown for line in _panel_text(panel)]
    boxes = [box for panel in shown for box in _panel_boxes(panel)] + [_words(line) for line in more]
    return Drawing(explained.title, "\n".join([explained.title, *lines, *more]), _svg(boxes, explained.title))


def _headings(name: str, launches: tuple[Launch, ...]) -> list[tuple[str, Launch]]:
    if len(launches) == 1:
        return [(name, launches[0])]
    return [(f"{name}, launch {number} of {len(launches)}", each) for number, each in enumerate(launches, 1)]


def _case(launch: Launch) -> LayoutCase:
    return launch._note[1].case


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def tiles_of(launch: Launch) -> tuple[int, int] | None:
    """Return how many tiles lie below and beside each other in the last two axes, or None if a loop has no tiles."""
    kernel = launch.kernel
    if not isinstance(kernel, GpuKernel) or _case(launch) not in _ELEMENTWISE or kernel.tile[0] == 1:
        return None
    *outer, rows, columns = (1, *launch.shape)
    down, across = -(-rows // kernel.tile[0]), -(-columns // kernel.tile[1])
    return (down, across) if kernel.programs == prod(outer) * down * across else None


def sharing(launch: Launch) -> str:
    """Return in words how the programs of a launch share its loop, or how the host runs it."""
    kernel = launch.kernel
    if not isinstance(kernel, GpuKernel):
        return kernel.strategy
    rows, columns = kernel.tile
    programs = f"{kernel.programs} program{'' if kernel.programs == 1 else 's'}"
    if rows == 1 and _case(launch) in _ELEMENTWISE:
        return f"{programs} of {columns} elements, in the order of the loop"
    words = f"{programs} of {rows} x {columns} elements"
    if tiles := tiles_of(launch):
        return f"{words}: {_times(tiles)} tiles of the last two axes"
    if _walks(launch):
        loop = launch._note[1]
        if getattr(loop, "held", False):
            return f"{programs}, each with {rows} row{'' if rows == 1 else 's'} in registers, in {columns} lanes"
        segments = loop.segments.total
        cut = f", in {segments} segments" if segments > 1 else ""
        return f"{words}, along the last axis in steps of {columns}{cut}"
    return words


def _walks(launch: Launch) -> bool:
    """Whether each program walks along the last axis of the loop: in reductions and scans."""
    lanes = getattr(launch._note[1], "lanes", None)
    return isinstance(launch.kernel, GpuKernel) and lanes == launch.kernel.tile[1]


# --- grids of elements -----------------------------------------------------------------------------------------------


def _last_two(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the extents of the last two axes; those that are missing are 1."""
    rows, columns = (1, 1, *shape)[-2:]
    return rows, columns


def _cells(shape: tuple[int, ...], strides: tuple[int, ...], first: int = 0) -> Cells:
    """Return the places of the first elements along the last two axes.

    >>> _cells((3, 2), (1, 10))
    ((0, 10), (1, 11), (2, 12))
    """
    (rows, columns), (down, right) = _last_two(shape), (0, 0, *strides)[-2:]
    return tuple(
        [
            tuple([first + row * down + column * right for column in range(min(columns, _COLUMNS))])
            for row in range(min(rows, _ROWS))
        ]
    )


def in_memory_order(cells: Cells) -> list[tuple[int, int]]:
    """Return the row and the column of each place once, in the order of memory.

    >>> in_memory_order(((0, 10), (1, 11)))
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    found: dict[int, tuple[int, int]] = {}
    for row, line in enumerate(cells):
        for column, place in enumerate(line):
            found.setdefault(place, (row, column))
    return [found[place] for place in sorted(found)]


def _cells_text(cells: Cells, shape: tuple[int, ...]) -> list[str]:
    width = max(5, *[len(str(place)) + 1 for line in cells for place in line])
    lines = [" ".join([f"{place:>{width}}" for place in line]) for line in cells]
    rows, columns = _last_two(shape)
    lines[0] += " ..." if columns > _COLUMNS else ""
    return [*lines, *([f"{'...':>{width}}"] if rows > _ROWS else [])]


def _panel_text(panel: _Panel) -> list[str]:
    lines = [panel.heading, f"   {panel.sharing}"]
    for array in panel.launch.arrays[:_ARRAYS]:
        lines.append(f"   {_array_words(array, panel.launch.shape)}")
        lines += [f"   {line}" for line in _cells_text(_cells(panel.launch.shape, array.strides), panel.launch.shape)]
    return [*lines, *[f"   {line}" for line in _other_arrays(panel.launch)]]


def _array_words(array: Memory, shape: tuple[int, ...]) -> str:
    axes = zip(shape, array.strides, strict=True)
    result = array.name.startswith("out")
    words = ["combined" if result and not stride and size > 1 else step(size, stride) for size, stride in axes]
    return f"{array.name} {array.dtype}: {'; '.join(words)}"


def _other_arrays(launch: Launch) -> list[str]:
    count = len(launch.arrays) - _ARRAYS
    return [f"and {count} more array{'' if count == 1 else 's'}"] if count > 0 else []


# --- SVG -------------------------------------------------------------------------------------------------------------

Box = tuple[float, float, str]
"""Width, height and elements; a width of 0 begins a line of its own."""


def _svg(boxes: list[Box], title: str) -> str:
    """Place boxes beside each other in lines."""
    placed, x, y, height = "", 0.0, 0.0, 0.0
    for width, tall, elements in boxes:
        if not width or x + width > _WIDTH:
            x, y, height = 0.0, y + height, 0.0
        placed += f'<g transform="translate({x:g} {y:g})">{elements}</g>'
        x, y, height = (x + width, y, max(height, tall)) if width else (0.0, y + tall, 0.0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y + height + 4:g}" font-family="monospace" '
        f'font-size="11" fill="currentColor"><title>{escape(title)}</title>{placed}</svg>'
    )


def _words(text: str, y: float = 12) -> Box:
    return 0, _LINE, f'<text x="0" y="{y:g}">{escape(text)}</text>'


def _panel_boxes(panel: _Panel) -> list[Box]:
    launch = panel.launch
    boxes = [_words(panel.heading), _words(panel.sharing)]
    if isinstance(launch.kernel, GpuKernel) and (_case(launch) in _ELEMENTWISE or _walks(launch)):
        boxes.append(_loop_box(launch, launch.kernel))
    boxes += [_array_box(array, launch.shape) for array in launch.arrays[:_ARRAYS]]
    return boxes + [_words(line) for line in _other_arrays(launch)]


def _loop_box(launch: Launch, kernel: GpuKernel) -> Box:
    """The last two axes of the loop to scale, with the lines between tiles and the part of the first program."""
    rows, columns = _last_two(launch.shape)
    scale = _SIDE / max(rows, columns)
    wide, tall = max(columns * scale, 4.0), max(rows * scale, 4.0)
    part = first_part(launch, kernel)
    filled = "".join(
        f'<rect y="{tall * top / rows:g}" width="{wide * across / columns:g}" height="{max(2, tall * down / rows):g}"/>'
        for top, down, across in part
    )
    lines = ""
    if tiles := tiles_of(launch):
        lines += "".join(f"M0 {tall * kernel.tile[0] * place / rows:g}h{wide:g}" for place in _inner(tiles[0]))
        lines += "".join(f"M{wide * kernel.tile[1] * place / columns:g} 0v{tall:g}" for place in _inner(tiles[1]))
    if _walks(launch):
        middle = tall * part[0][1] / rows / 2
        lines += f"M0 {middle:g}h{wide:g}l-6 -3m6 3l-6 3"
    frame = f'<path d="M0 0h{wide:g}v{tall:g}h-{wide:g}z{lines}" fill="none" stroke="currentColor"/>'
    return wide + 24, tall + 12, f'<g opacity=".4">{filled}</g>{frame}'


def _inner(count: int) -> range:
    """The lines between tiles: none if there are too many to see."""
    return range(1, count) if count <= _MOST_LINES else range(0)


def first_part(launch: Launch, kernel: GpuKernel) -> list[tuple[int, int, int]]:
    """Return what the first program takes at first, as rectangles: first row, rows, columns."""
    rows, columns = _last_two(launch.shape)
    down, across = kernel.tile
    if down > 1 or _walks(launch):
        return [(0, min(down, rows), min(across, columns))]
    whole, rest = divmod(min(across, rows * columns), columns)
    return [*([(0, whole, columns)] if whole else []), *([(whole, 1, rest)] if rest else [])]


def _array_box(array: Memory, shape: tuple[int, ...]) -> Box:
    """A grid of places, with a line in the order of memory."""
    cells = _cells(shape, array.strides)
    width = 8 + 7 * max(len(str(place)) for line in cells for place in line)
    words = _array_words(array, shape)
    parts = [f'<text x="0" y="12">{escape(words)}</text>']
    for row, line in enumerate(cells):
        for column, place in enumerate(line):
            parts.append(f'<text x="{column * width + 4}" y="{(row + 1) * _CELL + 13}">{place}</text>')
    outline = "".join(
        f"M{column * width} {(row + 1) * _CELL}h{width}v{_CELL}h-{width}z"
        for row, line in enumerate(cells)
        for column in range(len(line))
    )
    points = " ".join(
        f"{column * width + width / 2:g},{(row + 1.5) * _CELL:g}" for row, column in in_memory_order(cells)
    )
    parts.append(f'<path d="{outline}" fill="none" stroke="currentColor" opacity=".4"/>')
    parts.append(f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="3" opacity=".15"/>')
    return max(len(cells[0]) * width, 7 * len(words)) + 24, (len(cells) + 1) * _CELL + 8, "".join(parts)


show([draw])
