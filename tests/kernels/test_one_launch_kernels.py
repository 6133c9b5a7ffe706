"""Functions of several rows that are one launch on an emulated GPU, with the bits and the errors of the host."""

from __future__ import annotations

from typing import Any

import pytest
from support.kernels import needs_triton

pytestmark = [needs_triton, pytest.mark.slow]

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
CALLS = {
    "round": ("ta.round(x, 2)", "ta.round(x, -1)", "ta.round(x, 40)", "ta.round(x, -400)"),
    "frexp": ("ta.frexp(x)",),
    "modf": ("ta.modf(x)",),
    "divmod": ("ta.divmod(x, y)", "ta.divmod(x, 3)", "ta.divmod(3, x)", "divmod(x, y)"),
}


def _compare(device: Any, call: str, x: Any, y: Any) -> None:
    """One launch on a device gives what the host gives."""
    from support.trees import bits

    import tilearray as ta

    on_device = {name: each.to_device(device) for name, each in (("x", x), ("y", y))}
    launches = device.backend.launches
    found = eval(call, {"ta": ta, **on_device})
    assert device.backend.launches <= launches + 1, call
    expected = eval(call, {"ta": ta, "x": x, "y": y})
    for one, other in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, expected)], strict=True):
        same = (bits(one), one.dtype, one.shape, one.strides) == (bits(other), other.dtype, other.shape, other.strides)
        assert same, (call, x.shape, x.dtype, y.dtype)


def _values(dtype: str, count: int, rng: Any) -> Any:
    """Zeros, ties, the smallest and the largest values, and some at random."""
    import numpy as np
    from support.oracles.formats import dtype_of

    import tilearray as ta

    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        some = [0, 1, 2, 5, 15, 25, 50, 100, info.min, info.max, info.min + 1, info.max - 1]
        other = [0, *([-1, -2, -5, -15, -25] if info.min else [])]
        found = np.array(some + other, dtype)[rng.integers(0, len(some + other), count)]
        return ta.asarray(found, device="cpu")
    facts = ta.finfo(dtype_of(dtype))
    some = [0.0, -0.0, np.nan, np.inf, -np.inf, 0.5, 1.5, -2.5, 0.125, 1.005, 25.0, -35.0, float(facts.max)]
    some += [float(facts.smallest_normal), float(facts.smallest_normal) / 4, -float(facts.max), 3.0, -3.0]
    drawn = np.where(rng.random(count) < 0.6, np.array(some)[rng.integers(0, len(some), count)], rng.normal(size=count))
    with np.errstate(all="ignore"):
        return ta.asarray(drawn, device="cpu").astype(dtype)


def _bits(device: Any, function: str) -> None:
    import numpy as np

    import tilearray as ta

    rng = np.random.default_rng(5)
    dtypes = {"round": (*FLOATS, "int8", "int64"), "frexp": (*FLOATS, "int16"), "modf": (*FLOATS, "int32")}
    for dtype in dtypes.get(function, FLOATS + INTEGERS):
        x, y = _values(dtype, 260, rng), _values(dtype, 260, rng)
        views = [(x, y), (x[::-2], y[1::2]), (ta.reshape(x, (13, 20)).T, ta.reshape(y, (20, 13))), (x[:0], y[:0])]
        for one, other in [*views, (x[3], y[4]), (ta.broadcast_to(x[:1], (5,)), y[:5])]:
            for call in CALLS[function]:
                if dtype in INTEGERS and ("40" in call or ("x, 2" in call)):
                    continue
                _compare(device, call, one, other)
    for semantics in ("numpy", "torch", "triton"):
        x = _values("float32", 40, rng)
        with ta.semantics(semantics):
            for call in CALLS[function]:
                _compare(device, call, x, x)


def _complex(device: Any, function: str) -> None:
    """Complex numbers, whose quotients may differ from the host's, are rounded as row by row."""
    import numpy as np
    from support.trees import bits

    import tilearray as ta
    from tilearray.ops import composed

    if function == "round":
        parts = np.random.default_rng(2).normal(size=(2, 50)) * 30
        x = ta.asarray(parts[0] + 1j * parts[1], device="cpu").astype("complex64").to_device(device)
        for places in (1, -1):
            rows = composed._to_decimals if places > 0 else composed._to_tens
            assert bits(ta.round(x, places)) == bits(rows._function(x, 10.0))


def _refusals(device: Any, function: str) -> None:
    """The errors are those of the rows, in the words of the host."""
    import tilearray as ta

    x = {name: ta.zeros(3, dtype=name, device="cpu") for name in ("int8", "uint64", "complex64", "bool", "float32")}
    calls = {
        "round": [lambda x: ta.round(x["bool"]), lambda x: ta.round(x["float32"], 1.5)],
        "frexp": [lambda x: ta.frexp(x["complex64"])],
        "modf": [lambda x: ta.modf(x["complex64"])],
        "divmod": [
            lambda x: ta.divmod(x["int8"], 300),
            lambda x: ta.divmod(x["int8"], x["uint64"]),
            lambda x: ta.divmod(x["complex64"], 2),
            lambda x: ta.divmod(x["bool"], x["bool"]),
            lambda x: ta.divmod(x["int8"], x["int8"][:2]),
            lambda x: ta.divmod(x["int8"], "a"),
            lambda x: [ta.divmod(x["uint64"][:0], number) for number in (3, -1)],
            lambda x: ta.divmod(x["int8"], ta.zeros(3, device="cpu" if x["int8"].device.type == "cuda" else device)),
        ],
    }
    for call in calls[function]:
        messages: list[str] = []
        for given in (x, {name: each.to_device(device) for name, each in x.items()}):
            with pytest.raises((ta.TileArrayError, TypeError)) as raised:
                call(given)
            messages.append(f"{type(raised.value).__name__}: {raised.value}")
        if "cuda" not in messages[0]:
            assert messages[0] == messages[1]


