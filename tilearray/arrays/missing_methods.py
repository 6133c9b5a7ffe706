"""Methods of other libraries' arrays that `Array` does not have: each is an AttributeError that says what to write.

A class with ``__getattr__`` would make each access of an attribute slower, so every name is a descriptor of its own.
``hasattr`` is False for them, and ``dir(x)`` does not list them.
"""

from __future__ import annotations

from typing import Final, NoReturn

_CAST = "write x.astype({!r})"

INSTEAD: Final = {
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


class MissingMethod:
    """A method that `Array` does not have."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> NoReturn:
        raise AttributeError(f"Array has no attribute {self.name!r}; {INSTEAD[self.name]}", name=self.name)


class MissingMethods:
    """The base class of `Array` that has the descriptors."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in INSTEAD]


for _name in INSTEAD:
    setattr(MissingMethods, _name, MissingMethod(_name))
