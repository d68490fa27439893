"""The measures of the fidelity table: their names, what they mean, and what is good."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Measure:
    """`best`: the real homes' own number ("real"), a small number ("least") or one half ("half")."""

    name: str
    label: str
    meaning: str
    best: Literal["real", "least", "half"] = "real"


QUANTILES = (1, 10, 50, 90, 99)
MEASURES = (
    Measure("log_level_mean", "log level, mean", "mean over homes of the logarithm of a home's mean reading"),
    Measure("log_level_sd", "log level, sd", "standard deviation over homes of the logarithm of the mean reading"),
    *(Measure(f"duration_p{q}", f"load, p{q}", f"{q} % of all readings are below this") for q in QUANTILES),
    Measure("autocorrelation_step", "autocorr., 1 step", "mean over homes, a reading with the next one"),
    Measure("autocorrelation_day", "autocorr., 1 day", "mean over homes, a reading with the one a day later"),
    Measure("autocorrelation_week", "autocorr., 1 week", "mean over homes, a reading with the one a week later"),
    Measure("ramp_p50", "ramp, p50", "median of the absolute change from one step to the next"),
    Measure("ramp_p99", "ramp, p99", "99 % of the absolute changes are below this"),
    Measure("peak", "daily peak", "mean over homes of the mean of the daily maxima"),
    Measure("coincidence", "coincidence of 10", "peak of a week of 10 homes together over the sum of their peaks"),
    Measure("zeros", "exact zeros", "share of readings that are exactly zero, mean over homes"),
    Measure("daily_profile", "daily profile", "mean absolute difference of the profiles over the day", "least"),
    Measure("weekly_profile", "weekly profile", "the same over the week", "least"),
    Measure("autocorrelations", "autocorrelations", "mean absolute difference over all lags up to a week", "least"),
    Measure("peak_hour", "hour of peak", "share of the daily peaks that lie at other hours", "least"),
    Measure("spectrum", "spectrum", "share of the variation that lies at other frequencies", "least"),
    Measure("frechet", "Fréchet", "Fréchet distance of random-convolution features of home-weeks", "least"),
    Measure("discriminative", "discriminative", "accuracy of a classifier on home-weeks of new homes", "half"),
    Measure("predictive", "predictive", "error of a forecaster that learned on these homes, on real homes"),
    Measure("nearest_home", "nearest home", "mean distance of a home to the most similar home of its own fleet"),
)
