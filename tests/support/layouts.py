"""Layouts of operands that broadcast to one shape, drawn by Hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tilearray.geometry.layout import Layout

SIZES = st.sampled_from([0, 1, 1, 2, 3, 5])


STEPS = st.sampled_from([slice(None), slice(None), slice(1, None), slice(None, None, 2), slice(None, None, -1)])


@st.composite
def views(draw, shape):
    """A NumPy view that broadcasts to a shape: axes left out, of size 1, permuted, sliced, repeated."""
    own = [draw(st.sampled_from([n, n, n, 1])) for n in shape[draw(st.integers(0, len(shape))) :]]
    order = draw(st.one_of(st.just(range(len(own))), st.permutations(range(len(own)))))
    key = tuple(draw(STEPS) for _ in own)
    wide = [2 * n + 1 if step == slice(None, None, 2) else n + 1 if step == slice(1, None) else n
            for n, step in zip(own, key)]  # fmt: skip
    x = np.broadcast_to(np.int8(0), wide) if draw(st.integers(0, 9)) == 0 else None
    if x is None:
        x = np.empty([wide[axis] for axis in order], np.int8).transpose(np.argsort(list(order)))
    return x[key][tuple(slice(n) for n in own)]


@st.composite
def operands(draw):
    rows = draw(st.sampled_from([[], [7], [600]]))
    shape = (*draw(st.lists(SIZES, max_size=3)), *rows)
    found = [draw(views(shape)) for _ in range(draw(st.integers(1, 3)))]
    return [found[0]] * draw(st.integers(1, 2)) + found[1:]


def layout_of(x):
    return Layout(x.shape, x.strides)
