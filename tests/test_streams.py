"""Streams are functions of (seed, purpose, step, example, position) and behave like independent draws."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tamedit.streams import example_keys, normals, step_generator, uniforms

EXAMPLES = np.arange(500, dtype=np.int64)


@given(st.integers(0, 2**31), st.integers(0, 10**6), st.permutations(list(range(12))))
def test_an_example_draws_the_same_in_every_batch(seed: int, step: int, order: list[int]) -> None:
    examples = np.arange(12, dtype=np.int64)
    together = uniforms(example_keys(seed, "masks", step, examples), 7)
    shuffled = uniforms(example_keys(seed, "masks", step, examples[order]), 7)
    alone = uniforms(example_keys(seed, "masks", step, examples[5:6]), 7)
    assert torch.equal(shuffled, together[order])
    assert torch.equal(alone[0], together[5])


def test_streams_differ_by_seed_purpose_step_and_example() -> None:
    keys = np.concatenate(
        [
            example_keys(seed, purpose, step, EXAMPLES)
            for seed in (0, 1)
            for purpose in ("masks", "diffusion")
            for step in (0, 1)
        ]
    )
    assert len(np.unique(keys)) == len(keys)


def test_uniforms_are_uniform_and_independent_across_examples_steps_and_positions() -> None:
    draws = [uniforms(example_keys(3, "masks", step, EXAMPLES), 40).numpy() for step in range(4)]
    pooled = np.stack(draws)
    assert stats.kstest(pooled.ravel(), "uniform").pvalue > 1e-3
    assert pooled.min() > 0
    assert pooled.max() < 1
    for axis in range(3):
        first, second = np.moveaxis(pooled, axis, 0)[:2]
        correlation = np.corrcoef(first.ravel(), second.ravel())[0, 1]
        assert abs(correlation) < 5 / np.sqrt(first.size)


def test_normals_are_normal_and_uncorrelated() -> None:
    drawn = normals(example_keys(0, "diffusion", 0, EXAMPLES), 41).numpy()
    assert drawn.shape == (500, 41)
    assert stats.kstest(drawn.ravel(), "norm").pvalue > 1e-3
    correlation = np.corrcoef(drawn.T)
    assert np.abs(correlation - np.eye(41)).max() < 5.5 / np.sqrt(500)


def test_positions_of_a_stream_do_not_depend_on_how_many_are_asked_for() -> None:
    keys = example_keys(0, "masks", 0, EXAMPLES)
    assert torch.equal(uniforms(keys, 30)[:, 10:], uniforms(keys, 20, offset=10))


def test_step_generators_repeat_and_differ() -> None:
    first, again, other = (step_generator(0, "batches", step).integers(0, 1 << 30, 50) for step in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()
