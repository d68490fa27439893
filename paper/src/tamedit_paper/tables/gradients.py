"""The paper's tables of gradients, clipping and step time, and its figures."""

from tamedit_paper.grid.measures import clipping, rho, step_time, tail
from tamedit_paper.tables.layout import Column, Figure, Row, Table, row
from tamedit_paper.tables.utility import AWARE, PLAIN, SIGMAS, VANILLA, aware, non_dp, vanilla

NORMS_OF = {"other": "S_other", "cond": "S_cond", "total": "S_total"}
RUNTIME_SIGMA = 0.1
ETAS = ("mean", "p10", "p50", "p90", "p99")


def _arms(
    source: str, columns: tuple[Column, ...], sigmas: tuple[float, ...], sigma_first: bool, dash: bool
) -> tuple[Row, ...]:
    blank = tuple(column.key for column in columns if column.measure.over) if dash else ()
    rows = []
    for sigma in sigmas:
        for name, cell in ((VANILLA, vanilla(source, sigma)), (AWARE, aware(source, sigma))):
            leads = (f"{sigma:g}", name) if sigma_first else (name, f"{sigma:g}")
            dashes = blank if name == VANILLA else ()
            rows.append(
                row(f"{name} σ={sigma:g}", leads, cell, columns, blank=dashes, contest=f"{sigma:g}", sigma=sigma)
            )
    return tuple(rows)


def gradient_norms(source: str) -> Table:
    columns: list[Column] = []
    for quantile in ("p95", "p99"):
        group = f"{quantile} statistics"
        for which, name in NORMS_OF.items():
            columns.append(Column(f"{name} {quantile}", name, tail(which, quantile), group, best="neither"))
        for name, which in (("ρ_emp", "total"), ("ρ_cond", "cond")):
            columns.append(Column(f"{name} {quantile}", name, rho(which, quantile), group))
    caption = "Gradient norms of examples: p95 and p99 over all steps"
    rows = _arms(source, tuple(columns), SIGMAS, sigma_first=True, dash=True)
    return Table("tab:grad-norms-multi-m", caption, ("σ", "Model"), tuple(columns), rows)


def _clipping_columns(etas: tuple[str, ...]) -> tuple[Column, ...]:
    rate = Column("p_clip", "p_clip", clipping("p_clip"))
    return (rate, *(Column(f"eta {name}", f"{name}(η)", clipping(name), best="most") for name in etas))


def clipping_stats(source: str) -> Table:
    columns = _clipping_columns(ETAS[:4])
    rows = _arms(source, columns, (0.03, 0.2), sigma_first=True, dash=False)
    return Table("tab:clipping_stats", "How often and how hard gradients are clipped", ("σ", "Model"), columns, rows)


def clipping_rate(source: str) -> Table:
    columns = _clipping_columns(ETAS)
    rows = _arms(source, columns, SIGMAS, sigma_first=False, dash=False)
    return Table("tab:clipping-rate", "Clipping at every noise multiplier", ("Model", "σ"), columns, rows)


def runtime(source: str) -> Table:
    columns = (
        *(Column(name, f"{name} (s)", step_time(name), best="neither") for name in ("mean", "p50", "p90")),
        Column("ratio", "rel. to Non-DP", step_time("mean", "non-dp"), best="neither"),
    )
    of = ((PLAIN, non_dp(source)), (VANILLA, vanilla(source, RUNTIME_SIGMA)), (AWARE, aware(source, RUNTIME_SIGMA)))
    rows = tuple(row(name, (name,), cell, columns) for name, cell in of)
    return Table(
        "tab:runtime-step-time", f"Seconds of a training step (σ = {RUNTIME_SIGMA:g})", ("Method",), columns, rows
    )


def _pair(source: str, sigma: float) -> tuple[tuple[str, str], ...]:
    return ((VANILLA, vanilla(source, sigma)), (AWARE, aware(source, sigma)))


def figures(source: str) -> tuple[Figure, ...]:
    every = tuple((f"σ = {sigma:g}", _pair(source, sigma)) for sigma in SIGMAS)
    plain = (PLAIN, non_dp(source))
    bounded = (f"{PLAIN} with {AWARE}'s bounds", non_dp(source, tightness="medium"))
    losses = tuple((title, (plain, *runs)) for title, runs in every)
    return (
        Figure(
            "fig:grad_norm_distribution_no-dp",
            "Gradient norms without DP, with and without bounds",
            (("", (plain, bounded)),),
        ),
        Figure("fig:grad_norm_distribution", "Gradient norms under DP at σ = 0.2", (("", _pair(source, 0.2)),)),
        Figure("fig:grad_norm_distribution_extented", "Gradient norms under DP at every σ", every),
        Figure("fig:clipping-behaviour-extended", "Clipping factors and rates at every σ", every, "clipping"),
        Figure("fig:training-loss-curves", "Training loss at every σ", losses, "losses"),
    )
