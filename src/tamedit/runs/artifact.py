"""A trained model on disk: `model.safetensors` (weights) and `model.json` (everything else). Never pickle.

Nothing in these two files was measured on the training data, except what `scaling`, `population` and `privacy` say was.
"""

import json
import math
from hashlib import sha256
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, Self, get_args

import torch
from pydantic import BaseModel, ConfigDict, model_validator
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from tamedit.data.scaling import Mode, Origin, Scaling
from tamedit.diffusion.process import Process
from tamedit.errors import UserError
from tamedit.files import replacing, unreadable, write_text
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import NetworkConfig
from tamedit.privacy.population import Population
from tamedit.runs.provenance import Student
from tamedit.statics import Static, columns_of
from tamedit.windows.examples import ExampleConfig

WEIGHTS, SPECIFICATION = "model.safetensors", "model.json"
VERSION = 1
SOFTWARE = version("tamedit")


class ModelSpec(BaseModel):
    """What a model is: enough to build it and to read data for it."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    version: int = VERSION
    network: NetworkConfig
    process: Process
    examples: ExampleConfig
    scaling: dict[str, Any]
    targets: tuple[str, ...]
    covariates: tuple[str, ...] = ()  # given by the user; calendar channels come after them
    static: Static = ()  # attributes of meters; their categories are the last of the covariates
    calendar: bool = True
    frequency_seconds: float
    phase_seconds: float = 0.0  # where stamps stand within a step
    timezone: str | None = None  # time zone of the calendar, if the user named one
    non_negative: bool = False  # a public fact: readings below 0 cannot be
    privacy: dict[str, Any] = {
        "private": False,
        "statement": "Trained without privacy: no guarantee for anyone in the data.",
    }

    population: Population | None = None  # who the homes are; None: the model generates windows alone
    weights_sha256: str | None = None  # of the file of weights; this and the next two: None in earlier files
    student: Student | None = None  # None: not distilled; what it knows are the times in `process.calls`
    ledger_head: str | None = None  # hash of the ledger's last line when the model was written
    software_version: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Find mistakes in an edited file before the model is used."""
        scaling = self.scaling_of()
        if scaling.mode not in get_args(Mode) or scaling.origin not in get_args(Origin):
            raise ValueError("the kind of the scaling is unknown")
        by_channel = (scaling.level, scaling.scale, scaling.floor, scaling.relative_floor)
        if any(len(numbers) != len(self.targets) for numbers in by_channel):
            raise ValueError("the scaling and the targets have different channels")
        if not all(math.isfinite(number) for numbers in by_channel for number in numbers) or min(scaling.scale) <= 0:
            raise ValueError("the scaling is not finite and above 0")
        if not (math.isfinite(self.frequency_seconds) and self.frequency_seconds > 0):
            raise ValueError("the step between rows is not above 0")
        if self.network.covariate_channels != len(self.covariates) + (6 if self.calendar else 0):
            raise ValueError("the network and the covariates have different channels")
        names = columns_of(self.static)
        if self.covariates[len(self.covariates) - len(names) :] != names:
            raise ValueError("the covariates and the attributes differ")
        if self.population is not None and self.population.static not in ((), self.static):
            raise ValueError("the population has other attributes")
        calls = self.process.calls
        if (self.student is None) != (calls is None):
            raise ValueError("a student has a teacher and calls, and other models have neither")
        if calls is not None and (
            not calls
            or self.process.prediction != "v"
            or any(later >= before for before, later in pairwise((self.process.steps, *calls)))
        ):
            raise ValueError("the calls of a student are not time steps that fall, of a network that predicts v")
        if "statement" not in self.privacy:
            raise ValueError("the privacy statement is missing")
        return self

    @property
    def varying(self) -> tuple[str, ...]:
        """The covariates that change from row to row."""
        return self.covariates[: len(self.covariates) - len(columns_of(self.static))]

    def scaling_of(self) -> Scaling:
        return Scaling.from_dict(self.scaling)


def save_model(folder: Path, spec: ModelSpec, weights: dict[str, Tensor]) -> list[Path]:
    """Write both files, weights last: a folder with `model.safetensors` is complete. The first names the second's digest."""
    folder = Path(folder)
    content = save({name: value.detach().cpu().contiguous() for name, value in weights.items()})
    written = spec.model_copy(update={"weights_sha256": sha256(content).hexdigest(), "software_version": SOFTWARE})
    write_text(folder / SPECIFICATION, json.dumps(written.model_dump(mode="json"), indent=2) + "\n")
    with replacing(folder / WEIGHTS) as temporary:
        temporary.write_bytes(content)
    return [folder / WEIGHTS, folder / SPECIFICATION]


def other_weights(folder: Path) -> str:
    """The sentence about weights that are not those of their model file."""
    return (
        f"{folder / WEIGHTS} is not the file that {SPECIFICATION} names by its digest: one of the two was changed; restore both "
        "from one run."
    )


def load_model(folder: Path, device: torch.device | str = "cpu") -> tuple[DiffusionTransformer, ModelSpec]:
    """Build the network of a folder and load its weights."""
    folder = Path(folder)
    for name in (SPECIFICATION, WEIGHTS):
        if not (folder / name).is_file():
            unfinished = " (it has a checkpoint: finish it with resume=True)"
            hint = unfinished if (folder / "checkpoint.safetensors").is_file() else ""
            raise UserError(
                f"{folder} contains no trained model: {name} is missing{hint}; name a folder made by `tamedit train`."
            )
    try:
        spec = ModelSpec.model_validate_json((folder / SPECIFICATION).read_text(encoding="utf-8"))
        content = (folder / WEIGHTS).read_bytes()
        weights = load(content)
    except PermissionError as error:
        raise unreadable(folder, error) from error
    except (ValueError, TypeError, SafetensorError, OSError) as error:
        raise UserError(
            f"{folder} contains a damaged model ({type(error).__name__}); train it again or restore the files."
        ) from error
    if spec.version != VERSION:
        raise UserError(
            f"{folder} contains a model of format {spec.version}, but this version reads {VERSION}; train it again."
        )
    if spec.weights_sha256 not in (None, sha256(content).hexdigest()):
        raise UserError(other_weights(folder))
    network = DiffusionTransformer(spec.network)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise UserError(
            f"{folder / WEIGHTS} does not fit {SPECIFICATION}; the two files must come from one run."
        ) from error
    return network.to(device).eval(), spec
