"""``ta.distributed`` over the stub: a stand-in for nccl4py's bindings computes in host memory when a group ends."""

from __future__ import annotations

import ctypes
import importlib
import sys
import types

import ml_dtypes
import numpy as np
import pytest

import tilearray as ta
from tilearray import cuda
from tilearray_cuda.device import open_device
from tilearray_cuda.errors import CaptureError, CudaError
from tilearray_cuda.libraries import bindings, nccl
from tilearray_cuda.runtime import driver

DTYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", ml_dtypes.bfloat16]
REDUCE = [np.add, np.multiply, np.maximum, np.minimum, None]
DEVICES = ("cuda:0", "cuda:1")


def memory(address, count, code):
    dtype = np.dtype(DTYPES[code])
    return np.frombuffer((ctypes.c_ubyte * (count * dtype.itemsize)).from_address(address), dtype)


class FakeNccl(types.ModuleType):
    """The functions of ``nccl.bindings.nccl`` that we call. A communicator is a device with its rank and their number.

    A call outside of a group, in another context than its device's, or a second one for a rank is an error of the test.
    """

    def __init__(self):
        super().__init__("nccl.bindings.nccl")
        self.made, self.groups, self.calls, self.fails = [], 0, [], None

    def get_version(self):
        return 22800

    def comm_init_all(self, count, devices):
        assert count == len(devices)
        self.made.append(devices)
        return [(device, rank, count) for rank, device in enumerate(devices)]

    def group_start(self):
        assert not self.calls
        self.groups += 1

    def group_end(self):
        calls, self.calls = self.calls, []
        if self.fails is None:
            assert [call[-2][1] for call in calls] == [*range(len(calls))] == [*range(calls[0][-2][2])]
            getattr(self, f"_{calls[0][0]}")([call[1:] for call in calls])

    def _collect(self, name, *arguments):
        assert int(driver.call(driver.api.cuCtxGetCurrent)) == int(open_device(arguments[-2][0]).context)
        if self.fails == len(self.calls):
            raise RuntimeError("NCCL_ERROR_UNHANDLED_CUDA_ERROR (1): unhandled cuda error")
        self.calls.append((name, *arguments))

    def all_reduce(self, *arguments):
        self._collect("all_reduce", *arguments)

    def all_gather(self, *arguments):
        self._collect("all_gather", *arguments)

    def broadcast(self, *arguments):
        self._collect("broadcast", *arguments)

    def reduce_scatter(self, *arguments):
        self._collect("reduce_scatter", *arguments)

    def _reduced(self, sources, count, code, op):
        parts = [memory(source, count, code) for source in sources]
        total = parts[0]
        for part in parts[1:]:
            total = (REDUCE[op] or np.add)(total, part)
        return (total / len(parts)).astype(total.dtype) if REDUCE[op] is None else total.copy()

    def _all_reduce(self, calls):
        _, _, count, code, op, _, _ = calls[0]
        total = self._reduced([call[0] for call in calls], count, code, op)
        for call in calls:
            memory(call[1], count, code)[:] = total

    def _reduce_scatter(self, calls):
        _, _, count, code, op, _, _ = calls[0]
        total = self._reduced([call[0] for call in calls], len(calls) * count, code, op)
        for rank, call in enumerate(calls):
            memory(call[1], count, code)[:] = total[rank * count : (rank + 1) * count]

    def _all_gather(self, calls):
        _, _, count, code, _, _ = calls[0]
        joined = np.concatenate([memory(call[0], count, code) for call in calls])
        for call in calls:
            memory(call[1], len(joined), code)[:] = joined

    def _broadcast(self, calls):
        _, _, count, code, root, _, _ = calls[0]
        value = memory(calls[root][0], count, code).copy()
        for call in calls:
            memory(call[1], count, code)[:] = value


@pytest.fixture
def library(monkeypatch, stub):
    fake = FakeNccl()
    for name in ("nccl", "nccl.bindings", "nccl.bindings.nccl"):
        monkeypatch.setitem(sys.modules, name, fake)
    bindings.bindings.cache_clear()
    monkeypatch.setattr(nccl.COLLECTIVES, "_communicators", {})
    yield fake
    bindings.bindings.cache_clear()