def _derivatives(device: Any, function: str) -> None:
    """Of the function, and of a fused function that calls it."""
    import numpy as np
    from support.trees import bits

    import tilearray as ta

    x = ta.asarray(np.random.default_rng(8).normal(size=40) * 20, device="cpu").astype("float32")
    first = {
        "round": lambda x: ta.round(x, 1) * x,
        "frexp": lambda x: ta.frexp(x)[0] * x,
        "modf": lambda x: ta.modf(x)[0] * x + ta.modf(x)[1],
        "divmod": lambda x: ta.divmod(x, 3.0)[1] * x + ta.divmod(x, 2.0)[0],
    }[function]
    total = [lambda x: ta.sum(first(x)), lambda x: ta.sum(ta.fuse(first)(x))]
    gradients = [bits(ta.grad(each)(given)) for each in total for given in (x, x.to_device(device))]
    assert len(set(gradients)) == 1
    assert bits(ta.fuse(first)(x.to_device(device))) == bits(first(x))


def _columns(device: Any, _: str) -> None:
    """Powers of integers wrap; the first ones are 1, of NaN too."""
    import numpy as np

    rng = np.random.default_rng(6)
    for dtype in (*FLOATS, "int64", "uint64"):
        x = _values(dtype, 50, rng)
        for part in (x, x[::-2], x[:1], x[:0]):
            for call in ("ta.vander(x, 5)", "ta.vander(x, 4, True)", "ta.vander(x, 1)", "ta.vander(x, 0)"):
                _compare(device, call, part, part)


def _pieces(device: Any, _: str) -> None:
    """Of conditions that hold together the last one counts; numbers are rounded to the dtype of the array."""
    import numpy as np

    import tilearray as ta

    rng = np.random.default_rng(7)
    for dtype in ("float32", "float64"):
        for shape in ((40,), (5, 8), (0,), ()):
            x = _values(dtype, 40, rng)[: int(np.prod(shape))].reshape(shape)
            first, last = (ta.asarray(rng.random(shape) < 0.5, device="cpu") for _ in range(2))
            theirs = [ta.to_numpy(each) for each in (x, first, last)]
            for numbers in ([-1, 0.1], [2**24 + 1, 1e-300, float("nan")], [-0.0, 3, 1.0]):
                expected = np.piecewise(theirs[0], theirs[1:], numbers)
                for where in ("cpu", device):
                    given = [each.to_device(where) for each in (x, first, last)]
                    before = device.backend.launches
                    found = ta.piecewise(given[0], given[1:], numbers)
                    assert device.backend.launches == before + (where == device and x.size > 0)
                    assert found.dtype == dtype
                    assert ta.to_numpy(found).tobytes() == expected.tobytes(), (dtype, shape, numbers)


@pytest.mark.parametrize("check", ["_columns", "_pieces"])
def test_columns_and_pieces(process: Any, check: str) -> None:
    process.pool.submit(_on_the_device, check, "").result()


@pytest.mark.parametrize("function", CALLS)
@pytest.mark.parametrize("check", ["_bits", "_complex", "_refusals", "_derivatives"])
def test_one_launch(process: Any, function: str, check: str) -> None:
    process.pool.submit(_on_the_device, check, function).result()


def _on_the_device(check: str, function: str) -> None:
    from unittest import mock

    from support.interpreter.emulated_gpu import emulated_device

    from tilearray.ops import one_launch

    with mock.patch.object(one_launch, "LARGE", 0):  # traced at the first call
        globals()[check](emulated_device(), function)


def test_layouts_are_traced_when_they_come_again(process):
    process.pool.submit(_count_sights).result()


def _count_sights() -> None:
    """Small ones; large ones at once."""
    from unittest import mock

    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta
    from tilearray.ops import one_launch

    device = emulated_device()
    calls = {
        "round": lambda x: ta.round(x, 2),
        "modf": lambda x: ta.modf(x)[0],
        "nansum": ta.nansum,
        "mean": lambda x: ta.mean(x, where=x > 0),
    }
    for call in calls.values():
        for size, large in ((333, 2**28), (334, 2**28), (335, 4 * 335)):
            x, counts, found = ta.arange(size, dtype="float32", device=device) / 7, [], []
            with mock.patch.object(one_launch, "LARGE", large):
                for _ in range(3):
                    before = device.backend.launches
                    found.append(ta.to_numpy(call(x)).tobytes())
                    counts.append(device.backend.launches - before)
            assert found == found[:1] * 3
            assert counts[1] == counts[2]
            assert (counts[0] > counts[1]) == (large == 2**28), (size, counts)
