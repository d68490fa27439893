"""The fused kernel says what the ordinary operators say, and steps aside where a gradient or another precision is asked for."""

import pytest
import torch

from tamedit.kernels import GELU, Then, fuses, linear


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


def test_a_gradient_that_is_asked_for_arrives() -> None:
    inputs, weight = torch.randn(3, 4, requires_grad=True), torch.randn(2, 4, requires_grad=True)
    assert not fuses(inputs, weight)
    linear(inputs, weight, None).sum().backward()
    assert inputs.grad is not None
    torch.testing.assert_close(inputs.grad, weight.detach().sum(0).expand(3, 4))


def test_other_precisions_and_vmap_take_the_ordinary_operators() -> None:
    with torch.no_grad():
        wide = torch.randn(3, 4, dtype=torch.float64)
        assert not fuses(wide, wide)
        assert linear(wide, wide, None).dtype == torch.float64
        narrow = torch.randn(3, 5, 4)
        mapped = torch.func.vmap(lambda one: linear(one, narrow[0], None))(narrow)
        torch.testing.assert_close(mapped, narrow @ narrow[0].T)
