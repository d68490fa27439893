"""The version of the numbers: results made by other code must not be taken for today's.

When this fails and the change was meant, raise `NUMBERS_VERSION` and put the new numbers here; every result is then due again. A
change of a configuration alone makes the results of that configuration due by itself, and needs new numbers but no new version.
"""

from pathlib import Path

import pytest

from tamedit.experiments.results import NUMBERS_VERSION, Job
from tamedit.experiments.work import run

# version → cell → (last training loss, p99 of ‖g‖, imputation RMSE, imputation CRPS of the free guess, ε of a reading)
KNOWN = {
    1: {
        "simulated/aware/sigma=0.1/medium/tanh": (0.930546, 4.56502, 0.943464, 0.293068, 494.497),
        "simulated/non-dp/seasonal": (0.678898, 5.23852, 0.471299, 0.293068, None),
        "fleet/aware/epsilon=8/unit=week/medium/tanh/seasonal/public": (0.980879, 5.00883, 0.472514, 0.258087, 8.00351),
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
