"""`explain`: every stage of a call, from its dtypes to its machine code."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from tilearray.arrays.asarray import asarray
from tilearray.arrays.frameworks import is_foreign
from tilearray.arrays.fusion.containers import leaves, mapped
from tilearray.dtypes import as_dtype, info
from tilearray.engine.backend import AnyLoop
from tilearray.engine.context import STATE
from tilearray.engine.devices import Device, common_device
from tilearray.engine.expression import Expression
from tilearray.engine.signature import ArrayBase, Signature, empty_array, signature_of
from tilearray.errors import OperandError, shown, type_name
from tilearray.explaining import kernels
from tilearray.explaining.explanation import Explanation, Launch, Memory, Step, Timing
from tilearray.explaining.paper import Call, Note, PaperDevice
from tilearray.explaining.wording import class_text, graph_lines, inputs_text, loop_text, operands_of
from tilearray.geometry.layout import Layout
from tilearray.ops.execute import store
from tilearray.ops.signatures import show


def explain(
    function: Callable[..., Any],
    /,
    *args: Any,
    arch: int | str | None = None,
    time: bool = False,
    **kwargs: Any,
) -> Explanation:
    """Explain a call of an operation or a function: dtypes, loops, kernels, machine code.

    The function runs on arrays without memory, which have the dtypes and layouts of the arguments. Nothing is computed
    or written, unless `time` is True.

    Parameters
    ----------
    function : callable
        An operation such as ``ta.add`` or ``ta.sum``, a function of `fuse` or `pointwise`, or any function of arrays.
    *args, **kwargs
        Its arguments.
    arch : int or str, optional
        A compute capability, as 90 or "sm_90": explain the kernels of such a GPU. No GPU is needed. By default the
        device of the arrays.
    time : bool
        Whether to run the function, and a copy that moves as many bytes, and measure both. In-place operations then
        change their arguments.

    Returns
    -------
    Explanation
        Data that prints as text, and as HTML in a notebook.

    Raises
    ------
    OperandError
        If no argument is an array, or the function needs values, as sorting does.
    DeviceError
        If the compute capability is not supported.

    Examples
    --------
    >>> import tilearray as ta
    >>> x, row = ta.zeros((480, 640), dtype="uint8", device="cpu"), ta.zeros(640, device="cpu")
    >>> ta.explain(ta.add, x, row)
    add on cpu under array-api: 1 launch, 1.54 MB
    1. add(uint8 (480, 640), float32 (640,)) -> float32 (480, 640)
       dtypes   add(uint8, float32): uint8 and float32: float is the higher kind, so float32; result float32
       repeats  x1 (640,) to (480, 640)
       inputs   x0: uint8, x1: float32
       graph    out0: float32 = add(float32(x0), x1)
       loop     480 x 640: out0 (640, 1), x0 (640, 1), x1 (0, 1)
       class    broadcast, 2 axes, int32 indices
       memory   reads 310 kB, writes 1.23 MB
       runs     a function of NumPy calls, for all elements or for blocks of 65536
       source   def evaluate(out0, x0, x1, temporaries=None, first=0):
                    cast(x0, float32, out0)
                    add(out0, x1, out=out0)
    """
    if not callable(function):
        raise OperandError(f"explain: expected a function, got {type_name(function)}; write explain(ta.add, x, y)")
    if type(time) is not bool:
        raise OperandError(f"explain: expected time True or False, got {shown(time)}; write time=True")
    target = None if arch is None else kernels.architecture(arch)
    args, kwargs = mapped((args, kwargs), as_ours)
    arrays = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, ArrayBase)]
    if not arrays:
        raise OperandError("explain: expected at least one array among the arguments, got none; write ta.asarray(x)")
    device = common_device("explain", arrays)
    if target is None and not device.backend.on_host:
        target = getattr(device.backend, "arch", None)
    paper = PaperDevice(target is None)
    with paper.open():
        given, options = mapped((args, kwargs), paper.stand_in)
        function(*given, **options)
    if not paper.calls:
        raise OperandError(
            "explain: expected a function that runs kernels, got one that runs none on its arguments; write "
            "explain of a function that computes"
        )
    steps = tuple([_step(call, target) for call in paper.calls])
    name = str(getattr(function, "__name__", type(function).__name__))
    where = device.name if target is None else f"sm_{target}"
    found = Explanation(name, where, STATE.get().semantics.name, steps)
    if not time:
        return found
    timing = _timed(lambda: function(*args, **kwargs), arrays[0], found.bytes_moved)
    return Explanation(name, where, found.semantics, steps, timing)


def as_ours(value: Any) -> Any:
    """Return an array of another library as an Array that shares its memory."""
    if isinstance(value, np.ndarray):
        return asarray(value, device="cpu")
    return asarray(value) if is_foreign(value) else value


# --- steps -----------------------------------------------------------------------------------------------------------


def _step(call: Call, arch: int | None) -> Step:
    launches = tuple([launch_of(note, arch) for note in call.notes])
    if call.operation is None:
        return Step("fused", (), "", tuple(call.promotions), (), launches)
    assert call.result is not None
    shape = call.result.layout.shape
    is_elementwise = call.operation.reduced is None and call.operation.scanned is None
    broadcasts = [
        f"x{place} {each.layout.shape} to {shape}"
        for place, each in enumerate(call.operands)
        if is_elementwise and isinstance(each, Signature) and each.layout.shape != shape
    ]
    operands = tuple([shown_operand(each) for each in call.operands])
    return Step(
        call.operation.name, operands, shown_operand(call.result), tuple(call.promotions), tuple(broadcasts), launches
    )


def shown_operand(operand: Any) -> str:
    """Return the dtype and the shape of an array, or a number, as text."""
    return f"{info(operand.dtype).name} {operand.layout.shape}" if isinstance(operand, Signature) else repr(operand)


def launch_of(note: Note, arch: int | None) -> Launch:
    """Return a launch as data: on a GPU of an architecture, or on the host."""
    (expression, loop_class, aligned), loop, operands = note
    if arch is None:
        kernel: kernels.Kernel = kernels.host_kernel(expression, loop)
    else:
        kernel = kernels.gpu_kernel(kernels.schedule_for(expression, loop_class, aligned, arch), loop, arch)
    found = launch_data(expression, loop, kernel, [buffer for buffer, _ in operands], [place for _, place in operands])
    return replace(found, _note=note)


def launch_data(
    expression: Expression,
    loop: AnyLoop,
    kernel: kernels.Kernel,
    buffers: Sequence[object] | None = None,
    offsets: Sequence[int] | None = None,
) -> Launch:
    """Return a launch as data. Without the operands' buffers, each array counts as memory of its own."""
    operands = operands_of(expression)
    geometry = iter(zip(loop.strides, loop.shifts))
    arrays: list[Memory] = []
    moved: dict[bool, list[tuple[object, int, int, int]]] = {True: [], False: []}
    for place, (name, dtype, is_array) in enumerate(operands):
        if not is_array:
            continue
        strides, shift = next(geometry)
        itemsize, layout = as_dtype(dtype).itemsize, Layout(loop.shape, strides)
        visited = itemsize * prod([extent for extent, stride in zip(loop.shape, strides, strict=True) if stride])
        arrays.append(Memory(name, dtype, strides, visited))
        start = (offsets[place] if offsets else 0) + (shift + layout.low) * itemsize
        end = start + (layout.high + 1 - layout.low) * itemsize
        moved[name.startswith("out")].append((buffers[place] if buffers else name, visited, start, end))
    return Launch(
        graph=tuple(graph_lines(expression)),
        inputs=inputs_text(expression),
        shape=loop.shape,
        loop=loop_text(expression, loop),
        loop_class=class_text(loop),
        arrays=tuple(arrays),
        bytes_read=_together(moved[False]),
        bytes_written=_together(moved[True]),
        kernel=kernel,
    )


