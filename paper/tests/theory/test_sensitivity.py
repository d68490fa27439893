"""S_aware: the identities of the paper's appendices, and how the bound moves with what it is given."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from tamedit.errors import UserError
from tamedit.model.bounds import Bounds
from tamedit.model.dit import DiffusionTransformer
from tamedit_paper.theory.norms import GELU_SLOPE, SILU_SLOPE, NetworkNorms
from tamedit_paper.theory.propagation import InputBounds, Maxima, in_quadrature, propagate, radius
from tamedit_paper.theory.search import shaken
from tamedit_paper.theory.sensitivity import GROUPS, ConvexForm, LinearForm, Theory, analyse, group_of, linear_form

BOUNDS = Bounds(condition=2.0, scale=0.5, shift=0.4, gate=0.3)
INPUTS = InputBounds(noised=3, wanted=3, values=2, anchor=2, covariates=1)
NETWORK = shaken(2, BOUNDS)
NORMS = NetworkNorms.of(NETWORK)

positive = st.floats(0.01, 10)
maxima = st.builds(Maxima, positive, positive, positive, positive)


def sensitivity(limit: Maxima, inputs: InputBounds = INPUTS) -> float:
    return sum(propagate(NORMS, inputs, [limit] * 3).layers.values())


@pytest.fixture(scope="module")
def theory() -> Theory:
    return analyse(NETWORK, INPUTS, clip=0.5, reference=Bounds(condition=4.0, scale=0.5, shift=1.0, gate=0.2))


def test_the_sum_of_the_groups_is_the_linear_form_at_the_bounds(theory: Theory) -> None:
    assert theory.linear is not None
    assert theory.sensitivity == pytest.approx(sum(theory.groups.values()), rel=1e-12)
    assert theory.sensitivity == pytest.approx(theory.linear.at(Maxima(2.0, 0.5, 0.4, 0.3)), rel=1e-12)
    assert min(theory.linear.constant, *theory.linear.slopes) >= 0
    assert theory.rho_bound == theory.sensitivity / 0.5
    assert theory.quadrature <= theory.sensitivity


def test_a_block_is_the_product_of_its_branches_as_the_paper_writes_them(theory: Theory) -> None:
    reach = math.sqrt(8) * (1 + 0.5) + math.sqrt(8) * 0.4
    assert radius(8, Maxima(2.0, 0.5, 0.4, 0.3)) == pytest.approx(reach, rel=1e-12)
    for block, jacobian in zip(NORMS.blocks, theory.block_jacobians, strict=True):
        factors = [
            1 + 0.3 * part.at(reach).lipschitz * (1 + 0.5) / math.sqrt(1e-6) for part in (block.attention, block.mlp)
        ]
        assert jacobian == pytest.approx(math.prod(factors), rel=1e-12)


def test_every_branch_adds_its_gated_output_to_the_norm_of_a_token(theory: Theory) -> None:
    assert theory.propagated is not None
    branches = [branch for block in theory.propagated.blocks for branch in block]
    for before, after in pairwise(branches):
        assert after.token == pytest.approx(before.token + 0.3 * after.sublayer.output, rel=1e-12)


def test_the_convex_combination_is_an_identity(theory: Theory) -> None:
    form = theory.convex
    assert form is not None
    assert sum(form.weights) == pytest.approx(1.0, rel=1e-12)
    assert min(form.weights) >= 0
    assert form.ratio == pytest.approx(form.sensitivity / form.reference_sensitivity, rel=1e-12)
    assert form.ratio <= form.ceiling == pytest.approx(1.5)
    assert form.ratios == pytest.approx((0.5, 1.0, 0.4, 1.5))
    assert form.sensitivity >= theory.sensitivity * (
        1 - 1e-12
    )  # constants of the larger box dominate in the smaller one


@given(st.builds(LinearForm, st.floats(0.01, 1e6), st.builds(Maxima, *[st.floats(0, 1e6)] * 4)), maxima, maxima)
def test_every_convex_combination_obeys_appendix_b(linear: LinearForm, limit: Maxima, reference: Maxima) -> None:
    form = ConvexForm.of(linear, limit, reference)
    assert sum(form.weights) == pytest.approx(1.0, rel=1e-12)
    assert form.ratio == pytest.approx(linear.at(limit) / linear.at(reference), rel=1e-9)
    assert form.ratio <= form.ceiling * (1 + 1e-12)
    if all(r <= 1 for r in form.ratios):
        assert linear.at(limit) <= linear.at(reference) * (1 + 1e-12)


def test_the_linear_form_of_a_product_shares_it() -> None:
    form = linear_form(lambda m: 7 + m.scale * m.gate + 2 * m.condition, Maxima(1.0, 3.0, 5.0, 2.0))
    assert form.constant == 7
    assert form.slopes == pytest.approx((2.0, 1.0, 0.0, 1.5))  # 3 · 2 = 6, three for each


@settings(max_examples=40, deadline=None)
@given(maxima, st.tuples(*[st.floats(0, 1)] * 4))
def test_the_linear_form_dominates_everywhere_in_its_box(corner: Maxima, shares: tuple[float, ...]) -> None:
    form = linear_form(sensitivity, corner)
    inside = Maxima(*(share * value for share, value in zip(shares, corner, strict=True)))
    assert sensitivity(inside) <= form.at(inside) * (1 + 1e-9)
    assert sensitivity(corner) == pytest.approx(form.at(corner), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(maxima, st.integers(0, 3), st.floats(0, 1))
def test_tightening_a_bound_never_raises_it(limit: Maxima, which: int, factor: float) -> None:
    tighter = Maxima(*(value * (factor if index == which else 1) for index, value in enumerate(limit)))
    for combine in (sum, in_quadrature):
        loose, tight = (propagate(NORMS, INPUTS, [m] * 3, combine) for m in (limit, tighter))
        assert all(tight.layers[name] <= value * (1 + 1e-12) for name, value in loose.layers.items())
        assert all(t <= s * (1 + 1e-12) for t, s in zip(tight.state_gradients, loose.state_gradients, strict=True))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["noised", "wanted", "values", "anchor", "covariates"]),
    st.floats(0, 1),
    st.integers(1, 12),
    positive,
)
def test_smaller_inputs_never_raise_it(name: str, factor: float, cells: int, spread: float) -> None:
    limit = Maxima(2.0, 0.5, 0.4, 0.3)
    whole = sensitivity(limit)
    smaller = {name: getattr(INPUTS, name) * factor}
    for change in (smaller, {"hidden_cells": cells}, {"token_spread": spread}):
        assert sensitivity(limit, INPUTS.model_copy(update=change)) <= whole * (1 + 1e-12)


def test_every_parameter_has_a_bound_and_a_group(theory: Theory) -> None:
    assert theory.propagated is not None
    modules = {name.rsplit(".", 1)[0] for name, _ in NETWORK.named_parameters()}
    assert set(theory.propagated.layers) == modules
    assert {group_of(name) for name in modules} == set(GROUPS)
    assert group_of("blocks.1.adaln.projection.weight") == group_of("final_adaln.projection") == "projections"
    assert group_of("blocks.0.mlp.2.bias") == "sublayers"
    assert group_of("time_embedding.layers.0.weight") == group_of("output") == "remaining"


@pytest.mark.parametrize(
    ("bounds", "missing"),
    [
        (Bounds(), ("condition", "scale", "shift", "gate")),
        (BOUNDS.only_condition(), ("scale", "shift", "gate")),
        (BOUNDS.only_modulation(), ("condition",)),
    ],
)
def test_without_all_four_bounds_there_is_no_number(bounds: Bounds, missing: tuple[str, ...]) -> None:
    theory = analyse(shaken(1, bounds), INPUTS, clip=1.0)
    assert theory.sensitivity == theory.rho_bound == theory.quadrature == math.inf
    assert theory.unbounded == missing
    assert math.isfinite(theory.block_jacobians[0]) == (missing == ("condition",))
    written = json.loads(json.dumps(theory.to_dict(), allow_nan=False))
    assert written["S_aware"] is None
    assert written["unbounded"] == list(missing)


def test_the_operator_that_bounds_nothing_is_the_vanilla_arm() -> None:
    assert analyse(shaken(1, BOUNDS, operator="none"), INPUTS, clip=1.0).unbounded == ("scale", "shift", "gate")


def test_blocks_may_have_bounds_of_their_own() -> None:
    tight = BOUNDS.scaled(0.5)
    network = DiffusionTransformer(NETWORK.config.model_copy(update={"bounds": (BOUNDS, tight, tight)})).double()
    network.load_state_dict(NETWORK.state_dict())
    mixed, loose = analyse(network, INPUTS, clip=1.0), analyse(NETWORK, INPUTS, clip=1.0)
    assert mixed.linear is not None
    assert mixed.sensitivity < loose.sensitivity
    assert mixed.sensitivity == pytest.approx(mixed.linear.at(Maxima(2.0, 0.5, 0.4, 0.3)), rel=1e-12)


def test_at_the_zero_initialisation_only_the_output_layer_counts() -> None:
    theory = analyse(shaken(2, BOUNDS, spread=0.0), INPUTS, clip=1.0)
    assert theory.sensitivity == pytest.approx(2 * 3 * math.sqrt(8 * 1.9**2 + 1), rel=1e-12)


def test_it_can_be_written_as_json(theory: Theory) -> None:
    written = json.loads(json.dumps(theory.to_dict(), allow_nan=False))
    assert set(written["constants"]) == {"A0", "a_c", "a_gamma", "a_beta", "a_alpha"}
    assert len(written["C_block"]) == 2
    assert written["convex"]["ratio"] <= written["convex"]["ceiling"]


def test_mistakes_are_named() -> None:
    with pytest.raises(UserError, match="clip"):
        analyse(NETWORK, INPUTS, clip=0.0)
    with pytest.raises(UserError, match="gate"):
        analyse(NETWORK, INPUTS, clip=1.0, reference=Bounds(condition=1.0, scale=1.0, shift=1.0))


def test_the_slopes_of_gelu_and_silu() -> None:
    x = torch.linspace(-12, 12, 200_001, dtype=torch.float64, requires_grad=True)
    for function, slope in ((lambda x: F.gelu(x, approximate="tanh"), GELU_SLOPE), (F.silu, SILU_SLOPE)):
        y = function(x)
        (steepness,) = torch.autograd.grad(y.sum(), x)
        assert slope - 0.002 < steepness.abs().max().item() <= slope
        assert (y.abs() <= x.abs()).all()


def test_bounds_from_data_hold_at_every_step_of_the_process() -> None:
    from tamedit.diffusion.process import Process

    inputs = InputBounds.from_data(residual=2.0, epsilon=4.0, values=2.0)
    time = torch.arange(1000)
    for residual in (-2.0, 2.0):
        clean, epsilon = torch.full((1000, 1, 1), residual), torch.full((1000, 1, 1), 4.0)
        for values in Process(prediction="v").diffuse(clean, epsilon, time):
            assert np.abs(values.numpy()).max() <= inputs.noised * (1 + 1e-6)
    assert inputs.noised == inputs.wanted
