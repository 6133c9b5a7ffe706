"""THE TABLE: one row per elementwise operation, in chapters of one shape."""

from tilearray.ops import arithmetic, elementary, number_parts
from tilearray.ops.op import Op

CHAPTERS = (arithmetic, elementary, number_parts)
OPS: tuple[Op, ...] = tuple(row for chapter in CHAPTERS for row in vars(chapter).values() if isinstance(row, Op))
PUBLIC: dict[str, Op] = {row.name: row for row in OPS if not row.moves}
BY_UFUNC: dict[str, Op] = {row.ufunc or row.name: row for row in PUBLIC.values()}
__test__ = {f"{row.name}-{number}": row.__doc__ for number, row in enumerate(OPS)}
