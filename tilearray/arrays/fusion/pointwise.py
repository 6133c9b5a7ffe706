"""`pointwise`: a function of scalars as a function of arrays, with the dtypes that its decorator declares.

The function becomes a fused function (the module `fuse`): operands are cast to the compute dtype of an output (the
module `promoted`), the function runs on them, and its result is cast to the dtype of the output. A call checks its
operands and targets before anything runs, so nothing is half-written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from tilearray import dtypes as dt
from tilearray.arrays.array import Array
from tilearray.arrays.asarray import asarray
from tilearray.arrays.frameworks import called, is_foreign
from tilearray.arrays.fusion.fuse import Fused, check_contract
from tilearray.arrays.fusion.numbers import ChangedNumber, TracedNumber
from tilearray.arrays.fusion.promoted import results_of, stored
from tilearray.arrays.fusion.sameness import Incomparable, Lasting, content, is_named
from tilearray.arrays.fusion.schema import NumberType, Schema, schema_of
from tilearray.engine.caches import TwoGenerations
from tilearray.engine.context import STATE, semantics
from tilearray.engine.signature import ArrayBase, overlap
from tilearray.errors import OperandError, ShapeError, WriteError, type_name
from tilearray.geometry.shapes import broadcast_shapes
from tilearray.ops.execute import check_target
from tilearray.ops.hooks import HOOKS
from tilearray.ops.numbers import rounded_number
from tilearray.ops.signatures import show
from tilearray.promotion.scalars import StandIn, as_number, classify

if TYPE_CHECKING:
    from tilearray.arrays.fusion.jitted import Jitted

_NUMBERS = (bool, int, float, complex)
_OURS = frozenset((Array, *_NUMBERS))
_OF_KIND = {"bool": bool, "int": int, "uint": int, "float": float, "complex": complex}


class Pointwise(Lasting):
    """A function of scalars that runs on arrays. `pointwise` makes it.

    Attributes
    ----------
    function : callable
        The function of scalars.
    schema : Schema
        What the decorator declares.
    fused : Fused
        The function of arrays.
    """

    def __init__(
        self, function: Callable[..., Any], schema: Schema, contract: bool = False, jitted: Jitted | None = None
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.schema = schema
        inner = functools.partial(results_of, jitted or function, schema)
        functools.update_wrapper(inner, function)
        self.fused = Fused(inner, contract=contract)
        self._is_jitted = jitted is not None
        self._declares = any(array is not None for array in schema.is_array)

    def __repr__(self) -> str:
        return f"<pointwise function {getattr(self, '__qualname__', self.schema.name)}>"

    def __reduce__(self) -> Any:
        """Return the name if the module has the function by it, else the parts, of which `read` makes one function."""
        if self._is_jitted or is_named(self):
            return str(getattr(self, "__qualname__", self.schema.name))
        return read, (self.function, self.schema, self.fused.contract)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run the function on arrays of any library. ``out0=``, ``out1=`` are the targets of its outputs."""
        operands, targets = self.schema.bound(args, options)
        for each in operands:
            if each.__class__ not in _OURS and not isinstance(each, ArrayBase | StandIn):
                return self._adapted(operands, targets)
        given = _labelled(targets)
        if not all(isinstance(target, ArrayBase) for _, target in given):
            return self._adapted(operands, targets)
        if self._declares or given:
            operands = checked(self.schema, operands)
        if not given:
            return self.fused(*operands)
        check_targets(self.schema.name, operands, given)
        dtypes = stored(*[None if target is None else target._signature.dtype for target in targets])
        return self.fused(*operands, dtypes, out=tuple(targets) if len(targets) > 1 else targets[0])

    @functools.cached_property
    def torch(self) -> Any:
        """The function as an operator of torch, with autograd and vmap: see docs/gradients.md."""
        return HOOKS.operator("torch", self)

    @functools.cached_property
    def jax(self) -> Any:
        """The function as a function of JAX, with a derivative: see docs/gradients.md."""
        return HOOKS.operator("jax", self)

    def instantiate(self, rank: int) -> Instance:
        """Return the function for arrays of one rank, under the semantics in force now.

        Its calls find their plan by the dtypes, shapes and strides of the operands alone, in less host time.

        Parameters
        ----------
        rank : int
            The number of axes of the results.

        Examples
        --------
        >>> import tilearray as ta
        >>> scaled = ta.pointwise(lambda x, k: x * k).instantiate(1)
        >>> scaled(ta.asarray([1, 2]), 3)
        Array([3, 6], dtype=int64, device='cpu')
        """
        if type(rank) is not int or rank < 0:
            raise OperandError(f"{self.schema.name}.instantiate: expected a rank of at least 0, got {rank!r}; write 1")
        return Instance(self, rank)

    def _adapted(self, operands: Sequence[Any], targets: Sequence[Any]) -> Any:
        """Run on arrays of another library, and on NumPy scalars."""
        for name, value in zip(self.schema.names, operands):
            known = isinstance(cast(object, value), np.generic) or is_foreign(value)
            if not (known or isinstance(value, ArrayBase) or classify(value) is not None):
                raise OperandError(
                    f"{self.schema.name}: expected an array or a number as {name}, got {type_name(value)}; write "
                    f"ta.asarray({name})"
                )
        for label, target in _labelled(targets):
            if not isinstance(target, ArrayBase) and not is_foreign(target):
                check_target(f"{self.schema.name}, {label}", target)
        named = functools.update_wrapper(functools.partial(self._on_ours), self.function)
        return called(named, tuple(operands), dict(_labelled(targets)))

    def _on_ours(self, *operands: Any, **targets: Any) -> Any:
        """Run on Arrays, Python numbers and NumPy scalars: these are 0-d arrays, or numbers if the schema says so."""
        device = next((each.device for each in operands if isinstance(each, ArrayBase)), None)
        plain = [
            each if isinstance(each, ArrayBase | StandIn) else _plain(name, each, is_array, device)
            for name, each, is_array in zip(self.schema.names, operands, self.schema.is_array, strict=True)
        ]
        return self(*plain, **targets)


