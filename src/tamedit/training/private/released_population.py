"""Who the homes are, for a run: with noise and charged if a private run asks for it, exact without privacy."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int64

from tamedit.errors import UserError
from tamedit.files import write_text
from tamedit.privacy.population import (
    POPULATION,
    WORST_ERROR,
    Population,
    Within,
    expected_error,
    population_of,
    population_vectors,
)
from tamedit.runs.config import RunConfig
from tamedit.runs.folder import PEOPLE, DataFacts
from tamedit.runs.layout import public_rows, whole_examples
from tamedit.runs.simulated_pool import minutes_of, regions_prior, season_place
from tamedit.training.private.budget import Budget
from tamedit.windows.cut import Windows

MOST = 4000  # examples that a run without privacy looks at
RANGE = (0.005, 0.9999)  # quantiles of the readings, in a run without privacy
CELLS = 2**22  # readings that are looked at together


def learned_population(
    config: RunConfig, facts: DataFacts, windows: Windows, budget: Budget | None, folder: Path
) -> Population | None:
    """The population of a run: None in a private run that did not ask for it. Released once, read again on resume."""
    if config.privacy is None:
        return exact_population(windows, config.examples.period)
    if not config.privacy.population or budget is None:
        return None
    place = folder / PEOPLE
    if budget.world.same_number(place.is_file()):
        budget.check_paid(POPULATION, place)
    else:
        attributes = windows.series.static
        refuse_population(config, facts, budget.plan.examples, len(attributes))
        if budget.ledger is not None:
            within, vectors = summed(windows, config, facts)
            prior = regions_prior(minutes_of(_step(windows)), within.rows, within.period)
            noise = config.privacy.noise_of_population
            released = budget.release_population(vectors, within, noise, prior, attributes)
            write_text(place, released.model_dump_json(indent=2) + "\n")
        budget.world.wait()
    try:
        return Population.model_validate_json(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{place} is damaged; restore it from a copy, or start again in another folder.") from error


def summed(windows: Windows, config: RunConfig, facts: DataFacts) -> tuple[Within, Iterator[Float[np.ndarray, "n V"]]]:
    """What a private run releases with noise the sum of, one vector of norm at most 1 per example; and the public rest.

    The vectors come in pieces: all of those of a fleet take more memory than its readings.
    """
    rows = public_rows(windows, config.privacy)
    within = _within(windows, config.examples.period, rows, facts.lower or (), facts.upper or ())
    return within, _vectors(windows, within)


def exact_population(windows: Windows, period: int) -> Population | None:
    """Without noise, within the range of the readings themselves: without any guarantee."""
    series = windows.series
    readings = series.values[:: max(len(series) // CELLS, 1)].astype(np.float64)
    if not len(windows) or not np.isfinite(readings).any(axis=0).all():
        return None
    low, high = np.nanquantile(readings, RANGE, axis=0)  # a glitch of a meter must not set the range
    low = np.where(low >= 0.0, 0.0, low)
    high = np.where(high > low, high, low + 1.0)
    within = _within(windows, period, windows.length, tuple(low.tolist()), tuple(high.tolist()))
    windows = _part(windows, np.unique(np.linspace(0, len(windows) - 1, min(len(windows), MOST)).astype(np.int64)))
    total = np.concatenate(list(_vectors(windows, within, shortened=False))).sum(axis=0)
    return population_of(total, len(windows), within, "nonprivate", static=series.static)


def _within(windows: Windows, period: int, rows: int, lower: tuple[float, ...], upper: tuple[float, ...]) -> Within:
    """In a private run all meters are padded to the study, so that the dates are the study's."""
    first, last = (str(one.date()) for one in windows.series.span)
    return Within(lower=lower, upper=upper, period=period, rows=rows, begin=first, end=last)


def _vectors(windows: Windows, within: Within, shortened: bool = True) -> Iterator[Float[np.ndarray, "n V"]]:
    """One vector per example; a few examples at a time, since a whole meter has many rows. Without examples, one empty piece."""
    first = season_place(windows.series.times[windows.starts], _step(windows), within.period)
    marks, static = windows.series.marks(windows.starts), windows.series.static
    few = max(CELLS // (within.rows * len(within.lower)), 1)
    for begin in range(0, max(len(windows), 1), few):
        some = np.arange(begin, min(begin + few, len(windows)))
        examples = whole_examples(_part(windows, some), within.rows)
        bounds = within.lower, within.upper, within.period
        yield population_vectors(examples, *bounds, first[some], shortened, marks[some], static)


def _part(windows: Windows, chosen: Int64[np.ndarray, " C"]) -> Windows:
    spans = None if windows.spans is None else windows.spans[chosen]
    return replace(windows, starts=windows.starts[chosen], spans=spans)


def _step(windows: Windows) -> float:
    return windows.series.frequency.total_seconds()


def refuse_population(config: RunConfig, facts: DataFacts, examples: int, attributes: int = 0) -> None:
    """Raise one sentence, before anything is charged, if `population` was asked for without bounds or would be mostly noise."""
    if config.privacy is None or not config.privacy.population:
        return
    if facts.lower is None:
        raise UserError(
            "`population` learns who the homes are within public bounds; give `lower` and `upper`, or leave it out."
        )
    error = expected_error(examples, len(facts.lower), config.privacy.noise_of_population, attributes)
    smaller = "take a smaller `unit`" if not attributes else "state fewer attributes"
    if error > WORST_ERROR:
        raise UserError(
            f"Who the homes are, learned from so few examples, would be off by more than {WORST_ERROR:g} (of numbers within ±1), "
            f"too much to be useful; give `population_noise` a smaller number, {smaller}, or leave out `population`."
        )
