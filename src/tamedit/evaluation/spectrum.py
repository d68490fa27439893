"""Welch spectra of windows: how much of the variation of a series has which frequency.

    P_k(f)          mean over windows (and samples) of Welch's periodogram of channel k
    p_k(f)          P_k(f) / Σ_f P_k(f)
    temp_spec_dist  mean over f of (p_k,real(f) − p_k,drawn(f))²

Whole windows are compared, observed cells included: a spectrum of scattered hidden cells does not exist. Segments are
half a window long, overlap by half, are centred, and pass through a Hann taper. A channel of a window with a missing truth
is left out, a constant channel has no spectrum.
"""

import numpy as np
from jaxtyping import Float
from scipy import signal


def welch(series: Float[np.ndarray, "*A L"]) -> Float[np.ndarray, "*A F"]:
    """Power at frequencies 0, 1/n … 1/2 per step, along the last axis; n is half the length."""
    length = series.shape[-1]
    segment = min(max(length // 2, 4), length)
    _, power = signal.welch(series, nperseg=segment, noverlap=segment // 2, detrend="constant", axis=-1)
    density: np.ndarray = power
    return density


def normalised(power: Float[np.ndarray, "*A F"]) -> Float[np.ndarray, "*A F"]:
    """Shares of the power that sum to 1; NaN where there is none."""
    total = power.sum(axis=-1, keepdims=True)
    return np.divide(power, total, out=np.full(power.shape, np.nan), where=total > 0)


def spectral_distance(real: Float[np.ndarray, "*A F"], drawn: Float[np.ndarray, "*A F"]) -> Float[np.ndarray, "*A"]:
    """Mean squared difference of two spectra, each normalised first."""
    return np.asarray(np.square(normalised(real) - normalised(drawn)).mean(axis=-1))


def window_spectra(
    samples: Float[np.ndarray, "B S L K"], truth: Float[np.ndarray, "B L K"]
) -> tuple[Float[np.ndarray, "B K F"], Float[np.ndarray, "B K F"]]:
    """Spectra of the truth and of the completed windows (mean over samples); 0 where the truth has a gap."""
    whole = np.isfinite(truth).all(axis=1)[:, :, None]  # (B, K, 1)
    clean = np.where(np.isfinite(truth), truth, 0.0).astype(np.float64)
    scale = np.abs(clean).max(axis=(0, 1), initial=0.0)
    scale = np.where(scale > 0, scale, 1.0)  # spectra are normalised later; squares shall not overflow
    real = welch(np.moveaxis(clean / scale, 1, -1))
    drawn = welch(np.moveaxis(samples / scale, 2, -1)).mean(axis=1)
    rounding = truth.shape[1] * np.finfo(np.float32).eps ** 2  # what is left of a constant is no spectrum
    powers = [np.where(part.sum(axis=-1, keepdims=True) <= rounding, 0.0, part) for part in (real, drawn)]
    return np.where(whole, powers[0], 0.0), np.where(whole, powers[1], 0.0)
