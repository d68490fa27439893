"""Which parameters of a network are trained when it starts from pre-trained weights.

    all          every parameter
    modulation   the projections to (γ, β, α) and the output layer: how blocks are modulated, not what they compute
    head         the output layer and every bias: about 2,000 numbers at size mini, so that noise is small
    low_rank     every linear layer keeps its W and learns a correction of rank r:  y = W x + b + U (D x),  U = 0 at the start

In private training, the norm of the noise is √d times its standard deviation per coordinate, where d is the number of
trained parameters. A gradient is clipped to C for every d. Fewer trained parameters mean less noise for the same signal.

After training a low-rank correction is merged into its layer, W ← W + U D, so that a model is a plain network again.
"""

from torch import Tensor, nn

from tamedit.choices import Tuning

MODULATION = ("adaln", "final_adaln", "output")  # the first or third part of a parameter's name
BASE, DOWN, UP = "base", "down", "up"


class LowRankLinear(nn.Module):
    """A frozen linear layer and a low-rank correction that is initialised to zero."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        rank = min(rank, base.in_features, base.out_features)
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.normal_(self.down.weight, std=base.in_features**-0.5)
        nn.init.zeros_(self.up.weight)

    @property
    def weight(self) -> Tensor:
        """The frozen weight, for its type and device."""
        return self.base.weight

    def forward(self, inputs: Tensor) -> Tensor:
        corrected: Tensor = self.base(inputs) + self.up(self.down(inputs))
        return corrected


def prepare(network: nn.Module, tuning: Tuning, rank: int) -> None:
    """Freeze what is not trained, and add corrections to linear layers if the tuning is low-rank."""
    if tuning == "modulation":
        for name, parameter in network.named_parameters():
            parts = name.split(".")
            parameter.requires_grad_(parts[0] in MODULATION or "adaln" in parts)
    elif tuning == "head":
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(name.startswith("output.") or name.endswith(".bias"))
    elif tuning == "low_rank":
        for parameter in network.parameters():
            parameter.requires_grad_(False)
        for name, layer in list(network.named_modules()):
            if isinstance(layer, nn.Linear):
                parent, _, own = name.rpartition(".")
                setattr(network.get_submodule(parent), own, LowRankLinear(layer, rank))


def trained(network: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that are trained, by name."""
    return {name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad}


def folded(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a plain network: every correction merged into its layer."""
    plain: dict[str, Tensor] = {}
    for name, value in weights.items():
        layer, _, attribute = name.rpartition(".")
        parent, _, role = layer.rpartition(".")
        if role in (DOWN, UP):
            continue
        if role != BASE or f"{parent}.{UP}.weight" not in weights:
            plain[name] = value
        elif attribute == "weight":
            plain[f"{parent}.weight"] = value + weights[f"{parent}.{UP}.weight"] @ weights[f"{parent}.{DOWN}.weight"]
        else:
            plain[f"{parent}.{attribute}"] = value
    return plain
