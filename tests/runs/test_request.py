"""One request behind `fit` and `tamedit train`: every choice once, one sentence per mistake, the same run from both."""

import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamedit as tame
from support import Run
from tamedit.cli.flags import in_flags
from tamedit.cli.request_options import CHOICES
from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import RunConfig
from tamedit.runs.folder import DataFacts
from tamedit.runs.request import TrainRequest

BUDGET = Privacy(epsilon=8.0)


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"scale": "huge"}, "scale='huge' is unknown; choose smoke, laptop or paper."),
        ({"size": "wide"}, "size='wide' is unknown; choose tiny, mini, small, base or paper."),
        ({"tuning": "some"}, "tuning='some' is unknown; choose all, modulation, low_rank or head."),
        ({"steps": 0}, "steps=0 is not possible: it should be greater than or equal to 1."),
        ({"seed": -1}, "seed=-1 is not possible: it should be greater than or equal to 0."),
        ({"window": 4}, "window=4 is not possible: it should be greater than or equal to 8."),
        ({"stepps": 3}, "stepps=3 is unknown; leave it out."),
        ({"folder": "runs/a"}, "folder= is now called out=; write out='runs/a'."),
        ({"tune": "all"}, "tune= is now called tuning=; write tuning='all'."),
        ({"init_is_public": True}, "init_is_public= is now called public=; write public=True."),
        ({"privacy": 8}, "privacy=8 is no request for privacy; write privacy=tamedit.Privacy(epsilon=8, unit='week')."),
        ({"init": 3}, "init=3 is no beginning; name the folder of a run, 'homes' or 'simulated'."),
        (
            {"typical_level": "much"},
            "typical_level='much' is not a list of numbers; give one number per target, such as 0.35.",
        ),
        ({"minutes": 5.0}, "`minutes` belongs to private training; add `privacy`, or leave it out."),
        ({"lower": 0.0}, "`lower` belongs to private training; add `privacy`, or leave it out."),
        (
            {"minutes": 5.0, "privacy": BUDGET, "scale": "smoke"},
            "`minutes` is the time of a plan: it needs a budget, in blocks, at scale='laptop'; leave it out.",
        ),
        ({"rank": 4}, "`rank` belongs to `init`; add `init`, or leave it out."),
        ({"public": True}, "`public` belongs to `init`; add `init`, or leave it out."),
        ({"init": "run", "rank": 2}, "`rank` is that of low_rank corrections; add tuning='low_rank', or leave it out."),
        (
            {"bounds": "off", "operator": "tanh"},
            "`operator` says how to bound, and bounds='off' bounds nothing; leave one of them out.",
        ),
        (
            {"bounds": "off", "reference": "bounds.json"},
            "`reference` has magnitudes that `bounds` scales, and bounds='off' bounds nothing; leave one of them out.",
        ),
        (
            {"init": "simulated", "public": True},
            "`public` is about the data of a run that you name, and simulated homes are nobody's; leave it out.",
        ),
        (
            {"privacy": BUDGET, "lower": 0.0},
            "`lower` and `upper` must both be given, with one number per target.",
        ),
        (
            {"typical_level": (1, 2), "typical_scale": 1},
            "`typical_level` and `typical_scale` must both be given, with one number per target.",
        ),
        ({"privacy": BUDGET, "lower": (0, 2), "upper": (1, 2)}, "`lower` must be below `upper` for every target."),
        (
            {"init": "run", "size": "tiny"},
            "size='tiny' and `init` exclude each other: the initial model keeps its size; leave one out.",
        ),
        (
            {"by_block": True},
            "`by_block` needs `reference`, a file with magnitudes of every block, measured by `tamedit diagnose`.",
        ),
        ({"resume": True}, "`resume` continues a run that was kept in a folder; name the folder with `out`."),
    ],
)
def test_a_mistake_is_one_sentence(chosen: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        TrainRequest(**chosen)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("given", [0.35, (0.35,), [0.35], "0.35", np.array([0.35])])
def test_one_number_where_one_will_do(given: Any) -> None:
    assert TrainRequest(typical_level=given, typical_scale=1).typical_level == (0.35,)
    assert TrainRequest(typical_level=1, typical_scale=1).typical_scale == (1.0,)
    assert TrainRequest(privacy=BUDGET, lower="-1, 2", upper=(3, 4)).lower == (-1.0, 2.0)


def test_a_request_is_frozen_and_says_what_every_choice_means() -> None:
    with pytest.raises(Exception, match="frozen"):
        TrainRequest().seed = 1
    fields = {**TrainRequest.model_fields, **Privacy.model_fields}
    assert all(field.description and field.description.endswith(".") for field in fields.values())
    assert len(fields) == len(TrainRequest.model_fields) + len(Privacy.model_fields), "every name once"


def test_fit_has_the_names_and_defaults_of_the_request() -> None:
    own = inspect.signature(tame.fit).parameters
    for name, field in TrainRequest.model_fields.items():
        if name not in ("reading", "engine"):  # `fit` returns a model, and evolution has none
            unsaid = name in ("operator", "tuning", "rank", "minutes")  # what was given of these may be a mistake
            assert own[name].default == (None if unsaid else field.default), name
            assert f"{name}: {field.description}" in (tame.fit.__doc__ or "")
    assert set(own) - set(TrainRequest.model_fields) == {"data", "speed", "progress"}


def test_the_command_line_has_the_names_and_words_of_the_request(run: Run) -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    own = page.partition("## `tamedit train`")[2].partition("## `tamedit impute`")[0]
    for name in CHOICES:
        assert f"`--{name.replace('_', '-')}" in own
    for words in (
        "smoke|laptop|paper",
        "loose|medium|tight|too_tight|off",
        "all|modulation|low_rank",
        "flat|automatic|groups",
    ):
        assert words in own
    assert "--tune " not in own


def test_arguments_are_flags_on_the_command_line() -> None:
    for said, read in (
        ("window=200 is too long; give `window`.", "--window 200 is too long; give --window."),
        ("typical_level=(1.0, 2.0) or lower=(0.0,).", "--typical-level 1.0,2.0 or --lower 0.0."),
        ("finish it with resume=True.", "finish it with --resume."),
        ("name the step with frequency=.", "name the step with --frequency."),
        ("frequency='1 fortnight' is no step", "--frequency '1 fortnight' is no step"),
        ("add `privacy`", "add --epsilon"),
        ("anyway=True, or a column 'x.window=3'", "--not-public-anyway, or a column 'x.window=3'"),
        ("`load_initial_run` and ema=2.0", "`load_initial_run` and ema=2.0"),
        ("There is no file runs/seed=3/x.csv", "There is no file runs/seed=3/x.csv"),
        ("'ideal/vanilla/epsilon=8/unit=week' is no cell", "'ideal/vanilla/epsilon=8/unit=week' is no cell"),
        ("See page?seed=3&unit=4", "See page?seed=3&unit=4"),
    ):
        assert in_flags(said) == read


SAME: list[tuple[list[object], dict[str, Any]]] = [
    (["--scale", "smoke", "--steps", 5, "--seed", 4], {"scale": "smoke", "steps": 5, "seed": 4}),
    (
        ["--anchor", "none", "--bounds", "tight", "--operator", "hard_clamp", "--size", "base", "--window", 24],
        {"anchor": "none", "bounds": "tight", "operator": "hard_clamp", "size": "base", "window": 24},
    ),
    (["--epsilon", 8, "--examples", 40, "--minutes", 2], {"privacy": Privacy(epsilon=8, examples=40), "minutes": 2}),
    (
        ["--epsilon", 3, "--unit", "day", "--draws", 2, "--lower", 0, "--upper", 5, "--window", 24, "--test-only"],
        {"privacy": Privacy(epsilon=3, unit="day", draws=2, test_only=True), "lower": 0, "upper": 5.0, "window": 24},
    ),
    (
        ["--noise-multiplier", 0.1, "--layout", "overlapping", "--unit", "window", "--batch-size", 8],
        {"privacy": Privacy(noise_multiplier=0.1, layout="overlapping", unit="window"), "batch_size": 8},
    ),
    (
        ["--typical-level", 0.3, "--typical-scale", "0.4", "--non-negative", "--targets", "kwh", "--period", 12],
        {"typical_level": 0.3, "typical_scale": (0.4,), "non_negative": True, "targets": ["kwh"], "period": 12},
    ),
    (
        ["--init", "RUN", "--tuning", "low_rank", "--rank", 3, "--window", 48],
        {"init": "RUN", "tuning": "low_rank", "rank": 3, "window": 48},
    ),
    (
        ["--init", "RUN", "--tune=low_rank", "--init-is-public", "--window", 48],  # as they were called before
        {"init": "RUN", "tuning": "low_rank", "public": True, "window": 48},
    ),
]


@pytest.mark.parametrize(("options", "chosen"), SAME, ids=[str(options[0]) for options, _ in SAME])
def test_the_same_choices_are_the_same_run(
    options: list[object],
    chosen: dict[str, Any],
    smoke_run: Path,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, made = tmp_path / "homes.csv", []
    simulate(meters=4, hours=24 * 70, seed=1).frame().to_csv(table, index=False)

    def keep(split: object, config: RunConfig, folder: Path, *, facts: DataFacts, **others: Any) -> None:
        made.append((config, facts, folder, others["resume"], others["initial"] and others["initial"].start))
        raise UserError("kept.")

    monkeypatch.setattr("tamedit.training.requested.train", keep)
    run_folder = {"RUN": str(smoke_run)}
    words = [run_folder.get(str(option), option) for option in options]
    assert "kept." in run("train", table, "--out", tmp_path / "run", *words).err
    given = chosen | ({"init": smoke_run} if "init" in chosen else {})
    with pytest.raises(UserError, match="kept"):
        tame.fit(str(table), out=tmp_path / "run", **given)
    assert made[0] == made[1]


def test_reference_and_blocks_in_python(runs: Path, tmp_path: Path) -> None:
    from tamedit.diagnostics.magnitudes import measure_run
    from tamedit.runs.folder import load_run

    file = tmp_path / "reference.json"
    file.write_text(measure_run(runs / "plain", public=True).model_dump_json())
    chosen = {"scale": "smoke", "steps": 1, "window": 24, "size": load_size(runs / "plain")}
    tame.fit(runs / "meter.csv", out=tmp_path / "run", reference=file, by_block=True, **chosen)
    config, _ = load_run(tmp_path / "run")
    assert config.reference is not None
    assert len(config.network.bounds) == config.network.depth + 1


def load_size(run: Path) -> str:
    from tamedit.model.zoo import SIZES
    from tamedit.runs.folder import load_run

    shape = load_run(run)[0].network
    return next(name for name, size in SIZES.items() if size["depth"] == shape.depth and size["width"] == shape.width)


def test_the_request_needs_nothing_heavy() -> None:
    import subprocess

    code = "import sys, tamedit.runs.request; print([n for n in ('torch', 'pandas', 'scipy') if n in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
