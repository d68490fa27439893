"""`tamedit train`: a source in, a run folder out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamedit.cli import options
from tamedit.errors import UserError

if TYPE_CHECKING:
    from tamedit.runs.recipe import RunConfig
    from tamedit.training.run import RunOutcome

PRIVACY = "Privacy"


@options.reads_a_table
def train(
    *,
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(help="A named data set (etth1, ettm1, household, ideal), or a CSV or Parquet file.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the run.")],
    scale: Annotated[str, typer.Option("--scale", help="smoke (seconds), laptop (minutes) or paper.")] = "laptop",
    steps: Annotated[int | None, typer.Option("--steps", help="Training steps, instead of the scale's.", min=1)] = None,
    seed: options.Seed = 0,
    anchor: Annotated[
        str, typer.Option("--anchor", help="seasonal (default) or none (the paper's form).")
    ] = "seasonal",
    bounds: Annotated[str, typer.Option("--bounds", help="loose, medium, tight, too_tight or off.")] = "medium",
    operator: Annotated[
        str, typer.Option("--operator", help="tanh, hard_clamp, soft_clamp_band, clamp_ste or none.")
    ] = "tanh",
    reference: Annotated[
        Path | None, typer.Option("--reference", help="Magnitudes that --bounds scales, from `diagnose --bounds`.")
    ] = None,
    by_block: Annotated[
        bool, typer.Option("--by-block", help="With --reference: every block has bounds of its own.")
    ] = False,
    init: Annotated[
        str | None,
        typer.Option("--init", help="Begin from a run on public data, or `simulated`: from a model of made-up homes."),
    ] = None,
    tune: Annotated[
        str, typer.Option("--tune", help="With --init: all parameters, modulation, or low_rank corrections.")
    ] = "all",
    rank: Annotated[int, typer.Option("--rank", help="Of low_rank corrections.", min=1)] = 4,
    init_is_public: Annotated[
        bool, typer.Option("--init-is-public", help="A fact: the data of --init is public or simulated.")
    ] = False,
    size: Annotated[str | None, typer.Option("--size", help="tiny, mini, small, base or paper.")] = None,
    window: Annotated[int | None, typer.Option("--window", help="Steps in a window.", min=8)] = None,
    period: Annotated[
        int | None, typer.Option("--period", help="Steps in a season (24 for hourly data).", min=1)
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", help="Train privately within this budget: a wall.", rich_help_panel=PRIVACY),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="δ of the guarantee.", rich_help_panel=PRIVACY)] = 1e-5,
    unit: Annotated[
        str,
        typer.Option("--unit", help="Whom it protects: record, day, week, series or window.", rich_help_panel=PRIVACY),
    ] = "week",
    noise_multiplier: Annotated[
        float | None,
        typer.Option("--noise-multiplier", help="σ, instead of one fitted to --epsilon.", rich_help_panel=PRIVACY),
    ] = None,
    clip: Annotated[
        float, typer.Option("--clip", help="C, the bound on a unit's gradient.", rich_help_panel=PRIVACY)
    ] = 1.0,
    clipping: Annotated[
        str, typer.Option("--clipping", help="flat, automatic or groups.", rich_help_panel=PRIVACY)
    ] = "flat",
    draws: Annotated[
        int | None,
        typer.Option("--draws", help="Draws a unit, averaged before clipping.", min=1, rich_help_panel=PRIVACY),
    ] = None,
    layout: Annotated[
        str, typer.Option("--layout", help="blocks, or the paper's overlapping windows.", rich_help_panel=PRIVACY)
    ] = "blocks",
    minutes: Annotated[
        float,
        typer.Option(
            "--minutes", help="Time that the plan may take on 2 cores, about.", min=0.1, rich_help_panel=PRIVACY
        ),
    ] = 10.0,
    private_bounds: Annotated[
        bool,
        typer.Option(
            "--private-bounds",
            help="With --init: set the bounds by magnitudes measured with noise on this data; the budget pays.",
            rich_help_panel=PRIVACY,
        ),
    ] = False,
    secure: Annotated[
        bool, typer.Option("--secure", help="Noise from a cryptographic stream (slower).", rich_help_panel=PRIVACY)
    ] = False,
    test_only: Annotated[
        bool, typer.Option("--test-only", help="Reproducible noise: no guarantee.", rich_help_panel=PRIVACY)
    ] = False,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", help="Examples a step (expected, if private).", min=1)
    ] = None,
    non_negative: options.NonNegative = False,
    typical_level: Annotated[
        str | None, typer.Option("--typical-level", help="Public fact: a usual value of each target, comma separated.")
    ] = None,
    typical_scale: Annotated[
        str | None, typer.Option("--typical-scale", help="Public fact: a usual spread of each target, comma separated.")
    ] = None,
    lower: Annotated[
        str | None,
        typer.Option(
            "--lower",
            help="Public fact: no target lies below; with --upper, units are estimated privately.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    upper: Annotated[
        str | None, typer.Option("--upper", help="Public fact: no target lies above.", rich_help_panel=PRIVACY)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    reading: dict[str, Any],
    device: options.Device = "auto",
    threads: Annotated[int, typer.Option("--threads", help="CPU threads (0: torch's choice).", min=0, max=1024)] = 0,
    diagnose_every: Annotated[
        int | None,
        typer.Option("--diagnose-every", help="Steps between records of gradients (private: 1; else 0, none).", min=0),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Train a model that fills gaps, forecasts and generates; with --epsilon, privately."""
    planned = epsilon is not None and noise_multiplier is None and layout == "blocks" and scale == "laptop"
    private = epsilon is not None or noise_multiplier is not None
    _refuse_idle(context, private=private, planned=planned, begins=init is not None)
    privacy = None
    if private:
        from tamedit.privacy.settings import Privacy

        privacy = Privacy(
            epsilon=epsilon,
            delta=delta,
            unit=unit,
            noise_multiplier=noise_multiplier,
            clip=clip,
            clipping=clipping,
            **({} if draws is None else {"draws": draws}),
            layout=layout,
            secure=secure,
            test_only=test_only,
        )
    choices = {
        "scale": (scale, ("smoke", "laptop", "paper")),
        "bounds": (bounds, ("loose", "medium", "tight", "too_tight", "off")),
        "anchor": (anchor, ("seasonal", "none")),
        "tune": (tune, ("all", "modulation", "low_rank")),
        "operator": (operator, ("tanh", "hard_clamp", "soft_clamp_band", "clamp_ste", "none")),
    }
    if size is not None:
        choices["size"] = (size, ("tiny", "mini", "small", "base", "paper"))
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise UserError(f"--{name} {value} is unknown; choose {', '.join(allowed)}.")

    from tamedit.cli.begin import begin
    from tamedit.cli.progress import RunProgress
    from tamedit.data.loading import load_split
    from tamedit.model.zoo import tightened
    from tamedit.runs.config import Speed
    from tamedit.runs.folder import DataFacts, check_resumable
    from tamedit.runs.layout import layout_of
    from tamedit.runs.proposal import recommended
    from tamedit.runs.provenance import Reference
    from tamedit.runs.recipe import REFERENCE, check_beginning, make_config
    from tamedit.training.run import train as run

    check_beginning(init is not None, size, bounds, privacy, private_bounds)  # type: ignore[arg-type]
    series, split = load_split(source, private=private, **reading)
    magnitudes = None if reference is None else Reference.load(reference, anchor, private=private)
    speed = Speed(device=device, threads=threads, diagnose_every=diagnose_every)
    initial = None
    if init is not None:
        if resume:
            check_resumable(out)  # before the long work of a public stage
        initial = begin(
            init,
            out,
            series,
            tuning=tune,  # type: ignore[arg-type]
            rank=rank,
            is_public=init_is_public,
            private=private,
            anchor=anchor,  # type: ignore[arg-type]
            limits=tightened(magnitudes.magnitudes if magnitudes else REFERENCE[anchor], bounds),
            operator=operator,  # type: ignore[arg-type]
            speed=speed,
            quiet=as_json,
        )
    config = make_config(
        series,
        source,
        scale=scale,  # type: ignore[arg-type]
        anchor=anchor,  # type: ignore[arg-type]
        bounds=bounds,  # type: ignore[arg-type]
        operator=operator,  # type: ignore[arg-type]
        steps=steps,
        seed=seed,
        window=window,
        size=size,
        period=period,
        privacy=privacy,
        batch_size=batch_size,
        reference=magnitudes,
        by_block=by_block,
        start=None if initial is None else initial.start,
        private_bounds=private_bounds,
    )
    train_layout = layout_of(split.train, config)
    config = recommended(config, train_layout, scale, minutes, steps=steps, batch_size=batch_size, size=size)  # type: ignore[arg-type]
    options.say_notes(series.notes, as_json)
    facts = DataFacts(
        reading=reading,
        non_negative=non_negative,
        typical_level=options.numbers("--typical-level", typical_level),
        typical_scale=options.numbers("--typical-scale", typical_scale),
        lower=options.numbers("--lower", lower),
        upper=options.numbers("--upper", upper),
    )
    with RunProgress(quiet=as_json) as progress:
        outcome = run(
            split,
            config,
            out,
            facts=facts,
            speed=speed,
            resume=resume,
            progress=progress,
            initial=initial,
            layout=train_layout,
        )
    if not outcome.finished:
        raise options.Stopped(
            f"stopped at step {outcome.step} of {config.training.steps}; continue with the same command and --resume."
        )
    _finish(out, config, outcome, as_json)


