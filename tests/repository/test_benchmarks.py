"""The benchmarks' tables, check and libraries: bytes are counted right, wrong results are caught, memory is shared."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import cases, check, libraries, peers, run, timing
from benchmarks.cases import CALLS, LAYOUTS, Case

ROOT = Path(__file__).parents[2]
HOST_DTYPES = sorted({dtype for case in LAYOUTS for dtype in case.arrays.values()})


# ---------------------------------------------------------------------- the tables


def test_rows_have_names_of_their_own():
    for rows in (LAYOUTS, CALLS):
        assert len({row.name for row in rows}) == len(rows)
    assert {call.name for call in CALLS if call.fresh} == set(cases.FRESH)


@pytest.mark.parametrize("size", cases.SIZES)
@pytest.mark.parametrize("case", LAYOUTS, ids=lambda case: case.name)
def test_every_case_has_a_geometry_at_every_size(case: Case, size: str):
    operands, shape = case.geometry(size)
    assert len(operands) == len(case.operands)
    assert math.prod(shape) > 0
    assert case.ideal_bytes(size) <= case.traffic(size) < 2.3 * case.ideal_bytes(size) + 128


def test_the_full_size_is_far_beyond_the_cache():
    assert min(case.ideal_bytes("full") for case in LAYOUTS) > 8 * 60e6


MATRIX = np.empty((64, 64), np.float32)
DOUBLES = np.empty((16, 48), np.float64)


@pytest.mark.parametrize(
    "view",
    [
        MATRIX,
        MATRIX.T,
        MATRIX[::2],
        MATRIX[:, ::2],
        MATRIX[::-1, ::-4].T,
        MATRIX[:, ::9],
        MATRIX[8:40, 16:32],
        np.broadcast_to(MATRIX[:1], (64, 64)),
        MATRIX[:, :1],
        DOUBLES[:, ::3],
        DOUBLES[:, ::5],
        np.empty((4, 6, 5, 8), np.float32).transpose(1, 2, 3, 0)[::2],
        MATRIX.view(np.uint8)[:, ::3],
    ],
    ids=lambda view: f"{view.dtype}-{view.shape}-{view.strides}",
)
def test_bytes_are_those_of_the_addresses_reached(view: np.ndarray):
    """Every address, one by one; memory is taken to begin at the first of them that is lowest."""
    grid = np.ogrid[tuple(slice(0, extent) for extent in view.shape)]
    offsets = sum((abs(stride) * axis for stride, axis in zip(view.strides, grid)), np.zeros((), int)).ravel()
    octets = np.unique(offsets[:, None] + np.arange(view.itemsize))
    assert cases.reached(view) == (octets.size, np.unique(octets // cases.SECTOR).size * cases.SECTOR)


def test_every_second_column_moves_twice_its_bytes():
    (case,) = (case for case in LAYOUTS if case.name == "a[:, ::2] + b[:, ::2]")
    n = 16384
    assert case.ideal_bytes("full") == 3 * n * n // 2 * 4
    assert case.traffic("full") == 2 * n * n * 4 + n * n // 2 * 4


@pytest.mark.parametrize("name", cases.FRESH)
def test_never_seen_shapes_are_never_repeated(name: str):
    effort = timing.EFFORTS["full"]
    seen: set[tuple[Any, ...]] = set()
    for batch in range(effort.call_batches + 2):
        xs, ys = cases.FRESH[name](np.empty, batch * effort.calls, effort.calls)
        assert all(x.shape[-1:] == y.shape for x, y in zip(xs, ys, strict=True))
        seen.update(x.shape for x in xs)
    assert len(seen) == (effort.call_batches + 2) * effort.calls


# ---------------------------------------------------------------------- the check


@pytest.mark.parametrize("case", LAYOUTS, ids=lambda case: case.name)
def test_the_oracle_is_numpy_over_numpys_views(case: Case):
    owner = peers.NumPy("cpu")
    known = cases.shapes("small")
    arrays = {name: owner.random(known[name], dtype, 5) for name, dtype in case.arrays.items()}
    operands, target = case.views(arrays, owner.names)
    wide = [check.widened(x) for x in operands]
    whole = case.call(check.REFERENCE)(*wide, target)
    ((window, values),) = check.expected(case, "small", owner, arrays)
    np.testing.assert_array_equal(values, np.broadcast_to(whole, case.geometry("small")[1])[window])


@pytest.mark.parametrize("shape", [(1 << 17,), (300, 700), (40, 50, 60), (9, 30, 40, 50), (2, 1 << 16)])
def test_windows_hold_both_corners_and_stay_inside(shape: tuple[int, ...]):
    found = list(check.windows(shape))
    assert {tuple(part.start for part in window) for window in found} >= {(0,) * len(shape)}
    assert {tuple(part.stop for part in window) for window in found} >= {shape}
    for window in found:
        assert all(0 <= part.start < part.stop <= extent for part, extent in zip(window, shape))
    assert len({str(window) for window in found}) > 10


def test_windows_of_large_results_are_fetched_right(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(check, "WHOLE", 10)
    monkeypatch.setattr(check, "WINDOW", 300)
    case = Case("", ("a[:, ::-1]", "permute(b, (1, 0))[:, :1]"), "x - y")
    owner = peers.NumPy("cpu")
    arrays = {name: owner.random((96, 96), "float32", seed) for seed, name in enumerate("ab")}
    whole = arrays["a"][:, ::-1].astype(float) - arrays["b"].T[:, :1]
    found = check.expected(case, "small", owner, arrays)
    assert len(found) == check.WINDOWS + 2
    for window, values in found:
        np.testing.assert_array_equal(values, whole[window])


ADD = Case("a + b", ("a", "b"))


def checked(result: np.ndarray) -> None:
    owner = peers.NumPy("cpu")
    arrays = {name: np.full((96, 96), 1.5, np.float32) for name in "ab"}
    check.compare(ADD, owner, result, check.expected(ADD, "small", owner, arrays), (96, 96))


def test_a_right_result_passes():
    checked(np.full((96, 96), 3, np.float32))
    checked(np.full((96, 96), np.nextafter(np.float32(3), 4), np.float32))


@pytest.mark.parametrize("value", [3.00001, 77, np.nan, np.inf, -3])
def test_one_wrong_element_is_named(value: float):
    result = np.full((96, 96), 3, np.float32)
    result[95, 94] = value
    with pytest.raises(check.MismatchError) as error:
        checked(result)
    assert str(error.value) == (
        f"1 of 9216 elements of a window differ; at (95, 94) expected 3.0, got {np.float32(value)}"
    )


def test_another_shape_or_dtype_is_named():
    with pytest.raises(check.MismatchError, match=r"expected shape \(96, 96\), got \(96, 95\)"):
        checked(np.full((96, 95), 3, np.float32))
    with pytest.raises(check.MismatchError, match="expected float32, got float64"):
        checked(np.full((96, 96), 3.0))


def test_integers_and_bools_are_exact():
    assert check.differs(np.array([2**24 + 1]), np.array([2**24])).all()
    assert check.differs(np.array([True]), np.array([False])).all()


# ---------------------------------------------------------------------- the libraries


def owners() -> Iterator[Any]:
    yield pytest.param(peers.NumPy, id="numpy")
    yield pytest.param(peers.Torch, id="torch")


@pytest.fixture(params=owners())
def owner(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip(request.param.package)
    return request.param("cpu")


@pytest.mark.parametrize("dtype", HOST_DTYPES)
def test_data_are_of_the_dtype_and_well_conditioned(owner: Any, dtype: str):
    x = owner.random((50, 40), dtype, 7)
    values = owner.to_numpy(x)
    assert (values.dtype, values.shape) == (cases.dtype_of(dtype), (50, 40))
    assert np.unique(values).size >= (2 if dtype == "bool" else 100)
    if values.dtype.kind in "fcV":
        parts = check.widened(values).view(np.float64)
        assert parts.min() >= 1
        assert parts.max() <= 2
    np.testing.assert_array_equal(values, owner.to_numpy(owner.random((50, 40), dtype, 7)))
    assert (values != owner.to_numpy(owner.random((50, 40), dtype, 8))).any()
    np.testing.assert_array_equal(owner.take(x, np.array([[3, 1999]])), values.ravel()[[[3, 1999]]])


@pytest.mark.parametrize("dtype", HOST_DTYPES)
@pytest.mark.parametrize("library", ["tilearray", "torch"])
def test_memory_is_shared(library: str, dtype: str):
    pytest.importorskip(library)
    x = peers.NumPy("cpu").random((6, 5), dtype, 1)
    adapter = peers.PEERS[library]("cpu")
    theirs = adapter.adopt(x)
    np.testing.assert_array_equal(adapter.to_numpy(theirs), x)
    adapter.spoil(theirs)
    assert (x == (True if dtype == "bool" else 77)).all()
    assert adapter.copied == ""


@pytest.mark.parametrize("case", LAYOUTS, ids=lambda case: case.name)
def test_arrays_may_be_torchs(case: Case):
    pytest.importorskip("torch")
    here, missing = peers.open_libraries("cpu", ("tilearray", "torch"))
    session = run.Session("small", here, missing, peers.Torch("cpu"), timing.HostClock(), timing.Effort(0, 1, 1, 1, 1))
    statuses = {name: found["status"] for name, found in run.run_case(session, case)["results"].items()}
    assert statuses == {"tilearray": "ok", "torch": "not supported" if "torch" in case.without else "ok"}


def test_memory_that_cannot_be_shared_is_copied_and_told(monkeypatch: pytest.MonkeyPatch):
    def asarray(x: Any, *, copy: bool | None = None, device: str = "cpu") -> tuple[Any, str]:
        if copy is False:
            raise ValueError("no way in\nat all")
        return x, device

    library = peers.TileArray("cuda")
    library.xp = SimpleNamespace(asarray=asarray)
    monkeypatch.setattr(libraries, "_through_cupy", lambda x: x)
    monkeypatch.setattr(libraries, "host_copy", lambda x: "copy")
    assert library.adopt(np.zeros(2)) == ("copy", "cuda")
    assert library.copied == "ValueError: no way in"


def test_missing_libraries_give_the_reason(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(peers.Torch, "package", "no_such_package")
    here, missing = peers.open_libraries("cpu", ("numpy", "torch", "cupy"))
    assert list(here) == ["numpy"]
    assert missing == {"torch": "not installed", "cupy": "GPU only"}
