"""Proposition 1 for the trained network of a run: S_aware from its weights, and from bounds that are public.

What an example may hold is taken from the form of the model wherever that decides it, and assumed elsewhere:

    residual      the clamp of training (`residual_limit`); without one, the assumed bound
    values        √(L − 1) in instance units: |x − mean| ≤ √(n − 1) · deviation for n ≤ L numbers; asinh of it with the anchor;
                  else the assumed bound
    anchor        its clamp (`FEATURE_LIMIT`); 0 without an anchor
    covariates    1 for the calendar's; the assumed bound for a user's own
    ε             the assumed bound: ε is Gaussian, so this one holds with a probability, which is stated
    x_t, wanted   √(residual² + ε²), as signal² + noise² = 1; an ε-prediction wants ε itself

So `RunTheory` holds nothing that was measured on data, and may lie beside the weights. What the run recorded of its
gradients was measured on data without noise: it is not private, and `largest_recorded` stays apart from the rest.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from scipy import stats

from tamedit.diagnostics.gradient_record import read_record
from tamedit.errors import UserError
from tamedit.model.bounds import Bounds
from tamedit.runs.artifact import ModelSpec, load_model
from tamedit.runs.folder import NOT_PRIVATE, load_run
from tamedit.runs.provenance import Reference
from tamedit.runs.recipe import REFERENCE
from tamedit.training.recorder import HEADER, STATEMENT
from tamedit.windows.examples import FEATURE_LIMIT
from tamedit_paper.theory.propagation import InputBounds
from tamedit_paper.theory.search import ascend
from tamedit_paper.theory.sensitivity import Theory, analyse

ASSUMED, CLIP, STARTS = 5.0, 1.0, 4
PRIVATE = "Computed from the released weights and from public bounds alone: it costs no privacy beyond the model's."
PLAIN = "Computed from the weights and from public bounds alone; the weights were trained without privacy."
SYMBOLS = {"condition": "‖c‖", "scale": "γ", "shift": "β", "gate": "α"}


class Entry(NamedTuple):
    """A bound on the entries of one part of an example, and why it holds."""

    limit: float
    why: str
    assumed: bool


def entry_bounds(spec: ModelSpec, assumed: float = ASSUMED) -> dict[str, Entry]:
    """What an example of this form may hold, in model units; `assumed` where the form does not decide it."""
    if not (math.isfinite(assumed) and assumed > 0):
        raise UserError(f"--input-bound {assumed} must be a number above 0; entries are in model units, so 5 is usual.")
    values = Entry(assumed, "assumed", True)
    if spec.scaling_of().mode == "instance":
        values = Entry(math.sqrt(spec.network.length - 1), "units of each window's own: at most √(L − 1)", False)
    anchor = Entry(0.0, "this form has none", False)
    if spec.examples.anchor == "free":
        values = Entry(math.asinh(values.limit), f"asinh of {values.why}", values.assumed)
        anchor = Entry(FEATURE_LIMIT, "quantiles and z of the free distribution, clamped", False)
    limit = spec.examples.residual_limit
    residual = Entry(assumed, "assumed", True)
    if limit is not None:
        residual = Entry(limit, "clamped in training", False)
    covariates = Entry(1.0, "points on circles: the calendar", False)
    if spec.network.covariate_channels == 0:
        covariates = Entry(0.0, "this form has none", False)
    elif spec.covariates:
        covariates = Entry(max(assumed, 1.0), "assumed", True)
    return {
        "residual": residual,
        "epsilon": Entry(assumed, "assumed: ε is Gaussian", True),
        "values": values,
        "anchor": anchor,
        "covariates": covariates,
    }


def input_bounds(spec: ModelSpec, entries: dict[str, Entry]) -> InputBounds:
    """The same as the theory wants it: bounds on x_t and on what the network should answer."""
    inputs = InputBounds.from_data(**{name: entry.limit for name, entry in entries.items()})
    if spec.process.prediction == "epsilon":
        inputs = inputs.model_copy(update={"wanted": entries["epsilon"].limit})
    return inputs


@dataclass(frozen=True)
class Search:
    """The largest gradient that an adversary found within the input bounds."""

    largest: float
    starts: int
    steps: int


@dataclass(frozen=True)
class RunTheory:
    """The theory of one run, from released weights and public bounds."""

    theory: Theory
    bounds: tuple[Bounds, ...]
    reference: Bounds
    entries: dict[str, Entry]
    inputs: InputBounds
    epsilon_exceeds: float  # the chance that an entry of a window's ε passes its bound
    private: bool
    clip_note: str | None
    search: Search | None = None

    @property
    def sentence(self) -> str | None:
        """Why there is no finite bound; None if there is one."""
        missing = self.theory.unbounded
        if not missing:
            return None
        symbols = ", ".join(SYMBOLS[name] for name in missing)
        names = ", ".join(missing)
        return f"S_aware is infinite: the network does not bound {symbols} (missing bounds: {names})."

    @property
    def notes(self) -> list[str]:
        """What a reader must know before believing the number."""
        if self.theory.unbounded:
            return []
        notes = [
            "the bound is for the weights that the run ended with, and for every example within the input bounds",
            f"a window's ε has an entry beyond {self.entries['epsilon'].limit:g} with probability {self.epsilon_exceeds:.2g}",
        ]
        if self.clip_note:
            notes.append(self.clip_note)
        if self.theory.rho_bound > 1:
            notes.append("ρ ≤ S_aware / C is above 1 and says nothing: clipping alone keeps ρ at 1 or below")
        return notes

    def to_dict(self) -> dict[str, Any]:
        """For JSON, and for the run's folder: nothing in it was measured on data."""
        search = None
        if self.search is not None:
            finite = math.isfinite(self.theory.sensitivity)
            search = {
                "largest": self.search.largest,
                "share_of_S_aware": self.search.largest / self.theory.sensitivity if finite else None,
                "starts": self.search.starts,
                "steps": self.search.steps,
            }
        return {
            **self.theory.to_dict(),
            "bounds": [bounds.model_dump() for bounds in self.bounds],
            "reference": self.reference.model_dump(),
            "entries": {name: entry._asdict() for name, entry in self.entries.items()},
            "inputs": self.inputs.model_dump(),
            "epsilon_exceeds": self.epsilon_exceeds,
            "search": search,
            "sentence": self.sentence,
            "notes": self.notes,
            "statement": PRIVATE if self.private else PLAIN,
        }


