"""Helpers of the cases of exchange."""

from __future__ import annotations

import numpy as np
from support.capsules import LAYOUTS

import tilearray as ta

VIEWS = {name: view for name, view in LAYOUTS.items() if name != "broadcast"}
"""Those that arrays of any library have."""
WAITS = ("cuEventRecord", "cuStreamWaitEvent")


def waits(stub):
    return [(call.name, call.stream) for call in stub.log() if call.name in WAITS]


def on_gpu(array, device="cuda:0"):
    return ta.asarray(np.asarray(array), device=device)
