"""`Model.distill`: a student that samples in one to four calls of its network instead of eight, without any private data.

The student is computed from the model and from windows of simulated homes, or of data that is public. None of it is private, so
the model's guarantee covers the student as well, and nothing is spent (post-processing). Where data is public by the user's word
alone, the statement says so among what it does not cover. The student's folder has what the model's folder has of these:

    model.safetensors, model.json   the student: the model's statement, population and units; its calls; what it was made from
    ledger.jsonl, PRIVACY.md        copies, if the model is private: `account`, `release` and `verify` derive ε from the ledger
    run.json, reading.json          copies, if the model is a run's, so that `evaluate` finds the same data and the same split
"""

import json
import math
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tamedit.data.calendar import network_covariates
from tamedit.data.loading import Data
from tamedit.data.reader import check_reading
from tamedit.data.series import Series
from tamedit.errors import UserError
from tamedit.files import check_new_folder, new_folder, settled, write_text
from tamedit.privacy.entries import FILE_NAME as LEDGER
from tamedit.privacy.entries import read
from tamedit.privacy.plain_words import in_words
from tamedit.privacy.statement import side_by_side
from tamedit.runs.agreement import check_agreement
from tamedit.runs.artifact import WEIGHTS, save_model
from tamedit.runs.cards import derived
from tamedit.runs.folder import READING, RUN
from tamedit.runs.privacy_page import PRIVACY, privacy_page
from tamedit.runs.provenance import Student
from tamedit.runs.recipe import MASKS
from tamedit.runs.release import canonical, digest
from tamedit.tasks.public_windows import public_windows
from tamedit.tasks.single_windows import whole
from tamedit.training.homes import FLEETS, SECONDS, homes_of
from tamedit.training.loop import Progress
from tamedit.training.public import TYPICAL
from tamedit.training.student import Stopped, learn, student_process
from tamedit.windows.cut import cut
from tamedit.windows.examples import Examples

if TYPE_CHECKING:
    from tamedit.tasks.model import Model

CALLS, MOST_CALLS, STEPS = 2, 4, 600
NO_NEARER = (
    "The student is no nearer to its model than the model itself with as few plain steps; train it for more `steps`, or on data "
    "that is more like the model's own."
)


def distill(
    model: "Model",
    out: str | Path,
    *,
    calls: int = CALLS,
    steps: int = STEPS,
    data: Data | None = None,
    public: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
    **reading: Any,
) -> "Model":
    """Train a student of this model that samples in `calls` calls of its network, write it to the folder `out`, and return it.

    It costs no privacy: the student learns from this model's own answers on windows of simulated homes, or of `data`, which must
    be public or simulated. `public=True` says so of what is not known to be; the student's statement then repeats that this is
    your word. What the folder of a private run recognises as its own data is refused; a release or a saved model recognises
    nothing (`tasks.public_windows`). `steps`: of training. `reading` goes to `tamedit.read`.
    """
    check_reading(distill, reading)
    _check_numbers(calls, steps, seed, public)
    out, spec = Path(out), model.spec
    check_new_folder(out, "a student")
    if spec.student is not None:
        raise UserError("This model is a student already; distill the model that it was distilled from.")
    if spec.process.prediction != "v":
        raise UserError("Only networks that predict the velocity can be distilled; train one with anchor='free'.")
    if reading and data is None:
        raise UserError(f"{', '.join(reading)} say how to read `data`; give it, or leave them out.")
    series, contexts = _simulated(model) if data is None else public_windows(model, data, public, reading)
    windows = cut(network_covariates(series, spec.calendar), spec.network.length, 1)
    if not len(windows):
        raise UserError(f"More than half of every window of {contexts.partition(',')[0]} is missing; give other data.")
    examples = Examples(windows, MASKS, model.scaling, spec.examples, seed)
    process = student_process(spec.process, calls)
    teacher = spec.weights_sha256 or ("not on disk" if model.folder is None else digest(model.folder / WEIGHTS))
    made = Student(teacher=teacher, contexts=contexts, steps=steps, seed=seed, apart=0.0, untrained=0.0)
    with new_folder(out) as beside:  # before training, so that what cannot be written is found first
        privacy = _taken_over(model, made, beside)
        try:
            weights, apart, untrained = learn(model.network, examples, process, steps, progress)
        except Stopped:
            raise KeyboardInterrupt("stopped; nothing was written.") from None
        if not (math.isfinite(apart) and all(bool(torch.isfinite(one).all()) for one in weights.values())):
            raise UserError(
                "The student's weights are not finite, so nothing was written; check the model, or learn on other data."
            )
        made = made.model_copy(update={"apart": round(apart, 4), "untrained": round(untrained, 4)})
        save_model(beside, spec.model_copy(update={"process": process, "student": made, "privacy": privacy}), weights)
    if apart >= untrained:
        warnings.warn(NO_NEARER, stacklevel=2)
    from tamedit.tasks.model import Model

    return Model.load(settled(out), next(model.network.parameters()).device.type)


