"""The folder of a run: its settings, so that it can be resumed, scored and explained.

run.json        the configuration, written first
reading.json    how the data was read, and what is publicly known about it
checkpoint.safetensors   the state, replaced during the run
metrics.jsonl   losses; of a private run in the folder not-private
not-private/    losses; gradient norms, clipping rates and step times if asked for: must not be shared with the model
ledger.jsonl    of a private run: what was spent
scaling.json    of a private run that asked for it: the level and scale that were released with noise
bounds.json     of a private run that asked for it: the bounds that were released with noise
model.safetensors, model.json   the model, written when the run is finished
"""

import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, field_validator

from tamedit.choices import Frozen
from tamedit.data.catalogue import SOURCES
from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.data.study import Study
from tamedit.errors import Resumable, UserError
from tamedit.files import unreadable, write_text
from tamedit.privacy.entries import FILE_NAME as LEDGER
from tamedit.privacy.entries import read as read_ledger
from tamedit.runs.config import RunConfig

RUN, READING, SCALING, BOUNDS = "run.json", "reading.json", "scaling.json", "bounds.json"
PEOPLE, EVOLVED = "population.json", "evolved.json"
CHECKPOINT = "checkpoint.safetensors"
MODEL = "model.json"  # `artifact.SPECIFICATION`, which would bring the network with it
NOT_PRIVATE = "not-private"  # the folder of what must not be shared with a model
DATA = "data.txt"  # in it: the fingerprint of a private run's data
BEGUN = (RUN, READING, LEDGER, CHECKPOINT)  # what a private run writes before its first step


def not_private(folder: Path) -> Path:
    """The folder of what must not be shared, for the owner's eyes alone (mode 0700)."""
    place = Path(folder) / NOT_PRIVATE
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.chmod(0o700)
    except OSError as error:
        raise UserError(f"Cannot write {place}: {error.strerror}; choose a folder that you may write to.") from error
    return place


class DataFacts(Frozen):
    """What the user said about the data: how to read it, and what is publicly known about it (one number per target)."""

    reading: dict[str, Any] = Field(default={})  # arguments of `tamedit.read`
    non_negative: bool = False  # readings below 0 cannot be
    typical_level: tuple[float, ...] | None = None
    typical_scale: tuple[float, ...] | None = None
    lower: tuple[float, ...] | None = None  # bounds on readings, for a private level and scale
    upper: tuple[float, ...] | None = None
    study: Study | None = None  # the dates that cut the data, where all meters lie on one grid
    data: str | None = None  # fingerprint of the training data (`recognised`); None in earlier runs
    ledger: str | None = None  # of the data set, which a private run is charged to; None: its own is the only one

    @property
    def shared_ledger(self) -> Path | None:
        """The place of the data set's ledger."""
        return Path(self.ledger) if self.ledger else None

    def study_for(self, data: str | None) -> Study | None:
        """The dates that cut the run's own data; named data sets and other data have their own."""
        return self.study if data is None or data not in SOURCES else None

    @field_validator("reading")
    @classmethod
    def _readable(cls, reading: dict[str, Any]) -> dict[str, Any]:
        if unknown := set(reading) - set(inspect.signature(read).parameters):
            raise ValueError(f"unknown reading arguments: {', '.join(sorted(unknown))}")
        return reading


def recognised(train: Series, private: bool) -> str:
    """Fingerprint of the training data: its extent and, without privacy, its size and a digest of its readings."""
    first, last = train.span
    extent = f"{first} to {last}, {', '.join(train.targets)}"
    if private:
        return extent
    extent = f"{len(train):,} rows, {len(train.meters):,} meters, {first} to {last}"
    return f"{extent}, digest {blake2b(np.ascontiguousarray(train.values).data, digest_size=8).hexdigest()}"


def fingerprint_of(folder: Path) -> str | None:
    """The fingerprint that a private run's folder keeps of its data; None if there is none."""
    place = folder / NOT_PRIVATE / DATA
    try:
        return place.read_text(encoding="utf-8").rstrip("\n") if place.is_file() else None
    except OSError as error:
        raise unreadable(place, error) from error


def _check_same(folder: Path, train: Series) -> None:
    """A private run is continued on its own data alone. The digest that tells is not private, and stays apart."""
    place, now = not_private(folder) / DATA, recognised(train, private=False) + "\n"
    before = place.read_text(encoding="utf-8") if place.is_file() else now
    if before != now:
        raise UserError(f"The data is not what {folder} was started with; restore it, or use another `out`.")
    write_text(place, now)


