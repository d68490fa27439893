"""The paper's tables of utility: main results, full metrics, ETT, and what the design choices do to them."""

from tamedit.model.zoo import TIGHTNESS
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.measures import rho
from tamedit_paper.tables.layout import NONE, Column, Row, Table, baselines, row, utility

SIGMAS = (0.03, 0.05, 0.1, 0.2)
ABLATION_SIGMA = 0.05
ETT_SIGMA = 0.1
CLIPS = (0.5, 1.0, 2.0)
OPERATORS = ("tanh", "soft_clamp_band", "hard_clamp", "clamp_ste")
TIGHT_NAMES = {"loose": "Loose", "medium": "Medium", "tight": "Tight", "too_tight": "Too tight"}
VANILLA, AWARE, PLAIN = "DP-vanilla", "DP-aware", "Non-DP"
FORECAST_THREE = ("point_RMSE", "dist_JS", "temp_spec_dist")
IMPUTATION_THREE = ("point_RMSE", "point_MAPE", "point_MAE")
FULL = ("point_MAE", "point_RMSE", "point_MAPE", "R2", "dist_KL", "dist_JS", "dist_WS", "dist_KS", "MMD")
IMPUTATION, FORECASTING = "Interpolation/Imputation", "Forecasting"


def non_dp(source: str, **more: object) -> str:
    return Cell.model_validate({"source": source, "arm": "non-dp", **more}).name


def vanilla(source: str, sigma: float, **more: object) -> str:
    return Cell.model_validate({"source": source, "arm": "vanilla", "sigma": sigma, **more}).name


def aware(source: str, sigma: float, **more: object) -> str:
    return Cell.model_validate({"source": source, "arm": "aware", "sigma": sigma, "tightness": "medium", **more}).name


def _three_arms(
    source: str, columns: tuple[Column, ...], sigmas: tuple[float, ...], with_sigma: bool
) -> tuple[Row, ...]:
    """Non-DP, then vanilla and aware at every σ; then what is free."""

    def of(name: str, cell: str, sigma: float | None) -> Row:
        key = name if sigma is None or not with_sigma else f"{name} σ={sigma:g}"
        leads = (name, *([NONE if sigma is None else f"{sigma:g}"] if with_sigma else []))
        return row(key, leads, cell, columns, contest="" if sigma is None else f"{sigma:g}", sigma=sigma)

    rows = [of(PLAIN, non_dp(source), None)]
    for sigma in sigmas:
        rows += [of(VANILLA, vanilla(source, sigma), sigma), of(AWARE, aware(source, sigma), sigma)]
    return (*rows, *baselines(2 if with_sigma else 1))


def main_results(source: str) -> Table:
    columns = (
        *utility("imputation", *IMPUTATION_THREE, group=IMPUTATION),
        *utility("forecast", *FORECAST_THREE, group=FORECASTING),
    )
    rows = _three_arms(source, columns, SIGMAS, True)
    return Table("tab:main-results-extended", "Utility under matched DP training", ("Model", "σ"), columns, rows)


def full_metrics(source: str, task: str) -> Table:
    columns = tuple(utility(task, *FULL, short=True))
    label = "tab:forecasting-full" if task == "forecast" else "tab:inter-full"
    title = FORECASTING if task == "forecast" else IMPUTATION
    rows = _three_arms(source, columns, SIGMAS, True)
    return Table(label, f"{title}: all metrics across noise multipliers", ("Model", "σ"), columns, rows)


def ett(source: str) -> Table:
    label, name, distance = {
        "etth1": ("tab:main-results-bts", "ETTh1", "dist_JS"),
        "ettm1": ("tab:main-results-cts", "ETTm1", "dist_WS"),
    }[source]
    columns = (
        *utility("imputation", *IMPUTATION_THREE, group=IMPUTATION),
        *utility("forecast", "point_RMSE", distance, "temp_spec_dist", group=FORECASTING),
    )
    rows = _three_arms(source, columns, (ETT_SIGMA,), False)
    return Table(label, f"Utility on {name} at σ = {ETT_SIGMA:g}", ("Model",), columns, rows)


def _rho(key: str = "rho_emp") -> Column:
    return Column(key, "ρ_emp (p99)", rho("total", "p99"), best="neither")


