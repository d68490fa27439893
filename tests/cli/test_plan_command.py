"""`tamedit plan`: a proposal from public facts, as a table and as JSON."""

import json
import shlex
from pathlib import Path

import pytest

from support import Run
from tamedit.privacy.entries import read


def test_units_alone_are_enough(run: Run) -> None:
    code, out, _ = run("plan", "--units", 300, "--epsilon", 8, "--minutes", 1)
    assert code == 0
    assert "noise σ" in out
    said = out[out.index("next: ") :].splitlines()[0].removeprefix("next: ").split(" && ")
    assert said[0] == "tamedit data simulate --meters 50 --out homes.csv"
    assert said[1].startswith("tamedit train homes.csv --epsilon 8 --delta 1e-05 --unit week")
    code, out, _ = run("plan", "--units", 300, "--epsilon", 8, "--minutes", 1, "--json")
    found = json.loads(out)
    assert (found["examples"], found["epsilon"], found["delta"]) == (300, 8.0, 1e-5)
    assert found["sampling_rate"] == pytest.approx(found["batch_size"] / 300)
    assert set(found["reasons"]) >= {"size", "batch_size", "steps", "draws", "clip", "noise_multiplier"}


def test_where_private_homes_lose_the_free_ones_are_named(run: Run) -> None:
    few, many = (
        run("plan", "--units", count, "--epsilon", 1, "--unit", "series", "--minutes", 1) for count in (200, 900)
    )
    said, other = (next(one for one in each.out.splitlines() if one.startswith("to generate")) for each in (few, many))
    assert said.startswith("to generate homes: `tamedit data simulate` costs nothing; ")
    assert "--population" in other


def test_the_next_command_trains_what_was_proposed(run: Run, tmp_path: Path, smoke_run: Path) -> None:
    fleet = tmp_path / "fleet.csv"
    assert run("data", "simulate", "--out", fleet, "--meters", 4, "--hours", 24 * 70)[0] == 0
    asked = ("--minutes", 0.2, "--cores", 1, "--window", 48, "--init", smoke_run)
    proposed = json.loads(run("plan", fleet, *asked, "--json").out)
    said = run("plan", fleet, *asked).out.splitlines()[-1]
    arguments = said.partition("tamedit ")[2].replace("runs/private", str(tmp_path / "run")).split()
    assert arguments[arguments.index("--minutes") + 1] == "0.1"
    code, _, err = run(*arguments, "--public", "--test-only")
    assert code == 0, err
    made = json.loads((tmp_path / "run" / "run.json").read_text())
    for name in ("steps", "batch_size", "learning_rate"):
        assert made["training"][name] == proposed[name]


def test_the_next_command_reads_the_table_in_the_same_way(run: Run, tmp_path: Path) -> None:
    fleet = tmp_path / "a fleet.csv"
    assert run("data", "simulate", "--out", fleet, "--meters", 4, "--hours", 24 * 70)[0] == 0
    code, out, err = run("plan", fleet, "--minutes", 1, "--targets", "kwh", "--frequency", "1h")
    assert code == 0, err
    said = shlex.split(out.splitlines()[-1].partition("next: ")[2])
    assert said[:3] == ["tamedit", "train", str(fleet)]
    for option, value in (("--targets", "kwh"), ("--frequency", "1h")):
        assert said[said.index(option) + 1] == value


def test_a_file_is_counted(run: Run, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.csv"
    assert run("data", "simulate", "--out", fleet, "--meters", 4, "--hours", 24 * 70)[0] == 0
    code, out, _ = run("plan", fleet, "--unit", "series", "--minutes", 1, "--json")
    assert code == 0
    assert json.loads(out)["examples"] == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Give either a data source or --units"),
        (["household", "--units", 10], "Give either a data source or --units"),
        (["--units", 1], "at least 2"),
        (["--units", 100, "--epsilon", -1], "--epsilon -1 is not possible: it should be"),
        (
            ["--units", 100, "--epsilon", 1e-300],
            "--epsilon 1e-300 is not possible: it should be greater than or equal to 0.0001",
        ),
        (
            ["--units", 100, "--delta", 1e-300],
            "--delta 1e-300 is not possible: it should be greater than",
        ),
        (["--units", 100000000000000000000], "units are too many"),
        (["--units", 100, "--init", "nope"], "--init nope contains no trained model"),
    ],
)
def test_mistakes_are_one_sentence(run: Run, arguments: list[object], sentence: str) -> None:
    code, out, err = run("plan", *arguments)
    assert code == 2
    assert sentence in err
    assert out == ""
    assert len(err.strip().splitlines()) == 1


