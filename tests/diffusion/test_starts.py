"""Every sample starts from N(0, I); what differs is how the samples of a window lie to one another."""

import numpy as np
import pytest
import torch
from scipy import stats

from tamedit.diffusion.starts import OneOf, Starts, noise_of_one, starting_noise

SHAPE = (7, 2)
WINDOWS = np.arange(400)


@pytest.mark.parametrize("starts", ["independent", "antithetic", "stratified"])
@pytest.mark.parametrize("samples", [1, 5, 8])
def test_each_sample_by_itself_is_standard_normal_noise(starts: Starts, samples: int) -> None:
    noise = starting_noise(WINDOWS, samples, SHAPE, 0, starts)
    assert noise.shape == (len(WINDOWS), samples, *SHAPE)
    for number in range(samples):
        own = noise[:, number].flatten(1)  # (windows, cells)
        assert stats.kstest(own.numpy().ravel(), "norm").pvalue > 1e-4
        between_cells = torch.corrcoef(own.T) - torch.eye(own.shape[1])
        assert between_cells.abs().max() < 5 / len(WINDOWS) ** 0.5


@pytest.mark.parametrize("samples", [2, 5, 40, 41])
def test_stratified_samples_lie_in_one_interval_each(samples: int) -> None:
    noise = starting_noise(WINDOWS, samples, SHAPE, 3, "stratified").double()
    intervals = (torch.special.ndtr(noise) * samples).floor().long().sort(dim=1).values
    expected = torch.arange(samples)[None, :, None, None].expand_as(intervals)
    assert (intervals != expected).float().mean() < 1e-4  # but for rounding at the borders
    if samples % 2 == 0:
        assert torch.equal(noise[:, : samples // 2], -noise[:, samples // 2 :])


def test_the_order_of_a_cells_intervals_is_its_own() -> None:
    """Two cells that shared it would rise and fall together over the samples."""
    noise = starting_noise(WINDOWS, 40, SHAPE, 0, "stratified")[:, :20].flatten(2)  # (windows, samples, cells)
    ranks = noise.argsort(1).argsort(1).double() - 9.5
    together = torch.einsum("wsi,wsj->ij", ranks, ranks)
    off = together / together[0, 0] - torch.eye(ranks.shape[2], dtype=torch.float64)
    assert off.abs().max() < 5 / (20 * len(WINDOWS)) ** 0.5


def test_a_windows_starts_do_not_depend_on_the_batch() -> None:
    whole = starting_noise(WINDOWS, 6, SHAPE, 1, "stratified")
    torch.testing.assert_close(starting_noise(WINDOWS[5:6], 6, SHAPE, 1, "stratified")[0], whole[5], rtol=0, atol=0)
    assert not torch.equal(starting_noise(WINDOWS, 6, SHAPE, 2, "stratified"), whole)


def test_stratified_quantiles_are_more_exact_than_those_of_more_antithetic_samples() -> None:
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])

    def error(starts: Starts, samples: int) -> float:
        """Positions as `tasks/frames.py` takes them."""
        drawn = starting_noise(WINDOWS, samples, SHAPE, 0, starts).numpy()
        cuts = np.quantile(drawn, levels, axis=1, method="hazen" if starts == "stratified" else "weibull")
        return float(np.sqrt(np.square(cuts - stats.norm.ppf(levels)[:, None, None, None]).mean()))

    assert error("stratified", 40) < 0.5 * error("antithetic", 100)


@pytest.mark.parametrize("starts", ["antithetic", "stratified"])
def test_single_samples_of_a_window_are_the_samples_of_the_window(starts: Starts) -> None:
    """However the rows are mixed: what a later pass over a long gap starts from."""
    windows, numbers = np.array([7, 3, 7, 7, 3]), np.array([0, 5, 4, 2, 1])
    found = noise_of_one(windows, OneOf(numbers, 6), SHAPE, 2, starts)
    whole = {name: starting_noise(np.array([name]), 6, SHAPE, 2, starts)[0] for name in (3, 7)}
    expected = torch.stack([whole[int(name)][number] for name, number in zip(windows, numbers, strict=True)])
    torch.testing.assert_close(found[:, 0], expected, rtol=0, atol=0)
