"""The page of the ε curve: targets and verdicts, a figure, tables, and what was tried.

Everything but the notes under "What was tried" is computed from the results, so the same results give the same page.
"""

from pathlib import Path

from tamedit.files import write_text
from tamedit.runs.recipe import Scale
from tamedit_paper.claims.verdicts import ENOUGH
from tamedit_paper.curve.cells import SOURCE, curve_cells, groups, nonprivate, private
from tamedit_paper.curve.figure import draw_curve, has_curve
from tamedit_paper.curve.tables import (
    PATH_TASKS,
    SHORT,
    coverage_table,
    crps_table,
    gain_table,
    other_bars,
    path_table,
    share_table,
)
from tamedit_paper.curve.targets import contrasts, tally, target_table, targets
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.measures import Runs
from tamedit_paper.grid.recipes import effort_of
from tamedit_paper.tables.render import NOT_RUN, ONE_SEED

PAGE, FOLDER, NOTES = "private-utility.md", "private-utility", "private-utility-notes.md"

INTRODUCTION = """# What privacy costs where it protects someone

Made by `tamedit reproduce curve` from the results under `paper/results/`; do not edit (notes by hand: `paper/docs/{notes}`).
Our own form of the model on 254 real homes (`ideal`), at an ε per home-week or per whole home. The bar is the
*free distribution*: a training-free baseline, made of the window's own readings, that costs no privacy. A private model is
worth having where it beats that. So far {progress}.

    tamedit reproduce curve --scale {scale} --seeds 3 --workers 2       # the runs that are missing
    tamedit reproduce curve --scale {scale} --tables --out paper/docs   # this page, without any run
"""

READING = f"""## How to read it

- **ε** is that of the unit in its row, at δ = 1e-5. **A budget per home-week protects a week, not the home.** The first tables
  say what the same run costs per reading and per whole home. The noise of these runs is reproducible, so they carry no guarantee:
  they are experiments.
- **Beginning.** *The shipped model* comes with the package and has seen simulated homes only; *untuned* is that model as it is.
  *One public household* is a model of the UCI household. *Random weights* is no model: before training, it draws from the
  free distribution.
- **Arm.** *aware* has the bounds of DP-aware AdaLN-Zero on the conditioning, *vanilla* has none. Nothing else differs.
- **Tasks.** *Gap filling*: 10 to 50 % of the hours are hidden. *Forecast*: the last day is hidden. *Cold start*: only one or two
  days are known, and the next day is forecast. *Long gap*: 2 to 5 days of a week are missing.
- **Numbers** are in z-units; lower is better. They are the mean ± half-width of a 95 % t-interval over seeds, all on the
  same test windows. {ONE_SEED}: one run, no interval. "{NOT_RUN}": no result is there.
- **Gains** are the free distribution's score minus the run's, on the same windows. The interval is over test homes
  (a paired bootstrap): the mean over seeds, and the lowest and the highest end of the seeds' 95 % intervals.
"""

RULES = f"""A limit is compared with the mean over seeds. *Better than the free distribution*: the interval over homes lies
above 0 for every seed; *no worse*: it does not lie below 0. *No worse than the shipped model*: the interval over seeds of
(untuned − run) does not lie below 0. A run needs {ENOUGH} seeds. "No worse" is no proof that two are equal. The day's total is
judged where one day is forecast. Limits against draws from the same hour hold for these 96 windows; no interval over
windows is in them.
"""

CONTRAST = """Both arms begin from the same shipped weights, which were trained with the bounds. Above 0, aware is better. A
word follows where the 95 % interval over seeds excludes 0. Seeds vary the training and not the shipped model. Without
its bounds the same weights are another network, worse than the free distribution before the first step: vanilla begins
behind. So this shows that bounds and weights belong together, not that bounds help a run from random weights.
"""


