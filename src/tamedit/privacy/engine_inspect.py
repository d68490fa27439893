"""Which layers of a module the engine can catch, and a refusal by name, with the remedy, for those that it cannot."""

from torch import nn

from tamedit.errors import UserError
from tamedit.privacy.engine_bare import BareSite
from tamedit.privacy.layers import SITES, Site, Tape

HANDLED = "Linear, Conv1d without groups, Embedding, LayerNorm and RMSNorm over the last axis"


def refuse_batch_statistics(module: nn.Module) -> None:
    """BatchNorm makes the gradient of one example depend on the others: nothing per-unit is left to clip."""
    for name, layer in module.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise UserError(
                f"layer {name!r} is a {type(layer).__name__}, which mixes the examples of a batch; replace it by "
                "LayerNorm, RMSNorm or GroupNorm."
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
    """A site for every layer that owns trainable parameters, or a refusal."""
    refuse_batch_statistics(module)
    refuse_shared(module)
    sites = (_site(name, layer, tape) for name, layer in module.named_modules())
    return [site for site in sites if site is not None]


def _site(name: str, layer: nn.Module, tape: Tape) -> Site | None:
    own = {key: value for key, value in layer.named_parameters(recurse=False) if value.requires_grad}
    if not own:
        return None
    for kind, site, supported in SITES:
        if isinstance(layer, kind) and type(layer).forward is kind.forward and supported(layer):
            return site(name, layer, tape)
    mine = type(layer).__module__.split(".")[:2] == ["torch", "nn"]
    if not mine and all(value.dim() > 0 and len(value) == 1 for value in own.values()):
        return BareSite(name, layer, tape)
    parameter = next(key for key, value in own.items() if mine or value.dim() == 0 or len(value) != 1)
    full = f"{name}.{parameter}" if name else parameter
    remedy = (
        f"build it from {HANDLED}"
        if mine
        else f"move it into one of {HANDLED}, or give it a leading axis of 1 that broadcasts over the examples"
    )
    raise UserError(
        f"parameter {full!r} of a {type(layer).__name__} is trainable, but the engine cannot form its gradient unit by "
        f"unit; {remedy}, freeze it with requires_grad_(False), or pass fallback='torch.func'."
    )
