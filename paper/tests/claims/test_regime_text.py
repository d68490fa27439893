"""What the page says about the regime: which runs collapsed, and which bounds were best on the simulator."""

from pathlib import Path

from made_results import result
from tamedit_paper.claims.regime import collapse_text, loss_text, reference_text, regime_text
from tamedit_paper.grid.measures import Runs
from tamedit_paper.tables.regime_figure import draw_regime, noise_cells, walk_cells
from tamedit_paper.tables.sweeps import FACTORS, bounded, reference_cells, regime_cells
from tamedit_paper.tables.utility import aware, vanilla

SCORES = ("imputation point_RMSE", "imputation R2", "forecast point_RMSE", "forecast R2")


def run_of(cell: str, seed: int, rmse: float, r_squared: float):  # type: ignore[no-untyped-def]
    return result(cell, seed, model=dict(zip(SCORES, (rmse, r_squared, rmse, r_squared), strict=True)))


def test_a_run_three_times_worse_than_a_constant_guess_has_collapsed() -> None:
    cell = vanilla("household", 0.2)
    runs = Runs({cell: [run_of(cell, 0, 6.0, -30.0), run_of(cell, 1, 1.0, -7.9), run_of(cell, 2, 2.0, -8.1)]})
    line = next(line for line in collapse_text(runs, "household").splitlines() if "DP-vanilla, σ = 0.2" in line)
    assert line.count("3.000 | 2.000 | 2 of 3") == 2, "mean, median and collapsed, for both tasks"


def test_the_regime_table_has_both_sides_and_holes_where_nothing_was_run() -> None:
    text = regime_text(Runs({}), "laptop", "household")
    assert "| parameters P | 9,838,593 | 180,609 |" in text
    assert "| σ = 0.1: **noise over signal**, clipping rate | 3.27, 0.582 | –, – |" in text


def test_the_sweep_of_the_reference_shows_medians() -> None:
    cell = bounded(0.1, FACTORS[2])
    runs = Runs({cell: [run_of(cell, seed, value, 0.0) for seed, value in enumerate((1.0, 5.0, 2.0))]})
    line = next(line for line in reference_text(runs).splitlines() if line.startswith("| 0.1 | 0.25 |"))
    assert "| 2.000 |" in line
    assert line.endswith("| 3 |")
    assert cell in reference_cells()


def test_the_figure_shows_both_arms_over_walk_and_noise(tmp_path: Path) -> None:
    cells = [
        cell for arm in (vanilla, aware) for make in (walk_cells, noise_cells) for _, cell in make(arm, "household")
    ]
    assert set(cells) <= set(regime_cells())
    runs = Runs({cell: [run_of(cell, seed, 1.0 + seed, 0.0) for seed in range(2)] for cell in set(cells)})
    paths = draw_regime(runs, tmp_path, "household")
    assert [path.suffix for path in paths] == [".png", ".svg"]
    assert all(path.stat().st_size > 5000 for path in paths)
    text = paths[1].read_text(encoding="utf-8")
    assert "DP-vanilla" in text
    assert "share collapsed" in text
    assert draw_regime(Runs({}), tmp_path / "none", "household") == []


def test_a_loss_at_large_t_weighs_more_in_samples() -> None:
    cell = vanilla("household", 0.2)
    made = result(cell)
    curves = made.curves | {"times": [100.0, 300.0, 500.0, 700.0, 900.0], "loss_by_time": [0.25] * 5}
    text = loss_text(Runs({cell: [made.model_copy(update={"curves": curves})]}), "household")
    line = next(line for line in text.splitlines() if "DP-vanilla, σ = 0.2" in line)
    errors = [float(part.partition("*")[2].rstrip("* ")) for part in line.split("|")[4:9]]
    assert errors == sorted(errors), "the same loss, a larger error of the sample"
    assert errors[-1] > 20 * errors[1], "√ᾱ is 0.016 at t = 900"
