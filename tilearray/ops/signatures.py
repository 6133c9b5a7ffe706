"""The signatures that `help`, `inspect.signature` and IPython show, with the names of types.

The annotations of the library are strings, because ``Array`` lies above the functions that take it. `inspect` would
show them with quotes, and the type variable of arrays as ``A``. `show` gives a function a signature in which a type is
the text that a reader expects: ``x: Array, axis: int | None = None``. It is made when it is read for the first time,
so that ``import tilearray`` does not pay for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from inspect import Signature, signature
from types import FunctionType, MappingProxyType
from typing import Any, cast

_SPELLED_OUT = re.compile(r"\b(Axis|Axes|ShapeLike)\b")
"""The aliases that a reader sees spelled out."""

EMPTY: Mapping[str, Any] = MappingProxyType({})

# What a reader sees instead of the text of an annotation.
_REPLACED = (
    (re.compile(r"\b(A|Array) \| HostData\b"), "Operand"),
    (re.compile(r"\b(ArrayBase|A|Self)\b"), "Array"),
    (re.compile(r"\bnp\.ndarray\[.*?\]"), "numpy.ndarray"),
    (re.compile(r"\bnp\."), "numpy."),
    (re.compile(r"\bcollections\.abc\."), ""),
)


class TypeText(str):
    """The text of a type; `inspect` shows it without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def type_text(annotation: object, names: Mapping[str, Any] = EMPTY) -> Any:
    """Return the text of an annotation for a reader; an annotation that is not a string as it is.

    `names` has the aliases that the text contains.

    Examples
    --------
    >>> type_text("A | None")
    Array | None
    """
    if not isinstance(annotation, str):
        return annotation
    text = annotation[1:-1] if annotation[:1] + annotation[-1:] in ("''", '""') else annotation
    text = _SPELLED_OUT.sub(lambda found: str(names.get(found[0], found[0])), text)
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    parts = text.split(" | ")
    return TypeText(" | ".join(dict.fromkeys(parts)) if "[" not in text else text)


class LateSignature(Signature):
    """A signature that is made when it is read for the first time."""

    __slots__ = ("_make",)
    _make: Callable[[], Signature]

    @classmethod
    def of(cls, make: Callable[[], Signature]) -> LateSignature:
        """Return the signature that `make` will make."""
        late = cls.__new__(cls)
        late._make = make
        return late

    def __getattr__(self, name: str) -> Any:
        if name not in ("_parameters", "_return_annotation"):
            raise AttributeError(name)
        made = cast(Any, self._make())
        self._parameters, self._return_annotation = made._parameters, made._return_annotation
        return getattr(self, name)

    def __repr__(self) -> str:
        return f"<Signature {self}>"

    def replace(self, **changes: Any) -> Signature:
        """Return the signature with other parameters or another result."""
        return Signature(list(self.parameters.values()), return_annotation=self.return_annotation).replace(**changes)

    def __reduce__(self) -> Any:
        return Signature, (list(self.parameters.values()),), {"_return_annotation": self.return_annotation}


def show(functions: Iterable[object]) -> None:
    """Give functions the signature that a reader expects; other objects keep theirs.

    Examples
    --------
    >>> from inspect import signature
    >>> def double(x: "A", axis: "int | None" = None) -> "A": return x * 2
    >>> show([double])
    >>> signature(double)
    <Signature (x: Array, axis: int | None = None) -> Array>
    """
    for function in functions:
        if isinstance(function, FunctionType):
            function.__signature__ = LateSignature.of(_maker(function))  # type: ignore[attr-defined]


def _maker(function: FunctionType) -> Callable[[], Signature]:
    return lambda: _readable(function)


def _readable(function: FunctionType) -> Signature:
    """The signature of a function with the text of its types."""
    bare = FunctionType(function.__code__, {}, function.__name__, function.__defaults__, function.__closure__)
    bare.__kwdefaults__ = function.__kwdefaults__
    bare.__annotations__ = function.__annotations__
    found = signature(bare)
    names = function.__globals__
    shown = [part.replace(annotation=type_text(part.annotation, names)) for part in found.parameters.values()]
    return found.replace(parameters=shown, return_annotation=type_text(found.return_annotation, names))
