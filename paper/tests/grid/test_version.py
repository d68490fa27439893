"""The version of the numbers: results made by other code must not be taken for today's.

When this fails and the change was meant, raise `NUMBERS_VERSION` and put the new numbers here; every result is then due again. A
change of a configuration alone makes the results of that configuration due by itself, and needs new numbers but no new version.
"""

from pathlib import Path

import pytest

from tamedit_paper.grid.results import NUMBERS_VERSION, Job, load
from tamedit_paper.grid.work import is_done, run

RESULTS = Path(__file__).parents[2] / "results"

# version → cell → (last training loss, p99 of ‖g‖, imputation RMSE, imputation CRPS of the free guess, ε of a reading)
KNOWN = {
    1: {
        "simulated/aware/sigma=0.1/medium/tanh": (0.930546, 4.56502, 0.943464, 0.293068, 494.497),
        "simulated/non-dp/free": (0.932415, 3.60680, 0.518383, 0.293068, None),
        "fleet/aware/epsilon=8/unit=week/medium/tanh/free/public": (1.05666, 3.00808, 0.432352, 0.258090, 8.00351),
    }
}


@pytest.mark.parametrize("cell", list(KNOWN[NUMBERS_VERSION]))
def test_a_run_computes_what_its_version_says(cell: str, tmp_path: Path) -> None:
    result = run(Job(cell=cell, scale="smoke", seed=0), tmp_path / "results", tmp_path / "work")
    found = (
        result.curves["losses"][-1],
        result.gradients["norms"]["total"]["p99"],
        result.number("imputation", "point_RMSE"),
        result.number("imputation", "CRPS", method="free_probabilistic"),
        result.epsilon.get("record"),
    )
    for number, expected in zip(found, KNOWN[NUMBERS_VERSION][cell], strict=True):
        assert number == (None if expected is None else pytest.approx(expected, rel=2e-3))


@pytest.mark.usefixtures("data_folder")
def test_every_committed_result_was_made_by_todays_configuration() -> None:
    """The tables ask for no data and so cannot tell a result of an earlier recipe; here the data is there."""
    stale, seen = [], 0
    for path in sorted(RESULTS.glob("*/**/seed=*.json")):
        if path.relative_to(RESULTS).parts[1] == "synthetic":  # they have a version of their own
            continue
        found = load(path)
        assert found is not None, path
        folder, seen = RESULTS / found.scale, seen + 1
        job = Job(cell=found.cell, scale=found.scale, seed=found.seed)
        if job.place(folder, ".json") != path or not is_done(job, folder):
            stale.append(str(path.relative_to(RESULTS)))
    assert not stale, "delete them and make them again with `tamedit reproduce`"
    assert seen > 100
