"""`tamedit fidelity` and `tamedit evaluate --generation` as a user and as a program meet them."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from support import Run
from tamedit.cli.fidelity_command import SAME, SAME_HOMES
from tamedit.data.simulate import simulate
from tamedit.evaluation.fidelity.measures import MEASURES
from tamedit.runs.folder import NOT_PRIVATE
from tamedit.tasks.model import Model


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("homes")
    homes = simulate(36, hours=24 * 7 * 4, seed=2, variety=0.3)
    for name, ends in {"real": (0, 12), "training": (12, 24), "synthetic": (24, 36)}.items():
        homes.select(range(*ends)).frame().to_parquet(place / f"{name}.parquet")
    return place


def test_two_files_are_enough(run: Run, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = tmp_path / "fidelity.html"
    names = [files / f"{name}.parquet" for name in ("synthetic", "real", "training")]
    code, out, err = run("fidelity", *names[:2], "--training", names[2], "--out", page)
    assert code == 0, err
    assert all(one.label in out for one in MEASURES)
    assert "not a guarantee" in out
    assert "They are not private" in out
    rows = [line for line in out.splitlines() if line.startswith(("│", "┃"))]
    assert len(rows) >= len(MEASURES)
    assert all(len(row) <= 80 and row[-1] in "│┃" for row in rows), "no column is cut"
    text = page.read_text()
    assert "This page is not private." in text
    assert text.count("data:image/svg+xml") == 2
    assert "not a guarantee" in text


def test_json_has_every_number(run: Run, files: Path) -> None:
    code, out, _ = run("fidelity", files / "synthetic.parquet", files / "real.parquet", "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found["scores"]) == {"real", "synthetic", "simulator", "independent hours"}
    assert set(found["scores"]["synthetic"]) == {one.name for one in MEASURES}
    assert found["homes"] == {"real": 12, "synthetic": 12, "simulator": 12, "independent hours": 12}
    assert found["leaks"] is None


def test_a_model_is_measured_over_the_dates_of_its_test_homes(
    run: Run, smoke_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "homes.csv"
    simulate(12, hours=24 * 7 * 30, seed=4).frame().to_csv(data, index=False)
    asked = {}

    def generate(self: Model, *, homes: int, start: str, days: int, seed: int, **others: object) -> pd.DataFrame:
        asked.update(homes=homes, start=start, days=days)
        made = simulate(homes, hours=24 * days, start=start, seed=seed + 1).frame()
        return made.rename(columns={"meter": "home"})

    monkeypatch.setattr(Model, "generate", generate)
    code, out, err = run(
        "evaluate", smoke_run, "--generation", "--homes", 11, "--days", 21, "--data", data, "--device", "cpu", "--json"
    )
    assert code == 0, err
    assert asked == {"homes": 11, "start": asked["start"], "days": 21}
    assert pd.Timestamp(asked["start"]) > pd.Timestamp("2023-01-01") + pd.Timedelta(weeks=30 * 0.8)
    found = json.loads(out)
    assert found["homes"]["synthetic"] == 11
    assert set(found["scores"]) == {"real", "synthetic", SAME, "simulator", "independent hours"}
    assert found["leaks"] is None
    assert found["note"].startswith(SAME_HOMES), "a split by time: the test homes were trained on"
    assert "keep whole homes out of training" in (smoke_run / NOT_PRIVATE / "fidelity.html").read_text()
    assert found["files"] == [str(smoke_run / NOT_PRIVATE / "fidelity.html")]
    (smoke_run / NOT_PRIVATE / "fidelity.html").unlink()


def test_homes_that_were_trained_on_are_no_ceiling(run: Run, files: Path) -> None:
    names = [files / f"{name}.parquet" for name in ("synthetic", "real", "real")]
    code, out, err = run("fidelity", *names[:2], "--training", names[2])
    assert code == 0, err
    assert SAME_HOMES in out
    assert "larm:" not in out
    assert " train " not in out


def test_mistakes_are_one_sentence(mistake: Callable[..., str], files: Path, smoke_run: Path, tmp_path: Path) -> None:
    both = files / "synthetic.parquet", files / "real.parquet"
    assert "must end in .html" in mistake("fidelity", *both, "--out", tmp_path / "page.txt")
    assert "no target 'gas'" in mistake("fidelity", *both, "--target", "gas")
    assert "one run" in mistake("evaluate", smoke_run, smoke_run, "--generation")
