"""The accountant against published values, closed forms and dp-accounting's own slow paths."""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld
from scipy import stats

from tamedit.errors import UserError
from tamedit.privacy import accountant, composed, losses
from tamedit.privacy.accountant import Mechanism, epsilon
from tamedit.privacy.plan import calibrate

PAPER_RATE = 96 / 668


def spent(rate: float, noise: float, steps: int, delta: float, k: int = 1, neighbour: str = "removal"):
    return epsilon([Mechanism(rate, noise, steps)], delta, k, neighbour)


# Values from Opacus' tests (RDP and the PRV accountant's Microsoft reference) and from dp-accounting 0.6.
@pytest.mark.parametrize(
    ("rate", "noise", "steps", "delta", "expected", "tolerance"),
    [
        (0.04, 1.5, 2250, 1e-5, 7.32911117, 0.01),  # opacus tests/accountants_test.py
        (PAPER_RATE, 0.2, 20_000, 1e-5, 54_494.57, 50),  # dp-accounting: the paper's setting, N = 668, B = 96
        (PAPER_RATE, 0.03, 20_000, 1e-5, 1.18e7, 0.01e7),
        (PAPER_RATE, 0.05, 20_000, 1e-5, 3.97e6, 0.01e6),
        (PAPER_RATE, 0.1, 20_000, 1e-5, 6.8e5, 0.02e5),
    ],
)
def test_rdp_vectors(rate: float, noise: float, steps: int, delta: float, expected: float, tolerance: float) -> None:
    assert spent(rate, noise, steps, delta).rdp == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "delta", "k", "neighbour", "expected", "tolerance"),
    [
        (0.001, 0.8, 20_000, 1e-6, 1, "removal", 1.296009, 0.011),  # opacus tests/prv_accountant.py, upper reference
        (0.05, 2.0, 1_000, 1e-6, 1, "removal", 4.1728, 0.011),  # the same
        (1.0, 1.0, 1, 1e-5, 1, "removal", 4.377178, 0.001),  # dp-accounting's get_epsilon_gaussian
        (0.01, 1.0, 1_000, 1e-5, 1, "removal", 1.829, 0.005),  # dp-accounting, mixture of Gaussians
        (0.01, 1.0, 1_000, 1e-5, 4, "removal", 8.90, 0.02),
        (0.01, 1.0, 1_000, 1e-5, 7, "removal", 17.6, 0.1),
        (0.01, 1.0, 1_000, 1e-5, 1, "replacement", 2.844, 0.005),  # dp-accounting, REPLACE_ONE
        (0.01, 1.0, 10_000, 1e-5, 1, "removal", 6.191, 0.005),  # where Gaussian DP says 6.007
    ],
)
def test_pld_vectors(
    rate: float, noise: float, steps: int, delta: float, k: int, neighbour: str, expected: float, tolerance: float
) -> None:
    assert spent(rate, noise, steps, delta, k, neighbour).pld == pytest.approx(expected, abs=tolerance)


def test_noise_for_a_target() -> None:
    """Opacus: σ = 1.3562 by RDP and 1.2915 by PRV for ε = 8 at q = 0.04, T = 2000, δ = 1e-5."""
    assert spent(0.04, 1.3562 + 0.01, 2000, 1e-5).rdp <= 8.0 <= spent(0.04, 1.3562 - 0.01, 2000, 1e-5).rdp
    sigma = calibrate(8.0, 0.04, 2000, 1e-5)
    assert sigma == pytest.approx(1.2915, abs=0.01)
    assert 7.98 <= spent(0.04, sigma, 2000, 1e-5).value <= 8.0


@pytest.mark.parametrize("steps", [10, 1_000, 20_000])
@pytest.mark.parametrize("noise", [30.0, 300.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-10, 1e-12])
def test_composition_is_an_upper_bound_of_the_closed_form(steps: int, noise: float, delta: float, monkeypatch) -> None:
    """T Gaussians without sampling are one of deviation σ / √T. At a rate just below 1 they are composed by the FFT, whose
    rounding alone would report too little at δ ≤ 1e-10. ε may not fall below the closed form, and may exceed it by little."""
    exact = dp_accounting.get_epsilon_gaussian(noise / math.sqrt(steps), delta)
    interval = max(1e-5, min(1e-3, math.sqrt(1e-3 / steps)))
    monkeypatch.setattr(losses, "discretisation", lambda *_: interval)
    monkeypatch.setattr(
        dp_accounting, "get_epsilon_gaussian", lambda *_, **__: math.inf
    )  # would hide what the FFT found
    found = spent(np.nextafter(1.0, 0.0), noise, steps, delta).pld
    assert exact - 1e-9 <= found <= exact * 1.2 + 0.02


