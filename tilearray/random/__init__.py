"""Random numbers: a generator with the surface of ``numpy.random.Generator``, the same on the host and on every GPU.

``ta.random.default_rng(seed)`` makes one. Its numbers depend on the seed and on the logical index of the element, not
on the device, the layout or the number of calls that draw them: see `tilearray.random.philox`.
"""

from typing import TYPE_CHECKING

from tilearray.missing_names import MissingNameError as _MissingNameError
from tilearray.ops.signatures import show as _show
from tilearray.random.generator import Generator, default_rng
from tilearray.random.old_names import OLD_NAMES as _OLD_NAMES
from tilearray.random.philox import Philox4x32

__all__ = ["Generator", "Philox4x32", "default_rng"]

_show([default_rng])

_MADE = "write ta.random.default_rng(seed)"
_INSTEAD = {
    **{name: f"{_MADE}.{name}" for name in dir(Generator) if not name.startswith("_")},
    **{name: f"{_MADE}.{method}" for name, method in _OLD_NAMES.items()},
    "seed": _MADE,
    "RandomState": _MADE,
}
"""What to write for NumPy's functions over a hidden generator."""

if not TYPE_CHECKING:  # a checker knows all names, and would let each misspelled one pass

    def __getattr__(name):
        """Say what to write for a name that is missing."""
        raise _MissingNameError(name, __all__, "random", _INSTEAD.get(name, ""))


def __dir__() -> list[str]:
    return sorted(__all__)


del TYPE_CHECKING
