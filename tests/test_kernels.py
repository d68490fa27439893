"""The fused kernel says what the ordinary operators say, gradients too, and steps aside where it has no rule."""

import pytest
import torch

from tamedit.kernels import _KERNEL, GELU, Then, fuses, linear

KERNEL = _KERNEL is not None


@pytest.mark.parametrize("then", ["none", GELU])
@pytest.mark.parametrize("shape", [(5, 7, 12), (0, 12), (3, 12)])
@pytest.mark.parametrize("biased", [True, False])
def test_the_numbers_are_those_of_double_precision(then: Then, shape: tuple[int, ...], biased: bool) -> None:
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
def test_gradients_are_those_of_double_precision(then: Then, shape: tuple[int, ...], biased: bool) -> None:
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


def test_gradients_of_views_and_of_sums_are_right() -> None:
    """Their memory is not in order: a gradient that is one number repeated, inputs that are every other column."""
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


def test_a_gradient_has_a_gradient() -> None:
    """The norm of a gradient can be differentiated, as the paper's search does."""
    torch.manual_seed(0)
    inputs, weight = torch.randn(6, 4, dtype=torch.float32), torch.randn(3, 4, requires_grad=True)
    second = []
    for function in (lambda x, w: linear(x, w, None), torch.nn.functional.linear):
        (first,) = torch.autograd.grad(function(inputs, weight).pow(3).sum(), weight, create_graph=True)
        second.append(torch.autograd.grad(first.square().sum(), weight)[0])
    torch.testing.assert_close(*second, rtol=1e-4, atol=1e-4)


def test_many_gradients_at_once_take_the_ordinary_operators() -> None:
    torch.manual_seed(0)
    inputs, weight = torch.randn(6, 4), torch.randn(3, 4, requires_grad=True)
    output, each = linear(inputs, weight, None).sum(0), torch.eye(3)
    (together,) = torch.autograd.grad(output, weight, each, is_grads_batched=True)
    torch.testing.assert_close(together, torch.einsum("ij,k->ijk", each, inputs.sum(0)))


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
