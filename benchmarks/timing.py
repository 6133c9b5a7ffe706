"""Clocks. The device times kernels, and the host times calls.

`HostClock` and `GpuClock` have the same interface: the seconds of a number of calls, and the yardsticks of the machine
(a copy, a fill, a bare launch). On a GPU these use driver calls, so that no library is its own yardstick: events on the
legacy default stream around N calls, ``cuMemcpyDtoDAsync``, ``cuMemsetD32Async``, and ``cuLaunchKernel`` with arguments
packed beforehand. A result is the median of batches, with the fastest and the slowest batch. The arrays of a full run
are far larger than the L2 cache, so it is not flushed.
"""

from __future__ import annotations

import ctypes
import importlib
import time
import timeit
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any

Call = Callable[[], Any]


@dataclass(frozen=True)
class Timing:
    """Seconds per call: the median of `batches` batches of `calls` calls, and the best and the worst batch."""

    seconds: float
    best: float
    worst: float
    batches: int
    calls: int

    @classmethod
    def of(cls, seconds: list[float], calls: int) -> Timing:
        return cls(median(seconds), min(seconds), max(seconds), len(seconds), calls)

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class Effort:
    """The extent of a measurement: seconds and batches of a kernel, batches and calls of a small operation, starts."""

    seconds: float
    batches: int
    call_batches: int
    calls: int
    starts: int


LONGEST = 2.0  # maximum seconds for a statement: some libraries take milliseconds for a new shape
EFFORTS = {"full": Effort(0.15, 11, 50, 200, 3), "host": Effort(0.1, 5, 50, 200, 3), "small": Effort(0.0, 2, 2, 10, 1)}


class HostClock:
    """The clock of the host: a call is complete when it returns."""

    ordered = True

    def __init__(self) -> None:
        self.numpy: Any = importlib.import_module("numpy")

    def seconds(self, call: Call, count: int) -> float:
        """Return the total seconds of `count` calls."""
        return seconds_to_completion(self, call, count)

    def synchronize(self) -> None:
        """Do nothing: the host has no work in flight."""

    def copier(self, target: Any, source: Any) -> Call:
        """Return a function that copies one array to another."""
        return lambda: self.numpy.copyto(target, source)

    def filler(self, target: Any) -> Call:
        """Return a function that fills an array with zeros."""
        return lambda: target.fill(0)

    def launcher(self) -> Mapping[str, Any] | None:
        """Return the names in the statement `LAUNCH` for `host_timing`, or None if the device has no launches."""
        return None


class DriverError(RuntimeError):
    """A driver call of the benchmark failed."""


