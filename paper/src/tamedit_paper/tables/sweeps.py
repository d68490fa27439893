"""Sweeps beyond the paper's tables: where its bounds help (`regime`), and which magnitudes they should scale (`reference`).

`reference` runs on the simulator alone, so that what it finds costs no privacy. A common factor on the p99 of ‖c‖, |γ|, |β|, |α|
without noise, then each of the four by itself, at the noise of two of the paper's σ. `regime` trains both arms over a range of
walks at the paper's σ = 0.1, over a range of noise at the paper's walk, and at other depths.
"""

from tamedit_paper.tables.utility import SIGMAS, aware, vanilla

SWEEPS = ("reference", "regime")
P99 = (
    19.0,
    3.3,
    1.4,
    2.5,
)  # (‖c‖, |γ|, |β|, |α|) without noise: `python benchmarks/reference_magnitudes.py --steps 600`
FACTORS = (1.0, 0.5, 0.25, 0.125, 0.0625)
CHOSEN_FACTOR = 0.25
RATIOS = (0.5, 2.0)
REFERENCE_SIGMAS = (0.05, 0.1)
WALKS = (0.1, 0.4, 0.8, 2.5, 4.0)  # beside the paper's 1.58
WALK_SIGMA = 0.1
SMALL_SIGMA = 0.0125  # noise over signal 0.4
DEPTHS = (4, 8)  # beside the scale's


def limits(factor: float, own: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)) -> tuple[float, ...]:
    """The p99 times a common factor and one of its own for each."""
    return tuple(float(f"{factor * ratio * value:.3g}") for value, ratio in zip(P99, own, strict=True))


def bounded(sigma: float, factor: float, own: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)) -> str:
    """A cell of the reference sweep."""
    return aware("simulated", sigma, tightness="off", limits=limits(factor, own))


def ratio_cells(sigma: float) -> list[str]:
    """Each of the four bounds halved and doubled, the others as chosen."""
    changes = [tuple(ratio if at == place else 1.0 for at in range(4)) for place in range(4) for ratio in RATIOS]
    return [bounded(sigma, CHOSEN_FACTOR, own) for own in changes]  # type: ignore[arg-type]


def reference_cells() -> list[str]:
    """The simulator without bounds, with a common factor, with each bound by itself."""
    common = [bounded(sigma, factor) for factor in FACTORS for sigma in REFERENCE_SIGMAS]
    free = [vanilla("simulated", sigma) for sigma in REFERENCE_SIGMAS]
    return [*common, *free, *ratio_cells(WALK_SIGMA)]


def regime_cells(source: str = "household") -> list[str]:
    """Both arms over the walk, over the noise, and over the depth; those of the main table are among them."""
    cells = []
    for arm in (vanilla, aware):
        cells += [arm(source, sigma) for sigma in (SMALL_SIGMA, *SIGMAS)]
        cells += [arm(source, WALK_SIGMA, walk=walk) for walk in WALKS]
        cells += [arm("simulated", WALK_SIGMA, depth=depth) for depth in DEPTHS]
        cells += [arm("etth1", WALK_SIGMA, depth=6)]
    return cells


def sweep_cells(what: str) -> list[str]:
    return reference_cells() if what == "reference" else regime_cells()
