"""Series in, model out: the Python face of training."""

import inspect
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tamedit.data import sources
from tamedit.data.calendar import without_calendar
from tamedit.data.loading import IN_MEMORY, load_split
from tamedit.data.series import Series, read
from tamedit.data.split import split_by_time
from tamedit.errors import UserError, first_complaint
from tamedit.model.bounds import Operator
from tamedit.model.zoo import tightened
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import Speed
from tamedit.runs.folder import DataFacts, check_resumable
from tamedit.runs.layout import layout_of
from tamedit.runs.proposal import MINUTES, recommended
from tamedit.runs.recipe import REFERENCE, RunConfig, Scale, Tightness, check_beginning, check_choices, make_config
from tamedit.runs.start import Initial, load_initial_run
from tamedit.tasks.model import Data, Model
from tamedit.training.loop import Progress
from tamedit.training.public import SIMULATED, simulated_start
from tamedit.training.run import train
from tamedit.windows.anchor import Anchor


def fit(
    data: Data,
    *,
    scale: Scale = "laptop",
    anchor: Anchor = "seasonal",
    bounds: Tightness = "medium",
    operator: Operator = "tanh",
    steps: int | None = None,
    seed: int = 0,
    window: int | None = None,
    size: str | None = None,
    period: int | None = None,
    non_negative: bool = False,
    typical_level: tuple[float, ...] | None = None,
    typical_scale: tuple[float, ...] | None = None,
    lower: tuple[float, ...] | None = None,
    upper: tuple[float, ...] | None = None,
    privacy: Privacy | None = None,
    batch_size: int | None = None,
    minutes: float | None = None,
    init: Initial | str | Path | None = None,
    private_bounds: bool = False,
    folder: str | Path | None = None,
    resume: bool = False,
    speed: Speed | None = None,
    progress: Progress | None = None,
    **reading: Any,
) -> Model:
    """Train a model and return it.

    Args:
        data: a series, a table, a path or a named data set. A named data set is split by its own rule; of everything else the
            last 15 % of every meter are kept for test and the 15 % before them for validation, as on the command line.
        scale: smoke (seconds), laptop (minutes) or paper (its size and its 20,000 steps).
        anchor: seasonal, the residual of the free fill, or none, the paper's form.
        bounds: how tight the condition and the modulation are bounded; off is the ordinary AdaLN-Zero.
        operator: how they are bounded.
        steps, batch_size, size: instead of what the scale, or the plan of a private run, would take.
        window, period: rows of a window and of a season, instead of what the series suggest.
        non_negative: a public fact, that readings cannot be negative, so that no draw is.
        typical_level, typical_scale: public facts, one number a target: the units of what is generated from nothing.
        lower, upper: public bounds of the readings; with them a private run estimates level and scale with noise instead, at
            the expense of its budget.
        privacy: train privately, `Privacy(epsilon=8, unit="day")`.
        minutes: time that the plan of a private run may take on 2 cores, about.
        init: a run to begin from; `load_initial_run(run, tuning="low_rank", public=True)` to say more about it; or "simulated",
            a model of made-up homes that is trained first (minutes, and no privacy spent).
        private_bounds: set the bounds by magnitudes that the initial model shows on this data, measured with noise at the
            expense of the budget.
        folder: keeps the run and its ledger, so that it can be resumed and accounted, and also evaluated on the command line if
            `data` is a path or a name. Without it only the model and its statement are kept, in memory.
        resume: continue what lies in the folder.
        speed: device, threads and other settings that change no result.
        progress: called as training goes on.
        reading: goes to `tamedit.read`.
    """
    name = str(data) if isinstance(data, str | Path) else IN_MEMORY
    if privacy is not None and not isinstance(privacy, Privacy):
        raise UserError(
            f"privacy={privacy!r} is no request for privacy; write privacy=tamedit.Privacy(epsilon=8, unit='week')."
        )
    if unknown := set(reading) - set(inspect.signature(read).parameters):
        raise TypeError(f"fit() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    if isinstance(data, str) and data in sources.SOURCES:
        series, split = load_split(data, private=privacy is not None, **reading)
    else:
        if isinstance(data, Series) and reading:
            raise UserError(
                f"{', '.join(reading)} say how to read a table, and this is a series already; leave them out."
            )
        series = without_calendar(data if isinstance(data, Series) else read(data, **reading))
        split = split_by_time(series)
    check_choices(scale, anchor, operator)
    check_beginning(init is not None, size, bounds, privacy, private_bounds)
    if resume and folder is not None:
        check_resumable(Path(folder))
    if minutes is not None and (privacy is None or not 0.1 <= minutes < math.inf):
        raise UserError(f"minutes={minutes} is the time of a private plan: 0.1 or more, and only with privacy=….")
    with tempfile.TemporaryDirectory() as temporary, _one_sentence():
        place = Path(folder) if folder is not None else Path(temporary) / "run"
        initial = _initial(init, place, series, privacy is not None, anchor, bounds, operator, speed, progress)
        config: RunConfig = make_config(
            series,
            name,
            scale=scale,
            anchor=anchor,
            bounds=bounds,
            operator=operator,
            steps=steps,
            seed=seed,
            window=window,
            size=size,
            period=period,
            privacy=privacy,
            batch_size=batch_size,
            start=None if initial is None else initial.start,
            private_bounds=private_bounds,
        )
        allowed = MINUTES if minutes is None else minutes
        layout = layout_of(split.train, config)
        config = recommended(config, layout, scale, allowed, steps=steps, batch_size=batch_size, size=size)
        facts = DataFacts(
            reading=reading,
            non_negative=non_negative,
            typical_level=typical_level,
            typical_scale=typical_scale,
            lower=lower,
            upper=upper,
        )
        outcome = train(
            split,
            config,
            place,
            facts=facts,
            speed=speed,
            resume=resume,
            progress=progress,
            initial=initial,
            layout=layout,
        )
        if not outcome.finished:
            if folder is None:
                raise KeyboardInterrupt
            raise UserError(
                f"Training stopped at step {outcome.step} of {config.training.steps}; call fit again with resume=True."
            )
        return Model.load(place, speed.device if speed else "auto")


@contextmanager
def _one_sentence() -> Iterator[None]:
    """What pydantic refuses is said as every other mistake is."""
    try:
        yield
    except ValidationError as error:
        raise UserError(first_complaint(error)) from None


def _initial(
    init: Initial | str | Path | None,
    place: Path,
    series: Series,
    private: bool,
    anchor: Anchor,
    bounds: Tightness,
    operator: Operator,
    speed: Speed | None,
    progress: Progress | None,
) -> Initial | None:
    """The model that training begins from, trained first if it is to be one of simulated homes."""
    if init is None or isinstance(init, Initial):
        return init
    if str(init) != SIMULATED:
        return load_initial_run(Path(init), private=private)
    limits = tightened(REFERENCE[anchor], bounds)
    found = simulated_start(
        place, series, anchor=anchor, bounds=limits, operator=operator, speed=speed, progress=progress
    )
    if found is None:
        raise KeyboardInterrupt
    return found
