"""Calls a function of ours after another library has imported a module: dask's tables of types begin so.

Nothing is imported for it. A module that is there already calls at once; for the others a finder stands first in
``sys.meta_path``. It finds no modules itself: it asks the other finders for those that it waits for, and extends the
loader that they give.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Waiting:
    """A finder that waits for modules.

    Parameters
    ----------
    calls : mapping of str to str
        For the name of each module, the function that gets the module after its import: ``"package.module:function"``.
    """

    def __init__(self, calls: Mapping[str, str]) -> None:
        self._calls = dict(calls)

    def start(self) -> None:
        """Call for the modules that are there, and wait for the others."""
        sys.meta_path.insert(0, self)
        for name in [name for name in self._calls if name in sys.modules]:
            self._call(sys.modules[name])

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Return None for modules that nothing waits for; else the spec of the other finders, with our call."""
        if name not in self._calls:
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self._extend(spec.loader)
        return spec

    def _extend(self, loader: Any) -> None:
        """Make a loader call us after it has run a module."""
        run = loader.exec_module

        def run_and_call(module: ModuleType) -> None:
            run(module)
            self._call(module)

        loader.exec_module = run_and_call

    def _call(self, module: ModuleType) -> None:
        call = self._calls.pop(module.__name__, None)
        if call is not None:
            ours, _, function = call.partition(":")
            getattr(importlib.import_module(ours), function)(module)
