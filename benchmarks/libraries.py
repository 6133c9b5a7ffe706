"""Adapters for the measured libraries. Libraries that compile an expression are in compilers.py.

An adapter imports arrays without a copy, provides the names in the tables' expressions, and returns results as
ndarrays. Views and operators need no adapter: ``a[:, ::2] + b.T`` is the same in every library.

The `owner` makes the arrays of a case once: NumPy on the host; torch, or else CuPy, on a GPU. All other libraries read
the owner's memory. The default stream orders all work, so one pair of events times any library. A library with its own
streams (JAX) sets `ordered` to False, and the host's clock times it. To add a library, write a subclass, and add its
name to `peers.PEERS`.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases import Call, Case, Shape, dtype_of


class NotHereError(Exception):
    """A library cannot run on this machine; the message is the reason: "not installed", "no GPU"."""


class Library:
    """The common part of the adapters: NumPy's names and behaviour.

    Attributes
    ----------
    name, package : str
    device : str
        "cpu" or "cuda".
    copied : str
        The reason why the library uses copies; empty while it reads the owner's memory.
    ordered : bool
        Whether the default stream orders its work.
    base : str
        The library whose views it uses, if that is another one.
    """

    name = "numpy"
    package = "numpy"
    ordered = True
    base = ""

    def __init__(self, device: str) -> None:
        self.device = device
        self.copied = ""
        try:
            self.xp: Any = importlib.import_module(self.package)
        except ModuleNotFoundError as error:
            raise NotHereError("not installed") from error
        except ImportError as error:
            raise NotHereError(f"cannot be imported: {error}") from error

    @property
    def version(self) -> str:
        return str(self.xp.__version__)

    @property
    def names(self) -> Mapping[str, Any]:
        """The functions that the tables use, by name."""
        xp = self.xp
        own = {"permute": self.permute, "cast": self.cast, "copy": self.copy, "assign": assign, "iadd": operator.iadd}
        return {**own, "exp": xp.exp, "add": xp.add}

    def refuses(self, row: Case | Call) -> str:
        """Return the reason why the library cannot do the work of a row; empty if it can."""
        return "not supported" if isinstance(row, Case) and {self.name, self.base} & {*row.without} else ""

    def prepared(self, case: Case, arrays: Mapping[str, Any]) -> Callable[[], Any]:
        """Return the function to time: the expression over views made beforehand."""
        operands, target = case.views(arrays, self.names)
        return partial(case.call(self.names), *operands, *targets(target))

    def statement(self, call: Call, operands: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return the statement to time for a small operation, and its names."""
        return call.statement, operands

    def active(self) -> AbstractContextManager[Any]:
        """Return the context in which this library's code runs. It is left before other libraries run."""
        return nullcontext()

    def wait(self, result: Any) -> None:
        """Wait for a result. Only a library that the default stream does not order must implement it."""

    def permute(self, x: Any, axes: tuple[int, ...]) -> Any:
        return self.xp.transpose(x, axes)

    def cast(self, x: Any, dtype: str) -> Any:
        return x.astype(dtype)

    def copy(self, x: Any) -> Any:
        return x.copy()

    def adopt(self, x: Any) -> Any:
        """Return the owner's array as this library's array."""
        return x

    def to_numpy(self, x: Any) -> np.ndarray:
        """Return the values on the host."""
        return np.asarray(x)

    def spoil(self, x: Any) -> None:
        """Overwrite a result, so that reused memory does not contain a correct result by chance."""
        x[...] = "bool" in str(x.dtype) or 77

    def release(self) -> None:
        """Give unused memory back to the device."""


def targets(target: Any) -> tuple[Any, ...]:
    """Return the target as a tuple of arguments, empty without a target."""
    return () if target is None else (target,)


def assign(target: Any, value: Any) -> Any:
    """``target[...] = value`` as an expression."""
    target[...] = value
    return target


