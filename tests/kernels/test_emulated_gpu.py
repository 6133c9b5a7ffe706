"""The library on an emulated GPU: generated kernels run by Triton's interpreter, everything above them as it is.

What has no row in the table of ops is seen here without a GPU: gathers, assignments, ranges.
"""

from __future__ import annotations

import gc
import itertools
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from support.interpreter.run import programs_of
from support.kernels import body_for, kernel_for, needs_triton
from support.oracles.formats import dtype_of

pytestmark = [needs_triton, pytest.mark.slow]

FEW = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])


@pytest.mark.parametrize("name", ["gather", "scatter", "take"])
def test_indexing_is_numpys(process, name):
    process.pool.submit(_indexing, name).result()


@pytest.mark.parametrize(
    "name",
    [
        "_errors",
        "_overlap",
        "_wide",
        "_values",
        "_lists",
        "_modes",
        "_ranges",
        "_launches",
        "_known",
        "_forms",
        "_puts",
        "_misaligned",
        "_turned",
        "_padded",
        "_over_rows",
        "_powers",
        "_tiles",
        "_tiles_of_views",
        "_remembered",
    ],
)
def test_on_the_device(process, name):
    process.pool.submit(globals()[name]).result()


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("strides", [[(600, 1)] * 3, [(600, 1), (600, 1), (1, 0)], [(600, 1), (600, 1), (1, 40)]])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_the_emulated_device_launches_as_many_programs(dtype, strides, aligned):
    """As the launcher does: from lengths at which a target that is misaligned needs one more to others."""
    found = pytest.importorskip("tilearray_cuda.kernel")

    body = body_for("add", [dtype] * 2)
    kernels = [kernel_for(body, (40, 600), strides, aligned=aligned)]
    boxes = [[(each * 40, each, 1)] * 2 + [(1, 64, 64 * 40)] for each in (900, 901, 1024)]
    kernels += [kernel_for(body, (64, 40, box[0][1]), box, aligned=aligned) for box in boxes]
    assert [kernel.merged for kernel in kernels[1:]] == [True, dtype != "uint8", False]
    odd = kernel_for(body, (1100, 1151), [(1151, 1), (1151, 1), (1, 1101)], aligned=aligned)
    assert odd.skewed_rows == (0 if dtype == "float32" else 4)
    kernels.append(odd)
    turned = kernel_for(body_for("identity", [dtype]), (1100, 1151), [(1151, 1), (1, 1101)], aligned=aligned)
    assert turned.skewed_rows == (32 if dtype == "float32" else 4)
    kernels.append(turned)
    pitches = [(320_000, 800, 1), (1, 961, 384_448)]
    boxes = [
        kernel_for(body_for("identity", [dtype]), (n, 400, 800), pitches, aligned=aligned) for n in (900, 960, 961)
    ]
    assert [box.skewed_columns for box in boxes] == [{"uint8": 0, "float16": 128, "float32": 256}[dtype] * aligned] * 3
    kernels += boxes
    kernels += [kernel_for(body, (size,), [(1,)] * 3, aligned=aligned) for size in (1, 1023, 1024, 1025, 2047, 2048)]
    arguments = SimpleNamespace(pack_fixed=lambda *values: values, block=b"block", fix=None)
    for kernel in kernels:
        fixed = found.fixed_by_loop(kernel.schedule, arguments)(kernel.loop)
        strides = [kernel.loop.strides[position][axis] for _, position, axis in kernel.schedule.open_strides()]
        assert fixed == (*kernel.loop.shape, *strides, programs_of(kernel), b"block")


def _indexing(name: str) -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.indexing import check_property

    check_property(name, emulated_device(), FEW)


def _errors() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.indexing import check_errors

    check_errors(emulated_device())


def _overlap() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.indexing import check_repeated_and_overlapping

    check_repeated_and_overlapping(emulated_device())


def _wide() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.indexing import check_rows_of_words, check_wide_rows

    check_wide_rows(emulated_device())
    check_rows_of_words(emulated_device())


def _values() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.indexing import check_host_values

    check_host_values(emulated_device())


