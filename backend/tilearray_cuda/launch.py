"""Functions loaded from cubins, and launches of them: pop an argument frame, pack it, launch, put it back.

A kernel takes addresses of its arguments, so a launch needs memory for the arguments and for their addresses. A frame
has both; its addresses and the arguments that a plan does not change are written once. **A frame is popped, never
shared**: the driver call releases the GIL, and a second thread would overwrite arguments that the first one has not yet
handed over. Frames are carved from slabs, which they keep alive.

Every argument has 8 bytes. Behind those that the caller knows stand two null pointers, Triton's scratch memory (Triton
3.5 and later; `Function.parameters` says how many the kernel really takes, so that a wrong count is an error at the
time of planning and not a crash of the GPU).

The context is tried, not set: a call to set it would cost a fifth of the launch. Where a thread has no context, or that
of another device, the launch fails without harm, and is made again in the right one.

`Arguments` checks once for a kernel what all of its launches share; a `Launcher` is one grid and its constants.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilearray_cuda.driver import (
    STREAMS,
    SUCCESS,
    WRONG_CONTEXT,
    AnyCapture,
    Current,
    api,
    call,
    check_capture,
    failure,
)
from tilearray_cuda.errors import CudaError

if TYPE_CHECKING:
    from tilearray_cuda.cubin import Cubin
    from tilearray_cuda.device import CudaDevice

WARP = 32
SCRATCH_POINTERS = 2
SHARED_WITHOUT_ASKING = 48 << 10
GRID_LIMITS = (2**31 - 1, 65535, 65535)
SLAB = 64 << 10
MAX_PARAMETERS = 512  # 4 KB of arguments, which every driver takes
_WORD = 8
_SCRATCH = (0,) * SCRATCH_POINTERS

Frame = tuple[ctypes.Array[Any], int, int]
"""The slab, where in it the arguments begin, and the address of their addresses."""


class Function:
    """A kernel on one device, bound to its context. It stays loaded: unloading would wait for the device."""

    __slots__ = ("device", "handle", "module", "name", "parameters", "shared", "threads")

    def __init__(self, device: CudaDevice, module: Any, handle: Any, cubin: Cubin) -> None:
        self.device = device
        self.module = module
        self.handle = handle
        self.name = cubin.name
        self.shared = cubin.shared
        self.threads = WARP * cubin.num_warps
        self.parameters = _count_parameters(handle)


def load_function(device: CudaDevice, cubin: Cubin) -> Function:
    """Load a kernel on a device.

    Raises
    ------
    CudaError
        If it needs more shared memory than the device has, or the driver does not take it.
    """
    if cubin.shared > device.shared_memory:
        raise CudaError(
            f"load_function: {cubin.name} needs {cubin.shared} bytes of shared memory, and cuda:{device.index} "
            f"({device.name}) has {device.shared_memory} for a block"
        )
    with Current(device.context), AnyCapture():
        module = call(api.cuModuleLoadData, cubin.code)
        handle = call(api.cuModuleGetFunction, module, cubin.name.encode())
        if cubin.shared > SHARED_WITHOUT_ASKING:
            attribute = api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call(api.cuFuncSetAttribute, handle, attribute, cubin.shared)
    return Function(device, module, handle, cubin)


def _count_parameters(handle: Any) -> int | None:
    """The number of a function's parameters; None where the driver does not say."""
    for count in range(MAX_PARAMETERS):
        status = api.cuFuncGetParamInfo(handle, count)[0]
        if status is not SUCCESS:
            return count if status == api.CUresult.CUDA_ERROR_INVALID_VALUE else None
    return None


