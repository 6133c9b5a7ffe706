"""Fused functions on an emulated GPU: the bits of the unfused operations there."""

from __future__ import annotations

import pytest
from support.kernels import needs_triton

import tilearray as ta

pytestmark = [needs_triton, pytest.mark.slow]


def test_random_programs_have_the_bits_of_the_unfused_operations(process):
    process.pool.submit(_random).result()


@pytest.mark.parametrize(
    "name",
    [
        "_reductions",
        "_rows",
        "_results",
        "_random_reductions",
        "_random_rows",
        "_adam",
        "_stencil",
        "_recorded",
        "_random_recorded",
        "_beside",
        "_targets",
        "_numbers",
    ],
)
def test_on_the_device(process, name):
    process.pool.submit(globals()[name]).result()


def test_programs_that_compute_for_long_have_few_elements_in_a_thread():
    x = ta.ones(100_000)
    light = ta.explain(ta.fuse(lambda x: ta.sin(x) + ta.cos(x)), x, arch=90)
    heavy = ta.explain(ta.fuse(lambda x: ta.sin(x) + ta.cos(x) * ta.tan(x)), x, arch=90)
    assert "4 warps, 8 elements a thread" in str(light)
    assert "8 warps, 4 elements a thread" in str(heavy)


@pytest.mark.parametrize(("dtype", "columns"), [("float32", 4096), ("bfloat16", 8192), ("float64", 1000)])
def test_a_norm_is_one_launch_that_holds_rows_in_registers(dtype, columns):
    def norm(x, scale):
        distance = x - ta.mean(x, axis=-1, keepdims=True)
        return distance / ta.sqrt(ta.mean(distance * distance, axis=-1, keepdims=True) + 1e-5) * scale

    x, scale = ta.empty((10_000, columns), dtype=dtype), ta.empty(columns, dtype=dtype)
    (launch,) = ta.explain(ta.fuse(norm), x, scale, arch=90).launches
    assert launch.kernel.schedule == "held_lanes"
    assert launch.kernel.code.spills == 0
    assert launch.bytes_read + launch.bytes_written == 2 * x.nbytes + scale.nbytes


@pytest.mark.slow  # the compiler takes 10 seconds
def test_a_norm_and_its_gradients_stay_in_registers():
    """A program holds rows of two arrays, and there are two warps for each. It stores two, so it walks no rows."""

    def norm(x, scale):
        distance = x - ta.mean(x, axis=-1, keepdims=True)
        return distance / ta.sqrt(ta.mean(distance * distance, axis=-1, keepdims=True) + 1e-5) * scale

    def both(x, scale, cotangent):
        result, pull = ta.vjp(norm, x, scale)
        return result, *pull(cotangent)

    x, scale = ta.empty((10_000, 4096)), ta.empty(4096)
    rows, *columns = ta.explain(ta.fuse(both), x, scale, x.copy(), arch=90).launches
    assert (rows.kernel.schedule, rows.kernel.warps) == ("held_lanes", 4)
    assert [launch.kernel.schedule for launch in columns] == ["reduce", "reduce"]
    assert [launch.kernel.code.spills for launch in (rows, *columns)] == [0, 0, 0]


@pytest.mark.parametrize("axis", [0, 1])
def test_a_reduction_that_stores_elements_beside_has_an_element_for_each_thread(axis):
    """Else Triton loads elements in threads of several warps, and one may load after another has stored in place."""

    def update(x, y):
        found = ta.sum(x * y, axis=axis)
        x += 2 * y
        return found

    for shape in ((3, 5), (1, 3), (300, 3), (5, 2), (40, 30)):
        launch, *_ = ta.explain(ta.fuse(update), ta.empty(shape), ta.empty(shape), arch=90).launches
        rows, columns = launch.kernel.tile
        assert launch.kernel.warps == 1 or rows * columns >= 32 * launch.kernel.warps


def test_reductions_of_numbers_compile():
    from support.reduced_trees import OF_NUMBERS

    for function in OF_NUMBERS:
        for shape in ((3, 5), (40, 300)):
            launches = ta.explain(ta.fuse(function), ta.empty(shape), arch=90).launches
            assert all(launch.kernel.code.spills == 0 for launch in launches)


@pytest.mark.parametrize("columns", [100, 512, 2048, 4096])
def test_a_softmax_of_narrow_floats_stays_in_registers(columns):
    def softmax(x):
        power = ta.exp(x - ta.max(x, axis=-1, keepdims=True))
        return power / ta.sum(power, axis=-1, keepdims=True)

    (launch,) = ta.explain(ta.fuse(softmax), ta.empty((10_000, columns), dtype="bfloat16"), arch=90).launches
    assert launch.kernel.schedule == "held_lanes"
    assert launch.kernel.code.spills == 0