def _lists() -> None:
    """Lists of Arrays on a GPU are put together there by every function, as `asarray` does, and assigned."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    host = np.asarray([[3, 1, 2], [5, 4, 6]], "float32")
    x, y = ta.asarray(host, device=device)
    calls = (
        *(lambda xp, a, b: xp.sum([a, b], axis=0), lambda xp, a, b: xp.mean([a[0], b[1], 2.5])),
        *(lambda xp, a, b: xp.minimum.reduce([a, b, a + b]), lambda xp, a, b: xp.median([a, b], axis=1)),
        *(lambda xp, a, b: xp.sqrt([[a], [b]]), lambda xp, a, b: xp.argmax([a[1], b[0]])),
    )
    for call in calls:
        found, wanted = call(ta, x, y), call(np, *host)
        assert found.device is device
        np.testing.assert_allclose(ta.to_numpy(found), wanted, rtol=1e-6)
    x[:2] = [y[0], 7]
    assert x.tolist() == [5, 7, 2]
    with pytest.raises(ta.DeviceError, match="cuda:0"):
        ta.zeros(2, device="cpu")[:] = [y[0], y[1]]


def _modes() -> None:
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta
    from tilearray_cuda.errors import DeferredIndexError

    device = emulated_device()
    x, index = ta.arange(5, device=device), ta.asarray([1, 7, -9], device=device)
    try:
        ta.set_index_check("clip")
        assert x[index].tolist() == [1, 4, 0]
        ta.set_index_check("deferred")
        found = x[index]
        with pytest.raises(DeferredIndexError, match=r"an index array held (7|-9)"):
            ta.to_numpy(found)
        assert found.tolist() == [1, 4, 0]
        x[index] = 9
        with pytest.raises(DeferredIndexError, match=r"an index array held (7|-9)"):
            ta.to_numpy(x)
        assert x.tolist() == [9, 9, 2, 3, 9]
        ta.zeros((5, 0), device=device)[index] = 1  # nothing is written, and the indices are checked
        with pytest.raises(DeferredIndexError, match=r"an index array held (7|-9)"):
            ta.to_numpy(x)
        ta.set_index_check("clip")
        x[index] = ta.asarray([1, 4, 0], device=device)
        assert x.tolist() == [0, 1, 2, 3, 4]
    finally:
        ta.set_index_check("raise")
    with pytest.raises(ta.IndexingError, match=r"got (7|-9)"):
        x[index]
    with pytest.raises(ta.DeviceError, match=r"write index.to_device\('cuda:0'\)"):
        x[ta.asarray([1], device="cpu")]
    assert x[[0, -1]].tolist() == [0, 4]
    assert x[np.array([[3]])].tolist() == [[3]]
    assert x[ta.asarray(2**64 - 1, dtype="uint64", device=device)[None] % 3].tolist() == [(2**64 - 1) % 3]
    with pytest.raises(ta.IndexingError):
        x[ta.asarray([2**64 - 1], dtype="uint64", device=device)]


RANGES = [
    ((5,), {}),
    ((5, -5, -2), {"dtype": "int8"}),
    ((2**63, 2**63 + 3), {}),
    ((2**63 - 3, 2**64 - 1, 2**62), {"dtype": "uint64"}),
    ((0, 3000), {"dtype": "float16"}),
    ((0.1, 2.0, 0.3), {}),
    ((0, 1, 1e-3), {"dtype": "float64"}),
    ((3, 3), {}),
    ((-3.5, 3), {"dtype": "int16"}),
    ((4,), {"dtype": "complex64"}),
]
SPACES = [
    ((0, 1, 7), {}),
    ((0, 10, 4), {"dtype": "int32"}),
    ((-1.5, 1.7, 1001), {"dtype": "float64"}),
    ((0, 1, 5), {"endpoint": False}),
    ((3, 3, 4), {}),
    ((1, 2, 1), {}),
    ((1, 2, 0), {}),
    ((0, 5e-324, 3), {"dtype": "float64"}),
    ((0, 1j, 3), {}),
    ((0, float("inf"), 3), {}),
]


def _ranges() -> None:
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    for function, cases in ((ta.arange, RANGES), (ta.linspace, SPACES)):
        for arguments, options in cases:
            ours = ta.to_numpy(function(*arguments, device=device, **options))
            host = ta.to_numpy(function(*arguments, device="cpu", **options))
            assert ours.dtype == host.dtype, (arguments, options)
            np.testing.assert_array_equal(ours, host, err_msg=f"{arguments} {options}")


def _remembered() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.remembered import FUNCTIONS, check_draws, check_takes, check_words

    check_draws(emulated_device())
    check_takes(emulated_device())
    for name in FUNCTIONS:
        check_words(name, emulated_device())


def _launches() -> None:
    """A gather is one launch; an assignment is two if it raises, one of which checks, or if it may change an index."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    backend = device.backend
    x, index = ta.arange(5, device=device), ta.asarray([1, 2], device=device)
    for act, launches in [
        (lambda: x[index], 1),
        (lambda: x.__setitem__(index, 3), 2),
        (lambda: _in_mode("clip", lambda: x.__setitem__(index, 3)), 1),
        (lambda: _in_mode("deferred", lambda: x.__setitem__(index, 3)), 1),
        (lambda: _in_mode("clip", lambda: x.__setitem__(x, 3)), 2),
        (lambda: x.__setitem__([True, False, True, False, True], x[index[:1]]), 2),
        (lambda: ta.arange(100, device=device), 1),
        (lambda: ta.linspace(0, 1, 100, device=device), 1),
    ]:
        before = backend.launches
        act()
        assert backend.launches - before == launches


