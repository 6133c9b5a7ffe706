"""Functions of the example programs on arrays of a device, against the same functions of NumPy.

Nothing but single numbers and counts of selected elements is copied to the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
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


@contextmanager
def without_copies(device: Any) -> Iterator[None]:
    """Fail if more than 64 bytes of an array are copied to the host at once."""
    backend = ta.zeros(1, device=device).device.backend
    before = backend.to_numpy

    def to_numpy(buffer: Any, offset: int, shape: Any, strides: Any, dtype: Any) -> Any:
        assert prod(shape) * dtype.itemsize <= 64, f"{shape} elements of {dtype} are copied to the host"
        return before(buffer, offset, shape, strides, dtype)

    backend.to_numpy = to_numpy
    try:
        yield
    finally:
        backend.to_numpy = before


def check_equalise(device: Any) -> None:
    """Histogram equalisation: `bincount`, a scan, a selection and a gather."""
    image = names_of("equalise", "numpy")["photograph"]()
    ours = ta.asarray(image, device=device)
    with without_copies(device):
        found = names_of("equalise", "tilearray")["equalised"](ours)
    assert found.device == ours.device
    wanted = names_of("equalise", "numpy")["equalised"](image)
    np.testing.assert_array_equal(ta.to_numpy(found), wanted)
    counts, _ = ta.histogram(found, bins=8, range=(0, 256))
    assert counts.tolist() == np.histogram(wanted, bins=8, range=(0, 256))[0].tolist()


def check_kmeans(device: Any) -> None:
    """k-means: distances, `argmin`, means of selected rows; and the same means by `add.at` and `bincount`."""
    with ta.semantics("numpy"):
        theirs, mine = names_of("kmeans", "numpy"), names_of("kmeans", "tilearray")
        points = theirs["points"](20)
        x = ta.asarray(points, device=device)
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


def check_layers(device: Any) -> None:
    """Softmax, layer norm and RMS norm of bfloat16, within a rounding of it."""
    theirs, mine = names_of("layers", "numpy"), names_of("layers", "tilearray")
    x = np.random.default_rng(0).normal(size=(4, 64)).astype("float32")
    weight, bias = np.linspace(0.5, 1.5, 64, dtype=np.float32), np.full(64, 0.25, np.float32)
    ours, scale, shift = [ta.asarray(each, device=device) for each in (x, weight, bias)]
    for name, given, host in (
        ("softmax", (ours,), (x,)),
        ("layer_norm", (ours, scale, shift), (x, weight, bias)),
        ("rms_norm", (ours, scale), (x, weight)),
    ):
        with without_copies(device):
            found = mine[name](*given)
        wanted = theirs[name](*host).astype(np.float32)
        np.testing.assert_allclose(ta.to_numpy(found).astype(np.float32), wanted, rtol=2.0**-7, atol=1e-6)


def check_returns(device: Any) -> None:
    """A table of running returns: cumulative products, drawdowns and the volatility of windows."""
    with ta.semantics("numpy"):
        theirs, mine = names_of("returns", "numpy"), names_of("returns", "tilearray")
        r = theirs["daily"]()[:60]
        ours = ta.asarray(r, device=device)
        with without_copies(device):
            wealth = ta.cumprod(1.0 + ours, axis=0)
            below = mine["drawdown"](wealth)
            volatility = ta.sliding_window_view(ours, 20, axis=0).std(axis=-1, ddof=1)
        rises = np.cumprod(1.0 + r, axis=0)
        np.testing.assert_allclose(ta.to_numpy(wealth), rises)
        np.testing.assert_allclose(ta.to_numpy(below), theirs["drawdown"](rises), atol=1e-15)
        windows = np.lib.stride_tricks.sliding_window_view(r, 20, axis=0)
        np.testing.assert_allclose(ta.to_numpy(volatility), windows.std(axis=-1, ddof=1))
