"""The sampler is Poisson: sizes are binomial, memberships independent, empty batches happen."""

import numpy as np
import pytest
from scipy import stats

from tamedit.errors import UserError
from tamedit.privacy.poisson import PoissonSampler

EXAMPLES, RATE, STEPS = 40, 0.07, 4000


def memberships(sampler: PoissonSampler, steps: int = STEPS) -> np.ndarray:
    table = np.zeros((steps, sampler.examples), dtype=bool)
    for step in range(steps):
        table[step, sampler.sample(step)] = True
    return table


@pytest.mark.parametrize("source", [{"test_seed": 5}, {}, {"secure": True}])
def test_distribution(source: dict) -> None:
    table = memberships(PoissonSampler(EXAMPLES, RATE, **source))
    sizes = table.sum(axis=1)
    top = 9
    observed = np.bincount(np.minimum(sizes, top), minlength=top + 1)
    expected = stats.binom.pmf(np.arange(top), EXAMPLES, RATE)
    expected = np.append(expected, 1.0 - expected.sum()) * STEPS
    assert stats.chisquare(observed, expected).pvalue > 1e-6
    assert observed[0] > 0  # empty batches are kept
    per_example = table.sum(axis=0)
    assert np.all(np.abs(per_example - STEPS * RATE) < 5.5 * np.sqrt(STEPS * RATE * (1 - RATE)))
    correlation = np.corrcoef(table.T.astype(float))[np.triu_indices(EXAMPLES, 1)]
    assert np.abs(correlation).max() < 5.5 / np.sqrt(STEPS)
    following = np.corrcoef(sizes[:-1], sizes[1:])[0, 1]
    assert abs(following) < 5.5 / np.sqrt(STEPS)


def test_fresh_unless_a_test() -> None:
    same = [PoissonSampler(1000, 0.5, test_seed=1).sample(3) for _ in range(2)]
    assert np.array_equal(*same)
    assert not np.array_equal(PoissonSampler(1000, 0.5, test_seed=2).sample(3), same[0])
    assert not np.array_equal(PoissonSampler(1000, 0.5).sample(3), PoissonSampler(1000, 0.5).sample(3))
    sampler = PoissonSampler(1000, 0.5)
    assert not np.array_equal(sampler.sample(3), sampler.sample(3))


def test_rate_one_takes_everything() -> None:
    assert np.array_equal(PoissonSampler(10, 1.0).sample(0), np.arange(10))


@pytest.mark.parametrize("arguments", [(0, 0.5), (10, 0.0), (10, 1.5), (10, float("nan"))])
def test_nonsense_is_refused(arguments: tuple) -> None:
    with pytest.raises(UserError):
        PoissonSampler(*arguments)
    with pytest.raises(UserError):
        PoissonSampler(10, 0.5, secure=True, test_seed=1)
