"""Names that a module or a class does not have: an AttributeError that says what to write.

Libraries ask for many names that are missing, to learn what an array library can do. So the advice is found only when
somebody reads the error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn


class MissingNameError(AttributeError):
    """A name that a module does not have, and what to write: `written`, or what `instead` finds."""

    def __init__(self, name: str, known: Iterable[str], module: str = "", written: str = "") -> None:
        super().__init__(name)
        self._missing, self._known, self._module, self._written = name, known, module, written

    def __str__(self) -> str:
        path = ".".join(filter(None, ("tilearray", self._module)))
        advice = self._written or instead(self._missing, self._known, self._module)
        return f"module {path!r} has no attribute {self._missing!r}; {advice}"


def instead(name: str, known: Iterable[str], module: str = "") -> str:
    """Return what to write for a name that is missing in `tilearray`, or in a module of it.

    Examples
    --------
    >>> instead("concatenat", ["concat", "concatenate"]), instead("nrom", ["norm"], "linalg")
    ('write ta.concatenate', 'write ta.linalg.norm')
    >>> instead("busday_count", [])
    'write np.busday_count with ta.to_numpy(x), on the host'
    """
    import difflib

    import numpy as np

    within = f"{module}." if module else ""
    theirs = getattr(np, module, None) if module else np
    if hasattr(theirs, name):
        return f"write np.{within}{name} with ta.to_numpy(x), on the host"
    close = difflib.get_close_matches(name, list(known), 1, 0.75)
    if close:
        return f"write ta.{within}{close[0]}"
    nor_numpy = "NumPy has no such name either; " if theirs else ""
    return f"{nor_numpy}see dir({'.'.join(filter(None, ('ta', module)))})"


class MissingAttribute:
    """A descriptor of a name that a class does not have. ``hasattr`` is False for it.

    Examples
    --------
    >>> class Tensor:
    ...     cpu = MissingAttribute("Tensor", "cpu", "write x.to_device('cpu')")
    >>> Tensor().cpu
    Traceback (most recent call last):
    AttributeError: Tensor has no attribute 'cpu'; write x.to_device('cpu')
    """

    def __init__(self, owner: str, name: str, advice: str) -> None:
        self.name, self.text = name, f"{owner} has no attribute {name!r}; {advice}"

    def __get__(self, instance: object, owner: type | None = None) -> NoReturn:
        raise AttributeError(self.text, name=self.name)