@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_single_sampled_step_by_quadrature(delta: float) -> None:
    """δ(ε) of one step is an integral; the accountant's ε must put it at δ, from above."""
    rate, noise, k = 0.2, 0.9, 3
    value = spent(rate, noise, 1, delta, k).value
    grid = np.linspace(-12, 15, 400_001)
    without = stats.norm.pdf(grid, 0, noise)
    weights = stats.binom.pmf(np.arange(k + 1), k, rate)
    inside = sum(w * stats.norm.pdf(grid, j, noise) for j, w in enumerate(weights))

    def hockey_stick(p: np.ndarray, q: np.ndarray) -> float:
        return float(np.trapezoid(np.maximum(p - math.exp(value) * q, 0.0), grid))

    worst = max(hockey_stick(inside, without), hockey_stick(without, inside))
    assert worst <= delta * (1 + 1e-6)
    assert worst >= delta * 0.995


@pytest.mark.parametrize(("k", "rate", "noise"), [(1, 0.01, 1.0), (4, 0.05, 0.8), (9, 0.3, 2.0)])
@pytest.mark.parametrize("side", ["remove", "add"])
def test_vectorised_inverse_equals_dp_accountings(k: int, rate: float, noise: float, side: str) -> None:
    ours = losses.single(rate, noise, k, side, 0.04)
    theirs = pld.privacy_loss_distribution.from_mixture_gaussian_mechanism(
        noise, list(range(k + 1)), stats.binom.pmf(range(k + 1), k, rate), value_discretization_interval=0.04
    )
    pmf = (theirs._pmf_remove if side == "remove" else theirs._pmf_add).to_dense_pmf()
    assert pmf._lower_loss == ours._lower_loss
    assert np.allclose(pmf._probs, ours._probs, atol=1e-11)


def test_one_example_equals_dp_accountings_accountant() -> None:
    event = dp_accounting.PoissonSampledDpEvent(0.02, dp_accounting.GaussianDpEvent(1.1))
    theirs = pld.PLDAccountant(value_discretization_interval=1e-3).compose(event, 500).get_epsilon(1e-5)
    assert spent(0.02, 1.1, 500, 1e-5).value == pytest.approx(theirs, abs=2e-3)


def test_events() -> None:
    assert accountant.event(0.1, 1.5) == dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(1.5))
    assert accountant.event(1.0, 3.0, 2) == dp_accounting.GaussianDpEvent(1.5)
    mixture = accountant.event(0.1, 1.5, 2)
    assert mixture.sensitivities == [0, 1, 2]
    assert np.allclose(mixture.sampling_probs, [0.81, 0.18, 0.01])


@pytest.mark.parametrize(("k", "rate"), [(5, 0.1), (400, 0.01), (1000, 0.5)])
def test_binomial_mixture_never_moves_mass_down(k: int, rate: float) -> None:
    sensitivities, weights = losses.binomial_mixture(k, rate)
    assert weights.sum() == pytest.approx(1.0)
    above = np.array([weights[sensitivities >= s].sum() for s in range(k + 1)])
    assert np.all(above >= stats.binom.sf(np.arange(k + 1) - 1, k, rate) * (1 - 1e-9) - 1e-30)


def test_group_route_of_replacement() -> None:
    """ε = ε₁ + ε₂ at δ = δ₁ + e^{ε₁}δ₂, compared with the even split by hand."""
    removed = spent(0.01, 1.0, 500, 1e-5, 2).value
    replaced = spent(0.01, 1.0, 500, 1e-5, 2, "replacement").value
    first = spent(0.01, 1.0, 500, 0.5e-5, 2).value
    second = spent(0.01, 1.0, 500, 0.5e-5 * math.exp(-first), 2).value
    assert removed < replaced <= first + second + 1e-6
    assert spent(0.01, 1.0, 500, 1e-5, 1, "replacement").value < replaced


def test_replacement_of_many_examples_stays_finite() -> None:
    large = spent(0.01, 1.0, 1000, 1e-5, 7, "replacement")
    assert 17.7 < large.value < 60.0
    assert math.isfinite(spent(PAPER_RATE, 0.2, 2000, 1e-5, 7, "replacement").value)


def test_composition_of_different_mechanisms() -> None:
    training, release = Mechanism(0.01, 1.0, 1000), Mechanism(1.0, 5.0, 1)
    both = epsilon([training, release], 1e-5).value
    assert max(spent(0.01, 1.0, 1000, 1e-5).value, spent(1.0, 5.0, 1, 1e-5).value) < both
    assert both < spent(0.01, 1.0, 1000, 5e-6).value + spent(1.0, 5.0, 1, 5e-6).value
    halves = epsilon([Mechanism(0.01, 1.0, 400), Mechanism(0.01, 1.0, 600)], 1e-5).value
    assert halves == pytest.approx(spent(0.01, 1.0, 1000, 1e-5).value, abs=2e-3)