def test_rows_that_are_too_long_to_hold_and_columns_of_many_segments_are_read_by_each_launch():
    x = ta.empty((10_000, 20_000))
    launches = ta.explain(ta.fuse(lambda x: x - ta.sum(x, axis=1, keepdims=True)), x, arch=90).launches
    assert [launch.kernel.schedule for launch in launches] == ["reduce", "lookup"]
    centred = ta.fuse(lambda x: x - ta.sum(x, axis=0))
    (launch,) = ta.explain(centred, ta.empty((10_000, 30_000)), arch=90).launches
    assert launch.kernel.schedule == "shared_columns"
    launches = ta.explain(centred, ta.empty((200_000, 100)), arch=90).launches
    assert [launch.kernel.schedule for launch in launches][:2] == ["reduce", "led_rows"]


def _random() -> None:
    import random
    from collections import Counter

    from support.interpreter.emulated_gpu import emulated_device
    from support.trees import check, grow

    device = emulated_device()
    found = Counter(
        check(grow(random.Random(seed), 20, in_place=seed % 2 == 0), device).split(":")[0] for seed in range(30)
    )
    assert found["equal"] > 20, found


def _random_recorded() -> None:
    import random

    from support.interpreter.emulated_gpu import emulated_device
    from support.trees import check_recorded, grow

    device = emulated_device()
    programs = [(grow(random.Random(seed), 20, in_place=True), random.Random(seed)) for seed in range(20)]
    assert [check_recorded(tree, rng, device) for tree, rng in programs].count("equal") > 12


def _beside() -> None:
    from support.beside_on_device import check_beside
    from support.interpreter.emulated_gpu import emulated_device

    check_beside(emulated_device(), ("float32", "bfloat16"))


def _targets() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.targets_on_device import check_orders, check_targets

    check_targets(emulated_device())
    check_orders(emulated_device())


def _numbers() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.reduced_trees import check_numbers

    check_numbers(emulated_device())


def _recorded() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    a, b, out = [
        ta.asarray(row, device=device).copy() for row in np.random.default_rng(1).random((3, 70, 40), np.float32)
    ]
    expected, updated = a * b + a * 2 - b, out + a * b
    transposed = expected[:, 1:].T * 2
    before = device.backend.launches
    with ta.lazy():
        y = a * b + a * 2 - b
        y.dtype, y.device, y[:, 1:].T
        assert device.backend.launches == before
    assert device.backend.launches == before + 1
    with ta.lazy():
        out += a * b
        assert device.backend.launches == before + 2
        z = (a * b + a * 2 - b)[:, 1:].T * 2
    assert device.backend.launches == before + 3
    for ours, plain in ((y, expected), (out, updated), (z, transposed)):
        assert ta.to_numpy(ours).tobytes() == ta.to_numpy(plain).tobytes()


def _adam() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()

    @ta.fuse
    def adam(p, g, m, v, lr, t):
        m *= 0.9
        m += 0.1 * g
        v *= 0.99
        v += 0.01 * g * g
        p -= lr * (m / (1 - 0.9**t)) / (ta.sqrt(v / (1 - 0.99**t)) + 1e-8)

    values = np.random.default_rng(1).random((4, 3000), np.float32)
    fused, plain = [[ta.asarray(row, device=device).copy() for row in values] for _ in range(2)]
    for step in (1, 2):
        before = device.backend.launches
        adam(*fused, 1e-3, step)
        assert device.backend.launches == before + 1
        adam.function(*plain, 1e-3, step)
    for x, y in zip(fused, plain, strict=True):
        assert ta.to_numpy(x).tobytes() == ta.to_numpy(y).tobytes()


def _stencil() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()

    @ta.fuse
    def smooth(x):
        lap = x[1:-1, 2:] + x[1:-1, :-2] + x[2:, 1:-1] + x[:-2, 1:-1] - 4 * x[1:-1, 1:-1]
        return lap[:, 1:] - lap[:, :-1], lap.T.copy()

    x = ta.asarray(np.random.default_rng(2).random((70, 130), np.float32), device=device)
    smooth(x)
    before = device.backend.launches
    found = smooth(x)
    assert device.backend.launches == before + 2  # one for each shape
    for ours, plain in zip(found, smooth.function(x), strict=True):
        assert ta.to_numpy(ours).tobytes() == ta.to_numpy(plain).tobytes()


def _reductions() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.trees import bits

    import tilearray as ta

    device = emulated_device()
    a, b = [ta.asarray(np.random.default_rng(n).random((70, 130), np.float32), device=device) for n in range(2)]
    for axis, first, second in ((1, a, b.T.copy()), (0, a, b.T.copy()), (1, a.T.copy(), b)):
        total = ta.fuse(lambda a, b, axis=axis: ta.sum(a * b.T, axis=axis))
        expected = ta.sum(first * second.T, axis=axis)
        before = device.backend.launches
        found = total(first, second)
        assert device.backend.launches == before + 1
        assert bits(found) == bits(expected)
        assert bits(found) == bits(ta.sum(ta.asarray(ta.to_numpy(first * second.T)), axis=axis))