def write_utility(results_folder: Path, scale: Scale, out: Path) -> list[Path]:
    """Write `out`/private-utility.md and its figure under `out`/private-utility from results such as results/laptop.

    Notes written by hand, `out`/private-utility-notes.md, are copied unchanged, if there are any.
    """
    runs = Runs.load(results_folder, curve_cells(), scale)
    paths = draw_curve(runs, out / FOLDER)
    notes = out / NOTES
    text = utility_text(runs, scale, notes.read_text(encoding="utf-8") if notes.exists() else "")
    write_text(out / PAGE, text)
    return [out / PAGE, *paths]


def utility_text(runs: Runs, scale: Scale, notes: str) -> str:
    """The page."""
    asked = targets(runs)
    pairs = "\n".join(f"- {sentence}" for sentence in contrasts(runs))
    return "\n".join(
        [
            INTRODUCTION.format(notes=NOTES, progress=_progress(runs), scale=scale),
            *_picture(runs),
            READING,
            settings_text(scale),
            f"## What it must show\n\n{tally(asked)}\n\n{RULES}\n{target_table(asked)}",
            *_tables(runs),
            f"## Aware against vanilla\n\n{CONTRAST}\n{pairs}\n",
            *([f"## What was tried\n\n{notes.strip()}\n"] if notes.strip() else []),
        ]
    )


def _picture(runs: Runs) -> list[str]:
    if not has_curve(runs):
        return []
    name = f"{FOLDER}/curve-{SOURCE}"
    caption = (
        "CRPS against ε, as a multiple of the free distribution's: below 1 is better than free. "
        "Bars are 95 % intervals over seeds"
    )
    return [f"![{caption}]({name}.png)\n\n{caption}. [SVG]({name}.svg)\n"]


def _tables(runs: Runs) -> list[str]:
    """Every table under its heading."""
    parts = ["## CRPS of the five tasks\n", *_other_bars(runs)]
    for group in groups():
        parts += [f"### {group.title}\n", crps_table(group, runs)]
    parts += [
        "## Gain over the free distribution, with intervals over homes\n",
        "**Bold**: the interval lies above 0. (worse): it lies below 0.\n",
        gain_table(runs),
        "## Whole paths\n",
        "Of the stretch that is hidden: CRPS of its total and of its peak, energy score and variogram score. Independent draws "
        "do badly here.\n",
    ]
    for task in PATH_TASKS:
        parts += [f"### Paths: {SHORT[task]}\n", path_table(runs, task)]
    return [
        *parts,
        "## Coverage\n",
        "Share of the hidden readings within the 50 % and within the 90 % band, mean over seeds.\n",
        coverage_table(runs),
        "## Kept of the non-private gain\n",
        "(free distribution − run) / (free distribution − run at ε = ∞) in CRPS, seed by seed, for the same arm and beginning. "
        "Not defined where the run at ε = ∞ is no better than free.\n",
        share_table(runs),
    ]


def settings_text(scale: Scale) -> str:
    """What a scale spends on private runs and on those at ε = ∞."""
    efforts = {
        "Private runs from a model": private("aware", 8.0),
        "private runs from random weights": private("aware", 8.0, public=""),
        "runs at ε = ∞": nonprivate("aware"),
    }
    said = []
    for name, cell in efforts.items():
        training = effort_of(Cell.parse(cell), scale).training
        said.append(f"{name}: {training['steps']} steps, batches of {training['batch_size']}")
    shared = effort_of(Cell.parse(efforts["Private runs from a model"]), scale)
    network = ", ".join(f"{key} {value}" for key, value in shared.network.items())
    return (
        f"Scale `{scale}`: {network}. {'; '.join(said)}. "
        f"At most {shared.windows} test windows, {shared.samples} samples each.\n"
    )


def _progress(runs: Runs) -> str:
    """How much of the curve is there."""
    counts = [runs.seeds(cell) for cell in curve_cells()]
    return f"{sum(count > 0 for count in counts)} of {len(counts)} cells are there ({sum(counts)} runs)"


def _other_bars(runs: Runs) -> list[str]:
    """A warning where the free distributions of two runs disagree."""
    named = ", ".join(f"`{name}`" for name in other_bars(curve_cells(), runs))
    return [f"Not to be compared with the others, for they were scored on other windows: {named}.\n"] if named else []
