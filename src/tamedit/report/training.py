"""How the model was trained, and what its gradients looked like."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tamedit.diagnostics.compare import Comparison
from tamedit.figures import gradient_figures as diagnostics
from tamedit.figures.report_figures import embedded
from tamedit.formatting import percent, significant
from tamedit.model.bounds import Bounds
from tamedit.report.findings import Findings
from tamedit.report.page import Html, figure, join, paragraph, table, tag
from tamedit.runs.regime import regime_of_run
from tamedit.training.recorder import STATEMENT

Drawer = Callable[[Comparison, Path], list[Path]]
NORM_NAMES = {"total": "all parameters", "cond": "conditioning path (cond)", "other": "the rest (other)"}


def _drawn(draw: Drawer, comparison: Comparison) -> str:
    return embedded(lambda path: draw(comparison, path.with_suffix("")))


def training_section(found: Findings) -> Html:
    """Losses, settings, step times."""
    comparison = found.comparison
    pieces: list[Html | None] = []
    if comparison is not None and comparison.records[0].metrics:
        metrics = comparison.records[0].metrics
        losses = [row["loss"] for row in metrics if "loss" in row]
        pieces.append(
            figure(
                _drawn(diagnostics.loss_curves, comparison),
                f"Line chart of the training loss against the step, from {significant(losses[0])} to {significant(losses[-1])}.",
                "Loss while training: the mean squared error of the network's guess of what noise hides (no unit; small is "
                "good). Faint: as logged. Strong: running median.",
            )
        )
    else:
        pieces.append(paragraph("This folder has no log of the training's losses."))
    rows = [*_settings(found), *_times(found)]
    pieces.append(table("Settings", ["Setting", "Value", "Unit or meaning"], rows, text=(1, 2)))
    return join(pieces)


def _settings(found: Findings) -> list[list[Html | str | None]]:
    config, network, training = found.config, found.config.network, found.config.training
    parameters = sum(one.numel() for one in found.model.network.parameters())
    rows: list[list[Any]] = [
        ["Network", f"{network.depth} blocks, width {network.width}, {network.heads} heads", "diffusion transformer"],
        ["Parameters", f"{parameters:,}", "numbers in the network"],
        ["Window", f"{config.window:,}", "steps that the model sees at once"],
        ["Stride", f"{config.stride:,}", "steps between windows, where they overlap"],
        ["Anchor", config.examples.anchor, "seasonal: learns the residual from a free fill; none: the paper's form"],
        ["Scaling", config.scaling, "instance: each window's own level and scale"],
        ["Bounds", _bounds(network.bounds), f"largest ‖c‖, |γ|, |β|, |α| of the conditioning, by {network.operator}"],
        [
            "Diffusion",
            f"{config.process.steps:,} steps",
            f"noise levels; the network predicts {config.process.prediction}",
        ],
        ["Training", f"{training.steps:,} steps", "updates that were planned"],
        ["Batch size", f"{training.batch_size:,}", "examples a step" + (", expected" if config.privacy else "")],
        [
            "Learning rate",
            f"{training.learning_rate:g}",
            f"AdamW, warm-up of {training.warmup:,} steps, then {training.decay}",
        ],
        ["Averaging", f"{training.ema:g}", "decay of the moving average of weights, a step"],
        ["Seed", str(config.seed), "of every random stream but the privacy noise"],
    ]
    if config.privacy is not None:
        privacy = config.privacy
        rows += [
            [
                "Clipping norm C",
                f"{privacy.clip:g}",
                f"longest gradient of an example, {privacy.clipping} clipping (no unit)",
            ],
            ["Noise multiplier σ", _noise(found), "standard deviation of the noise, in clipping norms"],
            *_stands(found),
            ["Draws", str(privacy.draws), "crops and noise levels of an example that are averaged before clipping"],
        ]
    return rows


def _stands(found: Findings) -> list[list[str]]:
    """Where the run stands in numbers without units; nothing for a folder without a ledger."""
    stands = regime_of_run(found.run, found.config)
    if stands is None:
        return []
    summary = found.comparison.summaries[0] if found.comparison else None
    clipped = "" if summary is None or summary.clipping is None else f", {percent(summary.clipping.p_clip)} % clipped"
    return [["Where it stands", stands.numbers() + clipped, stands.advice()]]


def _noise(found: Findings) -> str:
    """What the ledger was charged for: training, and statistics where they were released."""
    charged = [
        f"{significant(one['noise_multiplier'])}, {one['count']:,} times, each example drawn with a chance of "
        f"{significant(one['sampling_rate'])}"
        for one in found.privacy.get("mechanisms", [])
    ]
    return "; ".join(charged) or "–"


def _bounds(all_bounds: tuple[Bounds, ...]) -> str:
    """Those of every block, or none."""
    said = []
    for bounds in dict.fromkeys(all_bounds):
        numbers = (bounds.condition, bounds.scale, bounds.shift, bounds.gate)
        said.append(
            "none" if bounds == Bounds() else ", ".join("free" if one is None else f"{one:.3g}" for one in numbers)
        )
    return "; ".join(said)


def _times(found: Findings) -> list[list[Html | str | None]]:
    time = found.comparison.summaries[0].time if found.comparison else None
    if time is None:
        return [["Step time", None, "not recorded"]]
    said = f"{significant(1000 * time.p50)} (mean {significant(1000 * time.mean)}, p90 {significant(1000 * time.p90)})"
    return [["Step time", said, "milliseconds: the median, on the machine that trained"]]


def gradient_section(found: Findings) -> Html:
    """Tails of the gradients' norms and what clipping does to them, where they were recorded."""
    comparison = found.comparison
    summary = comparison.summaries[0] if comparison else None
    if comparison is None or summary is None or summary.norms is None:
        return paragraph(
            "This run recorded no gradients; train it with ",
            tag("code", "--diagnose-every N"),
            " to have every N-th step recorded (private runs record every step unless told otherwise).",
        )
    rows = [
        [NORM_NAMES[which], *(significant(one) for one in (tail.p50, tail.p95, tail.p99, tail.largest, tail.hill))]
        for which, tail in summary.norms.items()
    ]
    pieces: list[Html | None] = [
        paragraph(
            "Private training shortens every example's gradient to a length C at most. How much is lost by that depends on the "
            f"tail of the gradients' lengths. {STATEMENT}"
        ),
        figure(
            _drawn(diagnostics.gradient_norms, comparison),
            f"Distribution of gradient norms; the median over all parameters is {significant(summary.norms['total'].p50)}, "
            f"99 % are below {significant(summary.norms['total'].p99)}.",
            f"Lengths of {summary.examples:,} examples' gradients from {summary.steps:,} recorded steps, before clipping (no "
            "unit). Above: share of examples below a length. Below: share above it, on a logarithmic scale"
            + ("; the dotted line is C." if comparison.records[0].clip else "."),
        ),
        table(
            "Length of an example's gradient, before clipping (no unit)",
            [
                "Part of the network",
                "Median",
                "95 % point",
                "99 % point",
                "Largest",
                "Hill's tail index (small: heavy)",
            ],
            rows,
        ),
    ]
    if summary.not_finite:
        pieces.append(paragraph(f"{summary.not_finite:,} gradients were not finite; they counted as zero."))
    if summary.clipping is not None:
        clip = summary.clipping
        pieces.append(
            figure(
                _drawn(diagnostics.clipping_factors, comparison),
                f"Clipping factors; {percent(clip.p_clip)} % of the examples are clipped.",
                f"How hard clipping bites: {percent(clip.p_clip)} % of the examples are longer than C and shortened; the median "
                f"gradient keeps {percent(clip.p50, 0)} % of its length (factor η = {significant(clip.p50)}).",
            )
        )
    else:
        pieces.append(paragraph("This run clips nothing, because it was trained without privacy.", class_="note"))
    pieces.append(
        figure(
            _drawn(diagnostics.part_tails, comparison),
            "Table of colours: 99 % points of gradient norms by part of the network: " + ", ".join(summary.parts) + ".",
            "Where in the network long gradients arise: 99 % point of the length by part, the conditioning path and the rest "
            "apart (no unit).",
        )
    )
    return join(pieces)