def _in_mode(mode, act):
    """Call a function in a mode of the check of indices."""
    import tilearray as ta

    ta.set_index_check(mode)
    try:
        act()
    finally:
        ta.set_index_check("raise")


def _known() -> None:
    """Known signatures need no layout: gathers and assignments find their parts by them; others have their own."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta
    from tilearray.functions.indexing import gather

    device = emulated_device()
    host = np.arange(60).reshape(5, 12)
    x, y = ta.asarray(host, device=device), ta.asarray(host + 100, device=device)
    index, other = np.array([4, 0, -1]), np.array([1, 1, 2])
    calls = (
        lambda x, index: x[index],
        lambda x, index: x[:, index],
        lambda x, index: x[1:, index],
        lambda x, index: x[index, index],
        lambda x, index: ta.take(x, index, axis=1),
    )
    pairs = ((host, index), (host + 100, other))
    expected = [[*[call(x, key) for call in calls[:-1]], np.take(x, key, axis=1)] for x, key in pairs]
    found = [[ta.to_numpy(call(x, ta.asarray(index, device=device))) for call in calls]]
    writes = (
        lambda x, index: x.__setitem__(index, -1),
        lambda x, index: x.__setitem__(index, x[0] * 2),
        lambda x, index: x.__setitem__(np.s_[:, index], x[:, :1] - 3),
        lambda x, index: x.__setitem__((index, index), x[3, :1]),
    )
    _in_mode(
        "clip", lambda: [write(ta.asarray(host, device=device), ta.asarray(index, device=device)) for write in writes]
    )
    for write in writes:
        write(x, ta.asarray(index, device=device))
    made, gather.Layout = gather.Layout, None  # type: ignore[assignment]
    try:
        found.append([ta.to_numpy(call(y, ta.asarray(other, device=device))) for call in calls])
        for write in writes:
            write(y, ta.asarray(other, device=device))
        _in_mode("clip", lambda: [write(y, ta.asarray(other, device=device)) for write in writes])
    finally:
        gather.Layout = made
    for ours, wanted in zip(found, expected, strict=True):
        for one, right in zip(ours, wanted, strict=True):
            np.testing.assert_array_equal(one, right)
    for ours, (wanted, key), times in zip((x, y), pairs, (1, 2), strict=True):
        wanted = wanted.copy()
        for write in writes * times:
            write(wanted, key)
        np.testing.assert_array_equal(ta.to_numpy(ours), wanted)


def _forms() -> None:
    """A key of a known form is not read again: other indices and memory at other addresses give their own elements."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta
    from tilearray.functions.indexing import keys

    device = emulated_device()
    host = np.arange(7 * 6 * 5, dtype=np.float32).reshape(7, 6, 5)
    x = ta.asarray(host, device=device)
    views = [np.s_[:5, :5, :4], np.s_[:5, 1:, :4], np.s_[:5, 1:, 1:], np.s_[2:, :5, :4]]
    first, second = np.array([3, 0, -1]), np.array([1, 1, -4])
    forms = [
        lambda i, j: (i, j),
        lambda i, j: (j, 1, i),
        lambda i, j: (1, i),
        lambda i, j: (True, i),
        lambda i, j: (slice(1, None), i),
        lambda i, j: (slice(None, None, -2), i, slice(3)),
        lambda i, j: (slice(None, None, -2), i, slice(2)),
        lambda i, j: (Ellipsis, i),
        lambda i, j: (None, i, None, j),
        lambda i, j: (i, slice(None), j),
    ]
    read, keys._select = keys._select, _counting(keys._select)
    try:
        for again in (False, True):
            before = keys._select.calls
            for view, (i, j) in itertools.product(views, ((first, second), (second, first))):
                ours = [ta.asarray(index, device=device) for index in (i, j)]
                for form in forms:
                    np.testing.assert_array_equal(ta.to_numpy(x[view][form(*ours)]), host[view][form(i, j)])
                    selected = keys.select(x[view], form(*ours)).view
                    assert selected._signature.aligned is (selected._address % 16 == 0)
            if again:
                assert keys._select.calls - before == 4 * len(views), "a key with a bool is always read"
    finally:
        keys._select = read


