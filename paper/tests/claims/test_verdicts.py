"""Every branch from numbers to a verdict."""

from math import inf

import pytest

from made_results import result, runs
from tamedit_paper.claims.gradients import gradient_claims
from tamedit_paper.claims.utility import FORECAST, free_claims, utility_claims
from tamedit_paper.claims.verdicts import Check, Claim, close, in_order, less
from tamedit_paper.grid.measures import Runs
from tamedit_paper.tables.labels import cells_of
from tamedit_paper.tables.utility import SIGMAS, aware, vanilla

YES = Check("yes", {0: 1.0, 1: 1.1, 2: 1.2})
NO = Check("no", {0: -1.0, 1: -1.1, 2: -1.2})
OPEN = Check("open", {0: -1.0, 1: 1.0, 2: 0.1})
FEW = Check("few", {0: 1.0, 1: 1.1})
ONE = Check("one", {0: -1.0})
NONE = Check("none", {})


def claim(*checks: Check, beyond: bool = False) -> Claim:
    return Claim("said", "where", "rule", checks, beyond)


@pytest.mark.parametrize(
    ("check", "outcome"),
    [(YES, "holds"), (NO, "opposite"), (OPEN, "open"), (FEW, "few seeds"), (ONE, "few seeds"), (NONE, "missing")],
)
def test_outcomes_of_a_comparison(check: Check, outcome: str) -> None:
    assert check.outcome == outcome
    assert outcome in check.sentence()


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([1.0, 1.01, 0.99], "holds"),
        ([1.2, 1.21, 1.19], "opposite"),
        ([0.8, 0.81, 0.79], "opposite"),
        ([1.04, 1.06, 1.05], "open"),
        ([1.0, 1.0, 1.0], "holds"),
    ],
)
def test_a_range_with_two_ends(values: list[float], outcome: str) -> None:
    assert Check("close", dict(enumerate(values)), 0.95, 1.05).outcome == outcome


def test_no_difference_at_all_is_open() -> None:
    assert Check("equal", {0: 0.0, 1: 0.0, 2: 0.0}, 0.0, inf).outcome == "open"


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ((YES, YES), "reproduced"),
        ((NO, NO), "not reproduced"),
        ((OPEN, OPEN), "not reproduced"),
        ((OPEN, NO), "not reproduced"),
        ((YES, OPEN), "partly"),
        ((YES, NO), "partly"),
        ((NONE, NONE), "not yet run"),
        ((YES, NONE), "not yet run (1 of 2 comparisons are there)"),
        ((YES, FEW), "not yet run with enough seeds (2)"),
        ((ONE, FEW), "not yet run with enough seeds (1)"),
    ],
)
def test_verdicts(checks: tuple[Check, ...], verdict: str) -> None:
    assert claim(*checks).verdict == verdict


def test_our_own_questions_are_not_called_reproduced() -> None:
    assert [claim(*checks, beyond=True).verdict for checks in ((YES,), (NO,), (YES, NO))] == [
        "holds",
        "does not hold",
        "holds in part",
    ]


def test_the_direction_is_given_before_there_are_enough_seeds() -> None:
    assert ONE.sentence() == "one: -1.000, 1 seed: few seeds, not as claimed so far"
    assert FEW.sentence().endswith("2 seeds: few seeds, as claimed so far")
    assert claim(ONE, FEW).count == "2 with few seeds (1 as claimed so far)"


def test_sentences_have_mean_and_interval() -> None:
    assert YES.sentence() == "yes: 1.100 [0.852, 1.348], 3 seeds: holds"


def test_comparisons_take_the_claimed_sign() -> None:
    cells = ("household/non-dp", "household/non-dp/medium/tanh")
    made = runs({cells[0]: [2.0, 2.1, 2.2], cells[1]: [1.0, 1.1, 1.2]})
    falling = in_order("RMSE", made, [("first", cells[0]), ("second", cells[1])], FORECAST)
    rising = in_order("RMSE", made, [("second", cells[1]), ("first", cells[0])], FORECAST)
    assert [check.outcome for check in (*falling, *rising)] == ["holds", "opposite"]
    assert close("ratio", made, cells[1], cells[0], FORECAST, 0.05).values == pytest.approx(
        {0: 0.5, 1: 1.1 / 2.1, 2: 1.2 / 2.2}
    )


@pytest.mark.parametrize(("effect", "verdict"), [(0.2, "reproduced"), (0.01, "reproduced in direction only")])
def test_an_effect_far_below_the_papers_is_said_to_be_so(effect: float, verdict: str) -> None:
    check = Check("yes", YES.values, shares=dict.fromkeys(range(3), effect))
    assert Claim("said", "where", "rule", (check, check), printed=(0.3, 0.5)).verdict == verdict
    assert Claim("said", "where", "rule", (check,)).verdict == "reproduced"


