"""Spectra of waves and noise are known."""

import numpy as np
import pytest

from tamedit.evaluation.spectrum import normalised, spectral_distance, welch, window_spectra

LENGTH = 96


def wave(cycles: float, windows: int = 3) -> np.ndarray:
    """(B, L): `cycles` waves in half a window, which is a segment."""
    phase = np.linspace(0, 1, windows)[:, None]
    return np.sin(2 * np.pi * (cycles * np.arange(LENGTH) / (LENGTH // 2) + phase))


@pytest.mark.parametrize("cycles", [4, 10, 20])
def test_a_sine_stands_at_its_frequency(cycles: int) -> None:
    """Through a Hann taper a wave of whole cycles has shares 1/6, 2/3, 1/6 around its frequency."""
    shares = normalised(welch(wave(cycles)))
    expected = np.zeros(LENGTH // 4 + 1)
    expected[cycles - 1 : cycles + 2] = [1 / 6, 2 / 3, 1 / 6]
    np.testing.assert_allclose(shares, np.broadcast_to(expected, shares.shape), atol=1e-3)


def test_the_distance_of_two_sines_is_known_and_does_not_see_scale_or_level() -> None:
    real, drawn = welch(wave(4)).mean(axis=0), welch(5 + 3 * wave(12)).mean(axis=0)
    one = (4 / 36 * 2 / 4 + 4 / 9) * 2  # two waves apart: (1/6² + (2/3)² + 1/6²) · 2
    assert spectral_distance(real, drawn) == pytest.approx(one / len(real), rel=1e-2)
    assert spectral_distance(real, welch(7 - 2 * wave(4)).mean(axis=0)) == pytest.approx(0, abs=1e-12)


def test_white_noise_is_flat() -> None:
    rng = np.random.default_rng(0)
    shares = normalised(welch(rng.normal(size=(4000, LENGTH))).mean(axis=0))
    inner = shares[2:-1]  # the level is taken away, the last frequency is one-sided
    assert inner == pytest.approx(np.full_like(inner, inner.mean()), rel=0.06)


def test_windows_with_gaps_and_constants() -> None:
    rng = np.random.default_rng(0)
    truth = np.stack([wave(4, 6), np.full((6, LENGTH), 1e5), wave(6, 6)], axis=-1).astype(np.float32)
    truth[2:, 5, 2] = np.nan
    samples = rng.normal(size=(6, 4, LENGTH, 3)).astype(np.float32)
    samples[..., 1] = 1e5
    real, drawn = window_spectra(samples, truth)
    assert real.shape == drawn.shape == (6, 3, LENGTH // 4 + 1)
    assert (real[:, 0].sum(axis=-1) > 0).all()
    assert not real[:, 1].any()
    assert not drawn[:, 1].any()
    assert real[:2, 2].any()
    assert not real[2:, 2].any()
    assert not drawn[2:, 2].any()


@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_very_short_windows(length: int) -> None:
    real, _ = window_spectra(np.zeros((2, 4, length, 1)), np.random.default_rng(0).normal(size=(2, length, 1)))
    assert np.isfinite(real).all()
