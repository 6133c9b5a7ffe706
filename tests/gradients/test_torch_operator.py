"""`f.torch`: fused and pointwise functions under torch's autograd, its checks, its compiler and its vmap."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import tilearray as ta

torch: Any = pytest.importorskip("torch")


def layer_norm(x: Any, scale: Any, shift: Any, eps: float = 1e-5) -> Any:
    distance = x - ta.mean(x, axis=-1, keepdims=True)
    return distance / ta.sqrt(ta.mean(distance * distance, axis=-1, keepdims=True) + eps) * scale + shift


FUNCTIONS: dict[str, Any] = {
    "add": lambda x, y, b: x + b,
    "subtract": lambda x, y, b: b - x * y,
    "divide": lambda x, y, b: x / (y * y + 1),
    "power": lambda x, y, b: (x * x + 1) ** y,
    "cube": lambda x, y, b: x**3,
    "exp": lambda x, y, b: ta.exp(x) * y,
    "log": lambda x, y, b: ta.log(x * x + 0.5),
    "sqrt": lambda x, y, b: ta.sqrt(y * y + 1),
    "rsqrt": lambda x, y, b: ta.rsqrt(y * y + 1),
    "sin": lambda x, y, b: ta.sin(x) * ta.cos(b),
    "tan": lambda x, y, b: ta.tan(x * 0.3),
    "atan2": lambda x, y, b: ta.atan2(x, y * y + 0.5),
    "tanh": lambda x, y, b: ta.tanh(x + b) * y,
    "erf": lambda x, y, b: ta.erf(x) * y,
    "hypot": lambda x, y, b: ta.hypot(x, y + 3),
    "logaddexp": lambda x, y, b: ta.logaddexp(x, b),
    "maximum": lambda x, y, b: ta.maximum(x, y) * ta.minimum(x, b),
    "where": lambda x, y, b: ta.where(x > 0, x * y, b * b),
    "clip": lambda x, y, b: ta.clip(x, -0.6, 0.6) * y,
    "abs": lambda x, y, b: ta.abs(x) * y,
    "gelu": lambda x, y, b: 0.5 * x * (1 + ta.erf(x * 0.7071067811865476)),
    "gated": lambda x, y, b: x / (1 + ta.exp(-x)) * y,
    "casts": lambda x, y, b: (x * y).astype("float64") + b,
    "transposed": lambda x, y, b: x.T * ta.sin(y.T),
    "broadcast": lambda x, y, b: b[None, :] * x * ta.broadcast_to(b, (3, 4)),
    "sum": lambda x, y, b: ta.sum(x * y, axis=0) * b,
    "mean": lambda x, y, b: (x - ta.mean(x, axis=1, keepdims=True)) * y,
    "softmax": lambda x, y, b: ta.softmax(x * b, axis=-1) * y,
    "layer_norm": lambda x, y, b: layer_norm(x, b, b * 2) * y,
    "slices": lambda x, y, b: x[:, 1:] * y[:, :-1],
    "several": lambda x, y, b: {"sum": x + y, "rest": (x * b, [y])},
    "flip": lambda x, y, b: ta.flip(x, axis=1) * y,
}


def tensors() -> list[Any]:
    torch.manual_seed(0)
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 4), (3, 4), (4,))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradcheck_and_gradgradcheck(name: str):
    operator = ta.fuse(FUNCTIONS[name]).torch
    given = tensors()

    def flat(*operands: Any) -> Any:
        found = operator(*operands)
        return (found["sum"], found["rest"][0], found["rest"][1][0]) if name == "several" else found

    assert torch.autograd.gradcheck(flat, given)
    assert torch.autograd.gradgradcheck(flat, given)


def test_results_dtypes_and_layouts_are_those_of_the_function():
    function = ta.fuse(lambda x, k: x.T * k)
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    assert torch.equal(function.torch(x, 2.5), x.T * 2.5)
    assert function.torch(x, 2.5).stride() == (1, 3)
    assert torch.equal(function.torch(x, k=3), x.T * 3)
    half = x.to(torch.bfloat16).requires_grad_()
    result = function.torch(half, 2.0)
    result.sum().backward()
    assert result.dtype == half.grad.dtype == torch.bfloat16
    assert half.grad.tolist() == [[2.0] * 3] * 2
    same = ta.fuse(lambda x: x).torch(x)
    assert same.data_ptr() != x.data_ptr()  # an operator gives no alias
    counts = ta.fuse(lambda x: (x > 1, x * 2)).torch
    flags, doubled = counts(x.requires_grad_())
    assert flags.dtype == torch.bool and not flags.requires_grad  # noqa: PT018
    doubled.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2


def test_operators_pass_torchs_own_checks():
    norm = ta.fuse(layer_norm)
    norm.torch(*tensors()[:1], *[tensors()[2]] * 2)
    (call,) = norm.torch._operators.values()
    operands = (tensors()[0], tensors()[2], tensors()[2])
    assert set(torch.library.opcheck(call.__self__._op, operands).values()) == {"SUCCESS"}
    pair = ta.pointwise(lambda x, y: x * ta.exp(y))
    pair.torch(*operands[:2])
    (call,) = pair.torch._operators.values()
    assert set(torch.library.opcheck(call.__self__._op, operands[:2]).values()) == {"SUCCESS"}


def test_functions_run_in_torch_compile_as_one_node():
    norm, pair = ta.fuse(layer_norm).torch, ta.pointwise(lambda x, k: x * ta.tanh(x) * k).torch
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        del inputs
        graphs.append(graph)
        return graph

    def loss(x: Any, scale: Any) -> Any:
        return (pair(norm(x, scale, scale) + 1, 0.5) ** 2).sum()

    x, _, scale = tensors()
    expected = torch.autograd.grad(loss(x, scale), (x, scale))
    for compiler in (backend, "aot_eager"):
        found = torch.autograd.grad(torch.compile(loss, backend=compiler, fullgraph=True)(x, scale), (x, scale))
        assert all(torch.allclose(one, other, rtol=1e-12) for one, other in zip(found, expected))
    assert len(graphs) == 1


def test_vmap_of_a_pointwise_function_is_broadcasting():
    function = ta.pointwise(lambda x, y: (x * y, x - y), num_outputs=2)
    x, y, b = tensors()
    mapped = torch.vmap(function.torch, in_dims=(1, None))(x, b[:3])
    assert torch.equal(mapped[0], torch.stack([x[:, k] * b[:3] for k in range(4)]))
    product = torch.vmap(function.torch, in_dims=(0, 0))(x, y[:, 0])[0]
    assert torch.equal(product, x * y[:, :1])


def test_a_module_trains_alike_with_and_without_a_fused_operation():
    @ta.fuse
    def activation(x: Any, bias: Any) -> Any:
        return (x + bias) * ta.tanh(ta.log1p(ta.exp(x + bias)))

    def losses(use: bool) -> list[float]:
        torch.manual_seed(1)
        first, second = torch.nn.Linear(4, 8, bias=False), torch.nn.Linear(8, 1)
        bias = torch.nn.Parameter(torch.zeros(8))
        x = torch.randn(32, 4)
        y = torch.sin(x).sum(1, keepdim=True)
        optimizer = torch.optim.SGD([*first.parameters(), bias, *second.parameters()], lr=0.05)
        found: list[float] = []
        for _ in range(200):
            hidden = first(x)
            hidden = activation.torch(hidden, bias) if use else torch.nn.functional.mish(hidden + bias)
            loss = torch.nn.functional.mse_loss(second(hidden), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    mine, theirs = losses(True), losses(False)
    assert mine[-1] < 0.3 * mine[0]
    assert mine == pytest.approx(theirs, rel=2e-3)


def test_errors_say_what_to_write():
    function = ta.fuse(lambda x, how=None: x)
    with pytest.raises(
        ta.OperandError, match=r"torch: expected tensors and numbers, got object; write torch.as_tensor"
    ):
        function.torch(object())
    with pytest.raises(ta.OperandError, match=r"<lambda>.torch: expected at least one tensor, got none"):
        function.torch("x")
    with pytest.raises(ta.GradientError, match="nextafter has no derivative"):
        ta.fuse(lambda x: ta.nextafter(x, 0.0)).torch(tensors()[0]).sum().backward()


def test_gradients_do_not_import_torch():
    code = "import sys, tilearray as ta; ta.grad(ta.fuse(lambda x: x * x))(2.0); print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
