"""NumPy's distributions that `Generator` does not have: each is an AttributeError that says what to write.

They come from NumPy's own generator, on the host.
"""

from __future__ import annotations

from typing import Final

from tilearray.missing_names import MissingAttribute

BY_NUMPY: Final = ("hypergeometric", "logseries", "multivariate_hypergeometric", "vonmises", "zipf")
"""Distributions that only NumPy has."""

OLD_NAMES: Final = {
    **dict.fromkeys(("rand", "ranf", "random_sample", "sample"), "random"),
    **dict.fromkeys(("randint", "random_integers"), "integers"),
    "randn": "standard_normal",
}
"""Functions of ``numpy.random`` that are methods of a generator by other names."""

INSTEAD: Final = {
    **{name: f"write ta.asarray(np.random.default_rng(seed).{name}(...))" for name in BY_NUMPY},
    **{name: f"write rng.{method}" for name, method in OLD_NAMES.items()},
}
"""What to write for each name."""


class MissingDistributions:
    """The base class of `Generator` that has the descriptors."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in INSTEAD]


for _name, _text in INSTEAD.items():
    setattr(MissingDistributions, _name, MissingAttribute("Generator", _name, _text))
