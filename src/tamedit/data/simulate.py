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

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from tamedit.data.reading.grid import Step
from tamedit.data.series import Series
from tamedit.errors import UserError

_HOUR = 3_600_000_000
# Of runs on these data sets that begin from simulated homes, every statement says so.
OWES_TO = {
    "ideal": "four constants of the simulator of homes, which were moved towards summary figures of `ideal` by hand"
}


@dataclass(frozen=True)
class _Clock:
    """What all meters share: the hours, and the weather of their days."""

    hour: np.ndarray  # (T,) 0 … 23
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
) -> Series:
    """Hourly load of `meters` households in kWh; the default is one meter, 964 days up to 2025-08-22.

    Rates are per hour: of spikes, of negative glitches, and of outages that last `outage_hours` on average. With rate 0
    nothing of the kind happens. `variety` spreads what the constants fix: base load, habits, appliances and heating of every
    meter are multiplied by log-normal factors with this deviation of the logarithm (0: none), for a fleet that a model may be
    trained on before it meets homes that nobody has looked at. One meter comes in the wide layout, several in the long one.
    """
    _check(meters, hours, seed, spike_rate, negative_rate, outage_rate)
    if not 0 <= variety <= 2:
        raise UserError(f"variety={variety} must lie between 0 and 2.")
    if outage_hours < 1:
        raise UserError(f"outage_hours={outage_hours} must be at least 1.")
    try:
        first = pd.Timestamp(start)
    except ValueError as error:
        raise UserError(f"The start {start!r} is not a date; write it as 2023-01-01.") from error
    times = pd.date_range(first, periods=hours, freq="h").as_unit("us")
    clock = _clock(times, seed)
    values = np.empty((meters, hours), dtype=np.float32)
    for meter in range(meters):
        generator = np.random.default_rng([seed, meter])
        load = _load(generator, clock, variety)
        _disturb(load, generator, spike_rate, negative_rate)
        load[_outages(generator, hours, outage_rate, outage_hours)] = np.nan
        values[meter] = load
    return Series(
        values=values.reshape(-1, 1),
        covariates=np.zeros((meters * hours, 0), dtype=np.float32),
        times=pd.DatetimeIndex(np.tile(times.to_numpy(), meters)) if meters > 1 else times,
        meters=tuple(f"meter_{meter:0{len(str(meters))}d}" for meter in range(meters)) if meters > 1 else ("",),
        offsets=np.arange(meters + 1, dtype=np.int64) * hours,
        targets=("kwh",),
        covariate_names=(),
        frequency=pd.Timedelta(hours=1),
        notes=(f"Simulated with seed {seed}: no real person's data.",),
        layout="long" if meters > 1 else "wide",
        step=Step("elapsed", _HOUR),
    )


def _check(meters: int, hours: int, seed: int, *rates: float) -> None:
    if meters < 1 or hours < 2:
        raise UserError(f"meters={meters} must be at least 1 and hours={hours} at least 2.")
    if seed < 0:
        raise UserError(f"seed={seed} must be 0 or above.")
    if any(not 0 <= rate <= 0.5 for rate in rates):
        raise UserError(f"Rates must lie between 0 and 0.5 per hour, not {rates}.")


def _clock(times: pd.DatetimeIndex, seed: int) -> _Clock:
    weather = np.random.default_rng([seed, 2**31])
    hour = np.asarray(times.hour)
    elapsed = (hour[0] + np.arange(len(times))) // 24
    winter = np.cos(2 * np.pi * (np.asarray(times.dayofyear) - 15) / 365.25)
    temperature = 11 - 7 * winter + _autocorrelated(weather, int(elapsed[-1]) + 1, 0.8, 3.0)[elapsed]
    return _Clock(hour, elapsed, np.asarray(times.dayofweek) >= 5, winter, np.maximum(0.0, 15 - temperature))


def _autocorrelated(generator: np.random.Generator, count: int, memory: float, spread: float) -> np.ndarray:
    """A stationary AR(1) process with standard deviation `spread`."""
    shocks = generator.standard_normal(count) * spread * np.sqrt(1 - memory**2)
    shocks[0] /= np.sqrt(1 - memory**2)
    return np.asarray(lfilter([1.0], [1.0, -memory], shocks))


def _bump(hour: np.ndarray, centre: float, width: float) -> np.ndarray:
    """A bell over the hours of a day, around the clock."""
    distance = (hour - centre + 12) % 24 - 12
    return np.exp(-0.5 * (distance / width) ** 2)


def _profiles(generator: np.random.Generator) -> np.ndarray:
    """(2, 24) how active the home is at each hour of a weekday and of a weekend day; mean about 1."""
    hour = np.arange(24)
    rise, return_home = generator.normal(7.3, 0.9), generator.normal(18.5, 1.0)
    at_home, lie_in = generator.beta(1.2, 1.8), generator.uniform(0.5, 2.5)
    morning, evening = generator.uniform(0.6, 1.8), generator.uniform(1.4, 2.8)
    widths = generator.uniform(1.0, 1.8), generator.uniform(1.7, 2.8)
    night = 0.08 + 0.5 * generator.beta(1, 6)
    weekday = morning * _bump(hour, rise, widths[0]) + evening * _bump(hour, return_home, widths[1])
    weekday += 1.3 * at_home * _bump(hour, 12.8, 3.2) + night
    weekend = 0.8 * morning * _bump(hour, rise + lie_in, 1.4 * widths[0]) + evening * _bump(
        hour, return_home, widths[1]
    )
    weekend += (0.5 + at_home) * _bump(hour, 13.0, 3.0) + night
    return np.stack([weekday, weekend])


def _load(generator: np.random.Generator, clock: _Clock, variety: float = 0.0) -> np.ndarray:
    """One undisturbed meter, (T,) kWh per hour, above zero."""
    standby, habits, busyness, warmth = np.exp(variety * generator.standard_normal(4)) if variety else np.ones(4)
    count, days = len(clock.hour), int(clock.day[-1]) + 1
    size = generator.lognormal(0.0, 0.45)
    profile = _profiles(generator)[clock.weekend.astype(int), clock.hour]
    base = (
        standby
        * 0.095
        * size**0.7
        * generator.lognormal(0.0, 0.25)
        * np.exp(_autocorrelated(generator, days, 0.97, 0.12))
    )
    # The share of load that repeats from day to day differs: some homes run like clocks.
    regular = generator.beta(2, 4)
    season = 1 + generator.uniform(0.05, 0.35) * clock.winter
    busy = np.exp(_autocorrelated(generator, days, 0.5, 0.25) - 0.03)
    busy[_absent_days(generator, days)] = 0.0
    activity = busy[clock.day] * season * size
    events = generator.poisson(np.minimum(0.45 * busyness * profile, 4.0))
    appliances = generator.gamma(np.maximum(0.8 * events, 1e-9), 0.55) * (events > 0)
    spill = generator.uniform(0.15, 0.45)
    appliances[1:] = (1 - spill) * appliances[1:] + spill * appliances[:-1]
    load = base[clock.day] + activity * (0.21 * habits * regular * profile + (1 - regular) * appliances)
    if generator.random() < 0.15:
        heat = warmth * generator.uniform(0.015, 0.05) * size * clock.cold * (0.6 + 0.4 * np.minimum(profile, 2.0))
        load += heat * np.where(busy[clock.day] > 0, 1.0, 0.4)
    noise = np.exp(_autocorrelated(generator, count, 0.6, 0.22))
    return np.asarray(load * noise + 0.01)


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
