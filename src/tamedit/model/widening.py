"""A trained network that takes more known covariates, and at first does what it did before.

The new covariates stand before the others. Wherever the network reads covariates it multiplies them by a matrix, and the columns
of the new ones are 0: in the tokens, and in the condition, which reads the mean and the spread of each covariate,

    tokens      [values, observed, anchor | new | covariates]
    condition   [statistics | new means | means | new spreads | spreads]
"""

import torch
from torch import Tensor

from tamedit.model.condition import STATISTICS
from tamedit.model.zoo import NetworkConfig

TOKENS, CONDITION = "context_input.weight", "condition_encoder.layers.0.weight"


def widened(
    config: NetworkConfig, weights: dict[str, Tensor], covariates: int
) -> tuple[NetworkConfig, dict[str, Tensor]]:
    """The network with so many covariates more; the weights that are given stay as they are."""
    channels, before = config.target_channels, config.covariate_channels
    in_tokens, in_condition = (2 + config.anchor_features) * channels, STATISTICS * channels
    tokens = _with_zeros(weights[TOKENS], in_tokens, covariates)
    condition = _with_zeros(
        weights[CONDITION], in_condition + before, covariates
    )  # the spreads first: they stand behind
    condition = _with_zeros(condition, in_condition, covariates)
    wider = config.model_copy(update={"covariate_channels": before + covariates})
    return wider, {**weights, TOKENS: tokens, CONDITION: condition}


def _with_zeros(weight: Tensor, place: int, count: int) -> Tensor:
    """The matrix with `count` columns of zeros before column `place`."""
    return torch.cat([weight[:, :place], weight.new_zeros(len(weight), count), weight[:, place:]], dim=1)