def _tiles() -> None:
    """Tile space; a reduction of tiles that lie partly outside is one launch, or two if there are few tiles."""
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.tiles import check_tiles

    import tilearray as ta

    device = emulated_device()
    check_tiles(8, 21, device)
    rng, backend = np.random.default_rng(22), device.backend
    for name in ("float32", "float64", "bfloat16", "complex64", "complex128", "int8", "bool"):
        x = rng.integers(0, 2, (10, 21)).astype(dtype_of(name))
        host, ours = ta.asarray(x, device="cpu"), ta.asarray(x, device=device)
        for function, order, step in ((ta.sum, "C", None), (ta.var, "F", None), (ta.prod, "C", (3, 5))):
            if function is ta.var and name in ("bool", "complex64", "complex128"):
                continue
            before = backend.launches
            grid = ours.tiles((4, 8), order=order, padding=1, step=step)
            found = grid.reduce(function)
            assert backend.launches - before == 1
            kept = weakref.ref(grid)
            del grid
            gc.collect()
            assert kept() is None  # what is kept for the next call holds no array
            wanted = host.tiles((4, 8), order=order, padding=1, step=step).reduce(function)
            assert ta.to_numpy(found).tobytes() == ta.to_numpy(wanted).tobytes(), (name, function)


def _tiles_of_views() -> None:
    """Fused functions that take tiles apart or return them: views start inside, run backwards, and are read again."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    functions = [
        ta.fuse(lambda tiles, axis: ta.sum(ta.flip(tiles, axis=-1) * tiles, axis=axis)),
        ta.fuse(lambda tiles, axis: ta.sum(tiles[1:, ..., 1:], axis=axis)),
        ta.fuse(lambda tiles, axis: tiles[..., 1:] - tiles[..., :-1]),
        ta.fuse(lambda tiles, axis: (ta.max(tiles, axis=axis), tiles - ta.sum(tiles, axis=axis, keepdims=True))),
    ]
    device, rng = emulated_device(), np.random.default_rng(23)
    for name, shape, tile in (
        ("float32", (70, 131), (16, 32)),
        ("complex128", (9, 21), (4, 8)),
        ("uint8", (130,), (64,)),
    ):
        x = rng.integers(0, 50, shape).astype(dtype_of(name))
        for place in (slice(None), slice(None, None, -1)):
            host, ours = (ta.asarray(x, device=where)[place] for where in ("cpu", device))
            for function in functions[:3] if name == "complex128" else functions:
                axes = tuple(range(len(shape), 2 * len(shape)))
                wanted = function(host.tiles(tile, padding=3).stack(), axis=axes)
                found = ours.tiles(tile, padding=3).reduce(function)
                several = isinstance(found, tuple)
                for one, right in zip(found, wanted, strict=True) if several else ((found, wanted),):
                    assert ta.to_numpy(one).tobytes() == ta.to_numpy(right).tobytes(), (name, place, function)


def _puts() -> None:
    from support.interpreter.emulated_gpu import emulated_device
    from support.oracles.indexing import check_puts

    check_puts(emulated_device())


def _counting(function):
    """A function that counts its calls."""

    def counted(*arguments):
        counted.calls += 1
        return function(*arguments)

    counted.calls = 0
    return counted


def _powers() -> None:
    """Numbers as exponents, which have ways of their own, against arrays of them, and squares against products."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device, rng = emulated_device(), np.random.default_rng(7)
    for name in ("int8", "int32", "int64", "uint8", "uint64", "float16", "bfloat16", "float32", "float64"):
        dtype = dtype_of(name)
        x = rng.integers(-130, 130, 500).astype(dtype) if name[0] != "u" else rng.integers(0, 250, 500).astype(dtype)
        ours = ta.asarray(x, device=device)
        for exponent in (0, 1, 2, 3, 7, 64, 100):
            found = ta.to_numpy(ours**exponent)
            each = ta.to_numpy(ours ** ta.full(500, exponent, dtype=name, device=device))
            if exponent == 2:
                np.testing.assert_array_equal(found, ta.to_numpy(ours * ours))
            if "float" in name:
                found, each = found.astype("float64"), each.astype("float64")
                bound = {"float32": 2e-7, "bfloat16": 2.0**-7}.get(name, 1e-15)  # bfloat16: an ulp, as 38**2 is a tie
                np.testing.assert_allclose(found, each, rtol=bound)
            else:
                np.testing.assert_array_equal(found, each)


