"""`tamedit generate --homes`: written group by group, continued after a stop, one sentence for what cannot be."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from support import Run, untouched
from tamedit.data.traits import draw_homes
from tamedit.errors import UserError
from tamedit.tasks import evolved_fleet, fleet_table, model
from tamedit.tasks import fleet as fleets
from tamedit.tasks.fleet import Fleet
from tamedit.tasks.fleet_table import homes_table, write_homes
from tamedit.tasks.model import Model
from tamedit.training.private.evolution import Population as Evolved
from tamedit.training.private.evolution import evolved_homes

pytestmark = pytest.mark.usefixtures("small_pool")
FORMS = (".csv", ".parquet")


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, parse_dates=["time"])


@pytest.mark.parametrize("form", FORMS)
def test_the_file_is_what_python_gives(run: Run, smoke_run: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / f"homes{form}"
    answer = run("generate", smoke_run, "--homes", 5, "--days", 14, "--start", "2024-03-01", "--out", out, "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out) == {"files": [str(out)], "rows": 5 * 14 * 24}
    table = Model.load(smoke_run).generate(homes=5, days=14, start="2024-03-01")
    found = read(out)
    assert list(found.columns) == ["home", "time", "kwh"]
    assert found["home"].tolist() == table["home"].tolist()
    assert (found["time"].to_numpy() == table["time"].to_numpy()).all()
    np.testing.assert_array_equal(found["kwh"].to_numpy(np.float32), table["kwh"].to_numpy())
    by_home = table.groupby("home")["time"]
    assert table["home"].nunique() == 5
    assert (by_home.min() == pd.Timestamp("2024-03-01")).all()
    assert (by_home.max() == pd.Timestamp("2024-03-14 23:00")).all()
    assert [one.name for one in tmp_path.iterdir()] == [out.name]


def test_a_yearly_total_from_the_command_line(run: Run, smoke_run: Path, tmp_path: Path) -> None:
    level = Model.load(smoke_run).generate(homes=8, days=365).groupby("home")["kwh"].sum().median()
    low, high = 0.95 * level, 1.05 * level
    out = tmp_path / "homes.parquet"
    answer = run("generate", smoke_run, "--homes", 6, "--days", 365, "--level", f"{low},{high}", "--out", out)
    assert answer.code == 0, answer.err
    assert read(out).groupby("home")["kwh"].sum().between(low * 0.9999, high * 1.0001).all()


FLEET = Fleet(
    homes=5,
    start=pd.Timestamp("2024-01-01"),
    days=2,
    seed=0,
    step_seconds=3600.0,
    length=168,
    period=24,
    calendar=True,
)


def numbers(skip: int, groups: int = 3) -> Iterator[np.ndarray]:
    """Groups of two homes; the value says which home and which row it is."""
    for group in range(skip, groups):
        homes = np.arange(group * 2, min(group * 2 + 2, 5))
        yield (homes[:, None] * 1000.0 + np.arange(48))[:, :, None].astype(np.float32)


def write(out: Path, make: Callable[[int], Any] = numbers, fleet: Fleet = FLEET, name: str = "m") -> list[tuple]:
    seen: list[tuple[int, int]] = []
    write_homes(fleet, ("kwh",), make, out, name, lambda *done: seen.append(done))
    return seen


@pytest.fixture
def twos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamedit.tasks.fleet.GROUP", 2)
    monkeypatch.setattr(fleet_table, "GROUP", 2)


@pytest.mark.parametrize("form", FORMS)
def test_a_stopped_call_is_continued_to_the_same_bytes(twos: None, tmp_path: Path, form: str) -> None:
    whole, out, asked = tmp_path / f"whole{form}", tmp_path / "below" / f"homes{form}", []

    def stopped(skip: int) -> Iterator[np.ndarray]:
        asked.append(skip)
        for number, group in enumerate(numbers(skip)):
            if number == 1:
                raise KeyboardInterrupt
            yield group

    assert write(whole) == [(2, 5), (4, 5), (5, 5)]
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            write(out, stopped)
        assert not out.exists(), "nothing half-written"
    write(out, lambda skip: asked.append(skip) or numbers(skip))
    assert asked == [0, 1, 2], "what was made is not made again"
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(one.name for one in tmp_path.rglob("*")) == sorted(["below", out.name, whole.name])
    table = homes_table(FLEET, list(numbers(0)), ("kwh",))
    np.testing.assert_array_equal(read(out)["kwh"], table["kwh"])
    assert read(out)["home"].tolist() == table["home"].tolist()


@pytest.mark.parametrize("change", ["seed", "model", "form"])
def test_parts_of_another_request_are_not_continued(twos: None, tmp_path: Path, change: str) -> None:
    from dataclasses import replace

    out = tmp_path / "homes.parquet"

    def stopped(skip: int) -> Iterator[np.ndarray]:
        yield next(numbers(skip)) + 7
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(out, stopped)
    if change == "form":  # the parts are beside a file of that name alone
        out = tmp_path / "homes.csv"
    write(out, fleet=replace(FLEET, seed=1) if change == "seed" else FLEET, name="n" if change == "model" else "m")
    assert read(out)["kwh"].iloc[0] == 0.0


def test_a_disk_without_room(twos: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for form in FORMS:
        out = tmp_path / f"homes{form}"
        write(out)
        needed = 5 * 48 * fleet_table.row_bytes(out, 1)
        out.unlink()
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=needed - 1: SimpleNamespace(free=free))
        with pytest.raises(UserError, match=r"GB left; ask for fewer homes or days\.$"), untouched(tmp_path):
            write(out)
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=needed: SimpleNamespace(free=free))
        write(out)


def test_the_room_of_a_row_is_about_right(tmp_path: Path) -> None:
    """Random numbers, which no file format can make smaller: in the whole file, and in its parts as Parquet."""
    fleet = Fleet(**{**FLEET.__dict__, "homes": 64, "days": 60})
    drawn = np.random.default_rng(0).random((64, 1440, 1)).astype(np.float32)
    sizes = {}
    for form in FORMS:
        write(tmp_path / f"homes{form}", lambda _: iter([drawn]), fleet)
        sizes[form] = (tmp_path / f"homes{form}").stat().st_size / drawn.size
    for form in FORMS:
        used = sizes[".parquet"] + sizes[form]
        assert 0.6 * used < fleet_table.row_bytes(tmp_path / f"homes{form}", 1) < 1.5 * used


def test_ctrl_c_leaves_no_file_and_the_same_command_goes_on(
    run: Run, smoke_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tamedit.tasks.fleet.GROUP", 2)
    monkeypatch.setattr(fleet_table, "GROUP", 2)
    ask = ("generate", smoke_run, "--homes", 5, "--days", 2, "--out")
    true, asked = model.make_homes, []

    def stopped(fleet: Fleet, population: Any, draw: Any, skip: int) -> Iterator[np.ndarray]:
        asked.append(skip)
        yield next(iter(true(fleet, population, draw, skip)))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(model, "make_homes", stopped)
        answer = run(*ask, tmp_path / "homes.parquet")
    assert (answer.code, answer.err.strip()) == (130, "tamedit: stopped; the same command continues.")
    assert not (tmp_path / "homes.parquet").exists()
    assert run(*ask, tmp_path / "homes.parquet").code == 0
    assert run(*ask, tmp_path / "whole.parquet").code == 0
    assert (tmp_path / "homes.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["homes.parquet", "whole.parquet"]


def test_bad_requests_get_one_sentence(run: Run, mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    def wrong(*arguments: object) -> str:
        with untouched(tmp_path):
            return mistake("generate", smoke_run, "--out", tmp_path / "homes.parquet", *arguments)

    assert "days=0" in wrong("--homes", 5, "--days", 0).replace("--days 0", "days=0")
    assert "homes" in wrong("--homes", 0)
    assert "is not a date" in wrong("--homes", 5, "--start", "soon")
    assert "is not a date" in wrong("--homes", 5, "--start", "2024-02-30")
    assert "too far" in wrong("--homes", 5, "--days", 200_000)
    assert "not a range" in wrong("--homes", 5, "--level", "4000,3000")
    assert "not a range" in wrong("--homes", 5, "--level", "lots")
    assert "not a range" in wrong("--homes", 5, "--level", "nan,5")
    assert "not a range" in wrong("--homes", 5, "--level", "1,2,3")
    assert "not a range" in wrong("--homes", 5, "--level", "0,inf")
    for early in ("1500-01-01", "1699-12-31"):
        assert "is too early; the first day that can be asked for is 1700-01-01" in wrong(
            "--homes", 5, "--start", early
        )
    first = "1700-01-01"
    assert (
        run("generate", smoke_run, "--homes", 1, "--days", 2, "--start", first, "--out", tmp_path / "a.csv").code == 0
    )
    assert read(tmp_path / "a.csv")["time"].iloc[0] == pd.Timestamp(first)
    assert "too rare" in wrong("--homes", 5, "--level", "1000000,2000000")
    assert "leave one of them out" in wrong("--homes", 5, "--count", 5)
    assert "GB left" in wrong("--homes", 1_000_000, "--days", 36500)
    assert "belong to" in wrong("--count", 5, "--days", 3)
    assert "Nothing to generate" in wrong()
    assert "--statics" in wrong("--homes", 5, "--statics", "tariff")


def test_a_model_without_levels_says_what_to_do(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(smoke_run, folder)
    spec = json.loads((folder / "model.json").read_text())
    spec["scaling"]["origin"], spec["population"] = "none", None
    (folder / "model.json").write_text(json.dumps(spec))
    said = mistake("generate", folder, "--homes", 5, "--out", tmp_path / "homes.parquet")
    assert "does not know who the homes are" in said
    assert "--population" in said


@pytest.fixture
def evolved(tmp_path: Path) -> Path:
    """A run of private evolution: nothing but its population."""
    run = tmp_path / "evolved"
    run.mkdir()
    homes = draw_homes(4, np.random.default_rng(0))
    Evolved(homes.tolist(), [0.1, 0.2, 0.3, 0.4], 0.1, 60, 2, "load").save(run)
    return run


def test_evolved_homes_are_written_and_continued_as_those_of_a_model(
    run: Run, evolved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (fleets, evolved_fleet, fleet_table):
        monkeypatch.setattr(module, "GROUP", 2)
    ask = ("generate", evolved, "--homes", 5, "--days", 3, "--start", "2024-03-01", "--seed", 4, "--out")
    true, asked = evolved_fleet.evolved_groups, []

    def stopped(*given: Any, group: int, skip: int) -> Iterator[Any]:
        asked.append(skip)
        yield next(true(*given, group=group, skip=skip))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(evolved_fleet, "evolved_groups", stopped)
        for _ in range(2):
            answer = run(*ask, tmp_path / "homes.parquet")
            assert (answer.code, answer.err.strip()) == (130, "tamedit: stopped; the same command continues.")
            assert not (tmp_path / "homes.parquet").exists()
    assert asked == [0, 1], "what was made is not made again"
    answer = run(*ask, tmp_path / "homes.parquet", "--json")
    assert json.loads(answer.out) == {"files": [str(tmp_path / "homes.parquet")], "rows": 5 * 3 * 24}
    found, whole = read(tmp_path / "homes.parquet"), evolved_homes(Evolved.load(evolved), 5, "2024-03-01", 3, seed=4)
    np.testing.assert_array_equal(found["load"].to_numpy(), whole.values[:, 0])
    assert list(found.columns) == ["home", "time", "load"]
    assert found["home"].tolist() == [f"home_{number}" for number in range(5) for _ in range(72)]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["evolved", "homes.parquet"]


def test_evolution_takes_the_same_requests(
    mistake: Callable[..., str], evolved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*arguments: object) -> str:
        with untouched(tmp_path):
            return mistake("generate", evolved, "--out", tmp_path / "homes.parquet", *arguments)

    assert "give --homes" in wrong()
    assert "alone" in wrong("--homes", 3, "--count", 7)
    assert "alone" in wrong("--homes", 3, "--level", "3000,4000")
    assert "at least 1" in wrong("--homes", 0)
    assert "at least 1" in wrong("--homes", 3, "--days", 0)
    assert "is not a date" in wrong("--homes", 3, "--start", "soon")
    assert "too early" in wrong("--homes", 3, "--start", "1500-01-01")
    assert "too far" in wrong("--homes", 3, "--days", 200_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    assert "GB left" in wrong("--homes", 3)
