"""The page of the ε curve: targets and verdicts, tables and a figure for every panel, and what was tried.

Everything but the notes under "What was tried" is computed from the results, so the same results give the same page.
"""

from collections.abc import Sequence
from pathlib import Path

from tamedit.files import write_text
from tamedit.runs.recipe import Scale
from tamedit_paper.claims.verdicts import ENOUGH
from tamedit_paper.curve.cells import (
    CURVE,
    HEAVY_BED,
    HEAVY_PANELS,
    all_cells,
    nonprivate,
    private,
    utility_cells,
)
from tamedit_paper.curve.figure import curve_rows, draw_curve
from tamedit_paper.curve.homes import EXPLAINED, TITLE, homes_table
from tamedit_paper.curve.tables import (
    contrast_table,
    other_bars,
    run_table,
    share_table,
    tally,
    target_table,
)
from tamedit_paper.curve.targets import contrasts, targets
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.measures import BASELINES, Runs
from tamedit_paper.grid.recipes import PANELS, PUBLIC_STAGE, effort_of
from tamedit_paper.tables.render import ONE_SEED, markdown

PAGE, FOLDER, NOTES = "private-utility.md", "private-utility", "private-utility-notes.md"
NAMES = {"ideal": "254 real homes (`ideal`)", "fleet": "as many simulated homes (`fleet`)"}

INTRODUCTION = """# What privacy costs where it protects someone

Made by `tamedit reproduce curve` from the results under `paper/results/`; do not edit (notes by hand: `paper/docs/{notes}`).
A private model is worth having if it is better than every guess that costs nothing, at an ε that a person would recognise:
that of a home's week, or of a whole home. So far {progress}.

    tamedit reproduce curve --scale {scale} --seeds 3 --workers 2          # the real homes
    tamedit reproduce curve:fleet --scale {scale} --seeds 3 --workers 2    # simulated homes
    tamedit reproduce heavy --scale {scale} --seeds 3 --workers 2          # heavy-tailed contexts
    tamedit reproduce curve --scale {scale} --tables --out paper/docs           # this page, without any run
"""

READING = f"""## How to read it

- **ε** is that of the unit in its row, at δ = 1e-5. Beside it stands what the same run costs for a window, a single reading and
  a whole home. **A budget for a home's week hides a week, not the home**: above 10 we call it hardly any. Noise of these
  runs is reproducible, so they carry no guarantee: they are experiments.
- **Arms.** *aware* has the bounds of DP-aware AdaLN-Zero on the conditioning path, *vanilla* has none; each begins from
  a public model of its own kind. Nothing else differs.
- **Forms.** *anchored*: the network learns the residual of the free fill, in each window's own units. *paper's*: no anchor,
  units from statistics of the training split, which ε does not cover.
- **Beginning.** *public model*: trained on simulated homes alone, before any private data; by itself it is the row with ε = 0.
  *public household*: the same, trained on one real household that is public (UCI), which no constant here was ever moved towards.
- **Numbers** are in z-units, the mean ± half-width of a 95 % t-interval over seeds, all on the same test windows: the interval
  is the scatter of training, not that of homes. {ONE_SEED} one seed, no interval. **Bold**: better than the other arm, where the
  paired difference over seeds has an interval that excludes 0.
- **Kept** is the share of the non-private gain in CRPS that a run keeps, (free − run) / (free − non-private), taken seed by
  seed; *free* is one of two guesses with a distribution: the free fill with Gaussian draws, or draws from what the same window
  shows at the same hour and its neighbours, which is harder to beat; *non-private* is the run of the same arm, form and beginning
  at ε = ∞. In the row with ε = 0 it is what the public model has before any private data.
"""

RULES = f"""A comparison *holds* if its 95 % t-interval over seeds lies where the target says, is the *opposite* if it lies
elsewhere, *open* if it reaches across the border, and has *few seeds* below {ENOUGH}. A target is **met** if every comparison
holds, **missed** if one is the opposite, **open** otherwise, and **not yet run** while a run is missing. The runs are those of
the real homes, unit home-week, that begin from the public model. (a) compares RMSE and CRPS of both tasks with the best of
{len(BASELINES)} free baselines, which do not vary with the seed: an interval above 0 means that the intervals do not touch.
"""

CONTRAST = """The paired difference vanilla − aware over seeds: above 0, aware is better. A pair is *better* (or *worse*) if at
least one of its four metrics is and none is the other way round, *mixed* if both happen, *not told apart* if no interval
excludes 0. No correction is made for the number of metrics: of four without any effect behind them, one interval or more
lies above 0 in at most about one pair of ten, and below 0 in as many.

**Seeds vary the private training and not the public model, of which there is one for each arm.** The difference of a pair that
begins from public models is therefore that of two particular models (the rows with ε = 0 show how far these were apart before),
and its interval says nothing about another public stage. Only the pairs that begin from random weights compare the arms alone.
"""


def write_utility(results_folder: Path, scale: Scale, out: Path) -> list[Path]:
    """Write `out`/private-utility.md and its figures under `out`/private-utility from results such as results/laptop.

    Notes written by hand, `out`/private-utility-notes.md, are copied unchanged, if there are any.
    """
    runs = Runs.load(results_folder, all_cells(), scale)
    paths = [path for panel in PANELS for path in draw_curve(runs, panel, out / FOLDER)]
    notes = out / NOTES
    text = utility_text(runs, scale, notes.read_text(encoding="utf-8") if notes.exists() else "")
    write_text(out / PAGE, text)
    return [out / PAGE, *paths]


