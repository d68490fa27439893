"""The paper's claims about gradients, clipping, losses and step time, each with the comparisons that decide it."""

from collections.abc import Iterator

from tamedit_paper.claims.verdicts import Check, Claim, close, in_order, less
from tamedit_paper.grid.measures import Runs, clipping, final_loss, paired, rho, step_time
from tamedit_paper.tables.gradients import RUNTIME_SIGMA
from tamedit_paper.tables.printed import printed_reductions
from tamedit_paper.tables.utility import ABLATION_SIGMA, SIGMAS, TIGHT_NAMES, aware, non_dp, vanilla

PRINTED_DROP = 3.5  # of p99 of the conditioning path without DP, in the caption of the figure
SAME_RATE = 0.02  # the paper's largest difference of p_clip is 0.007
SAME_LOSS = 0.05
SAME_TIME = 0.10  # the paper's difference is 0.01 of Non-DP's step


def gradient_claims(runs: Runs, source: str) -> Iterator[Claim]:
    """In the order of the paper."""
    norms = "tab:grad-norms-multi-m, fig:grad_norm_distribution, fig:grad_norm_distribution_extented"
    for said, name, which in (
        ("DP-aware has lighter tails of the conditioning path", "ρ_cond", "cond"),
        ("DP-aware has lighter tails of the whole gradient", "ρ_emp", "total"),
    ):
        yield Claim(
            f"{said}: {name} < 1 at p99, every σ",
            norms,
            f"1 − {name} has an interval above 0 at every σ",
            tuple(_below_one(f"σ = {sigma:g}, 1 − {name}", runs, aware(source, sigma), which) for sigma in SIGMAS),
            printed=printed_reductions(9 if which == "cond" else 8),
        )
    yield Claim(
        "the rest of the gradient is only mildly affected",
        norms,
        "at p99 S_other keeps a larger share of vanilla's than S_cond: the difference of the shares has an interval above 0",
        tuple(_selective(f"σ = {sigma:g}, ρ_other − ρ_cond", runs, aware(source, sigma)) for sigma in SIGMAS),
    )
    bounded = non_dp(source, tightness="medium")
    yield Claim(
        "without DP, bounds cut the tail of the conditioning path, and more than the rest",
        "fig:grad_norm_distribution_no-dp",
        "at p99, 1 − ρ_cond and ρ_other − ρ_cond have intervals above 0 (bounded over unbounded Non-DP)",
        (_below_one("1 − ρ_cond", runs, bounded, "cond"), _selective("ρ_other − ρ_cond", runs, bounded)),
        printed=(1 - 1 / PRINTED_DROP,),
    )
    yield from _clipping_claims(runs, source)
    cells = [(shown, aware(source, ABLATION_SIGMA, tightness=name)) for name, shown in TIGHT_NAMES.items()]
    yield Claim(
        "ρ_emp falls as the bounds tighten",
        "tab:tightness-forecast, tab:tightness-interp",
        "ρ_emp (p99) falls from each setting to the next, with intervals above 0",
        tuple(in_order("ρ_emp", runs, cells, rho("total", "p99"))),
    )
    yield from _loss_claims(runs, source)
    yield Claim(
        "bounding costs no time beyond DP-SGD's",
        "tab:runtime-step-time",
        f"the ratio of median step times aware / vanilla has an interval within 1 ± {SAME_TIME:g}",
        (
            close(
                "p50, aware / vanilla",
                runs,
                aware(source, RUNTIME_SIGMA),
                vanilla(source, RUNTIME_SIGMA),
                step_time("p50"),
                SAME_TIME,
            ),
        ),
    )


def _below_one(said: str, runs: Runs, cell: str, which: str) -> Check:
    reduction = {seed: 1 - value for seed, value in runs.values(cell, rho(which, "p99")).items()}
    return Check(said, reduction, shares=reduction)


def _selective(said: str, runs: Runs, cell: str) -> Check:
    return Check(said, paired(runs.values(cell, rho("other", "p99")), runs.values(cell, rho("cond", "p99"))))


def _clipping_claims(runs: Runs, source: str) -> Iterator[Claim]:
    where = "tab:clipping_stats, tab:clipping-rate, fig:clipping-behaviour-extended"
    rates = []
    for sigma in SIGMAS:
        one, other = (runs.values(cell, clipping("p_clip")) for cell in (aware(source, sigma), vanilla(source, sigma)))
        rates.append(Check(f"σ = {sigma:g}, p_clip, aware − vanilla", paired(one, other), -SAME_RATE, SAME_RATE))
    rule = f"the paired difference of p_clip has an interval within ± {SAME_RATE:g} at every σ"
    yield Claim("both arms clip equally often", where, rule, tuple(rates))
    yield Claim(
        "DP-aware is clipped less hard: larger η at p10 and p50",
        where,
        "aware − vanilla has an interval above 0 for both quantiles at every σ",
        tuple(
            less(
                f"σ = {sigma:g}, η {name}, aware − vanilla",
                runs,
                vanilla(source, sigma),
                aware(source, sigma),
                clipping(name),
            )
            for sigma in SIGMAS
            for name in ("p10", "p50")
        ),
    )


def _loss_claims(runs: Runs, source: str) -> Iterator[Claim]:
    where = "fig:training-loss-curves"
    yield Claim(
        "the training loss of DP-aware tracks that of DP-vanilla",
        where,
        f"the ratio of final losses (median of the last quarter) has an interval within 1 ± {SAME_LOSS:g} at every σ",
        tuple(
            close(
                f"σ = {sigma:g}, aware / vanilla",
                runs,
                aware(source, sigma),
                vanilla(source, sigma),
                final_loss(),
                SAME_LOSS,
            )
            for sigma in SIGMAS
        ),
    )
    checks = []
    for name, arm in (("vanilla", vanilla), ("aware", aware)):
        rising = [(f"σ = {sigma:g}", arm(source, sigma)) for sigma in reversed(SIGMAS)]
        checks += in_order(f"final loss, {name}", runs, rising, final_loss())
    yield Claim(
        "more noise raises the loss floor",
        where,
        "the final loss rises from each σ to the next, with intervals above 0, for both arms",
        tuple(checks),
    )
    yield Claim(
        "Non-DP reaches the lowest loss",
        where,
        "final loss of every private run minus Non-DP's has an interval above 0",
        tuple(
            less(f"σ = {sigma:g}, {name} − Non-DP", runs, non_dp(source), arm(source, sigma), final_loss())
            for sigma in SIGMAS
            for name, arm in (("vanilla", vanilla), ("aware", aware))
        ),
    )
