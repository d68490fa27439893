"""Names of cells, and the configurations that they stand for."""

import pytest

from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.evaluation.task_table import TASKS
from tamedit.model.bounds import Bounds
from tamedit.runs.recipe import REFERENCE
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.recipes import EFFORT, effort_of, recipe

NAMES = [
    "household/non-dp",
    "household/non-dp/too_tight/tanh",
    "household/vanilla/sigma=0.03",
    "household/vanilla/sigma=0.1/clip=0.5",
    "household/aware/sigma=0.05/medium/tanh",
    "household/aware/sigma=0.05/medium/hard_clamp/condition-only",
    "etth1/aware/sigma=0.1/medium/tanh/free",
    "ideal/aware/epsilon=8/unit=week/medium/tanh/free",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_and_its_cell_are_each_others_inverse(name: str) -> None:
    assert Cell.parse(name).name == name


@pytest.mark.parametrize(
    "name",
    [
        "household",
        "household/aware/medium/tanh",  # no noise
        "household/vanilla/sigma=0.1/medium/tanh",  # bounds
        "household/aware/sigma=0.1",  # none
        "household/non-dp/sigma=0.1",
        "household/aware/medium/tanh/sigma=0.1",  # order
        "household/vanilla/sigma=-1",
        "household/vanilla/sigma=much",
        "household/vanilla/sigma=0.1/colour=red",
    ],
)
def test_a_name_that_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="is not a cell of a table"):
        Cell.parse(name)


def test_arms_differ_in_the_forward_pass_only() -> None:
    series = simulate(hours=600)
    vanilla = recipe(Cell.parse("simulated/vanilla/sigma=0.1"), "laptop", 3, series).model_dump()
    aware = recipe(Cell.parse("simulated/aware/sigma=0.1/medium/tanh"), "laptop", 3, series).model_dump()
    assert vanilla["network"].pop("bounds") == (Bounds().model_dump(),)
    reference = REFERENCE["none"]
    assert reference.condition is not None
    assert aware["network"].pop("bounds")[0]["condition"] == pytest.approx(0.9 * reference.condition)
    assert vanilla == aware


def test_components_bound_what_they_say() -> None:
    reference = Bounds(condition=2.0, scale=4.0, shift=6.0, gate=8.0)
    only_c = Cell.parse("a/aware/sigma=1/tight/tanh/condition-only").bounds(reference)
    only_m = Cell.parse("a/aware/sigma=1/tight/tanh/modulation-only").bounds(reference)
    assert only_c == Bounds(condition=1.5)
    assert only_m == Bounds(scale=3.0, shift=4.5, gate=6.0)


def test_the_paper_scale_is_the_papers() -> None:
    series = simulate(hours=600)
    config = recipe(Cell.parse("simulated/vanilla/sigma=0.2/clip=2"), "paper", 0, series)
    assert config.privacy is not None
    assert (config.privacy.clip, config.privacy.noise_multiplier, config.privacy.layout) == (2.0, 0.2, "overlapping")
    training = config.training
    assert (training.steps, training.batch_size, training.learning_rate, training.weight_decay) == (
        20_000,
        96,
        7e-4,
        2e-5,
    )
    assert (training.warmup, training.ema, training.validate_every) == (1000, 0.999, 1000)
    assert (config.network.depth, config.network.width, config.network.heads) == (8, 256, 8)
    assert (config.process.prediction, config.scaling, config.examples.anchor) == ("epsilon", "nonprivate", "none")
    assert set(EFFORT) == {"smoke", "laptop", "paper"}


def test_the_papers_cells_are_scored_at_its_two_tasks_and_panels_at_all() -> None:
    """Stored results of the paper's tables have two tasks and stay comparable."""
    asked = {
        name: effort_of(Cell.parse(name), "laptop").tasks
        for name in ("etth1/non-dp", "ideal/vanilla/epsilon=8/unit=week/free/public=homes")
    }
    assert list(asked.values()) == [("imputation", "forecast"), tuple(TASKS)]