def test_order_of_magnitudes_and_monotony() -> None:
    assert spent(0.01, 1.0, 0, 1e-5).value == 0.0
    values = [spent(0.01, noise, 1000, 1e-5).value for noise in (0.6, 0.8, 1.0, 2.0)]
    assert values == sorted(values, reverse=True)
    by_k = [spent(0.01, 1.0, 1000, 1e-5, k).value for k in (1, 2, 4, 8)]
    assert by_k == sorted(by_k)


def test_without_a_loss_distribution() -> None:
    tiny = spent(PAPER_RATE, 0.005, 20_000, 1e-5, 8)
    assert tiny.pld is None
    assert "too large" in tiny.notes["pld"]
    assert tiny.accountant == "Gaussian mechanism without amplification"
    assert tiny.value == pytest.approx(20_000 * (8 / 0.005) ** 2 / 2, rel=0.01)
    assert spent(PAPER_RATE, 0.03, 20_000, 1e-5).accountant == "PLD"


def test_nonsense_is_refused() -> None:
    for delta in (0.0, 1.0, 1e-20, float("nan")):
        with pytest.raises(UserError, match="delta"):
            spent(0.01, 1.0, 10, delta)


@pytest.mark.parametrize(("k", "neighbour", "change"), [(1, "removal", 1), (3, "removal", 3), (2, "replacement", 4)])
def test_without_sampling_no_accountant_says_less_than_the_closed_form(k: int, neighbour: str, change: int) -> None:
    found = epsilon([Mechanism(1.0, 9.0, 2)], 1e-5, k, neighbour)  # type: ignore[arg-type]
    exact = dp_accounting.get_epsilon_gaussian(9.0 / (change * np.sqrt(2)), 1e-5)
    assert exact * (1 - 1e-9) <= found.value <= exact * 1.001


@pytest.mark.parametrize(("rate", "noise", "k", "steps"), [(0.01, 0.9, 1, 50), (0.2, 2.0, 1, 50), (0.3, 12.0, 5, 40)])
def test_between_dp_accountings_lower_and_upper_bounds(rate: float, noise: float, k: int, steps: int) -> None:
    """Rounded down, a distribution of the loss gives a lower bound of ε: the accountant must not say less, nor much more."""

    def theirs(pessimistic: bool) -> float:
        grid = {"value_discretization_interval": 2e-4 if k == 1 else 4e-3, "use_connect_dots": pessimistic}
        if k == 1:
            one = pld.privacy_loss_distribution.from_gaussian_mechanism(
                noise, sampling_prob=rate, pessimistic_estimate=pessimistic, **grid
            )
        else:
            weights = list(stats.binom.pmf(range(k + 1), k, rate))
            one = pld.privacy_loss_distribution.from_mixture_gaussian_mechanism(
                noise, list(range(k + 1)), weights, pessimistic_estimate=pessimistic, **grid
            )
        return float(one.self_compose(steps).get_epsilon_for_delta(1e-5))

    lower, upper = theirs(False), theirs(True)
    for rough, room in ((False, 1.0005), (True, 1.01)):
        assert lower <= epsilon([Mechanism(rate, noise, steps)], 1e-5, k, rough=rough).value <= upper * room


def test_composition_in_short_arrays_equals_dp_accountings() -> None:
    """The same distribution of one step, composed by dp-accounting in its longer arrays."""
    one = losses.single(0.03, 0.8, 3, "remove", 2e-3)
    theirs = one.self_compose(700)
    ours = composed.self_composed(one, 700)
    assert ours.size < theirs.size
    tail = composed.Tail(ours)
    for delta in (1e-3, 1e-6, 1e-9):
        assert tail.epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-6)
    one = losses.single(0.03, 0.8, 3, "remove", 0.3)
    for delta in (0.5, 1e-3, 1e-9, 1e-30):
        assert composed.Tail(one).epsilon(delta) == pytest.approx(one.get_epsilon_for_delta(delta), rel=1e-9)


@pytest.mark.parametrize("target", [0.05, 1.0, 8.0, 300.0])
@pytest.mark.parametrize(("k", "neighbour"), [(1, "removal"), (1, "replacement"), (12, "replacement")])
def test_calibrated_noise_is_enough_and_hardly_more(target: float, k: int, neighbour: str) -> None:
    sigma = calibrate(target, 0.02, 300, 1e-6, k, neighbour)  # type: ignore[arg-type]
    assert spent(0.02, sigma, 300, 1e-6, k, neighbour).value <= target
    assert spent(0.02, sigma * (1 - 5e-4), 300, 1e-6, k, neighbour).value > target