class _Slab:
    """Memory that frames are carved from."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._use_another()

    def _use_another(self) -> None:
        self._slab: ctypes.Array[Any] = (ctypes.c_ubyte * SLAB)()
        self._first = ctypes.addressof(self._slab)
        self._used = 0

    def carve(self, nbytes: int) -> tuple[ctypes.Array[Any], int, int]:
        """Return a slab, where in it `nbytes` bytes are free, and their address."""
        with self._lock:
            if self._used + nbytes > SLAB:
                self._use_another()
            start = self._used
            self._used += nbytes
            return self._slab, start, self._first + start


_slab = _Slab()


class Launcher:
    """A function with its grid and constant arguments; called with a stream and the values that are left.

    Attributes
    ----------
    frames : list of Frame
        Those that no launch is using.
    """

    __slots__ = ("arguments", "constants", "frames", "function", "grid", "pack")

    def __init__(self, arguments: Arguments, grid: tuple[int, int, int], constants: Sequence[int | float]) -> None:
        self.arguments = arguments
        self.function = arguments.function
        self.grid = grid
        self.pack = arguments.values.pack_into
        self.constants = constants
        self.frames: list[Frame] = []

    def frame(self) -> Frame:
        """Return a new frame, complete but for the values: they stand first, then what is fixed, then the addresses."""
        arguments = self.arguments
        size = arguments.size
        slab, start, first = _slab.carve(2 * size)
        addresses = range(first, first + size, _WORD)
        arguments.fixed.pack_into(slab, start + arguments.values.size, *self.constants, *_SCRATCH, *addresses)
        return slab, start, first + size

    def __call__(self, stream: int, *values: Any) -> None:
        """Launch on a stream with the values, in the order of their formats."""
        check_capture(stream)
        frames = self.frames
        frame = frames.pop() if frames else self.frame()
        try:
            self.pack(frame[0], frame[1], *values)
            self.launch(stream, frame[2])
        finally:
            frames.append(frame)

    def launch(self, stream: int, parameters: int) -> None:
        """Launch with the arguments at the addresses at `parameters`."""
        function = self.function
        status = api.cuLaunchKernel(
            *(function.handle, *self.grid, function.threads, 1, 1, function.shared, STREAMS[stream], parameters, 0)
        )[0]
        if status is not SUCCESS:
            self.relaunch(status, stream, parameters)

    def relaunch(self, status: Any, stream: int, parameters: int) -> None:
        """Launch once more in the right context, if that may have been the matter; else raise."""
        function = self.function
        if status in WRONG_CONTEXT:
            error = failure("cuLaunchKernel", status)
            if type(error) is not CudaError:  # a forked child
                raise error
            with Current(function.device.context):
                status = api.cuLaunchKernel(
                    *(function.handle, *self.grid, function.threads, 1, 1),
                    *(function.shared, STREAMS[stream], parameters, 0),
                )[0]
        if status is not SUCCESS:
            error = failure("cuLaunchKernel", status)
            error.args = (f"{error.args[0]} (kernel {function.name}, grid {self.grid}, stream {stream:#x})",)
            raise error


class Arguments:
    """How a function's arguments are packed: what all of its launchers share, checked once.

    Parameters
    ----------
    function : Function
    formats : sequence of str
        A native `struct` format of 8 bytes for each value that a launch is given: "Q", "q", "d", "f4x", "b7x", ...
    constant_formats : sequence of str
        Formats of the arguments behind them, which a launcher fixes.

    Raises
    ------
    CudaError
        If the function takes another number of arguments.
    """

    __slots__ = ("fixed", "function", "size", "values")

    def __init__(self, function: Function, formats: Sequence[str], constant_formats: Sequence[str]) -> None:
        slots = [*formats, *constant_formats]
        if any(struct.calcsize(slot) != _WORD for slot in slots):
            raise CudaError(f"make_launcher: {function.name}: expected struct formats of 8 bytes, got {slots}")
        count = len(slots) + SCRATCH_POINTERS
        if function.parameters not in (None, count):
            raise CudaError(
                f"make_launcher: {function.name} takes {function.parameters} arguments, and {count} would be passed, "
                f"{SCRATCH_POINTERS} of them scratch pointers; this version of triton passes arguments in another way"
            )
        self.function = function
        self.values = struct.Struct("".join(formats))
        self.fixed = struct.Struct("".join(constant_formats) + SCRATCH_POINTERS * "Q" + f"{count}Q")
        self.size = count * _WORD

    def launcher(self, grid: tuple[int, int, int], constants: Sequence[int | float]) -> Launcher:
        """Fix the grid and the constant arguments.

        Raises
        ------
        CudaError
            If the grid is too large.
        """
        x, y, z = grid
        most, most_y, most_z = GRID_LIMITS
        if not (0 < x <= most and 0 < y <= most_y and 0 < z <= most_z):
            raise CudaError(f"make_launcher: {self.function.name}: expected a grid within {GRID_LIMITS}, got {grid}")
        return Launcher(self, grid, constants)


def make_launcher(
    function: Function,
    grid: int | tuple[int, ...],
    formats: Sequence[str],
    constant_formats: Sequence[str],
    constants: Sequence[int | float],
) -> Launcher:
    """Fix the grid (a number of programs along up to three axes) and the constant arguments of a function."""
    dimensions = (grid,) if isinstance(grid, int) else grid
    if len(dimensions) > len(GRID_LIMITS):
        raise CudaError(f"make_launcher: {function.name}: expected a grid within {GRID_LIMITS}, got {grid}")
    x, y, z = (*dimensions, 1, 1)[:3]
    return Arguments(function, formats, constant_formats).launcher((x, y, z), constants)
