"""Heavy-tailed contexts, made on purpose: the test bed for what bounded conditioning is meant to survive.

    spikes      single readings become `size` times the meter's own mean, size Pareto distributed (index 1: no mean)
    outages     long stretches without a reading, from half a day to several days
    covariate   a channel `sensor` beside the calendar: an AR(1) process that now and then reads Cauchy-sized nonsense

All of it rare, all of it from a seed: meter m is disturbed the same way whatever other meters there are.
"""

from dataclasses import replace
from hashlib import blake2b

import numpy as np

from tamedit.data.series import Series
from tamedit.errors import UserError

SENSOR = "sensor"


def corrupt(
    series: Series,
    seed: int = 0,
    *,
    spike_rate: float = 1e-3,
    outage_rate: float = 5e-4,
    outage_hours: tuple[int, int] = (12, 72),
    sensor_rate: float = 1e-3,
) -> Series:
    """The same meters with rare spikes, long outages and a covariate with outliers. Rates are per row."""
    if any(not 0 <= rate <= 0.5 for rate in (spike_rate, outage_rate, sensor_rate)):
        raise UserError(
            f"The rates {spike_rate}, {outage_rate} and {sensor_rate} must lie between 0 and 0.5 per row; choose others."
        )
    values, sensor = series.values.copy(), np.empty((len(series), 1), dtype=np.float32)
    for number, name in enumerate(series.meters):
        rows = slice(int(series.offsets[number]), int(series.offsets[number + 1]))
        count = rows.stop - rows.start
        digest = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")
        generator = np.random.default_rng([seed, digest])
        own = values[rows]
        level = np.nanmean(np.abs(own), axis=0) if np.isfinite(own).any() else np.ones(own.shape[1])
        hit = generator.random(count) < spike_rate
        own[hit] += level * (5 + 5 * generator.pareto(1.0, (int(hit.sum()), 1)).clip(max=200))
        starts = np.flatnonzero(generator.random(count) < outage_rate)
        for start, length in zip(starts, generator.integers(*outage_hours, len(starts)), strict=True):
            own[start : start + length] = np.nan
        sensor[rows, 0] = _sensor(generator, count, sensor_rate)
    return replace(
        series,
        values=values,
        covariates=np.concatenate([series.covariates, sensor], axis=1),
        covariate_names=(*series.covariate_names, SENSOR),
        notes=(*series.notes, f"Disturbed on purpose with seed {seed}: spikes, outages, a covariate with outliers."),
    )


def _sensor(generator: np.random.Generator, count: int, rate: float) -> np.ndarray:
    """(T,) a smooth signal of unit variance with rare readings that mean nothing."""
    from scipy.signal import lfilter

    smooth = lfilter([np.sqrt(1 - 0.95**2)], [1.0, -0.95], generator.standard_normal(count))
    wrong = generator.random(count) < rate
    smooth[wrong] = (100 * generator.standard_cauchy(int(wrong.sum()))).clip(-1e6, 1e6)
    return np.asarray(smooth, dtype=np.float32)
