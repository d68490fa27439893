"""The fidelity of generated homes: its cells, one small seed of a cell, and the verdicts of its page."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.evaluation.fidelity.measures import MEASURES
from tamedit.privacy.population import BINS, RATIOS
from tamedit.runs.simulated_pool import simulated_population
from tamedit_paper.synthetic.cells import SyntheticCell, cells
from tamedit_paper.synthetic.measured import (
    EVOLUTION,
    MARGINALS,
    MODEL,
    SIMULATOR,
    VERSION,
    Effort,
    load,
    marginals,
    measure,
    place_of,
)
from tamedit_paper.synthetic.page import Results, page, targets

SMALL = Effort(homes=4, days=42, resamples=3, simulated=(80, 6))


def test_names_come_back() -> None:
    for cell in cells("elsewhere"):
        assert SyntheticCell.parse(cell.name) == cell
    with pytest.raises(UserError, match="not a cell"):
        SyntheticCell.parse("ideal/unit=day/epsilon=8")


def test_a_small_seed_is_measured_once(tmp_path: Path) -> None:
    """Both generators of the product and the marginals, and the same numbers from the file afterwards."""
    cell = SyntheticCell(fleet="elsewhere", unit="week", epsilon=8.0)
    place = measure(cell, 0, tmp_path / "results", tmp_path / "work", SMALL)
    found = load(place)
    assert found is not None
    assert set(found["scores"]) == {"real", MODEL, EVOLUTION, MARGINALS}
    assert found["homes"][MODEL] == SMALL.homes
    order = {name: found["scores"][name]["autocorrelation_step"]["value"] for name in (MODEL, MARGINALS)}
    assert order[MODEL] > 0.2 > abs(order[MARGINALS]), "hours that are drawn alone have no order in time"
    assert not list((tmp_path / "work").rglob("*.safetensors")), "large files are deleted"
    before = place.stat().st_mtime_ns
    assert measure(cell, 0, tmp_path / "results", tmp_path / "work", SMALL) == place
    assert place.stat().st_mtime_ns == before
    place.write_text(json.dumps(found | {"version": VERSION - 1}))
    assert load(place) is None, "a result of another version is due again"


def test_marginals_have_the_histogram_of_the_population() -> None:
    population = simulated_population((0.4,), 60, 168, 24, "public")
    like = simulate(40, 24 * 28, seed=1, spike_rate=0, negative_rate=0, outage_rate=0)
    drawn = marginals(like, population, seed=2).values.reshape(40, -1)
    assert drawn.min() >= 0.0
    edges = np.linspace(*RATIOS, BINS + 1)
    width = edges[1] - edges[0]
    shares = np.array(population.histogram[0])
    within = np.log(drawn / np.median(drawn, axis=1, keepdims=True))
    middle = edges[np.searchsorted(np.cumsum(shares), 0.5)] + width / 2
    tail = float(np.mean(within > 1.5))
    wanted = float(shares[edges[:-1] > middle + 1.5 - width / 2].sum())
    assert tail == pytest.approx(wanted, abs=0.02)


def scores(**numbers: float) -> dict[str, Any]:
    return {one.name: {"value": numbers.get(one.name, 1.0)} for one in MEASURES}


def store(folder: Path, cell: SyntheticCell, seed: int, columns: dict[str, dict[str, Any]]) -> None:
    place = place_of(cell, seed, folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"version": VERSION, "scores": columns}))


def test_verdicts_follow_the_numbers(tmp_path: Path) -> None:
    """Made results: everything perfect but one autocorrelation and the classifier; the simulator is far off."""
    off = scores(autocorrelation_day=1.06, discriminative=0.8, zeros=1.005)
    for seed in range(3):
        for cell in cells():
            columns = (
                {SIMULATOR: scores(**{one.name: 3.0 for one in MEASURES})}
                if cell.free
                else {MODEL: off, EVOLUTION: scores(), MARGINALS: scores()}
            )
            store(tmp_path, cell, seed, {"real": scores()} | columns)
    found = {one.said: one.verdict for one in targets(Results(tmp_path))}
    missed = [said for said, verdict in found.items() if verdict != "met"]
    assert len(found) == 12
    assert len(missed) == 2
    assert any("1 day" in one for one in missed)
    assert any("discriminative" in one for one in missed)
    assert "24 of 24 runs" in page(Results(tmp_path), "")


def test_two_seeds_are_not_enough(tmp_path: Path) -> None:
    for seed in range(2):
        for cell in cells():
            store(tmp_path, cell, seed, {"real": scores(), MODEL: scores(), EVOLUTION: scores(), SIMULATOR: scores()})
    assert {one.verdict for one in targets(Results(tmp_path))} == {"not run"}
