"""Statements say what holds, what does not, and nothing else."""

import json

import pytest

from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.entries import Record, Segment
from tamedit.privacy.grades import grade
from tamedit.privacy.plain_words import in_words
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.statement import Statement, shown, side_by_side
from tamedit.privacy.units import Contribution


def record(steps: int = 1000, facts: dict | None = None, **change) -> Record:
    values = {
        "unit": "week",
        "examples": 500,
        "sampling_rate": 0.01,
        "clip": 1.0,
        "noise_multiplier": 1.0,
        "steps": 1000,
        "delta": 1e-5,
    } | change
    plan = PrivacyPlan(**values)
    units = {
        "window": Contribution(1, "removal", "one block is one example"),
        "week": Contribution(1, "removal", "each week holds its 1 example whole"),
        "day": Contribution(4, "removal", "overlap"),
    }
    charges = [(Mechanism(plan.sampling_rate, plan.noise_multiplier, steps), "training")]
    return Record([Segment(plan, units, {"series": "The data hold one meter."}, "", facts or {}, 1, charges=charges)])


def test_words_and_data() -> None:
    statement = Statement.of(record(facts={"not_covered": ["scaling"]}), not_covered=["validation scores", "scaling"])
    words = str(statement)
    for part in (
        "ε = 1.83, δ = 1e-05",
        "PLD",
        "RDP: 2.11",
        "1,000 steps",
        "one week of one meter",
        "adding or removing",
    ):
        assert part in words
    assert "Not covered by the guarantee: scaling; validation scores." in words
    assert "Protection: moderate (strong up to ε = 1," in words
    assert "No ledger of the data set was kept" in words
    assert "Noise: NumPy's SFC64" in words
    data = json.loads(json.dumps(statement.to_dict(), allow_nan=False))
    assert data["epsilon"]["pld"] == pytest.approx(1.829, abs=0.005)
    assert data["epsilon"]["rdp"] == pytest.approx(2.101, abs=0.01)
    assert (data["unit"], data["delta"], data["accountant"]) == ("week", 1e-5, "PLD")
    assert data["not_covered"] == ["scaling", "validation scores"]
    assert data["protection"] == "moderate"
    assert "protects" not in data
    assert data["mechanisms"] == [{"sampling_rate": 0.01, "noise_multiplier": 1.0, "count": 1000}]
    assert data["statement"] == words
    assert "All readings of one meter together: no guarantee." in words
    assert data["whole_meter"] is None


def test_a_week_of_a_meter_is_not_the_meter() -> None:
    found = record()
    (segment,) = found.segments
    segment.contributions["series"] = Contribution(17, "removal", "a meter has 17 blocks")
    week, meter = Statement.of(found), Statement.of(found, unit="series")
    assert meter.epsilon is not None
    assert meter.epsilon.value > 20
    assert f"All readings of one meter together: ε = {shown(meter.epsilon.value)}, hardly any protection." in str(week)
    assert week.to_dict()["whole_meter"] == pytest.approx(meter.epsilon.value)
    assert week.protection == "moderate", "the week's own guarantee stands"
    assert "together" not in str(meter)


def test_the_papers_setting_is_hardly_any_protection() -> None:
    statement = Statement.of(record(20_000, sampling_rate=96 / 668, noise_multiplier=0.2, unit="window"))
    assert "Treat the model as if it had been trained without privacy" in str(statement)
    assert "no reading, day or person is covered" in str(statement)
    assert statement.protection == "hardly any"


@pytest.mark.parametrize(
    ("value", "word"),
    [
        *((0.0, "strong"), (1.0, "strong"), (1.01, "moderate"), (3.0, "moderate"), (3.01, "weak"), (10.0, "weak")),
        *((10.01, "hardly any"), (None, "hardly any"), (float("inf"), "hardly any")),
    ],
)
def test_words_are_graded(value: float | None, word: str) -> None:
    assert grade(value) == word


def test_the_statement_and_its_paragraph_have_the_same_word() -> None:
    for unit, steps, word in (("week", 100, "strong"), ("day", 1000, "weak"), ("day", 8000, "hardly any")):
        said = Statement.of(record(steps), unit=unit).to_dict()
        assert said["protection"] == word
        assert (f"this protection is {word}." in in_words(said)) is (word != "hardly any")
    assert "hardly anything" in in_words(said)
    assert "δ this large" in in_words(Statement.of(record(delta=0.01)).to_dict())


def test_a_test_run_carries_no_guarantee() -> None:
    statement = Statement.of(record(test_only=True, seed=1))
    assert str(statement).startswith("Test run")
    assert "no guarantee" in str(statement)
    assert statement.protection == "none"
    assert "a known seed" in statement.noise
    assert statement.to_dict()["test_only"] is True


def test_without_privacy() -> None:
    statement = Statement.without_privacy()
    assert "Trained without privacy" in str(statement)
    assert statement.to_dict() == {"private": False, "statement": str(statement)}


def test_units_side_by_side() -> None:
    table = side_by_side(record())
    assert table["week"]["epsilon"]["pld"] == pytest.approx(1.829, abs=0.005)
    assert table["day"]["epsilon"]["pld"] == pytest.approx(8.90, abs=0.02)
    assert table["day"]["epsilon"]["rdp"] is None
    assert table["series"] == {"unit": "series", "epsilon": None, "reason": "The data hold one meter."}
    assert "does not say" in table["record"]["reason"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.8289, "1.83"),
        (1.8311, "1.84"),
        (54_494.57, "54,500"),
        (1.18e7, "1.18e+07"),
        (0.0, "0"),
        (None, "∞"),
        (8.0, "8"),
    ],
)
def test_shown_rounds_up(value: float | None, words: str) -> None:
    assert shown(value) == words


@pytest.mark.parametrize(
    ("delta", "word", "warns"), [(1e-5, "moderate", False), (5e-4, "moderate", True), (0.01, "hardly any", True)]
)
def test_a_large_delta_is_no_protection(delta: float, word: str, warns: bool) -> None:
    """500 examples: δ = 0.01 would allow five of them to be published as they are."""
    statement = Statement.of(record(delta=delta))
    assert statement.protection == word
    assert ("far below 1 / N" in str(statement)) is warns


def test_every_segment_counts() -> None:
    """A test run that is continued in earnest, on fewer examples: nothing of the first part is forgotten."""
    first = record(10, {"not_covered": ["the scale"]}, test_only=True, seed=0, examples=5000).segments
    second = record(10, {"not_covered": ["losses"]}, examples=50).segments
    found = Statement.of(Record([*first, *second]))
    assert found.test_only
    assert found.protection == "none"
    assert found.not_covered == ("the scale", "losses")
    assert found.examples == 5000
    assert found.steps == 20
