"""The black-box audit: implausible homes are planted in the user's data, a model is trained as always, and its losses are read.

Every block of a planted home is one canary: readings that jump between two levels by coins of their own, so that no other
block says anything about them. The canary's own coin decides whether its readings are in the training data or missing;
a block without readings is no example. The attacker sees the finished model alone. The score of a canary is how much
better than an output of zero the model predicts it, averaged over many draws of masks and diffusion noise:

    imputation   a share of the steps is hidden        denoising   all steps are hidden
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float

from tamedit.data.loading import Data, load_split
from tamedit.data.series import Series
from tamedit.diffusion.loss import denoising_loss
from tamedit.errors import UserError
from tamedit.files import write_text
from tamedit.privacy.audit import Claim, DiracStep, Finding, from_scores, toss, white_box
from tamedit.privacy.entries import AUDITED, Record, read
from tamedit.runs.artifact import SPECIFICATION, WEIGHTS, load_model
from tamedit.runs.config import Speed
from tamedit.runs.folder import CHECKPOINT
from tamedit.runs.layout import layout_of
from tamedit.runs.request import TrainRequest
from tamedit.training.loop import Progress
from tamedit.training.requested import Prepared, Say, prepare
from tamedit.training.source import engine_losses, noised_batch
from tamedit.windows.cut import Windows
from tamedit.windows.examples import Examples
from tamedit.windows.masks import task_config

RUN_FOLDER, COINS, RESULT = "audited-run", "coins.json", "audit.json"
NAME = "planted home {}"
SCORED = {"imputation": "random", "denoising": "reconstruction"}
DRAWS, AT_ONCE = 32, 256


@dataclass(frozen=True, eq=False)
class Canaries:
    """All canaries of a run, in the data or not, as examples of the run; and their coins."""

    windows: Windows
    coins: Bool[np.ndarray, " m"]


def audit_request(
    data: Data,
    request: TrainRequest,
    *,
    homes: int = 30,
    canaries: int = 1000,
    confidence: float = 0.95,
    speed: Speed | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> list[Finding]:
    """Audit what `run_request` would do: a black-box audit of a run on this data, and a white-box one of its plan.

    Writes into the folder `request.out` the coins, the findings and, in a folder of its own, what is left of the run: its
    settings and its ledger. The model is deleted once it has been scored, because it must never be released.
    """
    out, privacy = request.out, request.privacy
    if out is None or privacy is None:
        raise UserError("An audit attacks a private run; give `out`, and `privacy` with an ε.")
    if privacy.layout != "blocks" or request.resume:
        raise UserError("An audit plants whole blocks in a new run; leave out `layout` and `resume`.")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is not an empty folder; name another one with `out`.")
    seed = request.seed if privacy.test_only else None
    series, _ = load_split(data, private=True, study=request.dates, **request.reading)
    planted = plant(series, homes, seed)
    asked = request.model_copy(update={"out": out / RUN_FOLDER, "reading": {}})
    prepared, found = hidden(prepare(planted, asked, speed=speed, progress=progress, say=say), homes, seed)
    prepared = replace(prepared, config=prepared.config.model_copy(update={"source": f"{AUDITED}{_name(data)}"}))
    write_text(
        out / COINS, json.dumps({"inside": found.coins.tolist(), "starts": found.windows.starts.tolist()}) + "\n"
    )
    if not prepared.train(speed=speed, progress=progress).finished:
        raise KeyboardInterrupt("The audit was stopped; begin again in another folder.")
    record = read(prepared.folder)
    findings = [black_box(prepared, found, record, confidence)]
    for name in (WEIGHTS, SPECIFICATION, CHECKPOINT):
        (prepared.folder / name).unlink(missing_ok=True)
    plan = record.segments[-1].plan.model_copy(update={"steps": record.steps})
    make = partial(DiracStep, mode=privacy.clipping)
    findings.append(white_box(plan, toss(canaries, seed), confidence=confidence, make=make))
    write_text(out / RESULT, json.dumps([one.to_dict() for one in findings], indent=2) + "\n")
    return findings


def plant(series: Series, homes: int, seed: int | None = None) -> Series:
    """The series with made-up homes behind it, each as long as the longest meter and with the stamps of that one.

    Their readings are 1/2 or 3/2 by fair coins, in units of a level that is drawn for every home. None of it is taken from the
    data except the stamps and the known covariates.
    """
    if homes < 1:
        raise UserError(f"homes={homes} is not possible: plant at least one home.")
    longest = int(np.argmax(series.lengths))
    rows = slice(int(series.offsets[longest]), int(series.offsets[longest + 1]))
    length, channels = rows.stop - rows.start, series.values.shape[1]
    generator = np.random.default_rng(seed)
    bits = generator.integers(0, 2, (homes, length, channels))
    level = np.exp(generator.normal(0.0, 0.5, (homes, 1, channels)))
    made = (level * (0.5 + bits)).astype(np.float32).reshape(homes * length, channels)
    names = tuple(NAME.format(number) for number in range(1, homes + 1))
    times = series.times
    for _ in names:
        times = times.append(series.times[rows])
    return replace(
        series,
        values=np.concatenate([series.values, made]),
        covariates=np.concatenate([series.covariates, np.tile(series.covariates[rows], (homes, 1))]),
        times=pd.DatetimeIndex(times),
        meters=(*series.meters, *names),
        offsets=np.concatenate([series.offsets, series.offsets[-1] + length * np.arange(1, homes + 1)]),
        layout="long",
    )


def hidden(prepared: Prepared, homes: int, seed: int | None = None) -> tuple[Prepared, Canaries]:
    """Toss a coin for every block of the planted homes, and take the readings of those that lost out of the training part."""
    layout, train = prepared.layout, prepared.split.train
    assert layout is not None
    windows = layout.examples(prepared.config)
    made = {NAME.format(number) for number in range(1, homes + 1)}
    mine = np.flatnonzero([train.meters[meter] in made for meter in layout.windows.meter_of()])
    coins, values = toss(len(mine), seed), train.values.copy()
    for start, span in zip(layout.windows.starts[mine[~coins]], _spans(layout.windows)[mine[~coins]], strict=True):
        values[start : start + span] = np.nan
    reduced = replace(train, values=values)
    spans = None if windows.spans is None else windows.spans[mine]
    canaries = Canaries(replace(windows, starts=windows.starts[mine], spans=spans), coins)
    split = replace(prepared.split, train=reduced)
    without = layout_of(reduced, prepared.config)
    assert without is not None
    # N was counted before the coins were tossed, so that it says nothing about them.
    return replace(prepared, split=split, layout=replace(without, count=layout.count)), canaries


def black_box(prepared: Prepared, canaries: Canaries, record: Record, confidence: float) -> Finding:
    """The bounds from the finished model's losses. The claim is that of one example: a canary is one, removed."""
    plan = record.segments[-1].plan
    claim = Claim(tuple(record.mechanisms), plan.delta)
    scores = model_scores(prepared, canaries.windows)
    return from_scores(scores, canaries.coins, claim, attack="black box", confidence=confidence)