@contextmanager
def claimed(
    folder: Path, config: RunConfig, facts: DataFacts, resume: bool, train: Series | None = None
) -> Iterator[None]:
    """Claim the folder. If the run is rejected, the files it created are removed, unless it has spent or saved something.

    A run that could not write is not rejected: it can be continued once there is room. `train`: the data of a private run.
    """
    existed, new = folder.exists(), [name for name in BEGUN if not (folder / name).exists()]
    claim(folder, config, facts, resume)
    try:
        if train is not None:
            _check_same(folder, train)
        yield
    except Resumable:
        raise
    except UserError:
        if RUN in new and not _advanced(folder):
            for name in new:
                (folder / name).unlink(missing_ok=True)
            (folder / NOT_PRIVATE / DATA).unlink(missing_ok=True)
            for place in (folder / NOT_PRIVATE, *([] if existed else [folder])):
                if place.is_dir() and not any(place.iterdir()):
                    place.rmdir()
        raise


def _advanced(folder: Path) -> bool:
    """Whether a run has spent or saved something: its ledger has paid (one that cannot be read may have), or has a checkpoint.

    A count of examples alone stays in the ledger, which is kept. The settings can be given anew.
    """
    if not (folder / LEDGER).exists():
        return (folder / CHECKPOINT).exists()
    try:
        return bool(read_ledger(folder).planned.mechanisms)
    except UserError:
        return True


def check_free(folder: Path, resume: bool) -> None:
    """Raise one sentence if the folder is not one in which this run can begin, or be resumed."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; name a folder with `out`.")
    if (folder / RUN).exists():
        if not resume:
            raise UserError(
                f"{folder} already contains a run; continue it with resume=True, or name another folder with `out`."
            )
        if is_student(folder):
            raise UserError(f"{folder} holds a student, which is finished; resume the run that it was distilled from.")
        return
    spent = (folder / LEDGER).exists() and _advanced(folder)
    held = MODEL if (folder / MODEL).exists() else LEDGER if spent else None
    if held and not (folder / CHECKPOINT).exists():
        raise UserError(
            f"{folder} contains {held} but no {RUN}: a model that was not trained there, which training would overwrite; name "
            "another folder with `out`."
        )
    left = [name for name in (CHECKPOINT, SCALING, BOUNDS, PEOPLE) if (folder / name).exists()]
    if left:
        raise UserError(
            f"{folder} contains {left[0]} but no {RUN}, so its origin is unknown; name another folder with `out`."
        )
    if resume:
        check_resumable(folder)


def claim(folder: Path, config: RunConfig, facts: DataFacts, resume: bool) -> None:
    """Claim the folder for this run, or say in one sentence why that is not possible."""
    check_free(folder, resume)
    if (folder / RUN).exists():
        before_config, before_facts = load_run(folder)
        before = before_config.model_dump(mode="json") | before_facts.model_dump(mode="json")
        now = config.model_dump(mode="json") | facts.model_dump(mode="json")
        new = {key for key in ("data", "ledger") if before[key] is None}  # which earlier versions did not write
        changed = sorted(key for key in now if now[key] != before[key] and key not in new)
        if changed == ["data"]:
            raise UserError(
                f"The data is not what {folder} was started with ({before['data']}, now {now['data']}); restore it, or "
                "use another `out`."
            )
        if changed:
            raise UserError(
                f"{folder} was started with another {', '.join(changed)}; repeat its choices to resume it, or use another `out`."
            )
        return
    write_text(folder / READING, json.dumps(facts.model_dump(mode="json"), indent=2) + "\n")
    write_text(folder / RUN, json.dumps(config.model_dump(mode="json"), indent=2) + "\n")


def is_student(folder: Path) -> bool:
    """Whether the model in a folder was distilled from another."""
    try:
        return json.loads((folder / MODEL).read_text(encoding="utf-8")).get("student") is not None
    except (OSError, ValueError, AttributeError):
        return False


def check_resumable(folder: Path) -> None:
    """Raise one sentence if there is nothing to resume."""
    if not (folder / RUN).exists():
        raise UserError(
            f"{folder} contains no run to resume; leave out `resume`, or name the folder of one with `out`."
        )


def load_run(folder: Path) -> tuple[RunConfig, DataFacts]:
    """The configuration of a run, and the facts about its data."""
    folder = Path(folder)
    for name in (RUN, READING):
        if not (folder / name).is_file():
            raise UserError(f"{folder} is not a run: {name} is missing; name a folder made by `tamedit train`.")
    try:
        config = RunConfig.model_validate_json((folder / RUN).read_text(encoding="utf-8"))
        facts = DataFacts.model_validate_json((folder / READING).read_text(encoding="utf-8"))
    except PermissionError as error:
        raise unreadable(folder, error) from error
    except (ValueError, UserError) as error:
        raise UserError(
            f"{folder / RUN} or {READING} is damaged or from another version; train again in another folder."
        ) from error
    return config, facts