def _misaligned() -> None:
    """Runs from every address within a vector on, read and written: to the end of memory, or into the next row."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device, rng = emulated_device(), np.random.default_rng(5)
    for name in ("uint8", "bool", "float8_e5m2", "float16", "bfloat16"):
        dtype, size = dtype_of(name), 4096
        bits = rng.integers(0, 2 if name == "bool" else 90, (3, size + 16), np.uint8)
        x = bits.astype(dtype) if name == "float16" else np.repeat(bits, dtype.itemsize, axis=1).view(dtype)
        ours = ta.asarray(x, device=device)
        for skipped in (1, 8, 15) if dtype.itemsize == 1 else (1, 6):
            flat, rows, row = np.index_exp[2, skipped:], np.index_exp[:, skipped:], np.index_exp[0, skipped:]
            for key, other in ((flat, row), (rows, rows), (rows, row)):
                found = ta.to_numpy(ta.where(ours[key] == ours[other], ours[key], ours[other]))
                assert found.tobytes() == np.where(x[key] == x[other], x[key], x[other]).tobytes(), (name, key, other)
            for end in (None, 2000):
                target, expected = ta.asarray(x, device=device, copy=True), x.copy()
                count = len(x[1, skipped:end])
                target[1, skipped:end], expected[1, skipped:end] = ours[2, :count], x[2, :count]
                assert ta.to_numpy(target).tobytes() == expected.tobytes(), (name, skipped, end)
        whole = ta.asarray(x[0, : 4096 // dtype.itemsize], device=device, copy=True)  # two blocks, and no byte more
        target = ta.zeros(whole.shape, dtype=name, device=device)
        target[1:] = whole[1:]
        assert ta.to_numpy(target).tobytes() == bytes(dtype.itemsize) + ta.to_numpy(whole).tobytes()[dtype.itemsize :]
        count = 2048 // dtype.itemsize  # one block, to the middle of a vector
        partly, target = (
            ta.asarray(x[0, : count + 1], device=device, copy=True),
            ta.zeros(count, dtype=name, device=device),
        )
        target[:] = partly[1:]
        assert ta.to_numpy(target).tobytes() == x[0, 1 : count + 1].tobytes()


def _over_rows() -> None:
    """Blocks of small elements that go on in the next row: rows end in every place of a vector, and lie backwards."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device, rng = emulated_device(), np.random.default_rng(6)
    views = {
        "outer": lambda x, y: x[:, :1] + y[:1],
        "row": lambda x, y: x - y[:1],
        "rows of other pitches": lambda x, y: x[:, 1:] - y[1:2, 1:],
        "backwards": lambda x, y: x[:, ::-1] - y,
        "from the end": lambda x, y: x[::-1, ::-1] + y[:1, ::-1],
        "flat backwards": lambda x, y: x.reshape(-1)[::-1] - y.reshape(-1),
        "pitches backwards": lambda x, y: x[:, :0:-1] + y[:, 1:],
        "three": lambda x, y: x[:, ::-1] + (x[:1] - y[:, :1]),
        "every other": lambda x, y: x[:1] + y.T.reshape(-1)[: x.size].reshape(x.shape)[:, ::-1],
    }
    for dtype in ("uint8", "int8", "float16"):
        for columns in (515, 521, 1024, 1039, 2113):
            x, y = rng.integers(0, 50 if dtype == "float16" else 250, (2, 3, columns)).astype(dtype)
            ours = [ta.asarray(each, device=device, copy=True) for each in (x, y)]
            for name, view in views.items():
                found = ta.to_numpy(view(*ours))
                assert found.tobytes() == view(x, y).tobytes(), (name, dtype, columns)
            target, whole = np.ones((3, columns), dtype), ta.ones(3 * columns + 9, dtype=dtype, device=device)
            into = whole[5 : 5 + 3 * columns].reshape(3, columns)  # what is read is written in the same launch
            into += ours[0][:1]
            into -= ours[1][:, ::-1]
            assert ta.to_numpy(into).tobytes() == (target + x[:1] - y[:, ::-1]).tobytes(), (dtype, columns)
            assert ta.to_numpy(whole[:5]).tolist() + ta.to_numpy(whole[-4:]).tolist() == [1] * 9


