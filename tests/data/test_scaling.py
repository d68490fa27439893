"""Units: per example, from observed cells only, always finite."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tamedit.data.reader import read
from tamedit.data.scaling import Scaling, fit_scaling
from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.errors import UserError


def two_channels() -> Series:
    return read(np.stack([np.arange(10.0), np.full(10, 4.0)], axis=1))


def instance(floor: float = 0.0, relative_floor: float = 0.1) -> Scaling:
    return fit_scaling(
        "instance", two_channels(), level=[5.0, 6.0], scale=[2.0, 3.0], floor=[floor] * 2, relative_floor=relative_floor
    )


def test_instance_against_numpy() -> None:
    generator = torch.Generator().manual_seed(0)
    values = 3 + 2 * torch.randn(7, 50, 2, generator=generator)
    observed = torch.rand(7, 50, 2, generator=generator) < 0.6
    level, scale = instance(floor=0.5).units(values, observed)
    assert level.shape == scale.shape == (7, 1, 2)
    for b in range(7):
        for k in range(2):
            cells = values[b, observed[b, :, k], k].double()
            expected = torch.sqrt(cells.var(correction=0) + 0.5**2 + (0.1 * cells.mean()) ** 2)
            torch.testing.assert_close(level[b, 0, k].double(), cells.mean(), rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(scale[b, 0, k].double(), expected, rtol=1e-5, atol=1e-5)


@settings(deadline=None, max_examples=60)
@given(
    hidden=st.sampled_from([float("nan"), float("inf"), -float("inf"), 1e38, 0.0]),
    size=st.sampled_from([0.0, 1e-30, 1.0, 1e30, 3e38]),
    share=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_hidden_cells_never_matter_and_units_are_finite(hidden: float, size: float, share: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = size * (2 * torch.rand(4, 12, 2, generator=generator) - 1)
    observed = torch.rand(4, 12, 2, generator=generator) < share
    scaling = instance()
    level, scale = scaling.units(torch.where(observed, values, 7.0), observed)
    other_level, other_scale = scaling.units(torch.where(observed, values, hidden), observed)
    assert torch.equal(level, other_level)
    assert torch.equal(scale, other_scale)
    assert torch.isfinite(level).all()
    assert torch.isfinite(scale).all()
    assert (scale > 0).all()


def test_nothing_observed_uses_the_reference() -> None:
    values = torch.full((1, 5, 2), float("nan"))
    observed = torch.zeros(1, 5, 2, dtype=torch.bool)
    level, scale = instance().units(values, observed)
    assert level.flatten().tolist() == [5, 6]
    assert scale.flatten().tolist() == [2, 3]


def test_examples_do_not_mix() -> None:
    values = torch.randn(6, 20, 2)
    observed = torch.rand(6, 20, 2) < 0.7
    scaling = instance()
    level, scale = scaling.units(values, observed)
    alone_level, alone_scale = scaling.units(values[2:3], observed[2:3])
    torch.testing.assert_close(level[2:3], alone_level, rtol=0, atol=0)
    torch.testing.assert_close(scale[2:3], alone_scale, rtol=0, atol=0)


def test_floors_hold_for_constant_windows() -> None:
    observed = torch.ones(1, 8, 2, dtype=torch.bool)
    constant = torch.full((1, 8, 2), 10.0)
    assert torch.allclose(instance(floor=0.3, relative_floor=0.0).units(constant, observed)[1], torch.tensor(0.3))
    assert torch.allclose(instance(relative_floor=0.1).units(constant, observed)[1], torch.tensor(1.0))
    assert (instance(relative_floor=0.0).units(torch.zeros(1, 8, 2), observed)[1] > 0).all()


def test_public_and_nonprivate() -> None:
    series = two_channels()
    public = fit_scaling("public", series, level=[1.0, 2.0], scale=3.0)
    level, scale = public.units(torch.randn(4, 6, 2), torch.ones(4, 6, 2, dtype=torch.bool))
    assert level[3].tolist() == [[1, 2]]
    assert scale[0].tolist() == [[3, 3]]
    assert public.origin == "public"
    assert public.warning() is None
    estimated = fit_scaling("nonprivate", series)
    np.testing.assert_allclose(estimated.level, [4.5, 4.0])
    np.testing.assert_allclose(estimated.scale, [np.arange(10).std(), 1.0])  # a constant channel is left as it is
    assert "no privacy guarantee" in (estimated.warning() or "")


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1e-8, 1.0, 1e20])
def test_small_readings_are_not_constant(size: float) -> None:
    """Currents in ampere or shares of a whole may be tiny; what counts is their spread beside their level."""
    values = size * np.stack([np.arange(10.0), np.full(10, 0.3), np.zeros(10)], axis=1)
    estimated = fit_scaling("nonprivate", read(values))
    np.testing.assert_allclose(estimated.scale, [size * np.arange(10).std(), 1.0, 1.0], rtol=1e-6)


def test_instance_never_looks_at_the_training_data() -> None:
    one = fit_scaling("instance", simulate(hours=100, seed=1))
    assert one == fit_scaling("instance", simulate(hours=100, seed=2))
    assert one.origin == "none"
    assert one.warning() is None


def test_round_trip_through_json() -> None:
    scaling = instance(floor=0.2)
    assert Scaling.from_dict(json.loads(json.dumps(scaling.to_dict()))) == scaling


def test_earlier_models_have_one_relative_floor() -> None:
    earlier = instance().to_dict() | {"relative_floor": 0.1}
    assert Scaling.from_dict(earlier) == instance()


def test_bad_arguments() -> None:
    series = two_channels()
    with pytest.raises(UserError, match="needs a level and a scale"):
        fit_scaling("public", series)
    with pytest.raises(UserError, match="'robust' is not known"):
        fit_scaling("robust", series)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="scale has 3 numbers but the series has 2 targets"):
        fit_scaling("public", series, level=0.0, scale=[1.0, 2.0, 3.0])
    with pytest.raises(UserError, match="above 0"):
        fit_scaling("public", series, level=0.0, scale=0.0)
    with pytest.raises(UserError, match="needs a public scale"):
        fit_scaling("instance", series, level=0.0)
    with pytest.raises(UserError, match="nothing is estimated"):
        fit_scaling("nonprivate", series, level=0.0, scale=1.0)
    with pytest.raises(UserError, match="floors must be 0 or above"):
        fit_scaling("instance", series, floor=-1.0)
