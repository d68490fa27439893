"""Tasks: what they hide, what they count, and that no window's masks depend on another window."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import tamedit as tame
from tamedit.data.simulate import simulate
from tamedit.data.split import Split, split_by_time
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.evaluation.evaluate import evaluate
from tamedit.evaluation.task_table import NAMES, TASKS, Layout, chosen_tasks
from tamedit.evaluation.trial import Trial
from tamedit.streams import example_keys
from tamedit.tasks.model import Model

FAST = SamplerConfig(steps=2)
WEEK = Layout(168, 24, 24)


def keys(count: int = 500, seed: int = 0) -> np.ndarray:
    return example_keys(seed, "test", 0, np.arange(count, dtype=np.int64))


@pytest.fixture(scope="module")
def split() -> Split:
    return split_by_time(simulate(hours=2800, seed=2))


@pytest.fixture(scope="module")
def model(split: Split) -> Model:
    return tame.fit(split.train, scale="smoke", steps=2, window=96)


@pytest.mark.parametrize("layout", [WEEK, Layout(100, 24, 24), Layout(40, 7, 7), Layout(12, 1, 1), Layout(288, 96, 96)])
@pytest.mark.parametrize("name", NAMES)
def test_every_task_hides_what_it_scores_and_leaves_something_to_see(name: str, layout: Layout) -> None:
    question = TASKS[name].ask(keys(), layout)
    assert question.observed.shape == question.scored.shape == (500, layout.length)
    assert not (question.observed & question.scored).any()
    assert question.observed.any(dim=1).all()
    assert question.scored.any(dim=1).all()
    assert torch.equal(question.missing, ~question.observed & ~question.scored)
    assert question.missing.any() == (
        name.startswith("cold_start") and layout.length > TASKS[name].least_seasons * layout.period
    )
    if TASKS[name].paths:
        edges = torch.diff(question.scored.int(), dim=1, prepend=torch.zeros(500, 1, dtype=torch.int)) == 1
        assert (edges.sum(dim=1) == 1).all()  # one stretch


@pytest.mark.parametrize("name", NAMES)
def test_masks_are_a_function_of_the_windows_own_stream(name: str) -> None:
    whole, ask = TASKS[name].ask(keys(), WEEK), TASKS[name].ask
    chosen = np.array([17, 3, 400])
    few = ask(keys()[chosen], WEEK)
    assert torch.equal(few.observed, whole.observed[chosen])
    assert torch.equal(few.scored, whole.scored[chosen])


@pytest.mark.parametrize(("name", "known"), [("cold_start_24", 24), ("cold_start_48", 48)])
def test_a_cold_start_knows_the_seasons_before_the_last_and_counts_the_last(name: str, known: int) -> None:
    question = TASKS[name].ask(keys(2), WEEK)
    assert np.flatnonzero(question.observed[1]).tolist() == list(range(144 - known, 144))
    assert np.flatnonzero(question.scored[1]).tolist() == list(range(144, 168))


def test_a_long_gap_has_2_to_5_seasons_anywhere() -> None:
    hidden = ~TASKS["long_gap"].ask(keys(4000), WEEK).observed.numpy()
    days, counts = np.unique(hidden.sum(axis=1), return_counts=True)
    assert days.tolist() == [48, 72, 96, 120]
    assert counts.min() > 900
    first = hidden.argmax(axis=1)
    for length in days:
        own = first[hidden.sum(axis=1) == length]
        assert own.min() <= 2
        assert own.max() >= 168 - length - 2
        assert own.mean() == pytest.approx((168 - length) / 2, rel=0.08)
    short = ~TASKS["long_gap"].ask(keys(), Layout(80, 24, 24)).observed.numpy()
    assert set(short.sum(axis=1)) == {48}  # one season of 80 steps stays, so no third one is hidden


def test_what_a_window_is_too_short_for_is_left_out_with_the_reason(model: Model, split: Split) -> None:
    kept, left_out = chosen_tasks(NAMES, Layout(48, 24, 24))
    assert [task.name for task in kept] == ["imputation", "forecast", "cold_start_24"]
    assert left_out["long_gap"] == "it needs a window of 3 seasons (72 steps), and the model's window has 48 steps"
    with pytest.raises(UserError, match=r"too short for these tasks .cold_start_48: it needs a window of 3 seasons"):
        chosen_tasks(["cold_start_48"], Layout(48, 24, 24))
    result = evaluate(model, split, samples=4, windows=4, sampler=FAST, resamples=0)
    assert result.tasks == NAMES
    assert result.left_out == {}
    assert result.to_dict()["task_words"]["cold_start_48"] == "only 48 steps known, the next 24 forecast"
    assert result.to_dict()["task_words"]["long_gap"] == "48 to 72 steps in a row hidden"


@pytest.mark.parametrize("names", [["forcast"], ["imputation", "gap"], []])
def test_unknown_names_are_refused(model: Model, split: Split, names: list[str]) -> None:
    with pytest.raises(
        UserError, match="is not a task; name one or more of imputation, forecast, cold_start_24"
    ) as refused:
        evaluate(model, split, tasks=names)
    assert str(refused.value).count(". ") == 0


def test_tasks_are_asked_once_in_the_tables_order_and_do_not_change_each_other(model: Model, split: Split) -> None:
    few = {"samples": 4, "windows": 5, "sampler": FAST, "resamples": 0}
    both = evaluate(model, split, tasks=("long_gap", "imputation", "long_gap"), **few)
    assert both.tasks == ("imputation", "long_gap")
    assert evaluate(model, split, tasks=["long_gap"], **few).rows == both.rows[len(both.rows) // 2 :]


@pytest.mark.parametrize("name", ["cold_start_24", "cold_start_48"])
def test_nothing_older_than_the_known_seasons_changes_what_any_method_draws(
    model: Model, split: Split, name: str
) -> None:
    known = int(name[-2:])
    drawn, scores = [], []
    for change in (0.0, 1000.0, np.nan):
        values = split.test.values.copy()
        older = len(values) - 24 - known
        values[:older] += np.float32(change)
        part = replace(split.test, values=values).rows(len(values) - 96, len(values))
        seen: dict[str, np.ndarray] = {}

        def watch(task: str, trial: Trial, question: object, method: str, own: np.ndarray, seen: dict = seen) -> None:
            seen[method] = own[:, :, -24 - known :]

        result = evaluate(
            model, replace(split, test=part), tasks=[name], samples=4, sampler=FAST, resamples=0, watch=watch
        )
        drawn.append(seen)
        scores.append({row.method: row.z.values for row in result.rows})
    assert len(drawn[0]) == 8
    for other, found in zip(drawn[1:], scores[1:], strict=True):
        for method, own in drawn[0].items():
            np.testing.assert_array_equal(other[method], own)
            for metric, value in scores[0][method].items():
                if metric != "temp_spec_dist":  # of whole windows: older steps are the truth's own, for all methods
                    assert found[method][metric] == value, (method, metric)


def test_progress_counts_every_window_of_every_task(model: Model, split: Split) -> None:
    told: list[tuple[int, int]] = []
    result = evaluate(
        model, split, samples=40, windows=25, sampler=FAST, resamples=0, progress=lambda *now: told.append(now)
    )
    total = 5 * result.windows
    assert told[-1] == (total, total)
    done = [one for one, _ in told]
    assert done == sorted(set(done))
    assert len(told) > 5  # within tasks, too
    assert {end for _, end in told} == {total}


def test_drawing_in_pieces_draws_the_same(model: Model, split: Split, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"samples": 8, "windows": 20, "sampler": FAST, "resamples": 0, "tasks": ["forecast"]}
    first = evaluate(model, split, **few)
    monkeypatch.setattr("tamedit.evaluation.trial.WINDOWS_AT_ONCE", 10_000)
    for one, other in zip(evaluate(model, split, **few).rows, first.rows, strict=True):
        assert (one.task, one.method) == (other.task, other.method)
        for name, value in one.z.values.items():  # a product of other shape may round otherwise
            same = other.z.values[name]
            assert value == (same if same is None else pytest.approx(same, rel=1e-6, abs=1e-6)), name