def utility_text(runs: Runs, scale: Scale, notes: str) -> str:
    """The page."""
    panel = PANELS[0]
    asked = targets(runs, panel)
    shown = [source for source in PANELS[1:] if _some(runs, _cells(source))]
    compared = [name for source in (panel, *shown) for name in _cells(source)] + utility_cells(HEAVY_BED)
    pairs = list(contrasts(runs, compared))
    answers = [answer for one in asked for answer in one.answers.values()]
    return "\n".join(
        [
            INTRODUCTION.format(notes=NOTES, progress=_progress(runs), scale=scale),
            READING,
            settings_text(scale),
            f"## What it must show\n\n{RULES}\n{target_table(asked)}",
            f"## Aware against vanilla\n\n{CONTRAST}\n{tally(pairs)}\n{contrast_table(pairs, runs)}",
            *(_panel_section(source, runs) for source in (panel, *shown)),
            _heavy_section(runs),
            *([f"## What was tried\n\n{notes.strip()}\n"] if notes.strip() else []),
            "## Every comparison behind the targets\n",
            "Mean over seeds [95 % interval], number of seeds: outcome.\n",
            *(answer.details() for answer in answers),
        ]
    )


def settings_text(scale: Scale) -> str:
    """What a scale spends on private runs, on those at ε = ∞, and on the public model."""
    efforts = {
        "Private runs": private(PANELS[0], "aware", 8.0),
        "those from random weights": private(PANELS[0], "aware", 8.0, public=""),
        "those at ε = ∞": nonprivate(PANELS[0], "aware"),
    }
    said = []
    for name, cell in efforts.items():
        training = effort_of(Cell.parse(cell), scale).training
        said.append(f"{name}: {training['steps']} steps, batches of {training['batch_size']}")
    shared, public = effort_of(Cell.parse(efforts["Private runs"]), scale), PUBLIC_STAGE[scale]
    network = ", ".join(f"{key} {value}" for key, value in shared.network.items())
    return (
        f"Scale `{scale}`: {network}. {'; '.join(said)}; the public model: {public['steps']} steps, batches of "
        f"{public['batch_size']}, {public['weeks']} weeks of {public['meters']} simulated homes. "
        f"At most {shared.windows} test windows, {shared.samples} samples each.\n"
    )


def _cells(panel: str) -> list[str]:
    return utility_cells(f"{CURVE}:{panel}")


def _some(runs: Runs, cells: Sequence[str]) -> bool:
    return any(runs.of(cell) for cell in cells)


def _progress(runs: Runs) -> str:
    """How much of the curve, of the simulated one and of the heavy-tailed bed is there."""
    parts = {f"`{CURVE}`": _cells(PANELS[0])}
    parts |= {f"`{CURVE}:{panel}`": _cells(panel) for panel in PANELS[1:]}
    parts[f"`{HEAVY_BED}`"] = utility_cells(HEAVY_BED)
    counts = {name: [runs.seeds(cell) for cell in cells] for name, cells in parts.items()}
    return ", ".join(
        f"{sum(count > 0 for count in own)} of {len(own)} cells of {name} ({sum(own)} runs)"
        for name, own in counts.items()
    )


def _panel_section(panel: str, runs: Runs) -> str:
    cells = _cells(panel)
    parts = [f"## The curve: {NAMES[panel]}\n"]
    if not _some(runs, cells):
        return "\n".join([*parts, "not yet run\n"])
    name = f"{FOLDER}/curve-{panel}"
    if curve_rows(runs, panel):
        caption = f"CRPS against ε, {panel}: bars are 95 % intervals over seeds, a hollow mark is one seed"
        parts.append(f"![{caption}]({name}.png)\n\n{caption}. [SVG]({name}.svg)\n")
    table = markdown(run_table(cells, runs, panel), runs)
    parts += [table, *_bars(cells, runs), *_homes(cells, runs)]
    parts += ["### Kept of the non-private gain\n", share_table(cells, runs)]
    return "\n".join(parts)


def _heavy_section(runs: Runs) -> str:
    parts = [
        "## Heavy-tailed contexts\n",
        "The same homes with rare spikes, long outages and a covariate with outliers, from a seed: the test bed for what bounded "
        "conditioning is meant to survive. The public model has seen simulated homes disturbed in the same way. σ = 0.1 is the "
        "paper's way: its form, random weights, a given noise.\n",
    ]
    for source in HEAVY_PANELS:
        cells = [cell for cell in utility_cells(HEAVY_BED) if Cell.parse(cell).source == source]
        text = markdown(run_table(cells, runs, source), runs) if _some(runs, cells) else "not yet run\n"
        parts += [f"### `{source}`\n", text, *_bars(cells, runs)]
    return "\n".join(parts)


def _homes(cells: Sequence[str], runs: Runs) -> list[str]:
    table = homes_table(cells, runs)
    return [TITLE, EXPLAINED, table] if table else []


def _bars(cells: Sequence[str], runs: Runs) -> list[str]:
    """A warning where the free baselines of two runs disagree."""
    named = ", ".join(f"`{name}`" for name in other_bars(cells, runs))
    return [f"Not to be compared with the others, for their free baselines differ: {named}.\n"] if named else []
