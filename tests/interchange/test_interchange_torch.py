"""Memory shared with torch, in both directions, and memory that cannot be shared."""

from __future__ import annotations

import gc
import sys
import types
import weakref

import numpy as np
import pytest
from support.capsules import DLPACK, LAYOUTS, SHARED, Exporter, address, sample

import tilearray as ta
from tilearray import dtypes
from tilearray.errors import DTypeError, InterchangeError
from tilearray.interchange.dlpack import from_capsule_producer

TORCH = [name for name in DLPACK if name not in ("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz")]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout != "negative"])
@pytest.mark.parametrize("name", TORCH)
def test_torch_takes_an_export(torch, name, layout):
    view = LAYOUTS[layout](sample(SHARED[name]))
    tensor = torch.from_dlpack(Exporter(view))
    assert tensor.dtype is getattr(torch, name)
    assert tuple(tensor.shape) == view.shape
    if view.size:
        assert tensor.data_ptr() == address(view)
        assert tensor.stride() == tuple(stride // view.itemsize for stride in view.strides)
    wide = torch.complex128 if "complex" in name else torch.float64
    assert np.array_equal(tensor.to(wide).numpy(), view.astype(str(wide)[6:]))


@pytest.mark.parametrize(
    "view", [lambda t: t, lambda t: t.T, lambda t: t[1:, ::2], lambda t: t[:, :1].expand(4, 6), lambda t: t[2, 3]]
)
@pytest.mark.parametrize("name", TORCH)
def test_a_tensor_is_taken(torch, name, view):
    tensor = view(torch.arange(24).reshape(4, 6).to(getattr(torch, name)))
    taken = from_capsule_producer(tensor, copy=False)
    assert taken.dtype is SHARED[name]
    assert taken.shape == tuple(tensor.shape)
    assert address(taken) == tensor.data_ptr()
    assert tuple(stride // taken.itemsize for stride in taken.strides) == tensor.stride()
    assert taken.flags.writeable
    wide = torch.complex128 if "complex" in name else torch.float64
    assert np.array_equal(tensor.to(wide).numpy(), taken.astype(str(wide)[6:]))


def test_an_empty_tensor_is_taken(torch):
    taken = from_capsule_producer(torch.empty((0, 3), dtype=torch.bfloat16), copy=False)
    assert (taken.shape, taken.dtype) == ((0, 3), dtypes.bfloat16)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e4m3fn", "bool"])
def test_torch_and_we_see_each_others_writes(torch, name):
    view = sample(SHARED[name])
    tensor = torch.from_dlpack(Exporter(view))
    tensor[1, 2] = 1
    view[3, 3] = 0
    assert view[1, 2] == 1
    assert float(tensor[3, 3]) == 0
    back = from_capsule_producer(tensor, copy=None)
    assert address(back) == address(view)
    back[0, 1] = 0
    assert float(tensor[0, 1]) == 0


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.bfloat16])
def test_memory_lives_as_long_as_torch_or_we_need_it(torch, dtype):
    owner = sample(dtype)
    alive = weakref.ref(owner)
    tensor = torch.from_dlpack(Exporter(owner))
    del owner
    taken = from_capsule_producer(tensor[1:], copy=None)
    del tensor
    gc.collect()
    assert alive() is not None
    assert taken.astype(np.float32)[0, 1] == 8
    del taken
    gc.collect()
    assert alive() is None


def test_capsules_are_taken_while_torch_is_being_imported(monkeypatch):
    """sys.modules has torch long before another thread's `import torch` is done."""
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    assert from_capsule_producer(Exporter(np.arange(3)), copy=False).tolist() == [0, 1, 2]


