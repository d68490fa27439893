"""Which layers of a module the engine can handle. For the others, an error names the layer and the remedy."""

import torch
from torch import nn

from tamedit.errors import UserError
from tamedit.privacy.engine.bare import BareSite
from tamedit.privacy.engine.layers import SITES, Site, Tape

HANDLED = "Linear, Conv1d without groups, Embedding, LayerNorm and RMSNorm over the last axis"


def refuse_batch_statistics(module: nn.Module) -> None:
    """BatchNorm makes the gradient of one example depend on the others, and running statistics are data without noise."""
    for name, layer in module.named_modules():
        tracks = isinstance(layer, nn.modules.batchnorm._NormBase) and layer.track_running_stats
        if tracks or isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise UserError(
                f"layer {name!r} is a {type(layer).__name__}, which takes statistics of the batch; replace it by "
                "LayerNorm, RMSNorm or GroupNorm."
            )


def refuse_low_precision(module: nn.Module) -> None:
    """A sum in half precision changes by more than C when a unit is added or removed: rounding alone adds a quarter."""
    for name, parameter in module.named_parameters():
        if parameter.requires_grad and torch.finfo(parameter.dtype).eps > torch.finfo(torch.float32).eps:
            raise UserError(
                f"parameter {name!r} is {parameter.dtype}, too coarse for sums that a unit changes by at most C; keep parameters "
                "in float32, and use torch.autocast for speed."
            )


def buffer_versions(module: nn.Module) -> dict[str, tuple[int, int]]:
    """Which tensor every buffer is and how often it was written to: differs after a forward pass that wrote into one."""
    return {name: (id(buffer), buffer._version) for name, buffer in module.named_buffers()}


def refuse_written_buffers(before: dict[str, tuple[int, int]], module: nn.Module) -> None:
    """What a forward pass keeps of the data in a buffer is saved with the model, and no noise covers it."""
    for name, version in buffer_versions(module).items():
        if before.get(name) != version:
            raise UserError(
                f"buffer {name!r} was written to in the forward pass: what it keeps of the data would be saved without noise; "
                "keep buffers constant while the engine runs."
            )


def refuse_shared(module: nn.Module) -> None:
    """One parameter under two names is tied: its gradient has cross terms."""
    names: dict[int, str] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if parameter.requires_grad and names.setdefault(id(parameter), name) != name:
            raise UserError(
                f"parameter {name!r} is tied to {names[id(parameter)]!r}, so its gradient has cross terms; give each "
                "layer its own parameter, or pass fallback='torch.func'."
            )


def sites_of(module: nn.Module, tape: Tape) -> list[Site]:
    """A site for every layer that owns trainable parameters, or an error."""
    refuse_batch_statistics(module)
    refuse_shared(module)
    sites = (_site(name, layer, tape) for name, layer in module.named_modules())
    return [site for site in sites if site is not None]


def _site(name: str, layer: nn.Module, tape: Tape) -> Site | None:
    own = {key: value for key, value in layer.named_parameters(recurse=False) if value.requires_grad}
    if not own:
        return None
    known = own.keys() <= {
        "weight",
        "bias",
    }  # old weight_norm and spectral_norm keep others, from which the weight is made
    for kind, site, supported in SITES:
        if known and isinstance(layer, kind) and type(layer).forward is kind.forward and supported(layer):
            return site(name, layer, tape)
    mine = type(layer).__module__.split(".")[:2] == ["torch", "nn"]
    if not mine and all(value.dim() > 0 and len(value) == 1 for value in own.values()):
        return BareSite(name, layer, tape)
    strange = (key for key, value in own.items() if mine or value.dim() == 0 or len(value) != 1)
    parameter = next(strange) if known else next(key for key in own if key not in ("weight", "bias"))
    full = f"{name}.{parameter}" if name else parameter
    remedy = (
        f"build it from {HANDLED}"
        if mine
        else f"move it into one of {HANDLED}, or give it a leading axis of 1 that broadcasts over the examples"
    )
    raise UserError(
        f"parameter {full!r} of a {type(layer).__name__} is trainable, but the engine cannot compute its gradient per "
        f"unit; {remedy}, freeze it with requires_grad_(False), or pass fallback='torch.func'."
    )
