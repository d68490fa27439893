"""A simulator of household load: public data that looks like a private meter's, generated from a seed.

The load of one meter, in kWh per hour, is

    x_t = base_t + activity_t · (appliances_t + habits_t) + heating_t,

* base: what never stops (fridge, router, standby), with a slow drift;
* habits: a morning and an evening bump with the meter's own hours, widths and weekend;
* appliances: a compound Poisson process whose rate follows the habits; sizes are gamma distributed, so single hours
  stand out as kettles, ovens and showers do, and long runs spill over into the next hour;
* activity: how busy a day is (autocorrelated from day to day), more in winter, zero in weeks of absence;
* heating: a minority of homes heats with electricity, below 15 °C of a weather that all meters share.

multiplied by autocorrelated noise. On top come rare spikes, negative glitches and outages (missing), as real meters
have them. Meter i depends on the seed and on i alone, not on how many meters there are. The constants were set by hand.
A first draft was compared with summary figures of the `ideal` homes (mean level, skew, autocorrelation) and four of them
(base load, two weights of habits and appliances, heating) were moved towards those figures. So the simulator needs no data
to run, but it is not independent of `ideal`: a study that pre-trains on it and tests on `ideal` has to say so. A fleet with
`variety` draws those four again for every meter, over a range that is much wider than they were moved.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.signal import lfilter

from tamedit.data.reading.grid import Step
from tamedit.data.series import Series
from tamedit.data.traits import NAMES, Traits
from tamedit.errors import UserError

_MINUTE = 60_000_000
INTERVALS = (15, 30, 60)  # minutes
FACTORS = ("standby", "habits", "appliances", "heating")  # which `variety` spreads
# Every statement of a run on these data sets says so: any model may begin from simulated homes, or generate homes from them.
OWES_TO = {
    "ideal": "four constants of the simulator of homes, which were moved towards summary figures of `ideal` by hand "
    "(the shipped model, `init` from simulated homes and generated homes begin from it)"
}


@dataclass(frozen=True)
class Region:
    """How the homes of a region differ from the usual ones: factors on what the constants fix, and its climate and hours."""

    standby: float = 1.0
    habits: float = 1.0
    appliances: float = 1.0
    heating: float = 1.0
    heated: float = 0.15  # share of homes that heat with electricity
    warmer: float = 0.0  # °C
    later: float = 0.0  # hours by which people rise and return


USUAL = Region()


@dataclass(frozen=True)
class _Clock:
    """What all meters share: the hours, and the weather of their days."""

    place: np.ndarray  # (T,) the row of the day, 0 … 24 n − 1
    per_hour: int  # n, rows per hour
    day: np.ndarray  # (T,) days since the start
    weekend: np.ndarray  # (T,) bool
    winter: np.ndarray  # (T,) cosine of the year, 1 in mid-January
    cold: np.ndarray  # (T,) degrees below 15 °C


def simulate(
    meters: int = 1,
    hours: int = 23_136,
    start: str = "2023-01-01",
    seed: int = 0,
    *,
    spike_rate: float = 2e-4,
    negative_rate: float = 2e-4,
    outage_rate: float = 2e-4,
    outage_hours: float = 10.0,
    variety: float = 0.0,
    minutes: int = 60,
    region: Region = USUAL,
    progress: Callable[[int, int], None] | None = None,
) -> Series:
    """Load of `meters` households in kWh per hour; the default is one meter, 964 days of hours up to 2025-08-22.

    A row every `minutes`: 60, 30 or 15. In shorter rows single runs of appliances stand out more. `region`: other appliances,
    another climate, other hours, for homes that differ from those that the shipped model was trained on.

    Rates are per hour: of spikes, of negative glitches, and of outages that last `outage_hours` on average. With rate 0
    nothing of the kind happens. `variety` spreads what the constants fix: base load, habits, appliances and heating of every
    meter are multiplied by log-normal factors with this deviation of the logarithm (0: none), for a fleet that a model may be
    trained on before it meets homes that nobody has looked at. One meter comes in the wide layout, several in the long one.
    `progress(done, meters)` hears of meters.
    """
    _check(meters, hours, seed, spike_rate, negative_rate, outage_rate)
    if not 0 <= variety <= 2:
        raise UserError(f"variety={variety} must lie between 0 and 2.")
    if outage_hours < 1:
        raise UserError(f"outage_hours={outage_hours} must be at least 1.")
    times, clock = _grid(hours, start, seed, minutes, region)
    per_hour, rows = clock.per_hour, len(times)
    values = np.empty((meters, rows), dtype=np.float32)
    for meter in range(meters):
        generator = np.random.default_rng([seed, meter])
        load = _load(generator, clock, Traits(generator), region, variety)
        _disturb(load, generator, spike_rate / per_hour, negative_rate / per_hour)
        load[_outages(generator, rows, outage_rate / per_hour, outage_hours * per_hour)] = np.nan
        values[meter] = load
        if progress is not None:
            progress(meter + 1, meters)
    return _series(values, times, minutes, f"Simulated with seed {seed}: no real person's data.")


def simulate_homes(
    homes: Float[np.ndarray, "H P"],
    hours: int,
    start: str = "2023-01-01",
    seed: int = 0,
    *,
    minutes: int = 60,
    numbers: Sequence[int] | np.ndarray | None = None,
) -> Series:
    """Load of homes whose traits are given (`data/traits.py`), without glitches and outages: always in the long layout.

    The traits say what a home is like; the seed and its number (its place in the list if `numbers` are not given) say what
    happens there.
    """
    _check(len(homes), hours, seed)
    times, clock = _grid(hours, start, seed, minutes, USUAL)
    values = np.empty((len(homes), len(times)), dtype=np.float32)
    for place, (number, home) in enumerate(zip(range(len(homes)) if numbers is None else numbers, homes, strict=True)):
        generator = np.random.default_rng([seed, int(number)])
        given = dict(zip(NAMES, home.tolist(), strict=True))
        values[place] = _load(generator, clock, Traits(generator, given), USUAL)
    return replace(_series(values, times, minutes, "Simulated from given traits."), layout="long")


def _grid(hours: int, start: str, seed: int, minutes: int, region: Region) -> tuple[pd.DatetimeIndex, _Clock]:
    """The stamps of every meter, and what all meters share."""
    try:
        first = pd.Timestamp(start)
    except ValueError as error:
        raise UserError(f"The start {start!r} is not a date; write it as 2023-01-01.") from error
    if minutes not in INTERVALS:
        raise UserError(f"minutes={minutes} must be one of {', '.join(map(str, INTERVALS))}.")
    per_hour = 60 // minutes
    times = pd.date_range(first, periods=hours * per_hour, freq=f"{minutes}min").as_unit("us")
    return times, _clock(times, seed, per_hour, region.warmer)


def _series(values: Float[np.ndarray, "H T"], times: pd.DatetimeIndex, minutes: int, note: str) -> Series:
    meters, rows = values.shape
    return Series(
        values=values.reshape(-1, 1),
        covariates=np.zeros((meters * rows, 0), dtype=np.float32),
        times=pd.DatetimeIndex(np.tile(times.to_numpy(), meters)) if meters > 1 else times,
        meters=tuple(f"meter_{meter:0{len(str(meters))}d}" for meter in range(meters)) if meters > 1 else ("",),
        offsets=np.arange(meters + 1, dtype=np.int64) * rows,
        targets=("kwh",),
        covariate_names=(),
        frequency=pd.Timedelta(minutes=minutes),
        notes=(note,),
        layout="long" if meters > 1 else "wide",
        step=Step("elapsed", minutes * _MINUTE),
    )


def _check(meters: int, hours: int, seed: int, *rates: float) -> None:
    if meters < 1 or hours < 2:
        raise UserError(f"meters={meters} must be at least 1 and hours={hours} at least 2.")
    if seed < 0:
        raise UserError(f"seed={seed} must be 0 or above.")
    if any(not 0 <= rate <= 0.5 for rate in rates):
        raise UserError(f"Rates must lie between 0 and 0.5 per hour, not {rates}.")


def _clock(times: pd.DatetimeIndex, seed: int, per_hour: int, warmer: float) -> _Clock:
    weather = np.random.default_rng([seed, 2**31])
    place = np.asarray(times.hour * per_hour + times.minute * per_hour // 60)
    elapsed = (place[0] + np.arange(len(times))) // (24 * per_hour)
    winter = np.cos(2 * np.pi * (np.asarray(times.dayofyear) - 15) / 365.25)
    temperature = 11 + warmer - 7 * winter + _autocorrelated(weather, int(elapsed[-1]) + 1, 0.8, 3.0)[elapsed]
    weekend, cold = np.asarray(times.dayofweek) >= 5, np.maximum(0.0, 15 - temperature)
    return _Clock(place, per_hour, elapsed, weekend, winter, cold)


def _autocorrelated(generator: np.random.Generator, count: int, memory: float, spread: float) -> np.ndarray:
    """A stationary AR(1) process with standard deviation `spread`."""
    shocks = generator.standard_normal(count) * spread * np.sqrt(1 - memory**2)
    shocks[0] /= np.sqrt(1 - memory**2)
    return np.asarray(lfilter([1.0], [1.0, -memory], shocks))


def _bump(hour: np.ndarray, centre: float, width: float) -> np.ndarray:
    """A bell over the hours of a day, around the clock."""
    distance = (hour - centre + 12) % 24 - 12
    return np.exp(-0.5 * (distance / width) ** 2)


def _profiles(traits: Traits, per_hour: int, later: float) -> np.ndarray:
    """(2, 24 n) how active the home is at each time of a weekday and of a weekend day; mean about 1."""
    hour = np.arange(24 * per_hour) / per_hour
    rise, return_home = later + traits["rise"], later + traits["return_home"]
    at_home, lie_in = traits["at_home"], traits["lie_in"]
    morning, evening = traits["morning"], traits["evening"]
    widths = traits["morning_width"], traits["evening_width"]
    night = 0.08 + 0.5 * traits["night"]
    weekday = morning * _bump(hour, rise, widths[0]) + evening * _bump(hour, return_home, widths[1])
    weekday += 1.3 * at_home * _bump(hour, 12.8, 3.2) + night
    weekend = 0.8 * morning * _bump(hour, rise + lie_in, 1.4 * widths[0]) + evening * _bump(
        hour, return_home, widths[1]
    )
    weekend += (0.5 + at_home) * _bump(hour, 13.0, 3.0) + night
    return np.stack([weekday, weekend])


def _load(
    generator: np.random.Generator, clock: _Clock, traits: Traits, region: Region, variety: float = 0.0
) -> np.ndarray:
    """One undisturbed meter, (T,) kWh per hour, above zero."""
    own = np.exp(variety * generator.standard_normal(4)) if variety else np.ones(4)
    if traits.home is not None:
        own = np.array([traits[name] for name in FACTORS])
    standby, habits, busyness, warmth = own * (region.standby, region.habits, region.appliances, region.heating)
    count, days, per_hour = len(clock.place), int(clock.day[-1]) + 1, clock.per_hour
    size = traits["size"]
    profile = _profiles(traits, per_hour, region.later)[clock.weekend.astype(int), clock.place]
    base = standby * 0.095 * size**0.7 * traits["base"] * np.exp(_autocorrelated(generator, days, 0.97, 0.12))
    # The share of load that repeats from day to day differs: some homes run like clocks.
    regular = traits["regular"]
    season = 1 + traits["season"] * clock.winter
    busy = np.exp(_autocorrelated(generator, days, 0.5, 0.25) - 0.03)
    busy[_absent_days(generator, days)] = 0.0
    activity = busy[clock.day] * season * size
    events = generator.poisson(np.minimum(0.45 * busyness * profile, 4.0) / per_hour)
    appliances = per_hour * generator.gamma(np.maximum(0.8 * events, 1e-9), 0.55) * (events > 0)
    spill = traits["spill"]
    appliances = np.convolve(appliances, _run(spill, per_hour))[:count]
    load = base[clock.day] + activity * (0.21 * habits * regular * profile + (1 - regular) * appliances)
    if traits["heats"] < region.heated:
        heat = warmth * traits["heat"] * size * clock.cold * (0.6 + 0.4 * np.minimum(profile, 2.0))
        load += heat * np.where(busy[clock.day] > 0, 1.0, 0.4)
    noise = np.exp(_autocorrelated(generator, count, 0.6 ** (1 / per_hour), 0.22))
    return np.asarray(load * noise + 0.01)


def _run(spill: float, per_hour: int) -> np.ndarray:
    """How the energy of one run lies in the rows from its beginning on. It lasts a while of 2 · spill hours from anywhere in its
    first row, so that a share `spill` of it falls into the hour that follows."""
    if per_hour == 1:
        return np.array([1 - spill, spill])
    long = max(round(2 * spill * per_hour), 1)
    return np.convolve(np.full(long, 1 / long), [0.5, 0.5])


def _absent_days(generator: np.random.Generator, days: int) -> np.ndarray:
    """(days,) bool: two or so absences a year, of 3 to 15 days."""
    absent = np.zeros(days, dtype=bool)
    count = generator.poisson(2 * days / 365)
    for first, length in zip(generator.integers(0, days, count), generator.integers(3, 16, count), strict=True):
        absent[first : first + length] = True
    return absent


def _disturb(load: np.ndarray, generator: np.random.Generator, spike_rate: float, negative_rate: float) -> None:
    """Spikes far above, and glitches below zero, in place."""
    chance = generator.random(len(load))
    sizes = generator.gamma(2.0, 1.0, len(load))
    spikes = chance < spike_rate
    load[spikes] += 3 * load.mean() * (2 + 2 * sizes[spikes])
    glitches = chance > 1 - negative_rate
    load[glitches] = -load.mean() * (0.2 + sizes[glitches])


def _outages(generator: np.random.Generator, hours: int, rate: float, length: float) -> np.ndarray:
    """(T,) bool: outages begin at random hours; how long they last is geometric with mean `length`."""
    count = generator.poisson(rate * hours)
    first = generator.integers(0, hours, count)
    last = np.minimum(first + generator.geometric(1 / length, count), hours)
    edges = np.zeros(hours + 1, dtype=np.int64)
    np.add.at(edges, first, 1)
    np.add.at(edges, last, -1)
    return np.asarray(np.cumsum(edges)[:-1] > 0)
