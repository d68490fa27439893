"""Units of a run: where zero is a convention, it makes no difference where it lies."""

import numpy as np
import pytest
import torch

from tamedit.data.catalogue import SOURCES
from tamedit.data.reader import read
from tamedit.data.scaling import RELATIVE_FLOOR, Scaling
from tamedit.data.series import Series
from tamedit.privacy.settings import Privacy
from tamedit.runs.folder import DataFacts
from tamedit.runs.recipe import make_config
from tamedit.training.scales import make_scaling

KELVIN = 273.15


def weather(zero: float) -> Series:
    """Sixty days of a temperature with a daily cycle, and of a pressure that is the same at any zero of the temperature."""
    hours, draws = np.arange(1440), np.random.default_rng(0)
    temperature = 15 + 5 * np.sin(2 * np.pi * hours / 24) + 2 * draws.standard_normal(len(hours))
    pressure = 1013 + 8 * np.sin(2 * np.pi * hours / 240) + draws.standard_normal(len(hours))
    return read(np.stack([temperature + zero, pressure], axis=1))


def scales(series: Series, scaling: Scaling) -> torch.Tensor:
    """[windows, channels] of every day."""
    values = torch.from_numpy(series.values.reshape(-1, 24, 2)).float()
    return scaling.units(values, torch.ones_like(values, dtype=torch.bool))[1][:, 0]


@pytest.mark.parametrize("epsilon", [None, 8.0])
def test_a_far_zero_does_not_drown_the_cycle(epsilon: float | None) -> None:
    """Without privacy the reference is measured; with privacy it is a public fact."""
    privacy = Privacy(epsilon=epsilon) if epsilon else None
    found = []
    for zero in (0.0, KELVIN):
        series = weather(zero)
        config = make_config(series, "weather", privacy=privacy)
        facts = DataFacts(typical_level=(15.0 + zero, 1013.0), typical_scale=(5.0, 6.0)) if privacy else DataFacts()
        found.append(scales(series, make_scaling(config, facts, series)))
    celsius, kelvin = found
    deviation = np.hypot(5 / np.sqrt(2), 2)  # of a day's temperatures
    assert (kelvin[:, 0] < 1.4 * deviation).all()  # a tenth of 288 would be 7 times as much
    torch.testing.assert_close(kelvin[:, 0], celsius[:, 0], rtol=0.1, atol=0)
    assert (kelvin[:, 1] < 10).all()  # a tenth of 1013 would be 101
    torch.testing.assert_close(kelvin[:, 1], celsius[:, 1])


def test_a_load_has_a_zero_that_means_nothing() -> None:
    """The relative floor stays whole for every named source: their levels are within a few scales of 0."""
    for name, source in SOURCES.items():
        channels = len(source.typical_level)
        series = read(np.random.default_rng(0).random((200, channels)))
        scaling = make_scaling(make_config(series, name), DataFacts(), series)
        assert scaling.relative_floor == (RELATIVE_FLOOR,) * channels, name


def test_one_glitch_does_not_set_the_floor() -> None:
    """Nor one large meter: the floor follows what usual windows spread."""
    clean = 0.5 + 0.1 * np.sin(np.arange(900) / 4)
    glitch = clean.copy()
    glitch[300] = 99_999.0
    panel = np.stack([clean, clean, clean, 2000 * clean])[:, :, None]
    floors = []
    for values in (clean, glitch, panel):
        series = read(values)
        floors.append(make_scaling(make_config(series, "homes", window=48), DataFacts(), series).floor[0])
    assert floors[0] == pytest.approx(0.3 * clean.std(), rel=0.01)
    assert max(floors[1:]) < 4 * floors[0]


@pytest.mark.parametrize("size", [1.0, 1e-5, 1e-8, 1e-12])
def test_units_follow_small_readings(size: float) -> None:
    series = read((size * (0.5 + 0.1 * np.sin(np.arange(900) / 4))).astype(np.float32))
    scaling = make_scaling(make_config(series, "homes", window=48), DataFacts(), series)
    values = torch.from_numpy(series.values[:48])[None]
    _, scale = scaling.units(values, torch.ones_like(values, dtype=torch.bool))
    assert scale.item() / size == pytest.approx(0.1 / np.sqrt(2), rel=0.25)
