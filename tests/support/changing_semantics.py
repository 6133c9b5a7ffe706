"""Calls during which the semantics of the process change, at every place where another thread may change them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import tilearray as ta

OTHER = "triton,float=float64"
_PLACES = ("tilearray/functions", "tilearray/linalg", "tilearray/fft", "tilearray/promotion", "tilearray/arrays/fusion")


def dtypes_after_changes(call: Callable[..., Any], operands: Callable[[], tuple[Any, ...]]) -> set[tuple[str, str]]:
    """Return the dtypes of a call's results in the semantics "array-api" and in `OTHER`, after calls during a change.

    Each time with new operands, the semantics become `OTHER` as the call enters its first, its second, ... function,
    and "array-api" again as it enters another one soon, or at its end. Later calls have the same operands.
    """
    found: set[tuple[str, str]] = set()
    for lasting in (4, 10**6):
        entered, entry = 1, 0
        while entry < entered:
            given = operands()
            entered = _called(call, given, {entry: OTHER, entry + lasting: "array-api"})
            now = call(*given).dtype.name
            with ta.semantics(OTHER):
                found.add((now, call(*given).dtype.name))
            entry += 1
    return found


def _called(call: Callable[..., Any], given: tuple[Any, ...], changes: dict[int, str]) -> int:
    """Make a call during which the semantics change at some of its entries of functions; return their number."""
    entered = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal entered
        if event == "call" and any(place in frame.f_code.co_filename for place in _PLACES):
            if entered in changes:
                ta.set_semantics(changes[entered])
            entered += 1

    sys.setprofile(profile)
    try:
        call(*given)
    finally:
        sys.setprofile(None)
        ta.set_semantics("array-api")
    return entered
