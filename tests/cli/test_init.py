"""`tamedit train --init`: from a run, and from simulated homes."""

import json
from pathlib import Path

import pandas as pd
import pytest

import tamedit as tame
from support import Run
from tamedit.training import public

STUDY = ("--study", "2023-01-01/2023-03-12")
SHORT = ("--scale", "smoke", "--steps", 2, "--batch-size", 4, "--epsilon", 8, "--test-only", *STUDY)


@pytest.fixture
def homes(run: Run, tmp_path: Path) -> Path:
    table = tmp_path / "homes.csv"
    assert run("data", "simulate", "--out", table, "--meters", 3, "--hours", 24 * 70, "--seed", 5)[0] == 0
    return table


@pytest.fixture
def small_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet, config = public.fleet, public.public_config
    monkeypatch.setattr(public, "fleet", lambda: fleet(25, 12))
    monkeypatch.setattr(
        public,
        "public_config",
        lambda *given, **named: config(
            *given, **(named | {"steps": 2, "network": {"depth": 1, "width": 16, "heads": 2}})
        ),
    )


@pytest.mark.usefixtures("small_fleet")
def test_simulated_homes_come_first(run: Run, homes: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, said, err = run("train", homes, "--out", out, "--init", "simulated", *SHORT)
    assert code == 0, err
    assert "first: a model of simulated homes" in said
    assert "the model that training began from (simulated fleet; weights " in said
    begun, made = (json.loads((folder / "model.json").read_text()) for folder in (out / "public", out))
    assert made["network"]["width"] == begun["network"]["width"] == 16
    assert begun["privacy"]["private"] is False
    assert made["privacy"]["private"] is True
    code, said, err = run("evaluate", out, "--windows", 4, "--samples", 4, "--json")
    assert code == 0, err
    assert json.loads(said)["windows"] == 4


@pytest.mark.usefixtures("small_fleet")
def test_simulated_homes_come_first_in_python(homes: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    privacy = tame.Privacy(epsilon=8, unit="week", test_only=True)
    chosen = {"scale": "smoke", "steps": 2, "batch_size": 4, "privacy": privacy, "init": "simulated", "out": folder}
    model = tame.fit(homes, **chosen)
    assert "the model that training began from (simulated fleet; weights " in str(model.privacy)
    assert (folder / "public" / "model.safetensors").exists()
    assert (folder / "ledger.jsonl").exists()


@pytest.mark.usefixtures("small_fleet")
def test_series_of_another_form_are_refused_before_the_public_stage(run: Run, tmp_path: Path) -> None:
    table, out = tmp_path / "two.csv", tmp_path / "run"
    stamps = pd.date_range("2024-01-01", periods=24 * 70, freq="h")
    pd.DataFrame({"time": stamps, "load": 1.0, "price": 2.0}).to_csv(table, index=False)
    code, _, err = run("train", table, "--out", out, "--init", "simulated", *SHORT)
    assert code == 2
    assert "has one target and no covariates except the calendar, but these series have 2 and 0" in err
    pd.DataFrame({"time": pd.date_range("2020-01-01", periods=900, freq="D"), "load": 1.0}).to_csv(table, index=False)
    code, _, err = run("train", table, "--out", out, "--init", "simulated", *SHORT)
    assert code == 2
    assert "has hourly rows, but these series have one every 1 day" in err
    assert not out.exists()


def test_private_bounds_need_a_model_to_begin_from(run: Run, homes: Path, smoke_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, _, err = run("train", homes, "--out", out, "--private-bounds", "--window", 48, *SHORT)
    assert code == 2
    assert "needs --epsilon, --init and --bounds other than off" in err
    begins = ("--init", smoke_run, "--public", "--window", 48, "--private-bounds")
    code, _, err = run("train", homes, "--out", out, *begins, *SHORT)
    assert code == 2
    assert "mostly noise" in err
    assert not out.exists()


def test_a_run_that_is_not_public_is_refused(run: Run, homes: Path, smoke_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, _, err = run("train", homes, "--out", out, "--init", smoke_run, "--window", 48, *SHORT)
    assert code == 2
    assert "--public" in err
    assert not out.exists()
    code, said, err = run("train", homes, "--out", out, "--init", smoke_run, "--window", 48, "--public", *SHORT)
    assert code == 0, err
    assert "which the user says is public or simulated" in said
    code, _, err = run("train", homes, "--out", tmp_path / "other", "--init", tmp_path / "nowhere", *SHORT)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
