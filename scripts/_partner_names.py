"""The public names of CuPy and JAX, read from the installed libraries, and kept as text beside this script.

    python scripts/_partner_names.py [FOLDER]      writes cupy.txt and jax.txt, of what is installed, to scripts/names

The tables of docs/coming-from-cupy.md and docs/coming-from-jax.md are made from these files, so they need neither
library. A file has the version, and a line of names for each module. Modules and
names with a leading underscore are left out, and so are JAX's primitives, which end in `_p`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import textwrap
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "names"
MODULES = {
    "cupy": ("cupy", "cupy.linalg", "cupy.fft", "cupy.random", "cupy.cuda", "cupyx", "cupyx.scipy.special"),
    "jax": ("jax", "jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.nn", "jax.lax", "jax.random",
            "jax.scipy.special"),
}  # fmt: skip


def names_of(module: str) -> list[str]:
    """The public names of a module: what `__all__` says, or else all that are not modules."""
    found = importlib.import_module(module)
    named = getattr(found, "__all__", None) or dir(found)
    kept = [name for name in named if not name.startswith("_") and not name.endswith("_p") and hasattr(found, name)]
    return sorted({name for name in kept if not inspect.ismodule(getattr(found, name))} - {"annotations"})


def text_of(library: str) -> str:
    """The file of a library."""
    version = importlib.import_module(library).__version__
    parts = [f"{library} {version}\n"]
    for module in MODULES[library]:
        wrapped = textwrap.fill(" ".join(names_of(module)), 118, initial_indent="  ", subsequent_indent="  ")
        parts.append(f"{module}\n{wrapped}\n")
    return "".join(parts)


def read(library: str) -> tuple[str, dict[str, list[str]]]:
    """The version of a library whose names are stored, and its names by module."""
    first, *lines = (FOLDER / f"{library}.txt").read_text(encoding="utf-8").splitlines()
    found: dict[str, list[str]] = {}
    module = ""
    for line in lines:
        if line.startswith(" "):
            found[module] += line.split()
        else:
            module = line
            found[module] = []
    return first.rpartition(" ")[2], found


def is_here(module: str, name: str) -> bool:
    """Whether tilearray has a name of a module.

    That is also a method of its generator of random numbers, and a name of `ta.special` as well as one of `ta`.
    """
    import tilearray as ta

    own = {"linalg": ta.linalg, "fft": ta.fft, "cuda": ta.cuda, "random": ta.random}.get(module.rpartition(".")[2], ta)
    if own is ta.random and hasattr(ta.random.default_rng(0), name):
        return True
    if module.endswith(".special") and name in ta.special.__all__:
        return True
    return name in own.__all__ if own is ta.cuda else hasattr(own, name)


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for library in MODULES:
        try:
            text = text_of(library)
        except ImportError as error:
            print(f"{library}: not read, {error}")
            continue
        (folder / f"{library}.txt").write_text(text, encoding="utf-8")
        print(f"{library}: {sum(len(line.split()) for line in text.splitlines() if line.startswith(' '))} names")
    return 0


if __name__ == "__main__":
    sys.exit(main())
