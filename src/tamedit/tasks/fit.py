"""Series in, model out: the Python face of training."""

import tempfile
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tamedit.choices import Anchor, Operator, Scale, Size, Tightness, Tuning
from tamedit.data.loading import Data
from tamedit.data.reader import check_reading
from tamedit.data.reading.several import one_text
from tamedit.errors import UserError, first_complaint
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import Speed
from tamedit.runs.request import RENAMED, TrainRequest
from tamedit.runs.start import Initial
from tamedit.tasks.model import Model
from tamedit.training.loop import Progress
from tamedit.training.requested import run_request

Numbers = float | tuple[float, ...]


def fit(
    data: Data,
    *,
    out: str | Path | None = None,
    scale: Scale = "laptop",
    steps: int | None = None,
    seed: int = 0,
    anchor: Anchor = "free",
    bounds: Tightness = "medium",
    operator: Operator | None = None,
    reference: str | Path | None = None,
    by_block: bool = False,
    init: Initial | str | Path | None = None,
    tuning: Tuning | None = None,
    rank: int | None = None,
    public: bool = False,
    size: Size | None = None,
    window: int | None = None,
    period: int | None = None,
    batch_size: int | None = None,
    privacy: Privacy | None = None,
    minutes: float | None = None,
    ledger: str | Path | None = None,
    private_bounds: bool = False,
    lower: Numbers | None = None,
    upper: Numbers | None = None,
    non_negative: bool = False,
    typical_level: Numbers | None = None,
    typical_scale: Numbers | None = None,
    study: str | tuple[str, str] | None = None,
    train_until: str | None = None,
    validate_until: str | None = None,
    resume: bool = False,
    speed: Speed | None = None,
    progress: Progress | None = None,
    **reading: Any,
) -> Model:
    """Train a model and return it.

    Args:
        data: a series, a table, a path, several paths (a list, a folder, a pattern) or a named data set. A named data set is
            split by its own rule. Of everything else the last 15 % of every meter (in a private run, of the study) are kept
            for test and the 15 % before them for validation.
        speed: device, threads and other settings that change no result.
        progress: called as training goes on.
        reading: goes to `tamedit.read`.
    """
    given = {name: value for name, value in locals().items() if name in TrainRequest.model_fields and name != "reading"}
    chosen = {name: value for name, value in given.items() if value is not None and value is not False}
    check_reading(fit, set(reading) - set(RENAMED))
    renamed = {name: reading.pop(name) for name in RENAMED if name in reading}
    request = TrainRequest(reading=reading, **chosen, **renamed)
    if isinstance(data, list | tuple):
        data = one_text(data, request.private)
    with tempfile.TemporaryDirectory() as temporary:
        kept = request.model_copy(update={} if request.out else {"out": Path(temporary) / "run"})
        try:
            prepared, outcome = run_request(data, kept, speed=speed, progress=progress)
        except ValidationError as error:
            raise UserError(first_complaint(error)) from None
        if not outcome.finished and request.out is None:
            raise KeyboardInterrupt
        if not outcome.finished:
            steps = prepared.config.training.steps
            raise UserError(f"Training stopped at step {outcome.step} of {steps}; call fit again with resume=True.")
        return Model.load(prepared.folder, speed.device if speed else "auto")


fit.__doc__ = f"{fit.__doc__}\n    What else may be chosen:\n" + "".join(
    f"        {name}: {field.description}{f' Default: {field.default}.' if field.default else ''}\n"
    for name, field in TrainRequest.model_fields.items()
    if name != "reading"
)
