"""`ta.lib`: the functions that libraries look up there are ours, and `as_strided` says what to write."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta


def test_windows_are_found_where_numpy_has_them():
    x = ta.arange(12).reshape(3, 4)
    windows = ta.lib.stride_tricks.sliding_window_view
    assert windows is ta.sliding_window_view
    for shape, axis in ((2, 1), ((2, 3), None), ((2,), (0,))):
        want = np.lib.stride_tricks.sliding_window_view(np.asarray(x), shape, axis=axis)
        np.testing.assert_array_equal(np.asarray(windows(x, shape, axis=axis)), want)


def test_strides_in_bytes_are_an_error_that_says_so():
    with pytest.raises(AttributeError, match=r"no attribute 'as_strided'; write ta.as_strided: strides in elements"):
        _ = ta.lib.stride_tricks.as_strided
    assert not hasattr(ta.lib.stride_tricks, "DummyArray")
