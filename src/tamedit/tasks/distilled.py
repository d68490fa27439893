"""`Model.distill`: a student that samples in one to four calls of its network instead of eight, without any private data.

The student is computed from the model and from windows of simulated homes, or of data that is public. It reads nothing that the
model was trained on, so the model's guarantee covers it as well, and nothing is spent (post-processing). Its folder has what the
model's folder has of these:

    model.safetensors, model.json   the student: the model's statement, population and units; its calls; what it was made from
    ledger.jsonl, PRIVACY.md        copies, if the model is private: `account`, `release` and `verify` derive ε from the ledger
    run.json, reading.json          copies, if the model is a run's, so that `evaluate` finds the same data and the same split
"""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamedit.data.calendar import network_covariates
from tamedit.data.catalogue import PUBLIC, SOURCES
from tamedit.data.loading import IN_MEMORY, Data, load_split
from tamedit.data.reader import check_reading
from tamedit.data.series import Series
from tamedit.data.split import split_by_time
from tamedit.errors import UserError
from tamedit.files import check_new_folder, new_folder
from tamedit.privacy.entries import FILE_NAME as LEDGER
from tamedit.runs.agreement import check_agreement
from tamedit.runs.artifact import WEIGHTS, save_model
from tamedit.runs.cards import derived
from tamedit.runs.folder import READING, RUN, load_run
from tamedit.runs.privacy_page import PRIVACY
from tamedit.runs.provenance import CLAIMED, Origin, Student
from tamedit.runs.recipe import MASKS
from tamedit.runs.release import canonical, digest
from tamedit.tasks.single_windows import whole
from tamedit.training.homes import FLEETS, SECONDS, homes_of
from tamedit.training.loop import Progress
from tamedit.training.public import TYPICAL
from tamedit.training.student import Stopped, learn, student_process
from tamedit.windows.cut import cut
from tamedit.windows.examples import Examples

if TYPE_CHECKING:
    from tamedit.tasks.model import Model

CALLS, MOST_CALLS, STEPS = 2, 8, 600


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
    be public or simulated (`public=True` says so of what is not known to be). `steps`: of training. `reading` goes to
    `tamedit.read`.
    """
    check_reading(distill, reading)
    out = Path(out)
    check_new_folder(out, "a student")
    for name, number, most in (("calls", calls, MOST_CALLS), ("steps", steps, 1_000_000)):
        whole(name, number)
        if not 1 <= number <= most:
            raise UserError(f"{name}={number} must lie between 1 and {most:,}.")
    spec = model.spec
    if spec.student is not None:
        raise UserError("This model is a student already; distill the model that it was distilled from.")
    if spec.process.prediction != "v":
        raise UserError("Only networks that predict the velocity can be distilled; train one with anchor='free'.")
    if reading and data is None:
        raise UserError(f"{', '.join(reading)} say how to read `data`; give it, or leave them out.")
    kept, privacy = _taken_over(model)
    series, contexts = _simulated(model) if data is None else _public(model, data, public, reading)
    windows = cut(network_covariates(series, spec.calendar), spec.network.length, 1)
    examples = Examples(windows, MASKS, model.scaling, spec.examples, seed)
    process = student_process(spec.process, calls)
    try:
        weights, apart, untrained = learn(model.network, examples, process, steps, progress)
    except Stopped:
        raise KeyboardInterrupt("stopped; nothing was written.") from None
    teacher = spec.weights_sha256 or ("not on disk" if model.folder is None else digest(model.folder / WEIGHTS))
    ends = {"apart": round(apart, 4), "untrained": round(untrained, 4)}
    made = Student(teacher=teacher, contexts=contexts, steps=steps, seed=seed, **ends)
    with new_folder(out) as beside:
        for name in kept:
            shutil.copyfile(model.folder / name, beside / name)  # type: ignore[operator]
        save_model(beside, spec.model_copy(update={"process": process, "student": made, "privacy": privacy}), weights)
    from tamedit.tasks.model import Model

    return Model.load(out, next(model.network.parameters()).device.type)


def _taken_over(model: "Model") -> tuple[list[str], dict[str, Any]]:
    """The files that the student's folder repeats, and the statement: as the ledger gives it, if there is one."""
    spec, folder = model.spec, model.folder
    if folder is None:
        return [], spec.privacy
    there = [name for name in (LEDGER, PRIVACY, RUN, READING) if (folder / name).is_file()]
    if not spec.privacy.get("private") or LEDGER not in there:
        return there, spec.privacy
    record = check_agreement(folder)[0]
    statement = json.loads(canonical(derived(spec, record).to_dict()))
    if statement["steps"] != spec.privacy.get("steps"):
        raise UserError(
            f"The run in {folder} has spent more since its model was written; finish it with resume=True first."
        )
    return there, statement


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


def _public(model: "Model", data: Data, public: bool, reading: dict[str, Any]) -> tuple[Series, str]:
    """The training part of public data; nothing can check that it is public, so it must be known or said."""
    name = data if isinstance(data, str) else str(data) if isinstance(data, Path) else IN_MEMORY
    origin: Origin = "public" if name in PUBLIC else "said to be public" if public else "not public"
    if origin == "not public":
        raise UserError(
            f"{name} is not known to be public, and no guarantee would cover what a student learns from its windows; say "
            "public=True if that data is public or simulated, or leave out `data`."
        )
    if model.spec.privacy.get("private") and model.folder is not None and (model.folder / RUN).is_file():
        own = load_run(model.folder)[0].source
        if own == name or (Path(own).exists() and Path(name).exists() and Path(own).samefile(name)):
            raise UserError(
                f"{name} is the private data that this model was trained on; name data that is public, or leave out `data`."
            )
    if name in SOURCES:
        series = model.read(load_split(name, **reading)[1].train)
    else:
        series = split_by_time(model.read(data, **reading)).train
    return series, f"{Path(name).name}, which {CLAIMED[origin]}"
