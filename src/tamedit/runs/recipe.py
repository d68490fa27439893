"""From a source and a few choices to a whole configuration.

Two forms. `anchor="free"`, the default for users: where a value lies in the free distribution of its cell,
v-prediction. `anchor="none"`, the paper's: z-scores of the training split, ε-prediction, no clamp. Three scales: `smoke`
(seconds), `laptop` (minutes on two cores), `paper` (the published settings).
"""

from tamedit.choices import Anchor, Operator, Scale, Size, Tightness
from tamedit.data.series import Series
from tamedit.data.sources import SOURCES, Source
from tamedit.diffusion.process import Process
from tamedit.model.bounds import Bounds
from tamedit.model.zoo import REFERENCE, SIZES, TIGHTNESS, NetworkConfig, tightened
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import RunConfig, TrainingConfig
from tamedit.runs.layout import crop_of
from tamedit.runs.provenance import Measured, Reference, Start
from tamedit.runs.request import SHORTEST
from tamedit.windows.examples import ANCHOR_FEATURES, ExampleConfig
from tamedit.windows.masks import MaskConfig

LONGEST = 512  # rows of a window, unless the user says more
SIZE_OF: dict[Scale, Size] = {"smoke": "tiny", "laptop": "small", "paper": "paper"}
# The tasks of users: single readings, forecasts, outages of days, meters that are new, and generation.
MASKS = MaskConfig(
    weights={"random": 0.3, "block": 0.2, "stride": 0.1, "gap": 0.15, "few": 0.15, "reconstruction": 0.1}
)
PAPER_MASKS = MaskConfig(weights={"random": 1.0, "block": 1.0, "stride": 1.0})


def make_config(
    series: Series,
    source: str,
    *,
    scale: Scale = "laptop",
    anchor: Anchor = "free",
    bounds: Tightness = "medium",
    operator: Operator = "tanh",
    steps: int | None = None,
    seed: int = 0,
    window: int | None = None,
    stride: int | None = None,
    size: Size | None = None,
    period: int | None = None,
    privacy: Privacy | None = None,
    batch_size: int | None = None,
    reference: Bounds | Reference | None = None,
    by_block: bool = False,
    start: Start | None = None,
    private_bounds: bool = False,
) -> RunConfig:
    """The configuration of a run on `series`, from public facts about it and the caller's choices.

    `stride` is the distance of two windows, 1 by default in the anchored form without privacy. `reference` replaces the built-in
    magnitudes (C₀, Γ₀, B₀, A₀) that `bounds` scales, `by_block` takes each block's own. `start` names the model that
    training begins from (`runs.start`), whose size the network then has. With `private_bounds` the magnitudes are measured on
    the private data with that model, at the expense of the budget (`training.private.released_bounds`).
    """
    known = SOURCES.get(source)
    season = series.period if period is None else period
    usual = known.window if known else default_window(series, season)
    length = usual if window is None else window
    paper_form = anchor == "none"
    crop = None if paper_form or privacy is None else crop_of(length, season, privacy)
    training = TrainingConfig.of_scale(scale, steps, batch_size, paper_form, private=privacy is not None)
    sizes = SIZES[size or SIZE_OF[scale]] if start is None else start.sizes
    limits = _limits(reference or REFERENCE[anchor], bounds, sizes["depth"], by_block)
    calendar = not (paper_form and len(series.targets) > 1)
    return RunConfig(
        source=source,
        seed=seed,
        window=length,
        stride=stride or _stride(known, season, everywhere=not paper_form and privacy is None),
        crop=crop,
        calendar=calendar,
        scaling="nonprivate" if paper_form else "instance",
        examples=ExampleConfig(anchor=anchor, period=season, residual_limit=None if paper_form else 5.0),
        masks=PAPER_MASKS if paper_form else MASKS,
        network=NetworkConfig(
            target_channels=len(series.targets),
            covariate_channels=len(series.covariate_names) + (6 if calendar else 0),
            anchor_features=ANCHOR_FEATURES[anchor],
            length=length,
            operator=operator,
            bounds=limits,
            **sizes,
        ),
        process=Process(prediction="epsilon" if paper_form else "v"),
        training=training,
        privacy=privacy,
        start=start,
        reference=Measured(source=reference.source, origin=reference.origin)
        if isinstance(reference, Reference)
        else None,
        private_bounds=TIGHTNESS[bounds] if private_bounds else None,
    )


def _limits(reference: Bounds | Reference, tightness: Tightness, depth: int, by_block: bool) -> tuple[Bounds, ...]:
    """The bounds of a preset: one for all blocks, or one a block and one for the end."""
    if by_block and isinstance(reference, Reference):
        return tuple(tightened(own, tightness) for own in reference.by_block(depth))
    return (tightened(reference.magnitudes if isinstance(reference, Reference) else reference, tightness),)


def default_window(series: Series, period: int) -> int:
    """Seven seasons (a week of hours), or two of a fine rhythm; less if the validation part of a short series asks for it.

    At most LONGEST rows: attention costs the square of a window's length. For a longer rhythm resample, or give `window`.
    """
    wanted = min(7 * period if period <= 24 else 2 * period, LONGEST)
    longest = int(series.lengths.max(initial=0))
    return max(min(wanted if period > 1 else 96, int(0.15 * longest)), SHORTEST)


def _stride(known: Source | None, period: int, everywhere: bool) -> int:
    """Rows between two windows: 1 where windows begin `everywhere`, else the source's own, or a quarter of a season.

    A model whose windows all begin at the same hour has seen each hour at a few positions only, and is poor at others
    (paper/docs/private-utility.md). Private runs have blocks instead, or the paper's overlapping windows at the paper's stride.
    """
    if everywhere:
        return 1
    return known.stride if known else max(period // 4, 1)
