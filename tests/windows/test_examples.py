"""What the network may see never depends on what is hidden, nor on any other example."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tamedit.data.scaling import Scaling
from tamedit.streams import example_keys
from tamedit.windows.batch import Batch
from tamedit.windows.examples import ANCHOR_FEATURES, ExampleConfig, build_batch, build_context, pad_channels
from tamedit.windows.masks import MaskConfig, draw_masks

INSTANCE = Scaling("instance", (1.0, 2.0), (3.0, 4.0), (0.1, 0.1), 0.1, "public")
GLOBAL = Scaling("public", (1.0, 2.0), (3.0, 4.0), (0.0, 0.0), 0.0, "public")
FORMS = [(INSTANCE, ExampleConfig(period=6)), (GLOBAL, ExampleConfig(anchor="none", residual_limit=None))]


def make(
    seed: int, batch: int = 6, length: int = 30, missing: float = 0.1
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(batch, length, 2, generator=generator) * 3 + 1
    values[torch.rand(values.shape, generator=generator) < missing] = torch.nan
    mask = draw_masks(example_keys(seed, "masks", 0, np.arange(batch, dtype=np.int64)), length, MaskConfig())
    return values, mask, torch.randn(batch, length, 3, generator=generator)


def tensors(batch: Batch) -> list[torch.Tensor]:
    seen = batch.context
    return [seen.values, seen.observed, seen.anchor, seen.covariates, seen.channels]


@pytest.mark.parametrize(("scaling", "config"), FORMS, ids=["anchored", "paper"])
@given(seed=st.integers(0, 10_000), garbage=st.sampled_from([0.0, 1e6, -1e30, float("inf"), float("nan")]))
@settings(max_examples=30, deadline=None)
def test_hidden_values_change_nothing_that_is_seen(
    scaling: Scaling, config: ExampleConfig, seed: int, garbage: float
) -> None:
    values, mask, covariates = make(seed)
    before = build_batch(values, mask, covariates, scaling, config)
    after = build_batch(torch.where(mask[:, :, None], values, garbage), mask, covariates, scaling, config)
    for old, new in zip(tensors(before), tensors(after), strict=True):
        assert torch.equal(old, new)


@pytest.mark.parametrize(("scaling", "config"), FORMS, ids=["anchored", "paper"])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_the_units_and_the_residual_lead_back_to_the_data(scaling: Scaling, config: ExampleConfig, seed: int) -> None:
    values, mask, covariates = make(seed)
    loose = config.model_copy(update={"residual_limit": None})
    batch = build_batch(values, mask, covariates, scaling, loose)
    hidden, observed = batch.hidden > 0, batch.context.observed > 0
    _, coordinates = build_context(values, observed, covariates, scaling, loose)
    back = coordinates.from_z(batch.residual[:, None])[:, 0]
    torch.testing.assert_close(back[hidden], values[hidden], rtol=1e-4, atol=1e-4)
    assert torch.equal(hidden, ~mask[:, :, None] & torch.isfinite(values))
    assert not (hidden & (batch.context.observed > 0)).any()
    assert (batch.residual[~hidden] == 0).all()
    assert all(torch.isfinite(tensor).all() for tensor in tensors(batch))


def test_examples_do_not_mix() -> None:
    values, mask, covariates = make(5)
    whole = build_batch(values, mask, covariates, *FORMS[0])
    for index in range(len(values)):
        one = slice(index, index + 1)
        others = torch.arange(len(values)) != index
        strange = torch.where(others[:, None, None], 1e3 * values.flip(0) + 7, values)
        among = build_batch(strange, torch.where(others[:, None], mask.flip(0), mask), covariates, *FORMS[0])
        assert torch.equal(whole[one].residual, among[one].residual)
        assert all(torch.equal(a[one], b[one]) for a, b in zip(tensors(whole), tensors(among), strict=True))
        # Alone, matrix products are summed in another order: the same to rounding.
        alone = build_batch(values[one], mask[one], covariates[one], *FORMS[0])
        for a, b in zip((whole[one].residual, *tensors(whole[one])), (alone.residual, *tensors(alone)), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_a_nearly_constant_window_does_not_rule() -> None:
    values = torch.zeros(1, 30, 2)
    values[:, 20:] = 1e4
    mask = torch.ones(1, 30, dtype=torch.bool)
    mask[:, 20:] = False
    batch = build_batch(values, mask, torch.zeros(1, 30, 0), *FORMS[0])
    assert batch.residual.abs().max() == FORMS[0][1].residual_limit


def test_padding_is_neither_seen_nor_asked_for() -> None:
    values, mask, covariates = make(1)
    padded = pad_channels(build_batch(values, mask, covariates, *FORMS[0]), 5)
    assert padded.residual.shape[2] == 5
    for tensor in (
        padded.residual,
        padded.hidden,
        padded.context.values,
        padded.context.observed,
    ):
        assert not tensor[:, :, 2:].any()
    features = padded.context.anchor.unflatten(-1, (ANCHOR_FEATURES["free"], 5))
    assert features[..., :2].any()
    assert not features[..., 2:].any()
    assert padded.context.channels.tolist() == [[1, 1, 0, 0, 0]] * len(values)
