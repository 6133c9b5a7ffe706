"""The peers that compile: they can run an expression of several operations as one kernel.

Each gets its best form: torch.compile and cupy.fuse get a function of the same views that the other libraries read. JAX
has no views, so it gets a function of whole arrays with the views inside. Compilation is a part of the warm-up and is
never timed, so rows of never-seen shapes do not apply to these peers.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases import OPERANDS, Call, Case
from benchmarks.libraries import CuPy, Library, NotHereError, Torch, host_copy, targets

COMPILES = "compiles every shape"
IMMUTABLE = "arrays are immutable"
NO_VIEWS = "has no views"
NOTHING = "nothing to compile"
STATEMENT = "not an expression"


def changes(row: Case | Call) -> bool:
    """Whether a row writes to existing memory."""
    return bool(row.target or row.mutates) if isinstance(row, Case) else bool(row.value) or "out=" in row.statement


def is_view(row: Case | Call) -> bool:
    """Whether a row makes a view and computes nothing."""
    return isinstance(row, Call) and row.name.startswith("view ")


class Compiler(Library):
    """The common part of the libraries that compile a function."""

    def transformed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a version of the function that is compiled at its first call."""
        raise NotImplementedError

    def refuses(self, row: Case | Call) -> str:
        if isinstance(row, Call) and row.fresh:
            return COMPILES
        if isinstance(row, Call) and row.value:
            return STATEMENT
        if is_view(row):
            return NOTHING
        return super().refuses(row)

    def prepared(self, case: Case, arrays: Mapping[str, Any]) -> Callable[[], Any]:
        operands, target = case.views(arrays, self.names)
        return partial(self.transformed(case.call(self.names)), *operands, *targets(target))

    def statement(self, call: Call, operands: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        arguments = ", ".join(name for name in OPERANDS if re.search(rf"\b{name}\b", call.statement))
        function = eval(f"lambda {arguments}: {call.statement}", dict(operands))
        return f"compiled({arguments})", {**operands, "compiled": self.transformed(function)}


class CompiledTorch(Compiler, Torch):
    """torch.compile, with static shapes."""

    name = "torch.compile"
    base = "torch"

    def __init__(self, device: str) -> None:
        super().__init__(device)
        if device == "cpu" and not shutil.which(os.environ.get("CXX", "c++")):
            raise NotHereError("no C++ compiler")

    def transformed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the compiled function, after dropping all previously compiled functions.

        torch 2.11 treats all functions without a file as one, and runs the ninth of them uncompiled.
        """
        self.xp.compiler.reset()
        importlib.import_module("torch._dynamo").config.fail_on_recompile_limit_hit = True
        return self.xp.compile(function, dynamic=False)


class FusedCuPy(Compiler, CuPy):
    """cupy.fuse: elementwise functions that return new arrays."""

    name = "cupy.fuse"
    base = "cupy"

    def refuses(self, row: Case | Call) -> str:
        if changes(row) or (isinstance(row, Case) and row.expression.startswith("copy(")):
            return NOTHING
        if isinstance(row, Call) and ".T" in row.statement:
            return NO_VIEWS
        return super().refuses(row)

    def transformed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        function.__name__ = "fused"  # becomes the kernel's name in C++, where "<lambda>" is invalid
        return self.xp.fuse(function)


class Jax(Library):
    """JAX, one operation at a time. Its arrays are immutable and dense, so the timed code also computes the views."""

    name = "jax"
    package = "jax.numpy"
    ordered = False

    def __init__(self, device: str) -> None:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leave memory for the other libraries
        super().__init__(device)
        self.jax: Any = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        try:
            self.place = self.jax.devices("gpu" if device == "cuda" else "cpu")[0]
        except RuntimeError as error:
            raise NotHereError("built without CUDA, or no GPU") from error

    @property
    def version(self) -> str:
        return str(self.jax.__version__)

    def refuses(self, row: Case | Call) -> str:
        if isinstance(row, Call) and row.fresh:
            return COMPILES
        if changes(row):
            return IMMUTABLE
        return NO_VIEWS if is_view(row) else super().refuses(row)

    def transformed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def prepared(self, case: Case, arrays: Mapping[str, Any]) -> Callable[[], Any]:
        names = self.names
        expression = case.call(names)
        return partial(self.transformed(lambda arrays: expression(*case.views(arrays, names)[0])), dict(arrays))

    def adopt(self, x: Any) -> Any:
        try:
            shared = self.jax.dlpack.from_dlpack(x)
            if shared.unsafe_buffer_pointer() == address(x):
                return shared
            why = "JAX shares only aligned memory"
        except Exception as error:  # any error: the operation is measured over a copy, and the report says so
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            shared = self.jax.device_put(x if isinstance(x, np.ndarray) else host_copy(x), self.place)
        self.copied = self.copied or why
        return shared

    def spoil(self, x: Any) -> None:
        """Do nothing: JAX never writes a result to the memory of a live array."""

    def wait(self, result: Any) -> None:
        self.jax.block_until_ready(result)


class CompiledJax(Jax, Compiler):
    """jax.jit, with the views inside the function."""

    name = "jax.jit"

    def transformed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return self.jax.jit(function)


class FlagGems(Torch):
    """FlagGems: torch with Triton kernels for some operations; the rest run in torch."""

    name = "flag_gems"
    base = "torch"

    def __init__(self, device: str) -> None:
        if device != "cuda":
            raise NotHereError("GPU only")
        super().__init__(device)
        try:
            self.gems: Any = importlib.import_module("flag_gems")
        except ModuleNotFoundError as error:
            raise NotHereError("not installed") from error
        except Exception as error:  # the import itself looks for a device and for kernels
            raise NotHereError(f"cannot be imported: {error}") from error

    def active(self) -> AbstractContextManager[Any]:
        return self.gems.use_gems()


def address(x: Any) -> int:
    """Return the address of an owner's array."""
    if hasattr(x, "__cuda_array_interface__"):
        return x.__cuda_array_interface__["data"][0]
    return x.data_ptr() if hasattr(x, "data_ptr") else x.ctypes.data
