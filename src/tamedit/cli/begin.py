"""`--init`: the model that training starts from: that of a run, or one of simulated homes that is trained first."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tamedit.cli import options

if TYPE_CHECKING:
    from tamedit.data.series import Series
    from tamedit.model.bounds import Bounds, Operator
    from tamedit.model.tuning import Tuning
    from tamedit.runs.config import Speed
    from tamedit.runs.start import Initial
    from tamedit.windows.anchor import Anchor


def begin(
    init: str,
    out: Path,
    series: "Series",
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
    """The model to start from. One of simulated homes is trained in the folder `public` of the run, or read from there."""
    from tamedit.cli.progress import RunProgress
    from tamedit.runs.start import load_initial_run
    from tamedit.training.public import PLACE, SIMULATED, simulated_start

    if init != SIMULATED:
        return load_initial_run(Path(init), tuning=tuning, rank=rank, public=is_public, private=private)
    if not quiet and not (out / PLACE / "model.json").exists():
        typer.echo("first: a model of simulated homes (nobody's data, no privacy spent)", err=True)
    with RunProgress(quiet=quiet) as progress:
        initial = simulated_start(
            out,
            series,
            anchor=anchor,
            bounds=limits,
            operator=operator,
            tuning=tuning,
            rank=rank,
            speed=speed,
            progress=progress,
        )
    if initial is None:
        raise options.Stopped("stopped in the public stage; continue with the same command.")
    return initial
