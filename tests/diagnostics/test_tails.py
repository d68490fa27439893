"""Summaries against closed forms and numpy, without any training."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tamedit.data.simulate import simulate
from tamedit.diagnostics.compare import compare
from tamedit.diagnostics.gradient_record import Record, differences
from tamedit.diagnostics.tails import clipping, hill, reductions, slowdown, step_time, summarise, tail
from tamedit.errors import UserError
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import RunConfig
from tamedit.runs.recipe import make_config
from tamedit.training.recorder import TIME_ROW, gradient_row

PARTS = (("input", "cond"), ("input", "other"), ("output", "cond"), ("output", "other"))


def config(private: bool = True, **changes: Any) -> RunConfig:
    privacy = Privacy(noise_multiplier=0.1, clip=changes.pop("clip", 1.0)) if private else None
    return make_config(simulate(hours=400, seed=0), "simulated", window=24, privacy=privacy, **changes)


def record(name: str, scale: float = 1.0, *, made: RunConfig | None = None, examples: int = 2000) -> Record:
    made = made or config(bounds="off")
    generator = np.random.default_rng(0)
    rows = np.zeros(examples, gradient_row(len(PARTS)))
    rows["parts"] = generator.lognormal(0, 1, (examples, len(PARTS))) * scale
    squares = rows["parts"] ** 2
    rows["cond"], rows["other"] = np.sqrt(squares[:, ::2].sum(1)), np.sqrt(squares[:, 1::2].sum(1))
    rows["total"] = np.hypot(rows["cond"], rows["other"])
    rows["step"] = np.arange(examples) // 10 + 1
    clip = made.privacy.clip if made.privacy else None
    rows["factor"] = np.minimum(1, clip / rows["total"]) if clip else 1
    times = np.array([(step + 1, scale * (1 + step % 5)) for step in range(100)], TIME_ROW)
    return Record(Path(name), name, made, clip, PARTS, rows, times, [])


@pytest.mark.parametrize("index", [1.5, 3.0])
def test_hill_finds_the_index_of_a_pareto_tail(index: float) -> None:
    sample = np.random.default_rng(1).pareto(index, 100_000) + 1
    assert hill(sample) == pytest.approx(index, rel=4 / np.sqrt(5000))


def test_hill_by_hand_and_where_it_does_not_exist() -> None:
    values = np.concatenate([np.full(190, 0.5), np.array([np.e] * 10)])
    assert hill(values) == pytest.approx(1 / (1 + np.log(2)))  # ten values, each log(e / 0.5) beyond the threshold
    assert hill(np.random.default_rng(0).permutation(values)) == hill(values)
    assert hill(np.arange(1, 100)) is None
    assert hill(np.ones(1000)) is None
    assert hill(np.zeros(1000)) is None


def test_tail_of_uniform_numbers() -> None:
    found = tail(np.linspace(0, 100, 100_001))
    assert (found.p50, found.p95, found.p99, found.largest) == pytest.approx((50, 95, 99, 100))


def test_clipping_of_an_exponential_sample() -> None:
    """‖g‖ ~ Exp(1): p_clip = e^−C, and P(η ≤ x) = e^{−C/x}, so the quantile of η at q is C / log(1/q) (or 1)."""
    norms = np.random.default_rng(2).exponential(1, 200_000)
    found = clipping(norms, np.minimum(1, 0.5 / norms), 0.5)
    assert found.p_clip == pytest.approx(np.exp(-0.5), abs=0.005)
    assert found.p10 == pytest.approx(0.5 / np.log(10), abs=0.005)
    assert found.p50 == pytest.approx(0.5 / np.log(2), abs=0.005)
    assert found.p90 == found.p99 == 1
    assert found.mean == pytest.approx(np.minimum(1, 0.5 / norms).mean())


def test_step_times() -> None:
    found = step_time(np.arange(1.0, 102.0))
    assert (found.mean, found.p50, found.p90) == pytest.approx((51, 51, 91))


def test_a_summary_is_numpys() -> None:
    made = record("a")
    summary = summarise(made)
    assert (summary.steps, summary.examples, summary.not_finite) == (200, 2000, 0)
    assert summary.norms is not None
    for which in ("total", "cond", "other"):
        assert summary.norms[which].p95 == pytest.approx(np.quantile(made.rows[which], 0.95), rel=1e-6)
        assert summary.norms[which].p99 == pytest.approx(np.quantile(made.rows[which], 0.99), rel=1e-6)
    assert summary.clipping is not None
    assert summary.clipping.p_clip == pytest.approx((made.rows["total"] > 1).mean())
    assert summary.parts["output"]["cond"] == pytest.approx(np.quantile(made.rows["parts"][:, 2], 0.99), rel=1e-6)


def test_gradients_that_are_not_finite_are_left_out_of_norms_and_count_as_zero_in_factors() -> None:
    made = record("a")
    made.rows["total"][:7], made.rows["factor"][:7] = np.inf, 0
    summary = summarise(made)
    assert summary.not_finite == 7
    assert summary.norms is not None
    assert summary.norms["total"].largest < np.inf
    assert summary.clipping is not None
    assert summary.clipping.mean == pytest.approx(made.rows["factor"].mean(), rel=1e-5)


def test_an_empty_record_has_no_numbers() -> None:
    summary = summarise(record("a", examples=0))
    assert summary.norms is None
    assert summary.clipping is None
    assert summary.parts == {}
    assert summary.time is not None


def test_ratios_are_the_runs_over_the_baselines() -> None:
    vanilla, aware = summarise(record("vanilla")), summarise(record("aware", 0.8))
    rho = reductions(aware, vanilla)
    assert rho is not None
    assert [rho[name][share] for name in ("emp", "cond") for share in ("p95", "p99")] == pytest.approx([0.8] * 4)
    assert slowdown(aware, vanilla) == pytest.approx({"mean": 0.8, "p50": 0.8})
    assert reductions(aware, summarise(record("none", examples=0))) is None


def test_arms_baseline_and_notes() -> None:
    plain, aware = config(private=False, bounds="off"), config()
    records = [
        record("plain", made=plain),
        record("aware", 0.9, made=aware),
        record("vanilla", made=config(bounds="off")),
    ]
    found = compare(records)
    assert [one.arm for one in found.records] == ["Non-DP", "DP-aware", "DP-vanilla"]
    assert (found.baseline, found.plain, found.notes()) == (2, 0, [])
    assert found.rho(0) is None
    assert found.rho(2) is None
    assert found.rho(1) == reductions(found.summaries[1], found.summaries[2])
    chosen = compare(records, Path("aware"))
    assert chosen.baseline == 1
    with pytest.raises(UserError, match="among the runs"):
        compare(records, Path("elsewhere"))


def test_unlike_runs_are_named() -> None:
    one, other = config(bounds="off"), config(seed=3, clip=2.0)
    assert differences(one, other) == ["privacy.clip", "seed"]
    (note,) = compare([record("a", made=one), record("b", made=other)]).notes()
    assert "privacy.clip, seed" in note