def on_both(*values, dtype="float32"):
    host = [np.asarray(value).astype(np.dtype(dtype)) for value in values]
    return host, [ta.asarray(one, device=device) for one, device in zip(host, DEVICES)]


def numbers(count=6, seed=0):
    return np.random.default_rng(seed).integers(1, 5, (2, count))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("op", "of"), [("sum", np.add), ("prod", np.multiply), ("max", np.maximum), ("min", np.minimum)]
)
def test_all_reduce(library, dtype, op, of):
    host, arrays = on_both(*numbers(), dtype=dtype)
    found = ta.distributed.all_reduce(arrays, op)
    assert [str(x.device) for x in found] == [*DEVICES]
    for x in found:
        assert x.dtype == host[0].dtype
        np.testing.assert_array_equal(ta.to_numpy(x), of(*host))
    assert [ta.to_numpy(x).tolist() for x in arrays] == [x.tolist() for x in host]


def test_means_and_complex_sums(library):
    host, arrays = on_both(*numbers())
    assert ta.distributed.all_reduce(arrays, "mean")[1].tolist() == ((host[0] + host[1]) / 2).tolist()
    host, arrays = on_both(numbers()[0] + 2j, numbers()[1] - 5j, dtype="complex64")
    assert ta.distributed.all_reduce(arrays)[0].tolist() == (host[0] + host[1]).tolist()
    host, arrays = on_both([True, False], [True, True], dtype="bool")
    assert [ta.distributed.all_reduce(arrays, op)[1].tolist() for op in ("max", "min")] == [[True, True], [True, False]]


def test_all_gather_joins_every_dtype_along_axis_0(library):
    for dtype in ("bool", "int16", "complex128", ml_dtypes.float8_e4m3fn):
        host, arrays = on_both(numbers().reshape(2, 2, 3)[0], numbers().reshape(2, 2, 3)[1], dtype=dtype)
        for x in ta.distributed.all_gather(arrays):
            assert (x.shape, x.dtype) == ((4, 3), host[0].dtype)
            assert ta.to_numpy(x).tobytes() == np.concatenate(host).tobytes()


def test_broadcast_copies_from_its_gpu(library):
    x = ta.asarray([[1, 2], [3, 4]], device="cuda:1")
    found = ta.distributed.broadcast(x, ["cuda:0", "cuda:1"])
    assert [(str(y.device), y.tolist()) for y in found] == [(device, [[1, 2], [3, 4]]) for device in DEVICES]
    out = [ta.zeros((2, 2), dtype="int64", device="cuda:0"), x]
    assert ta.distributed.broadcast(x, DEVICES, out=out)[0] is out[0]
    assert out[0].tolist() == out[1].tolist() == [[1, 2], [3, 4]]


def test_reduce_scatter_returns_the_parts(library):
    host, arrays = on_both(*numbers(8), dtype="int64")
    found = ta.distributed.reduce_scatter([x.reshape(4, 2) for x in arrays], "max")
    expected = np.maximum(*host).reshape(4, 2)
    assert [x.tolist() for x in found] == [expected[:2].tolist(), expected[2:].tolist()]
    with pytest.raises(ta.ShapeError, match=r"reduce_scatter: expected arrays whose axis 0 divides into 2 equal parts"):
        ta.distributed.reduce_scatter([x[:3] for x in arrays])


def test_results_go_to_out_and_in_place(library):
    host, arrays = on_both(*numbers(), dtype="int64")
    out = [ta.empty(6, dtype="int64", device=device) for device in DEVICES]
    found = ta.distributed.all_reduce(arrays, out=out)
    assert all(x is y for x, y in zip(found, out))
    pointers = [x._buffer.pointer for x in arrays]
    ta.distributed.all_reduce(arrays, out=arrays)
    assert pointers == [x._buffer.pointer for x in arrays]
    assert [x.tolist() for x in (*out, *arrays)] == [(host[0] + host[1]).tolist()] * 4


