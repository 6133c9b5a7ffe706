"""Fourier transforms through cuFFT: complex, from real and to real numbers, along one to three axes.

A plan of the library depends on sizes and strides. Plans are kept for each device, and the one that was used longest
ago is destroyed if there are more than `PLANS_KEPT`. Their workspaces are memory of our pool, given for each call.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from tilearray_cuda.errors import CudaError
from tilearray_cuda.libraries import strides
from tilearray_cuda.libraries.bindings import bindings, failure
from tilearray_cuda.libraries.numbers import NUMBERS
from tilearray_cuda.locks import Lock
from tilearray_cuda.runtime.driver import AnyCapture, Current, after_fork, api, call, check_capture, is_capturing

PLANS_KEPT = 64
_ITEMSIZE = {"float32": 4, "float64": 8, "complex64": 8, "complex128": 16}
_REAL = {"complex64": "float32", "complex128": "float64"}
_FORWARD, _INVERSE = -1, 1


class _Plan(NamedTuple):
    """A plan of the library, and the bytes of its workspace."""

    number: int
    nbytes: int


class Pass(NamedTuple):
    """A transform of the library: where elements lie, the dtypes of operand and result, and that of the computation."""

    layout: strides.Placed
    names: tuple[str, str]
    dtype: str


class Transforms:
    """The Fourier transforms of a device."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._plans: OrderedDict[Any, _Plan] = OrderedDict()
        self._lock = Lock()  # a plan has one stream and one workspace at a time
        after_fork.append(self._forget)

    @functools.cached_property
    def _library(self) -> Any:
        return bindings("cufft")

    def planned(self, kind: str, dtype: str, sizes: Any, source: Any, target: Any, others: Any) -> Pass | None:
        """Return how the library transforms an operand as it lies; None if it cannot. See `strides.placed`.

        Parameters
        ----------
        kind : str
            "c2c", "r2c" or "c2r".
        dtype : str
            "complex64" or "complex128".
        """
        layout = strides.placed(kind, sizes, source, target, others)
        real = _REAL[dtype]
        names = real if kind == "r2c" else dtype, real if kind == "c2r" else dtype
        return None if layout is None else Pass(layout, names, dtype)

    def run(self, stream: int, planned: Pass, inverse: bool, read: tuple[Any, int], written: tuple[Any, int]) -> None:
        """Transform elements, and write the result elsewhere or to the same memory.

        Parameters
        ----------
        stream : int
        planned : Pass
        inverse : bool
            The direction of "c2c"; nothing is divided by the sizes.
        read, written : tuple of (Buffer, int)
            The buffer, and the bytes before the first element.
        """
        places: list[int] = []
        for buffer, offset in (read, written):
            if buffer.stream != stream:
                self._device.join(buffer, stream, buffer is written[0])
            places.append(buffer.pointer + offset)
        self._in_context(stream, functools.partial(self._run, self._library, planned, inverse, stream, *places))

    def _in_context(self, stream: int, function: Callable[[bool], None]) -> None:
        """Call ``function(captured)`` in the device's context; `captured` says whether it becomes part of a graph."""
        check_capture(stream)
        with Current(self._device.context):
            if is_capturing(stream):
                with AnyCapture():
                    function(True)
            else:
                function(False)

    def _run(
        self, library: Any, planned: Pass, inverse: bool, stream: int, read: int, written: int, captured: bool
    ) -> None:
        layout, (source, target), dtype = planned
        direction = _INVERSE if inverse else _FORWARD
        with self._lock:
            try:
                plan = self._plan((layout[:4], planned.names, dtype), captured)
                library.set_stream(plan.number, stream)
                work = self._device.allocate(max(plan.nbytes, 1), stream)
                library.set_work_area(plan.number, work.pointer)
                for first, second in layout.offsets:
                    places = read + first * _ITEMSIZE[source], written + second * _ITEMSIZE[target]
                    library.xt_exec(plan.number, *places, direction)
            except CudaError:
                raise
            except Exception as error:
                raise failure("cuFFT", error) from error

    def _plan(self, key: Any, captured: bool) -> _Plan:
        """Return the plan of a layout and dtypes, made if there is none. The caller holds the lock."""
        found = self._plans.get(key)
        if found is not None:
            self._plans.move_to_end(key)
            return found
        if len(self._plans) >= PLANS_KEPT and not captured:
            call(api.cuCtxSynchronize)  # no work uses the plan any more
            self._library.destroy(self._plans.popitem(last=False)[1].number)
        (sizes, source, target, batch), (read, written), computed = key
        found = self._plans[key] = self._made(sizes, source, target, batch, read, written, computed)
        return found

    def _made(self, sizes: Any, source: Any, target: Any, batch: int, read: str, written: str, computed: str) -> _Plan:
        number = self._library.create()
        try:
            self._library.set_auto_allocation(number, 0)
            nbytes = self._library.xt_make_plan_many(
                number, len(sizes), sizes, source.sizes, source.step, source.distance, NUMBERS[read].code,
                target.sizes, target.step, target.distance, NUMBERS[written].code, batch, NUMBERS[computed].code,
            )  # fmt: skip
        except BaseException:
            self._library.destroy(number)
            raise
        return _Plan(number, nbytes)

    def _forget(self) -> None:
        """Forget all plans in a forked child."""
        self._lock = Lock()
        self._plans = OrderedDict()