def _random_reductions() -> None:
    import random
    from collections import Counter

    from support.interpreter.emulated_gpu import emulated_device
    from support.reduced_trees import check_reduced
    from support.trees import check, grow

    device = emulated_device()
    assert Counter(check_reduced(seed, device) for seed in range(12))["equal"] > 9
    trees = [grow(random.Random(seed), 15, in_place=seed % 2 == 0, reductions=True) for seed in range(15)]
    trees += [grow(random.Random(seed), 12, in_place=True, reductions=True) for seed in range(0, 30, 2)]
    assert Counter(check(tree, device).split(":")[0] for tree in trees)["equal"] > 20


def _rows() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.trees import bits

    import tilearray as ta

    device = emulated_device()
    cases = {
        "norm": lambda x, g: (x - ta.mean(x, axis=1, keepdims=True)) / ta.sqrt(ta.mean(x * x, axis=1))[:, None] * g,
        "variance": lambda x, g: (x - ta.mean(x, axis=1, keepdims=True)) / ta.std(x, axis=1, keepdims=True),
        "softmax": lambda x, g: ta.softmax(x * g, axis=-1),
        "scaled": lambda x, g: (
            ta.astype(x / ta.max(ta.abs(x), axis=-1, keepdims=True) * 127, "int8"),
            ta.max(x, axis=1),
        ),
        "deviation": lambda x, g: ta.sum(ta.abs(x - ta.mean(x, axis=1, keepdims=True)), axis=1),
        "another row": lambda x, g: x - ta.sum(x, axis=1)[::-1][:, None],
        "both axes": lambda x, g: (x - ta.sum(x, axis=1)[:, None]) / ta.sum(x, axis=0),
        "columns": lambda x, g: x - ta.mean(x, axis=0),
        "between": lambda x, g: x - ta.max(x - ta.sum(x, axis=0), axis=1, keepdims=True) - ta.sum(x, axis=1)[:, None],
    }
    launches = {
        (40, 100): [1, 1, 1, 1, 1, 2, 2, 1, 2],
        (5, 3000): [1, 4, 1, 1, 1, 2, 2, 1, 2],  # few rows: lanes of two values are other lanes
        (16, 4000): [1, 1, 1, 1, 1, 3, 2, 1, 2],  # segments
        (3, 1): [1, 1, 1, 1, 1, 2, 2, 1, 2],
    }
    for shape, expected in launches.items():
        rng = np.random.default_rng(1)
        x = ta.asarray(rng.normal(size=shape).astype("f4"), device=device)
        g = ta.asarray(rng.normal(size=shape[1]).astype("f4"), device=device)
        found = []
        for name, function in cases.items():
            before = device.backend.launches
            fused = ta.fuse(function)(x, g)
            found.append(device.backend.launches - before)
            plain = function(x, g)
            for ours, other in zip(
                *[each if isinstance(each, tuple) else (each,) for each in (fused, plain)], strict=True
            ):
                assert bits(ours) == bits(other), (shape, name)
        assert found == expected, (shape, found)


def _random_rows() -> None:
    from collections import Counter

    from support.interpreter.emulated_gpu import emulated_device
    from support.reduced_trees import check_rows

    device = emulated_device()
    found = Counter(check_rows(seed, device) for seed in range(10))
    assert found["one launch"] > 5, found
    assert found["several launches"] > 1, found


def _results() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device
    from support.trees import bits

    import tilearray as ta

    device = emulated_device()

    def two_families(x, r):
        x = ta.reshape(x, (4, -1, x.shape[1]))
        inner = x - ta.mean(x, axis=2, keepdims=True)
        outer = ta.sum(ta.abs(x - ta.mean(x, axis=(1, 2), keepdims=True)), axis=(1, 2), keepdims=True)
        return inner / outer

    cases = [
        (lambda x, r: (ta.sum(x, axis=1), ta.max(x, axis=1)), [1, 1, 2]),
        (lambda x, r: ta.sqrt(ta.sum(x * x, axis=1) / 40), [1, 1, 2]),
        (lambda x, r: ta.sum(x * r[:, None], axis=1) * 2 + r, [1, 1, 3]),  # with segments a third launch reads `r`
        (lambda x, r: ta.mean(x, axis=0, keepdims=True) - ta.sum(x * 2, axis=0, keepdims=True), [1, 1, 1]),
        (lambda x, r: (ta.sum(x), ta.sum(x) * 2), [1, 1, 2]),
        (lambda x, r: (ta.argmax(x, axis=1) + 1, ta.min(x)), [2, 2, 4]),
        (two_families, [2, 2, 2]),
    ]
    for column, shape in enumerate(((40, 30), (8, 300), (16, 4000))):
        rng = np.random.default_rng(1)
        x, r = [ta.asarray(rng.normal(size=size).astype("f4"), device=device) for size in (shape, shape[:1])]
        found = []
        for function, _ in cases:
            before = device.backend.launches
            fused = ta.fuse(function)(x, r)
            found.append(device.backend.launches - before)
            plain = function(x, r)
            fused, plain = [each if isinstance(each, tuple) else (each,) for each in (fused, plain)]
            assert list(map(bits, fused)) == list(map(bits, plain)), (shape, len(found))
        assert found == [expected[column] for _, expected in cases], (shape, found)
