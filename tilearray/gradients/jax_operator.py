"""`f.jax`: a fused or pointwise function as a function of JAX arrays, with a derivative.

It is a `jax.custom_vjp` over `jax.pure_callback`. A callback leaves the compiled program: JAX waits for the operands,
copies them to the host, and copies the results back. On a GPU that is two copies over the bus for each array; call the
function itself on JAX arrays where JAX does not compile or differentiate around it, and nothing is copied.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.fusion.containers import leaves, mapped
from tilearray.arrays.fusion.fuse import Fused
from tilearray.arrays.fusion.pointwise import Pointwise
from tilearray.engine.devices import CPU
from tilearray.engine.signature import signature_of
from tilearray.errors import OperandError
from tilearray.geometry.layout import Layout
from tilearray.gradients.gradient import Gradient, NoMemory
from tilearray.gradients.steps import FLOATS

_NUMBERS = (bool, int, float, complex)


class JaxFunction:
    """A function of arrays as a function of JAX. Call it with JAX arrays and Python numbers, which are constants."""

    def __init__(self, function: Fused | Pointwise) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __repr__(self) -> str:
        return f"<JAX function of {self.function!r}>"

    def __call__(self, *args: Any) -> Any:
        """Run the function."""
        given = list(leaves(args))
        arrays = [each for each in given if type(each) not in _NUMBERS]
        if not arrays:
            raise OperandError("jax: expected at least one array, got none; write jax.numpy.asarray(x)")

        def flat(*operands: Any) -> Any:
            waiting = iter(operands)
            return self.function(*mapped(args, lambda each: each if type(each) in _NUMBERS else next(waiting)))

        return differentiable(str(getattr(self.function, "__name__", "function")), flat, arrays)(*arrays)


def differentiable(name: str, function: Callable[..., Any], operands: Sequence[Any]) -> Callable[..., Any]:
    """Return a function of JAX arrays that runs a function of Arrays by a callback."""
    library: Any = importlib.import_module("jax")
    like, shapes = _traced(function, operands)
    floats = [dtypes.info(np.dtype(shape.dtype)).kind in FLOATS for shape in shapes]

    def on_host(*arrays: Any) -> Any:
        found = leaves(function(*[np.asarray(each) for each in arrays]))
        return [np.asarray(each) for each in found]

    def run(*arrays: Any) -> Any:
        found = iter(library.pure_callback(on_host, shapes, *arrays, vmap_method="sequential"))
        return mapped(like, lambda _: next(found))

    made: Any = library.custom_vjp(run)

    def forward(*arrays: Any) -> Any:
        return made(*arrays), arrays

    def backward(arrays: Any, cotangents: Any) -> Any:
        wanted = tuple([place for place, each in enumerate(arrays) if library.numpy.issubdtype(each.dtype, np.inexact)])
        given = [g.conj() for g, is_float in zip(leaves(cotangents), floats) if is_float]
        gradient = Gradient(name, function, len(arrays), wanted, floats)
        found = differentiable(f"{name}_gradient", gradient, [*arrays, *given])(*arrays, *given)
        zero = library.dtypes.float0
        return tuple(
            [
                found[wanted.index(place)].conj() if place in wanted else np.zeros(each.shape, zero)
                for place, each in enumerate(arrays)
            ]
        )

    made.defvjp(forward, backward)
    return made


def _traced(function: Callable[..., Any], operands: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return the structure of the results, and their shapes and dtypes for JAX, from tracing alone."""
    library: Any = importlib.import_module("jax")
    arrays = [_array_like(each) for each in operands]
    if isinstance(function, Gradient):
        found: Any = function.results_like(arrays)
    else:
        found = Fused(function).traced_results(*arrays)
    shapes = [library.ShapeDtypeStruct(each._signature.layout.shape, each.dtype) for each in leaves(found)]
    return mapped(found, lambda _: None), shapes


def _array_like(x: Any) -> Array:
    memory: Any = NoMemory()
    layout = Layout.of(tuple([int(size) for size in x.shape]))
    return Array._make(memory, 0, signature_of(layout, dtypes.as_dtype(x.dtype, "jax"), CPU))


def operator_of(function: Fused | Pointwise) -> JaxFunction:
    """Return a fused or pointwise function as a function of JAX."""
    return JaxFunction(function)
