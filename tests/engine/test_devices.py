"""Devices: names, defaults, the transfer guard, and arrays on a device that is not the host.

The other device is a fake one: the host's backend under another name, but what goes there or comes back is copied.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from support.threads import in_threads

import tilearray as ta
from tilearray.arrays.asarray import converted
from tilearray.engine.devices import CPU, Device, as_device, using_device
from tilearray.errors import DeviceError, DeviceUnavailableError, ImplicitTransferError, OperandError, ShapeError
from tilearray.functions import conversion

devices: Any = sys.modules["tilearray.engine.devices"]  # as an attribute it is the function of that name


@pytest.fixture(autouse=True)
def as_found(monkeypatch) -> None:
    """Whatever a test sets is as it was afterwards."""
    monkeypatch.setattr(devices, "_default", devices._default)
    monkeypatch.setattr(conversion, "_guard", "error")


def test_devices_have_names():
    cpu = ta.zeros(1).device
    assert cpu is as_device("cpu") is as_device("cpu:0") is as_device(cpu) is CPU
    assert cpu == "cpu"
    assert cpu != "cuda:0"
    assert cpu != None  # noqa: E711
    assert (str(cpu), repr(cpu), f"{cpu}") == ("cpu", "Device('cpu')", "cpu")
    assert {cpu: 1}["cpu"] == 1
    assert as_device(Device("cpu", 0)) is cpu
    assert pickle.loads(pickle.dumps(cpu)) is cpu
    assert CPU in ta.devices()
    assert isinstance(ta.devices(), tuple)


@pytest.mark.parametrize(
    "name", ["", "gpu", "cpu:1", "cuda:", "cuda:-1", "cuda:x", "cuda:0:0", "CUDA", 5, "cuda:²", "mps"]
)
def test_unknown_devices_are_named(name):
    message = rf"zeros: {str(name)!r} is not a device; write 'cpu', 'cuda' or 'cuda:N' with N = 0, 1, \.\.\."
    with pytest.raises(DeviceError, match=message):
        ta.zeros(1, device=name)
    with pytest.raises(DeviceError, match=r"to_device: .* is not a device"):
        ta.zeros(1).to_device(name)
    with pytest.raises(DeviceError, match=r"set_default_device: .* is not a device"):
        ta.set_default_device(name)
    assert ta.default_device() is CPU


def test_a_device_that_this_machine_does_not_have_is_unavailable():
    for _ in range(2):
        with pytest.raises(DeviceUnavailableError, match=r"^zeros: .*(cuda|CUDA|GPU)"):
            ta.zeros(1, device="cuda:99")
    with pytest.raises(DeviceUnavailableError, match=r"^set_default_device: "):
        ta.set_default_device("cuda:99")
    assert ta.default_device() is CPU


def test_the_default_device(elsewhere):
    assert ta.default_device() is CPU
    ta.set_default_device(elsewhere.name)
    assert ta.zeros(1).device is ta.asarray([1]).device is ta.linspace(0, 1j, 3).device is elsewhere
    assert ta.asarray(np.ones(2)).device is elsewhere
    assert ta.asarray(ta.zeros(1, device="cpu")).device is CPU
    assert ta.from_dlpack(np.ones(2)).device is CPU
    assert ta.add(1, 2).device is elsewhere
    ta.set_default_device(None)
    assert ta.default_device() is CPU


def in_fresh_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
    return subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)


def test_the_environment_names_the_default_device():
    code = "import tilearray as ta; print(ta.default_device())"
    assert in_fresh_python(code, TILEARRAY_DEVICE="cpu").stdout == "cpu\n"
    failed = in_fresh_python(code, TILEARRAY_DEVICE="gpu")
    assert "DeviceError: TILEARRAY_DEVICE: 'gpu' is not a device; write 'cpu'" in failed.stderr


# --- another device -------------------------------


def test_arrays_move_between_devices(elsewhere):
    source = np.arange(6.0).reshape(2, 3)
    x = ta.asarray(source)
    there = x.T.to_device(elsewhere)
    assert (there.device, there.shape) == (elsewhere, (3, 2))
    back = ta.to_device(there[::-1], "cpu")
    assert back.tolist() == source.T[::-1].tolist()
    there[...] = 7
    back[...] = 8
    assert source.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert there.tolist() == [[7, 7]] * 3
    for view in (x[1:], x[:, ::-2], x[0, 1], x[:0], ta.broadcast_to(x, (2, 2, 3)), x.T[1:].view("int64")):
        assert view.to_device(elsewhere).to_device("cpu").tolist() == ta.to_numpy(view.to_device(elsewhere)).tolist()
        assert view.to_device(elsewhere).tolist() == view.tolist()
    assert there.to_device(elsewhere.name) is there
    assert ta.asarray(source, device=elsewhere.name).device is x.astype("int8", device=elsewhere).device is elsewhere
    assert ta.zeros_like(there).device is ta.empty_like(x, device=elsewhere).device is elsewhere
    with pytest.raises(
        ValueError, match=rf"copy=False, but float64 on cpu becomes float64 on {elsewhere}; write copy=None"
    ):
        ta.asarray(source, device=elsewhere, copy=False)
    with pytest.raises(OperandError, match=r"to_device: expected no stream for a copy to the host"):
        there.to_device("cpu", stream=1)


def test_operations_stay_where_their_operands_are(elsewhere):
    x = ta.asarray([1, 2, 3], device=elsewhere)
    for found in (
        x + x,
        x * 2,
        2 - x,
        np.float32(2) * x,
        x + np.int8(1),
        -x,
        x[1:],
        x.copy(),
        x.astype("int8"),
        x == 2,
    ):
        assert found.device is elsewhere
    x[0] = 7
    x[1:] += x[:-1].copy()
    assert x.tolist() == [7, 9, 5]
    assert pickle.loads(pickle.dumps(x)).device is elsewhere
    assert f"device='{elsewhere}'" in repr(x)
    assert x.item(0) == int(x[0]) == 7


def test_operands_on_two_devices_are_named(elsewhere):
    x, y = ta.ones(2), ta.ones(2, device=elsewhere)
    message = rf"add: the operands are on cpu and on {elsewhere}; move one with x.to_device\('cpu'\)"
    for act in (lambda: x + y, lambda: ta.add(x, x, out=y), lambda: x.__iadd__(y)):
        with pytest.raises(DeviceError, match=message):
            act()
    with pytest.raises(DeviceError, match=rf"the operands are on {elsewhere} and on cpu"):
        x[...] = y
    with pytest.raises(DeviceError, match=rf"where: the operands are on cpu and on {elsewhere}"):
        ta.where(x == 1, x, y)
    assert x.tolist() == y.tolist() == [1, 1]


def test_lists_of_arrays_are_put_together_where_these_are(elsewhere):
    x, rows = ta.asarray(2.5, device=elsewhere), ta.asarray([1, 2], device=elsewhere)
    for found, expected, dtype in (
        (ta.asarray([x, x]), [2.5, 2.5], "float32"),
        (ta.asarray([[1, x], (2, np.float64(3))]), [[1, 2.5], [2, 3]], "float64"),
        (ta.asarray([rows, range(2)]), [[1, 2], [0, 1]], "int64"),
        (ta.asarray((rows[1], 7), dtype="int8"), [2, 7], "int8"),
    ):
        assert (found.device, found.dtype, found.tolist()) == (elsewhere, dtype, expected)
    assert ta.asarray([x, 1], device="cpu").device is CPU
    with pytest.raises(ShapeError, match=r"^asarray: nested lists must be rectangular, got .* shapes \(\) and"):
        ta.asarray([x, rows])
    with pytest.raises(ShapeError, match=r"^asarray: .* elements of shapes \(0,\) and \(1,\)"):
        ta.asarray([[], [x]])
    with pytest.raises(DeviceError, match=rf"the operands are on {elsewhere} and on cpu"):
        ta.asarray([x, ta.asarray(1)])
    with pytest.raises(OperandError, match=r"^asarray: expected numbers or arrays in nested lists, got str"):
        ta.asarray([x, "a"])


def test_data_do_not_leave_a_device_by_accident(elsewhere):
    x = ta.asarray([1.5, 2], device=elsewhere)
    message = (
        rf"__array__: the array is on {elsewhere}, .*; write ta.to_numpy\(x\) or x.to_device\('cpu'\), or allow it with"
    )
    for act in (
        lambda: np.asarray(x),
        lambda: np.array(x),
        lambda: np.asarray([x[0]], dtype="float32"),
        lambda: np.ones(2) + np.asarray(x),
    ):
        with pytest.raises(ImplicitTransferError, match=message):
            act()
    assert ta.to_numpy(x).tolist() == x.tolist() == [1.5, 2]
    ta.set_transfer_guard("allow")
    assert np.asarray(x, dtype=int).tolist() == [1, 2]
    ta.set_transfer_guard("error")
    with pytest.raises(TypeError):
        np.asarray(x)
    with pytest.raises(
        ValueError, match=r"set_transfer_guard: expected a policy, got 'warn'; write 'error' or 'allow'"
    ):
        ta.set_transfer_guard("warn")


def test_a_conversion_that_needs_nothing_gives_the_array(elsewhere):
    x = ta.ones(2, device=elsewhere)
    assert converted(x, None, None, None) is x
    assert converted(x, ta.float32, elsewhere, False) is x


def test_a_device_is_the_default_for_a_while():
    before, other = ta.default_device(), Device("elsewhere", 0)
    with using_device(other), using_device(None):
        assert ta.default_device() is other
    assert ta.default_device() is before
    with pytest.raises(KeyError), using_device(other):
        raise KeyError
    assert ta.default_device() is before


def test_threads_do_not_see_the_default_of_each_others_blocks():
    before, names = ta.default_device(), [Device("elsewhere", number) for number in range(2)]
    inside = threading.Barrier(2)

    def work(number: int) -> tuple[Device, Device]:
        with using_device(names[number]):
            inside.wait(30)  # both threads are in their blocks
            during = ta.default_device()
            inside.wait(30)
        inside.wait(30)
        return during, ta.default_device()

    assert in_threads(2, work) == [(names[0], before), (names[1], before)]


def test_the_process_default_may_change_while_a_block_is_active(elsewhere):
    with using_device(CPU):
        ta.set_default_device(elsewhere)
        assert ta.default_device() is CPU
    assert ta.default_device() is elsewhere


WITHOUT_CUDA_PYTHON = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "cuda":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import tilearray as ta

for function in (ta.cuda.Stream, ta.cuda.Event, ta.cuda.current_stream, ta.cuda.synchronize, ta.cuda.empty_cache):
    try:
        function()
    except ta.DeviceUnavailableError as error:
        print(str(error).partition(":")[0], "write" in str(error))
"""


def test_without_cuda_python_every_function_of_streams_says_what_is_missing() -> None:
    """Without a driver that is the driver."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CUDA_PYTHON], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stderr == ""
    names = ("Stream", "Event", "current_stream", "synchronize", "empty_cache")
    assert done.stdout.splitlines() == [f"{name} True" for name in names]
