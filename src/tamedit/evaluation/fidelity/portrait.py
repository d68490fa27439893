"""What is measured of every home, so that a fleet's numbers are weighted means over its homes.

    level       ℓ_h = mean_t x_ht                              the home's mean reading
    autocorrelation   r_h(l) = C_h(l) / C_h(0),   C_h(l) = mean over observed pairs of (x_t − ℓ_h)(x_{t+l} − ℓ_h)
    profile     p_h(s) = mean of x_ht at the time s of the day (or week) / ℓ_h
    spectrum    S_h(f) = mean periodogram of the home's weeks, normalised to sum 1
    peak        m_hd = max of a day, and its hour; days with a missing reading are left out
    ramp        x_{h,t+1} − x_ht

Quantiles of all readings of a fleet (the load duration curve) are not means, so every home keeps its counts in narrow bins:
a resampled fleet's quantile is read from the weighted sum of the counts.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy import signal
from scipy.fft import irfft, next_fast_len, rfft

from tamedit.evaluation.fidelity.homes_grid import Fleet
from tamedit.evaluation.spectrum import normalised

TINY = 1e-9  # below this a level or a variance is taken as zero
BINS = 4000
HOMES_AT_ONCE = 64


@dataclass(frozen=True)
class Portrait:
    """The numbers of every home; arrays have homes first."""

    fleet: Fleet

    @cached_property
    def level(self) -> Float[np.ndarray, " H"]:
        return np.nanmean(self.fleet.values, axis=1)

    @cached_property
    def log_level(self) -> Float[np.ndarray, " H"]:
        return np.log(np.maximum(self.level, TINY))

    @cached_property
    def relative(self) -> Float[np.ndarray, " H"]:
        """What readings are divided by: the level, 1 for a home without load."""
        return np.where(np.abs(self.level) > TINY, self.level, 1.0)

    @cached_property
    def zeros(self) -> Float[np.ndarray, " H"]:
        """Share of readings that are exactly zero."""
        values = self.fleet.values
        return (values == 0).sum(axis=1) / np.isfinite(values).sum(axis=1)

    @cached_property
    def ramps(self) -> Float[np.ndarray, "H S"]:
        return np.abs(np.diff(self.fleet.values, axis=1))

    @cached_property
    def weekly_profile(self) -> Float[np.ndarray, "H L"]:
        return _mean(self.fleet.weeks, 1) / self.relative[:, None]

    @cached_property
    def daily_profile(self) -> Float[np.ndarray, "H P"]:
        return _mean(self.fleet.days, 1) / self.relative[:, None]

    @cached_property
    def autocorrelation(self) -> Float[np.ndarray, "H A"]:
        """r(1) … r(a week)."""
        return autocorrelation(self.fleet.values, 7 * self.fleet.period)

    @cached_property
    def spectrum(self) -> Float[np.ndarray, "H F"]:
        """NaN for a home without a whole week, or without variation."""
        weeks, home = self.fleet.home_weeks()
        _, power = signal.periodogram(weeks, detrend="constant", axis=-1)
        total = np.zeros((self.fleet.homes, power.shape[1]))
        np.add.at(total, home, power)
        return normalised(total[:, 1:])

    @cached_property
    def _peaks(self) -> tuple[np.ndarray, np.ndarray]:
        whole = np.isfinite(self.fleet.days).all(axis=2)  # (H, D)
        days = np.where(whole[:, :, None], self.fleet.days, -np.inf)
        return np.where(whole, days.max(axis=2), np.nan), np.where(whole, days.argmax(axis=2), -1)

    @cached_property
    def peak(self) -> Float[np.ndarray, " H"]:
        """Mean of the daily peaks."""
        return _mean(self._peaks[0], 1)

    @cached_property
    def peak_time(self) -> Float[np.ndarray, "H P"]:
        """Share of the days whose peak lies at each time of the day."""
        place, period = self._peaks[1], self.fleet.period
        rows = np.arange(self.fleet.homes)[:, None] * (period + 1)
        counts = np.bincount((rows + place + 1).ravel(), minlength=self.fleet.homes * (period + 1))
        return normalised(counts.reshape(-1, period + 1)[:, 1:].astype(np.float64))

    @cached_property
    def character(self) -> Float[np.ndarray, "H C"]:
        """A short description of a home: log level, relative deviation, zeros, relative quantiles, daily profile."""
        values = self.fleet.values / self.relative[:, None]
        quantiles = np.nanquantile(values, [0.05, 0.5, 0.95], axis=1).T
        deviation = np.nanstd(values, axis=1)
        single = np.stack([self.log_level, deviation, self.zeros], axis=1)
        return np.concatenate([single, quantiles, np.nan_to_num(self.daily_profile)], axis=1)


def autocorrelation(values: Float[np.ndarray, "H T"], lags: int) -> Float[np.ndarray, "H A"]:
    """r(1) … r(lags) of every row over the pairs that are observed; NaN where there is no pair or no variation."""
    length = next_fast_len(values.shape[1] + lags, real=True)
    found = np.full((len(values), lags), np.nan)
    for first in range(0, len(values), HOMES_AT_ONCE):
        part = values[first : first + HOMES_AT_ONCE]
        seen = np.isfinite(part)
        centred = np.where(seen, part - _mean(part, 1)[:, None], 0.0)
        products, pairs = (_lagged(one, length, lags) for one in (centred, seen.astype(np.float64)))
        pairs = np.rint(pairs)
        covariance = np.divide(products, pairs, out=np.full(products.shape, np.nan), where=pairs > 0)
        varies = covariance[:, :1] > TINY**2
        found[first : first + HOMES_AT_ONCE] = np.divide(
            covariance[:, 1:], covariance[:, :1], out=np.full((len(part), lags), np.nan), where=varies
        )
    return found


def _lagged(rows: Float[np.ndarray, "H T"], length: int, lags: int) -> Float[np.ndarray, "H A"]:
    """Σ_t x_t x_{t+l}, l = 0 … lags."""
    spectrum = rfft(rows, n=length, axis=1)
    return np.asarray(irfft(spectrum.real**2 + spectrum.imag**2, n=length, axis=1)[:, : lags + 1])


def pooled_quantiles(
    values: Float[np.ndarray, "H T"], points: Float[np.ndarray, " Q"], weights: Float[np.ndarray, "R H"]
) -> Float[np.ndarray, "R Q"]:
    """Quantiles of all readings of a fleet whose homes have these weights; from counts in bins that hold equally many."""
    seen = np.isfinite(values)
    edges = np.unique(np.quantile(values[seen], np.linspace(0, 1, BINS + 1)))
    home = np.nonzero(seen)[0]
    at = np.clip(np.searchsorted(edges, values[seen], side="left"), 0, len(edges) - 1)
    counts = np.bincount(home * len(edges) + at, minlength=len(values) * len(edges)).reshape(len(values), -1)
    total = np.cumsum(weights @ counts, axis=1)  # (R, E)
    wanted = points * total[:, -1:]
    return edges[(total[:, None, :] < wanted[:, :, None] - TINY).sum(axis=2).clip(max=len(edges) - 1)]


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """The mean of what is observed, NaN where nothing is, without a warning."""
    seen = np.isfinite(values)
    count = seen.sum(axis=axis)
    total = np.where(seen, values, 0.0).sum(axis=axis)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
