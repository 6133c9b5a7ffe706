"""`Flags`: facts about the memory of an array, by NumPy's names. Only `writeable` can be set."""

from __future__ import annotations

from tilearray.engine.signature import ArrayBase
from tilearray.errors import shown
from tilearray.functions.memory import base_of, set_writeable

# NumPy's keys of `flags[...]` and the attributes that they name.
KEYS = {
    "C_CONTIGUOUS": "c_contiguous",
    "F_CONTIGUOUS": "f_contiguous",
    "OWNDATA": "owndata",
    "WRITEABLE": "writeable",
    "ALIGNED": "aligned",
    "C": "c_contiguous",
    "F": "f_contiguous",
    "O": "owndata",
    "W": "writeable",
    "A": "aligned",
    "CONTIGUOUS": "c_contiguous",
    "FORTRAN": "f_contiguous",
    "FNC": "fnc",
    "FORC": "forc",
}


class Flags:
    """Facts about the memory of an array; ``x.flags`` makes them.

    Attributes
    ----------
    c_contiguous, f_contiguous : bool
        Whether the elements lie without gaps, the last axis fastest or the first axis fastest.
    owndata : bool
        Whether the array fills its memory in C order; the others are views.
    writeable : bool
        Whether the elements can be assigned to. An assignment protects an array on the host, or allows it again.
    aligned : bool
        Always True: tilearray copies memory that is not aligned for its dtype.

    Examples
    --------
    >>> import tilearray as ta
    >>> x = ta.zeros((2, 3)).T
    >>> x.flags.c_contiguous, x.flags.f_contiguous, x.flags["WRITEABLE"]
    (False, True, True)
    """

    __slots__ = ("_x",)
    _x: ArrayBase

    def __init__(self, x: ArrayBase) -> None:
        object.__setattr__(self, "_x", x)

    @property
    def c_contiguous(self) -> bool:
        """Whether the elements lie without gaps, the last axis fastest."""
        return self._x._signature.layout.contiguous

    @property
    def f_contiguous(self) -> bool:
        """Whether the elements lie without gaps, the first axis fastest."""
        layout = self._x._signature.layout
        return layout.permute(range(layout.ndim)[::-1]).contiguous

    @property
    def owndata(self) -> bool:
        """Whether the array fills its memory in C order."""
        return base_of(self._x) is None

    @property
    def writeable(self) -> bool:
        """Whether the elements can be assigned to."""
        layout = self._x._signature.layout
        return not (self._x._buffer.readonly or layout.overlaps_itself)

    @writeable.setter
    def writeable(self, value: bool) -> None:
        set_writeable(self._x, value)

    @property
    def aligned(self) -> bool:
        """True: memory that is not aligned for its dtype is copied."""
        return True

    @property
    def contiguous(self) -> bool:
        """The same as `c_contiguous`."""
        return self.c_contiguous

    @property
    def fnc(self) -> bool:
        """Whether the array is contiguous in Fortran order only."""
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        """Whether the array is contiguous in one order at least."""
        return self.f_contiguous or self.c_contiguous

    def __getitem__(self, key: str) -> bool:
        try:
            return getattr(self, KEYS[key])
        except (KeyError, TypeError):
            raise KeyError(f"flags: expected one of {', '.join(KEYS)}, got {shown(key)}") from None

    def __setitem__(self, key: str, value: bool) -> None:
        setattr(self, KEYS.get(key, key), value)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "writeable":
            object.__setattr__(self, name, value)
            return
        raise AttributeError(f"flags: {name} is read-only; write x.copy() for an array of its own memory")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flags) and repr(self) == repr(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "\n".join(f"  {key} : {self[key]}" for key in list(KEYS)[:5])
