"""Gradients on the GPU: random programs against the host, fused ones, and `f.torch` on tensors of the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.gradient_trees import Program, grow
from support.public_calls import DIFFERENTIABLE, X, called, numbers

import tilearray as ta
from tilearray.engine.devices import as_device, using_device

DEVICE = "cuda:0"
PARTS = 28


def gradients(program: Program, device: str, dtype: str, loss: Any) -> list[np.ndarray]:
    arguments = [ta.asarray(x.astype(dtype), device=device) for x in program.arguments]
    found = ta.grad(loss, tuple(range(len(arguments))))(*arguments)
    assert all(g.device == device and g.dtype == dtype for g in found)
    return [ta.to_numpy(g.to_device("cpu")) for g in found]


@pytest.mark.parametrize("part", range(PARTS))
def test_gradients_of_1000_random_programs_are_the_hosts(part: int):
    """Programs of operations that are rounded alike everywhere have equal bits; all others agree."""
    for seed in range(20_000 + part, 21_000, PARTS):
        exact = seed % 2 == 0
        dtype = "float64" if seed % 3 else "float32"
        program = grow(seed, exact=exact)

        def loss(*args: Any, program: Program = program) -> Any:
            return program.loss(0, *args)

        host, device = (gradients(program, place, dtype, loss) for place in ("cpu", DEVICE))
        for mine, other in zip(device, host, strict=True):
            if exact:
                np.testing.assert_array_equal(mine, other, err_msg=f"{seed} {program.steps}")
            else:
                near = 1e-8 if dtype == "float64" else 2e-3
                np.testing.assert_allclose(mine, other, rtol=near, atol=near, err_msg=f"{seed} {program.steps}")


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda a, b, c, d: ta.tanh(a + b + c) * d, 4),
        (lambda a, b, c: ta.exp(a + b + c), 3),
        (lambda a, b, c: ta.where(a + c > 0, a + c, 0) + b, 3),
    ],
)
def test_what_is_kept_does_not_change_gradients(function: Any, count: int, dtype: str):
    """An intermediate, a result, or a mask is kept where that moves fewer bytes; the bits are those without it."""
    rng = np.random.default_rng(count)
    args = [ta.asarray(rng.standard_normal((257, 130)), device=DEVICE).astype(dtype) for _ in range(count)]
    found: list[list[bytes]] = []
    for keep in ("bytes", []):
        fused = ta.fuse(keep=keep)(function)
        result, pull = ta.vjp(fused, *args)
        gradients = pull(ta.ones_like(result))
        found.append([ta.to_numpy(x.to_device("cpu").astype("float64")).tobytes() for x in (result, *gradients)])
        (backward,) = fused.gradients.values()
        kept = {choice for _, choice in backward._fused}
        assert (kept == {()}) == (keep == [])
    assert found[0] == found[1]


@pytest.mark.parametrize("part", range(7))
def test_gradients_of_random_fused_programs_are_the_hosts(part: int):
    for seed in range(part, 42, 7):
        program = grow(seed, exact=seed % 2 == 0, steps=6)
        fused = ta.fuse(lambda *args, program=program: program.values(0, args)[-1])
        try:
            fused(*map(ta.asarray, program.arguments))
        except ta.FusionError:
            continue

        def loss(*args: Any, fused: Any = fused) -> Any:
            return ta.sum(fused(*args))

        host, device = (gradients(program, place, "float64", loss) for place in ("cpu", DEVICE))
        for mine, other in zip(device, host, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-9, err_msg=f"{seed} {program.steps}")


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_of_public_functions_are_the_hosts(name: str):
    call = DIFFERENTIABLE[name]

    def gradient(place: str) -> np.ndarray:
        with using_device(as_device(place)):
            x = ta.asarray(X)
            try:
                called(call, x)
            except (ta.OperandError, ta.DeviceError, ta.FusionError) as error:
                pytest.skip(f"not on a GPU: {error}")
            return ta.to_numpy(ta.grad(lambda x: ta.sum(ta.real(ta.sin(numbers(called(call, x))))))(x).to_device("cpu"))

    np.testing.assert_allclose(gradient(DEVICE), gradient("cpu"), rtol=1e-7, atol=1e-9)


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    distance = x - ta.mean(x, axis=-1, keepdims=True)
    return distance / ta.sqrt(ta.mean(distance * distance, axis=-1, keepdims=True) + 1e-5) * scale + shift


OPERATORS: dict[str, Any] = {
    "gelu": lambda x, y, b: 0.5 * x * (1 + ta.tanh(0.7978845608 * (x + 0.044715 * x**3))),
    "gated": lambda x, y, b: x / (1 + ta.exp(-x)) * y,
    "layer_norm": lambda x, y, b: layer_norm(x, b, b * 2) * y,
    "softmax": lambda x, y, b: ta.softmax(x * b, axis=-1) * y,
    "where": lambda x, y, b: ta.where(x > 0, x * y, b * b),
    "transposed": lambda x, y, b: x.T * ta.sin(y.T),
    "slices": lambda x, y, b: x[:, 1:] * y[:, :-1],
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_torch_pass_gradcheck(name: str):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no GPU")
    torch.manual_seed(0)
    shapes = ((3, 4), (3, 4), (4,))
    given = [torch.randn(shape, dtype=torch.float64, device="cuda", requires_grad=True) for shape in shapes]
    operator = ta.fuse(OPERATORS[name]).torch
    assert operator(*given).device == given[0].device
    assert torch.autograd.gradcheck(operator, given)
    assert torch.autograd.gradgradcheck(operator, given)


def test_operators_of_torch_compile_and_follow_torchs_stream():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no GPU")
    operator = ta.fuse(OPERATORS["layer_norm"]).torch
    x = torch.randn(64, 256, device="cuda", requires_grad=True)
    scale = torch.randn(256, device="cuda", requires_grad=True)

    def loss(x: Any, y: Any, scale: Any) -> Any:
        return (operator(x * 2, y, scale) ** 2).sum()

    y = torch.ones(64, 256, device="cuda")

    def reference(x: Any, y: Any, scale: Any) -> Any:
        return ((torch.nn.functional.layer_norm(x * 2, (256,), scale, scale * 2) * y) ** 2).sum()

    expected = torch.autograd.grad(reference(x, y, scale), (x, scale))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        found = [torch.autograd.grad(loss(x, y, scale), (x, scale)) for _ in range(3)]
    torch.cuda.current_stream().wait_stream(side)
    found.append(torch.autograd.grad(torch.compile(loss, backend="aot_eager", fullgraph=True)(x, y, scale), (x, scale)))
    for each in found:
        for one, other in zip(each, expected, strict=True):
            assert torch.allclose(one, other, rtol=2e-3, atol=2e-3)