def _padded() -> None:
    """Copies before and after a product of a library: of rows at any address, transposed, and of parts of rows."""
    from support.fake_cublas import FakeProducts
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta
    from tilearray.engine.caches import PLANS
    from tilearray_cuda.libraries import cublas

    device, rng = emulated_device(), np.random.default_rng(5)
    left, right = (rng.integers(-1, 2, shape).astype("float32") for shape in ((70, 269), (269, 141)))
    x, y = (ta.asarray(each, device=device).astype("float16") for each in (left, right))
    products = FakeProducts(device.backend)
    PLANS.clear()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(device.backend, "products", products)
        for name in ("LAUNCH", "BYTE"):
            patched.setattr(cublas, name, 0)
        for ours, wanted in (
            (x @ y, left @ right),
            (y.T @ x.T, right.T @ left.T),
            (x[:, 1:] @ y[1:], left[:, 1:] @ right[1:]),
            (x[3:, 5:].T @ x[3:], left[3:, 5:].T @ left[3:]),
        ):
            assert ta.to_numpy(ours).astype("float32").tolist() == wanted.tolist()
    assert (products.library.calls, min(products.library.alignments) >= 16) == (["gemm_ex"] * 4, True)
    PLANS.clear()


def _turned() -> None:
    """A loop that begins at the other end of an axis, at any address; what is said of the address is checked."""
    from support.interpreter.emulated_gpu import emulated_device

    import tilearray as ta

    device = emulated_device()
    for size in (1024, 1027):
        x, target = np.arange(size, dtype=np.float32), ta.zeros(size, dtype="float32", device=device)
        target[::-1] = ta.asarray(x, device=device)
        assert target.tolist() == x[::-1].tolist()
        flipped = ta.asarray(x, device=device)[::-1]
        assert ta.to_numpy(ta.add(flipped, flipped, out=target[::-1])).tolist() == (x[::-1] + x[::-1]).tolist()
