"""Reductions as NumPy calls them: axis, dtype and out by position, and ddof, initial, where, against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tilearray as ta
from tilearray.engine.devices import Device
from tilearray.errors import DeviceError, DTypeError, OperandError, ShapeError, WriteError

DATA = np.random.default_rng(7).standard_normal((3, 4, 5))
ARRAYS = {
    "float64": DATA,
    "float32": DATA.astype(np.float32)[::-1, :, ::2],
    "int16": np.transpose((DATA * 50).astype(np.int16), (2, 0, 1)),
    "uint8": np.abs(DATA * 9).astype(np.uint8),
    "bool": DATA > 0.5,
    "complex64": (DATA + 1j * DATA[::-1]).astype(np.complex64),
    "no elements": np.zeros((3, 0, 2)),
    "no axes": np.array(2.5),
}
ARRAY = pytest.mark.parametrize("x", ARRAYS.values(), ids=ARRAYS)
FUNCTIONS = ["sum", "prod", "mean", "var", "std", "max", "min", "all", "any"]


def agrees(ours: Any, theirs: Any) -> None:
    """The values of NumPy in the dtype of ours, to the rounding of that dtype."""
    assert ours.shape == np.shape(theirs)
    tolerance = 0 if ours.dtype.kind in "biu" else 200 * np.finfo(ours.dtype).eps
    with np.errstate(all="ignore"):
        expected = np.asarray(theirs, ours.dtype)
    np.testing.assert_allclose(ta.to_numpy(ours), expected, rtol=tolerance, atol=tolerance)


def masks_of(x: np.ndarray) -> list[np.ndarray]:
    return [np.random.default_rng(3).random(x.shape) < 0.6, np.zeros(x.shape[-1:], bool), np.ones((1,) * x.ndim, bool)]


def axes_of(x: np.ndarray) -> list[Any]:
    return [None, *range(-x.ndim, x.ndim), *itertools.combinations(range(x.ndim), 2)]


@ARRAY
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_where_and_initial(name: str, x: np.ndarray):
    if name in ("max", "min") and x.dtype.kind == "c":
        return
    options: dict[str, Any] = {"initial": 1} if name in ("sum", "prod", "max", "min") else {}
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else float) if name in ("mean", "var", "std") else x
    for axis, mask, keepdims in itertools.product(axes_of(x), masks_of(x), (False, True)):
        expected = getattr(np, name)(wide, axis, keepdims=keepdims, where=mask, **options)
        given = ta.asarray(x)
        agrees(getattr(ta, name)(given, axis, keepdims=keepdims, where=ta.asarray(mask), **options), expected)


@ARRAY
def test_axis_dtype_out_and_ddof_have_numpys_positions(x: np.ndarray):
    if not x.size or not x.ndim:
        return
    ours, complex_one = ta.asarray(x), x.dtype.kind == "c"
    shape, wide = x.shape[1:], "complex128" if complex_one else "float64"
    out = ta.empty(shape, dtype=wide)
    for name in ("sum", "prod", "mean"):
        assert getattr(ta, name)(ours, 0, wide, out, False) is out
        agrees(out, getattr(np, name)(x, 0, wide))
    for name in ("var", "std"):
        real = ta.empty((1, *shape), dtype="float64")
        assert getattr(ta, name)(ours, 0, "float64", real, 1, True) is real
        agrees(real, getattr(np, name)(x.astype(wide), 0, None, None, 1, True))
        agrees(getattr(ta, name)(ours, 0, ddof=1), getattr(np, name)(x.astype(wide), 0, ddof=1))
    for name in ("all", "any", *(() if complex_one else ("max", "min"))):
        out = ta.empty((1, *shape), dtype=bool if name in ("all", "any") else x.dtype)
        assert getattr(ta, name)(ours, 0, out, True) is out
        agrees(out, getattr(np, name)(x, 0, None, True))
    agrees(ta.count_nonzero(ours, 1), np.count_nonzero(x, 1))


@ARRAY
@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_known_mean(name: str, x: np.ndarray):
    for axis, mask in itertools.product(axes_of(x), (None, *masks_of(x))):
        chosen = {} if mask is None else {"where": mask}
        mean = np.mean(x, axis, keepdims=True) + 0.25
        expected = getattr(np, name)(x, axis, mean=mean, ddof=1, **chosen)
        count = np.sum(np.broadcast_to(True if mask is None else mask, x.shape), axis)
        expected = np.where(count > 1, expected, np.nan)
        given: Any = ta.asarray(x)
        options = {"ddof": 1, **{key: ta.asarray(value) for key, value in chosen.items()}}
        agrees(getattr(ta, name)(given, axis, mean=ta.asarray(mean), **options), expected)
        if hasattr(given, name):
            agrees(getattr(given, name)(axis, mean=mean, **options), expected)


def test_the_dtype_beside_a_known_mean():
    x = ta.asarray([1, 2, 4], dtype="float32")
    for mean, dtype in ((2.5, "float32"), (ta.asarray([2.5], dtype="float64"), "float64"), ([2.5], "float64")):
        assert ta.var(x, mean=mean).dtype == dtype
    assert ta.var(x.astype("int8"), mean=2).dtype == "float32"
    assert ta.std(x.astype("float16"), mean=ta.asarray(2, dtype="float16"), keepdims=True).dtype == "float16"
    assert np.var(x, mean=np.float32(3.0)).item() == 2.0
    assert ta.var(x, mean=2.0).item() == pytest.approx(5 / 3)
    assert ta.fuse(lambda t, m: ta.var(t, 0, mean=m))(x, ta.asarray([2.0])).tolist() == pytest.approx(5 / 3)


@ARRAY
@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reductions_of_numbers_alone(name: str, x: np.ndarray):
    extreme = name in ("nanmax", "nanmin")
    if extreme and x.dtype.kind == "c":
        return
    x = x.copy()
    if x.dtype.kind in "fc" and x.size:
        x[np.random.default_rng(5).random(x.shape) < 0.3] = np.nan
    options: dict[str, Any] = {"initial": 1} if extreme or name in ("nansum", "nanprod") else {}
    wide = x if options else x.astype(np.complex128 if x.dtype.kind == "c" else float)
    for axis, mask, keepdims in itertools.product(axes_of(x), (None, *masks_of(x)), (False, True)):
        chosen = {} if mask is None else {"where": mask}
        expected = getattr(np, name)(wide, axis, keepdims=keepdims, **options, **chosen)
        ours = {key: ta.asarray(value) for key, value in chosen.items()}
        agrees(getattr(ta, name)(ta.asarray(x), axis, keepdims=keepdims, **options, **ours), expected)


def test_a_mask_beside_numbers_is_any_array_that_broadcasts():
    x = ta.asarray([[1.0, ta.nan, 3.0], [4.0, 5.0, 6.0]])
    assert ta.nansum(x, 1, where=ta.asarray([1, 1, 0])).tolist() == [1.0, 9.0]
    assert ta.nansum(x, 1, where=[True, True, False]).tolist() == [1.0, 9.0]
    assert ta.nanmean(x, 1, where=True).tolist() == [2.0, 5.0]
    assert ta.nansum(x, where=False).item() == 0
    with pytest.raises(
        ShapeError, match=r"^sum: expected where of a shape that broadcasts to \(2, 3\), got \(2, 2, 3\)"
    ):
        ta.nansum(x, where=ta.ones((2, 2, 3), dtype=bool))


def test_an_initial_value_chooses_from_no_elements():
    empty = ta.zeros((2, 0), dtype="int8")
    assert ta.max(empty, 1, initial=-5).tolist() == [-5, -5]
    assert ta.min(empty, keepdims=True, initial=np.int8(7)).tolist() == [[7]]
    assert np.isnan(ta.max(ta.asarray([1.0, ta.nan]), initial=9.0).item())
    assert ta.sum(ta.asarray([250], dtype="uint8"), dtype="uint8", initial=ta.asarray(10)).item() == 4


def test_out_takes_a_view_and_another_dtype_of_the_kind():
    target = ta.zeros((4, 6), dtype="float32")
    ta.sum(ta.ones((2, 5), dtype="float64"), 1, out=target[1::2, 3])
    assert ta.to_numpy(target).sum() == 10
    x = ta.asarray([[1.0, 2.0], [3.0, 4.0]])
    ta.sum(x, 0, out=x[0])  # the target is a part of the operand
    assert x.tolist() == [[4.0, 6.0], [3.0, 4.0]]


# fmt: off
ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda x: ta.sum(x, 0, out=ta.zeros(2)), ShapeError, r"^sum: expected out of shape \(3,\), got \(2,\); w"),
    (lambda x: ta.sum(x, out=ta.zeros((), dtype="int8")), DTypeError, "^sum: expected out of a dtype that can store"),
    (lambda x: ta.max(x, out=np.zeros(())), OperandError, "^max: expected a tilearray Array as out, got"),
    (lambda x: ta.max(x, where=x > 0), OperandError, "^max: expected initial= beside where="),
    (lambda x: ta.max(x, initial="a"), OperandError, "^max: expected initial as a number, got str; write initial=0"),
    (lambda x: ta.sum(x, where=x), DTypeError, "^sum: expected where as a bool array, got float32; write where="),
    (lambda x: ta.sum(x, where=ta.ones((4, 2, 3), dtype="bool")), ShapeError, r"^sum: expected where of a shape that"),
    (lambda x: ta.var(x, ddof=1, correction=1), OperandError, "^var: expected ddof or correction, got both"),
    (lambda x: ta.var(x, ddof="1"), OperandError, "^var: expected ddof as a real number, got str"),
    (lambda x: ta.mean(x, dtype="int8"), DTypeError, "^mean: expected a dtype of kind float or complex"),
    (lambda x: ta.std(x, dtype="complex64"), DTypeError, "^std: expected a float dtype, got complex64"),
    (lambda x: ta.std(x, mean=1j), DTypeError, "^std: expected a real mean for float32, got complex"),
    (lambda x: ta.var(x, 1, mean=ta.ones((2, 1, 1))), ShapeError, r"^var: expected mean of a shape that broadcasts to"),
]
# fmt: on


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_errors(call: Any, error: type[Exception], text: str):
    x = ta.ones((2, 3))
    with pytest.raises(error, match=text):
        call(x)


def test_a_read_only_target_is_refused():
    frozen = np.zeros(())
    frozen.flags.writeable = False
    with pytest.raises(WriteError, match=r"^sum: the target is read-only"):
        ta.sum(ta.ones(3), out=ta.asarray(frozen))


def test_an_initial_value_is_rounded_with_the_sum_and_once():
    half = 2.0**-11  # of an ulp of 1 in float16: twice rounded to even, the sum stays at 1
    x = ta.asarray([1.0, half], dtype="float16")
    assert ta.sum(x, initial=half).item() == 1 + 2 * half
    assert ta.add.reduce(x, initial=half).item() == 1 + 2 * half
    y = ta.asarray([1 + 2 * half, 1 + 2 * half], dtype="float16")
    assert ta.prod(y, initial=1 + 2 * half).item() == float(np.float16((1 + 2 * half) ** 3))
    assert ta.sum(x, initial=0.1).item() == float(np.float16(1 + half + float(np.float16(0.1))))
    assert ta.sum(ta.zeros((2, 0), dtype="int8"), axis=1, initial=7).tolist() == [7, 7]
    assert ta.sum(ta.asarray([True, False]), dtype="bool", initial=False).item() is True
    assert ta.prod(ta.asarray([1 + 2j]), initial=1j).item() == -2 + 1j


@pytest.mark.parametrize("where", [False, np.False_, np.True_])
def test_a_mask_of_one_value_is_on_every_device(elsewhere: Device, where):
    x = ta.ones((2, 3), device=elsewhere)
    assert ta.sum(x, 0, where=where).device is elsewhere
    assert ta.to_numpy(ta.sum(x, 0, where=where)).tolist() == [2.0 * where] * 3
    with pytest.raises(DeviceError, match=f"^sum: the operands are on {elsewhere} and on cpu; move one"):
        ta.sum(x, where=np.ones((2, 3), bool))


def test_a_target_on_another_device_is_refused_by_name(elsewhere: Device):
    x = ta.ones((2, 3))
    for name in ("sum", "argmax"):
        with pytest.raises(DeviceError, match=rf"^{name}: the operands are on cpu and on {elsewhere}; move one"):
            getattr(ta, name)(x, 0, out=ta.zeros(3, dtype="int64" if name == "argmax" else None, device=elsewhere))
