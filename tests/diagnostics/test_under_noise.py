"""Reference magnitudes under noise: the best share of a run's own p99, found by training it again."""

from pathlib import Path

import pytest

from tamedit.data.loading import load_split
from tamedit.data.simulate import simulate
from tamedit.data.study import Study
from tamedit.diagnostics import under_noise
from tamedit.diagnostics.magnitudes import measure_run
from tamedit.diagnostics.under_noise import SHARES, measure_under_noise
from tamedit.errors import UserError
from tamedit.privacy.settings import Privacy
from tamedit.runs.provenance import Reference
from tamedit.runs.recipe import make_config
from tamedit.training.run import train


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "meter.csv"
    simulate(hours=1200, seed=3).frame().to_csv(path)
    return path


def trained(table: Path, folder: Path, **privacy: object) -> Path:
    series, split = load_split(str(table), private=bool(privacy), study=Study.stating("2023-01-01/2023-02-20"))
    noise = Privacy(noise_multiplier=0.1, layout="overlapping", unit="window", **privacy) if privacy else None
    config = make_config(
        series, str(table), scale="smoke", steps=6, window=48, anchor="none", bounds="off", privacy=noise
    )
    train(split, config, folder)
    return folder


def test_the_best_share_becomes_the_preset_medium(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_noise, "WINDOWS", 4)
    run = trained(table, tmp_path / "run", test_only=True)
    reports: list[tuple[int, int]] = []
    found = measure_under_noise(run, public=True, progress=lambda step, steps, numbers: reports.append((step, steps)))
    assert reports == [(step, 6 * len(SHARES)) for step in range(1, 6 * len(SHARES) + 1)]
    plain = measure_run(run, public=True)
    assert set(found.scores) == {"0", *(f"{share:g}" for share in SHARES)}
    assert found.share == min(SHARES, key=lambda share: found.scores[f"{share:g}"])
    for name, magnitude in plain.magnitudes:
        assert 0.9 * getattr(found.magnitudes, name) == pytest.approx(found.share * magnitude)
    assert measure_under_noise(run, public=True) == found, "the same noise, the same answer"
    place = tmp_path / "bounds.json"
    place.write_text(found.model_dump_json())
    assert Reference.load(place, "none", private=True) == found


def test_it_needs_noise_that_can_be_repeated(table: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be repeated under noise"):
        measure_under_noise(trained(table, tmp_path / "plain"), public=True)
    run = trained(table, tmp_path / "noisy", test_only=True)
    with pytest.raises(UserError, match="not known to be public"):
        measure_under_noise(run)