def components(source: str, task: str) -> Table:
    forecast = task == "forecast"
    names = ("point_RMSE", "dist_JS") if forecast else ("point_RMSE", "point_MAE")
    columns = (_rho(), *utility(task, *names))
    of = [
        ("vanilla", VANILLA, "×", "×", vanilla(source, ABLATION_SIGMA)),
        ("only c", f"{AWARE} (only c bounded)", "✓", "×", aware(source, ABLATION_SIGMA, components="condition-only")),
        (
            "only AdaLN",
            f"{AWARE} (only AdaLN bounded)",
            "×",
            "✓",
            aware(source, ABLATION_SIGMA, components="modulation-only"),
        ),
        ("full", f"{AWARE} (full)", "✓", "✓", aware(source, ABLATION_SIGMA)),
    ]
    rows = [row(key, tuple(words[: 3 if forecast else 1]), cell, columns, contest="all") for key, *words, cell in of]
    leads = ("Model Variant", "c bounded", "(γ,β,α) bounded") if forecast else ("Model variant",)
    label = "tab:ablation-forecast" if forecast else "tab:component-ablation-interp"
    title = FORECASTING if forecast else IMPUTATION
    caption = f"{title}: effects of the two forward-pass controls at σ = {ABLATION_SIGMA:g}"
    return Table(label, caption, leads, columns, (*rows, *baselines(len(leads))))


def operators(source: str, label: str, task: str, names: tuple[str, ...], sigmas: tuple[float, ...]) -> Table:
    """One row an operator; with several σ one group of columns each. Vanilla stands below, for what any bound gains."""
    several = len(sigmas) > 1
    columns = tuple(
        column
        for sigma in sigmas
        for column in utility(task, *names, group=f"σ = {sigma:g}" if several else "", sigma=sigma if several else None)
    )
    wide = [sigma for sigma in sigmas for _ in names]
    rows = [
        Row(
            name,
            (name + (" (default)" if name == "tanh" else ""),),
            tuple(aware(source, sigma, operator=name) for sigma in wide),
            contest="all",
        )
        for name in OPERATORS
    ]
    rows.append(
        Row("vanilla", (f"{VANILLA} (no bound; from the main table)",), tuple(vanilla(source, sigma) for sigma in wide))
    )
    title = FORECASTING if task == "forecast" else IMPUTATION
    where = "" if several else f" at σ = {sigmas[0]:g}"
    return Table(label, f"{title}: the bounding operator{where}", ("B_M(·)",), columns, (*rows, *baselines(1)))


def tightness(source: str, task: str) -> Table:
    forecast = task == "forecast"
    names = ("point_RMSE", "dist_JS") if forecast else ("point_RMSE", "point_MAE")
    columns = (_rho(), *utility(task, *names))
    rows = tuple(
        row(
            TIGHT_NAMES[name],
            (TIGHT_NAMES[name], f"{factor:.2f}"),
            aware(source, ABLATION_SIGMA, tightness=name),
            columns,
            contest="all",
        )
        for name, factor in TIGHTNESS.items()
    )
    label = "tab:tightness-forecast" if forecast else "tab:tightness-interp"
    title = FORECASTING if forecast else IMPUTATION
    caption = f"{title}: tightness of the bounds at σ = {ABLATION_SIGMA:g}"
    return Table(label, caption, ("Setting", "× (C₀,Γ₀,B₀,A₀)"), columns, (*rows, *baselines(2)))


def expressiveness(source: str) -> Table:
    columns = (
        *utility("imputation", *FORECAST_THREE, group=IMPUTATION),
        *utility("forecast", *FORECAST_THREE, group=FORECASTING),
    )
    rows = [row(PLAIN, (PLAIN,), non_dp(source), columns, contest="all")]
    for name, shown in TIGHT_NAMES.items():
        rows.append(row(shown, (f"+ {AWARE} ({shown})",), non_dp(source, tightness=name), columns, contest="all"))
    caption = "What the bounds cost without DP: no clipping, no noise"
    return Table("tab:nonprivate-expressiveness", caption, ("Model",), columns, (*rows, *baselines(1)))


def clip_norm(source: str) -> Table:
    columns = (_rho(), *utility("forecast", "point_RMSE", "dist_JS", short=True))
    rows = []
    for clip in CLIPS:
        for name, arm in ((VANILLA, vanilla), (AWARE, aware)):
            cell = arm(source, 0.1, clip=clip)
            rows.append(row(f"{name} C={clip:g}", (f"{clip:.1f}", name), cell, columns, contest=f"{clip:g}"))
    caption = "Forecasting: the clipping threshold C at σ = 0.1"
    return Table("tab:clip-norm", caption, ("C", "Model"), columns, (*rows, *baselines(2)))
