"""Where training starts: from random weights, or from a model that was trained on public or simulated data.

The first stage costs no privacy, because it contains nobody's private data. The statement of the second stage says what it
was. Nothing can check this here. It is known for named data sets without personal data. For anything else the user states it.
"""

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from torch import Tensor

from tamedit.data.catalogue import PUBLIC
from tamedit.errors import UserError
from tamedit.model.tuning import Tuning
from tamedit.runs.artifact import ModelSpec, load_model
from tamedit.runs.config import RunConfig
from tamedit.runs.folder import load_run
from tamedit.runs.provenance import ORIGINS, Origin, Start


@dataclass(frozen=True)
class Initial:
    """A model to start from."""

    start: Start
    spec: ModelSpec
    weights: dict[str, Tensor]


def origin_of(config: RunConfig, said: bool) -> Origin:
    """How public a run's model is: as public as its own data (known, or `said`), and not more than the model it started from."""
    own: Origin = "public" if config.source in PUBLIC else "said to be public" if said else "not public"
    return own if config.start is None else max(own, config.start.origin, key=ORIGINS.index)


def load_initial_run(
    run: str | Path, *, tuning: Tuning = "all", rank: int = 4, public: bool = False, private: bool = False
) -> Initial:
    """The model of a finished run as a start; `public`: the user says so; `private`: a guarantee will be given."""
    run = Path(run)
    config, _ = load_run(run)
    origin = origin_of(config, said=public)
    if private and origin == "not public":
        raise UserError(
            f"init={str(run)!r} was trained on {config.source}, which is not known to be public, so no guarantee would cover "
            "what its weights reveal; say public=True if that data is public or simulated."
        )
    earlier = f", begun from {config.start.source}" if config.start else ""
    return initial_of(run, config.source + earlier, origin, tuning=tuning, rank=rank)


def initial_of(folder: Path, source: str, origin: Origin, *, tuning: Tuning = "all", rank: int = 4) -> Initial:
    """The model of a folder as a start, with the digest of its weights."""
    network, spec = load_model(folder)
    if spec.student is not None:
        raise UserError(
            f"{folder} holds a student, which knows a few angles alone; begin from the model that it was distilled from."
        )
    weights = {name: value.detach().clone() for name, value in network.named_parameters()}
    digest = blake2b(digest_size=8)
    for name in sorted(weights):
        digest.update(name.encode() + weights[name].cpu().numpy().tobytes())
    shape = spec.network
    sizes = {"depth": shape.depth, "width": shape.width, "heads": shape.heads, "mlp_ratio": shape.mlp_ratio}
    start = Start(source=source, origin=origin, digest=digest.hexdigest(), sizes=sizes, tuning=tuning, rank=rank)
    return Initial(start, spec, weights)


def check_fits(initial: Initial, targets: int, covariates: int, anchor: str, prediction: str) -> None:
    """Raise one sentence if a model cannot continue on this data."""
    shape, spec = initial.spec.network, initial.spec
    for what, found, wanted in (
        ("targets", shape.target_channels, targets),
        ("covariate channels", shape.covariate_channels, covariates),
        ("anchor", spec.examples.anchor, anchor),
        ("prediction", spec.process.prediction, prediction),
    ):
        if found != wanted:
            raise UserError(
                f"The initial model has {what}: {found}, but this run has {wanted}; start from a model that was trained on data "
                "with the same columns, and with the same `anchor`."
            )