def test_operands_that_share_memory_with_out_are_not_overwritten_while_they_are_read(library, monkeypatch):
    written = []
    monkeypatch.setattr("tilearray.distributed.store", lambda out, value: written.append((out, ta.to_numpy(value))))
    host, whole = on_both(*numbers(8), dtype="int64")
    ta.distributed.all_reduce([x[:6] for x in whole], out=[x[2:] for x in whole])
    assert [value.tolist() for _, value in written] == [(host[0] + host[1])[:6].tolist()] * 2
    assert [x.tolist() for x in whole] == [x.tolist() for x in host]


def test_one_communicator_and_one_group_a_call(library):
    _, arrays = on_both(*numbers())
    for _ in range(3):
        ta.distributed.all_reduce(arrays)
    ta.distributed.all_gather(arrays[::-1])
    assert library.made == [[0, 1], [1, 0]]
    assert library.groups == 4
    ta.distributed.all_reduce([x[:0] for x in arrays])
    assert library.groups == 4


def test_a_list_of_known_signatures_is_not_checked_again(library, monkeypatch):
    checked = []
    check = ta.distributed._check
    monkeypatch.setattr("tilearray.distributed._check", lambda *given: checked.append(given) or check(*given))
    host, arrays = on_both(*numbers(37))
    for _ in range(3):
        ta.distributed.all_reduce(arrays, out=arrays)
    ta.distributed.all_gather([x.copy() for x in arrays])
    assert len(checked) <= 1
    assert arrays[1].tolist() == (4 * (host[0] + host[1])).tolist()
    columns = [ta.zeros((37, 2), dtype="float32", device=device)[:, 0] for device in DEVICES]
    for _ in range(2):  # these are copied, and so are not known
        assert [x.shape for x in ta.distributed.all_gather(columns)] == [(74,)] * 2
    for wrong in (arrays[:1] * 2, [arrays[0], columns[1][:36]], [arrays[0], ta.to_numpy(arrays[1])]):
        with pytest.raises((ta.DeviceError, ta.ShapeError, ta.OperandError)):
            ta.distributed.all_reduce(wrong)


def test_calls_run_on_the_active_stream_of_a_gpu_after_the_work_on_its_arrays(library, stub):
    calls = []
    library._all_reduce = lambda given: calls.extend(given)
    _, arrays = on_both(*numbers(), dtype="int64")
    side = cuda.Stream("cuda:1")
    stub.start_log()
    with cuda.stream(side):
        ta.distributed.all_reduce(arrays)
    assert [call[-1] for call in calls] == [0, side.handle]
    waits = [(call.name, call.stream) for call in stub.log() if call.name in ("cuEventRecord", "cuStreamWaitEvent")]
    assert waits == [("cuEventRecord", 0), ("cuStreamWaitEvent", side.handle)]


def test_failures_of_the_library_are_ours_and_end_the_group(library):
    _, arrays = on_both(*numbers())
    library.fails = 1
    with pytest.raises(CudaError, match="all_reduce: NCCL_ERROR_UNHANDLED_CUDA_ERROR"):
        ta.distributed.all_reduce(arrays)
    library.fails = None
    assert library.calls == []
    ta.distributed.all_reduce(arrays)


def test_without_the_package_the_error_names_the_extra(stub, monkeypatch):
    real = importlib.import_module

    def missing(name, *rest):
        if name.startswith("nccl"):
            raise ModuleNotFoundError("No module named 'nccl'")
        return real(name, *rest)

    monkeypatch.setattr(bindings.importlib, "import_module", missing)
    bindings.bindings.cache_clear()
    with pytest.raises(ImportError, match=r"NCCL cannot be loaded: No module named 'nccl'; write pip install 'tilearr"):
        ta.distributed.all_reduce(on_both(*numbers())[1])
    bindings.bindings.cache_clear()


