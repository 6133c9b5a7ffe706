"""Never-seen shapes: a known pattern launches the same call as a plan of the shape."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta
from tilearray.engine import caches, plan
from tilearray.engine.context import STATE
from tilearray.engine.plan import make_plan
from tilearray.ops.execute import execute
from tilearray.promotion.scalars import ScalarClass
from tilearray_cuda import kernel
from tilearray_cuda.kernels.disk_cache import Cubin


@pytest.fixture(autouse=True)
def compiling_nothing(monkeypatch, stub):
    caches.PLANS.clear()
    caches.RECIPES.clear()
    caches.KERNELS.clear()
    monkeypatch.setattr(
        kernel, "cubin_of", lambda source, arch, contract: Cubin(b"other", source.name, source.tile.warps, 0)
    )
    yield
    caches.PLANS.clear()
    caches.RECIPES.clear()
    caches.KERNELS.clear()


STEPS = [slice(None)] * 6 + [slice(1, None), slice(2, None), slice(None, None, 2), slice(None, None, -1)]
SIZES = [0, 1, 2, 3, 16, 20, 33, 48, 64, 65, 511, 512, 600]


def draw(rng, dtype):
    """Three views of one shape, mostly a matrix, or that broadcast to it: from anywhere in memory, turned, repeated."""
    rank = rng.choice([1, 2, 2, 2, 2, 3])
    shape = tuple(rng.choice(SIZES, rank).tolist()) if rank < 3 else tuple(rng.choice(SIZES[:8], rank).tolist())
    return [view(rng, shape, dtype) for _ in range(3)]


def view(rng, shape, dtype):
    """A view of a shape, or of one that broadcasts to it."""
    form = rng.integers(0, 8)
    if form == 0:
        shape = shape[rng.integers(0, len(shape) + 1) :]
    elif form == 1:
        shape = tuple(n if rng.integers(0, 2) else 1 for n in shape)
    turned = len(shape) > 1 and rng.integers(0, 4) == 0
    key = [STEPS[rng.integers(0, len(STEPS))] for _ in shape]
    spare = rng.choice([0, 0, 1, 4, 16])
    wide = [n * (2 if step.step == 2 else 1) + spare + 2 for n, step in zip(shape, key)]
    x = ta.empty(tuple(wide[::-1] if turned else wide), dtype=dtype, device="cuda:0")
    if rng.integers(0, 3) == 0 and shape:
        return ta.empty(shape[::-1] if turned else shape, dtype=dtype, device="cuda:0").permute_dims(
            range(len(shape))[:: -1 if turned else 1]
        )
    x = x.permute_dims(range(x.ndim)[::-1]) if turned else x
    x = x[tuple(key)][tuple(slice(n) for n in shape)] if shape else x
    return ta.broadcast_to(x[:1], shape) if shape and shape[0] and rng.integers(0, 12) == 0 else x


def launched(found):
    """Return the launch of a plan: the text of its call, and its fixed bytes."""
    code = found.call.__code__
    kept = zip(code.co_varnames[: code.co_argcount][::-1], (found.call.__defaults__ or ())[::-1])
    return code, dict(kept)


def way(op, keys, monkeypatch, general):
    """Return a plan, made from a known pattern if one exists, or without patterns."""
    with monkeypatch.context() as patched:
        if general:
            patched.setattr(plan, "pattern_of", lambda layouts, facts: None)
        return make_plan(op, STATE.get().semantics, keys, None, execute)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dtype", ["float32", "uint8", "float64"])
def test_a_known_pattern_launches_the_same_as_a_plan(monkeypatch, seed, dtype):
    rng = np.random.default_rng([seed, *dtype.encode()])
    general_plans, known = 0, 0
    planned = plan.Recipe.plan

    def counted(*args):
        nonlocal general_plans
        general_plans += 1
        return planned(*args)

    monkeypatch.setattr(plan.Recipe, "plan", counted)
    for _ in range(1000):
        x, y, z = draw(rng, dtype)
        calls = [(ta.add, (x, y)), (ta.less, (y, x)), (ta.negative, (x,)), (ta.multiply, (y, 2)), (ta.fma, (x, y, z))]
        op, operands = calls[rng.integers(0, len(calls))]
        try:
            shape = np.broadcast_shapes(*[each.shape for each in operands if not isinstance(each, int)])
        except ValueError:
            continue
        keys = tuple(ScalarClass.INT32 if isinstance(each, int) else each._signature for each in operands)
        before = general_plans
        fast = way(op, keys, monkeypatch, general=False)
        known += general_plans == before
        wanted = way(op, keys, monkeypatch, general=True)
        assert fast.kernel is wanted.kernel
        assert fast.loop == wanted.loop
        assert fast.signature is wanted.signature
        assert launched(fast) == launched(wanted)
        if fast.kernel is None:
            continue
        schedule, fixed = fast.kernel.schedule, launched(fast)[1]["fixed"]
        constants = [*fast.loop.shape, *[fast.loop.strides[at][axis] for _, at, axis in schedule.open_strides()]]
        programs = fast.kernel.arguments._fixed.unpack(fixed)[-2]
        assert fixed == fast.kernel.arguments.fix(programs, constants)
        result = op(*operands)
        assert result.shape == shape
    assert known > 200
