"""Series in, model out: the Python face of training."""

import tempfile
from pathlib import Path

from tamedit.data import sources
from tamedit.data.series import Series, read
from tamedit.data.split import Split, split_by_time
from tamedit.errors import UserError
from tamedit.tasks.model import Data, Model
from tamedit.training.config import Speed
from tamedit.training.fit import train
from tamedit.training.loop import Progress
from tamedit.training.recipe import RunConfig, Scale, Tightness, make_config
from tamedit.windows.anchor import Anchor


def load_split(source: str, **reading: object) -> tuple[Series, Split]:
    """The series and its split: a named data set by its own rule, a file by time (70, 15 and 15 %)."""
    if source in sources.SOURCES:
        series = sources.load(source)
        return series, sources.split(source, series)
    series = read(source, **reading)  # type: ignore[arg-type]
    return series, split_by_time(series)


def fit(
    data: Data,
    *,
    scale: Scale = "laptop",
    anchor: Anchor = "seasonal",
    bounds: Tightness = "medium",
    steps: int | None = None,
    seed: int = 0,
    window: int | None = None,
    size: str | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    speed: Speed | None = None,
    progress: Progress | None = None,
    **reading: object,
) -> Model:
    """Train a model on a series (the last 15 % of every meter are kept for validation) and return it.

    `folder` keeps the run, so that it can be resumed; without it only the model is kept, in memory.
    """
    name = str(data) if isinstance(data, str | Path) else "data"
    series = data if isinstance(data, Series) else read(data, **reading)  # type: ignore[arg-type]
    split = split_by_time(series, (0.85, 0.15, 0.0))
    config: RunConfig = make_config(
        series, name, scale=scale, anchor=anchor, bounds=bounds, steps=steps, seed=seed, window=window, size=size
    )
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(folder) if folder is not None else Path(temporary) / "run"
        outcome = train(split, config, place, speed=speed, resume=resume, progress=progress)
        if not outcome.finished:
            raise UserError(
                f"Training stopped at step {outcome.step} of {config.training.steps}; call fit again with resume=True."
            )
        return Model.load(place, speed.device if speed else "auto")
