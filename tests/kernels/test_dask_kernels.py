"""Tokens, messages and chunks on an emulated GPU: the values of the host, and how many kernels a token takes."""

from __future__ import annotations

import pytest
from support.kernels import needs_triton

import tilearray as ta
from tilearray.arrays.fusion.fuse import Fused
from tilearray.dask.tokens import sums

pytestmark = needs_triton


@pytest.mark.parametrize("name", ["_tokens", "_messages", "_partial_sums"])
def test_on_the_device(process, name):
    process.pool.submit(globals()[name]).result()


@pytest.mark.slow  # many kernels, interpreted
def test_chunks_stay_on_the_device(process):
    pytest.importorskip("dask.array")
    process.pool.submit(_chunks).result()


@pytest.mark.parametrize("dtype", ["uint8", "uint64"])
def test_both_sums_of_a_token_are_one_launch(dtype):
    bits = ta.empty((4096, 65536), dtype=dtype)
    begins, steps = ta.empty((4096, 1), dtype="uint64"), ta.empty(65536, dtype="uint64")
    (launch,) = ta.explain(Fused(sums), bits, begins, steps, arch=90).launches
    assert launch.bytes_read - bits.nbytes <= 8 * (4096 + 65536)
    assert launch.bytes_written == 2 * 8 * 4096


def _tokens() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    from tilearray.dask import tokens

    device = emulated_device()
    for name, width in (("float32", 2**16), ("bfloat16", 7), ("uint8", 7), ("complex128", 5), ("bool", 2**16)):
        tokens.WIDTH = width
        x = ta.asarray(np.arange(30).reshape(5, 6) % 3, device="cpu").astype(name).T
        on_device = x.to_device(device)
        before = device.backend.launches
        found = tokens.fingerprint(on_device)
        assert device.backend.launches > before
        assert found[-1] == tokens.hash_on_device(x), name


def _messages() -> None:
    import pickle

    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    from tilearray.dask.serialize import from_device_frame, from_host_frame, to_device_frame, to_host_frame

    device = emulated_device()
    host = ta.asarray(np.arange(60.0, dtype="float32").reshape(3, 4, 5), device="cpu")
    for look in (lambda x: x.transpose(2, 0, 1), lambda x: x[:, ::2, 1:], lambda x: ta.broadcast_to(x[0], (9, 4, 5))):
        x, expected = look(host.to_device(device)), look(host).tolist()
        assert from_host_frame(*to_host_frame(x)).tolist() == expected  # the default device is the host
        back = from_device_frame(*to_device_frame(x))
        assert back.device == device
        assert ta.to_numpy(back).tolist() == expected
        assert ta.to_numpy(pickle.loads(pickle.dumps(x, 5))).tolist() == expected


def _partial_sums() -> None:
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    from benchmarks import two_gpus

    points = ta.asarray(np.arange(240).reshape(4, 60) * 7 % 31, device="cpu").astype("float32")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(two_gpus, "finished", lambda x: x)  # the emulated GPU has no events, and computes at once
        for call in (two_gpus.moments, lambda x: two_gpus.totals(x, ta.to_numpy(points[:, :3]).T)):
            found, expected = call(points.to_device(emulated_device())), call(points)
            assert found.device == expected.device == points.device
            assert found.tolist() == expected.tolist()


def _chunks() -> None:
    import dask
    import dask.array as da
    import numpy as np
    from support.interpreter.emulated_gpu import emulated_device

    from benchmarks.chunks import normalised_deviation, stencil

    device = emulated_device()
    dask.config.set(scheduler="sync")
    values = np.cos(np.arange(48.0)).reshape(6, 8)
    calls = [normalised_deviation, stencil, lambda x: x.argmax(axis=1), lambda x: x @ x.T, lambda x: x[:, [0, 5, 2]]]
    for call in calls:
        found = call(da.from_array(ta.asarray(values, device=device), chunks=(3, 4))).compute()
        assert found.device == device
        expected = call(da.from_array(values, chunks=(3, 4))).compute()
        np.testing.assert_allclose(ta.to_numpy(found), expected, rtol=1e-12, atol=1e-12)
