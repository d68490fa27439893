"""Two judges of synthetic homes, both linear and solved in closed form.

**Discriminative score.** A ridge classifier (as ROCKET's) sees home-weeks: random-convolution features, the daily profile and
a few moments, in logs. It learns on some homes, real and synthetic, and is tested on others (5 folds *of homes*: weeks of one
home resemble each other). Score: mean of the shares of real and of synthetic home-weeks that are told right, averaged over homes.
0.5: it cannot tell them apart. 1: it always can.

**Predictive score.** A ridge regression forecasts the hours of a day from the mean day of the week before, the same weekday, the
day before (all divided by the mean of that week) and the weekday. It learns on synthetic homes and is tested on real ones; beside
it, one that learned on other real homes (5 folds of homes). Score: root mean squared error of a home over its level,
averaged over homes.
"""

import numpy as np
from jaxtyping import Bool, Float, Int64

from tamedit.evaluation.fidelity.convolutions import embed, in_logs
from tamedit.evaluation.fidelity.homes_grid import Fleet

FOLDS = 5
KERNELS = 200
WEEKS = 12  # per home, for the classifier
DAYS = 40  # per home, for the forecaster
TELL, FORECAST = 0.1, 1.0  # penalties, as shares of the mean square of the features; chosen on simulated homes
SMALL = 1e-9


def ridge(
    features: Float[np.ndarray, "N D"],
    wanted: Float[np.ndarray, "N O"],
    weights: Float[np.ndarray, " N"],
    penalty: float,
) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, " O"], Float[np.ndarray, "D O"]]:
    """Mean of the features, mean of what is wanted, and the coefficients of the penalised weighted least squares."""
    share = weights / weights.sum()
    centre, level = share @ features, share @ wanted
    x, y = features - centre, wanted - level
    gram = (x * share[:, None]).T @ x
    gram[np.diag_indices_from(gram)] += penalty * max(np.trace(gram) / len(gram), SMALL)
    return centre, level, np.linalg.solve(gram, (x * share[:, None]).T @ y)


def folds_of(homes: int, seed: int) -> Int64[np.ndarray, " H"]:
    """The fold of every home: random, and as equal in size as possible."""
    return np.random.default_rng(seed).permutation(homes).astype(np.int64) % min(FOLDS, homes)


def some(home: Int64[np.ndarray, " N"], most: int, seed: int) -> Int64[np.ndarray, " M"]:
    """Rows, at most `most` of every home, chosen at random; in order."""
    order = np.lexsort((np.random.default_rng(seed).random(len(home)), home))
    sorted_home = home[order]
    first = np.searchsorted(sorted_home, sorted_home, side="left")
    return np.sort(order[np.arange(len(home)) - first < most])


def week_features(weeks: Float[np.ndarray, "N L"], scale: float) -> Float[np.ndarray, "N D"]:
    """What the classifier sees of every home-week."""
    logs = in_logs(weeks, scale)
    days = logs.reshape(len(logs), 7, -1)
    moments = [logs.mean(axis=1), logs.std(axis=1), logs.min(axis=1), logs.max(axis=1), (weeks == 0).mean(axis=1)]
    steps = np.abs(np.diff(logs, axis=1))
    moments += [steps.mean(axis=1), np.median(steps, axis=1), days.mean(axis=2).std(axis=1)]
    return np.concatenate([embed(logs, KERNELS), days.mean(axis=1), np.stack(moments, axis=1)], axis=1)


