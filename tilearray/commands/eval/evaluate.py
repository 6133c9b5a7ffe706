"""`evaluate`: an expression as text, run as a fused function."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tilearray.arrays.fusion.fuse import Fused, check_contract
from tilearray.commands.eval.grammar import read
from tilearray.engine.signature import ArrayBase, Operand
from tilearray.errors import ExpressionError, type_name
from tilearray.ops.signatures import show

if TYPE_CHECKING:
    from tilearray.engine.array_type import Array


def evaluate(expression: str, /, *, out: ArrayBase | None = None, contract: bool = False, **arrays: Operand) -> Array:
    """Compute an expression that is given as text, as one kernel.

    The text is read once, and never run as Python code.

    Parameters
    ----------
    expression : str
        Operators, numbers, the names of the arrays, and calls of the functions of `tilearray`, as in `tilearray eval`.
    out : Array, optional
        The target of the result.
    contract : bool
        Whether a GPU may compute a product and a sum in one rounding, as fma; see `fuse`.
    **arrays : Array, ndarray or number
        The operands by name; those of other libraries are taken and returned as `fuse` does.

    Returns
    -------
    Array

    Raises
    ------
    ExpressionError
        If the text is outside of the grammar or names other arrays, or if an operation fails or does not fuse. The
        message quotes the part.

    Examples
    --------
    >>> import tilearray as ta
    >>> ta.evaluate("2 * a + sqrt(b)", a=ta.asarray([1.0, 2.0]), b=ta.asarray([9.0, 16.0]))
    Array([5., 8.], dtype=float32, device='cpu')
    """
    check_contract("evaluate", contract)
    if not issubclass(type(expression), str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ExpressionError(f"evaluate: expected an expression as text, got {type_name(expression)}; write 'a + b'")
    return _fused(expression, tuple(arrays), contract)(arrays, out=out)


@lru_cache(256)
def _fused(expression: str, names: tuple[str, ...], contract: bool) -> Any:
    """Return the fused function of an expression over a dict of arrays with these names."""
    parsed = read(expression, names)

    def evaluated(arrays: dict[str, Any]) -> Any:
        return parsed.evaluate(arrays)

    return Fused(evaluated, contract=contract)


show([evaluate])
