"""Scale laptop stands where the paper stands; at the paper's own size every setting comes back."""

import pytest

from tamedit.data.simulate import simulate
from tamedit.runs.config import RunConfig
from tamedit.runs.regime import parameter_count, regime
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.matching import PAPER, PAPER_WALK, matched_noise, matched_rate, of_paper, plain_rate
from tamedit_paper.grid.recipes import EFFORT, recipe

SERIES = simulate(hours=600)
SIGMAS = (0.03, 0.05, 0.1, 0.2)


def config(cell: str, scale: str = "laptop") -> RunConfig:
    return recipe(Cell.parse(cell), scale, 0, SERIES)  # type: ignore[arg-type]


@pytest.mark.parametrize("sigma", SIGMAS)
def test_at_the_papers_size_the_settings_are_the_papers(sigma: float) -> None:
    found = config(f"simulated/vanilla/sigma={sigma:g}", "paper")
    assert found.privacy is not None
    assert found.privacy.noise_multiplier == pytest.approx(sigma, rel=1e-12)
    assert found.training == PAPER
    assert matched_noise(sigma, found.network, PAPER.batch_size) == pytest.approx(sigma, rel=1e-12)
    assert matched_rate(PAPER.steps, 256) == pytest.approx(PAPER.learning_rate, rel=1e-12)
    assert plain_rate(256) == PAPER.learning_rate


@pytest.mark.parametrize("cell", ["simulated/vanilla/sigma={:g}", "simulated/aware/sigma={:g}/medium/tanh"])
@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_laptop_stands_where_the_paper_stands(cell: str, sigma: float) -> None:
    found = config(cell.format(sigma))
    assert found.privacy is not None
    assert found.privacy.noise_multiplier is not None
    count = parameter_count(found.network)
    stands = regime(count, found.network.width, found.privacy.noise_multiplier, found.training)
    paper = regime(parameter_count(of_paper(found.network)), 256, sigma, PAPER)
    assert stands.model_dump() == pytest.approx(paper.model_dump(), rel=1e-9)


def test_a_cell_may_walk_less_far_or_be_deeper() -> None:
    slow = config("simulated/vanilla/sigma=0.1/walk=0.4")
    usual = config("simulated/vanilla/sigma=0.1")
    assert slow.training.learning_rate / usual.training.learning_rate == pytest.approx(0.4 / PAPER_WALK)
    deep = config("simulated/vanilla/sigma=0.1/depth=8")
    assert (deep.network.depth, deep.training) == (8, usual.training)
    assert deep.privacy is not None
    assert usual.privacy is not None
    noise = [
        one.privacy.noise_multiplier * parameter_count(one.network) ** 0.5  # type: ignore[union-attr, operator]
        for one in (deep, usual)
    ]
    assert noise[0] == pytest.approx(noise[1]), "more parameters, less noise on each: the same noise over signal"


def test_bounds_may_be_given() -> None:
    found = config("simulated/aware/sigma=0.1/bounds=4,0.5,0.25,0.125/tanh").network.bounds[0]
    assert (found.condition, found.scale, found.shift, found.gate) == (4.0, 0.5, 0.25, 0.125)


def test_a_run_without_privacy_has_a_rate_of_its_own() -> None:
    assert config("simulated/non-dp").training.learning_rate == pytest.approx(7e-4 * 4)
    assert EFFORT["laptop"].network["width"] == 64
