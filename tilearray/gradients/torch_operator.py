"""`f.torch`: a fused or pointwise function as an operator of torch, with autograd, fake tensors and vmap.

The operator is a `torch.library.custom_op`, so `torch.compile` takes it as one node of its graph, and autograd calls
its gradient, which is an operator, too, and so has a gradient of its own. Its fake kernel traces the function on arrays
without memory: shapes, dtypes and strides of the results are those of the call. One operator of torch has one schema,
so a function has one for each combination of tensors and numbers with which it is called.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilearray import dtypes
from tilearray.arrays.array import Array
from tilearray.arrays.frameworks import called, is_foreign
from tilearray.arrays.fusion.containers import leaves, mapped
from tilearray.arrays.fusion.fuse import Fused
from tilearray.arrays.fusion.pointwise import Pointwise
from tilearray.engine.devices import CPU
from tilearray.engine.signature import signature_of
from tilearray.errors import OperandError, type_name
from tilearray.geometry.layout import Layout
from tilearray.gradients.gradient import Gradient, NoMemory
from tilearray.gradients.steps import FLOATS

_KINDS: dict[type, str] = {bool: "bool", int: "int", float: "float", complex: "complex"}
_NUMBER = itertools.count(1)


class Meta(NamedTuple):
    """What a fake kernel says of a result."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype


