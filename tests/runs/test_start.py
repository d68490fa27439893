"""Training that begins from a public model: what moves, what the statement says, and what is refused."""

import signal
from pathlib import Path

import pytest
import torch

from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.errors import UserError
from tamedit.privacy.settings import Privacy
from tamedit.runs.artifact import load_model
from tamedit.runs.recipe import make_config
from tamedit.runs.request import TrainRequest
from tamedit.runs.start import load_initial_run, origin_of
from tamedit.training.loop import Trainer
from tamedit.training.run import RunOutcome, Watch, train
from tamedit.windows.examples import Examples

SERIES = simulate(meters=6, hours=600, seed=8)
PRIVACY = Privacy(noise_multiplier=1.0, unit="week", test_only=True)


def begun(
    run: Path,
    folder: Path,
    *,
    steps: int = 3,
    resume: bool = False,
    private: bool = True,
    watch: Watch | None = None,
    **chosen: object,
) -> RunOutcome:
    initial = load_initial_run(run, public=True, private=private, **chosen)  # type: ignore[arg-type]
    privacy = PRIVACY if private else None
    config = make_config(
        SERIES, "fleet", scale="smoke", steps=steps, window=48, privacy=privacy, batch_size=6, start=initial.start
    )
    return train(split_by_time(SERIES), config, folder, initial=initial, resume=resume, watch=watch)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_model(folder)[0].named_parameters())


def test_the_first_weights_are_the_initial_ones(
    smoke_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    original = Trainer.run
    monkeypatch.setattr(
        Trainer,
        "run",
        lambda self, *given: (
            seen.append({n: p.detach().clone() for n, p in self.network.named_parameters()}) or original(self, *given)
        ),
    )
    begun(smoke_run, tmp_path / "run")
    expected = weights(smoke_run)
    assert seen[0].keys() == expected.keys()
    for name, value in seen[0].items():
        torch.testing.assert_close(value, expected[name], rtol=0, atol=0)


@pytest.mark.parametrize("tuning", ["modulation", "low_rank"])
@pytest.mark.parametrize("private", [True, False])
def test_partial_tuning_moves_what_it_says(smoke_run: Path, tmp_path: Path, tuning: str, private: bool) -> None:
    begun(smoke_run, tmp_path / "run", tuning=tuning, rank=2, private=private)
    before, after = weights(smoke_run), weights(tmp_path / "run")
    assert before.keys() == after.keys(), "a tuned model is a plain network"
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    if tuning == "modulation":
        assert moved
        assert all("adaln" in name or name.startswith("output") for name in moved)
    else:
        assert all(name.endswith("weight") for name in moved), "corrections have no bias"
        change = after["blocks.0.mlp.0.weight"] - before["blocks.0.mlp.0.weight"]
        assert torch.linalg.matrix_rank(change.detach(), rtol=1e-4) == 2


def test_the_statement_says_what_was_public(smoke_run: Path, tmp_path: Path) -> None:
    begun(smoke_run, tmp_path / "run")
    statement = load_model(tmp_path / "run")[1].privacy
    assert "the model that training began from" in statement["statement"]
    assert "the user says is public or simulated" in statement["statement"]


def test_a_resumed_run_is_the_same(smoke_run: Path, tmp_path: Path) -> None:
    begun(smoke_run, tmp_path / "whole", steps=4, tuning="low_rank", rank=2)

    def stop(step: int, network: torch.nn.Module, examples: Examples) -> None:
        if step == 2:
            signal.raise_signal(signal.SIGINT)

    assert not begun(smoke_run, tmp_path / "broken", steps=4, watch=stop, tuning="low_rank", rank=2).finished
    begun(smoke_run, tmp_path / "broken", steps=4, tuning="low_rank", rank=2, resume=True)
    whole, broken = weights(tmp_path / "whole"), weights(tmp_path / "broken")
    for name, value in whole.items():
        torch.testing.assert_close(broken[name], value, rtol=0, atol=0)


def test_a_beginning_that_is_not_public_is_refused(smoke_run: Path) -> None:
    with pytest.raises(UserError, match="public=True"):
        load_initial_run(smoke_run, private=True)
    assert load_initial_run(smoke_run, private=False).start.origin == "not public"


def test_no_way_round_the_refusal(smoke_run: Path, tmp_path: Path) -> None:
    initial = load_initial_run(smoke_run, private=False)
    config = make_config(SERIES, "fleet", scale="smoke", steps=1, window=48, privacy=PRIVACY, start=initial.start)
    with pytest.raises(UserError, match="not known to be public"):
        train(split_by_time(SERIES), config, tmp_path / "run", initial=initial)


def test_a_chain_keeps_its_weakest_link(smoke_run: Path, tmp_path: Path) -> None:
    initial = load_initial_run(smoke_run, private=False)
    config = make_config(SERIES, "fleet", scale="smoke", steps=1, window=48, start=initial.start)
    train(split_by_time(SERIES), config, tmp_path / "run", initial=initial)
    with pytest.raises(UserError, match="public=True"):
        load_initial_run(tmp_path / "run", public=True, private=True)


def test_a_model_is_no_more_public_than_what_it_began_from(smoke_run: Path) -> None:
    begun = load_initial_run(smoke_run, public=True).start
    for source, said, before, origin in (
        ("etth1", False, None, "public"),
        ("etth1", False, "said to be public", "said to be public"),
        ("etth1", True, "not public", "not public"),
        ("homes.csv", True, "public", "said to be public"),
        ("homes.csv", False, "public", "not public"),
    ):
        start = before and begun.model_copy(update={"origin": before})
        config = make_config(SERIES, "fleet", window=48).model_copy(update={"source": source, "start": start})
        assert origin_of(config, said=said) == origin


def test_another_form_is_refused(smoke_run: Path, tmp_path: Path) -> None:
    initial = load_initial_run(smoke_run, public=True)
    config = make_config(SERIES, "fleet", scale="smoke", steps=1, window=48, anchor="none", start=initial.start)
    with pytest.raises(UserError, match="anchor: free, but this run has none"):
        train(split_by_time(SERIES), config, tmp_path / "run", initial=initial)
    with pytest.raises(UserError, match="exclude each other"):
        TrainRequest(size="tiny", init=initial)
    plain = make_config(SERIES, "fleet", scale="smoke", steps=1, window=48, start=initial.start)
    with pytest.raises(UserError, match="name it again with `init`"):
        train(split_by_time(SERIES), plain, tmp_path / "other")


def test_a_run_is_public_by_someones_word_alone(smoke_run: Path) -> None:
    """Nobody can know it of a real household."""
    assert load_initial_run(smoke_run).start.origin == "not public"
    assert load_initial_run(smoke_run, public=True).start.origin == "said to be public"