def _together(arrays: Sequence[tuple[object, int, int, int]]) -> int:
    """Return the bytes that must move: arrays in one memory move at most what lies between their ends.

    For each array: its memory, the bytes of its elements, and its ends.
    """
    found: dict[int, list[int]] = {}
    for memory, visited, start, end in arrays:
        total, low, high = found.get(id(memory), (0, start, end))
        found[id(memory)] = [total + visited, min(low, start), max(high, end)]
    return sum(min(total, high - low) for total, low, high in found.values())


# --- times -----------------------------------------------------------------------------------------------------------

ROUNDS = 7
SECONDS = 0.02
"""The least time of a round."""


def _timed(call: Callable[[], Any], array: Any, nbytes: int) -> Timing:
    device: Device = array._signature.device
    seconds = _seconds(call, device)
    layout = Layout.of((max(1, nbytes // 2),))
    source, target = [
        empty_array(ArrayBase._public, signature_of(layout, np.dtype(np.uint8), device), STATE.get().stream)
        for _ in range(2)
    ]
    copy = _seconds(lambda: store(target, source), device)
    return Timing(seconds, nbytes / seconds / 1e9, 2 * layout.size / copy / 1e9)


def _seconds(call: Callable[[], Any], device: Device) -> float:
    """Return the time of a call: of the fastest of some rounds."""
    wait = getattr(device.backend, "synchronize", lambda: None)
    call()
    count, best = 1, float("inf")
    for _ in range(ROUNDS):
        while True:
            wait()
            start = clock.perf_counter()
            for _ in range(count):
                call()
            wait()
            taken = clock.perf_counter() - start
            if taken >= SECONDS:
                break
            count = max(count + 1, int(count * 1.5 * SECONDS / max(taken, 1e-9)))
        best = min(best, taken / count)
    return best


show([explain])
