"""A private run that is refused leaves nothing behind that was derived from readings; an accepted one says what it inferred."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open

from tamedit.errors import UserError
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import Speed
from tamedit.runs.folder import CHECKPOINT
from tamedit.tasks.fit import fit
from tamedit.training.private import counted

SECRET = 77123.25  # a reading, and a piece of text that no file may contain


def homes() -> pd.DataFrame:
    times = pd.date_range("2023-01-01", periods=24 * 59, freq="1h")
    generator = np.random.default_rng(1)
    frames = [
        pd.DataFrame({"meter": f"m{number}", "time": times, "load": generator.gamma(2.0, 1.0, len(times))})
        for number in range(4)
    ]
    return pd.concat(frames, ignore_index=True)


def spoilt(how: str) -> pd.DataFrame:
    rows = homes().astype({"load": object})
    rows.loc[40, "load"] = SECRET
    if how == "text":
        rows.loc[40, "load"] = f"{SECRET} kWh"
    elif how == "infinite":
        rows.loc[40, "load"] = f"{SECRET:g}e300"
    elif how == "twice":
        rows = pd.concat(
            [rows, rows.iloc[[40]].assign(load=rows["load"].iloc[40] + 1.0)]
        )  # the same row twice would be read once
    elif how == "off the grid":
        rows.loc[41, "time"] += pd.Timedelta(minutes=7)
    return rows


@pytest.mark.parametrize("how", ["text", "infinite", "twice", "off the grid"])
def test_a_table_that_is_refused_leaves_nothing(how: str, tmp_path: Path) -> None:
    path = tmp_path / "homes.csv"
    spoilt(how).to_csv(path, index=False)
    with pytest.raises(UserError):
        fit(path, out=tmp_path / "run", scale="smoke", steps=2, window=24, privacy=Privacy(epsilon=8, unit="day"))
    assert {one.name for one in tmp_path.iterdir()} == {"homes.csv"}


def test_a_run_that_is_refused_later_leaves_its_charge_and_no_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the check before the count, as where there are far fewer examples than there could be."""
    monkeypatch.setattr(counted, "refuse_uncounted", lambda *_: None)
    path = tmp_path / "homes.csv"
    spoilt("whole").to_csv(path, index=False)
    privacy = Privacy(epsilon=1.0, noise_multiplier=0.2, unit="day")
    with pytest.raises(UserError, match="pays for no step"):
        fit(path, out=tmp_path / "run", scale="smoke", steps=2, window=24, privacy=privacy, speed=Speed(threads=1))
    left = [one for one in tmp_path.rglob("*") if one.is_file() and one != path]
    assert {one.name for one in left} == {"homes.privacy-ledger.jsonl", "ledger.jsonl"}
    for one in left:
        text = one.read_text()
        assert "77123" not in text
        assert "'m0'" not in text
        for line in map(json.loads, text.splitlines()):
            assert line.get("facts", {}).get("count", {"origin": "noisy"})["origin"] == "noisy"
            assert line.get("plan", {"examples": 2})["examples"] == 2


def test_what_was_inferred_from_rows_is_said_to_be_public_and_no_time_is_kept(tmp_path: Path) -> None:
    rows = homes()
    rows["time"] = rows["time"].dt.strftime("%d/%m/%Y %H:%M")
    rows["load"] = rows["load"].map(lambda value: f"{value:.3f}".replace(".", ","))
    rows.to_csv(tmp_path / "homes.csv", index=False, sep=";")
    chosen = {"scale": "smoke", "steps": 2, "window": 24, "privacy": Privacy(epsilon=8, unit="day", examples=150)}
    fit(tmp_path / "homes.csv", out=tmp_path / "run", speed=Speed(threads=1), **chosen)
    page = (tmp_path / "run" / "PRIVACY.md").read_text()
    for text in (json.loads((tmp_path / "run" / "model.json").read_text())["privacy"]["statement"], page):
        assert "how the table was read, inferred from its rows and assumed to be public" in text
        assert "The dates in column 'time' have the day first." in text
        assert "The decimal comma was understood in load." in text
        assert "The step between rows was taken to be 1 hour" in text
        assert "31/01/2023" not in text
    with safe_open(tmp_path / "run" / CHECKPOINT, framework="pt") as file:
        assert json.loads(file.metadata()["state"])["seconds"] == 0.0
    for one in (tmp_path / "run").iterdir():
        if one.suffix in (".json", ".jsonl", ".md"):
            assert 'seconds":' not in one.read_text().replace("frequency_seconds", "").replace("phase_seconds", "")


def test_what_is_stated_is_not_said_to_be_inferred(tmp_path: Path) -> None:
    homes().to_csv(tmp_path / "homes.csv", index=False)
    stated = {"time": "time", "id": "meter", "targets": ["load"], "frequency": "1h", "study": "2023-01-01/2023-03-01"}
    chosen = {"scale": "smoke", "steps": 1, "window": 24, "privacy": Privacy(epsilon=8, unit="day", examples=150)}
    fit(tmp_path / "homes.csv", out=tmp_path / "run", speed=Speed(threads=1), **chosen, **stated)
    assert "inferred from its rows" not in (tmp_path / "run" / "PRIVACY.md").read_text()
