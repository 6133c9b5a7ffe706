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
    """A logged driver call: its stream, its memory or event, a size, and the first arguments of a launch."""

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
    """The functions that control the stub driver."""

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
        """Prevent the events of a stream from passing, or allow it again."""
        self.library.stub_hold(ctypes.c_void_p(stream), 0, int(held))

    def give_way(self, on: bool) -> None:
        """Make launches yield the processor before and during the read of their arguments."""
        self.library.stub_yield(int(on))

    def allow_peers(self, on: bool) -> None:
        """Give the GPUs peer access, or hardware without it; forget what was enabled."""
        self.library.stub_peers(int(on))

    def calls(self) -> int:
        """Return the number of driver calls so far."""
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
    """Return a stream other than the default stream."""
    stream = Stream(device)
    yield stream.handle
    del stream


@pytest.fixture
def load(device: CudaDevice) -> Callable[..., Any]:
    """Load a function by its name and number of arguments, including the two scratch pointers."""

    def load(name: str = "stub_add", parameters: int | None = 6, shared: int = 0, warps: int = 4) -> Any:
        image = b"other" if parameters is None else f"STUB {parameters}".encode()
        return launch.load_function(device, Cubin(image, name, warps, shared))

    return load


@pytest.fixture
def add(load: Callable[..., Any]) -> Callable[..., None]:
    """Return ``add(stream, out, 0, x, 0, y, 0)`` over one int64 element."""
    arguments = launch.Arguments(load(), ["P", "P", "P"], ["q"])
    return call_source.bind_operands(arguments, arguments.fix(1, [1]), [0, 0, 0], [None, None, None])


@pytest.fixture
def use_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Simulate a torch that captures or does not, with or without C functions that report it."""

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
