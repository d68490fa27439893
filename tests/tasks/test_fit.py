"""`fit` refuses what cannot be, and plans what it is given time for."""

from pathlib import Path
from typing import Any

import pytest
from made_meter import meter

import tamedit as tame
from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import RunConfig


def test_fit_says_what_it_does_not_know(tmp_path: Path) -> None:
    frame = meter(300)
    with pytest.raises(TypeError, match=r"fit\(\) got an unexpected keyword argument 'privcy'"):
        tame.fit(frame, scale="smoke", steps=2, window=32, privcy=1)
    with pytest.raises(UserError, match="validation part has 45 rows"):
        tame.fit(frame, scale="smoke", steps=2, window=64)
    with pytest.raises(UserError, match="is a series already"):
        tame.fit(tame.read(frame), scale="smoke", time="time")
    with pytest.raises(UserError, match="say how to read a file"):
        tame.fit("etth1", time="date")
    tame.fit(frame, scale="smoke", steps=2, window=32, out=tmp_path / "run")
    with pytest.raises(UserError, match="already contains a run"):
        tame.fit(frame, scale="smoke", steps=2, window=32, out=tmp_path / "run")
    tame.fit(frame, scale="smoke", steps=2, window=32, out=tmp_path / "run", resume=True)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"batch_size": 0}, "batch_size=0 is not possible"),
        ({"steps": 0}, "steps=0 is not possible"),
        ({"window": 4}, "window=4 is not possible"),
        ({"window": 0}, "window=0 is not possible"),
        ({"period": 0}, "period=0 is not possible"),
        ({"anchor": "fre"}, "anchor='fre' is unknown; choose free or none"),
        ({"anchor": "fre", "init": "simulated"}, "anchor='fre' is unknown"),
        ({"operator": "tan"}, "operator='tan' is unknown; choose tanh"),
        ({"typical_level": "much", "typical_scale": 1.0}, "typical_level='much' is not a list of numbers"),
        ({"minutes": 5.0}, "`minutes` belongs to private training"),
        ({"minutes": -1.0, "privacy": Privacy(epsilon=8.0)}, "minutes=-1.0 is not possible"),
    ],
)
def test_fit_refuses_impossible_values_in_one_sentence(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as refused:
        tame.fit(meter(300), **({"scale": "smoke", "steps": 2, "window": 32} | wrong))
    assert "\n" not in str(refused.value)


def test_fewer_minutes_mean_fewer_examples_of_a_private_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    class Planned(Exception):
        pass

    def examples_of(minutes: float) -> int:
        def stop(split: object, config: RunConfig, *_: object, **__: object) -> None:
            raise Planned(config.training.steps * config.training.batch_size)

        monkeypatch.setattr("tamedit.training.requested.train", stop)
        with pytest.raises(Planned) as planned:
            tame.fit(
                simulate(meters=20, hours=1000, seed=0), privacy=Privacy(epsilon=8.0, unit="week"), minutes=minutes
            )
        return planned.value.args[0]

    assert examples_of(0.5) < examples_of(10.0)


@pytest.mark.parametrize(
    "chosen", [{"rank": 4}, {"tuning": "all"}, {"minutes": 10.0}, {"operator": "tanh", "bounds": "off"}]
)
def test_a_default_that_was_given_is_checked_too(chosen: dict[str, object]) -> None:
    """As on the command line: what would have no effect is refused, even where it is the default."""
    with pytest.raises(UserError, match=f"`{next(iter(chosen))}`"):
        tame.fit("no-such-file.csv", **chosen)  # type: ignore[arg-type]