EMPTY_KERNEL = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry empty(.param .u64 x, .param .u64 y, .param .u64 o, .param .u32 n) { ret; }
"""


class GpuClock:
    """The clock of one GPU: its driver, in the primary context that all libraries share."""

    def __init__(self, index: int = 0) -> None:
        self.driver: Any = importlib.import_module("cuda.bindings.driver")
        try:
            self.check(self.driver.cuInit(0))
        except RuntimeError as error:  # from the bindings without a driver library, or from `check`
            raise DriverError(f"no GPU available: cuInit failed ({error})") from error
        self.device = self.check(self.driver.cuDeviceGet(index))
        self.check(self.driver.cuCtxSetCurrent(self.check(self.driver.cuDevicePrimaryCtxRetain(self.device))))
        self.start, self.stop = (self.check(self.driver.cuEventCreate(0)) for _ in range(2))

    def check(self, answer: tuple[Any, ...]) -> Any:
        """Return the value of a driver call, or raise DriverError."""
        status, *values = answer
        if int(status):
            raise DriverError(f"the driver returned {status!r}; look it up in the CUDA driver API reference")
        return values[0] if values else None

    def seconds(self, call: Call, count: int) -> float:
        """Return the seconds between an event before and an event after `count` calls."""
        self.check(self.driver.cuEventRecord(self.start, 0))
        for _ in range(count):
            call()
        self.check(self.driver.cuEventRecord(self.stop, 0))
        self.check(self.driver.cuEventSynchronize(self.stop))
        return self.check(self.driver.cuEventElapsedTime(self.start, self.stop)) / 1e3

    def synchronize(self) -> None:
        """Wait until all work of all libraries is complete."""
        self.check(self.driver.cuCtxSynchronize())

    def copier(self, target: Any, source: Any) -> Call:
        """Return a function that copies one array to another by a driver call."""
        places, nbytes = (pointer(target), pointer(source)), source.nbytes
        return lambda: self.check(self.driver.cuMemcpyDtoDAsync(*places, nbytes, 0))

    def filler(self, target: Any) -> Call:
        """Return a function that fills an array with zeros by a driver call."""
        place, words = pointer(target), target.nbytes // 4
        return lambda: self.check(self.driver.cuMemsetD32Async(place, 0, words, 0))

    def launcher(self) -> Mapping[str, Any]:
        """Return the names in `LAUNCH`: an empty kernel with four parameters, packed beforehand."""
        module = self.check(self.driver.cuModuleLoadData(EMPTY_KERNEL + b"\0"))
        function = self.check(self.driver.cuModuleGetFunction(module, b"empty"))
        values = (ctypes.c_uint64 * 4)()
        frame = (ctypes.c_void_p * 4)(*(ctypes.addressof(values) + 8 * position for position in range(4)))
        kept = (module, values, frame)
        return {"launch": self.driver.cuLaunchKernel, "f": function, "frame": ctypes.addressof(frame), "kept": kept}


LAUNCH = "launch(f, 1, 1, 1, 128, 1, 1, 0, 0, frame, 0)"


def pointer(array: Any) -> int:
    """Return the address of a GPU array of any library."""
    return array.__cuda_array_interface__["data"][0]


def open_clock(device: str) -> Any:
    """Return the clock of a device, "cpu" or "cuda"."""
    return GpuClock() if device == "cuda" else HostClock()


def kernel_timing(clock: Any, call: Call, effort: Effort, wait: Callable[[Any], None] | None = None) -> Timing:
    """Return the seconds of a call on the device. `effort` limits the number of calls.

    A library that the default stream does not order gives a function `wait` for its last result. The host then times
    the calls until they are complete.
    """
    once = partial(seconds_to_completion, clock, wait=wait) if wait else clock.seconds
    once(call, 2)  # allocates memory and compiles kernels
    longest = max(once(call, 1), 1e-7)
    count = min(max(int(effort.seconds / effort.batches / longest), 1), 100)
    batches = []
    for _ in range(effort.batches):
        clock.synchronize()
        batches.append(once(call, count) / count)
    return Timing.of(batches, count)


def seconds_to_completion(clock: Any, call: Call, count: int, wait: Callable[[Any], None] | None = None) -> float:
    """Return the seconds of `count` calls until the device has completed them, by the host's clock."""
    started = time.perf_counter()
    result = None
    for _ in range(count):
        result = call()
    if wait:
        wait(result)
    clock.synchronize()
    return time.perf_counter() - started


def statement_timer(statement: str, names: Mapping[str, Any]) -> timeit.Timer:
    """Return a timer of a statement, whose names are local variables of `timeit`'s loop."""
    setup = "; ".join(f"{name} = given[{name!r}]" for name in names)
    return timeit.Timer(statement, setup, globals={"given": names})


def best_in_turns(timers: Sequence[Callable[[int], float]], seconds: float) -> list[float]:
    """Return for each timer the microseconds of a call, in its fastest batch: slower ones were interrupted.

    A timer returns the seconds of a number of calls. They run in turns, a batch of about 2 ms each, until all batches
    together have taken the given seconds.
    """
    counts = [max(1, min(200, int(0.002 / max(timer(3) / 3, 1e-8)))) for timer in timers]
    best, spent = [float("inf")] * len(timers), 0.0
    while spent <= seconds:
        for place, (timer, count) in enumerate(zip(timers, counts, strict=True)):
            took = timer(count)
            spent += took
            best[place] = min(best[place], took / count * 1e6)
    return best


class HostTimer:
    """Measures the host time of a statement, submission only: it waits for the device between batches.

    Every batch of `calls` calls takes new names from `names`, as local variables of `timeit`'s loop.
    """

    def __init__(self, clock: Any, statement: str, names: Iterator[Mapping[str, Any]], calls: int) -> None:
        self.clock, self.statement, self.names, self.calls = clock, statement, names, calls
        self.batches: list[float] = []
        self.spent = 0.0

    def measure(self, count: int) -> Timing:
        """Run one batch to warm up and `count` others, or fewer at the time limit. Return the timing of all so far."""
        for number in range(count + 1):
            if self.batches and self.spent > LONGEST:
                break
            given = next(self.names)
            seconds = statement_timer(self.statement, given).timeit(self.calls)
            self.clock.synchronize()
            self.spent += seconds
            if number:
                self.batches.append(seconds / self.calls)
        return Timing.of(self.batches, self.calls)


def host_timing(clock: Any, statement: str, names: Iterator[Mapping[str, Any]], effort: Effort) -> Timing:
    """Return the host time of a single statement."""
    return HostTimer(clock, statement, names, effort.calls).measure(effort.call_batches)
