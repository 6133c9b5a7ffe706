"""Methods of other libraries' arrays that `Array` does not have: each is an AttributeError that says what to write.

So is each elementwise function that torch has as a method. A class with ``__getattr__`` would make each access of an
attribute slower, so every name is a descriptor of its own. ``hasattr`` is False for them, and ``dir(x)`` does not list
them.
"""

from __future__ import annotations

from typing import Final

from tilearray.functions.methods import NumPyMethods
from tilearray.missing_names import MissingAttribute
from tilearray.ops import PUBLIC

_CAST = "write x.astype({!r})"
_GRADIENT = "write ta.grad(function)(x)"
_OPS = {op.name: op.arity for op in PUBLIC.values() if not op.part_of and op.name not in ("real", "imag")}
"""The elementwise functions and how many operands they take; `Array` itself has the parts of complex numbers."""
_OF_ONE = (
    *("count_nonzero", "diff", "flip", "fliplr", "flipud", "log_softmax", "logsumexp", "median", "softmax"),
    *("tril", "triu", "unique"),
)
_OF_TWO = ("allclose", "array_equal", "inner", "isin", "kron", "matmul", "outer", "vdot")
_FUNCTIONS = {
    "x": (*(name for name, arity in _OPS.items() if arity == 1), *_OF_ONE),
    "x, y": (*(name for name, arity in _OPS.items() if arity == 2), *_OF_TWO),
}
"""Functions by their operands."""

INSTEAD: Final = {
    **{
        name: f"write ta.{name}({operands})"
        for operands, names in _FUNCTIONS.items()
        for name in names
        if not hasattr(NumPyMethods, name)
    },
    # torch
    "numpy": "write ta.to_numpy(x)",
    "cpu": "write x.to_device('cpu')",
    "cuda": "write x.to_device('cuda')",
    "to": "write x.to_device(device) or x.astype(dtype)",
    "clone": "write x.copy()",
    "detach": "write x: an Array has no gradient",
    "contiguous": "write ta.ascontiguousarray(x)",
    "numel": "write x.size",
    "dim": "write x.ndim",
    "permute": "write x.permute_dims(axes)",
    "unsqueeze": "write ta.expand_dims(x, axis)",
    "half": _CAST.format("float16"),
    "bfloat16": _CAST.format("bfloat16"),
    "float": _CAST.format("float32"),
    "double": _CAST.format("float64"),
    "int": _CAST.format("int32"),
    "long": _CAST.format("int64"),
    "bool": _CAST.format("bool"),
    "backward": _GRADIENT,
    "grad": _GRADIENT,
    "requires_grad": _GRADIENT,
    "t": "write x.T",
    "stride": "write x.strides",
    "norm": "write ta.linalg.norm(x)",
    "clamp": "write x.clip(low, high)",
    "relu": "write ta.maximum(x, 0)",
    "sigmoid": "write ta.expit(x)",
    "topk": "write ta.top_k(x, k)",
    "gather": "write ta.take_along_axis(x, indices, axis)",
    "index_select": "write ta.take(x, indices, axis)",
    "masked_select": "write x[mask]",
    "masked_fill": "write ta.where(mask, value, x)",
    "mm": "write x @ y",
    "sub": "write x - y",
    "mul": "write x * y",
    "div": "write x / y",
    "neg": "write -x",
    "add_": "write x += y",
    "mul_": "write x *= y",
    "zero_": "write x.fill(0)",
    "fill_": "write x.fill(value)",
    "copy_": "write x[...] = y",
    # CuPy, JAX and pandas
    "get": "write ta.to_numpy(x)",
    "to_numpy": "write ta.to_numpy(x)",
    "at": "write x[index] = value: Arrays can be written",
    "block_until_ready": "write ta.cuda.synchronize()",
    # NumPy
    "tostring": "write x.tobytes()",
    "itemset": "write x[index] = value",
    "argpartition": "write ta.argpartition(x, kth)",
    "partition": "write x[...] = ta.partition(x, kth)",
    "choose": "write ta.choose(x, choices)",
    "compress": "write ta.compress(condition, x)",
    "put": "write ta.put(x, indices, values)",
    "resize": "write ta.resize(x, shape), a new array",
}
"""What to write for each name."""


class MissingMethods:
    """The base class of `Array` that has the descriptors."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in INSTEAD]


for _name, _text in INSTEAD.items():
    setattr(MissingMethods, _name, MissingAttribute("Array", _name, _text))
