"""The model's answers: fills, forecasts, homes.

The same seed gives the samples of `Model.impute` and `forecast` with `all_samples=True`, and the homes of `generate`.

Readings that the user hides are taken out before the model sees the series, and come back as `truth` beside the answer, with
CRPS (E|X − y| − ½ E|X − X'|, the fair ensemble estimator) of the model and of the free distribution on the same cells.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int64

from tamedit.data.simulate import INTERVALS, simulate
from tamedit.errors import UserError
from tamedit.evaluation.cell_statistics import fair_crps, independent_parts
from tamedit.serve.messages import (
    DRAWN,
    GENERATED,
    HORIZON,
    Band,
    Channel,
    Drawing,
    Drawn,
    ForecastRequest,
    GenerateRequest,
    Homes,
    ImputeRequest,
    Points,
)
from tamedit.serve.uploads import points_of, readings, series_of, stamps
from tamedit.serve.watched import Check, FreeGuess, Watched
from tamedit.tasks.fleet_table import asked
from tamedit.tasks.frames import QUANTILES, steps_ahead
from tamedit.tasks.model import Model

SAMPLE_DAYS, OUTAGES = 42, 2e-3


def imputed(model: Model, request: ImputeRequest, check: Check) -> Drawn:
    """Every missing reading and every hidden row."""
    given = series_of(model, request.series)
    hidden = np.zeros(len(given), dtype=bool)
    for first, end in request.hide:
        hidden[first:end] = True
    series = replace(given, values=np.where(hidden[:, None], np.float32(np.nan), given.values))
    missing = np.isnan(series.values)
    rows = np.flatnonzero(missing.any(axis=1))
    if not len(rows):
        raise UserError("Nothing is missing; hide some rows first, or ask for a forecast.")
    _affordable(int(missing.sum()), request.samples)
    draws = {"model": Watched(model, check).cells(series, missing, request.samples, request.seed)}
    if request.compare:
        draws["free"] = FreeGuess(model, check).cells(series, missing, request.samples, request.seed)
    paths = {who: _scattered(drawn, missing[rows], series.values[rows]) for who, drawn in draws.items()}
    truth = np.where(hidden[rows, None], given.values[rows], np.float32(np.nan))
    return _answer(request, rows, stamps(series.times[rows]), given.targets, paths, truth)


def forecast(model: Model, request: ForecastRequest, check: Check) -> Drawn:
    """The steps after the series, or after the row where it was cut."""
    given = series_of(model, request.series)
    steps = steps_ahead(given, request.horizon)
    if steps > HORIZON:
        raise UserError(
            f"A horizon of {steps:,} steps is too long here; ask for at most {HORIZON:,}, or use tamedit forecast."
        )
    origin = len(given) if request.origin is None else request.origin
    if not 2 <= origin <= len(given):
        raise UserError(f"origin={origin} must lie between 2 and the {len(given):,} rows of the series.")
    _affordable(steps * len(given.targets), request.samples)
    known = given.between(np.array([0]), np.array([origin]))
    future = None
    if given.covariate_names and origin < len(given):
        columns = dict(
            zip(given.covariate_names, given.covariates[origin:].T, strict=True)
        )  # attributes go on by themselves
        future = pd.DataFrame({given.time_name: given.times[origin:], **columns})

    def draw(who: Model) -> tuple[list[str], Float[np.ndarray, "S H K"]]:
        table = who.forecast(known, steps, samples=request.samples, seed=request.seed, all_samples=True, future=future)
        drawn = table[list(given.targets)].to_numpy(dtype=np.float32).reshape(request.samples, steps, -1)
        return stamps(known.future(steps, 0)), drawn

    times, own = draw(Watched(model, check))
    paths = {"model": own}
    if request.compare:
        paths["free"] = draw(FreeGuess(model, check))[1]
    truth = np.full((steps, len(given.targets)), np.nan, dtype=np.float32)
    held = given.values[origin : origin + steps]
    truth[: len(held)] = held
    return _answer(request, origin + np.arange(steps), times, given.targets, paths, truth)


def generated(model: Model, request: GenerateRequest, check: Check) -> Homes:
    """Synthetic homes, group after group."""
    size = request.homes * request.days * 86400 / model.spec.frequency_seconds * len(model.spec.targets)
    if size > GENERATED:
        raise UserError(
            f"{request.homes} homes of {request.days} days are {size:,.0f} readings; ask for at most {GENERATED:,} here, or use "
            "tamedit generate."
        )
    fleet, population = asked(model.spec, request.homes, request.start, request.days, None, None, request.seed)
    groups = []
    for group in Watched(model, check).homes(fleet, population):
        check()
        groups.append(group)
    values = np.concatenate(groups)  # (H, T, K)
    digits = len(str(fleet.homes - 1))
    return Homes(
        times=stamps(fleet.times),
        homes=[f"home_{number:0{digits}d}" for number in range(fleet.homes)],
        values={name: values[:, :, k].tolist() for k, name in enumerate(model.spec.targets)},
    )


def can_sample(model: Model) -> bool:
    """Whether the simulator makes such series."""
    spec = model.spec
    return len(spec.targets) == 1 and not spec.covariates and spec.frequency_seconds / 60 in INTERVALS


def sample_series(model: Model, seed: int) -> Points:
    """Six weeks of a simulated home, with an outage here and there."""
    if not can_sample(model):
        raise UserError("The simulator has no series for this model; drop a CSV of your own.")
    minutes = int(model.spec.frequency_seconds / 60)
    series = simulate(hours=24 * SAMPLE_DAYS, seed=seed, outage_rate=OUTAGES, minutes=minutes)
    return points_of(replace(series, targets=model.spec.targets), 0, len(series))


def _affordable(cells: int, samples: int) -> None:
    if cells * samples > DRAWN:
        raise UserError(
            f"{cells:,} missing readings with {samples} samples each are too many for one answer; ask for fewer samples, send a "
            "part of the series, or use tamedit impute."
        )


def _scattered(
    drawn: Float[np.ndarray, "S M"], missing: Bool[np.ndarray, "R K"], values: Float[np.ndarray, "R K"]
) -> Float[np.ndarray, "S R K"]:
    """Every sample of the rows; observed readings as they are."""
    whole = np.repeat(values[None], len(drawn), axis=0)
    whole[:, missing] = drawn
    return whole


def _answer(
    request: Drawing,
    rows: Int64[np.ndarray, " R"],
    times: list[str],
    targets: tuple[str, ...],
    paths: dict[str, Float[np.ndarray, "S R K"]],
    truth: Float[np.ndarray, "R K"],
) -> Drawn:
    channels = {}
    for k, name in enumerate(targets):
        bands = {who: _band(drawn[:, :, k], truth[:, k], request.paths) for who, drawn in paths.items()}
        channels[name] = Channel(model=bands["model"], free=bands.get("free"), truth=readings(truth[:, k]))
    return Drawn(rows=rows.tolist(), times=times, channels=channels)


def _band(drawn: Float[np.ndarray, "S R"], truth: Float[np.ndarray, " R"], paths: int) -> Band:
    """Quantiles at positions p (S + 1) of the sorted samples, as in `tasks/frames.py`."""
    cuts = np.quantile(drawn, QUANTILES, axis=0, method="weibull")
    known = np.isfinite(truth)
    crps = None
    if known.any():
        halves = independent_parts(drawn[:, known].T.astype(np.float64), halves=True)
        crps = float(np.mean([fair_crps(half, truth[known].astype(np.float64)) for half in halves]))
    return Band(
        median=readings(np.median(drawn, axis=0)),
        quantiles={f"{level:g}": readings(cut) for level, cut in zip(QUANTILES, cuts, strict=True)},
        paths=[readings(one) for one in drawn[:paths]],
        crps=crps,
    )
