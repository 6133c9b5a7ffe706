"""`f.jax`: fused functions under JAX's transformations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilearray as ta

jax: Any = pytest.importorskip("jax")
X = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")


@ta.fuse
def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + ta.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def reference(x: Any) -> Any:
    return 0.5 * x * (1 + jax.numpy.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-5)


def test_gradients_are_jaxs():
    x = jax.numpy.asarray(X)

    def loss(f: Any) -> Any:
        return lambda x: (f(x) ** 2).sum()

    same(gelu.jax(x), reference(x))
    same(jax.grad(loss(gelu.jax))(x), jax.grad(loss(reference))(x))
    same(jax.jit(jax.grad(loss(gelu.jax)))(x), jax.grad(loss(reference))(x))
    second = [jax.grad(lambda x, f=f: (jax.grad(loss(f))(x) ** 2).sum())(x) for f in (gelu.jax, reference)]
    same(*second)
    same(jax.vmap(gelu.jax)(x), reference(x))


def test_complex_gradients_and_several_results():
    z = jax.numpy.asarray(X + 1j * X[::-1])
    function = ta.fuse(lambda z: ta.real(z * z * ta.conj(z)))
    same(jax.grad(lambda z: function.jax(z).sum())(z), jax.grad(lambda z: (z * z * z.conj()).real.sum())(z))
    pair = ta.fuse(lambda x, y, k: (x * y * k, x[1:], x > 0))
    x = jax.numpy.asarray(X)
    found = jax.grad(lambda x, y: sum(part.sum() for part in pair.jax(x, y, 2.0)), (0, 1))(x, x[0])
    expected = jax.grad(lambda x, y: (x * y * 2.0).sum() + x[1:].sum(), (0, 1))(x, x[0])
    same(found[0], expected[0])
    same(found[1], expected[1])
    with pytest.raises(ta.OperandError, match="jax: expected at least one array, got none"):
        pair.jax(1.0, 2.0, 3.0)
