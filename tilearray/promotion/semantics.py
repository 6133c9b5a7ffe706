"""`Semantics`: the rules by which one system decides the dtype of a result.

The lattice gives the common dtype of arrays. Python numbers have only a kind and a value. A number takes part if its
kind is above that of all arrays; it then takes part as the dtype on its rung of the ladder. If arrays with dimensions
outrank 0-d arrays (torch), operands form categories that are combined one after the other. Semantics "numpy" leave
the whole decision to NumPy.

`Semantics.decide` writes the steps of its decision to a list, in words. A decision is made once for the dtypes of a
call and kept with the call's plan, so the cost of the words is negligible.

`tilearray.promotion.systems` declares the five semantics of the library and adds them to `NAMED`, which `as_semantics`
and `Semantics.derive` read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Final, Literal, get_args, get_type_hints
from weakref import WeakKeyDictionary

import numpy as np

from tilearray import dtypes as dt
from tilearray.errors import OperandError, SemanticsError, shown
from tilearray.promotion.defaults import chosen, moved, name_of, split
from tilearray.promotion.derive import FUNCTION, derived
from tilearray.promotion.lattice import Joins
from tilearray.promotion.operands import DECISIONS, Operand, Operands
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.storing import CASTING

SemanticsName = Literal["array-api", "triton", "cutile", "torch", "numpy"]
"""The names of the semantics."""


@dataclass(frozen=True, eq=False)
class Semantics:
    """The promotion rules of one system, or your own: see `derive`.

    Instances never change and compare by value, so a copy is the same object. A pickle of one of the library's five
    contains its name. A pickle of any other instance contains its rules.

    Attributes
    ----------
    name : str
        The name by which a caller selects the semantics.
    lattice : Joins
        The joins of dtypes.
    defaults : mapping of str to dtype
        For each of the kinds "bool", "int", "float" and "complex": the dtype of new arrays, and of Python numbers if
        no array takes part. A number that the default does not hold takes the dtype of its rung.
    ladder : mapping of ScalarClass to dtype
        The rungs: the dtype by which a number takes part. A missing class has no such dtype.
    integer_division : {"floor", "trunc"}
        How ``//`` rounds integers. ``%`` matches it.
    true_division : numpy.dtype
        The result dtype of ``/`` on integers and bools.
    integer_functions : mapping of dtype to dtype
        The dtype to which ``sqrt``, ``exp`` and similar functions convert integers and bools. Dtypes that are missing
        here are converted to `true_division`.
    inplace : {"same_kind", "kind", "promotion", "numpy"}
        The casts that an in-place result allows: see `stores`.
    rule : {"numbers", "categories", "numpy"}
        How 0-d arrays and numbers take part: see the module docstring.
    huge : bool
        Whether a float array accepts integers beyond 64 bits.
    arithmetic : frozenset of dtype
        The dtypes that operations compute with. Arrays of other dtypes can be moved and selected, and bools compared.
    same_bits : bool
        Whether ``& | ^`` require operands of one dtype.
    wide_numbers : frozenset of str
        The operations that convert a Python number to the compute dtype instead of the result dtype.
    saturates : frozenset of dtype
        The floats in which a value beyond the largest one, or an infinity, is stored as the largest one, where the
        caller of a cast does not say ``saturate=``.
    zero_dim : bool
        Whether the rule distinguishes 0-d arrays from arrays with dimensions. It follows from `rule`.
    key : object
        Not a rule: identifies this object in caches that must not keep it alive, and hashes fast.
    plans : dict or None
        Not a rule: the plans that `tilearray.engine.context` keeps during the lifetime of this object.
    """

    name: str
    lattice: Joins
    defaults: Mapping[str, np.dtype]
    ladder: Mapping[ScalarClass, np.dtype]
    integer_division: Literal["floor", "trunc"] = "floor"
    true_division: np.dtype = dt.float32
    integer_functions: Mapping[np.dtype, np.dtype] = field(default_factory=dict[np.dtype, np.dtype])
    inplace: Literal["same_kind", "kind", "promotion", "numpy"] = "same_kind"
    rule: Literal["numbers", "categories", "numpy"] = "numbers"
    huge: bool = True
    arithmetic: frozenset[np.dtype] = frozenset(dt.ARITHMETIC)
    same_bits: bool = False
    wide_numbers: frozenset[str] = frozenset()
    saturates: frozenset[np.dtype] = frozenset()
    zero_dim: bool = field(init=False, repr=False)
    key: object = field(init=False, repr=False, default_factory=object)
    plans: dict[Any, Any] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "zero_dim", self.rule == "categories")

    def rules(self) -> dict[str, Any]:
        """Return every rule by name."""
        return {row.name: getattr(self, row.name) for row in fields(self) if row.init}

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self.rules() == other.rules() if isinstance(other, Semantics) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.name, self.rule, self.inplace, self.integer_division))

    def __copy__(self) -> Semantics:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Semantics:
        return self

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        defaults = ", ".join(self.defaults[kind].name for kind in ("int", "float", "complex"))
        return f"<Semantics {self.name!r}, defaults {defaults}>"

    def promote(self, dtypes: Iterable[dt.DTypeLike], function: str = "result_type") -> np.dtype:
        """Return the common dtype of arrays.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.get_semantics().promote([ta.int8, ta.uint8])
        dtype('int16')
        """
        given: list[Any] = [] if isinstance(dtypes, str) or not hasattr(dtypes, "__iter__") else list(dtypes)
        if not given:
            raise OperandError(f"{function}: expected at least one dtype, got {shown(dtypes)}; write a list of dtypes")
        return self.lattice.join([dt.as_dtype(dtype, function) for dtype in given], function)

    def result_type(self, operands: Iterable[Operand], function: str = "result_type") -> np.dtype:
        """Return the common dtype of arrays and Python numbers. Their order does not matter.

        Raises
        ------
        PromotionError
            If the operands have no common dtype; the message says which cast to write.
        ScalarOverflowError
            If an integer that needs its own dtype is beyond 64 bits.
        """
        return self.decide(operands, function, [])

    def decide(self, operands: Iterable[Operand], function: str, steps: list[str]) -> np.dtype:
        """Return the same dtype as `result_type`, and write the steps of the decision to `steps`."""
        return DECISIONS[self.rule](self, Operands.of(operands), function, steps)

    def stores(self, result: dt.DTypeLike, target: dt.DTypeLike) -> bool:
        """Return whether an in-place operator or ``out=`` may write a result into an array of dtype `target`.

        "same_kind" is NumPy's rule (`can_cast_same_kind`). "kind" is torch's rule: a signed integer may become
        unsigned. "promotion" is cuTile's rule: the target must be the common dtype. "numpy" asks NumPy, for which each
        dtype of ml_dtypes is a separate kind. No rule lets a complex result become real.
        """
        return CASTING[self.inplace](self.lattice, *[dt.as_dtype(dtype, "stores") for dtype in (result, target)])

    @staticmethod
    def derive(
        base: str | Semantics,
        /,
        *,
        edges: Mapping[Any, Iterable[Any]] | None = None,
        exceptions: Mapping[tuple[Any, Any], Any] | None = None,
        int: Any = None,
        float: Any = None,
        complex: Any = None,
        **changes: Any,
    ) -> Semantics:
        """Return your own semantics: a copy of `base` with the given changes.

        Parameters
        ----------
        base : str or Semantics
            The semantics to start from. Semantics "numpy" have no edges to change, because NumPy decides.
        edges : mapping of dtype to dtypes, optional
            The dtypes directly above each given dtype. They replace the edges of `base`. If `base` forbids pairs of
            such a dtype although they have an upper bound, as torch does for uint16 with complex, the new semantics
            allow them.
        exceptions : mapping of pairs of dtypes to dtype or str, optional
            For a pair without a unique least upper bound: its join, or the reason why it has none. The exceptions of
            `base` remain if they are still needed.
        int, float, complex : dtype, optional
            The default dtype of a kind. It moves all rules that read it, as in `tilearray.semantics`.
        **changes
            Any other attribute of `Semantics`. `name` is by default the name of `base` with "-derived" appended.
            `defaults` needs to list only the kinds that change, and moves no other rule.

        Raises
        ------
        SemanticsError
            If the edges do not form a lattice, an exception is not needed, or an attribute or its value is unknown.
            Every argument is checked here, so that no operation fails later.

        Examples
        --------
        A rule that was proposed for MLX: unsigned with signed gives the larger unsigned dtype.

        >>> import tilearray as ta
        >>> mlx = ta.Semantics.derive("torch", name="mlx", edges={
        ...     "int8": ["int16", "uint8"], "int16": ["int32", "uint16"], "int32": ["int64", "uint32"],
        ...     "int64": ["uint64"], "uint8": ["uint16"], "uint16": ["uint32"], "uint32": ["uint64"],
        ...     "uint64": ["float16", "bfloat16"],
        ... }, integer_division="floor")
        >>> with ta.semantics(mlx):
        ...     ta.promote_types("uint8", "int32"), ta.promote_types("uint32", "int8"), ta.result_type("int8", 2.5)
        (dtype('uint32'), dtype('uint32'), dtype('float32'))
        """
        rules = as_semantics(base, FUNCTION)
        found = chosen(rules, {"int": int, "float": float, "complex": complex}, FUNCTION)
        start = replace(rules, **moved(rules, found))
        return replace(start, **derived(start, edges, exceptions, changes, _options()))


@cache
def _options() -> dict[str, tuple[Any, ...]]:
    """Return the attributes that `Semantics.derive` may change, with the strings that each accepts."""
    hints, fixed = get_type_hints(Semantics), ("lattice", "ladder", "rule", "integer_functions")
    return {
        attribute.name: get_args(hints[attribute.name])
        for attribute in fields(Semantics)
        if attribute.init and attribute.name not in fixed
    }


NAMED: Final[dict[str, Semantics]] = {}
"""The semantics of the library by name. `tilearray.promotion.systems` fills it."""


_MOVED: Final[WeakKeyDictionary[Semantics, dict[str, Semantics]]] = WeakKeyDictionary()
"""Semantics with other defaults, by their base and their name: equal choices give one object and one set of plans."""


def as_semantics(
    spec: str | Semantics, function: str = "semantics", *, int: Any = None, float: Any = None, complex: Any = None
) -> Semantics:
    """Return the `Semantics` of a name, with other defaults if some are given. Equal calls return the same object.

    Parameters
    ----------
    spec : str or Semantics
        A name, or semantics. Defaults may stand behind the name: ``"array-api,float=float64"``.
    function : str
        The function that was called, for the error message.
    int, float, complex : dtype, optional
        The default dtype of a kind. It moves all rules that read it: see `tilearray.promotion.defaults`.

    Raises
    ------
    SemanticsError
        If the name is unknown, or a kind cannot have the dtype as its default.

    Examples
    --------
    >>> from tilearray.promotion.semantics import as_semantics
    >>> as_semantics("triton").integer_division
    'trunc'
    >>> as_semantics("array-api", float="float64") is as_semantics("array-api,float=float64")
    True
    """
    given = {kind: dtype for kind, dtype in (("int", int), ("float", float), ("complex", complex)) if dtype is not None}
    found = spec if type(spec) is Semantics else NAMED.get(spec) if isinstance(spec, str) else None
    if found is not None and not given:
        return found
    root, written = _root(found) if found is not None else _parsed(spec, function)
    changed = chosen(root, {**written, **given}, function)
    if not changed:
        return root
    name, known = name_of(root.name, changed), _MOVED.setdefault(root, {})
    return known.get(name) or known.setdefault(name, replace(root, name=name, **moved(root, changed)))


def _parsed(spec: Any, function: str) -> tuple[Semantics, dict[str, str]]:
    """Return the semantics of a name, and the defaults behind it."""
    name, written = split(spec, function) if isinstance(spec, str) else (spec, dict[str, str]())
    found = NAMED.get(name) if isinstance(name, str) else None
    if found is None:
        raise SemanticsError(f"{function}: unknown semantics {shown(name)}; write {' or '.join(map(repr, NAMED))}")
    return found, written


def _root(rules: Semantics) -> tuple[Semantics, dict[str, str]]:
    """Return the named semantics and the defaults that made `rules`, or `rules` without defaults."""
    base, comma, _ = rules.name.partition(",")
    root = NAMED.get(base) if comma else None
    if root is None or _MOVED.get(root, {}).get(rules.name) is not rules:
        return rules, {}
    return root, split(rules.name, "semantics")[1]


def is_named(rules: Semantics) -> bool:
    """Return whether `as_semantics` of the name returns the same object.

    Examples
    --------
    >>> import tilearray as ta
    >>> is_named(ta.get_semantics()), is_named(ta.Semantics.derive("torch", huge=True))
    (True, False)
    """
    return NAMED.get(rules.name) is rules or _root(rules)[0] is not rules