class Operator:
    """A function of arrays as an operator of torch. Call it with tensors, numbers, and lists and dicts of them.

    Attributes
    ----------
    function : callable
        The fused or pointwise function.
    """

    def __init__(self, function: Fused | Pointwise) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._operators: dict[Any, Callable[..., Any]] = {}
        self._by_class: dict[tuple[type, ...], Callable[..., Any]] = {}  # of calls with tensors and numbers alone
        self._call = importlib.import_module("torch").compiler.allow_in_graph(self._run)  # whole, with its checks

    def __repr__(self) -> str:
        return f"<torch operator of {self.function!r}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function on tensors."""
        return self._call(*args, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        classes = tuple(map(type, args))
        call = None if kwargs else self._by_class.get(classes)
        if call is not None:
            return call(*args)
        given = list(leaves((args, kwargs)))
        kinds = tuple([_kind(each) for each in given])
        key = (str(mapped((args, kwargs), _no_value)), kinds)
        call = self._operators.get(key)
        if call is None:
            call = self._operators[key] = self._new(args, kwargs, given)
        if not kwargs and all(kind in _KINDS or _is_tensor(each) for kind, each in zip(classes, args)):
            self._by_class[classes] = call
        return call(*[each for each in given if not _is_constant(each)])

    def _new(self, args: Any, kwargs: Any, given: Sequence[Any]) -> Callable[..., Any]:
        """Make the operator for arguments of one structure."""
        constants = {place: each for place, each in enumerate(given) if _is_constant(each)}
        if not kwargs and len(given) == len(args) and not constants:
            return Operation(self._name, self.function, given, spreads=isinstance(self.function, Pointwise)).call
        if len(given) == len(constants):
            raise OperandError(f"{self._name}.torch: expected at least one tensor, got none; write torch.tensor(x)")
        like = mapped((args, kwargs), _no_value)

        def flat(*operands: Any) -> Any:
            waiting, numbered = iter(operands), itertools.count()

            def value(_: Any) -> Any:
                place = next(numbered)
                return constants[place] if place in constants else next(waiting)

            all_args, all_kwargs = mapped(like, value)
            return self.function(*all_args, **all_kwargs)

        operands = [each for place, each in enumerate(given) if place not in constants]
        found = Operation(self._name, flat, operands, spreads=isinstance(self.function, Pointwise))
        return found.call

    @property
    def _name(self) -> str:
        return str(getattr(self.function, "__name__", "function"))


def _kind(value: Any) -> str:
    """What an operator depends on: that an argument is a tensor, the type of a number, or another value itself."""
    if type(value) in _KINDS:
        return _KINDS[type(value)]
    if _is_tensor(value):
        return "tensor"
    if value is None or isinstance(value, str):
        return f"{value!r}"
    raise OperandError(f"torch: expected tensors and numbers, got {type_name(value)}; write torch.as_tensor(x)")


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch" or is_foreign(value)


def _is_constant(value: Any) -> bool:
    return type(value) not in _KINDS and not _is_tensor(value)


def _no_value(value: Any) -> None:
    del value


class Operation:
    """One custom operator of torch, and its gradients.

    Attributes
    ----------
    call : callable
        The function of tensors and numbers.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], operands: Sequence[Any], *, spreads: bool = False
    ) -> None:
        torch: Any = importlib.import_module("torch")
        self._torch = torch
        self._name = name
        self._function = function
        self._is_tensor = [_is_tensor(each) for each in operands]
        self._gradients: dict[Any, Operation] = {}
        self._like, metas = self._traced(operands)
        self._floats = [dtypes.info(meta.dtype).kind in FLOATS for meta in metas]
        self._count = len(metas)
        places = [f"x{place}" for place in range(len(operands))]
        kinds = ["Tensor" if tensor else _KINDS[type(each)] for each, tensor in zip(operands, self._is_tensor)]
        results = "Tensor" if self._count == 1 else f"({', '.join(['Tensor'] * self._count)})"
        schema = f"({', '.join(f'{kind} {place}' for kind, place in zip(kinds, places))}) -> {results}"
        word = re.sub(r"\W", "_", name)
        made = torch.library.custom_op(f"tilearray::{word}_{next(_NUMBER)}", self._run, mutates_args=(), schema=schema)
        made.register_fake(self._fake)
        made.register_autograd(self._backward, setup_context=self._setup)
        if spreads:
            made.register_vmap(self._vmap)
        self._op: Any = made

    def call(self, *operands: Any) -> Any:
        """Run the operator, and return its results in the structure of the function's."""
        found = self._op(*operands)
        if self._like is None:
            return found
        results = iter((found,) if self._count == 1 else found)
        return mapped(self._like, lambda _: next(results))

    # ------------------------------------------------------------------ what torch calls

    def _run(self, *operands: Any) -> Any:
        plain = tuple(
            [
                each.detach() if tensor and each.requires_grad else each
                for each, tensor in zip(operands, self._is_tensor)
            ]
        )
        found = called(self._function, plain, {})
        results = [found] if self._like is None else list(leaves(found))
        taken = {each.untyped_storage().data_ptr() for each, tensor in zip(plain, self._is_tensor) if tensor}
        owned: list[Any] = []
        for each in results:  # an operator returns neither an operand nor one memory twice
            address = each.untyped_storage().data_ptr()
            owned.append(each.clone() if address in taken and each.numel() else each)
            taken.add(address)
        if isinstance(self._function, Gradient) and not self._function.fuses:
            owned = [each.contiguous() for each in owned]
        return owned[0] if self._count == 1 else tuple(owned)

    def _fake(self, *operands: Any) -> Any:
        _, metas = self._traced(operands)
        first = next(each for each, tensor in zip(operands, self._is_tensor) if tensor)
        made = [
            self._torch.empty_strided(
                meta.shape, meta.strides, dtype=getattr(self._torch, meta.dtype.name), device=first.device
            )
            for meta in metas
        ]
        return made[0] if self._count == 1 else tuple(made)

    def _setup(self, ctx: Any, inputs: Any, output: Any) -> None:
        outputs = (output,) if self._count == 1 else output
        ctx.save_for_backward(*[each for each, tensor in zip(inputs, self._is_tensor) if tensor])
        ctx.numbers = [None if tensor else each for each, tensor in zip(inputs, self._is_tensor)]
        ctx.mark_non_differentiable(*[each for each, is_float in zip(outputs, self._floats) if not is_float])
        ctx.results = [(each.shape, each.dtype, each.device) for each in outputs]

    def _backward(self, ctx: Any, *cotangents: Any) -> Any:
        tensors = iter(ctx.saved_tensors)
        operands = [next(tensors) if tensor else number for tensor, number in zip(self._is_tensor, ctx.numbers)]
        wanted = tuple([place for place, needed in enumerate(ctx.needs_input_grad) if needed])
        if not wanted:
            return (None,) * len(operands)
        given = [
            self._torch.zeros(shape, dtype=dtype, device=device) if g is None else g
            for g, (shape, dtype, device), is_float in zip(cotangents, ctx.results, self._floats)
            if is_float
        ]
        found = self._gradient(wanted, operands, given).call(*operands, *given)
        return tuple([found[wanted.index(place)] if place in wanted else None for place in range(len(operands))])

    def _vmap(self, info: Any, in_dims: Any, *operands: Any) -> Any:
        """Run on operands with one more axis: a pointwise function broadcasts it."""
        del info
        rank = max(
            [each.ndim - (axis is not None) for each, axis, tensor in zip(operands, in_dims, self._is_tensor) if tensor]
        )
        moved = list(operands)
        for place, (each, axis) in enumerate(zip(operands, in_dims)):
            if axis is not None:
                front = each.movedim(axis, 0)
                moved[place] = front.reshape(front.shape[:1] + (1,) * (rank + 1 - front.ndim) + front.shape[1:])
        found = self._op(*moved)
        return found, 0 if self._count == 1 else (0,) * self._count

    # ------------------------------------------------------------------ gradients

    def _gradient(self, wanted: tuple[int, ...], operands: Sequence[Any], cotangents: Sequence[Any]) -> Operation:
        """Return the operator of the gradients of some operands."""
        found = self._gradients.get(wanted)
        if found is None:
            count = len(operands)
            function = Gradient(self._name, self._function, count, wanted, self._floats)
            name, given = f"{self._name}_gradient", [*operands, *cotangents]
            found = Operation(name, function, given)
            self._gradients[wanted] = found
        return found

    # ------------------------------------------------------------------ fake results

    def _traced(self, operands: Sequence[Any]) -> tuple[Any, list[Meta]]:
        """Return the structure of the results, and what they are, from tracing alone."""
        arrays = [_array_like(each) if tensor else each for each, tensor in zip(operands, self._is_tensor)]
        if isinstance(self._function, Gradient):
            results: Any = self._function.results_like(arrays)
            if not self._function.fuses:
                return mapped(results, _no_value), [_dense(each) for each in results]
        else:
            results = Fused(self._function).traced_results(*arrays)
        metas = [
            Meta(each._signature.layout.shape, each._signature.layout.strides, each.dtype) for each in leaves(results)
        ]
        return mapped(results, _no_value), metas


def _dense(array: Any) -> Meta:
    layout = Layout.of(array.shape)
    return Meta(layout.shape, layout.strides, array.dtype)


def _array_like(tensor: Any) -> Array:
    """Return an array without memory that has the dtype, shape and strides of a tensor."""
    layout = Layout(tuple([int(size) for size in tensor.shape]), tuple([int(stride) for stride in tensor.stride()]))
    memory: Any = NoMemory()
    return Array._make(memory, 0, signature_of(layout, dtypes.as_dtype(tensor.dtype, "torch"), CPU))


def operator_of(function: Fused | Pointwise) -> Operator:
    """Return a fused or pointwise function as an operator of torch."""
    return Operator(function)
