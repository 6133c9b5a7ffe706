"""Lists, counts, sizes and times as text, in the form that the commands print."""

from __future__ import annotations

from collections.abc import Iterable


def listed(names: Iterable[str]) -> str:
    """Return names separated by commas.

    Examples
    --------
    >>> listed(["cpu", "cuda:0"])
    'cpu, cuda:0'
    """
    return ", ".join(names)


def printable(name: str) -> str:
    r"""Return a name with escapes for characters that a terminal would obey, or cannot print.

    Examples
    --------
    >>> print(printable("size.npy"), printable("\x1b[31m.npy"))
    size.npy \x1b[31m.npy
    """
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in name)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the singular or plural.

    Examples
    --------
    >>> counted(1, "kernel"), counted(2, "kernel")
    ('1 kernel', '2 kernels')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def readable(size: float) -> str:
    """Return a number of bytes with a binary unit.

    Examples
    --------
    >>> readable(1000), readable(5000), readable(2**30)
    ('1000 B', '4.9 KiB', '1.0 GiB')
    """
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


def duration(seconds: float) -> str:
    """Return a duration in the largest unit that gives 2 or more.

    Examples
    --------
    >>> duration(0.2), duration(119), duration(150), duration(86400), duration(200_000)
    ('0 s', '119 s', '2 min', '24 h', '2 d')
    """
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