def discriminate(
    real: Fleet, synthetic: Fleet, scale: float, seed: int = 0
) -> tuple[Float[np.ndarray, " H"], Float[np.ndarray, " G"]]:
    """The share of home-weeks told right, of every real and of every synthetic home; NaN for a home without a whole week."""
    sides = []
    for number, one in enumerate((real, synthetic)):
        weeks, home = one.home_weeks()
        kept = some(home, WEEKS, seed + number)
        sides.append((week_features(weeks[kept], scale), home[kept], folds_of(one.homes, seed + number)))
    features = np.concatenate([side[0] for side in sides])
    deviation = features.std(axis=0)
    features = (features - features.mean(axis=0)) / np.where(deviation > SMALL, deviation, 1.0)
    label = np.repeat([1.0, -1.0], [len(side[0]) for side in sides])
    weight = np.concatenate([_equal_homes(side[1]) for side in sides])
    fold = np.concatenate([side[2][side[1]] for side in sides])
    right = np.zeros(len(label))
    for number in range(FOLDS):
        test = fold == number
        if not test.any() or len(np.unique(label[~test])) < 2:
            continue
        centre, level, slope = ridge(features[~test], label[~test, None], weight[~test], TELL)
        told = ((features[test] - centre) @ slope + level)[:, 0] * label[test]
        right[test] = np.where(told > 0, 1.0, np.where(told < 0, 0.0, 0.5))
    border = len(sides[0][0])
    return (
        home_means(right[:border], sides[0][1], real.homes),
        home_means(right[border:], sides[1][1], synthetic.homes),
    )


def days_ahead(
    one: Fleet, seed: int
) -> tuple[Float[np.ndarray, "N D"], Float[np.ndarray, "N P"], Int64[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """(features, the day to forecast, home, mean of the 7 days before), of some days of every home that have no gap."""
    days, period = one.days, one.period
    whole = np.isfinite(days).all(axis=2)
    run = np.cumsum(np.pad(whole, ((0, 0), (1, 0))), axis=1)
    home, day = np.nonzero((run[:, 8:] - run[:, :-8]) == 8)  # day: the first of the 7
    kept = some(home.astype(np.int64), DAYS, seed)
    home, day = home[kept], day[kept]
    before = days[home[:, None], day[:, None] + np.arange(7)].reshape(len(home), -1)
    level = before.mean(axis=1)
    known = np.abs(level) > SMALL
    home, day, before, level = home[known], day[known], before[known], level[known]
    weekday = np.eye(7)[(day + 7) % 7]  # the grid begins on a Monday
    week = (before / level[:, None]).reshape(len(home), 7, period)
    features = np.concatenate([week.mean(axis=1), week[:, 0], week[:, -1], weekday], axis=1)
    wanted = days[home, day + 7] / level[:, None]
    assert wanted.shape[1] == period
    return features, wanted, home.astype(np.int64), level


def predict(real: Fleet, synthetic: Fleet | None, seed: int = 0) -> Float[np.ndarray, " H"]:
    """Error of every real home over its level, of a forecaster that learned on `synthetic`, or on other real homes (None)."""
    features, wanted, home, level = days_ahead(real, seed)
    squares = np.full(len(home), np.nan)
    if synthetic is not None:
        given = days_ahead(synthetic, seed + 1)
        if len(given[0]):
            squares = _squares(given[:3], features, wanted)
    else:
        fold = folds_of(real.homes, seed)[home]
        for number in range(FOLDS):
            test: Bool[np.ndarray, " N"] = fold == number
            if test.any() and not test.all():
                others = features[~test], wanted[~test], home[~test]
                squares[test] = _squares(others, features[test], wanted[test])
    own = home_means(level, home, real.homes)
    return np.sqrt(home_means(squares * level**2, home, real.homes)) / np.abs(own)


def _squares(
    given: tuple[Float[np.ndarray, "N D"], Float[np.ndarray, "N P"], Int64[np.ndarray, " N"]],
    features: Float[np.ndarray, "M D"],
    wanted: Float[np.ndarray, "M P"],
) -> Float[np.ndarray, " M"]:
    centre, level, slope = ridge(given[0], given[1], _equal_homes(given[2]), FORECAST)
    return np.square((features - centre) @ slope + level - wanted).mean(axis=1)


def home_means(values: Float[np.ndarray, " N"], home: Int64[np.ndarray, " N"], homes: int) -> Float[np.ndarray, " H"]:
    """The mean of every home's rows; NaN where it has none."""
    count = np.bincount(home, minlength=homes)
    total = np.bincount(home, weights=values, minlength=homes)
    return np.divide(total, count, out=np.full(homes, np.nan), where=count > 0)


def _equal_homes(home: Int64[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Weights that sum to 1, and to the same for every home."""
    _, group, count = np.unique(home, return_inverse=True, return_counts=True)
    return 1.0 / (count[group] * len(count))
