"""Every mask scheme against what SPEC says of it, and no mask knows its neighbours."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tamedit.errors import UserError
from tamedit.streams import example_keys, uniforms
from tamedit.windows.masks import SCHEMES, MaskConfig, draw_masks, task_config, without_reconstruction

COUNT = 400


def drawn(name: str, length: int, seed: int = 0) -> np.ndarray:
    keys = example_keys(seed, "masks", 0, np.arange(COUNT, dtype=np.int64))
    return draw_masks(keys, length, task_config(name)).numpy()


@given(st.sampled_from(sorted(SCHEMES)), st.integers(8, 200), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_every_scheme_hides_something_and_repeats(name: str, length: int, seed: int) -> None:
    mask = drawn(name, length, seed)
    assert mask.shape == (COUNT, length)
    assert (~mask).any(axis=1).all()
    assert np.array_equal(mask, drawn(name, length, seed))


@pytest.mark.parametrize("length", [96, 168])
def test_random_hides_a_uniform_share_between_a_tenth_and_a_half(length: int) -> None:
    share = 1 - drawn("random", length).mean(axis=1)
    assert share.min() >= 0.1 - 0.5 / length
    assert share.max() <= 0.5 + 0.5 / length
    assert abs(share.mean() - 0.3) < 4 * (0.4 / np.sqrt(12)) / np.sqrt(COUNT)
    assert abs(share.std() - 0.4 / np.sqrt(12)) < 0.02
    assert abs((~drawn("random", length)).mean(axis=0) - 0.3).max() < 0.12  # every step equally likely


@pytest.mark.parametrize(("length", "longest"), [(96, 72), (168, 96), (20, 15)])
def test_block_hides_the_end(length: int, longest: int) -> None:
    mask = drawn("block", length)
    hidden = (~mask).sum(axis=1)
    assert (mask == (np.arange(length) < (length - hidden)[:, None])).all()
    assert hidden.min() == min(24, longest)
    assert hidden.max() == longest


def test_stride_hides_every_second_of_four_to_eight_equal_blocks() -> None:
    mask = drawn("stride", 168)
    changes = (mask[:, 1:] != mask[:, :-1]).sum(axis=1)
    assert set(changes) == {3, 4, 5, 6, 7}  # n blocks change n − 1 times
    first_hidden = (~mask[:, 0]).mean()
    assert 0.4 < first_hidden < 0.6
    row = mask[changes == 3][0]
    assert np.array_equal(np.flatnonzero(row[1:] != row[:-1]) + 1, [42, 84, 126])


@pytest.mark.parametrize(("name", "low", "high"), [("gap", 1 / 7, 5 / 7), ("few", 4 / 7, 13 / 14)])
def test_gap_hides_one_stretch_and_few_shows_one(name: str, low: float, high: float) -> None:
    mask = drawn(name, 168)
    hidden = 1 - mask.mean(axis=1)
    assert hidden.min() >= low - 0.5 / 168
    assert hidden.max() <= high + 0.5 / 168
    assert abs(hidden.mean() - (low + high) / 2) < 4 * (high - low) / np.sqrt(12 * COUNT)
    stretch = ~mask if name == "gap" else mask
    assert ((np.diff(stretch.astype(int), axis=1, prepend=0) == 1).sum(axis=1) == 1).all()
    first = stretch.argmax(axis=1)
    room = 168 - stretch.sum(axis=1)
    assert (first == 0).any()
    assert (first == room).any()  # it may lie at either end


def test_reconstruction_hides_all() -> None:
    assert not drawn("reconstruction", 50).any()


def test_a_mask_does_not_depend_on_the_batch() -> None:
    examples = np.arange(60, dtype=np.int64)
    config = MaskConfig()
    whole = draw_masks(example_keys(1, "masks", 7, examples), 96, config)
    alone = torch.cat([draw_masks(example_keys(1, "masks", 7, examples[i : i + 1]), 96, config) for i in range(60)])
    assert torch.equal(whole, alone)


def test_schemes_are_drawn_by_their_weights() -> None:
    config = MaskConfig(weights={"reconstruction": 3.0, "block": 1.0})
    mask = draw_masks(example_keys(0, "masks", 0, np.arange(4000, dtype=np.int64)), 96, config)
    assert abs((~mask.any(1)).float().mean() - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 4000)


@pytest.mark.parametrize(
    "wrong", [{"weights": {"nothing": 1.0}}, {"weights": {}}, {"ratio": (0.5, 0.1)}, {"blocks": (0, 3)}]
)
def test_wrong_ranges_are_refused(wrong: dict) -> None:
    with pytest.raises((UserError, ValueError)):
        MaskConfig(**wrong)


def test_the_steps_of_random_masks_follow_their_own_uniforms() -> None:
    u = uniforms(example_keys(0, "masks", 0, np.arange(3, dtype=np.int64)), 11)
    mask = SCHEMES["random"](u, 10, MaskConfig())
    for row, own in zip(mask, u, strict=True):
        hidden = int((~row).sum())
        assert set(torch.nonzero(~row).ravel().tolist()) == set(own[1:].argsort()[:hidden].tolist())


def test_without_reconstruction_something_is_always_observed() -> None:
    keys = example_keys(0, "masks", 0, np.arange(2000))
    assert (~draw_masks(keys, 48, MaskConfig()).any(dim=1)).any()
    assert draw_masks(keys, 48, without_reconstruction(MaskConfig())).any(dim=1).all()


@pytest.mark.parametrize("horizon", [1, 12, 24, 40])
def test_a_forecast_hides_its_horizon_and_nothing_else(horizon: int) -> None:
    mask = draw_masks(example_keys(0, "masks", 0, np.arange(20)), 48, task_config("block", horizon)).numpy()
    assert (mask == (np.arange(48) < 48 - horizon)).all()
