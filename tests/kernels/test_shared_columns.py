"""Columns that several programs share, on an emulated GPU: one launch, with the bits of the host; and their kernels."""

from __future__ import annotations

import re

import pytest
from support.kernels import needs_triton

pytestmark = needs_triton


@pytest.mark.slow
@pytest.mark.parametrize("name", ["_lengths", "_fused", "_read_again"])
def test_one_launch_gives_the_bits_of_the_host(process, name):
    process.pool.submit(_on_the_device, name).result()


def _on_the_device(name: str) -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    globals()[name](emulated_device(), np.random.default_rng(3))


def _compare(device, function, *arrays) -> None:
    """One launch on a device gives what the host gives."""
    from support.trees import bits

    import tilearray as ta

    launches = device.backend.launches
    found = function(*[x.to_device(device) for x in arrays])
    assert device.backend.launches == launches + 1
    expected = function(*arrays)
    for one, other in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, expected)], strict=True):
        assert bits(one) == bits(other), [(x.shape, x.dtype) for x in arrays]
        assert ta.to_numpy(one).shape == ta.to_numpy(other).shape


def _lengths(device, rng) -> None:
    from functools import partial

    import tilearray as ta

    functions = [partial(function, axis=0) for function in (ta.softmax, ta.log_softmax, ta.logsumexp)]
    for length, width in ((1, 3), (2, 40), (17, 64), (30, 5), (128, 33), (700, 3), (700, 32), (1300, 1)):
        for dtype in ("bfloat16", "float32", "float64"):
            x = ta.asarray(rng.normal(size=(length, width)) * 3).astype(dtype)
            for function in functions if length < 200 else functions[:1]:
                if width > 1:  # one column lies as a row does
                    _compare(device, function, x)


def _fused(device, rng) -> None:
    import tilearray as ta

    def norm(x, gate):
        distance = x - ta.mean(x, axis=0, keepdims=True)
        return distance / ta.sqrt(ta.mean(distance * distance, axis=0, keepdims=True) + 1e-5) * gate

    def quantised(x, gate):
        size = ta.max(ta.abs(x * gate[0]), axis=0, keepdims=True)
        return ta.round(x / size * 127).astype("int8"), size, ta.sum(x, axis=0)

    for shape in ((30, 40), (70, 64), (400, 3), (3, 70, 5)):
        for dtype in ("float32", "bfloat16"):
            x, gate = (ta.asarray(rng.normal(size=shape)).astype(dtype) for _ in range(2))
            _compare(device, ta.fuse(norm), x, gate)
            _compare(device, ta.fuse(quantised), x, gate)
    x = ta.asarray(rng.normal(size=(70, 9)) + 1j).astype("complex64")
    _compare(device, ta.fuse(lambda x: x - ta.sum(x, axis=0)), x)
    for width in (20, 64):
        x = ta.asarray(rng.integers(-50, 50, (300, width)).astype("int16"))
        _compare(device, ta.fuse(lambda x: (x - ta.min(x, axis=0), ta.all(x > 0, axis=0))), x)


def _read_again(device, rng) -> None:
    """Segments that are longer than what a program holds."""
    import tilearray as ta
    from tilearray.engine import caches
    from tilearray_cuda.kernels.schedules import shared_columns

    for cache in (caches.PLANS, caches.RECIPES, caches.KERNELS):
        cache.clear()
    before, shared_columns.CHUNKS = shared_columns.CHUNKS, (1, 2)
    try:
        for shape in ((150, 70), (700, 5)):
            for dtype in ("float32", "bfloat16"):
                x = ta.asarray(rng.normal(size=shape)).astype(dtype)
                _compare(device, lambda x: ta.softmax(x, axis=0), x)
                _compare(device, ta.fuse(lambda x: (x - ta.mean(x, axis=0), ta.sum(x, axis=0))), x)
    finally:
        shared_columns.CHUNKS = before
        for cache in (caches.PLANS, caches.RECIPES, caches.KERNELS):
            cache.clear()


@pytest.mark.slow
def test_programs_that_wait_for_ever_are_an_error(process):
    process.pool.submit(_too_few_at_once).result()


