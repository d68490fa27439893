"""`tamedit distill`: a model in, a student of few calls out."""

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from tamedit.cli import options
from tamedit.cli.fill import Run
from tamedit.cli.progress import RunProgress


@options.reads_a_table
def distill(
    *,
    run: Run,
    out: Annotated[Path, typer.Option("--out", help="Folder of the student; it must not exist, or be empty.")],
    calls: Annotated[int, typer.Option("--calls", help="Calls of its network per sample.", min=1, max=4)] = 2,
    steps: Annotated[int, typer.Option("--steps", help="Training steps.", min=1)] = 600,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            help="Public or simulated data with the model's columns, to learn on (simulated homes if not given).",
        ),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="State that --data is public or simulated; nothing can check it.")
    ] = False,
    seed: options.Seed = 0,
    reading: dict[str, Any],
    device: options.Device = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Make a student of a model, which samples in fewer calls of its network.

    No privacy is spent: the student learns from the model's answers on simulated homes, or on data that you state is public.
    """
    from tamedit.cli.flags import in_flags
    from tamedit.errors import UserError
    from tamedit.formatting import counted
    from tamedit.tasks.evolved_fleet import is_evolved
    from tamedit.tasks.model import Model

    if is_evolved(run):
        raise UserError(f"{run} was made by private evolution and has no network to distill; use tamedit generate.")
    model = Model.load(run, device)
    try:
        with RunProgress(quiet=as_json) as progress, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            student = model.distill(
                out, calls=calls, steps=steps, data=data, public=public, seed=seed, progress=progress, **reading
            )
    except KeyboardInterrupt as stop:
        raise options.Stopped(str(stop) or "stopped.") from None
    for one in caught:
        typer.echo(f"warning: {in_flags(str(one.message))}", err=True)
    made = student.spec.student
    assert made is not None
    if not as_json:
        typer.echo(
            f"{student!r}\nDistance from the model's samples: {made.apart:.3f} (the model itself with "
            f"{counted(calls, 'plain step')}: {made.untrained:.3f})."
        )
        typer.echo(student.privacy)
    options.wrote(sorted(out.iterdir()), as_json, calls=calls, **made.model_dump(exclude={"steps"}), steps=steps)
