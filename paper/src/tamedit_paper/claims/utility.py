"""The paper's claims about utility, each with the comparisons that decide it; and the question the paper does not ask."""

from collections.abc import Iterator
from statistics import fmean

from tamedit_paper.claims.verdicts import Check, Claim, close, in_order, less, ratio
from tamedit_paper.grid.measures import BASELINES, BySeed, Measure, Runs, metric, paired
from tamedit_paper.tables.printed import gains
from tamedit_paper.tables.utility import (
    ABLATION_SIGMA,
    CLIPS,
    ETT_SIGMA,
    SIGMAS,
    TIGHT_NAMES,
    aware,
    non_dp,
    vanilla,
)

IMPUTATION = metric("imputation", "point_RMSE")
FORECAST = metric("forecast", "point_RMSE")
MAE = metric("imputation", "point_MAE")
JS = metric("forecast", "dist_JS")
BOTH = (("imputation", IMPUTATION), ("forecast", FORECAST))
COMPARABLE = 0.05
FREE_RULE = "RMSE and CRPS below the best free baseline's, intervals above 0, at every σ"
LESS = "every paired difference vanilla − aware has a 95 % interval above 0"


def utility_claims(runs: Runs, source: str) -> Iterator[Claim]:
    """In the order of the paper."""
    main = "tab:main-results-extended, tab:forecasting-full, tab:inter-full"
    for task, measures in (
        ("imputation", {"RMSE": IMPUTATION, "MAE": MAE}),
        ("forecasts", {"RMSE": FORECAST, "dist_JS": JS}),
    ):
        checks = [
            less(f"{name}, σ = {sigma:g}, vanilla − aware", runs, aware(source, sigma), vanilla(source, sigma), measure)
            for sigma in SIGMAS
            for name, measure in measures.items()
        ]
        said = f"DP-aware has better {task} than DP-vanilla at every σ ({' and '.join(measures)})"
        places = (0, 2) if task == "imputation" else (3, 4)
        rows = [(f"DP-vanilla σ={sigma:g}", f"DP-aware σ={sigma:g}") for sigma in SIGMAS]
        printed = gains("tab:main-results-extended", rows, places)
        yield Claim(said, main, LESS, tuple(checks), printed=printed)
    yield Claim(
        "the gains are largest at low noise",
        "tab:main-results-extended",
        "gain = 1 − RMSE_aware / RMSE_vanilla; its mean over σ ≤ 0.05 minus its mean over σ ≥ 0.1 has an interval above 0",
        tuple(
            Check(f"{task}, gain at low − at high noise", _low_minus_high(runs, source, measure))
            for task, measure in BOTH
        ),
    )
    for name, data in (("ETTh1", "etth1"), ("ETTm1", "ettm1")):
        label = {"etth1": "tab:main-results-bts", "ettm1": "tab:main-results-cts"}[data]
        arms = aware(data, ETT_SIGMA), vanilla(data, ETT_SIGMA)
        two = [less(f"{task} RMSE, vanilla − aware", runs, *arms, measure) for task, measure in BOTH]
        printed = gains(label, [("DP-vanilla", "DP-aware")], (0, 3))
        yield Claim(f"DP-aware is better than DP-vanilla on {name}", label, LESS, tuple(two), printed=printed)
    yield from _component_claims(runs, source)
    yield from _operator_claims(runs, source)
    yield from _tightness_claims(runs, source)
    yield from _clip_claims(runs, source)


def _gain(runs: Runs, source: str, sigma: float, measure: Measure) -> BySeed:
    shares = ratio(runs.values(aware(source, sigma), measure), runs.values(vanilla(source, sigma), measure))
    return {seed: 1 - share for seed, share in shares.items()}


def _low_minus_high(runs: Runs, source: str, measure: Measure) -> BySeed:
    gains = {sigma: _gain(runs, source, sigma, measure) for sigma in SIGMAS}
    seeds = set.intersection(*(set(own) for own in gains.values()))
    low, high = [s for s in SIGMAS if s <= 0.05], [s for s in SIGMAS if s >= 0.1]
    return {seed: fmean(gains[s][seed] for s in low) - fmean(gains[s][seed] for s in high) for seed in sorted(seeds)}


def _component_claims(runs: Runs, source: str) -> Iterator[Claim]:
    sigma = ABLATION_SIGMA
    base, full = vanilla(source, sigma), aware(source, sigma)
    single = {
        "only c": aware(source, sigma, components="condition-only"),
        "only AdaLN": aware(source, sigma, components="modulation-only"),
    }
    where = "tab:ablation-forecast, tab:component-ablation-interp"
    yield Claim(
        "each component helps by itself",
        where,
        "vanilla − component has an interval above 0, for RMSE of both tasks",
        tuple(
            less(f"{task} RMSE, vanilla − {name}", runs, cell, base, m)
            for task, m in BOTH
            for name, cell in single.items()
        ),
    )
    yield Claim(
        "both components together are best",
        where,
        "vanilla − full and component − full have intervals above 0, for RMSE of both tasks",
        tuple(
            less(f"{task} RMSE, {name} − full", runs, full, cell, m)
            for task, m in BOTH
            for name, cell in {"vanilla": base, **single}.items()
        ),
    )


