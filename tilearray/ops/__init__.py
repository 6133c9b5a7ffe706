"""The table of elementwise operations: one row for each operation, in chapters.

`OPS` contains all rows. `PUBLIC` contains the rows that users can call, by name, and `BY_UFUNC` the same rows by the
name of NumPy's ufunc.
"""

from typing import NoReturn

from tilearray.ops import arithmetic, elementary, moves, number_parts
from tilearray.ops.op import Op
from tilearray.ops.row import Row

CHAPTERS = (arithmetic, moves, elementary, number_parts)
OPS: tuple[Row, ...] = tuple(row for chapter in CHAPTERS for row in vars(chapter).values() if isinstance(row, Row))
PUBLIC: dict[str, Op] = {row.name: row for row in OPS if isinstance(row, Op)}
BY_UFUNC: dict[str, Op] = {row.ufunc or row.name: row for row in PUBLIC.values()} | {
    "degrees": PUBLIC["rad2deg"],  # NumPy has two ufuncs for each
    "radians": PUBLIC["deg2rad"],
    "gammaln": PUBLIC["lgamma"],  # SciPy's name
}
__test__ = {f"{row.name}-{number}": row.__doc__ for number, row in enumerate(OPS)}


def __getattr__(name: str) -> NoReturn:
    """Say where a row is."""
    if name in PUBLIC:
        raise AttributeError(f"module 'tilearray.ops' has no attribute {name!r}; write ta.{name}")
    raise AttributeError(f"module 'tilearray.ops' has no attribute {name!r}")
