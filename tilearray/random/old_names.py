"""Functions of ``numpy.random`` that are methods of a generator by other names: AttributeErrors that say which."""

from __future__ import annotations

from typing import Final

from tilearray.missing_names import MissingAttribute

OLD_NAMES: Final = {
    **dict.fromkeys(("rand", "ranf", "random_sample", "sample"), "random"),
    **dict.fromkeys(("randint", "random_integers"), "integers"),
    "randn": "standard_normal",
}
"""The method of each name."""


class OldNames:
    """The base class of `Generator` that has the descriptors."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in OLD_NAMES]


for _name, _method in OLD_NAMES.items():
    setattr(OldNames, _name, MissingAttribute("Generator", _name, f"write rng.{_method}"))