def _operator_claims(runs: Runs, source: str) -> Iterator[Claim]:
    where = "tab:boundop-mini, tab:boundop-pp-forecast, tab:boundop-pp-impute"
    smooth, hard, sigmas = ("tanh", "soft_clamp_band"), ("hard_clamp", "clamp_ste"), (0.05, 0.2)
    yield Claim(
        "smooth operators are better than hard ones",
        where,
        "hard − smooth has an interval above 0 for every pair, task and σ (RMSE)",
        tuple(
            less(
                f"{task} RMSE, σ = {sigma:g}, {bad} − {good}",
                runs,
                aware(source, sigma, operator=good),
                aware(source, sigma, operator=bad),
                measure,
            )
            for sigma in sigmas
            for task, measure in BOTH
            for good in smooth
            for bad in hard
        ),
    )
    yield Claim(
        "tanh and soft_clamp_band are comparable",
        where,
        f"the ratio of their RMSE has an interval within 1 ± {COMPARABLE:g}",
        tuple(
            close(
                f"{task} RMSE, σ = {sigma:g}, soft_clamp_band / tanh",
                runs,
                aware(source, sigma, operator=smooth[1]),
                aware(source, sigma),
                measure,
                COMPARABLE,
            )
            for sigma in sigmas
            for task, measure in BOTH
        ),
    )
    yield Claim(
        "every operator is better than DP-vanilla",
        where,
        "vanilla − operator has an interval above 0 for every operator (forecast RMSE, σ = 0.05)",
        tuple(
            less(f"vanilla − {name}", runs, aware(source, 0.05, operator=name), vanilla(source, 0.05), FORECAST)
            for name in (*smooth, *hard)
        ),
    )


def _tightness_claims(runs: Runs, source: str) -> Iterator[Claim]:
    cells = {name: aware(source, ABLATION_SIGMA, tightness=name) for name in TIGHT_NAMES}
    yield Claim(
        "Medium is the sweet spot of tightness",
        "tab:tightness-forecast, tab:tightness-interp",
        "setting − Medium has an interval above 0 for every other setting (RMSE of both tasks)",
        tuple(
            less(f"{task} RMSE, {TIGHT_NAMES[name]} − Medium", runs, cells["medium"], cell, measure)
            for task, measure in BOTH
            for name, cell in cells.items()
            if name != "medium"
        ),
    )
    plain, medium = non_dp(source), non_dp(source, tightness="medium")
    yield Claim(
        "without DP, Medium bounds cost nothing",
        "tab:nonprivate-expressiveness",
        f"the ratio of RMSE to Non-DP's has an interval within 1 ± {COMPARABLE:g} for both tasks",
        tuple(
            close(f"{task} RMSE, Medium / Non-DP", runs, medium, plain, measure, COMPARABLE) for task, measure in BOTH
        ),
    )
    tight = non_dp(source, tightness="too_tight")
    yield Claim(
        "without DP, Too tight bounds do harm",
        "tab:nonprivate-expressiveness",
        "Too tight − Non-DP has an interval above 0 for both tasks (RMSE)",
        tuple(less(f"{task} RMSE, Too tight − Non-DP", runs, plain, tight, measure) for task, measure in BOTH),
    )


def _clip_claims(runs: Runs, source: str) -> Iterator[Claim]:
    checks = []
    for name, arm in (("vanilla", vanilla), ("aware", aware)):
        cells = [(f"C = {clip:g}", arm(source, 0.1, clip=clip)) for clip in CLIPS]
        checks += in_order(f"forecast RMSE, {name}", runs, cells, FORECAST)
        checks += in_order(f"forecast dist_JS, {name}", runs, cells, JS)
    rule = "RMSE and dist_JS fall from each C to the next, with intervals above 0, for both arms"
    yield Claim("a larger C helps both arms", "tab:clip-norm", rule, tuple(checks))
    pairs = []
    for clip in CLIPS:
        arms = aware(source, 0.1, clip=clip), vanilla(source, 0.1, clip=clip)
        for name, measure in (("RMSE", FORECAST), ("dist_JS", JS)):
            pairs.append(less(f"forecast {name}, C = {clip:g}, vanilla − aware", runs, *arms, measure))
    rows = [(f"DP-vanilla C={clip:g}", f"DP-aware C={clip:g}") for clip in CLIPS]
    printed = gains("tab:clip-norm", rows, (1, 2))
    yield Claim("DP-aware is better than DP-vanilla for every C", "tab:clip-norm", LESS, tuple(pairs), printed=printed)


def free_claims(runs: Runs, source: str) -> Iterator[Claim]:
    """Beyond the paper: is a run better than what costs no privacy and no training?"""
    arms = {"DP-vanilla": vanilla, "DP-aware": aware}
    for data, sigmas in ((source, SIGMAS), ("etth1", (ETT_SIGMA,)), ("ettm1", (ETT_SIGMA,))):
        for name, arm in arms.items():
            yield _beats(runs, f"{name}, {data}", [(f"σ = {sigma:g}", arm(data, sigma)) for sigma in sigmas])
        yield _beats(runs, f"Non-DP, {data}", [("", non_dp(data))])


def _beats(runs: Runs, said: str, cells: list[tuple[str, str]]) -> Claim:
    checks = []
    for where, cell in cells:
        before = f"{where}, " if where else ""
        for task in ("imputation", "forecast"):
            point = ahead(runs, cell, task, "point_RMSE", BASELINES)
            spread = ahead(runs, cell, task, "CRPS", BASELINES)
            checks.append(Check(f"{before}{task} RMSE, best free − run", point))
            checks.append(Check(f"{before}{task} CRPS, best free − run", spread))
    return Claim(said, "not in the paper", FREE_RULE, tuple(checks), beyond=True)


def ahead(runs: Runs, cell: str, task: str, name: str, methods: tuple[str, ...]) -> BySeed:
    """The best of some free methods minus the run, by seed."""
    free = [runs.values(cell, metric(task, name, method)) for method in methods]
    seeds = set.intersection(*(set(own) for own in free))
    best = {seed: min(own[seed] for own in free) for seed in seeds}
    return paired(best, runs.values(cell, metric(task, name)))
