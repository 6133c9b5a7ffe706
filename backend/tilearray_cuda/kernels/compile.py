"""Triton source -> cubin, without torch and without a GPU. Only this module imports triton, and only to compile.

We do not use Triton's JIT, its launcher and its disk cache: the launcher needs a C compiler at run time, and a hit in
the disk cache still costs the import. ``enable_fp_fusion=False`` and ``enable_reflect_ftz=False`` are part of the
library's contract: no operation is contracted into fma, unless a function asks for it, and denormals survive.
"""

from __future__ import annotations

import functools
import linecache
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, NamedTuple

from tilearray_cuda.kernels import disk_cache
from tilearray_cuda.kernels.hardware import VECTOR
from tilearray_cuda.kernels.source import Source
from tilearray_cuda.locks import Lock

_lock = Lock()


def _renew_lock() -> None:
    """Make a new lock in a forked child, where the thread that compiles may not exist."""
    global _lock
    _lock = Lock()


os.register_at_fork(after_in_child=_renew_lock)


def options_of(source: Source, contract: bool) -> tuple[tuple[str, object], ...]:
    """Return Triton's options for a source."""
    stages = (("num_stages", source.tile.stages),) if source.tile.stages else ()
    registers = (("maxnreg", source.tile.registers),) if source.tile.registers else ()
    return (
        ("enable_fp_fusion", contract),
        ("enable_reflect_ftz", False),
        ("num_warps", source.tile.warps),
        *stages,
        *registers,
    )


def cubin_of(source: Source, arch: int, contract: bool = False) -> disk_cache.Cubin:
    """Return the machine code of a source from memory or disk, or compile it.

    `contract` says whether a product and a sum may be one fma.
    """

    def make() -> disk_cache.Cubin:
        made = compile_source(source, arch, contract)
        return disk_cache.Cubin(made.cubin, made.name, made.num_warps, made.shared)

    return disk_cache.load_or_compile(source.text, arch, identity_of(source, contract), source.label, make)


def identity_of(source: Source, contract: bool = False) -> tuple[tuple[str, object], ...]:
    """Return the facts that decide a kernel's code beside its text and the architecture; see `disk_cache.key_of`."""
    arguments = tuple(tuple(argument) for argument in source.arguments)
    return (*options_of(source, contract), ("arguments", arguments), ("constants", source.constants))


class Compiled(NamedTuple):
    """The compiler's output for a source."""

    cubin: bytes
    ptx: str
    name: str
    num_warps: int
    shared: int


def compile_source(source: Source, arch: int, contract: bool = False) -> Compiled:
    """Compile a generated kernel for an architecture such as 90. A process compiles one kernel at a time.

    Raises
    ------
    RuntimeError
        If the kernel needs scratch memory in global memory, because the launcher does not provide it.
    """
    with _lock, _scratch() as scratch:
        os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")
        kernel = _compile(source, arch, contract, scratch)
    metadata = kernel.metadata
    if metadata.global_scratch_size:
        raise RuntimeError(
            f"compile_source: {source.name} needs {metadata.global_scratch_size} bytes of global scratch memory, and "
            f"the launcher provides none; write the kernel without it"
        )
    shared = -(-metadata.shared // VECTOR) * VECTOR + source.memory if source.memory else metadata.shared
    return Compiled(kernel.asm["cubin"], kernel.asm["ptx"], metadata.name, metadata.num_warps, shared)


@contextmanager
def _scratch() -> Iterator[str]:
    """Make a folder for Triton's files, and remove it after the compilation.

    `tempfile.TemporaryDirectory` removes folders through descriptors. Up to Python 3.12 it closes a descriptor twice if
    an interrupt comes right after the first close. Then an OSError replaces the interrupt, or another thread's file is
    closed. No other user can write in this folder, so we remove it through paths.
    """
    import tempfile  # not needed on a cache hit

    folder = tempfile.mkdtemp(prefix="tilearray-triton-")
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: str) -> None:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            _remove(path)
        else:
            os.unlink(path)
    os.rmdir(folder)


def _compile(source: Source, arch: int, contract: bool, scratch: str) -> Any:
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature = {argument.name: argument.type for argument in source.arguments}
    signature |= {name: "constexpr" for name, _ in source.constants}
    attributes = {
        (position,): [["tt.divisibility", argument.divisor]]
        for position, argument in enumerate(source.arguments)
        if argument.divisor > 1
    }
    ast_source = ASTSource(
        fn=jit_function(source), signature=signature, constexprs=dict(source.constants), attrs=attributes
    )
    with knobs.cache.scope():
        knobs.cache.dir = scratch
        return _compile_without_a_key()(
            ast_source, target=GPUTarget("cuda", arch, 32), options=dict(options_of(source, contract))
        )


@functools.cache
def _compile_without_a_key() -> Callable[..., Any]:
    """Return ``triton.compile`` with a constant key, because each kernel is alone in its folder.

    Triton's own key includes a hash of its library of hundreds of megabytes. The hash took two thirds of a process's
    first compilation. This is the same function with another ``get_cache_key``. It does not change Triton: other
    kernels that Triton compiles keep their keys.

    Raises
    ------
    RuntimeError
        If Triton is older than 3.6: it ignores ``enable_reflect_ftz``, and float32 quotients and roots lose denormals.
    """
    import triton
    from triton.backends.nvidia.compiler import CUDAOptions

    if not hasattr(CUDAOptions, "enable_reflect_ftz"):
        raise RuntimeError(
            f"compile_source: expected Triton 3.6 or newer, got {triton.__version__}, whose float32 functions flush "
            "denormals to zero; write pip install 'triton>=3.6'"
        )
    names = {**triton.compile.__globals__, "get_cache_key": lambda *_, **__: "the only kernel of its folder"}
    return FunctionType(triton.compile.__code__, names, argdefs=triton.compile.__defaults__)


def jit_function(source: Source) -> Any:
    """Return the ``@triton.jit`` function of a source. Triton reads the text from ``linecache``."""
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice

    file = f"<tilearray {source.name} {hash(source.text):x}>"
    linecache.cache[file] = (len(source.text), None, source.text.splitlines(True), file)
    names: dict[str, Any] = {"triton": triton, "tl": tl, "libdevice": libdevice, "__name__": f"tilearray_{source.name}"}
    exec(compile(source.text, file, "exec"), names)
    return names[source.name]
