"""The free distribution against a slow mixture that anyone can read, and what it promises of every window."""

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tamedit.data.scaling import Scaling
from tamedit.windows.anchor import linear_interpolation
from tamedit.windows.free_distribution import COMPONENTS, DEFAULT, FreeDistribution, free_distribution

SETTING = DEFAULT


def distribution(values: torch.Tensor, observed: torch.Tensor, period: int, floor: float = 0.0) -> FreeDistribution:
    count = values.shape[2]
    scaling = Scaling("instance", (0.0,) * count, (1.0,) * count, (floor,) * count, (0.0,) * count, "none")
    return free_distribution(values, observed, period, *scaling.units(values, observed))


def logistic(x: np.ndarray) -> np.ndarray:
    return stats.logistic.cdf(x)


class Slow:
    """One window and channel in its own units, cell by cell, as the module's text has it. Season shorter than the window."""

    def __init__(self, x: np.ndarray, seen: np.ndarray, period: int) -> None:
        self.x, self.where, self.period, self.length = x, np.flatnonzero(seen), period, len(x)
        self.hour = max(period / 24, 1.0)
        ordered, side = sorted(x[self.where]), -(-len(self.where) // 20)
        self.width = np.full(len(x), np.nan)
        for j in self.where:
            rank = ordered.index(x[j])
            around = ordered[min(rank + side, len(ordered) - 1)] - ordered[max(rank - side, 0)]
            self.width[j] = np.clip(SETTING.kernel * around, *SETTING.widths)

    def weights(self, t: int, gap: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """The observed cells more than `gap` steps away from t, and the weight of each by kernel component."""
        cells = np.array([j for j in self.where if abs(j - t) > gap], dtype=int)
        apart = np.abs(cells - t).astype(float)
        around = np.minimum(apart % self.period, self.period - apart % self.period)
        same = np.exp(-0.5 * (around / max(SETTING.hours * self.period / 24, 0.5)) ** 2)
        every = {
            "recent": same * np.exp(-apart / self.period / SETTING.days),
            "near": (1 + (apart / SETTING.steps) ** 2) ** -1.5,
        }
        return {name: (cells, weight) for name, weight in every.items()}

    @cache  # noqa: B019
    def profile(self, t: int) -> float:
        cells = [j for j in self.where if abs(j - t) >= self.period / 2]
        every, weight = self.weights(t, -1)["recent"]
        kept = np.isin(every, cells)
        return float((self.x[every] * weight)[kept].sum() / (weight[kept].sum() + 0.1))

    @cache  # noqa: B019
    def bridge(self, t: int, gap: int, which: int) -> tuple[float, float] | None:
        """Mean and spread, by conditioning a Gaussian process on all observed cells more than `gap` steps away."""
        cells = np.array([j for j in self.where if abs(j - t) > gap], dtype=int)
        if len(cells) == 0:
            return None
        base = [0.0 if which == 0 else self.profile(s) for s in range(self.length)]
        memory = SETTING.memory[which] * self.hour
        among = np.exp(-np.abs(cells[:, None] - cells) / memory)
        towards = np.exp(-np.abs(cells - t) / memory)
        solved = np.linalg.solve(among, towards)
        deviations = np.array([self.x[j] - base[j] for j in cells])
        return base[t] + float(solved @ deviations), float(np.sqrt(1 - solved @ towards))

    @cache  # noqa: B019
    def law(self, gap: int, which: int) -> float:
        """The scale of the errors, in spreads."""
        found = [(j, self.bridge(j, gap, which)) for j in self.where]
        error = np.array([(self.x[j] - one[0]) / one[1] for j, one in found if one is not None])
        return (np.abs(error).sum() + 1) / (len(error) + 1) / (2 * np.log(2))

    def shares(self, number: int) -> np.ndarray:
        gap = round(SETTING.gaps[number] * self.hour)
        rows = []
        for t in self.where:
            own = self.x[t]
            row = []
            for cells, weight in self.weights(t, gap).values():
                bell = stats.logistic.pdf((own - self.x[cells]) / self.width[cells]) / self.width[cells]
                row.append(float((bell * weight).sum() / weight.sum()) if len(cells) else 0.0)
            for which in range(2):
                mean, spread = self.bridge(t, gap, which) or (0.0, 1.0)
                scale = self.law(gap, which) * spread
                row.append(stats.logistic.pdf((own - mean) / scale) / scale)
            width = 1.5 / (2 * np.log(2))
            rows.append(np.array(row) + SETTING.broad * stats.logistic.pdf(own / width) / width + 1e-9)
        prior = np.array(SETTING.prior[number]) / np.sum(SETTING.prior[number])
        share = prior
        for _ in range(SETTING.rounds):
            held = sum(share * row / (share * row).sum() for row in rows)
            share = (held + SETTING.strength * prior) / (len(rows) + SETTING.strength)
        return share

    def number(self, t: int) -> int:
        nearest = min(abs(j - t) for j in self.where if j != t)
        return sum(nearest > reach * self.hour for reach in SETTING.reach)

    def cumulative(self, t: int, at: np.ndarray) -> np.ndarray:
        number = self.number(t)
        share = dict(zip(COMPONENTS, self.shares(number), strict=True))
        total = np.zeros_like(at)
        for name, (cells, weight) in self.weights(t, 0).items():
            kernels = logistic((at[:, None] - self.x[cells]) / self.width[cells])
            total += share[name] * (kernels * weight).sum(1) / weight.sum()
        for which, name in enumerate(COMPONENTS[2:]):
            mean, spread = self.bridge(t, 0, which)
            scale = self.law(round(SETTING.gaps[number] * self.hour), which) * spread
            total += share[name] * logistic((at - mean) / scale)
        broad = logistic(at / (1.5 / (2 * np.log(2))))
        return (1 - SETTING.broad) * total + SETTING.broad * broad


@pytest.mark.parametrize(("length", "period", "seed"), [(60, 12, 0), (72, 24, 1), (40, 7, 2)])
def test_it_is_the_slow_mixture_and_under_it_z_is_normal(length: int, period: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.exp(rng.normal(size=length) / 2) + np.sin(2 * np.pi * np.arange(length) / period)
    seen = rng.random(length) < 0.7
    seen[-period:] = False
    x = (x - x[seen].mean()) / x[seen].std()
    values, observed = torch.tensor(x, dtype=torch.float32)[None, :, None], torch.from_numpy(seen)[None, :, None]
    found = free_distribution(values, observed, period, torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    slow = Slow(x, seen, period)
    grid = np.linspace(-6, 8, 4001)
    for t in (3, length - 1):
        truth = slow.cumulative(t, grid)
        drawn = np.interp(rng.random(4000), truth, grid)
        # The table has sharpened z; what is left between knots is straight in z, not in F.
        sharp = SETTING.sharpen[slow.number(t)]
        assert np.abs(stats.norm.cdf(at_cell(found, t, grid) / sharp) - truth).max() < 0.03
        assert stats.kstest(at_cell(found, t, drawn) / sharp, "norm").statistic < 0.04


def at_cell(found: FreeDistribution, t: int, x: np.ndarray) -> np.ndarray:
    """z of many values of one cell."""
    tables = (table[:, t : t + 1].expand(len(x), 1, 1, -1) for table in (found.knots, found.z))
    units = (one.expand(len(x), 1, 1) for one in (found.level, found.scale))
    return FreeDistribution(*tables, *units).to_z(torch.from_numpy(x).float()[:, None, None]).flatten().numpy()


@st.composite
def windows(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor, int]:
    batch, channels = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    length = draw(st.one_of(st.integers(2, 40), st.sampled_from([168])))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    kind = draw(st.sampled_from(["normal", "ties", "constant", "skewed", "ramp", "far"]))
    values = {
        "normal": rng.normal(size=(batch, length, channels)),
        "ties": rng.integers(0, 3, (batch, length, channels)),
        "constant": np.full((batch, length, channels), 4.0),
        "skewed": np.exp(2 * rng.normal(size=(batch, length, channels))),
        "ramp": np.arange(length)[None, :, None] + 0.01 * rng.normal(size=(batch, length, channels)),
        "far": 50 + rng.normal(size=(batch, length, channels)),
    }[kind]
    cells = draw(st.sampled_from([0, 1, 2, length // 10, length // 2, length]))
    ranks = rng.random(values.shape).argsort(1).argsort(1)
    period = draw(st.sampled_from([1, 2, 7, 24, 96, length, 1000]))
    return torch.from_numpy(values.astype(np.float32)), torch.from_numpy(ranks < cells), period


@given(windows(), st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_there_and_back(case: tuple[torch.Tensor, torch.Tensor, int], seed: int) -> None:
    values, observed, period = case
    found = distribution(values, observed, period, floor=0.01)
    assert torch.isfinite(found.z).all()
    assert torch.isfinite(found.knots).all()
    assert (found.knots.diff(dim=-1) > 0).all()
    assert (found.z.diff(dim=-1) >= 0).all()
    generator = torch.Generator().manual_seed(seed)
    x = found.level + found.scale * 3 * torch.randn(values.shape, generator=generator)
    for one in (x, torch.where(observed, values, found.level)):
        back = found.from_z(found.to_z(one)[:, None])[:, 0]
        rounding = 1e-6 * one.abs()
        assert ((back - one).abs() <= 1e-4 * found.scale + rounding).all()


@given(windows(), st.sampled_from([0.0, 1e6, -1e30, float("inf"), float("nan")]))
@settings(max_examples=15, deadline=None)
def test_neither_hidden_values_nor_other_examples_move_it(
    case: tuple[torch.Tensor, torch.Tensor, int], garbage: float
) -> None:
    values, observed, period = case
    found = distribution(values, observed, period)
    changed = torch.where(observed, values, garbage)
    changed[1:] = torch.where(observed[1:], -7 * values[1:] + 3, garbage)
    after = distribution(changed, observed, period)
    assert torch.equal(found.knots[:1], after.knots[:1])
    assert torch.equal(found.z[:1], after.z[:1])
    alone = distribution(values[:1], observed[:1], period)
    torch.testing.assert_close(found.z[:1], alone.z, rtol=1e-3, atol=1e-3)


def test_nothing_observed_is_a_broad_bell_at_the_reference_level() -> None:
    nothing = torch.zeros(2, 10, 1, dtype=torch.bool)
    level, scale = torch.full((2, 1, 1), 5.0), torch.full((2, 1, 1), 2.0)
    found = free_distribution(torch.full((2, 10, 1), torch.nan), nothing, 4, level, scale)
    centre = found.quantiles_in_units((0.5,))[..., 0] * scale + level
    torch.testing.assert_close(centre, torch.full((2, 10, 1), 5.0), rtol=0, atol=0.05)
    low, high = found.quantiles_in_units((0.25, 0.75)).unbind(-1)
    middle = (high - low) * found.scale
    assert ((middle > 2.0) & (middle < 6.0)).all(), "about 1.5 scales to either side hold half"


def test_a_smooth_series_follows_the_line_and_a_regular_one_its_season() -> None:
    step = torch.arange(168.0)
    generator = torch.Generator().manual_seed(0)
    smooth = torch.randn(168, generator=generator).cumsum(0)
    regular = 3 * torch.sin(2 * torch.pi * step / 24) + 0.1 * torch.randn(168, generator=generator)
    values = torch.stack([smooth, regular], -1)[None]
    observed = (torch.arange(168) % 3 != 1)[None, :, None].expand(1, 168, 2).clone()
    observed[:, 144:] = False
    found = distribution(values, observed, 24)
    low, centre, high = found.quantiles_in_units((0.1, 0.5, 0.9)).unbind(-1)
    middle, wide = centre * found.scale + found.level, (high - low) * found.scale
    hidden = ~observed[0, :140, 0]
    line = linear_interpolation(values, observed)
    assert (middle - line)[0, :140, 0][hidden].abs().mean() < 0.3
    assert (middle - values)[0, 144:, 1].abs().mean() < 0.3, "the next day repeats"
    assert wide[0, 160:, 0].mean() > 2 * wide[0, :140, 0][hidden].mean(), "far from readings less is known"


def test_no_gradient_and_no_rows() -> None:
    values = torch.randn(1, 12, 1, requires_grad=True)
    seen = torch.ones(1, 12, 1, dtype=torch.bool)
    found = free_distribution(values, seen, 4, torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    assert not found.z.requires_grad
    assert not found.knots.requires_grad
    none = free_distribution(values[:0], seen[:0], 4, torch.zeros(0, 1, 1), torch.ones(0, 1, 1))
    assert none.from_z(torch.zeros(0, 3, 12, 1)).shape == (0, 3, 12, 1)
