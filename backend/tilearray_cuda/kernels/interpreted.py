"""Functions that users wrote for Triton, on the host: Triton's interpreter runs them, in a process of its own.

Triton decides when it is imported whether it interprets, so the process of the user cannot do both. The first call
starts the other process, and all calls wait for each other. It ends with the process of the user.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tilearray_cuda.kernels.jit_functions import JitFunctionError
from tilearray_cuda.kernels.source import helpers_of
from tilearray_cuda.kernels.storage import STORAGE
from tilearray_cuda.locks import Lock

PROGRAM = Path(__file__).with_name("interpreter.py")


def on_host(name: str, output: int | None) -> Callable[..., None]:
    """Return ``function(*operands, out=out)``, a function of `jit_functions.TEXTS` on ndarrays and numbers.

    Parameters
    ----------
    name : str
    output : int or None
        Which of its results; None for its only one.
    """
    part = "" if output is None else f"[{output}]"

    def function(*operands: Any, out: np.ndarray) -> None:
        arrays = [np.asarray(each) for each in operands]
        text = _text(name, part, arrays, out.dtype)
        flat = [np.broadcast_to(each, out.shape).ravel() if each.ndim else each for each in arrays]
        out[...] = _process.run(text, flat, out.size, out.dtype).reshape(out.shape)

    return function


def _text(name: str, part: str, arrays: list[np.ndarray], dtype: np.dtype) -> str:
    """Return the kernel of a call over arrays of one axis and numbers."""
    values = [f"tl.load(x{i} + index, mask=inside)" if each.ndim else f"x{i}" for i, each in enumerate(arrays)]
    values = [f"{value} != 0" if each.dtype.kind == "b" else value for value, each in zip(values, arrays)]
    call = f"tl.cast({name}({', '.join(values)}){part}, {STORAGE[dtype.name].register})"
    call = f"{call}.to(tl.int8)" if dtype.kind == "b" else call
    parameters = [f"x{i}" for i in range(len(arrays))]
    lines = [
        "@triton.jit",
        f"def kernel({', '.join(parameters)}, out, n, BLOCK: tl.constexpr):",
        "    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        "    inside = index < n",
        f"    tl.store(out + index, {call}, mask=inside)",
    ]
    return "\n".join([*helpers_of(call), *lines, ""])


class _Process:
    """The process that interprets."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew: a forked child has a process of its own."""
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, text: str, arrays: list[np.ndarray], size: int, dtype: np.dtype) -> np.ndarray:
        """Run a kernel over arrays of `size` elements, and return its result."""
        types = [STORAGE[each.dtype.name].pointer if each.ndim else _TYPES[each.dtype.name] for each in arrays]
        data = [(each.tobytes(), each.ndim == 1, kind) for each, kind in zip(arrays, types)]
        request = text, data, size, (STORAGE[dtype.name].pointer, dtype.itemsize)
        with self._lock:
            process = self._process or self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                pickle.dump(request, process.stdin)
                process.stdin.flush()
                error, found = pickle.load(process.stdout)
            except (OSError, EOFError):
                self._end(process)
                raise JitFunctionError("the process with Triton's interpreter ended; its last lines say why") from None
            except BaseException:  # an interrupt may leave a part of an answer
                self._end(process)
                raise
        if error:
            raise JitFunctionError(f"Triton's interpreter, which runs a Triton function on the host, says: {error}")
        return np.frombuffer(found, dtype)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """End the process; the next call starts another one."""
        self._process = None
        process.kill()
        process.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-P", str(PROGRAM)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        return self._process


_TYPES = {name: storage.argument[0] for name, storage in STORAGE.items() if storage.kind != "bits"}
_TYPES |= {"float16": "fp16"}
_process = _Process()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_process.forget)
