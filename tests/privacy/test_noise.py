"""The noise is Gaussian, of the stated variance, independent, and fresh."""

import numpy as np
import pytest
import torch
from scipy import stats

from tamedit.errors import UserError
from tamedit.privacy import noise
from tamedit.privacy.noise import GaussianNoise, secure_normals

SOURCES = [{"test_seed": 3}, {}, {"secure": True}]


def draw(source: GaussianNoise, count: int) -> np.ndarray:
    total = torch.zeros(count, dtype=torch.float64)
    source.add_([total])
    return total.numpy()


@pytest.mark.parametrize("source", SOURCES)
def test_gaussian_of_the_stated_variance(source: dict) -> None:
    count, deviation = 200_000, 0.7
    values = draw(GaussianNoise(deviation, **source), count)
    assert abs(values.mean()) < 5.5 * deviation / np.sqrt(count)
    assert values.var() == pytest.approx(deviation**2, rel=5.5 * np.sqrt(2 / count))
    assert abs(stats.kurtosis(values)) < 5.5 * np.sqrt(24 / count)
    assert abs(stats.skew(values)) < 5.5 * np.sqrt(6 / count)
    assert stats.kstest(values / deviation, "norm").pvalue > 1e-6


@pytest.mark.parametrize("source", SOURCES)
def test_independent_across_parameters_steps_and_lags(source: dict) -> None:
    noise = GaussianNoise(1.0, **source)
    steps = []
    for _ in range(2):
        tensors = {"a": torch.zeros(100, 200), "b": torch.zeros(20_000)}
        noise.add_(tensors)
        steps.append([tensors["a"].flatten().numpy(), tensors["b"].numpy()])
    bound = 5.5 / np.sqrt(20_000)
    pieces = [piece for step in steps for piece in step]
    for i, one in enumerate(pieces):
        assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < bound
        for other in pieces[i + 1 :]:
            assert abs(np.corrcoef(one, other)[0, 1]) < bound
            assert abs(np.corrcoef(one**2, other**2)[0, 1]) < bound


def test_added_to_the_sum_in_place() -> None:
    total = torch.full((1000,), 5.0)
    alias = total
    GaussianNoise(0.1).add_([total])
    assert alias is total
    assert abs(float(total.mean()) - 5.0) < 0.05
    assert float(total.std()) == pytest.approx(0.1, rel=0.2)


def test_an_empty_batch_gets_noise_and_no_gradient_is_kept() -> None:
    total = torch.zeros(50, requires_grad=True)
    GaussianNoise(1.0).add_([total])
    assert bool((total != 0).all())
    assert total.grad_fn is None


def test_fresh_stream_each_time_unless_a_test() -> None:
    assert not np.array_equal(draw(GaussianNoise(1.0), 10), draw(GaussianNoise(1.0), 10))
    assert not np.array_equal(draw(GaussianNoise(1.0, secure=True), 10), draw(GaussianNoise(1.0, secure=True), 10))
    assert np.array_equal(draw(GaussianNoise(1.0, test_seed=1), 10), draw(GaussianNoise(1.0, test_seed=1), 10))
    torch.manual_seed(0)
    first = draw(GaussianNoise(1.0), 10)
    torch.manual_seed(0)
    assert not np.array_equal(first, draw(GaussianNoise(1.0), 10))


def test_every_bit_of_the_seed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's generator would see the low 32 bits alone, and those can be tried one by one."""
    drawn = []
    for high in (1, 2):
        monkeypatch.setattr(noise.os, "urandom", lambda count, high=high: b"\7" * 8 + bytes([high]) * (count - 8))
        tensor = torch.zeros(8)
        GaussianNoise(1.0).add_([tensor])
        drawn.append(tensor)
    assert not torch.equal(*drawn)


def test_a_test_run_resumes_with_the_same_noise() -> None:
    def at(step: int, noise: GaussianNoise) -> np.ndarray:
        total = torch.zeros(10)
        noise.add_([total], step)
        return total.numpy()

    whole, resumed = GaussianNoise(1.0, test_seed=4), GaussianNoise(1.0, test_seed=4)
    steps = [at(step, whole) for step in range(3)]
    assert np.array_equal(at(2, resumed), steps[2])
    assert not np.array_equal(steps[0], steps[1])
    assert not np.array_equal(at(0, GaussianNoise(1.0)), at(0, GaussianNoise(1.0)))


def reachable(released: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """Whether some single-precision noise on this single-precision sum gives the released number exactly."""
    nearest = (released.double() - total.double()).float()
    found = total + nearest == released
    for direction in (-torch.inf, torch.inf):
        other = nearest
        for _ in range(2):
            other = torch.nextafter(other, torch.full_like(other, direction))
            found |= total + other == released
    return found


def test_low_bits_of_secure_noise_rule_no_neighbour_out() -> None:
    """Single noise on a single sum always gives a number that this sum can reach, and thousands that its neighbour cannot."""
    generator = torch.Generator().manual_seed(0)
    total = 0.03 * torch.randn(50_000, generator=generator)
    unit = torch.randn(50_000, generator=generator)
    neighbour = total + unit / unit.norm()
    naive, secure = total.clone(), total.clone()
    naive += torch.from_numpy(secure_normals(len(total))).float()
    GaussianNoise(1.0, secure=True).add_([secure])
    assert reachable(naive, total).all()
    assert (~reachable(naive, neighbour)).sum() > 500
    missed, missed_by_neighbour = int((~reachable(secure, total)).sum()), int((~reachable(secure, neighbour)).sum())
    assert missed > 500  # the true sum is as impossible as its neighbour: neither can be told
    assert abs(missed - missed_by_neighbour) < 5 * (missed + missed_by_neighbour) ** 0.5


def test_secure_values_cross_chunks_and_dtypes() -> None:
    values = secure_normals((1 << 16) + 1001)
    assert values.shape == ((1 << 16) + 1001,)
    assert values.std() == pytest.approx(1.0, abs=0.02)
    pairs = values[: 1 << 15].reshape(2, -1)  # the two values that share their uniforms
    assert abs(np.corrcoef(pairs)[0, 1]) < 5.5 / 128
    assert abs(np.corrcoef(pairs**2)[0, 1]) < 5.5 / 128
    total = torch.zeros(500, dtype=torch.float32)
    GaussianNoise(2.0, secure=True).add_({"weight": total})
    assert float(total.std()) == pytest.approx(2.0, rel=0.25)


@pytest.mark.parametrize("deviation", [0.0, -1.0, float("nan"), float("inf")])
def test_no_noise_is_refused(deviation: float) -> None:
    with pytest.raises(UserError, match="no privacy"):
        GaussianNoise(deviation)


def test_misuse_is_refused() -> None:
    with pytest.raises(UserError, match="repeated"):
        GaussianNoise(1.0, secure=True, test_seed=1)
    with pytest.raises(TypeError):
        GaussianNoise(1.0).add_([torch.zeros(3, dtype=torch.int64)])