class NumPy(Library):
    """NumPy: the owner on the host."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        if device != "cpu":
            raise NotHereError("host only")

    def random(self, shape: Shape, dtype: str, seed: int) -> np.ndarray:
        """Return values for which operations are well conditioned: floats in [1, 2), all integers, both bools."""
        generator: Any = np.random.default_rng(seed)
        wanted = dtype_of(dtype)
        if wanted.kind in "iu":
            limits = np.iinfo(wanted)
            return generator.integers(limits.min, limits.max, shape, wanted, endpoint=True)
        if wanted.kind == "b":
            return generator.integers(0, 2, shape, np.uint8).view(bool)
        if wanted.kind == "c":
            part = f"f{wanted.itemsize // 2}"
            return (generator.random((*shape, 2), part) + np.dtype(part).type(1)).view(wanted)[..., 0]
        wide = np.dtype(np.float64 if wanted == np.float64 else np.float32)
        return (generator.random(shape, wide) + wide.type(1)).astype(wanted, copy=False)

    def array(self, x: np.ndarray) -> np.ndarray:
        """Return an ndarray as the owner's array."""
        return x

    def take(self, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return the elements of an owner's array at flat positions, on the host."""
        return x.ravel()[positions]


class Torch(Library):
    """torch eager: the owner on a GPU; on the host a peer that shares NumPy's memory."""

    name = "torch"
    package = "torch"

    def __init__(self, device: str) -> None:
        super().__init__(device)
        if device == "cuda" and not self.xp.cuda.is_available():
            raise NotHereError("built without CUDA, or no GPU")

    def random(self, shape: Shape, dtype: str, seed: int) -> Any:
        xp = self.xp
        generator = xp.Generator(self.device).manual_seed(seed)
        given = {"generator": generator, "device": self.device}
        wanted = getattr(xp, dtype)
        if wanted.is_complex:
            part = xp.float64 if dtype == "complex128" else xp.float32
            return xp.view_as_complex(xp.rand((*shape, 2), dtype=part, **given).add_(1))
        if wanted.is_floating_point:
            wide = xp.float64 if dtype == "float64" else xp.float32
            return xp.rand(shape, dtype=wide, **given).add_(1).to(wanted)
        if dtype == "bool":
            return xp.randint(0, 2, shape, dtype=xp.uint8, **given).view(xp.bool)
        limits = xp.iinfo(wanted)
        return xp.randint(limits.min, limits.max + 1, shape, dtype=wanted, **given)

    def array(self, x: np.ndarray) -> Any:
        return self.xp.from_numpy(x).to(self.device)

    def permute(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.permute(axes)

    def cast(self, x: Any, dtype: str) -> Any:
        return x.to(getattr(self.xp, dtype))

    def copy(self, x: Any) -> Any:
        return x.clone()

    def adopt(self, x: Any) -> Any:
        if self.xp.is_tensor(x):
            return x
        if x.dtype == dtype_of("bfloat16"):
            return self.xp.from_numpy(x.view(np.uint16)).view(self.xp.bfloat16)
        return self.xp.from_numpy(x)

    def to_numpy(self, x: Any) -> np.ndarray:
        x = x.detach().cpu()
        if x.dtype == self.xp.bfloat16:
            return x.contiguous().view(self.xp.int16).numpy().view(dtype_of("bfloat16"))
        return x.numpy()

    def take(self, x: Any, positions: np.ndarray) -> np.ndarray:
        return self.to_numpy(x.view(-1)[self.xp.from_numpy(positions).to(self.device)])

    def release(self) -> None:
        if self.device == "cuda":
            self.xp.cuda.empty_cache()


class CuPy(Library):
    """CuPy, on a GPU."""

    name = "cupy"
    package = "cupy"

    def __init__(self, device: str) -> None:
        if device != "cuda":
            raise NotHereError("GPU only")
        super().__init__(device)
        try:
            self.xp.cuda.runtime.getDeviceCount()
        except Exception as error:  # CuPy's own error type is not available if its library is missing
            raise NotHereError(f"no GPU: {error}") from error

    def random(self, shape: Shape, dtype: str, seed: int) -> Any:
        xp, wanted = self.xp, dtype_of(dtype)
        generator = xp.random.RandomState(seed)
        if wanted.kind in "biu":
            octets = generator.randint(0, 2 if wanted.kind == "b" else 256, (*shape, wanted.itemsize), dtype=xp.uint8)
            return octets.view(wanted)[..., 0]
        part = xp.float64 if dtype in ("float64", "complex128") else xp.float32
        pairs = (2,) if wanted.kind == "c" else ()
        values = generator.random_sample((*shape, *pairs), dtype=part) + part(1)
        return values.view(wanted)[..., 0] if pairs else values.astype(wanted, copy=False)

    def array(self, x: np.ndarray) -> Any:
        return self.xp.asarray(x)

    def adopt(self, x: Any) -> Any:
        if isinstance(x, self.xp.ndarray):
            return x
        carried, dtype = carrier(x)
        return self.xp.asarray(carried) if dtype is None else self.xp.asarray(carried).view(dtype)

    def take(self, x: Any, positions: np.ndarray) -> np.ndarray:
        return self.to_numpy(x.ravel()[self.xp.asarray(positions)])

    def to_numpy(self, x: Any) -> np.ndarray:
        return self.xp.asnumpy(x)

    def release(self) -> None:
        self.xp.get_default_memory_pool().free_all_blocks()


class TileArray(Library):
    """tilearray, over the owner's memory. If memory cannot be shared, it uses a copy, and `copied` is the reason."""

    name = "tilearray"
    package = "tilearray"

    def permute(self, x: Any, axes: tuple[int, ...]) -> Any:
        return self.xp.permute_dims(x, axes)

    def adopt(self, x: Any) -> Any:
        if self.device == "cpu":
            return self.xp.asarray(x, device="cpu", copy=False)
        try:
            carried, dtype = carrier(_through_cupy(x))
            shared = self.xp.asarray(carried, copy=False)
            if shared.device.type == "cuda":
                return shared if dtype is None else shared.view(dtype)
            why = f"asarray put it on {shared.device}"
        except Exception as error:  # any error: the operation is measured over a copy, and the report says so
            why = f"{type(error).__name__}: {error}"
        self.copied = self.copied or why.splitlines()[0]
        return self.xp.asarray(host_copy(x), device=self.device)

    def to_numpy(self, x: Any) -> np.ndarray:
        return self.xp.to_numpy(x)

    def release(self) -> None:
        if self.device == "cuda" and hasattr(self.xp, "cuda"):
            self.xp.cuda.empty_cache()


def carrier(x: Any) -> tuple[Any, np.dtype | None]:
    """Return torch's bfloat16 as int16, and the dtype to view it as: ``__cuda_array_interface__`` lacks bfloat16."""
    if str(x.dtype) != "torch.bfloat16":
        return x, None
    return x.view(importlib.import_module("torch").int16), dtype_of("bfloat16")


def _through_cupy(x: Any) -> Any:
    """Return a torch tensor as CuPy's array if CuPy is installed, so that one protocol serves all of CuPy's dtypes."""
    if str(x.dtype) == "torch.bfloat16":
        return x
    try:
        return CuPy("cuda").adopt(x)
    except NotHereError:
        return x


def host_copy(x: Any) -> np.ndarray:
    """Return a copy of an owner's GPU array as an ndarray."""
    return (CuPy if "cupy" in type(x).__module__ else Torch)("cuda").to_numpy(x)
