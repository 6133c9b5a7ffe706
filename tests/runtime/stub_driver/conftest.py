"""Fixtures of the cases that run over the stub driver in their own process: see tests/runtime/test_stub_driver.py."""

from __future__ import annotations

import ctypes
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

if "TILEARRAY_STUB_CUDA" in os.environ:
    from tilearray_cuda.device import CudaDevice
    from tilearray_cuda.kernels.cubin import Cubin
    from tilearray_cuda.runtime import call_source, driver, launch
    from tilearray_cuda.runtime.streams import Stream
else:
    collect_ignore_glob = ["*.py"]


class Call(NamedTuple):
    """A logged driver call: its stream, the memory or event it is about, a size, and a launch's first arguments."""

    name: str
    stream: int
    object: int
    size: int
    arguments: tuple[int, ...]


class _Entry(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("stream", ctypes.c_uint64),
        ("object", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("arguments", ctypes.c_uint64 * 4),
    )


class Stub:
    """The steering functions of the stub driver."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.library.stub_log.restype = ctypes.c_uint64
        self.library.stub_used.restype = ctypes.c_uint64
        self.library.stub_calls.restype = ctypes.c_uint64

    def fail(self, name: str, code: int, skip: int = 0, times: int = 1) -> None:
        self.library.stub_fail(name.encode(), code, skip, times)

    def start_log(self) -> None:
        self.library.stub_logging(1)

    def log(self) -> list[Call]:
        entries = ctypes.POINTER(_Entry)()
        count = self.library.stub_log(ctypes.byref(entries))
        return [
            Call(entry.name.decode(), entry.stream, entry.object, entry.size, tuple(entry.arguments))
            for entry in entries[:count]
        ]

    def capture(self, stream: int, identity: int) -> None:
        self.library.stub_capture(ctypes.c_void_p(stream), ctypes.c_uint64(identity))

    def hold(self, stream: int, held: bool) -> None:
        """Let no event that is recorded on a stream pass, or let them."""
        self.library.stub_hold(ctypes.c_void_p(stream), 0, int(held))

    def give_way(self, on: bool) -> None:
        """Let launches yield the processor before and while they read their arguments."""
        self.library.stub_yield(int(on))

    def calls(self) -> int:
        """How many calls of the driver there have been."""
        return self.library.stub_calls()

    def used(self, device: int = 0) -> int:
        return self.library.stub_used(device)

    def shared(self, function: Any) -> int:
        return self.library.stub_shared(ctypes.c_void_p(int(function.handle)))

    def reset(self) -> None:
        self.library.stub_clear_failures()
        self.library.stub_logging(0)
        self.library.stub_yield(0)
        self.hold(0, False)


@pytest.fixture
def stub() -> Iterator[Stub]:
    stub = Stub()
    yield stub
    stub.reset()


@pytest.fixture
def device(stub: Stub) -> Iterator[CudaDevice]:
    driver.initialise()
    device = CudaDevice(0)
    yield device
    stub.reset()
    device.empty_cache()


@pytest.fixture
def side(device: CudaDevice) -> Iterator[int]:
    """A stream beside the default one."""
    stream = Stream(device)
    yield stream.handle
    del stream


@pytest.fixture
def load(device: CudaDevice) -> Callable[..., Any]:
    """Load a function by name and number of arguments, the two scratch pointers included."""

    def load(name: str = "stub_add", parameters: int | None = 6, shared: int = 0, warps: int = 4) -> Any:
        image = b"other" if parameters is None else f"STUB {parameters}".encode()
        return launch.load_function(device, Cubin(image, name, warps, shared))

    return load


@pytest.fixture
def add(load: Callable[..., Any]) -> Callable[..., None]:
    """``add(stream, out, 0, x, 0, y, 0)`` over one int64 element."""
    arguments = launch.Arguments(load(), ["P", "P", "P"], ["q"])
    return call_source.bind_operands(arguments, arguments.fix(1, [1]), [0, 0, 0], [None, None, None])


@pytest.fixture
def use_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Let a torch be in use that is capturing or not, with or without functions of its own that say so."""

    def use(initialised: bool = True, capturing: bool = False, native: Any = None, devices: int = 1) -> None:
        torch = types.ModuleType("torch")
        torch.cuda = types.SimpleNamespace(
            is_initialized=lambda: initialised,
            is_current_stream_capturing=lambda: capturing if initialised else pytest.fail("asked a torch without CUDA"),
            device_count=lambda: devices,
        )
        torch._C = native
        driver.TORCH.forget()
        monkeypatch.setitem(sys.modules, "torch", torch)

    yield use
    driver.TORCH.forget()
