"""Assignment where a mask is true, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta

SHAPES = [(), (5,), (4, 3), (2, 3, 4), (0, 3)]


@pytest.mark.parametrize(("shape", "axes"), [(shape, axes) for shape in SHAPES for axes in range(len(shape) + 1)])
@pytest.mark.parametrize("value", [7, np.int16(-3), "row"], ids=str)
def test_masked_assignment_is_numpys(shape, axes, value):
    host = np.arange(np.prod(shape, dtype=int), dtype=np.int16).reshape(shape)
    mask = np.random.default_rng(1).random(shape[:axes]) < 0.5
    rest = shape[axes:]
    if value == "row":
        value = np.arange(rest[-1] if rest else 1, dtype=np.int16).reshape(rest[-1:])
    ours, before = ta.asarray(host.copy()), host.copy()
    ours[ta.asarray(mask)] = ta.asarray(value) if isinstance(value, np.ndarray) else value
    host[mask] = value
    np.testing.assert_array_equal(ta.to_numpy(ours), host)
    assert mask.any() or (host == before).all()


@pytest.mark.parametrize(
    ("shape", "mask"),
    [((0, 1), (0, 0)), ((2, 3), (2, 0)), ((2, 3), (0, 3)), ((2, 3), (0,)), ((3,), (0,)), ((3,), (1,)), ((2,), (2, 0))],
)
def test_a_mask_of_size_0_selects_nothing(shape, mask):
    """Along any axis, as in NumPy; the standard's own tests ask for it."""
    host, none = np.ones(shape, dtype="int32"), np.zeros(mask, dtype="bool")
    ours, chosen = ta.asarray(host), ta.asarray(none)
    try:
        expected = host[none]
    except IndexError:
        for act in (lambda: ours[chosen], lambda: ours.__setitem__(chosen, 5)):
            with pytest.raises((IndexError, ta.ShapeError)):
                act()
        return
    assert ours[chosen].shape == expected.shape
    ours[chosen] = 5
    ours[chosen] = ta.zeros(expected.shape[1:], dtype="int32")
    with pytest.raises((ValueError, ta.ShapeError)):
        ours[chosen] = ta.ones((7,), dtype="int32")
    with pytest.raises((ta.DTypeError, OverflowError)):
        ours[chosen] = 1j
    assert ours.tolist() == host.tolist()


def test_through_views_and_from_the_array_itself():
    host = np.arange(24).reshape(4, 6)
    ours = ta.asarray(host.copy())
    for x in (host, ours):
        view = x[::-1, ::2]
        view[view % 2 == 0] = -1
    np.testing.assert_array_equal(ta.to_numpy(ours), host)


CASTS = [
    ("bool", 2),
    ("int64", np.array([1, 2], dtype="uint64")),
    ("float32", np.array([2**40 + 2**16 + 1, 3])),
    ("int16", np.array([True, False])),
    ("uint64", np.array([1, 2])),
    ("float32", 1j),
]


@pytest.mark.parametrize("semantics", ["array-api", "numpy", "torch", "triton", "cutile"])
@pytest.mark.parametrize(("dtype", "value"), CASTS, ids=str)
def test_a_mask_casts_as_any_assignment_does(semantics, dtype, value):
    """A value is cast to the target's dtype, whatever the two would be promoted to."""
    found = []
    for key in (ta.asarray([True, False, True]), slice(0, 3, 2)):
        x = ta.zeros((3, 2), dtype=dtype, device="cpu")
        with ta.semantics(semantics):
            try:
                x[key] = ta.asarray(value, device="cpu") if isinstance(value, np.ndarray) else value
            except ta.DTypeError as error:
                found.append(str(error))
            else:
                found.append(x.tolist())
    assert found[0] == found[1]
    refused = isinstance(value, complex) or (dtype == "uint64" and semantics != "numpy")
    assert refused == isinstance(found[0], str)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda x: x.__setitem__(ta.asarray([True]), 1), ta.ShapeError, r"setitem: expected a mask over .*\(4, 3\)"),
        (
            lambda x: x.__setitem__(x > 0, ta.zeros((4, 3), dtype="int8")),
            ta.IndexingError,
            r"NumPy boolean array|shape",
        ),
        (lambda x: x.__setitem__(x > 0, ta.zeros(5, dtype="int8")), ta.BroadcastError, "12|a value that broadcasts"),
        (lambda x: x.__setitem__(x > 1, 300), ta.ScalarOverflowError, "300 does not fit int8"),
        (lambda x: x.__setitem__(x > 1, 1.5), ta.DTypeError, "int8 cannot hold 1.5"),
    ],
)
def test_errors_write_nothing(act, error, message):
    x = ta.ones((4, 3), dtype="int8")
    with pytest.raises(error, match=message):
        act(x)
    assert x.tolist() == [[1] * 3] * 4
