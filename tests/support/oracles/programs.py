"""Functions of the example programs on arrays of a device, against the same functions of NumPy.

Nothing but single numbers and counts of selected elements is copied to the host. `take` makes an array of the device
from one of NumPy: a copy, or memory of torch (`from_torch`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import tilearray as ta
from tilearray.engine.devices import using_device

EXAMPLES = Path(__file__).parents[3] / "examples"
IMPORT = "import tilearray as np  # edit"


def names_of(example: str, library: str) -> dict[str, Any]:
    """The names of an example over a library, without those of its first lines that set semantics."""
    text = (EXAMPLES / f"{example}.py").read_text(encoding="utf-8").replace(IMPORT, f"import {library} as np")
    lines = [line for line in text.splitlines() if not line.startswith("np.set_semantics")]
    found: dict[str, Any] = {"__name__": example}
    exec(compile("\n".join(lines), example, "exec"), found)
    return found


Take = Callable[[np.ndarray, Any], ta.Array]


def copied(values: np.ndarray, device: Any) -> ta.Array:
    """A copy of an array on a device."""
    return ta.asarray(values, device=device)


def from_torch(values: np.ndarray, device: Any) -> ta.Array:
    """The memory of a tensor of torch that lies on a GPU."""
    import torch

    tensor = torch.from_numpy(values).to(str(device))
    found = ta.asarray(tensor)
    assert found._address == tensor.data_ptr()
    return found


@contextmanager
def without_copies(device: Any) -> Iterator[list[int]]:
    """Fail if more than 64 bytes of an array are copied to the host at once; count the bytes of each copy.

    The transfer guard refuses copies that no function names.
    """
    backend = ta.zeros(1, device=device).device.backend
    before, sizes = backend.to_numpy, list[int]()

    def to_numpy(buffer: Any, offset: int, shape: Any, strides: Any, dtype: Any) -> Any:
        sizes.append(math.prod(shape) * dtype.itemsize)
        assert sizes[-1] <= 64, f"{shape} elements of {dtype} are copied to the host"
        return before(buffer, offset, shape, strides, dtype)

    backend.to_numpy = to_numpy
    ta.set_transfer_guard("error")
    try:
        yield sizes
    finally:
        backend.to_numpy = before


def check_equalise(device: Any, take: Take = copied) -> None:
    """Histogram equalisation: `bincount`, a scan, a selection and a gather."""
    image = names_of("equalise", "numpy")["photograph"]()
    ours = take(image, device)
    with without_copies(device):
        found = names_of("equalise", "tilearray")["equalised"](ours)
    assert found.device == ours.device
    wanted = names_of("equalise", "numpy")["equalised"](image)
    np.testing.assert_array_equal(ta.to_numpy(found), wanted)
    counts, _ = ta.histogram(found, bins=8, range=(0, 256))
    assert counts.tolist() == np.histogram(wanted, bins=8, range=(0, 256))[0].tolist()


def check_kmeans(device: Any, take: Take = copied) -> None:
    """k-means: distances, `argmin`, means of selected rows; and the same means by `add.at` and `bincount`."""
    with ta.semantics("numpy"):
        theirs, mine = names_of("kmeans", "numpy"), names_of("kmeans", "tilearray")
        points = theirs["points"](20)
        x = take(points, device)
        with using_device(x.device), without_copies(device):
            centres, steps = mine["fit"](x, 3)
            labels, _ = mine["assign"](x, centres)
        wanted, count = theirs["fit"](points, 3)
        assert steps == count
        np.testing.assert_allclose(ta.to_numpy(centres), wanted)
        sums = ta.zeros((3, 2), dtype="float64", device=device)
        with without_copies(device):
            ta.add.at(sums, labels, x)
            means = sums / ta.bincount(labels, minlength=3)[:, None]
        np.testing.assert_allclose(ta.to_numpy(means), wanted)
        exact = np.zeros((3, 2))
        np.add.at(exact, theirs["assign"](points, wanted)[0], points)
        assert ta.to_numpy(sums).tobytes() == exact.tobytes()


def check_attention(device: Any, take: Take = copied) -> None:
    """Weights of attention: a softmax of scaled products of queries and keys, where no row sees later ones."""
    rng = np.random.default_rng(3)
    queries, keys = (rng.normal(size=(2, 40, 16)).astype(np.float32) for _ in range(2))
    q, k = take(queries, device), take(keys, device)
    with without_copies(device) as copies:
        scores = q @ ta.matrix_transpose(k) / 4.0
        later = ta.arange(40, device=device) > ta.arange(40, device=device)[:, None]
        weights = ta.softmax(ta.where(later, -ta.inf, scores), axis=-1)
    assert copies == []
    assert weights.device == q.device
    exact = queries.astype(np.float64) @ keys.astype(np.float64).swapaxes(1, 2) / 4.0
    exact = np.exp(np.where(np.triu(np.ones((40, 40), bool), 1), -np.inf, exact - exact.max(axis=-1, keepdims=True)))
    exact /= exact.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(ta.to_numpy(weights), exact, rtol=1e-4, atol=1e-7)


def check_layers(device: Any, take: Take = copied) -> None:
    """Softmax, layer norm and RMS norm of bfloat16, within a rounding of it."""
    theirs, mine = names_of("layers", "numpy"), names_of("layers", "tilearray")
    x = np.random.default_rng(0).normal(size=(4, 64)).astype("float32")
    weight, bias = np.linspace(0.5, 1.5, 64, dtype=np.float32), np.full(64, 0.25, np.float32)
    ours, scale, shift = [take(each, device) for each in (x, weight, bias)]
    for name, given, host in (
        ("softmax", (ours,), (x,)),
        ("layer_norm", (ours, scale, shift), (x, weight, bias)),
        ("rms_norm", (ours, scale), (x, weight)),
    ):
        with without_copies(device) as copies:
            found = mine[name](*given)
        assert copies == []
        wanted = theirs[name](*host).astype(np.float32)
        np.testing.assert_allclose(ta.to_numpy(found).astype(np.float32), wanted, rtol=2.0**-7, atol=1e-6)


def check_returns(device: Any, take: Take = copied) -> None:
    """A table of running returns: cumulative products, drawdowns and the volatility of windows."""
    with ta.semantics("numpy"):
        theirs, mine = names_of("returns", "numpy"), names_of("returns", "tilearray")
        r = theirs["daily"]()[:60]
        ours = take(r, device)
        with without_copies(device) as copies:
            wealth = ta.cumprod(1.0 + ours, axis=0)
            below = mine["drawdown"](wealth)
            volatility = ta.sliding_window_view(ours, 20, axis=0).std(axis=-1, ddof=1)
        assert copies == []
        rises = np.cumprod(1.0 + r, axis=0)
        np.testing.assert_allclose(ta.to_numpy(wealth), rises)
        np.testing.assert_allclose(ta.to_numpy(below), theirs["drawdown"](rises), atol=1e-15)
        windows = np.lib.stride_tricks.sliding_window_view(r, 20, axis=0)
        np.testing.assert_allclose(ta.to_numpy(volatility), windows.std(axis=-1, ddof=1))
