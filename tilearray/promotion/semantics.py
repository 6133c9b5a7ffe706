"""`Semantics`: the rules by which one system decides the dtype of a result. `tilearray.promotion.systems` holds those that exist.

Arrays have a common dtype, which the lattice knows. Python numbers have a kind only, and a value: a number takes part
where its kind is above that of all arrays, and then as the dtype on its rung of the ladder. Where dimensioned arrays
outrank 0-d ones (torch), operands fall into categories that are joined one after the other. And where all of that is
another library's business (NumPy), it is asked.

Every decision is made in steps that can be told: `Semantics.decide` takes a list that they are written to, in words.
They cost nothing that counts, because a decision is made once for the dtypes of a call and kept with its plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from tilearray import dtypes as dt
from tilearray.promotion.lattice import Joins
from tilearray.promotion.operands import RULES, Operand, Operands
from tilearray.promotion.scalars import ScalarClass
from tilearray.promotion.storing import CASTING


@dataclass(frozen=True, eq=False)
class Semantics:
    """One system's rules, or rules of your own: see `derive`.

    They are compared by value and never change, so a copy is the same object. A pickle of one of the five has its name,
    any other has the rules.

    Attributes
    ----------
    name : str
        The name to choose it by.
    lattice : Joins
        The joins of dtypes.
    defaults : mapping of str to dtype
        The dtype of new arrays, and of Python numbers where no array takes part, for the kinds "bool", "int", "float"
        and "complex". A number that the default does not hold takes the dtype of its rung.
    ladder : mapping of ScalarClass to dtype
        The rungs: the dtype that a number brings along where it takes part. A class that is missing has none.
    integer_division : {"floor", "trunc"}
        How ``//`` rounds integers, with ``%`` to match.
    true_division : numpy.dtype
        The result of ``/`` on integers and bools.
    integer_functions : mapping of dtype to dtype
        In which dtype ``sqrt``, ``exp`` and their like take integers and bools; `true_division` for what is missing.
    inplace : {"same_kind", "kind", "promotion", "numpy"}
        What an in-place result may be cast to: see `stores`.
    rule : {"numbers", "categories", "numpy"}
        How operands that are no arrays of dimensions count: see the module's first lines.
    huge : bool
        Whether a float array takes integers beyond 64 bits.
    arithmetic : frozenset of dtype
        The dtypes that are computed with; others can be moved, selected and compared if they are bool.
    same_bits : bool
        Whether ``& | ^`` ask for operands of one dtype.
    wide_numbers : frozenset of str
        The operations that take a Python number in the dtype that is computed in, not in the result's.
    zero_dim : bool
        Whether 0-d arrays are told from others; follows from `rule`.
    key : object
        Not a rule: stands for this object in caches that must not keep it alive, and is hashed fast.
    plans : dict or None
        Not a rule: the plans that `tilearray.engine.context` keeps for as long as this object lives.
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
        return f"<Semantics {self.name!r}>"

    def promote(self, dtypes: Iterable[np.dtype], function: str = "result_type") -> np.dtype:
        """Return the common dtype of arrays.

        Examples
        --------
        >>> import tilearray as ta
        >>> ta.get_semantics().promote([ta.int8, ta.uint8])
        dtype('int16')
        """
        return self.lattice.join(dtypes, function)

    def result_type(self, operands: Iterable[Operand], function: str = "result_type") -> np.dtype:
        """Return the common dtype of arrays and Python numbers, in whatever order.

        Raises
        ------
        PromotionError
            If there is none; the message says which cast to write.
        ScalarOverflowError
            If an integer that needs a dtype of its own is beyond 64 bits.
        """
        return self.decide(operands, function, [])

    def decide(self, operands: Iterable[Operand], function: str, steps: list[str]) -> np.dtype:
        """Return what `result_type` does, and write the way there to `steps`."""
        return RULES[self.rule](self, Operands.of(operands), function, steps)

    def stores(self, result: np.dtype, target: np.dtype) -> bool:
        """Return whether an in-place operator or ``out=`` may write a result into an array of dtype `target`.

        "same_kind" is NumPy's rule (`can_cast_same_kind`), "kind" that of torch (a signed integer may become unsigned),
        "promotion" that of cuTile (the target must be the common dtype), "numpy" asks NumPy, which counts the dtypes of
        ml_dtypes as kinds of their own. No rule lets a complex result become real.
        """
        return CASTING[self.inplace](self, result, target)

    @staticmethod
    def derive(
        base: str | Semantics,
        /,
        *,
        edges: Mapping[Any, Iterable[Any]] | None = None,
        exceptions: Mapping[tuple[Any, Any], Any] | None = None,
        **changes: Any,
    ) -> Semantics:
        """Return semantics of your own: those of `base`, but for what is given.

        Parameters
        ----------
        base : str or Semantics
            What to start from. Semantics "numpy" have no edges to change, since NumPy is asked.
        edges : mapping of dtype to dtypes, optional
            The dtypes directly above each; they replace those of `base`. What `base` forbids for such a dtype though
            it has an upper bound, as torch does for uint16 with complex, is not forbidden any more.
        exceptions : mapping of pairs of dtypes to dtype or str, optional
            The join of a pair without a unique least upper bound, or the reason why it has none. The exceptions of
            `base` stay where they are still needed.
        **changes
            Any other attribute of `Semantics`. `name` is that of `base` with "-derived" unless given; `defaults`
            lists what changes.

        Raises
        ------
        SemanticsError
            If the edges make no lattice, an exception is not needed, or an attribute or its value is unknown.

        Examples
        --------
        What has been proposed for MLX: unsigned with signed gives the larger unsigned.

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
        from tilearray.promotion.derive import derive

        return derive(base, edges, exceptions, changes)
