"""Pointwise functions that are written for Triton: a ``@triton.jit`` function of blocks, called by generated kernels.

A call of the function is one node of an expression for each of its results. The backend carries the text of the
function into the kernels (`tilearray_cuda.kernels.jit_functions`), so a fused function may contain it. On the host it
runs in Triton's interpreter, in a process of its own: slowly, and with a warning.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tilearray import dtypes as dt
from tilearray.arrays.fusion.schema import Schema
from tilearray.engine.context import STATE
from tilearray.engine.devices import Device
from tilearray.engine.execute import run_fixed
from tilearray.engine.expression import ExpressionBuilder
from tilearray.engine.operation import FixedOperation
from tilearray.engine.signature import ArrayBase
from tilearray.errors import DTypeError, FusionError, frames_of_the_library
from tilearray.promotion.scalars import classify

_KINDS = frozenset(("bool", "int", "uint", "float"))
_WIDEST_BITS = 8
"""Floats of at most so many bits are bytes to a kernel."""


def _backend() -> Any:
    return importlib.import_module("tilearray_cuda.kernels.jit_functions")


class Jitted:
    """A ``@triton.jit`` function as the function of a pointwise function.

    Attributes
    ----------
    function : triton.runtime.jit.JITFunction
    python : callable
        The Python function with its text.
    """

    def __init__(self, function: Any) -> None:
        if not _backend().is_jit_function(function):
            raise FusionError(
                f"pointwise: expected a Python function or a @triton.jit function, got {type(function).__name__}; "
                f"write @ta.pointwise(...) over @triton.jit alone"
            )
        self.function = function
        self.python: Callable[..., Any] = function.fn
        self._name: str | None = None
        self._warned = False

    def check(self, schema: Schema) -> None:
        """Raise FusionError if a schema does not fit the function."""
        name = schema.name
        if not schema.promotion:
            raise FusionError(
                f"pointwise: expected promotion for {name}, a @triton.jit function, which has no dtype of its result; "
                f'write promotion=[(0, "default")]'
            )
        constants = self._asked("constants_of", self.function)
        if constants:
            raise FusionError(
                f"pointwise: {constants[0]} of {name} is a tl.constexpr, and numbers are never compiled in; write "
                f"{constants[0]} without it"
            )
        results = self._asked("results_of", self.function)
        if results is not None and results != schema.outputs:
            raise FusionError(
                f"pointwise: expected {schema.outputs} results of {name}, one for each entry of promotion, got "
                f"{results}; write promotion with {results or 1} entries"
            )

    def _asked(self, question: str, function: Any) -> Any:
        backend = _backend()
        try:
            return getattr(backend, question)(function)
        except backend.JitFunctionError as error:
            raise FusionError(f"pointwise: {error}") from None

    def _reporting(self, function: Callable[..., None]) -> Callable[..., None]:
        """Return a function of the host that raises FusionError if the interpreter fails."""
        failure: Any = _backend().JitFunctionError

        def call(*operands: Any, out: np.ndarray) -> None:
            try:
                function(*operands, out=out)
            except failure as error:
                raise FusionError(f"pointwise: {error}") from None

        return call

    def name(self) -> str:
        """Return the name of the function in kernels, which has a hash of all that it computes."""
        if self._name is None:  # it may call a function that is defined after it
            self._name = str(self._asked("carried", self.function))
        return self._name

    def results(self, schema: Schema, compute: np.dtype, casted: Sequence[Any], positions: Sequence[int]) -> list[Any]:
        """Return the results for traced operands, in the dtype of the computation.

        A number at one of `positions` has this dtype. Another one has its declared dtype, or that of an operation on
        this dtype and the number.
        """
        dtypes = [
            operand._signature.dtype
            if isinstance(operand, ArrayBase)
            else _dtype_of_number(schema, place, operand, compute, positions)
            for place, operand in enumerate(casted)
        ]
        for operand, dtype in zip([*schema.names, "the result"], [*dtypes, compute]):
            facts = dt.info(dtype)
            if facts.kind not in _KINDS or (facts.kind == "float" and facts.bits <= _WIDEST_BITS):
                raise DTypeError(
                    f"{schema.name}: a Triton function takes bools, integers and floats of at least 16 bits, got "
                    f"{dtype.name} for {operand}; write a promotion with {operand}, or a Python function"
                )
        device = next(each._signature.device for each in casted if isinstance(each, ArrayBase))
        self._prepare(schema, device, dtypes)
        kinds = tuple([isinstance(operand, ArrayBase) for operand in casted])
        return [
            run_fixed(_operation(schema.name, self.name(), kinds, tuple(dtypes), compute, output), list(casted), None)
            for output in ([None] if schema.outputs == 1 else range(schema.outputs))
        ]

    def _prepare(self, schema: Schema, device: Device, dtypes: Sequence[np.dtype]) -> None:
        """Let the host find the function, and warn once."""
        if not device.backend.on_host:
            return
        if any(dtype.name == "bfloat16" for dtype in dtypes):
            raise DTypeError(
                f"{schema.name}: a Triton function runs on the host in Triton's interpreter, which has no bfloat16; "
                f'write promotion with "default", or a Python function'
            )
        host = importlib.import_module("tilearray_cuda.kernels.interpreted")
        add = importlib.import_module("tilearray_host.functions").add
        for output in [None] if schema.outputs == 1 else range(schema.outputs):
            add(_named(self.name(), output), self._reporting(host.on_host(self.name(), output)))
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{schema.name} is written for Triton, and runs on the host in Triton's interpreter, which is slow; "
                f"move its operands to a GPU, or write a Python function",
                RuntimeWarning,
                stacklevel=frames_of_the_library(),
            )


def _dtype_of_number(schema: Schema, place: int, number: Any, compute: np.dtype, positions: Sequence[int]) -> np.dtype:
    declared = schema.number_types[place]
    if isinstance(declared, np.dtype):
        return declared
    if place in positions:
        return compute
    if isinstance(number, bool):
        return np.dtype(np.bool_)
    found = classify(number)
    assert found is not None  # the call has checked it
    return STATE.get().semantics.decide([compute, found], schema.name, [])


def _named(name: str, output: int | None) -> str:
    return name if output is None else f"{name}_{output}"


@lru_cache(1024)
def _operation(
    function: str,
    name: str,
    arrays: tuple[bool, ...],
    dtypes: tuple[np.dtype, ...],
    compute: np.dtype,
    output: int | None,
) -> FixedOperation:
    """Return the operation of one result."""
    storage = importlib.import_module("tilearray_cuda.kernels.storage").STORAGE
    builder = ExpressionBuilder()
    nodes = [builder.array(dtype) if array else builder.number(dtype) for array, dtype in zip(arrays, dtypes)]
    template = _backend().template_of(name, len(nodes), output, storage[compute.name].register)
    node = builder.call(_named(name, output), tuple(nodes), compute, template)
    return FixedOperation(function, builder.build([node], [compute]))
