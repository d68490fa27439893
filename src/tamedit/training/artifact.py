"""A trained model on disk: `model.safetensors` (weights) and `model.json` (everything else). Never pickle.

Nothing in these two files was measured on the training data, except what `scaling` and `privacy` say was.
"""

import json
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from tamedit.data.scaling import Scaling
from tamedit.diffusion.process import Process
from tamedit.errors import UserError
from tamedit.files import replacing, write_text
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import NetworkConfig
from tamedit.windows.examples import ExampleConfig

WEIGHTS, SPECIFICATION = "model.safetensors", "model.json"
VERSION = 1


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
    calendar: bool = True
    frequency_seconds: float
    non_negative: bool = False  # a public fact: readings below 0 cannot be
    privacy: dict[str, Any] = {
        "private": False,
        "statement": "Trained without privacy: no guarantee for anyone in the data.",
    }

    def scaling_of(self) -> Scaling:
        return Scaling.from_dict(self.scaling)


def save_model(folder: Path, spec: ModelSpec, weights: dict[str, Tensor]) -> list[Path]:
    """Write both files, weights last: a folder with `model.safetensors` is whole."""
    folder = Path(folder)
    write_text(folder / SPECIFICATION, json.dumps(spec.model_dump(mode="json"), indent=2) + "\n")
    try:
        with replacing(folder / WEIGHTS) as temporary:
            save_file({name: value.detach().cpu().contiguous() for name, value in weights.items()}, temporary)
    except SafetensorError as error:  # a full disk, seen by the writer of tensors
        raise UserError(
            f"Cannot write {folder / WEIGHTS} ({error}); free some space or choose another place."
        ) from error
    return [folder / WEIGHTS, folder / SPECIFICATION]


def load_model(folder: Path, device: torch.device | str = "cpu") -> tuple[DiffusionTransformer, ModelSpec]:
    """Build the network of a folder and fill it."""
    folder = Path(folder)
    for name in (SPECIFICATION, WEIGHTS):
        if not (folder / name).is_file():
            unfinished = " (it has a checkpoint: finish it with `tamedit train … --resume`)"
            hint = unfinished if (folder / "checkpoint.safetensors").is_file() else ""
            raise UserError(
                f"{folder} holds no trained model: {name} is missing{hint}; name a folder made by `tamedit train`."
            )
    try:
        spec = ModelSpec.model_validate_json((folder / SPECIFICATION).read_text(encoding="utf-8"))
        if len(spec.scaling_of().scale) != len(spec.targets):
            raise ValueError("the scaling and the targets have different channels")
        weights = load_file(folder / WEIGHTS)
    except (ValueError, TypeError, SafetensorError, OSError) as error:
        raise UserError(
            f"{folder} holds a damaged model ({type(error).__name__}); train it anew or restore the files."
        ) from error
    if spec.version != VERSION:
        raise UserError(
            f"{folder} holds a model of format {spec.version} and this version reads {VERSION}; train it anew."
        )
    network = DiffusionTransformer(spec.network)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise UserError(
            f"{folder / WEIGHTS} does not fit {SPECIFICATION}; the two files must come from one run."
        ) from error
    return network.to(device).eval(), spec
