"""Two GPUs: each has its own arrays, kernels, memory and streams; a thread uses both without a mix-up."""

from __future__ import annotations

import gc
from importlib.util import find_spec

import numpy as np
import pytest
from support.threads import in_threads

import tilearray as ta
from tilearray import cuda

pytest.importorskip("tilearray_cuda.runtime.driver", reason="cuda-python is not installed")

pytestmark = pytest.mark.skipif("cuda.device_count() < 2", reason="needs two GPUs")

DEVICES = ("cuda:0", "cuda:1")


def on(device, shape=(300, 400), dtype="float32", seed=0):
    """Return random numbers on the host and on a GPU."""
    host = (
        np.random.default_rng(seed).integers(-100, 100, shape).astype(ta.asarray([0], dtype=dtype, device="cpu").dtype)
    )
    return host, ta.asarray(host, device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_expressions_stay_where_their_operands_are(device):
    host, x = on(device)
    results = {
        "transposed": (x[:, :300] + x[:, :300].T, host[:, :300] + host[:, :300].T),
        "row": (x * 2 + x[0], host * 2 + host[0]),
        "reversed": (x[::-1, ::2] - 1.5, host[::-1, ::2] - 1.5),
        "gather": (x[ta.asarray([3, -1, 7], device=device)], host[[3, -1, 7]]),
        "joined": (ta.concat([x, x[:10]]), np.concatenate([host, host[:10]])),
        "range": (ta.arange(10, device=device), np.arange(10)),
        "cast": (x.astype("int8"), host.astype("int8")),
    }
    for name, (found, expected) in results.items():
        assert str(found.device) == device, name
        np.testing.assert_array_equal(ta.to_numpy(found), expected, err_msg=name)
    x[x > 0] = 0
    assert ta.to_numpy(x).max() == min(host.max(), 0)
    with pytest.raises(IndexError):
        x[ta.asarray([300], device=device)]


def test_operands_of_two_gpus_are_refused_by_name():
    x, y = on("cuda:0")[1], on("cuda:1")[1]
    for call in (lambda: x + y, lambda: x.__iadd__(y), lambda: ta.add(x, x, out=y), lambda: ta.concat([x, y])):
        with pytest.raises(ta.DeviceError, match=r"cuda:0.*cuda:1|cuda:1.*cuda:0"):
            call()
    assert (ta.to_numpy(x + x.to_device(x.device)) == 2 * ta.to_numpy(x)).all()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "bfloat16", "float32", "complex128"])
@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x.T, lambda x: x[::-1, 3::7], lambda x: x[5, 6], lambda x: x[:0]], ids="dtsoe"
)
def test_arrays_move_between_gpus(dtype, view):
    host, x = on("cuda:0", dtype=dtype)
    there = view(x).to_device("cuda:1")
    back = there.to_device("cuda:0")
    assert (str(there.device), str(back.device)) == ("cuda:1", "cuda:0")
    for found in (there, back):
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(ta.to_numpy(found), view(host))


def test_a_move_waits_for_earlier_work_and_later_work_waits_for_the_move():
    ballast = ta.ones(1 << 28, dtype="float32", device="cuda:0")
    for round_ in range(3):
        x = ta.zeros(1 << 20, dtype="int64", device="cuda:0")
        side = cuda.Stream("cuda:0")
        with cuda.stream(side):
            for _ in range(50):
                ballast *= 1.0
            x += round_ + 1
        there = x.to_device("cuda:1") * 2
        del x
        gc.collect()
        ta.full(1 << 20, -1, dtype="int64", device="cuda:0")  # may reuse the memory of the copy
        assert (ta.to_numpy(there) == 2 * (round_ + 1)).all()


def test_a_strided_array_moves_while_a_stream_of_the_target_is_in_force():
    host, x = on("cuda:0")
    with cuda.stream(cuda.Stream("cuda:1")):
        there = x[:, ::3].to_device("cuda:1") + 1
    np.testing.assert_array_equal(ta.to_numpy(there), host[:, ::3] + 1)


