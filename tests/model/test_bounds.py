"""One contract for every bounding operator, and the bounds hold for adversarial inputs."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tamedit.model.adaln import BoundedAdaLNZero
from tamedit.model.bounds import BAND, OPERATORS, Bounds, bound, project

BOUNDING = [operator for operator in OPERATORS if operator != "none"]
limits = st.floats(1e-3, 1e3)
inputs = st.floats(allow_nan=False, allow_infinity=False, width=32)


def slope(operator: str, x: float, limit: float) -> float:
    point = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    bound(point, limit, operator).backward()
    return float(point.grad)


@pytest.mark.parametrize("operator", BOUNDING)
@given(x=inputs, y=inputs, limit=limits)
@settings(max_examples=200, deadline=None)
def test_within_odd_and_monotone(operator: str, x: float, y: float, limit: float) -> None:
    low, high = sorted((x, y))
    values = bound(torch.tensor([low, high, -low, -high]), limit, operator)
    assert torch.isfinite(values).all()
    assert (values.abs() <= torch.tensor(limit)).all()
    assert values[0] <= values[1]
    assert torch.equal(values[:2], -values[2:])


@pytest.mark.parametrize("operator", OPERATORS)
@given(limit=limits)
@settings(max_examples=30, deadline=None)
def test_the_slope_at_zero_is_one_and_zero_stays(operator: str, limit: float) -> None:
    assert bound(torch.zeros(1), limit, operator).item() == 0
    assert slope(operator, 0.0, limit) == pytest.approx(1.0)


@given(limit=limits, share=st.floats(-1, 1))
@settings(max_examples=100, deadline=None)
def test_identity_regions(limit: float, share: float) -> None:
    x = torch.tensor(share * limit, dtype=torch.float64)
    assert bound(x, limit, "hard_clamp") == x
    assert bound(x, limit, "clamp_ste") == x
    inner = x * (1 - BAND)
    assert bound(inner, limit, "soft_clamp_band").item() == pytest.approx(inner.item(), abs=0)
    assert bound(x * 1e9, limit, "none") == x * 1e9


@pytest.mark.parametrize("operator", ["tanh", "soft_clamp_band"])
@given(limit=limits)
@settings(max_examples=30, deadline=None)
def test_smooth_operators_have_a_continuous_slope(operator: str, limit: float) -> None:
    grid = torch.linspace(-2 * limit, 2 * limit, 4001, dtype=torch.float64, requires_grad=True)
    bound(grid, limit, operator).sum().backward()
    assert grid.grad is not None
    jumps = grid.grad.diff().abs().max().item()
    assert jumps < 0.02  # a kink would jump by 1; the steepest bend here is 1 over a band of 0.2 M, 200 points
    assert grid.grad.min() >= 0
    assert grid.grad.max() <= 1 + 1e-12


@given(limit=limits)
@settings(max_examples=30, deadline=None)
def test_the_band_saturates_exactly(limit: float) -> None:
    outside = torch.tensor([limit * (1 + BAND) * 1.0001, 1e30, math.inf], dtype=torch.float64)
    assert bound(outside, limit, "soft_clamp_band").tolist() == [limit] * 3


@given(x=st.floats(-1e6, 1e6), limit=limits)
@settings(max_examples=50, deadline=None)
def test_straight_through_has_slope_one_everywhere(x: float, limit: float) -> None:
    assert slope("clamp_ste", x, limit) == 1.0


def test_gradients_agree_with_finite_differences() -> None:
    x = torch.linspace(-3, 3, 50, dtype=torch.float64, requires_grad=True)
    for operator in ("tanh", "soft_clamp_band"):
        assert torch.autograd.gradcheck(lambda value, operator=operator: bound(value, 1.3, operator), x)


@pytest.mark.parametrize("size", [0.0, 1e-30, 1.0, 1e6, 1e30, 3e38])
def test_the_projected_condition_is_short_and_keeps_its_direction(size: float) -> None:
    raw = torch.randn(5, 16, generator=torch.Generator().manual_seed(0))
    condition = (raw / raw.abs().max() * size).requires_grad_()
    short = project(condition, 2.0)
    assert (short.norm(dim=1) <= 2.0 * (1 + 1e-6)).all()
    if size == 1.0:
        torch.testing.assert_close(short[raw.norm(dim=1) < 0], condition[raw.norm(dim=1) < 0])
    if size > 0:
        cosine = torch.nn.functional.cosine_similarity(
            short.double() / short.double().norm(dim=1, keepdim=True), raw.double()
        )
        torch.testing.assert_close(cosine, torch.ones_like(cosine), rtol=1e-5, atol=1e-5)
    short.sum().backward()
    assert torch.isfinite(condition.grad).all()


def test_projection_is_the_identity_inside_and_has_the_right_gradient() -> None:
    inside = torch.randn(4, 8, dtype=torch.float64) * 0.1
    torch.testing.assert_close(project(inside, 5.0), inside)
    mixed = (
        torch.randn(6, 8, dtype=torch.float64) * torch.tensor([[0.01], [0.1], [1], [3], [10], [100]])
    ).requires_grad_()
    assert torch.autograd.gradcheck(lambda value: project(value, 2.0), mixed)


@pytest.mark.parametrize("operator", BOUNDING)
@pytest.mark.parametrize("size", [0.0, 1.0, 1e6, 1e37])
def test_modulations_stay_within_their_bounds_for_any_condition(operator: str, size: float) -> None:
    bounds = Bounds(condition=3.0, scale=0.5, shift=0.7, gate=0.2)
    module = BoundedAdaLNZero(8, 12, bounds, operator)  # type: ignore[arg-type]
    torch.nn.init.normal_(module.projection.weight, std=1e3)
    for triple in module(torch.randn(20, 12) * size):
        for value, limit in zip(triple, (0.5, 0.7, 0.2), strict=True):
            assert (value.abs() <= torch.tensor(limit)).all()


def test_component_switches() -> None:
    both = Bounds(condition=3.0, scale=0.5, shift=0.7, gate=0.2)
    assert both.only_condition() == Bounds(condition=3.0)
    assert both.only_modulation() == Bounds(scale=0.5, shift=0.7, gate=0.2)
    assert both.scaled(0.5) == Bounds(condition=1.5, scale=0.25, shift=0.35, gate=0.1)
    assert Bounds().scaled(0.5) == Bounds()


def test_without_bounds_it_is_plain_adaln_zero() -> None:
    module = BoundedAdaLNZero(4, 6, Bounds())
    condition = torch.randn(3, 6) * 100
    assert all((value == 0).all() for triple in module(condition) for value in triple)
    torch.nn.init.normal_(module.projection.weight)
    raw = module.projection(condition).chunk(6, -1)
    for value, expected in zip((value for triple in module(condition) for value in triple), raw, strict=True):
        assert torch.equal(value, expected)