def _check_numbers(calls: object, steps: object, seed: object, public: object) -> None:
    """One sentence for a choice of the wrong kind, before any work."""
    limits = (("calls", calls, 1, MOST_CALLS), ("steps", steps, 1, 1_000_000), ("seed", seed, 0, 2**63 - 1))
    for name, number, least, most in limits:
        whole(name, number)
        if isinstance(number, bool) or not least <= number <= most:  # type: ignore[operator]
            raise UserError(f"{name}={number!r} must lie between {least} and {most:,}.")
    if not isinstance(public, bool):
        raise UserError(f"public={public!r} must be True or False.")


def _taken_over(model: "Model", made: Student, beside: Path) -> dict[str, Any]:
    """Copy what the student's folder repeats, and derive its statement from that copy, so that both are of one moment."""
    spec, folder = model.spec, model.folder
    there = [] if folder is None else [name for name in (LEDGER, PRIVACY, RUN, READING) if (folder / name).is_file()]
    for name in there:
        shutil.copyfile(folder / name, beside / name)  # type: ignore[operator]
    if not spec.privacy.get("private"):
        return spec.privacy
    if folder is None or LEDGER not in there:
        return _with_gaps(spec.privacy, made.not_covered)
    check_agreement(folder)
    record = read(beside)
    statement: dict[str, Any] = json.loads(
        canonical(derived(spec.model_copy(update={"student": made}), record).to_dict())
    )
    if statement["steps"] != spec.privacy.get("steps"):
        raise UserError(
            f"The run in {folder} has spent more since its model was written; finish it with resume=True first."
        )
    if made.not_covered and PRIVACY in there:
        unit = statement["unit"]
        units = side_by_side(record, not_covered=made.not_covered) | {unit: statement}
        write_text(beside / PRIVACY, privacy_page(units, unit, in_words(statement), record))
    return statement


def _with_gaps(privacy: dict[str, Any], gaps: tuple[str, ...]) -> dict[str, Any]:
    """The statement of a private model whose ledger is not at hand, with what it does not cover besides."""
    if not gaps:
        return privacy
    words = f"{privacy['statement']}\nNot covered by the guarantee, either: {'; '.join(gaps)}."
    return privacy | {"not_covered": [*privacy.get("not_covered", ()), *gaps], "statement": words}


def _simulated(model: "Model") -> tuple[Series, str]:
    """Simulated homes with the model's rhythm, in its unit; one sentence if they are nothing like its data."""
    spec = model.spec
    level, seconds = spec.scaling_of().level[0], spec.frequency_seconds
    instead = "give public data with the same columns as `data`"
    if len(spec.targets) != 1 or spec.covariates:
        raise UserError(
            "Simulated homes have one target and no covariates except the calendar, but this model has "
            f"{len(spec.targets)} and {len(spec.covariates)}; {instead}."
        )
    if seconds not in SECONDS:
        raise UserError(
            f"Simulated homes have rows every 15, 30 or 60 minutes, but this model has one every {model._spoken_step}; {instead}."
        )
    if level < 0 or (level == 0 and spec.scaling_of().origin != "none"):
        raise UserError(f"This model's typical level is {level:g}, and simulated homes have loads, above 0; {instead}.")
    fleet = next(one for one in FLEETS if one.minutes * 60 == seconds)
    weeks = max(fleet.weeks, math.ceil(2 * spec.network.length * seconds / (7 * 86_400)))
    homes = homes_of(replace(fleet, weeks=weeks))
    unit = np.float32(level / TYPICAL) if level else np.float32(1)
    return replace(homes, values=homes.values * unit, targets=spec.targets), "simulated homes"