def _too_few_at_once() -> None:
    """A group has one member more than programs that run at once."""
    import pytest
    from support.interpreter import run
    from support.interpreter.emulated_gpu import emulated_device
    from support.interpreter.mended import FaultError
    from support.interpreter.together import Together

    import tilearray as ta

    class Fewer(Together):
        def __init__(self, run, programs, residents):
            super().__init__(run, programs, residents - 1)

    run.Together = Fewer
    try:
        with pytest.raises(FaultError, match="wait for each other"):
            ta.softmax(ta.ones((700, 3), dtype="float32", device=emulated_device()), axis=0)
    finally:
        run.Together = Together


def norm(ta, x):
    distance = x - ta.mean(x, axis=0)
    return distance / ta.sqrt(ta.mean(distance * distance, axis=0) + 1e-5)


def softmax(ta, x):
    return ta.softmax(x, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(("function", "dtype"), [(norm, "float32"), (softmax, "bfloat16")])
def test_registers_hold_segments(function, dtype):
    """Columns of 16384 elements, without spills."""
    (launch,) = explained(lambda ta, x: function(ta, x), dtype, (16384, 16384)).launches
    assert launch.kernel.schedule == "shared_columns"
    assert launch.kernel.code.spills == 0


def explained(function, dtype, *shapes):
    """What a GPU would run for arrays of memory that is not touched."""
    import ml_dtypes
    import numpy as np

    import tilearray as ta

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    arrays = [ta.asarray(np.empty(shape, kind), device="cpu", copy=False) for shape in shapes]
    return ta.explain(ta.fuse(lambda *given: function(ta, *given)), *arrays, arch=90)


@pytest.mark.parametrize(
    ("dtype", "width", "columns", "fills"),
    [
        ("bfloat16", 4096, 32, True),
        ("float16", 4128, 32, True),
        ("bfloat16", 4112, 16, False),
        ("bfloat16", 4095, 16, False),
        ("float32", 4096, 16, True),
        ("float64", 4104, 16, False),
    ],
)
def test_columns_that_fill_strips_are_read_as_words(dtype, width, columns, fills):
    """A thread reads neighbours, without masks, if no strip reaches beyond the last column."""
    (launch,) = explained(softmax, dtype, (2048, width)).launches
    assert launch.kernel.tile == (columns, 16)
    assert ("mask=in_rows" not in launch.kernel.source) is fills
    if dtype == "bfloat16":
        assert dict(launch.kernel.code.loads).get(2, 0) == (0 if columns == 32 else 8)


def test_pairs_are_copied_of_elements_that_threads_hold_alone():
    """A weight of each row is one element in memory for a row, of any dtype: Triton would end the process."""
    import tilearray as ta

    x, weight = ta.empty((16384, 16384), dtype="bfloat16", device="cpu"), ta.empty((16384, 1), device="cpu")
    fused = ta.fuse(lambda x, w: ta.softmax((x * w).astype("bfloat16"), axis=0))
    (launch,) = ta.explain(fused, x, weight, arch=90).launches
    copied = set(re.findall(r"(\w+)_of_\d+ = tl.inline_asm_elementwise\(\"mov.b32", launch.kernel.source))
    read = {operand: name for name, operand in re.findall(r"(\w+)_of_\d+ = tl.load\((x\d) ", launch.kernel.source)}
    assert copied == {read["x0"]} != {read["x1"]}
    assert launch.kernel.code.spills == 0


def test_the_slots_of_many_columns_are_counted_in_64_bits():
    """The slots of the first reduction have 2**31 bytes: those of the second one would lie before the memory."""
    import numpy as np
    from support.row_sources import source

    kernel = source("softmax", "bfloat16", (8, 2**27), axis=0)
    rows = dict(kernel.constants)["ROWS"]
    known = {"np": np, "ROWS": np.int32(rows), "strips": np.int32(2**27 // rows)}
    (slots,) = re.findall(r"^ *slots = (.*)$", kernel.text, re.MULTILINE)
    starts = re.findall(r"\(scratch \+ (.*)\)\.to\(tl\.pointer_type", kernel.text)
    with np.errstate(over="ignore"):
        known["slots"] = eval(slots, {}, known)
        first, second = [int(eval(each.replace(".to(tl.int64)", ".astype(np.int64)"), {}, known)) for each in starts]
    assert second - first == 2 * 8 * 2**27
