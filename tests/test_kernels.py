"""The fused kernel says what the ordinary operators say, gradients too, and steps aside where it has no rule."""

from collections.abc import Callable

import pytest
import torch

from tamedit import kernels
from tamedit.kernels import _KERNEL, GELU, Then, fuses, gelu, linear

KERNEL = _KERNEL is not None


@pytest.mark.parametrize("then", ["none", GELU])
@pytest.mark.parametrize("shape", [(5, 7, 12), (0, 12), (3, 12)])
@pytest.mark.parametrize("biased", [True, False])
def test_the_numbers_are_those_of_double_precision(
    then: Then, shape: tuple[int, ...], biased: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_SMALL", 1)
    torch.manual_seed(0)
    inputs, weight, bias = 2 * torch.randn(shape), torch.randn(9, 12), torch.randn(9) if biased else None
    expected = inputs.double() @ weight.double().T + (0.0 if bias is None else bias.double())
    if then == GELU:
        inner = (2 / torch.pi) ** 0.5 * (expected + 0.044715 * expected**3)
        expected = 0.5 * expected * (1 + torch.tanh(inner))
    with torch.inference_mode():
        torch.testing.assert_close(linear(inputs, weight, bias, then).double(), expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("then", ["none", GELU])
@pytest.mark.parametrize("shape", [(5, 7, 12), (0, 12), (3, 12), (12,)])
@pytest.mark.parametrize("biased", [True, False])
def test_gradients_are_those_of_double_precision(
    then: Then, shape: tuple[int, ...], biased: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_SMALL", 1)
    torch.manual_seed(0)
    leaves = [torch.randn(shape), torch.randn(9, 12), *([torch.randn(9)] if biased else [])]
    towards = torch.randn(*shape[:-1], 9)
    found = []
    for dtype in (torch.float32, torch.float64):
        own = [leaf.to(dtype).requires_grad_() for leaf in leaves]
        assert fuses(*own[:2]) == (dtype == torch.float32 and KERNEL and 0 not in shape)
        output = linear(own[0], own[1], own[2] if biased else None, then)
        found.append([one.double() for one in torch.autograd.grad(output, own, towards.to(dtype))])
    for single, double in zip(*found, strict=True):
        torch.testing.assert_close(single, double, rtol=1e-5, atol=1e-5)


def test_gradients_of_views_and_of_sums_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their memory is not in order: a gradient that is one number repeated, inputs that are every other column."""
    monkeypatch.setattr(kernels, "_SMALL", 1)
    torch.manual_seed(0)
    wide, weight = torch.randn(35, 24, requires_grad=True), torch.randn(9, 12, requires_grad=True)
    ours = torch.autograd.grad(linear(wide[:, ::2], weight, None).sum(), (wide, weight))
    plain = torch.autograd.grad((wide[:, ::2] @ weight.t()).sum(), (wide, weight))
    torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-5)


def test_only_what_is_asked_for_gets_a_gradient() -> None:
    inputs, weight = torch.randn(3, 4), torch.randn(2, 4, requires_grad=True)
    linear(inputs, weight, torch.zeros(2)).sum().backward()
    assert inputs.grad is None
    assert weight.grad is not None
    frozen = linear(inputs, weight.detach(), None)
    assert not frozen.requires_grad


def test_a_gradient_has_a_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The norm of a gradient can be differentiated, as the paper's search does."""
    monkeypatch.setattr(kernels, "_SMALL", 1)
    torch.manual_seed(0)
    inputs, weight = torch.randn(6, 4, dtype=torch.float32), torch.randn(3, 4, requires_grad=True)
    second = []
    for function in (lambda x, w: linear(x, w, None), torch.nn.functional.linear):
        (first,) = torch.autograd.grad(function(inputs, weight).pow(3).sum(), weight, create_graph=True)
        second.append(torch.autograd.grad(first.square().sum(), weight)[0])
    torch.testing.assert_close(*second, rtol=1e-4, atol=1e-4)


def test_many_gradients_at_once_take_the_ordinary_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_SMALL", 1)
    torch.manual_seed(0)
    inputs, weight = torch.randn(6, 4), torch.randn(3, 4, requires_grad=True)
    output, each = linear(inputs, weight, None).sum(0), torch.eye(3)
    (together,) = torch.autograd.grad(output, weight, each, is_grads_batched=True)
    torch.testing.assert_close(together, torch.einsum("ij,k->ijk", each, inputs.sum(0)))


@pytest.mark.skipif(not KERNEL, reason="this PyTorch has no oneDNN")
def test_small_products_take_the_ordinary_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of the kernel costs more than they do. The gradient of a weight has few rows and is large."""
    calls = []
    monkeypatch.setattr(kernels, "_KERNEL", lambda *arguments: calls.append(1) or _KERNEL(*arguments))
    weight = torch.randn(64, 64, requires_grad=True)
    linear(torch.randn(511, 64), weight.detach(), None)
    assert not calls
    output = linear(torch.randn(4096, 64), weight, None)
    assert len(calls) == 1
    output.sum().backward()
    assert len(calls) == 2


def test_autocast_takes_the_ordinary_operators() -> None:
    inputs, weight = torch.randn(6, 4), torch.randn(3, 4, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        assert not fuses(inputs, weight)
        assert linear(inputs, weight, None).dtype == torch.bfloat16


def test_other_precisions_and_vmap_take_the_ordinary_operators() -> None:
    with torch.no_grad():
        wide = torch.randn(3, 4, dtype=torch.float64)
        assert not fuses(wide, wide)
        assert linear(wide, wide, None).dtype == torch.float64
        narrow = torch.randn(3, 5, 4)
        mapped = torch.func.vmap(lambda one: linear(one, narrow[0], None))(narrow)
        torch.testing.assert_close(mapped, narrow @ narrow[0].T)


@pytest.mark.parametrize("count", [1, 7, (1 << 17) + 3])
def test_gelu_and_its_gradient_are_those_of_double_precision(count: int) -> None:
    torch.manual_seed(0)
    single = (4 * torch.randn(count)).requires_grad_()
    double = single.detach().double().requires_grad_()
    towards = torch.randn(count)
    for ours, theirs in (
        (gelu(single), torch.nn.functional.gelu(double, approximate="tanh")),
        (
            torch.autograd.grad(gelu(single), single, towards)[0],
            torch.autograd.grad(torch.nn.functional.gelu(double, approximate="tanh"), double, towards.double())[0],
        ),
    ):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=3e-6)


def test_gelu_of_numbers_that_are_not_finite_is_as_finite_as_pytorchs() -> None:
    """Per-unit gradients that are not finite count as zero: they must not become finite here, nor finite ones infinite."""
    far = torch.tensor([torch.inf, torch.nan, 1e13, -1e13, 100.0, -100.0, 0.0])
    results = []
    for function in (gelu, lambda x: torch.nn.functional.gelu(x, approximate="tanh")):
        inputs = far.clone().requires_grad_()
        output = function(inputs)
        results.append((output.detach(), torch.autograd.grad(output.sum(), inputs)[0]))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, equal_nan=True, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("wanted", [lambda y, x: y.sum(), lambda y, x: y.pow(2).sum(), lambda y, x: (y + x**3).sum()])
def test_gelus_gradient_has_a_gradient(wanted: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
    """Also where the gradient that comes in is a constant."""
    second = []
    for function in (gelu, lambda x: torch.nn.functional.gelu(x, approximate="tanh")):
        inputs = torch.linspace(-3, 3, 13).requires_grad_()
        (first,) = torch.autograd.grad(wanted(function(inputs), inputs), inputs, create_graph=True)
        second.append(torch.autograd.grad(first.square().sum(), inputs)[0])
    torch.testing.assert_close(*second, rtol=1e-5, atol=1e-5)
    assert second[0].abs().max() > 0.1