def test_captured_streams_are_refused(library, stub):
    _, arrays = on_both(*numbers())
    side = cuda.Stream("cuda:0")
    stub.capture(side.handle, 5)
    with cuda.stream(side), pytest.raises(CaptureError, match=r"all_gather: a CUDA graph of cuda:0 captures stream"):
        ta.distributed.all_gather(arrays)
    stub.capture(side.handle, 0)


def arrays_of(*shapes, dtype="float32", devices=DEVICES):
    return [ta.empty(shape, dtype=dtype, device=device) for shape, device in zip(shapes, devices)]


REFUSED = [
    (lambda: ta.distributed.all_reduce([]), ta.OperandError, "all_reduce: expected one array for each GPU, got none"),
    (lambda: ta.distributed.all_reduce(3), ta.OperandError, "all_reduce: expected a list or tuple of tilearray Arrays"),
    (
        lambda: ta.distributed.all_reduce([1, 2]),
        ta.OperandError,
        "all_reduce: expected a tilearray Array, got int; write ta.asarray.arrays.0..",
    ),
    (
        lambda: ta.distributed.all_gather([*arrays_of(3), ta.zeros(3, device="cpu")]),
        ta.DeviceError,
        r"all_gather: expected arrays on GPUs, got arrays\[1\] on cpu; write x.to_device\('cuda:0'\)",
    ),
    (
        lambda: ta.distributed.all_reduce(arrays_of(3, 3, devices=["cuda:0"] * 2)),
        ta.DeviceError,
        "expected one array on each GPU, got arrays on cuda:0, cuda:0; write x [+] y",
    ),
    (
        lambda: ta.distributed.all_reduce(arrays_of(3, 4)),
        ta.ShapeError,
        r"expected arrays of one shape, got \(3,\) for arrays\[0\] and \(4,\) for arrays\[1\]; write",
    ),
    (
        lambda: ta.distributed.all_reduce([*arrays_of(3), *arrays_of(3, dtype="int8", devices=["cuda:1"])]),
        ta.DTypeError,
        r"expected arrays of one dtype, got float32 for arrays\[0\] and int8 .*write x.astype\('float32'\)",
    ),
    (
        lambda: ta.distributed.all_reduce(arrays_of(3, 3), "median"),
        ta.ParameterError,
        "expected op as one of 'sum', 'prod', 'max', 'min', 'mean', got 'median'; write op='sum'",
    ),
    (
        lambda: ta.distributed.all_reduce(arrays_of(3, 3, dtype="int16")),
        ta.DTypeError,
        r"all_reduce: NCCL cannot reduce int16 by 'sum'; write x.astype",
    ),
    (lambda: ta.distributed.all_reduce(arrays_of(3, 3, dtype="int32"), "mean"), ta.DTypeError, "cannot reduce int32"),
    (lambda: ta.distributed.all_reduce(arrays_of(3, 3, dtype="bool")), ta.DTypeError, "cannot reduce bool by 'sum'"),
    (lambda: ta.distributed.all_gather(arrays_of((), ())), ta.ShapeError, r"got 0-d arrays; write x\[None\]"),
    (
        lambda: ta.distributed.all_reduce(arrays_of(3, 3), out=arrays_of(3)),
        ta.OperandError,
        "expected 2 arrays as out, one for each GPU, got 1; write out=None",
    ),
    (
        lambda: ta.distributed.all_reduce(arrays_of(3, 3), out=arrays_of(3, 3)[::-1]),
        ta.ShapeError,
        r"expected out\[0\] of shape \(3,\), dtype float32 and on cuda:0, got \(3,\), float32 and cuda:1",
    ),
    (
        lambda: ta.distributed.broadcast(ta.zeros(3, dtype="int8", device="cuda:0"), ["cuda:1"]),
        ta.DeviceError,
        r"broadcast: expected the GPU of x, cuda:0, among the devices, got \['cuda:1'\]",
    ),
    (lambda: ta.distributed.all_sum, AttributeError, "has no attribute 'all_sum'; see dir\\(ta.distributed\\)"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_cannot_be_is_refused(library, call, error, message):
    with pytest.raises(error, match=message):
        call()
    assert library.groups == 0
