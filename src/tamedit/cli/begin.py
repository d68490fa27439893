"""`--init`: the model that training begins from, a run's or one of simulated homes that is trained first."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tamedit.cli import options

if TYPE_CHECKING:
    from tamedit.model.bounds import Bounds, Operator
    from tamedit.model.tuning import Tuning
    from tamedit.training.config import Speed
    from tamedit.training.start import Initial
    from tamedit.windows.anchor import Anchor

SIMULATED, PLACE = "simulated", "public"


def begin(
    init: str,
    out: Path,
    *,
    tuning: "Tuning",
    rank: int,
    is_public: bool,
    private: bool,
    anchor: "Anchor",
    limits: "Bounds",
    operator: "Operator",
    speed: "Speed",
    quiet: bool,
) -> "Initial":
    """The model to begin from; one of simulated homes is trained in the folder `public` of the run, and found there again."""
    from tamedit.training.start import load_initial_run

    if init != SIMULATED:
        return load_initial_run(Path(init), tuning=tuning, rank=rank, public=is_public, private=private)
    from tamedit.cli.progress import RunProgress
    from tamedit.model.zoo import SIZES
    from tamedit.training.artifact import WEIGHTS
    from tamedit.training.public import fleet, load_public, public_config, split_fleet, train_public

    folder = out / PLACE
    if not (folder / WEIGHTS).exists():
        series = fleet()
        config = public_config(series, anchor=anchor, bounds=limits, operator=operator, network=SIZES["mini"])
        if not quiet:
            typer.echo("first: a model of simulated homes (nobody's data, no privacy spent)", err=True)
        with RunProgress(quiet=quiet) as progress:
            if not train_public(config, split_fleet(series), folder, speed=speed, progress=progress):
                raise options.Stopped("stopped in the public stage; continue with the same command.")
    return load_public(folder, tuning=tuning, rank=rank)