def test_a_plan_knows_what_the_data_set_has_spent(run: Run, tmp_path: Path, smoke_run: Path) -> None:
    """The next command works after one run has spent all of ε, and after one that left some of it."""
    fleet = tmp_path / "fleet.csv"
    assert run("data", "simulate", "--out", fleet, "--meters", 4, "--hours", 24 * 70)[0] == 0
    asked = ("--minutes", 0.2, "--cores", 1, "--window", 48, "--init", smoke_run)
    assert json.loads(run("plan", fleet, *asked, "--json").out)["budget"] is None

    def train(out: str, name: str) -> None:
        said = shlex.split(
            out.splitlines()[-1].partition("next: tamedit ")[2].replace("runs/private", str(tmp_path / name))
        )
        code, _, err = run(*said, "--public")
        assert code == 0, err

    first = run("plan", fleet, *asked, "--epsilon", 2).out
    train(first, "first")
    code, out, err = run("plan", fleet, *asked, "--epsilon", 2)
    assert code == 0, err
    said = " ".join(out.split())
    assert "warning: nothing is left of ε = 2: 1 private run on this data spent ε = " in said
    assert "this plan allows ε = 4 for all runs together." in said
    assert "--epsilon 4 " in out.splitlines()[-1]
    train(out, "second")
    code, out, err = run("plan", fleet, *asked, "--epsilon", 8)
    said = " ".join(out.split())
    assert "note: 2 private runs on this data spent ε = " in said
    assert "of ε = 8, which is that of all runs together, " in said
    proposed = json.loads(run("plan", fleet, *asked, "--epsilon", 8, "--json").out)
    train(out, "third")
    made = read(tmp_path / "third").segments[-1].plan.noise_multiplier  # for a noisy number of examples
    assert made == pytest.approx(proposed["noise_multiplier"], rel=0.1)


def test_a_window_as_the_unit_is_warned_of(run: Run) -> None:
    _, out, _ = run("plan", "--units", 500, "--unit", "window")
    assert "warning: a window as the privacy unit protects little" in out
    _, out, _ = run("plan", "--units", 500, "--unit", "week")
    assert "warning" not in out


def test_a_delta_that_is_large_for_so_many_units_is_warned_of_before_training(run: Run) -> None:
    assert "warning: δ = 0.001 is large for 500 examples" in run("plan", "--units", 500, "--delta", 1e-3).out
    assert "warning" not in run("plan", "--units", 500, "--delta", 1e-5).out
    assert "δ = 0.001 is large" in json.loads(run("plan", "--units", 500, "--delta", 1e-3, "--json").out)["warning"]


def test_a_plan_that_is_needless_names_the_command_that_uses_the_model_as_it_is(tmp_path: Path, run: Run) -> None:
    assert run("data", "simulate", "--meters", 12, "--hours", 1500, "--out", tmp_path / "homes.csv").code == 0
    said = run("plan", tmp_path / "homes.csv", "--init", "homes", "--epsilon", 1, "--unit", "series").out
    line = next(one for one in said.splitlines() if one.startswith("The initial model as it is"))
    words = shlex.split(line.partition(": tamedit ")[2])
    words[-1] = str(tmp_path / "filled.csv")
    assert run(*words, "--samples", 2).code == 0
    assert (tmp_path / "filled.csv").is_file()
    assert "warm-up, averaging" in said
