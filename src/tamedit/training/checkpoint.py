"""The state of a run in one file, written completely or not at all.

One safetensors file holds the weights, their average, the best average so far and the optimiser's moments; its header
holds the step as JSON. Random streams have no state: they are functions of the seed and the step. So a run that was
killed at any moment continues from its last checkpoint bit for bit.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from tamedit.errors import UserError
from tamedit.files import replacing, unreadable

FORMAT = 1


@dataclass
class State:
    """Everything that the next step depends on."""

    step: int
    seconds: float
    best_loss: float | None
    tensors: dict[str, Tensor]  # "network/…", "average/…", "best/…", "optimizer/…"

    def group(self, name: str) -> dict[str, Tensor]:
        """The tensors of one group, by their own names."""
        prefix = name + "/"
        return {key.removeprefix(prefix): value for key, value in self.tensors.items() if key.startswith(prefix)}


def save_state(path: Path, state: State) -> None:
    header = {"format": FORMAT, "step": state.step, "seconds": state.seconds, "best_loss": state.best_loss}
    tensors = {name: value.detach().cpu().contiguous() for name, value in state.tensors.items()}
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata={"state": json.dumps(header)})


def load_state(path: Path) -> State:
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})["state"])
        tensors = load_file(path)
    except PermissionError as error:
        raise unreadable(path, error) from error
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise UserError(
            f"{path} is not a checkpoint that can be resumed ({type(error).__name__}); train again in another folder."
        ) from error
    if header.get("format") != FORMAT:
        raise UserError(
            f"{path} has checkpoint format {header.get('format')}, this version reads {FORMAT}; train again."
        )
    return State(header["step"], header["seconds"], header["best_loss"], tensors)


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: list[str]) -> dict[str, Tensor]:
    """The optimiser's moments by parameter name."""
    states = optimizer.state_dict()["state"]
    return {
        f"optimizer/{name}/{key}": torch.as_tensor(value)
        for index, name in enumerate(names)
        for key, value in states.get(index, {}).items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, names: list[str], tensors: dict[str, Tensor]) -> None:
    """Put moments saved by `optimizer_tensors` back."""
    states: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        name, moment = key.rsplit("/", 1)
        states.setdefault(names.index(name), {})[moment] = value
    optimizer.load_state_dict({"state": states, "param_groups": optimizer.state_dict()["param_groups"]})
