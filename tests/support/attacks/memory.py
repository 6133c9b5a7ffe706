"""Calls on a GPU with too little memory: the right result or `OutOfMemoryError`, and nothing else.

Each call runs under a limit of its own, between no memory at all and a little more than the call needs. After an error
the operands are as they were, no memory is lost, and the next call is right.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import tilearray as ta
from support.attacks.outcome import Outcome
from tilearray import cuda
from tilearray_cuda.errors import OutOfMemoryError

SIZES = (1_000, 40_000, 300_000)
CALLS: dict[str, Callable[[Any], Any]] = {
    "expression": lambda x: x * 2 + x[::-1],
    "in place, overlapping": lambda x: _shifted(x.copy()),
    "sum": lambda x: ta.sum(x, axis=0),
    "var": lambda x: ta.var(ta.reshape(x, (-1, 100)), axis=1),
    "columns": lambda x: ta.max(ta.reshape(x, (-1, 100)), axis=0),
    "cumulative_sum": lambda x: ta.cumulative_sum(ta.reshape(x, (100, -1)), axis=1),
    "sort": ta.sort,
    "argsort": lambda x: ta.argsort(ta.reshape(x, (-1, 100))),
    "mask": lambda x: x[x > 3],
    "gather": lambda x: x[ta.astype(x, ta.int32)],
    "scatter": lambda x: _scattered(x.copy()),
    "unique_values": ta.unique_values,
    "concat": lambda x: ta.concat([x, x, x]),
    "repeat": lambda x: ta.repeat(x, 3),
    "where": lambda x: ta.where(x > 2, x, 0),
    "matmul": lambda x: ta.reshape(x, (10, -1)) @ ta.reshape(x, (-1, 10)),
    "astype": lambda x: ta.astype(x, ta.float64) / 3,
    "random": lambda x: ta.random.default_rng(3).normal(size=x.size, dtype="float32", device=x.device),
    "from the host": lambda x: ta.asarray(np.arange(x.size), device=x.device),
    "fuse": lambda x: FUSED(x, x[::-1]),
}
FUSED = ta.fuse(lambda x, y: ta.sqrt(x * x + y * y))


def _shifted(x: Any) -> Any:
    x[1:] += x[:-1]
    return x


def _scattered(x: Any) -> Any:
    x[ta.astype(x[: x.size // 2], ta.int32)] = 5
    return x


def bits(x: Any) -> bytes:
    return ta.to_numpy(x).tobytes()


def run(cases: int, seed: int = 0, device: str = "cuda") -> Outcome:
    """Run out of memory as often as `cases` says. The host's memory has no limit, so it has no cases."""
    outcome, rng = Outcome("calls with too little memory", device), random.Random(seed)
    if device == "cpu":
        return outcome
    operands = [ta.asarray(np.arange(size, dtype="float32") % 7, device=device) for size in SIZES]
    before = [bits(x) for x in operands]
    expected = {(name, x.size): bits(call(x)) for name, call in CALLS.items() for x in operands}
    gc.collect()
    cuda.empty_cache(device)
    live = cuda.memory_statistics(device).live
    gc.freeze()  # each call that is refused collects garbage first: only that of this attack
    try:
        while outcome.ends["out of memory"] < cases and outcome.in_time:
            name, x = rng.choice(list(CALLS)), rng.choice(operands)
            limit = live + int(x.nbytes * rng.uniform(0, 6) * rng.random())  # too little in most cases
            told = _one(name, x, limit, expected[name, x.size])
            outcome.count("out of memory" if told is None else "right", cases)
            if told:
                outcome.fail(told)
            if rng.random() < 0.02:
                cuda.set_memory_limit(None, device)
                if [bits(each) for each in operands] != before:
                    outcome.fail("an operand changed")
    finally:
        cuda.set_memory_limit(None, device)
        gc.unfreeze()
    gc.collect()
    if cuda.memory_statistics(device).live != live:
        outcome.fail(f"{cuda.memory_statistics(device).live - live} bytes are lost")
    return outcome


def _one(name: str, x: Any, limit: int, expected: bytes) -> str | None:
    """Run a call under a limit: None if the memory was too little, else what is wrong."""
    cuda.set_memory_limit(limit, x.device)
    try:
        found = CALLS[name](x)
    except OutOfMemoryError:
        return None
    except Exception as error:
        return f"{name} of {x.size} under a limit of {limit}: {type(error).__name__}: {str(error)[:200]}"
    held = cuda.memory_statistics(x.device).held
    if held > limit:
        return f"{name} of {x.size}: {held} bytes are held under a limit of {limit}"
    cuda.set_memory_limit(None, x.device)
    return "" if bits(found) == expected else f"{name} of {x.size} under a limit of {limit}: another result"
