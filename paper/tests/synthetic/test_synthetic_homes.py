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
from tamedit.runs.proposal import propose
from tamedit.runs.simulated_pool import simulated_population
from tamedit_paper.synthetic.cells import EPSILONS, SyntheticCell, cells
from tamedit_paper.synthetic.measured import (
    EVOLUTION,
    MARGINALS,
    MODEL,
    OTHERS,
    SIMULATOR,
    VERSION,
    Effort,
    load,
    marginals,
    measure,
    place_of,
)
from tamedit_paper.synthetic.page import FREE, NOTES, PAGE, Results, closer, page, targets, write_synthetic

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


ALARMS = {
    "closer": 0.81,
    "closer_expected": [0.3, 0.7],
    "auc": 0.5,
    "auc_expected": [0.4, 0.6],
    "epsilon_lower": 0.25,
    "alarm": True,
}


def store(folder: Path, cell: SyntheticCell, seed: int, columns: dict[str, dict[str, Any]]) -> None:
    place = place_of(cell, seed, folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    found = {"version": VERSION, "scores": columns, "homes": {"real": 7}, "alarms": {} if cell.free else ALARMS}
    place.write_text(json.dumps(found))


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


def test_the_page_says_who_is_closer_the_ceiling_and_the_alarms(tmp_path: Path) -> None:
    """The model is perfect but in two measures, evolution is as far off as the simulator in all but three."""
    away = [one.name for one in MEASURES]
    for seed in range(3):
        for cell in cells():
            columns = (
                {SIMULATOR: scores(**dict.fromkeys(away, 3.0)), OTHERS: scores(duration_p1=1.125, discriminative=0.625)}
                if cell.free
                else {
                    MODEL: scores(**dict.fromkeys(away[:2], 4.0)),
                    EVOLUTION: scores(**dict.fromkeys(away[3:], 3.0)),
                    MARGINALS: scores(**dict.fromkeys(away, 4.0)),
                }
            )
            store(tmp_path, cell, seed, {"real": scores()} | columns)
    results = Results(tmp_path)
    eight = SyntheticCell(unit="series", epsilon=8.0)
    assert closer(results, eight, MODEL, SIMULATOR) == 22
    assert closer(results, eight, EVOLUTION, SIMULATOR) == 3
    assert closer(results, eight, EVOLUTION, MODEL) == 2
    text = page(results, "")
    assert "| 1 per whole home | 22 | 3 | 0 | 21 | 2 |" in text
    assert "1.00 (+0%) against 1.00; ceiling 1.12 (+12%)" in text
    assert "ceiling 0.625" in text
    assert "compared over the same dates with 7 of the 54" in text
    assert "| weeks closer to a training home | 0.810 (0.300 to 0.700) |" in text
    assert "| lower bound on ε | 0.250 |" in text
    assert "| seeds with an alarm | 3 of 3 |" in text


def test_plan_proposes_what_the_stored_results_say() -> None:
    """The generator that is closer than the simulator in the most measures, and the simulator where none is in most."""
    results = Results(Path(__file__).parents[2] / "results" / "laptop")
    for unit, examples in (("week", 5000), ("series", 182)):  # as the runs counted them
        for epsilon in EPSILONS:
            cell = SyntheticCell(unit=unit, epsilon=epsilon)
            counts = {
                proposed: closer(results, cell, name, SIMULATOR)
                for proposed, name in (("population", MODEL), ("evolution", EVOLUTION))
            }
            assert None not in counts.values()
            most = max(counts, key=lambda name: counts[name] or 0)
            wanted = most if (counts[most] or 0) > len(MEASURES) / 2 else "simulator"
            assert propose(examples, epsilon, unit=unit).generator == wanted, cell.name
    assert not results.alarms(FREE)


def test_the_stored_page_is_current(tmp_path: Path) -> None:
    paper = Path(__file__).parents[2]
    (tmp_path / NOTES).write_text((paper / "docs" / NOTES).read_text(encoding="utf-8"), encoding="utf-8")
    (made,) = write_synthetic(paper / "results" / "laptop", tmp_path)
    assert made.read_text(encoding="utf-8") == (paper / "docs" / PAGE).read_text(encoding="utf-8")
