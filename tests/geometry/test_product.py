"""The loop of a matrix product."""

from __future__ import annotations

import pytest

from tilearray.geometry.product import make_product


@pytest.mark.parametrize(
    ("extent", "bits"), [(2**31 - 1, 64), (2**31 - 128, 64), (2**31 - 1024, 32), (2**30, 32), (2**31, 64)]
)
def test_steps_beyond_an_axis_have_indices(extent: int, bits: int) -> None:
    """A step past the last element of an axis is 2**31 at most: in int32, the loop over steps would have no end."""
    inner = make_product((), (1, 1, extent), [(1, 1), (extent, 1), (1, 1)])
    rows = make_product((), (extent, 1, 1), [(1, 1), (1, 1), (1, 1)])
    assert (inner.index_bits, rows.index_bits) == (bits, bits)