class Instance:
    """A pointwise function for arrays of one rank. `Pointwise.instantiate` makes it.

    Attributes
    ----------
    function : Pointwise
    rank : int
        The number of axes of the results.
    """

    def __init__(self, function: Pointwise, rank: int) -> None:
        self.function = function
        self.rank = rank
        self._semantics = STATE.get().semantics
        self._count = len(function.schema.names)
        self._converts = any(kind is not None for kind in function.schema.number_types)
        self._plans: TwoGenerations[Any] = TwoGenerations(1024)

    def __repr__(self) -> str:
        return f"<{self.function!r} for rank {self.rank}>"

    def __call__(self, *args: Any, **targets: Any) -> Any:
        """Run the function on arrays and numbers, by position; ``out0=``, ``out1=`` are the targets of its outputs."""
        arguments: list[Any] = []
        usual = len(args) == self._count and not targets and not self._converts
        key = _signatures(args, arguments) if usual else None
        plan = None if key is None else self._plans.get(key)
        if plan is not None:
            try:
                return plan.run(arguments)
            except ChangedNumber:
                return self._whole(args, targets)
        result = self._whole(args, targets)
        if key is not None:
            self._learn(key, args)
        return result

    def _whole(self, args: tuple[Any, ...], targets: dict[str, Any]) -> Any:
        """Run with all checks."""
        rank = max([getattr(each, "ndim", 0) for each in args], default=0)
        if rank != self.rank:
            raise ShapeError(
                f"{self.function.schema.name}: expected arrays of rank {self.rank}, got rank {rank}; write "
                f"instantiate({rank})"
            )
        with semantics(self._semantics):
            return self.function(*args, **targets)

    def _learn(self, key: tuple[Any, ...], args: tuple[Any, ...]) -> None:
        """Keep the plan of a call, unless it depends on the value of a number."""
        with semantics(self._semantics):
            plan = self.function.fused.plan_of(*args)
        if plan is not None and not plan.gaps:
            self._plans.put(key, plan)


