"""Elementwise programs of NPBench as fused functions, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilearray as ta


def arc_distance(m, a, b, c, d):
    half = m.sin((c - a) / 2) ** 2 + m.cos(a) * m.cos(c) * m.sin((d - b) / 2) ** 2
    return 2 * m.arctan2(m.sqrt(half), m.sqrt(1 - half))


def compute(m, x, y, a, b, c):
    return m.clip(x, 2, 10) * a + y * b + c


def go_fast(m, a, trace):
    return a + trace


def hdiff(m, field, coefficient):
    lap = 4.0 * field[1:-1, 1:-1] - (field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2])
    x_flux = lap[1:, 1:-1] - lap[:-1, 1:-1]
    x_flux = m.where(x_flux * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0.0, x_flux)
    y_flux = lap[1:-1, 1:] - lap[1:-1, :-1]
    y_flux = m.where(y_flux * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0.0, y_flux)
    change = x_flux[1:] - x_flux[:-1] + y_flux[:, 1:] - y_flux[:, :-1]
    return field[2:-2, 2:-2] - coefficient[2:-2, 2:-2] * change


def mandelbrot_step(m, z, c, n):
    inside = m.abs(z) < 2.0
    return m.where(inside, z * z + c, z), n + inside


def random(*shape, dtype="float64", seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(dtype)


PLANE = random(9, 11) + 1j * random(9, 11, seed=1)
CASES = [
    (arc_distance, [random(100, seed=k) for k in range(4)]),
    (compute, [np.arange(60).reshape(6, 10), np.arange(60)[::-1].reshape(10, 6).T, 4, 3, 9]),
    (go_fast, [random(7, 7), 3.25]),
    (hdiff, [random(20, 33), random(20, 33, seed=1)]),
    (mandelbrot_step, [PLANE * 1.5, PLANE, np.zeros((9, 11), np.int64)]),
]


@pytest.mark.parametrize(("program", "operands"), CASES, ids=[case[0].__name__ for case in CASES])
def test_a_fused_program_gives_what_numpy_gives(program, operands):
    expected = program(np, *operands)

    @ta.fuse
    def fused(*arrays):
        return program(ta, *arrays)

    found = fused(*operands)
    for ours, numpys in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, expected)], strict=True):
        assert type(ours) is np.ndarray
        assert ours.dtype == numpys.dtype
        np.testing.assert_allclose(ours, numpys, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("program", "operands"), CASES, ids=[case[0].__name__ for case in CASES])
def test_a_fused_program_gives_the_bits_of_the_program(program, operands):
    given = [ta.asarray(x) if isinstance(x, np.ndarray) else x for x in operands]
    found, expected = ta.fuse(lambda *arrays: program(ta, *arrays))(*given), program(ta, *given)
    for ours, plain in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, expected)], strict=True):
        assert ta.to_numpy(ours).tobytes() == ta.to_numpy(plain).tobytes()