def analyse_run(
    run: Path, *, assumed: float = ASSUMED, reference: Path | None = None, search_steps: int | None = None
) -> RunTheory:
    """S_aware of the network that a run ended with. `reference`: a file of `tamedit diagnose --bounds`.

    `search_steps` also looks for the worst example within the input bounds, with that many steps from each of four starts.
    """
    config, _ = load_run(run)
    network, spec = load_model(run)
    if not all(bool(torch.isfinite(weight).all()) for weight in network.parameters()):
        raise UserError(
            f"{run} has weights that are not finite, so no bound exists; train it with a lower learning rate."
        )
    private = config.privacy is not None
    entries = entry_bounds(spec, assumed)
    inputs = input_bounds(spec, entries)
    anchor = spec.examples.anchor
    base = REFERENCE[anchor] if reference is None else Reference.load(reference, anchor, private).magnitudes
    clip = CLIP if config.privacy is None else config.privacy.clip
    cells = spec.network.length * spec.network.target_channels
    beyond = -math.expm1(cells * math.log1p(-2 * float(stats.norm.sf(assumed))))
    theory = analyse(network, inputs, clip, base)
    found = None
    if search_steps is not None:
        largest, _ = ascend(network.double(), inputs, starts=STARTS, steps=search_steps)
        found = Search(largest, STARTS, search_steps)
    return RunTheory(
        theory=theory,
        bounds=spec.network.bounds,
        reference=base,
        entries=entries,
        inputs=inputs,
        epsilon_exceeds=beyond,
        private=private,
        clip_note=None if private else f"the run clips nothing; C = {CLIP:g} is taken",
        search=found,
    )


def largest_recorded(run: Path, sensitivity: float) -> dict[str, Any] | None:
    """The longest gradient that the run recorded, beside its bound; None where none was recorded. Not private.

    It is over all recorded steps, each with the weights of its time: an illustration of S_aware, no test of it.
    """
    if not (Path(run) / NOT_PRIVATE / HEADER).is_file():
        return None
    record = read_record(run)
    norms = record.norms("total")
    if not len(norms):
        return None
    largest = float(norms.max())
    return {
        "private": False,
        "statement": STATEMENT,
        "largest": largest,
        "share_of_S_aware": largest / sensitivity if math.isfinite(sensitivity) else None,
        "examples": len(record.rows),
        "not_finite": len(record.rows) - len(norms),
    }
