"""Where a run stands: the numbers without units against closed forms and against real networks."""

import math

import pytest

from tamedit.model.dit import DiffusionTransformer
from tamedit.model.tuning import Tuning, prepare, trained
from tamedit.model.zoo import SIZES, NetworkConfig
from tamedit.runs.config import TrainingConfig
from tamedit.runs.regime import COLLAPSE_NOISE, COLLAPSE_WALK, Regime, noise_over_signal, parameter_count, regime, walk


def network(size: str) -> NetworkConfig:
    shape = {"target_channels": 1, "covariate_channels": 6, "length": 168}
    return NetworkConfig.model_validate(shape | SIZES[size])


@pytest.mark.parametrize("tuning", ["all", "modulation", "low_rank"])
def test_parameters_are_counted_as_they_are_trained(tuning: Tuning) -> None:
    made = DiffusionTransformer(network("tiny"))
    prepare(made, tuning, 3)
    assert parameter_count(network("tiny"), tuning, 3) == sum(one.numel() for one in trained(made).values())


def test_the_papers_numbers() -> None:
    """σ √P / B and rate √T √width of the published settings, as the specification has them."""
    parameters = parameter_count(network("paper"))
    assert parameters == pytest.approx(9.84e6, rel=1e-3)
    found = [noise_over_signal(sigma, parameters, 96) for sigma in (0.03, 0.05, 0.1, 0.2)]
    assert found == pytest.approx([0.98, 1.63, 3.27, 6.53], abs=0.01)
    assert walk(7e-4, 20_000, 256) == pytest.approx(1.584, abs=1e-3)
    stands = regime(parameters, 256, 0.1, TrainingConfig.model_validate({}))
    assert (stands.warmup_share, stands.averaging_share) == pytest.approx((0.05, 0.05))
    assert stands.collapses


def test_noise_that_adam_makes_its_steps_of_walks_as_far_as_said() -> None:
    """Adam on pure noise moves a weight by about rate √T at random: simulated, not assumed."""
    import torch

    torch.manual_seed(0)
    steps, rate = 400, 1e-3
    weights = torch.nn.Parameter(torch.zeros(4000))
    optimizer = torch.optim.AdamW([weights], lr=rate, weight_decay=0.0)
    for _ in range(steps):
        weights.grad = torch.randn_like(weights) * 7.0  # its size does not matter
        optimizer.step()
    moved = float(weights.detach().std())
    assert moved == pytest.approx(rate * math.sqrt(steps), rel=0.15)


def test_bounds_are_advised_where_noise_carries_the_modulation_away() -> None:
    far = Regime(noise_over_signal=3.3, walk=1.6, warmup_share=0.05, averaging_share=0.05)
    near = far.model_copy(update={"walk": COLLAPSE_WALK / 2})
    quiet = far.model_copy(update={"noise_over_signal": COLLAPSE_NOISE / 2})
    assert (far.collapses, near.collapses, quiet.collapses) == (True, False, False)
    assert "use bounds" in far.advice()
    assert "use bounds" not in near.advice()
    assert "walk 1.6" in far.numbers()


def test_an_average_over_more_than_the_run_is_one_over_all_of_it() -> None:
    short = Regime(noise_over_signal=1.0, walk=1.0, warmup_share=0.05, averaging_share=16.67)
    assert short.numbers().endswith("warm-up 5% and averaging all of the steps")
