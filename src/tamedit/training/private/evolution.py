"""Private evolution: simulated homes move towards the private ones by noisy votes (Lin et al. 2023, with a simulator: Sim-PE).

    homes_0 = C homes as the simulator draws them
    round r:  every private example i votes for its nearest candidate in a public embedding, v_i = one-hot in R^C, ‖v_i‖ = 1
              h = Σ_i v_i + N(0, σ² I)                charged to the ledger before the noise is drawn
              w = max(h − τσ, 0) / Σ                  (all alike if nothing is above the threshold)
              homes_{r+1} = parents drawn by w, mutated by a width that shrinks

What is kept after the last round (candidates, weights, a width) depends on the data through the noisy histograms alone. A unit
that touches k examples changes a histogram by at most k in norm, as the ledger's contributions say. The candidates are drawn
from a seed and from earlier histograms, never from the data.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from tamedit.data.series import Series
from tamedit.data.simulate import INTERVALS, simulate_homes
from tamedit.data.traits import NAMES, draw_homes, mutated
from tamedit.errors import UserError
from tamedit.files import write_text
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.statistics import noisy_sum
from tamedit.runs.folder import EVOLVED
from tamedit.runs.layout import whole_examples
from tamedit.streams import purpose_seed
from tamedit.windows.cut import Windows
from tamedit.windows.embedding import embedding

POPULATION, VOTES = EVOLVED, "votes for simulated homes"
# Chosen on 200 simulated homes of another region: 2, 4 and 8 rounds, 40, 100 and 200 candidates, four levels of noise.
ROUNDS, CANDIDATES = 2, 200
WIDTH, SHRINK = 0.12, 0.7  # set by hand
THRESHOLD = 1.0  # τ, in deviations of the noise
LONGEST = 24 * 365  # hours of a candidate
Release = Callable[[Float[np.ndarray, "N C"], int], Float[np.ndarray, " C"]]  # votes and round in, noisy histogram out


@dataclass(frozen=True)
class Population:
    """Candidates by their traits, how likely each is, and how far a drawn home lies from its candidate."""

    homes: list[list[float]]
    weights: list[float]
    width: float
    minutes: int
    rounds: int  # histograms that went into it
    target: str = "kwh"
    traits: tuple[str, ...] = NAMES

    def draw(self, count: int, stream: np.random.Generator) -> Float[np.ndarray, "H P"]:
        parents = stream.choice(len(self.homes), size=count, p=np.array(self.weights) / np.sum(self.weights))
        return mutated(np.array(self.homes)[parents], self.width, stream)

    def save(self, folder: Path) -> None:
        write_text(folder / POPULATION, json.dumps(asdict(self)) + "\n")

    @classmethod
    def load(cls, folder: Path) -> "Population":
        place = Path(folder) / POPULATION
        try:
            found = cls(**json.loads(place.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{place} is no evolved population; name a run made with engine='evolution'.") from error
        if tuple(found.traits) != NAMES:
            raise UserError(f"{place} has the traits of another version; train again in another folder.")
        return found


def check_homes(series: Series) -> int:
    """Minutes between rows, or one sentence why these are not loads of homes that the simulator can make."""
    minutes = series.frequency.total_seconds() / 60
    if series.static:
        raise UserError("engine='evolution' knows no attributes of homes; leave out `static`, or `engine`.")
    if minutes not in INTERVALS or len(series.targets) != 1:
        raise UserError(
            f"engine='evolution' makes loads of homes, one channel every {', '.join(map(str, INTERVALS))} minutes, but this data "
            f"has {len(series.targets)} ({', '.join(series.targets)}) every {series.spoken_step}; name one target, or leave "
            "`engine` out."
        )
    return int(minutes)


def votes(examples: Float[np.ndarray, "N E"], candidates: Float[np.ndarray, "C E"]) -> Float[np.ndarray, "N C"]:
    """One vote per example, for its nearest candidate; each row has norm 1 and depends on its own example alone."""
    chosen = np.zeros((len(examples), len(candidates)))
    for first in range(0, len(examples), 1024):
        part = examples[first : first + 1024]
        apart = ((part[:, None] - candidates[None]) ** 2).sum(axis=2)
        chosen[np.arange(first, first + len(part)), apart.argmin(axis=1)] = 1.0
    return chosen


def evolve(
    windows: Windows,
    release: Release,
    candidates: int = CANDIDATES,
    *,
    rounds: int = ROUNDS,
    noise_multiplier: float = 0.0,
    block: int | None = None,
    seed: int = 0,
    begun: Population | None = None,
    keep: Callable[[Population], None] = lambda _: None,
) -> Population:
    """Evolve a population by `rounds` of votes of the examples.

    `block`: rows of an example, a public number; None where examples are whole meters, whose own extent is private. `begun`:
    continue after its rounds. `keep` gets the population of each round.
    """
    minutes = check_homes(windows.series)
    per_hour, day = 60 // minutes, 24 * 60 // minutes
    place = _rows_of_day(windows.series.times[windows.starts], minutes)
    load = whole_examples(windows, int(windows.series.lengths.max()) if block is None else block)[:, :, 0]
    private = embedding(load, place, per_hour)
    known = windows.series.times
    extent = min(int((known.max() - known.min()) / pd.Timedelta(hours=1)) + 1, LONGEST)
    found = begun
    for number in range(0 if found is None else found.rounds, rounds):
        stream = np.random.default_rng(purpose_seed(seed, f"evolution {number}"))
        homes = draw_homes(candidates, stream) if found is None else found.draw(candidates, stream)
        made = simulate_homes(
            homes, extent, str(known.min().tz_localize(None)), int(stream.integers(2**31)), minutes=minutes
        )
        load, first = made.values.reshape(candidates, -1).astype(np.float64), _rows_of_day(made.times[:1], minutes)
        if block is not None and block < load.shape[1]:
            begin = day * int(stream.integers(0, (load.shape[1] - block) // day + 1))
            load = load[:, begin : begin + block]
        public = embedding(load, np.repeat(first, candidates), per_hour)
        histogram = release(votes(private, public), number)
        above = np.maximum(histogram - THRESHOLD * noise_multiplier, 0.0)
        weights = above if above.sum() > 0 else np.ones(candidates)
        found = Population(
            homes.tolist(),
            (weights / weights.sum()).tolist(),
            WIDTH * SHRINK ** (number + 1),
            minutes,
            number + 1,
            windows.series.targets[0],
        )
        keep(found)
    assert found is not None
    return found


def voted(ledger: Ledger) -> Release:
    """The private release of a round: one step of the ledger's plan is charged, then the noise is drawn."""
    plan = ledger.record.segments[-1].plan
    if plan.sampling_rate != 1.0 or plan.clip != 1.0:
        raise ValueError("every example votes in every round, with a vote of norm 1")

    def release(one_hot: Float[np.ndarray, "N C"], number: int) -> Float[np.ndarray, " C"]:
        ledger.take(left=1)
        return noisy_sum(one_hot, plan.noise_multiplier, ledger, VOTES, number)

    return release


def evolved_homes(population: Population, homes: int, start: str, days: int, seed: int = 0) -> Series:
    """A fleet of `homes` drawn from the population, each simulated for `days` from `start` on. This spends no privacy."""
    for name, number in (("homes", homes), ("days", days)):
        if number < 1:
            raise UserError(f"{name}={number} must be at least 1.")
    return next(evolved_groups(population, homes, start, days, seed, group=homes))


def evolved_groups(
    population: Population, homes: int, start: str, days: int, seed: int, *, group: int, skip: int = 0
) -> Iterator[Series]:
    """The homes of `evolved_homes`, so many at a time; `skip` groups that were made before."""
    drawn = population.draw(homes, np.random.default_rng(purpose_seed(seed, "evolved homes")))
    lives = purpose_seed(seed, "lives") % 2**31
    for first in range(skip * group, homes, group):
        numbers = np.arange(first, min(first + group, homes))
        made = simulate_homes(drawn[numbers], 24 * days, start, lives, minutes=population.minutes, numbers=numbers)
        yield replace(made, targets=(population.target,))


def _rows_of_day(times: pd.DatetimeIndex, minutes: int) -> np.ndarray:
    return np.asarray((times.hour * 60 + times.minute) // minutes, dtype=np.int64)
