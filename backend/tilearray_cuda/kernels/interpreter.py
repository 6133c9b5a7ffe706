"""The program of the process that interprets: it reads kernels with their arguments, runs them, and writes results.

A request is ``(text, arguments, size, (type, itemsize))``: the text of a kernel, for each argument its bytes, whether
it is an array, and its type in Triton, the number of elements, and the type of the result. An answer is an error's text
and the bytes of the result. The interpreter has no functions of libdevice; those that NumPy has are added.
"""

from __future__ import annotations

import linecache
import math
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

BLOCK = 1 << 16
OTHER_RESULTS = ("isinf", "isnan", "remainder", "signbit")
"""Functions that NumPy defines otherwise than C."""
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "erf": np.vectorize(math.erf, [np.float64]),
    "erfc": np.vectorize(math.erfc, [np.float64]),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "div_rn": np.divide,
}


def run(text: str, arguments: list[tuple[bytes, bool, str]], size: int, result: tuple[str, int]) -> bytes:
    """Run a kernel, and return the bytes of its result."""
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice

    file = f"<tilearray {hash(text):x}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"triton": triton, "tl": tl, "libdevice": libdevice, "__name__": "tilearray_interpreted"}
    exec(compile(text, file, "exec"), names)
    block = min(1 << max(size - 1, 0).bit_length(), BLOCK)
    memory: list[np.ndarray] = []
    values: list[Any] = []
    for data, is_array, type_ in arguments:
        memory.append(np.frombuffer(bytearray(data), np.uint8))
        values.append(_tensor(memory[-1].ctypes.data, type_) if is_array else _number(memory[-1], type_))
    kind, itemsize = result
    out = np.empty(size * itemsize, np.uint8)
    with np.errstate(all="ignore"):
        names["kernel"][(-(-size // block),)](*values, _tensor(out.ctypes.data, kind), size, BLOCK=block)
    return out.tobytes()


def type_of(name: str) -> Any:
    """Return Triton's type of a name such as ``*fp32``."""
    import triton.language as tl

    return tl.str_to_ty(name, None)


def _tensor(address: int, type_: str) -> Any:
    """Return a pointer."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    kind: Any = type_of(type_)
    return tl.tensor(TensorHandle(np.array([address], np.uint64), kind), kind)


def _number(data: np.ndarray, type_: str) -> Any:
    """Return a number of a type."""
    import triton.language as tl
    from triton.runtime import interpreter

    kind: Any = type_of(type_)
    value = data.view(interpreter._get_np_dtype(kind))
    return tl.tensor(interpreter.TensorHandle(value, kind), kind)


def add_functions() -> None:
    """Add the functions of libdevice that NumPy has."""
    from triton.language.extra import libdevice

    shared = {name: getattr(np, name, None) for name in vars(libdevice) if name not in OTHER_RESULTS}
    known = {name: function for name, function in shared.items() if isinstance(function, np.ufunc)}
    for name, function in {**known, **FUNCTIONS}.items():
        setattr(libdevice, name, _on_tensors(function))


def _on_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors and numbers, in the dtype of the first tensor."""

    def apply(*operands: Any) -> Any:
        import triton.language as tl
        from triton.runtime.interpreter import TensorHandle

        first = next(each for each in operands if isinstance(each, tl.tensor))
        arrays = [each.handle.data if isinstance(each, tl.tensor) else each for each in operands]
        found = np.asarray(function(*[getattr(each, "value", each) for each in arrays]))
        scalar = first.dtype.scalar
        kind = tl.block_type(scalar, list(found.shape)) if found.ndim else scalar
        return tl.tensor(TensorHandle(found.astype(first.handle.data.dtype), scalar), kind)

    return apply


def main() -> None:
    """Answer requests until the user's process ends. What kernels print goes to the standard error."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    add_functions()
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        try:
            answer: tuple[str, bytes] = "", run(*request)
        except Exception as error:
            answer = f"{type(error).__name__}: {error}", b""
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
