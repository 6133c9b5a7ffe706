"""`Schema`: what the decorator of a pointwise function declares, checked when the function is decorated.

A function ``f(x, y, alpha)`` has parameters that are arrays or numbers, and outputs. For each output a promotion names
the parameters that decide its dtype, by position, and a method of FlagGems: ``(0, 1, "int_to_float")``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes as dt
from tilearray.arrays.fusion.containers import members
from tilearray.errors import FusionError, OperandError, type_name
from tilearray.ops.promotion_methods import Promotion

METHODS = {
    method.name.lower(): method
    for method in (
        Promotion.DEFAULT,
        Promotion.NO_OPMATH,
        Promotion.INT_TO_FLOAT,
        Promotion.ALWAYS_BOOL,
        Promotion.COMPLEX_TO_FLOAT,
        Promotion.BOOL_TO_LONG,
    )
}
"""The promotion methods by the names that FlagGems gives them."""
_PYTHON_TYPES = (bool, int, float, complex)
NumberType = type | np.dtype


class Promoted(NamedTuple):
    """How the dtype of one output follows: from the parameters at these positions, by this method."""

    positions: tuple[int, ...]
    method: Promotion


@dataclass(frozen=True, slots=True)
class Schema:
    """The parameters and the outputs of a pointwise function.

    Attributes
    ----------
    name : str
        The name of the function in error messages.
    signature : inspect.Signature
    names : tuple of str
        The names of the parameters.
    is_array : tuple of bool or None
        For each parameter whether it is an array; None if it may be a number too.
    number_types : tuple of type, dtype or None
        For each parameter the Python type or the dtype of its number, if one is declared.
    promotion : tuple of Promoted
        For each output; () if the operations of the function decide.
    outputs : int
        The number of outputs.
    """

    name: str
    signature: inspect.Signature
    names: tuple[str, ...]
    is_array: tuple[bool | None, ...]
    number_types: tuple[NumberType | None, ...]
    promotion: tuple[Promoted, ...]
    outputs: int

    def bound(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], list[Any]]:
        """Return the operands of a call in the order of the parameters, and the target of each output or None.

        Without targets the list is empty.
        """
        targets = [options.pop(f"out{position}", None) for position in range(self.outputs)] if options else []
        if len(args) == len(self.names) and not options:
            return args, targets
        try:
            call = self.signature.bind(*args, **options)
        except TypeError as error:
            raise OperandError(f"{self.name}: {error}; write {self.name}{self._usage()}") from None
        call.apply_defaults()
        return call.args, targets

    def _usage(self) -> str:
        outputs = "".join([f", out{position}=None" for position in range(self.outputs)])
        return f"({', '.join(self.names)}{outputs})"


def schema_of(
    function: Callable[..., Any],
    is_tensor: Sequence[bool] | None,
    dtypes: Sequence[Any] | None,
    promotion: Sequence[Sequence[Any]] | None,
    num_outputs: int | None,
) -> Schema:
    """Return the schema of a function. Raise FusionError if the declarations do not fit it."""
    signature = inspect.signature(function)
    names = _parameters(signature)
    count = len(names)
    kinds = _entries("dtypes", dtypes, names)
    number_types = tuple([None if kind is None else _number_type(kind) for kind in kinds])
    if is_tensor is None:
        is_array = tuple([None if kind is None else False for kind in number_types])
    else:
        is_array = tuple([_is_array(given) for given in _entries("is_tensor", is_tensor, names)])
    for name, array, kind in zip(names, is_array, number_types):
        if array and kind is not None:
            raise FusionError(f"pointwise: {name} is an array, and dtypes are for numbers; write None in dtypes")
    if all(array is False for array in is_array):
        raise FusionError("pointwise: expected a parameter that is an array, got numbers only; write True in is_tensor")
    promoted = tuple([_promoted(entry, count) for entry in promotion or ()])
    outputs = _outputs(num_outputs, promoted)
    return Schema(
        getattr(function, "__name__", "pointwise"), signature, names, is_array, number_types, promoted, outputs
    )


def _parameters(signature: inspect.Signature) -> tuple[str, ...]:
    """Return the names of the parameters, which all go by position."""
    for parameter in signature.parameters.values():
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD and parameter.kind is not parameter.POSITIONAL_ONLY:
            raise FusionError(
                f"pointwise: expected parameters that go by position, got {parameter}; write each operand as a "
                f"parameter, as in def f(x, y)"
            )
        if parameter.name.startswith("out") and parameter.name[3:].isdigit():
            raise FusionError(f"pointwise: {parameter.name} is the name of a target; write another parameter name")
    if not signature.parameters:
        raise FusionError("pointwise: expected a function with parameters, got none; write def f(x)")
    return tuple(signature.parameters)


def _entries(option: str, given: Sequence[Any] | None, names: tuple[str, ...]) -> Sequence[Any]:
    """Return a list with an entry for each parameter."""
    if given is None:
        return (None,) * len(names)
    if isinstance(given, list | tuple) and len(given) == len(names):
        return given
    got = f"{len(given)}" if isinstance(given, list | tuple) else type_name(given)
    raise FusionError(
        f"pointwise: expected {option} with {len(names)} entries, one for each of {', '.join(names)}, got {got}; "
        f"write {option}=[{', '.join(['None' if option == 'dtypes' else 'True'] * len(names))}]"
    )


def _is_array(given: Any) -> bool:
    if isinstance(given, bool):
        return given
    raise FusionError(f"pointwise: expected True or False in is_tensor, got {given!r}; write True for an array")


def _number_type(given: Any) -> NumberType:
    """Return a Python type as it is, and all else as a dtype."""
    return given if given in _PYTHON_TYPES else dt.as_dtype(given, "pointwise")


def _promoted(entry: Any, count: int) -> Promoted:
    """Return the promotion of an output from its positions and the name of its method."""
    form = 'write (0, "default")'
    parts = members(entry)
    if parts is None or len(parts) < 2:
        raise FusionError(f"pointwise: expected positions and a method in promotion, got {entry!r}; {form}")
    *positions, name = parts
    if not isinstance(name, str) or name.lower() not in METHODS:
        known = ", ".join(map(repr, METHODS))
        raise FusionError(f"pointwise: unknown promotion method {name!r}; write one of {known}")
    for position in positions:
        if type(position) is not int or not 0 <= position < count:
            raise FusionError(
                f"pointwise: expected positions from 0 to {count - 1} in promotion, got {position!r}; {form}"
            )
    return Promoted(tuple(positions), METHODS[name.lower()])


def _outputs(given: int | None, promoted: tuple[Promoted, ...]) -> int:
    """Return the number of outputs: as given, else one for each promotion, else 1."""
    if given is None:
        return len(promoted) or 1
    if type(given) is not int or given < 1:
        raise FusionError(f"pointwise: expected num_outputs of at least 1, got {given!r}; write num_outputs=1")
    if promoted and len(promoted) != given:
        raise FusionError(
            f"pointwise: expected promotion with {given} entries, one for each output, got {len(promoted)}; write "
            f"num_outputs={len(promoted)}"
        )
    return given
