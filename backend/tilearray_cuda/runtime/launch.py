"""Functions loaded from cubins, and how a launch passes arguments: pop a frame, pack it, launch, return the frame.

The driver takes the addresses of a kernel's arguments and a configuration: grid, block, shared memory, stream. A frame
is memory for all of these. One ``pack_into`` writes the parts that a launch changes:

=============  =======================================================================================  ===========
part           holds                                                                                    written
=============  =======================================================================================  ===========
values         addresses of operands, numbers                                                           by a launch
fixed          extents and strides, two null pointers, then the configuration's grid, block and shared  by a launch
               memory: `Arguments.fix` packs them for a loop's plan, and a launch copies the bytes
stream         the configuration's stream                                                               by a launch
rest           no launch attributes; the address of each argument                                       once
=============  =======================================================================================  ===========

So the frames of a kernel serve all of its loops and streams. **A launch pops its frame, and never shares it**: the
driver call releases the GIL, and a second thread could overwrite the arguments before the driver reads them. Frames are
parts of slabs, and keep them alive. A KeyboardInterrupt right after the pop loses one frame.

Each argument has 8 bytes. The null pointers are Triton's scratch memory. `Function.parameters` is the number of
parameters that the kernel takes, so a wrong count is an error of the plan, not a crash of the GPU.

ctypes calls the launch, with objects made beforehand. This takes half the time of cuda-bindings' function, which makes
objects of its arguments and of the status: see `python -m benchmarks.launches`.

A launch does not set the context, which would cost a fifth of the launch. In a thread without a context, or with
another device's context, the launch fails without harm, and `Arguments.relaunch` repeats it in the right context.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from tilearray_cuda.errors import CudaError
from tilearray_cuda.kernels.cubin import Cubin
from tilearray_cuda.locks import Lock
from tilearray_cuda.runtime.driver import (
    STREAMS,
    SUCCESS,
    WRONG_CONTEXT,
    AnyCapture,
    Current,
    after_fork,
    api,
    c_function,
    call,
    check_capture,
    failure,
    status_of,
)
from tilearray_cuda.runtime.gpu import Gpu

WARP = 32
SCRATCH_POINTERS = 2
SHARED_WITHOUT_ASKING = 48 << 10
MOST_PROGRAMS = 2**31 - 1
SLAB = 64 << 10
SPARE_FRAMES = 3
"""The number of frames of a new kernel: a list that is never empty keeps its memory."""
MAX_PARAMETERS = 512  # every driver accepts 4 KB of arguments
_WORD = 8

# CUlaunchConfig: grid and block along three axes, bytes of shared memory; the stream; attributes and their number
_PROGRAMS = "I"
_GRID_TO_SHARED = "=6I4x"
_STREAM = "P"
_ATTRIBUTES = "16x"

Frame = tuple[ctypes.Array[Any], int, Any, Any]
"""The slab, the start of the arguments in it, and references to the configuration and to the arguments' addresses."""


def reference(address: int) -> Any:
    """Return an address in the form that ctypes passes without a conversion."""
    return ctypes.byref(ctypes.c_char.from_address(address))


class Function:
    """A kernel on one GPU, bound to its context. It stays loaded, because unloading would wait for the GPU.

    `launch` is the driver's ``cuLaunchKernelEx``. It takes references to a configuration, to the function and to the
    addresses of its arguments, and None. Written calls (`call_source`) use `device` as a `CudaDevice`, with its memory.
    """

    __slots__ = ("device", "handle", "launch", "module", "name", "parameters", "reference", "shared", "threads")

    def __init__(self, device: Gpu, module: Any, handle: Any, cubin: Cubin) -> None:
        self.device = device
        self.module = module
        self.handle = handle
        self.reference = reference(int(handle))
        self.launch = c_function("cuLaunchKernelEx")
        self.name = cubin.name
        self.shared = cubin.shared
        self.threads = WARP * cubin.num_warps
        self.parameters = _count_parameters(handle)


def load_function(device: Gpu, cubin: Cubin) -> Function:
    """Load a kernel on a device.

    Raises
    ------
    CudaError
        If it needs more shared memory than the device has, or the driver refuses it.
    """
    if cubin.shared > device.shared_memory:
        raise CudaError(
            f"load_function: {cubin.name} needs {cubin.shared} bytes of shared memory, and cuda:{device.index} "
            f"({device.name}) has {device.shared_memory} bytes for a block"
        )
    with Current(device.context), AnyCapture():
        module = call(api.cuModuleLoadData, cubin.code)
        handle = call(api.cuModuleGetFunction, module, cubin.name.encode())
        _ask_for_shared_memory(handle, cubin.shared)
    return Function(device, module, handle, cubin)


def _ask_for_shared_memory(handle: Any, size: int) -> None:
    """Let a function have `size` bytes of shared memory beside those that its assembly declares."""
    attribute = api.CUfunction_attribute
    declared = call(api.cuFuncGetAttribute, attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, handle) if size else 0
    if size + declared > SHARED_WITHOUT_ASKING:
        call(api.cuFuncSetAttribute, handle, attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, size)


