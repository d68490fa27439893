"""The demo from start to end, made short; and its pictures."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tamedit.cli import demo_steps
from tamedit.cli.main import main
from tamedit.diffusion.sample import SamplerConfig
from tamedit.figures import plots

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_steps, "HOMES", {"smoke": 4})
    monkeypatch.setattr(demo_steps, "LENGTH", {"smoke": {"steps": 2}})
    monkeypatch.setattr("tamedit.diffusion.sample.SamplerConfig", lambda: SamplerConfig(steps=2))


@pytest.mark.usefixtures("short")
def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    monkeypatch.setattr(sys, "argv", ["tamedit", "demo", "--scale", "smoke", "--out", str(out)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    said = capsys.readouterr().out
    wrote = [Path(line.removeprefix("wrote ")) for line in said.splitlines() if line.startswith("wrote ")]
    assert {path.name for path in wrote} == {
        *demo_steps.RESULTS,
        "model.safetensors",
        "model.json",
        "ledger.jsonl",
        "PRIVACY.md",
    }
    assert all(path.is_file() for path in wrote)
    assert {path.name for path in out.iterdir()} == demo_steps.FILES
    assert "what is asked" in said
    assert "surely better at" in said
    assert "-differentially private" in said
    assert "Protected unit: one week of one meter" in said
    assert said.splitlines()[-1].endswith("--init homes")
    for name in ("gap_fills.png", "forecasts.png"):
        assert (out / name).read_bytes().startswith(PNG)
    json.loads((out / "evaluation.json").read_text())
    filled, ahead = pd.read_csv(out / "filled.csv"), pd.read_csv(out / "forecast.csv")
    assert len(filled) == 3 * (26 * 168 - round(26 * 168 * 0.85))
    assert not filled["kwh"].isna().any()
    assert len(ahead) == 3 * 24
    assert (ahead["kwh_q05"] >= 0).all()
    assert json.loads((out / "model.json").read_text())["non_negative"] is True
    demo_steps._clear(out)  # a second demo takes the place of the first
    assert not list(out.iterdir())


@pytest.mark.usefixtures("short")
def test_an_interrupted_demo_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import signal

    def interrupt(*arguments: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("tamedit.cli.progress.RunProgress.__call__", interrupt)
    monkeypatch.setattr(sys, "argv", ["tamedit", "demo", "--scale", "smoke", "--out", str(tmp_path / "demo")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert "stopped at step 1 of 2; the demo starts from the beginning next time." in capsys.readouterr().err


def panel(title: str) -> plots.Band:
    times = pd.date_range("2024-01-01", periods=48, freq="h")
    wave = np.sin(np.arange(48) / 4)
    nothing = np.where(np.arange(48) < 24, np.nan, 1.0)
    quantiles = {level: (wave + (level - 50) / 50) * nothing for level in (5, 25, 50, 75, 95)}
    return plots.Band(
        title, times, np.where(np.arange(48) < 24, wave, np.nan), wave * nothing, quantiles, wave * nothing
    )


@pytest.mark.parametrize("count", [1, 3])
def test_legend_titles_and_panels_do_not_overlap(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Any] = []
    from matplotlib.figure import Figure

    save = Figure.savefig

    def keep(self: Figure, *arguments: Any, **options: Any) -> None:
        save(self, *arguments, **options)
        figures.append(self)

    monkeypatch.setattr(Figure, "savefig", keep)
    plots.bands([panel("a title of usual length, for a picture")] * count, tmp_path / "picture.png")
    figure = figures[0]
    legend = figure.axes[0].get_legend().get_window_extent()
    frame = figure.get_window_extent()
    assert legend.y1 <= frame.y1
    assert frame.x0 <= legend.x0
    assert legend.x1 <= frame.x1
    for axis in figure.axes:
        title = axis._left_title if hasattr(axis, "_left_title") else axis.title
        assert title.get_text().startswith("a title")
        assert title.get_fontsize() <= 10
        assert not legend.overlaps(title.get_window_extent())
        assert not legend.overlaps(axis.get_window_extent())


def test_pictures_as_vectors_and_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plots.bands([panel("one")], tmp_path / "one.svg").read_text().startswith("<?xml")
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *arguments, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        plots.bands([panel("two")], tmp_path / "two.png")
    assert [path.name for path in tmp_path.iterdir()] == ["one.svg"]
