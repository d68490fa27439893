"""Settings of a smaller run that stand where the paper's stand, in the numbers without units of `runs.regime`.

    σ'    = σ · (√P* / B*) / (√P / B)           the same noise over signal
    rate' = rate* · √(T* width*) / √(T width)   the same walk of what noise does to a layer
    warm-up and averaging                       the same shares of the steps

A star marks the paper's. At the paper's own size every setting comes back as it is. Depth takes no part in the walk as it is
defined; `tamedit reproduce regime` has runs of 4, 6 and 8 blocks to see what that leaves out.

A run without privacy has no noise that could walk. It takes the paper's rate times width* / width: then a step along its
gradient changes what a layer says by as much as in the paper.
"""

from tamedit.model.zoo import SIZES, NetworkConfig
from tamedit.runs.config import TrainingConfig
from tamedit.runs.regime import noise_over_signal, parameter_count, walk

PAPER, PAPER_SIZE = TrainingConfig.model_validate({}), SIZES["paper"]
PAPER_WALK = walk(PAPER.learning_rate, PAPER.steps, PAPER_SIZE["width"])

METER = {"target_channels": 1, "covariate_channels": 6, "length": 168}  # one target and the calendar
PAPER_NETWORK = NetworkConfig.model_validate(METER | PAPER_SIZE)
PAPER_NOISE = noise_over_signal(1.0, parameter_count(PAPER_NETWORK), PAPER.batch_size)  # per σ


def of_paper(network: NetworkConfig) -> NetworkConfig:
    """The paper's network for the same data."""
    return NetworkConfig.model_validate(network.model_dump() | PAPER_SIZE | {"bounds": network.bounds[:1]})


def matched_noise(sigma: float, network: NetworkConfig, batch_size: int) -> float:
    """σ' with the noise over signal that the paper's network has at σ."""
    wanted = noise_over_signal(sigma, parameter_count(of_paper(network)), PAPER.batch_size)
    return wanted / noise_over_signal(1.0, parameter_count(network), batch_size)


def matched_rate(steps: int, width: int, wanted: float | None = None) -> float:
    """The learning rate whose walk is the paper's, or as `wanted`."""
    return (PAPER_WALK if wanted is None else wanted) / walk(1.0, steps, width)


def plain_rate(width: int) -> float:
    """The learning rate of a run without privacy."""
    return PAPER.learning_rate * PAPER_SIZE["width"] / width