def _count_parameters(handle: Any) -> int | None:
    """Return the number of a function's parameters; None if the driver gives no answer."""
    for count in range(MAX_PARAMETERS):
        status = api.cuFuncGetParamInfo(handle, count)[0]
        if status is not SUCCESS:
            return count if status == api.CUresult.CUDA_ERROR_INVALID_VALUE else None
    return None


def zero(device: Gpu, pointer: int, nbytes: int, stream: int) -> None:
    """Fill device memory with zeros, a multiple of 4 bytes."""
    check_capture(stream)
    with Current(device.context):
        call(api.cuMemsetD32Async, pointer, 0, nbytes // 4, STREAMS[stream])


class _Slab:
    """Memory of frames."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Start with a new slab and a new lock: after a fork, a thread that no longer exists may hold the old lock."""
        self._lock = Lock()
        self._use_another()

    def _use_another(self) -> None:
        self._slab: ctypes.Array[Any] = (ctypes.c_ubyte * SLAB)()
        self._first = ctypes.addressof(self._slab)
        self._used = 0

    def carve(self, nbytes: int) -> tuple[ctypes.Array[Any], int, int]:
        """Return a slab, the offset of `nbytes` free bytes in it, and their address."""
        with self._lock:
            if self._used + nbytes > SLAB:
                self._use_another()
            start = self._used
            self._used += nbytes
            return self._slab, start, self._first + start


_slab = _Slab()
after_fork.append(_slab.renew)


class Arguments:
    """The format of a function's arguments, which all of its launches share; checked once.

    Parameters
    ----------
    function : Function
    formats : sequence of str
        A native `struct` format of 8 bytes for each value of a launch: "P", "q", "d", "f4x", "b7x", ...
    constant_formats : sequence of str
        Formats of the arguments after them, which a loop fixes.

    Attributes
    ----------
    frames : list of Frame
        The frames that no launch uses.
    pack : callable
        ``pack(slab, start, *values, fixed, stream)``.
    pack_fixed : callable
        ``pack_fixed(*constants, programs, block) -> fixed``: as `fix`, without its check of the number of programs.
    block : bytes
        The part of the configuration that is the same for all loops.

    Raises
    ------
    CudaError
        If the function takes a different number of arguments.
    """

    __slots__ = ("_count", "_fixed", "_values", "block", "frames", "function", "pack", "pack_fixed")

    def __init__(self, function: Function, formats: Sequence[str], constant_formats: Sequence[str]) -> None:
        slots = [*formats, *constant_formats]
        if any(struct.calcsize(slot) != _WORD for slot in slots):
            raise CudaError(f"Arguments: {function.name}: expected struct formats of 8 bytes, got {slots}")
        count = len(slots) + SCRATCH_POINTERS
        if function.parameters not in (None, count):
            raise CudaError(
                f"Arguments: {function.name} takes {function.parameters} arguments, and the launch would pass {count}, "
                f"{SCRATCH_POINTERS} of them scratch pointers; this version of triton passes arguments differently: "
                f"install a version that tilearray supports"
            )
        self.function = function
        self._count = count
        self.block = struct.pack(_GRID_TO_SHARED, 1, 1, function.threads, 1, 1, function.shared)
        block = f"{len(self.block)}s"
        self._fixed = struct.Struct("".join(constant_formats) + SCRATCH_POINTERS * "8x" + _PROGRAMS + block)
        self._values = struct.Struct("".join(formats) + f"{self._fixed.size}s" + _STREAM)
        self.pack = self._values.pack_into
        self.pack_fixed = self._fixed.pack
        self.frames: list[Frame] = [self.frame() for _ in range(SPARE_FRAMES)]

    def fix(self, programs: int, constants: Sequence[int | float]) -> bytes:
        """Return the bytes that a loop fixes: its constant arguments and the configuration of its launches.

        Raises
        ------
        CudaError
            If the number of programs is too large.
        """
        if not 0 < programs <= MOST_PROGRAMS:
            raise CudaError(f"Arguments: {self.function.name}: expected 1 to {MOST_PROGRAMS} programs, got {programs}")
        return self.pack_fixed(*constants, programs, self.block)

    def frame(self) -> Frame:
        """Return a new frame, complete except for the part that `pack` writes."""
        count, packed = self._count, self._values.size
        rest = struct.Struct(f"{_ATTRIBUTES}{count}P")
        slab, start, first = _slab.carve(packed + rest.size)
        rest.pack_into(slab, start + packed, *range(first, first + count * _WORD, _WORD))
        addresses = first + packed + struct.calcsize(_ATTRIBUTES)
        return slab, start, reference(first + count * _WORD), reference(addresses)

    def relaunch(self, code: int, frame: Frame, fixed: bytes, stream: int) -> None:
        """Repeat a launch in the right context if the wrong one may be the cause of the failure; else raise."""
        function, status = self.function, status_of(code)
        if status in WRONG_CONTEXT:
            error = failure("cuLaunchKernelEx", status)
            if type(error) is not CudaError:  # in a forked child
                raise error
            with Current(function.device.context):
                status = status_of(function.launch(frame[2], function.reference, frame[3], None))
        if status is not SUCCESS:
            error = failure("cuLaunchKernelEx", status)
            programs = self._fixed.unpack(fixed)[-2]
            error.args = (f"{error.args[0]} (kernel {function.name}, {programs} programs, stream {stream:#x})",)
            raise error
