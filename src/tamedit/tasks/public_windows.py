"""Data that a student may learn on: what is public, and not what its teacher was trained on.

Nothing can check that data is public: it must be known (`catalogue.PUBLIC`) or said. What can be checked, and is refused:

    a ledger of a data set lies beside the files and names them: somebody spent privacy on this data
    the files are, byte for byte, those that the teacher names as its data, where these can still be found
    the readings are those of which the folder of a private run has a fingerprint (`folder.recognised`)

So a name, a path, a copy or a table in memory makes no difference. A part of the private data, or data in which readings or
stamps were changed, is not recognised. Nor is any data of a release or of a saved model: these have no fingerprint, so there the
user's word is all.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tamedit.data.catalogue import PUBLIC, SOURCES
from tamedit.data.clean import drop_negatives
from tamedit.data.loading import IN_MEMORY, Data, load_split
from tamedit.data.reading.several import files_of
from tamedit.data.series import Series
from tamedit.data.sources import place, split
from tamedit.data.split import split_by_time
from tamedit.errors import UserError
from tamedit.privacy.entries import AUDITED
from tamedit.privacy.entries import read as read_ledger
from tamedit.privacy.ledger import OF_DATA
from tamedit.runs.folder import RUN, DataFacts, fingerprint_of, load_run, recognised
from tamedit.runs.provenance import CLAIMED, Origin
from tamedit.runs.release import digest

if TYPE_CHECKING:
    from tamedit.tasks.model import Model

REMEDY = "name data that is public, or leave out `data`"


def public_windows(model: "Model", data: Data, public: bool, reading: dict[str, Any]) -> tuple[Series, str]:
    """The training part of public data, and a few words on what it is; one sentence if this model must not learn on it."""
    named = isinstance(data, str) and data in SOURCES
    name = _name(data)
    origin: Origin = "public" if named and data in PUBLIC else "said to be public" if public else "not public"
    if origin == "not public":
        raise UserError(
            f"{name} is not known to be public, and no guarantee would cover what a student learns from its windows; say "
            "public=True if that data is public or simulated, or leave out `data`."
        )
    if origin != "public" and (ledger := _ledger_of(data, model.folder)):
        raise UserError(
            f"{name} is no public data: privacy was spent on it, since {ledger} is the ledger of its private runs; {REMEDY}."
        )
    if _is_own(model, data, reading):
        raise UserError(f"{name} is the private data that this model was trained on; {REMEDY}.")
    train = load_split(data, **reading)[1].train if named else split_by_time(model.read(data, **reading)).train
    series = model.read(train) if named else train
    longest, length = int(series.lengths.max(initial=0)), model.spec.network.length
    if longest < length:
        part = "its training part" if named else "the first 70 % of its rows"
        raise UserError(
            f"{name} is too short: a window of this model has {length} rows, and no meter of the data has as many in {part} "
            f"({longest} at most); give a longer series, or leave out `data`."
        )
    return series, f"{Path(name).name}, which {CLAIMED[origin]}"


def _name(data: Data) -> str:
    """What a sentence calls the data."""
    if isinstance(data, str | Path):
        return str(data)
    if isinstance(data, list | tuple) and data:
        return str(data[0]) if len(data) == 1 else f"{len(data)} files"
    return IN_MEMORY


def _files(data: object) -> list[Path]:
    """The files of a source that are there; none of a table in memory."""
    if isinstance(data, str) and data in SOURCES:
        found = [place(data)]
    elif isinstance(data, str | Path | list | tuple) and data != IN_MEMORY:
        try:
            several = files_of(data)
        except UserError:
            return []
        found = [Path(data)] if several is None and isinstance(data, str | Path) else several or []
    else:
        return []
    return [one for one in found if one.is_file()]


def _ledger_of(data: Data, teacher: Path | None) -> Path | None:
    """A ledger of a data set that lies beside these files and names one of them, or their folder."""
    if isinstance(data, str) and data in SOURCES and teacher is not None:  # of named data it lies beside the run
        beside = teacher.parent / f"{data}{OF_DATA}"
        if beside.is_file():
            return beside
    for file in _files(data):
        for one in dict.fromkeys((file.absolute(), file.resolve())):
            likely = [one.with_name(one.stem + OF_DATA), one.parent.with_name(one.parent.name + OF_DATA)]
            for ledger in likely if one.parent.name else likely[:1]:
                if ledger.is_file():
                    return ledger
            for ledger in sorted(one.parent.glob(f"*{OF_DATA}")):
                if one.name in _names_in(ledger):
                    return ledger
    return None


def _names_in(ledger: Path) -> Iterator[str]:
    """The names of the files that a ledger's runs were charged for; none of a damaged one, which could be anybody's."""
    with suppress(UserError):
        for segment in read_ledger(ledger).segments:
            yield Path(segment.data.removeprefix(AUDITED)).name


def _is_own(model: "Model", data: Data, reading: dict[str, Any]) -> bool:
    """Whether this is the data of the private run in the model's folder, as far as that can be seen from there."""
    folder = model.folder
    if folder is None or not model.spec.privacy.get("private") or not (folder / RUN).is_file():
        return False
    config, facts = load_run(folder)
    if isinstance(data, str) and data in SOURCES and data == config.source:
        return True
    if _same_file(_files(data), _files(config.source)):
        return True
    before = fingerprint_of(folder)
    return before is not None and before.rpartition(" ")[2] in _digests(model, data, config.source, facts, reading)


def _same_file(some: list[Path], others: list[Path]) -> bool:
    """Whether a file is among both, or a copy of it."""
    sizes = {one.stat().st_size for one in some} & {one.stat().st_size for one in others}
    left, right = ({digest(one) for one in files if one.stat().st_size in sizes} for files in (some, others))
    return bool(left & right)


def _digest_in(train: Series) -> str:
    """The digest of the readings alone, whatever their columns and meters are called."""
    return recognised(train, private=False).rpartition(" ")[2]


def _digests(model: "Model", data: Data, source: str, facts: DataFacts, reading: dict[str, Any]) -> Iterator[str]:
    """Digests of the data, laid as the run laid its own: read as the run did, as the user says now, by the model's columns."""
    study = facts.study_for(data if isinstance(data, str) else None)
    columns = {"targets": model.spec.targets}
    given = [facts.reading, columns | facts.reading, facts.reading | reading, reading, columns | reading]
    if isinstance(data, Series | np.ndarray):
        given = [{}]
    for how in [one for at, one in enumerate(given) if one not in given[:at]]:
        with suppress(UserError):  # data that cannot be laid like the run's is another
            yield _digest_in(load_split(data, private=True, study=study, **how)[1].train)
    with suppress(UserError):
        series = replace(model.read(data, **reading), id_guessed=False)
        if source not in SOURCES:
            yield _digest_in(load_split(series, private=True, study=study)[1].train)
        elif study is not None:  # a table of named data, which has a split of its own
            cleaned = drop_negatives(series) if SOURCES[source].non_negative else series
            yield _digest_in(split(source, study.lay(cleaned)).train)