def _signatures(args: Sequence[Any], arguments: list[Any]) -> tuple[Any, ...] | None:
    """Return the key of the operands, and add them to `arguments`; None if one is not an Array or a number."""
    key: list[Any] = []
    for each in args:
        kind = each.__class__
        if kind is Array:
            key.append(each._signature)
        elif kind is float or kind is int or kind is complex:
            key.append(classify(each))
        else:
            return None
        arguments.append(each)
    return tuple(key)


# --- checks of a call ------------------------------------------------------------------------------------------------


def _plain(name: str, value: Any, is_array: bool | None, device: Any) -> Any:
    """Return a NumPy scalar or an instance of a subclass of a Python number as an operand."""
    is_scalar = isinstance(cast(object, value), np.generic)
    if is_scalar and is_array is not False:
        return asarray(value, device=device)
    found: Any = value.item() if is_scalar else value
    for kind in _NUMBERS:
        if isinstance(cast(object, found), kind):
            return cast(Any, kind)(found)
    raise OperandError(f"pointwise: expected a number as {name}, got {type_name(found)}; write float({name})")


def checked(schema: Schema, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Return the operands with numbers converted. Raise OperandError if one is not what the schema declares."""
    found: list[Any] = []
    arrays = 0
    for name, operand, is_array, kind in zip(schema.names, operands, schema.is_array, schema.number_types, strict=True):
        is_given = isinstance(operand, ArrayBase)
        arrays += is_given
        if is_array is not None and is_given != is_array:
            expected, got, instead = ("an array", type_name(operand), f"ta.asarray({name})")
            if is_given:
                expected, got, instead = ("a number", "an array", f"{name}.item(), or is_tensor with True for it")
            raise OperandError(f"{schema.name}: expected {expected} as {name}, got {got}; write {instead}")
        found.append(operand if kind is None or is_given else converted(schema.name, name, operand, kind))
    if not arrays:
        raise OperandError(f"{schema.name}: expected at least one array, got none; write ta.asarray(x)")
    return tuple(found)


def converted(function: str, name: str, number: Any, kind: NumberType) -> Any:
    """Return a number as a Python type, or rounded to a dtype. Raise an error if it does not fit.

    Examples
    --------
    >>> converted("f", "alpha", 2, float), converted("f", "alpha", 0.1, dt.float16)
    (2.0, 0.0999755859375)
    """
    if isinstance(kind, np.dtype):
        plain: Any = number.value() if isinstance(number, TracedNumber) else number
        exact = as_number(plain, kind, f"{function}, {name}")
        return _OF_KIND[dt.info(kind).kind](rounded_number(exact, kind)[()])
    given = number.number if isinstance(number, StandIn) else number
    if type(given) is kind:
        return number
    if _NUMBERS.index(type(given)) > _NUMBERS.index(kind):
        raise OperandError(
            f"{function}: expected {kind.__name__} as {name}, got {given!r}; write {kind.__name__}({given!r})"
        )
    return kind(number)


def check_targets(function: str, operands: Sequence[Any], given: Sequence[tuple[str, Any]]) -> None:
    """Raise an error if a target is not a writable array of the shape of all operands, or shares another's memory.

    `given` has the targets with their names.
    """
    shape = broadcast_shapes(*[each.shape for each in operands if isinstance(each, ArrayBase)], function=function)
    for place, (label, target) in enumerate(given):
        check_target(f"{function}, {label}", target)
        if target.shape != shape:
            raise ShapeError(
                f"{function}: expected {label} of shape {shape}, got {target.shape}; write ta.empty({shape}) for it"
            )
        for other, earlier in given[:place]:
            if overlap(earlier, target):
                raise WriteError(
                    f"{function}: {other} and {label} share memory; write ta.empty_like({other}) for one of them"
                )


def _labelled(targets: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the targets that are given, with their names."""
    return [(f"out{output}", target) for output, target in enumerate(targets) if target is not None]


# --- the decorator ---------------------------------------------------------------------------------------------------


@overload
def pointwise(function: Callable[..., Any], /) -> Pointwise: ...
@overload
def pointwise(
    *,
    is_tensor: Sequence[bool] | None = None,
    dtypes: Sequence[Any] | None = None,
    promotion: Sequence[Sequence[Any]] | None = None,
    num_outputs: int | None = None,
    contract: bool = False,
) -> Callable[[Callable[..., Any]], Pointwise]: ...
def pointwise(
    function: Any = None,
    /,
    *,
    is_tensor: Sequence[bool] | None = None,
    dtypes: Sequence[Any] | None = None,
    promotion: Sequence[Sequence[Any]] | None = None,
    num_outputs: int | None = None,
    contract: bool = False,
) -> Any:
    """Make a function of arrays from a function of scalars: one kernel, for operands that broadcast.

    Parameters
    ----------
    function : callable
        A Python function of scalars: arithmetic, comparisons, the functions of the table of operations, and
        ``ta.where(condition, a, b)``. It returns one result, or a tuple of them. Or a function with ``@triton.jit``,
        which takes blocks, and needs `promotion`; on the host Triton's interpreter runs it, slowly.
    is_tensor : list of bool, optional
        For each parameter whether it is an array. The others are Python numbers, which are never compiled in. By
        default a parameter takes both, and one operand of a call must be an array.
    dtypes : list, optional
        For each parameter None, or the type of its number: ``float`` converts it; a dtype also rounds it, and counts
        as the dtype of an array in the promotion.
    promotion : list of tuple, optional
        For each output the positions of the parameters that decide its dtype, and a method: ``(0, 1, "default")``.
        These operands are cast to the compute dtype, and the result is cast to the dtype of the output. The methods
        are "default" (the common dtype, computed in at least float32 if it is a float), "no_opmath" (without the wider
        compute dtype), "int_to_float", "always_bool", "complex_to_float" and "bool_to_long" (bool becomes the default
        integer). Without `promotion`, every operation promotes and rounds as it does outside of the function.
    num_outputs : int, optional
        The number of results; by default one for each entry of `promotion`, or 1.
    contract : bool
        Whether a GPU may compute a product and a sum in one rounding, as fma; see `fuse`.

    Returns
    -------
    Pointwise
        The function of arrays. It also takes ``out0=``, ``out1=``, ...: targets of the shape of all operands, which may
        be operands. ``f.instantiate(rank)`` is the function for arrays of one rank.

    Raises
    ------
    FusionError
        If the options do not fit the function, or if the function needs the values of an array.

    Examples
    --------
    >>> import tilearray as ta
    >>> @ta.pointwise(is_tensor=[True, True, False], promotion=[(0, 1, "int_to_float")])
    ... def blend(x, y, weight):
    ...     return x + weight * (y - x)
    >>> blend(ta.asarray([0, 10]), ta.asarray([[10], [20]]), 0.25)
    Array([[ 2.5, 10. ],
           [ 5. , 12.5]], dtype=float32, device='cpu')
    """
    check_contract("pointwise", contract)
    schema = {"is_tensor": is_tensor, "dtypes": dtypes, "promotion": promotion, "num_outputs": num_outputs}
    decorated = functools.partial(_decorated, contract=contract, **schema)
    return decorated if function is None else decorated(function)


_READ: TwoGenerations[Pointwise] = TwoGenerations(128)
"""The functions that this process has read from pickles, by their contents."""


def read(function: Callable[..., Any], schema: Schema, contract: bool) -> Pointwise:
    """Return the function of a pickle: the same one for each pickle with the same function."""
    try:
        key = content(function), schema, contract
        return _READ.get(key) or _READ.put(key, Pointwise(function, schema, contract))
    except (Incomparable, TypeError):  # something without a hash
        return Pointwise(function, schema, contract)


def _decorated(function: Any, *, contract: bool, **options: Any) -> Pointwise:
    if type(function).__module__.partition(".")[0] == "triton":
        from tilearray.arrays.fusion.jitted import Jitted  # here: few programs need it

        jitted = Jitted(function)
        found = Pointwise(jitted.python, schema_of(jitted.python, **options), contract, jitted)
        jitted.check(found.schema)
        return found
    if not callable(function):
        raise OperandError(
            f"pointwise: expected a function, got {type_name(function)}; write @ta.pointwise before a function"
        )
    return Pointwise(function, schema_of(function, **options), contract)


show([pointwise])