def test_threads_use_both():
    wrong = []

    def body(seed):
        x, y = (ta.full(1000, seed, dtype="int64", device=device) for device in DEVICES)
        for _ in range(500):
            x, y = x + 1, y + 2
        if (ta.to_numpy(x) != seed + 500).any() or (ta.to_numpy(y) != seed + 1000).any():
            wrong.append(seed)

    assert in_threads(8, body) == [None] * 8
    assert wrong == []


def test_memory_is_counted_per_gpu():
    gc.collect()
    for device in DEVICES:  # what earlier tests left is counted until its streams are done
        cuda.synchronize(device)
        cuda.empty_cache(device)
    before = [cuda.memory_statistics(device).live for device in DEVICES]
    x = ta.empty(1 << 22, dtype="uint8", device="cuda:1")
    after = [cuda.memory_statistics(device).live for device in DEVICES]
    assert [b - a for a, b in zip(before, after, strict=True)] == [0, 1 << 22]
    del x


def test_the_default_device_may_be_the_second_one():
    previous = ta.default_device()
    ta.set_default_device("cuda:1")
    try:
        assert str((ta.asarray([1, 2]) + 1).device) == "cuda:1"
        assert str(ta.zeros(3).device) == "cuda:1"
    finally:
        ta.set_default_device(previous)


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("current", [0, 1])
def test_torch_and_cupy_exchange_where_they_are(index, current):
    """For each GPU that torch and CuPy make the current one."""
    torch, cp = pytest.importorskip("torch"), pytest.importorskip("cupy")
    with cp.cuda.Device(index):
        theirs = cp.arange(10, dtype="float32")
    tensor = torch.arange(10, dtype=torch.float32, device=f"cuda:{index}")
    with cp.cuda.Device(current), torch.cuda.device(current):
        for given, pointer in ((tensor, tensor.data_ptr()), (theirs, theirs.data.ptr)):
            x = ta.asarray(given)
            assert str(x.device) == f"cuda:{index}"
            assert x.__cuda_array_interface__["data"][0] == pointer
            assert ta.to_numpy(x + 1).tolist() == list(range(1, 11))
            back = torch.from_dlpack(x)
            assert (back.device.index, back.data_ptr()) == (index, pointer)
            assert cp.from_dlpack(x).data.ptr == pointer
            y = x * 2
            assert torch.from_dlpack(y).tolist() == [2 * value for value in range(10)]
        assert torch.cuda.current_device() == cp.cuda.Device().id == current


# --- peer access, and collective operations --------------------------------------------------------------------------


def test_copies_between_peers_do_not_touch_the_host():
    host, x = on("cuda:0", (1 << 22,))
    is_direct = cuda.peer_access("cuda:0", "cuda:1")
    before = [cuda.transfer_statistics(device) for device in DEVICES]
    there = x.to_device("cuda:1")
    back = there.to_device("cuda:0")
    after = [cuda.transfer_statistics(device) for device in DEVICES]
    moved = [tuple(b - a for a, b in zip(*pair)) for pair in zip(before, after)]
    assert moved == [(0, 0, x.nbytes, 0) if is_direct else (0, 0, 0, x.nbytes)] * 2
    np.testing.assert_array_equal(ta.to_numpy(back), host)


def test_memory_of_torch_moves_between_peers():
    """Its allocator takes memory from the driver without a pool: the contexts give the access to it."""
    torch = pytest.importorskip("torch")
    tensor = torch.arange(1 << 20, device="cuda:1")
    moved = ta.asarray(tensor).to_device("cuda:0")
    assert (torch.from_dlpack(moved).cpu() == tensor.cpu()).all()


def both(*values, dtype):
    host = [np.asarray(value).astype(ta.empty(0, dtype=dtype, device="cpu").dtype) for value in values]
    return host, [ta.asarray(one, device=device) for one, device in zip(host, DEVICES, strict=True)]


NCCL = pytest.mark.skipif(find_spec("nccl") is None, reason="nccl4py is not installed")


