"""Reductions of some elements: those where a mask is true, and those that are not NaN, on every device with one result.

The host runs such a reduction as a choice and a plain reduction, one after the other; a GPU in one launch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilearray as ta
from support.oracles.reductions import (
    DTYPES,
    drawn_array,
    drawn_axis,
    drawn_on_both,
    drawn_shape,
    picks,
    same_end,
)

WITH_MASK = ("sum", "prod", "mean", "var", "std", "max", "min", "all", "any")
WITHOUT_NAN = ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanargmax", "nanargmin")
NOT_OF_COMPLEX = (
    *("max", "min", "nanmax", "nanmin", "nanargmax", "nanargmin"),
    *(
        "mean",
        "var",
        "std",
        "nanmean",
        "nanvar",
        "nanstd",
    ),  # a quotient of complex numbers is rounded as each device does
)


def check_same_bits(device: Any, seed: int, count: int, elements: int, kinds: int = 0) -> None:
    """Compare such reductions on a device with those on the host: dtype, shape and every bit, except those of NaN."""
    rng = np.random.default_rng(seed)
    for number, pick in picks(rng, seed, count, kinds):
        _check_one(device, rng, pick, elements, f"#{number}")


def _check_one(device: Any, rng: np.random.Generator, pick: np.random.Generator, elements: int, told: str) -> None:
    dtype = str(pick.choice(DTYPES))
    names = [
        each for each in (*WITH_MASK, *WITHOUT_NAN) if not (dtype.startswith("complex") and each in NOT_OF_COMPLEX)
    ]
    name, shape = str(pick.choice(names)), drawn_shape(pick, elements)
    options: dict[str, Any] = {"keepdims": bool(pick.integers(0, 2))}
    if name.endswith(("var", "std")):
        options["correction"] = int(pick.integers(0, 3))
    elif name in ("max", "min") or (name not in ("all", "any") and "arg" not in name and pick.random() < 0.3):
        options |= {} if name.endswith("mean") else {"initial": 1}
    takes_mask = name.endswith(("sum", "prod", "mean", "var", "std"))
    masked = name in WITH_MASK or (takes_mask and pick.random() < 0.3)
    way, source, state = int(pick.integers(0, 3)), int(rng.integers(2**32)), pick.bit_generator.state
    for turn in range(3):  # twice the same words; the third time of other values, in a call that is known
        pick.bit_generator.state = state
        drawn = np.random.default_rng([source, turn // 2])
        mine, other = drawn_on_both(device, pick, _with_nan(drawn, drawn_array(drawn, dtype, shape)))
        mask, on_device = _mask(device, drawn, mine, way) if masked else (None, None)
        axis = drawn_axis(pick, mine.ndim, single="arg" in name)
        line = f"{told}.{turn} {name} {dtype} {mine.shape} {mine.strides} axis={axis} {options} mask={masked and way}"

        def call(x: Any, axis: Any = axis, mask: Any = mask, on_device: Any = on_device) -> Any:
            where = {} if mask is None else {"where": mask if x.device.type == "cpu" else on_device}
            return getattr(ta, name)(x, axis=axis, **options, **where)

        same_end(call, mine, other, line)


def _with_nan(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """Return the values with some NaN, if their dtype has it."""
    if values.dtype.kind in "biu" or rng.random() < 0.1:
        return values
    found = values.copy()
    found[rng.random(values.shape) < rng.choice([0.0, 0.1, 0.5])] = np.nan
    return found


def _mask(device: Any, rng: np.random.Generator, x: Any, way: int) -> tuple[Any, Any]:
    """Return a mask on the host and on a device: in C order, for the last axes alone, or in the other order."""
    shape = (x.shape, x.shape[x.ndim // 2 :], x.shape[::-1])[way]
    host = ta.asarray(rng.random(shape) < rng.choice([0.1, 0.5, 0.95]), device="cpu")
    order = tuple(range(host.ndim))[:: -1 if way == 2 else 1]
    return ta.permute_dims(host, order), ta.permute_dims(host.to_device(device), order)
