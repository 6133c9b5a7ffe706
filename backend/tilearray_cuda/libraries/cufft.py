"""Fourier transforms through cuFFT: complex, from real and to real numbers, along one to three axes.

A plan of the library depends on sizes and strides. Plans are kept for each device, and the one that was used longest
ago is destroyed if there are more than `PLANS_KEPT`. Their workspaces are memory of our pool, given for each call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from sys import modules
from typing import Any

from tilearray_cuda.errors import CudaError
from tilearray_cuda.libraries import strides
from tilearray_cuda.libraries.bindings import bindings, failure
from tilearray_cuda.libraries.numbers import NUMBERS
from tilearray_cuda.locks import Lock
from tilearray_cuda.runtime.driver import (
    TORCH,
    AnyCapture,
    Current,
    after_fork,
    api,
    call,
    check_capture,
    is_capturing,
)

PLANS_KEPT = 64
GONE = -1
_ITEMSIZE = {"float32": 4, "float64": 8, "complex64": 8, "complex128": 16}
_REAL = {"complex64": "float32", "complex128": "float64"}
_FORWARD, _INVERSE = -1, 1


class _Plan:
    """A plan of the library, and the stream and workspace that it has: to set each of them takes a call.

    Attributes
    ----------
    number : int
        The library's own handle.
    nbytes : int
        The bytes of its workspace.
    stream, workspace : int or None
        The stream and the address of the workspace that it has; None before the first call.
    used : int
        The number of the last call, as `Transforms` counts them; `GONE` after the plan was destroyed.
    """

    __slots__ = ("nbytes", "number", "stream", "used", "workspace")

    def __init__(self, number: int, nbytes: int) -> None:
        self.number, self.nbytes, self.used = number, nbytes, 0
        self.stream: int | None = None
        self.workspace: int | None = None


class Pass:
    """A transform of the library.

    Attributes
    ----------
    key : tuple
        What a plan of the library depends on: where elements lie, the dtypes of operand and result, and that of the
        computation.
    places : tuple of (int, int)
        For each call of the library the bytes before the first element of the operand, and of the result.
    plan : _Plan or None
        The plan of its last call.
    """

    __slots__ = ("key", "places", "plan")

    def __init__(self, layout: strides.Placed, names: tuple[str, str], dtype: str) -> None:
        self.key = layout[:4], names, dtype
        source, target = (_ITEMSIZE[name] for name in names)
        self.places = tuple([(first * source, second * target) for first, second in layout.offsets])
        self.plan: _Plan | None = None


class Transforms:
    """The Fourier transforms of a device."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._plans: dict[Any, _Plan] = {}
        self._runs = 0
        self._lock = Lock()  # a plan has one stream and one workspace at a time
        after_fork.append(self._forget)

    @functools.cached_property
    def _library(self) -> Any:
        return bindings("cufft")

    @functools.cached_property
    def _context(self) -> int:
        return int(self._device.context)

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
        (source, first), (target, second) = read, written
        if source.stream != stream:
            self._device.join(source, stream, source is target)
        if target.stream != stream:
            self._device.join(target, stream, True)
        places = source.pointer + first, target.pointer + second
        self._in_context(stream, self._run, self._library, planned, inverse, stream, *places)

    def _in_context(self, stream: int, function: Callable[..., None], *arguments: Any) -> None:
        """Call ``function(captured, *arguments)`` in the device's context.

        `captured` says whether the call becomes part of a graph.
        """
        if stream:
            if is_capturing(stream):
                with Current(self._device.context), AnyCapture():
                    function(True, *arguments)
                return
        elif "torch" in modules and TORCH.may_capture(self._device.index):
            check_capture(stream)
        _, context = api.cuCtxGetCurrent()
        if context is None or int(context) != self._context:  # None: in a forked child, where `Current` says so
            with Current(self._device.context):
                function(False, *arguments)
        else:
            function(False, *arguments)

    def _run(
        self, captured: bool, library: Any, planned: Pass, inverse: bool, stream: int, read: int, written: int
    ) -> None:
        direction = _INVERSE if inverse else _FORWARD
        with self._lock:
            try:
                plan = planned.plan
                if plan is None or plan.used == GONE:
                    plan = planned.plan = self._plan(planned.key, captured)
                plan.used = self._runs = self._runs + 1
                if plan.stream != stream:
                    library.set_stream(plan.number, stream)
                    plan.stream = stream
                work = self._device.allocate(plan.nbytes, stream) if plan.nbytes else None
                workspace = 0 if work is None else work.pointer
                if plan.workspace != workspace:
                    library.set_work_area(plan.number, workspace)
                    plan.workspace = workspace
                for first, second in planned.places:
                    library.xt_exec(plan.number, read + first, written + second, direction)
            except CudaError:
                raise
            except Exception as error:
                raise failure("cuFFT", error) from error

    def _plan(self, key: Any, captured: bool) -> _Plan:
        """Return the plan of a layout and dtypes, made if there is none. The caller holds the lock."""
        found = self._plans.get(key)
        if found is not None:
            return found
        if len(self._plans) >= PLANS_KEPT and not captured:
            call(api.cuCtxSynchronize)  # no work uses the plan any more
            oldest = self._plans.pop(min(self._plans, key=lambda key: self._plans[key].used))
            oldest.used = GONE
            self._library.destroy(oldest.number)
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
        self._plans = {}