@NCCL
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "bfloat16",
                                   "float32", "float64"])  # fmt: skip
@pytest.mark.parametrize("shape", [(), (5,), (1000, 1001)])
def test_all_reduce(shape, dtype):
    values = np.random.default_rng(1).integers(1, 6, (2, *shape))
    of = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
    host, arrays = both(*values, dtype=dtype)
    for op, expected in of.items():
        for x, device in zip(ta.distributed.all_reduce(arrays, op), DEVICES, strict=True):
            assert (str(x.device), x.dtype) == (device, host[0].dtype)
            np.testing.assert_array_equal(ta.to_numpy(x), expected(*host))


@NCCL
def test_means_complex_sums_and_truth_values():
    host, arrays = both([1.0, 2.0], [4.0, -2.0], dtype="float32")
    assert [x.tolist() for x in ta.distributed.all_reduce(arrays, "mean")] == [[2.5, 0.0]] * 2
    host, arrays = both([1 + 2j, 3], [4j, -2 - 1j], dtype="complex64")
    assert ta.distributed.all_reduce(arrays)[1].tolist() == (host[0] + host[1]).tolist()
    host, arrays = both([True, False, False], [True, True, False], dtype="bool")
    assert ta.distributed.all_reduce(arrays, "max")[0].tolist() == [True, True, False]


@NCCL
@pytest.mark.parametrize("dtype", ["bool", "int16", "bfloat16", "float64", "complex128"])
def test_gathers_broadcasts_and_scatters(dtype):
    host, arrays = both(*np.random.default_rng(2).integers(0, 2, (2, 6, 5)), dtype=dtype)
    for x in ta.distributed.all_gather([x.T for x in arrays]):
        np.testing.assert_array_equal(ta.to_numpy(x), np.concatenate([one.T for one in host]))
    for x, device in zip(ta.distributed.broadcast(arrays[1], DEVICES), DEVICES, strict=True):
        assert str(x.device) == device
        np.testing.assert_array_equal(ta.to_numpy(x), host[1])
    if dtype in ("bfloat16", "float64", "complex128"):
        for x, part in zip(ta.distributed.reduce_scatter(arrays), np.split(host[0] + host[1], 2), strict=True):
            np.testing.assert_array_equal(ta.to_numpy(x), part)


@NCCL
def test_results_go_to_out_and_in_place_on_any_stream():
    host, arrays = both(*np.random.default_rng(3).integers(0, 99, (2, 1 << 20)), dtype="int64")
    sides = [cuda.Stream(device) for device in DEVICES]
    ballast = [ta.ones(1 << 26, dtype="float32", device=device) for device in DEVICES]
    for side, x, heavy in zip(sides, arrays, ballast, strict=True):
        with cuda.stream(side):
            for _ in range(50):
                heavy *= 1.0
            x += 1  # still runs when the sum begins
    with cuda.stream(sides[1]):
        found = ta.distributed.all_reduce(arrays, out=arrays)
    assert all(x is y for x, y in zip(found, arrays, strict=True))
    doubled = [x * 2 for x in arrays]
    for x in doubled:
        np.testing.assert_array_equal(ta.to_numpy(x), 2 * (host[0] + host[1] + 2))
    wide = [ta.zeros((1 << 20, 2), dtype="int64", device=device) for device in DEVICES]
    ta.distributed.all_reduce(arrays, out=[x[:, 1] for x in wide])
    assert all((ta.to_numpy(x[:, 1]) == 2 * (host[0] + host[1] + 2)).all() for x in wide)
    assert all((ta.to_numpy(x[:, 0]) == 0).all() for x in wide)


@NCCL
def test_threads_reduce_one_after_the_other():
    def body(seed):
        _, arrays = both(np.full(1000, seed), np.full(1000, 10 * seed), dtype="int64")
        for _ in range(20):
            assert ta.distributed.all_reduce(arrays)[1].tolist() == [11 * seed] * 1000

    assert in_threads(4, body) == [None] * 4
