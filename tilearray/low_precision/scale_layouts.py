"""The order of scales in memory: rows, or tiles of 128 by 4 as cublasLt takes them for products with block scales.

Scales of a matrix, one for each block of a row, are padded to multiples of 128 rows and 4 columns. A tile of 128 rows
and 4 columns has 512 bytes, and tiles follow each other along a row of tiles. Within a tile the scale at row r and
column c has the offset ``r % 32 * 16 + r // 32 * 4 + c`` (cuBLAS documentation, "1D Block Scaling Factors Layout").
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from tilearray.arrays.array import Array
from tilearray.arrays.fills import zeros
from tilearray.errors import DTypeError, OperandError, ShapeError, shown

ScaleLayout: TypeAlias = Literal["linear", "128x4"]
LAYOUTS = ("linear", "128x4")
ROWS, COLUMNS = 128, 4


def check_layout(layout: object, function: str) -> None:
    """Raise OperandError if there is no such layout of scales."""
    if layout not in LAYOUTS:
        raise OperandError(f"{function}: expected layout 'linear' or '128x4', got {shown(layout)}; write one of both")


def tiled(scales: Array, function: str) -> Array:
    """Return the scales of a matrix in the order of tiles: an array of the padded shape; what is padded is code 0.

    Raises
    ------
    ShapeError
        If the scales are not a matrix.
    DTypeError
        If a scale has more than a byte.

    Examples
    --------
    >>> import tilearray as ta
    >>> tiled(ta.ones((200, 5)).astype("float8_e8m0fnu"), "quantize").shape
    (256, 8)
    """
    if scales.ndim != 2:
        raise ShapeError(
            f"{function}: layout='128x4' takes the scales of a matrix, got scales of shape {scales.shape}; write "
            f"x.reshape(rows, columns), and blocks along the last axis"
        )
    if scales.itemsize != 1:
        raise DTypeError(
            f"{function}: layout='128x4' takes scales of 8 bits, got {scales.dtype.name}; write "
            f"scale='float8_e8m0fnu' or 'float8_e4m3fn'"
        )
    rows, columns = (-(-extent // step) for extent, step in zip(scales.shape, (ROWS, COLUMNS), strict=True))
    padded = zeros((rows * ROWS, columns * COLUMNS), "uint8", device=scales.device)
    found = _by_place(padded, rows, columns)
    whole = zeros((rows * ROWS, columns * COLUMNS), "uint8", device=scales.device)
    whole[: scales.shape[0], : scales.shape[1]] = scales.view("uint8")
    found[...] = whole.reshape(rows, 4, 32, columns, COLUMNS)
    return padded.view(scales.dtype)


def linear(scales: Array, shape: tuple[int, ...], function: str) -> Array:
    """Return the scales of a matrix of blocks in the order of rows, from their tiles.

    Raises
    ------
    ShapeError
        If the shape of the blocks is not that of a matrix, or the tiles have another number of scales.
    """
    padded = tuple([-(-extent // step) * step for extent, step in zip(shape, (ROWS, COLUMNS), strict=False)])
    if len(shape) != 2 or scales.size != padded[0] * padded[1] or not scales.flags.c_contiguous:
        raise ShapeError(
            f"{function}: expected {padded} scales in layout '128x4' for {shape} blocks, got shape {scales.shape}; "
            f"write the scales that quantize(..., layout='128x4') returned"
        )
    rows, columns = padded[0] // ROWS, padded[1] // COLUMNS
    places = _by_place(scales.view("uint8").reshape(padded), rows, columns)
    whole = zeros(padded, "uint8", device=scales.device)
    whole.reshape(rows, 4, 32, columns, COLUMNS)[...] = places
    return whole[: shape[0], : shape[1]].view(scales.dtype)


def _by_place(padded: Array, rows: int, columns: int) -> Array:
    """Return tiles as a view by row of tiles, quarter, row of the quarter, column of tiles, column."""
    return padded.reshape(rows, columns, 32, 4, COLUMNS).transpose(0, 3, 2, 1, 4)