def test_the_effect_is_a_share_of_the_worse_number() -> None:
    made = runs({"household/non-dp": [2.0, 4.0], "household/non-dp/tight/tanh": [1.0, 3.0]})
    check = less("said", made, "household/non-dp/tight/tanh", "household/non-dp", FORECAST)
    assert check.values == {0: 1.0, 1: 1.0}
    assert check.effect == pytest.approx((0.5 + 0.25) / 2)


def by_title(made: Runs) -> dict[str, Claim]:
    every = [*utility_claims(made, "household"), *gradient_claims(made, "household"), *free_claims(made, "household")]
    found = {one.title: one for one in every}
    assert len(found) == len(every)
    return found


def starting(made: Runs, start: str) -> Claim:
    return next(one for title, one in by_title(made).items() if title.startswith(start))


def test_without_results_nothing_has_been_run() -> None:
    assert {one.verdict for one in by_title(Runs({})).values()} == {"not yet run"}


def test_every_claim_can_be_decided_from_the_cells_of_all() -> None:
    made = Runs({cell: [result(cell, seed) for seed in range(3)] for cell in cells_of("all")})
    verdicts = {title: one.verdict for title, one in by_title(made).items()}
    assert not [title for title, verdict in verdicts.items() if verdict.startswith("not yet run")]
    # All numbers are equal: whatever says "comparable" is seen, whatever says "better" is not.
    equal = {title for title, verdict in verdicts.items() if verdict == "reproduced"}
    assert equal == {
        "tanh and soft_clamp_band are comparable",
        "without DP, Medium bounds cost nothing",
        "both arms clip equally often",
        "the training loss of DP-aware tracks that of DP-vanilla",
        "bounding costs no time beyond DP-SGD's",
    }
    assert {verdict for title, verdict in verdicts.items() if title not in equal} == {"not reproduced", "does not hold"}


@pytest.mark.parametrize(
    ("better", "verdict"), [(SIGMAS, "reproduced"), ((0.03, 0.2), "partly"), ((), "not reproduced")]
)
def test_the_main_claim(better: tuple[float, ...], verdict: str) -> None:
    made = {}
    for sigma in SIGMAS:
        for cell, value in (
            (vanilla("household", sigma), 2.0),
            (aware("household", sigma), 1.0 if sigma in better else 3.0),
        ):
            numbers = {"imputation point_RMSE": value, "imputation point_MAE": value}
            made[cell] = [result(cell, seed, model=numbers) for seed in range(3)]
    assert starting(Runs(made), "DP-aware has better imputation").verdict == verdict


def test_gains_at_low_noise() -> None:
    gains = {0.03: 0.5, 0.05: 0.4, 0.1: 0.2, 0.2: 0.1}
    made = {}
    for sigma, gain in gains.items():
        for cell, value in ((vanilla("household", sigma), 2.0), (aware("household", sigma), 2.0 * (1 - gain))):
            numbers = {"imputation point_RMSE": value, "forecast point_RMSE": value}
            made[cell] = [result(cell, seed, model=numbers) for seed in range(3)]
    found = starting(Runs(made), "the gains are largest")
    assert found.verdict == "reproduced"
    assert found.checks[0].values == pytest.approx(dict.fromkeys(range(3), 0.3))


def test_tails() -> None:
    made = {}
    for sigma in SIGMAS:
        for cell, cond, other in ((vanilla("household", sigma), 2.0, 4.0), (aware("household", sigma), 1.0, 3.6)):
            norms = {"cond": cond, "other": other, "total": other + 0.1}
            made[cell] = [result(cell, seed, norms=norms) for seed in range(3)]
    claims = by_title(Runs(made))
    assert claims["the rest of the gradient is only mildly affected"].verdict == "reproduced"
    assert claims["the rest of the gradient is only mildly affected"].checks[0].values == pytest.approx(
        dict.fromkeys(range(3), 0.4)
    )
    assert starting(Runs(made), "DP-aware has lighter tails of the cond").verdict == "reproduced"


@pytest.mark.parametrize(
    ("rmse", "crps", "verdict"), [(0.9, 0.9, "holds"), (0.9, 1.1, "holds in part"), (1.1, 1.1, "does not hold")]
)
def test_against_what_is_free(rmse: float, crps: float, verdict: str) -> None:
    cell = "etth1/aware/sigma=0.1/medium/tanh"
    numbers = {
        f"{task} {name}": value
        for task in ("imputation", "forecast")
        for name, value in (("point_RMSE", rmse), ("CRPS", crps))
    }
    made = Runs({cell: [result(cell, seed, model=numbers) for seed in range(3)]})
    assert starting(made, "DP-aware, etth1").verdict == verdict