@torch.no_grad()
def model_scores(prepared: Prepared, windows: Windows) -> Mapping[str, Float[np.ndarray, " m"]]:
    """How much better than an output of zero the model of a run predicts each canary, by task."""
    network, spec = load_model(prepared.folder)
    scaling, process = spec.scaling_of(), prepared.config.process
    losses, scores = engine_losses(process), {}
    for task, scheme in SCORED.items():
        if scheme == "reconstruction" and scaling.origin == "none":
            continue  # such a model cannot see windows without any reading
        examples = Examples(windows, task_config(scheme), scaling, spec.examples, prepared.config.seed)
        total = np.zeros(len(windows))
        for first in range(0, len(windows), AT_ONCE):
            some = np.arange(first, min(first + AT_ONCE, len(windows)))
            for draw in range(DRAWS):
                batch, time, noise = noised_batch(examples, some, draw, process)
                zero = denoising_loss(lambda noised, *_: torch.zeros_like(noised), batch, time, noise, process)
                total[some] += (zero - losses(network, (batch, time, noise))).double().numpy()
        scores[task] = total / DRAWS
    return scores


def _spans(windows: Windows) -> np.ndarray:
    return np.full(len(windows), windows.length) if windows.spans is None else windows.spans


def _name(data: Data) -> str:
    return str(data) if isinstance(data, str | Path) else "a table in memory"
