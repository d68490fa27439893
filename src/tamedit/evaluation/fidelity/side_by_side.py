"""The fidelity table: every measure of every candidate, beside the real homes' own number, with intervals over homes.

Two kinds of measures. A *statistic* is a number of one fleet; the candidate's shall be the real homes' number. A *distance* is a
number of two fleets; it shall be small, and a second sample of real homes (a column of the table) shows how small it can be.
Intervals: 95 %, homes are drawn with replacement (`evaluation/intervals.py`): those of the candidate, and for distances those of
the real homes as well. The coincidence of groups and the predictive score's training have no resampled interval of their own.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from tamedit.data.series import Series
from tamedit.evaluation.fidelity import distances_of, statistics_of
from tamedit.evaluation.fidelity.homes_grid import fleets
from tamedit.evaluation.fidelity.judges import discriminate, predict
from tamedit.evaluation.fidelity.measures import MEASURES
from tamedit.evaluation.fidelity.portrait import Portrait
from tamedit.evaluation.intervals import bootstrap_interval, group_weights

REAL = "real"
RESAMPLES = 200


@dataclass(frozen=True)
class Score:
    """A number with its 95 % interval over homes; None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class FidelityTable:
    """Scores by column and measure. The first column is the real homes' own."""

    columns: dict[str, dict[str, Score]]
    homes: dict[str, int]

    def frame(self) -> pd.DataFrame:
        """Measures down, candidates across, values alone."""
        return pd.DataFrame({name: {key: one.value for key, one in own.items()} for name, own in self.columns.items()})

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with intervals."""
        scores = {name: {key: asdict(one) for key, one in own.items()} for name, own in self.columns.items()}
        return {"homes": self.homes, "measures": {one.name: one.meaning for one in MEASURES}, "scores": scores}


def fidelity(real: Series, synthetic: Series, *, target: str | None = None, **asked: Any) -> FidelityTable:
    """One candidate against held-out real homes; see `fidelity_table`."""
    return fidelity_table(real, {"synthetic": synthetic}, target=target, **asked)


def fidelity_table(
    real: Series,
    candidates: Mapping[str, Series],
    *,
    target: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> FidelityTable:
    """Every candidate against held-out real homes. Cover the same dates with all of them: seasons differ."""
    held, others = fleets(real, dict(candidates), target)
    reference = Portrait(held)
    drawn = _weights(reference, resamples, seed)
    columns = {REAL: _statistics(reference, drawn) | _own(reference, drawn, seed)}
    scale = statistics_of.scale(reference)
    for number, (name, other) in enumerate(others.items(), start=1):
        portrait = Portrait(other)
        own_weights = _weights(portrait, resamples, seed + 1)
        both = drawn, own_weights
        if len(drawn) != len(own_weights):  # one of them has too few homes for an interval
            both = drawn[:1], own_weights[:1]
        scores = _statistics(portrait, own_weights)
        for key, measure in distances_of.DISTANCES.items():
            values = measure(reference, both[0], portrait, both[1])
            scores[key] = _score(values[0], values[1:], least=0.0)
        told = discriminate(held, other, scale, seed)
        scores["discriminative"] = _mean_of_two(told, both)
        scores["predictive"] = _mean(predict(held, other, seed), drawn)
        scores["nearest_home"] = _mean(distances_of.nearest(reference, portrait, held.homes, seed), own_weights)
        columns[name] = {one.name: scores[one.name] for one in MEASURES}
        if progress is not None:
            progress(number, len(others))
    columns[REAL] = {one.name: columns[REAL].get(one.name, Score(None)) for one in MEASURES}
    homes = {REAL: held.homes, **{name: other.homes for name, other in others.items()}}
    return FidelityTable(columns, homes)


def _weights(portrait: Portrait, resamples: int, seed: int) -> Float[np.ndarray, "R H"]:
    """Row 0: every home once. Other rows: resamples of the homes, none if they are too few."""
    homes = np.arange(portrait.fleet.homes)
    drawn = group_weights(homes, resamples, seed)
    return np.concatenate([np.ones((1, len(homes))), drawn])


def _statistics(portrait: Portrait, weights: Float[np.ndarray, "R H"]) -> dict[str, Score]:
    made: dict[str, Score] = {}
    for measure in statistics_of.STATISTICS:
        made |= {key: _score(values[0], values[1:]) for key, values in measure(portrait, weights).items()}
    return made | {"coincidence": Score(statistics_of.coincidence(portrait))}


def _own(reference: Portrait, weights: Float[np.ndarray, "R H"], seed: int) -> dict[str, Score]:
    """What the real homes have of their own among the other measures."""
    return {
        "predictive": _mean(predict(reference.fleet, None, seed), weights),
        "nearest_home": _mean(distances_of.nearest(reference, reference, reference.fleet.homes, seed), weights),
    }


def _mean(values: Float[np.ndarray, " H"], weights: Float[np.ndarray, "R H"]) -> Score:
    means = statistics_of.weighted(values[:, None], weights)[:, 0]
    return _score(means[0], means[1:])


def _mean_of_two(
    values: tuple[Float[np.ndarray, " H"], Float[np.ndarray, " G"]], weights: tuple[np.ndarray, np.ndarray]
) -> Score:
    both = [statistics_of.weighted(one[:, None], own)[:, 0] for one, own in zip(values, weights, strict=True)]
    means = (both[0] + both[1]) / 2
    return _score(means[0], means[1:])


def _score(value: float, replicates: Float[np.ndarray, " R"], least: float = -np.inf) -> Score:
    if not np.isfinite(value):
        return Score(None)
    ends = bootstrap_interval(float(value), np.asarray(replicates), least, np.inf) if len(replicates) else None
    return Score(float(value), *(ends or (None, None)))
