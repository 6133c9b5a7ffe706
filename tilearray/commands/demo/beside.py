"""The demo's steps once more, on a GPU: each beside the host's result, equal to the bit where the contract says so.

A step starts from the results of the GPU as long as they have the host's bits, and else from the host's, so that a
difference is found in the step that causes it. Only steps with a function such as exp may differ, by the ulps in their
row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilearray as ta
from tilearray.commands.demo.pipeline import Report, Step, compare, timed
from tilearray.engine.devices import Device, using_device


@dataclass(frozen=True, slots=True)
class Beside:
    """The outcome of one step on a device: the result, its difference from the host's in ulps, and the time."""

    step: Step
    result: Any
    ulps: int
    seconds: float


def beside(photograph: np.ndarray, reports: Iterable[Report], device: Device, repeats: int) -> Iterator[Beside]:
    """Run the steps of the host's reports on a device. Yield what each gave, after it has run.

    Raises
    ------
    DemoError
        If a step differs from the host's.
    """
    wait = getattr(device.backend, "synchronize", None)
    known: dict[str, Any] = {"photograph": photograph}
    for report in reports:
        step = report.step
        with using_device(device), ta.semantics("array-api"):
            result, seconds = timed(step.ours, [known[name] for name in step.inputs], repeats, wait)
            ulps = compare(step, result, ta.to_numpy(report.result), "the host")
            known[step.name] = result if ulps == 0 else ta.asarray(report.result, device=device)
        yield Beside(step, result, ulps, seconds)
