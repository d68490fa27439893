"""`tamedit train`: a source in, a run folder out."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamedit.cli import options
from tamedit.cli.progress import RunProgress
from tamedit.cli.request_options import CHOICES, asks_for
from tamedit.runs.request import TrainRequest

if TYPE_CHECKING:
    from tamedit.training.requested import Prepared
    from tamedit.training.run import RunOutcome


@options.reads_a_table
@asks_for(*CHOICES, out=...)
def train(
    *,
    source: options.Sources,
    chosen: dict[str, Any],
    device: options.Device = "auto",
    threads: options.Threads = 0,
    diagnose_every: Annotated[
        int,
        typer.Option(
            "--diagnose-every",
            help="Steps between records of gradient norms, which are not private and go to RUN/not-private (0: none).",
            min=0,
        ),
    ] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Train a model that fills gaps, forecasts and generates; with --epsilon, privately."""
    progress, say = RunProgress(quiet=as_json), None if as_json else options.say
    request = TrainRequest.flat(**chosen)  # a mistake is answered before anything heavy is imported

    from tamedit.runs.config import Speed
    from tamedit.training.requested import run_request

    speed = Speed(device=device, threads=threads, diagnose_every=diagnose_every)
    try:
        with progress:
            data = options.one_source(source, request.private)
            prepared, outcome = run_request(data, request, speed=speed, progress=progress, say=say)
    except KeyboardInterrupt as stop:
        raise options.Stopped(str(stop) or "stopped.") from None
    if not outcome.finished:
        raise options.Stopped(
            f"stopped at step {outcome.step} of {prepared.config.training.steps}; continue with the same command and --resume."
        )
    if request.engine == "evolution":
        from tamedit.training.private.evolution import POPULATION

        if not as_json and outcome.privacy is not None:
            typer.echo(outcome.privacy["statement"])
        options.wrote([prepared.folder / POPULATION], as_json, steps=outcome.step, privacy=outcome.privacy)
        return
    if outcome.privacy is not None:  # else another process has the words
        _finish(prepared, outcome, as_json)


def _finish(made: "Prepared", outcome: "RunOutcome", quiet: bool) -> None:
    """Say what was made and what it cost; and where a private run stands, without its clipping rate, which is not private."""
    from tamedit.runs.artifact import SPECIFICATION, WEIGHTS
    from tamedit.runs.regime import regime_of_run

    assert outcome.privacy is not None
    stands = regime_of_run(made.folder, made.config)
    if not quiet:
        if outcome.step < made.config.training.steps:
            typer.echo(f"The budget ended at step {outcome.step} of {made.config.training.steps}.")
        typer.echo(outcome.privacy["statement"])
        if stands is not None:
            typer.echo(f"Where the run stands: {stands.numbers()}; {stands.advice()}.")
    options.wrote(
        [made.folder / WEIGHTS, made.folder / SPECIFICATION],
        quiet,
        regime=None if stands is None else stands.model_dump(),
        steps=outcome.step,
        seconds=round(outcome.seconds, 1),
        privacy=outcome.privacy,
    )