def _finish(out: Path, config: "RunConfig", outcome: "RunOutcome", quiet: bool) -> None:
    """Say what was made and what it cost; and where a private run stands, without its clipping rate, which is not private."""
    from tamedit.runs.artifact import SPECIFICATION, WEIGHTS
    from tamedit.runs.regime import regime_of_run

    statement = outcome.privacy
    if statement is None:  # another process has the words
        return
    stands = regime_of_run(out, config)
    if not quiet:
        if outcome.step < config.training.steps:
            typer.echo(f"The budget ended at step {outcome.step} of {config.training.steps}.")
        typer.echo(statement["statement"])
        if stands is not None:
            typer.echo(f"Where the run stands: {stands.numbers()}; {stands.advice()}.")
    options.wrote(
        [out / WEIGHTS, out / SPECIFICATION],
        quiet,
        regime=None if stands is None else stands.model_dump(),
        steps=outcome.step,
        seconds=round(outcome.seconds, 1),
        privacy=statement,
    )


def _refuse_idle(context: typer.Context, private: bool, planned: bool, begins: bool) -> None:
    """An option that would have no effect is a mistake, and a wish for privacy must not be passed over in silence."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if source is None or source.name == "DEFAULT":
            continue
        if not private and getattr(option, "rich_help_panel", None) == PRIVACY:
            raise UserError(f"{option.opts[0]} belongs to private training; add --epsilon, or leave it out.")
        if not planned and option.name == "minutes":
            raise UserError("--minutes is the time of a plan: --epsilon, in blocks, at the scale laptop; leave it out.")
        if not begins and option.name in ("tune", "rank", "init_is_public"):
            raise UserError(f"{option.opts[0]} belongs to --init; add --init, or leave it out.")
        if option.name == "rank" and context.params["tune"] != "low_rank":
            raise UserError("--rank is that of low_rank corrections; add --tune low_rank, or leave it out.")
        if option.name == "operator" and context.params["bounds"] == "off":
            raise UserError("--operator says how to bound, and --bounds off bounds nothing; leave one of them out.")
