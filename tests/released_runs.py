"""A small run to release, and what its release holds: shared by the tests of release, verification and signature."""

from pathlib import Path
from typing import Any

from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import Speed
from tamedit.runs.recipe import make_config
from tamedit.training.run import train

NAME = '<script>alert("x")</script> & |kWh|'
LIST = {
    "model.safetensors",
    "model.json",
    "ledger.jsonl",
    "model-card.md",
    "privacy-card.json",
    "privacy-card.md",
    "privacy-card.html",
    "manifest.json",
}


def made(folder: Path, **privacy: Any) -> Path:
    """A run of three steps, as `tamedit train` leaves it."""
    series = simulate(meters=2, hours=900, seed=5)
    object.__setattr__(series, "targets", (NAME,))
    wanted = Privacy(**{"noise_multiplier": 3.0, "unit": "day", **privacy}) if privacy.pop("private", True) else None
    config = make_config(series, "meters.csv", scale="smoke", steps=3, window=24, size="tiny", privacy=wanted)
    train(split_by_time(series), config, folder, speed=Speed(threads=1))
    return folder