def test_negative_strides_are_refused_before_torch_ends_the_process(torch):
    reverse = Exporter(sample(dtypes.float32)[::-1])
    for consume in (torch.from_dlpack, torch.asarray, torch.as_tensor, torch.utils.dlpack.from_dlpack):
        with pytest.raises(
            InterchangeError, match=r"expected strides >= 0, because torch .*, got \(-24, 4\).*x\.copy\(\)"
        ):
            consume(reverse)
    assert torch.from_dlpack(reverse, copy=True).tolist() == reverse.view.tolist()
    assert np.from_dlpack(reverse).strides == (-24, 4)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.bfloat16])
def test_read_only_memory_is_refused_before_torch_writes_to_it(torch, dtype):
    source = sample(dtype)
    source.flags.writeable = False
    x = ta.asarray(source)
    consumers = (torch.from_dlpack, torch.asarray, torch.as_tensor, torch.utils.dlpack.from_dlpack)
    for kept in (x, x[1:, ::2], ta.broadcast_to(x[0], (3, 6)), Exporter(source)):
        for consume in consumers:
            with pytest.raises(
                InterchangeError, match=r"read-only, but torch would still write.*ta\.to_torch\(x\), or x\.copy"
            ):
                consume(kept)
    for tensor in (torch.from_dlpack(x, copy=True), ta.to_torch(x), torch.from_dlpack(x.copy())):
        assert tensor.tolist() == x.tolist()
        assert tensor.data_ptr() != address(source)
    assert address(np.from_dlpack(ta.asarray(source).view("uint8"))) == address(source)
    assert torch.from_dlpack(x[:0]).shape == (0, 6)


def test_a_mapped_file_does_not_change(torch, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3.0))
    x = ta.asarray(np.load(tmp_path / "x.npy", mmap_mode="r"), device="cpu")
    with pytest.raises(BufferError, match=r"ta\.to_torch\(x\)"):
        torch.from_dlpack(x)
    ta.to_torch(x)[0] = 99
    assert np.load(tmp_path / "x.npy").tolist() == [0, 1, 2]


def test_a_repeated_view_of_writable_memory_is_shared(torch):
    """Its NumPy array is read-only, because one write would change several elements; torch has its own checks."""
    x = ta.asarray(sample(dtypes.float32))
    tensor = torch.from_dlpack(ta.broadcast_to(x[0], (3, 6)))
    assert tensor.stride() == (0, 1)
    assert tensor.data_ptr() == x._address


TORCH_OBSTACLES = {
    "requires_grad": (lambda t: t.ones(2, requires_grad=True), r"requires grad.*write x\.detach\(\) first"),
    "a result with a gradient": (lambda t: t.ones(2, requires_grad=True) * 2, r"write x\.detach\(\) first"),
    "conj": (lambda t: t.ones(2, dtype=t.complex64).conj(), r"lazy conjugate.*write x\.resolve_conj\(\) first"),
    "neg": (lambda t: t.ones(2, dtype=t.complex64).conj().imag, r"lazy negative.*write x\.resolve_neg\(\) first"),
    "sparse": (lambda t: t.eye(2).to_sparse(), r"not strided but torch\.sparse_coo; write x\.to_dense\(\) first"),
}


@pytest.mark.parametrize("case", TORCH_OBSTACLES)
def test_tensors_that_are_more_than_their_memory_are_refused(torch, case):
    make, message = TORCH_OBSTACLES[case]
    with pytest.raises(InterchangeError, match=message):
        from_capsule_producer(make(torch), copy=None)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantized_tensors_are_refused(torch):
    tensor = torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8)
    with pytest.raises(InterchangeError, match=r"quantized; write x\.dequantize\(\), or x\.int_repr\(\) first"):
        from_capsule_producer(tensor, copy=None)


def test_a_tensor_on_no_device_is_refused(torch):
    with pytest.raises(InterchangeError, match=r"torch\.Tensor does not state its device.*meta"):
        from_capsule_producer(torch.ones(2, device="meta"), copy=None)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_dtypes_of_torch_alone_are_refused(torch):
    with pytest.raises(DTypeError, match="complex, 32 bits"):
        from_capsule_producer(torch.zeros(2, dtype=torch.complex32), copy=None)
