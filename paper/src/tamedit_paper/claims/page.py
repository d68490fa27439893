"""The page of the reproduction: how to run it, what differs, a verdict for every claim, all tables and figures.

Everything but the notes under "What was found" is computed from the results, so the same results give the same page.
Data that also stand in for PrivatePower have a page of their own with the verdicts and tables; what holds for all data is said
on the first page alone.
"""

from collections.abc import Sequence
from pathlib import Path

from tamedit.files import write_text
from tamedit.runs.recipe import Scale
from tamedit_paper.claims.gradients import gradient_claims
from tamedit_paper.claims.page_text import DIFFERENCES, HOW_TO_RUN, INTRODUCTION, RULES, STAND_IN, settings_text
from tamedit_paper.claims.regime import collapse_text, loss_text, reference_text, regime_text
from tamedit_paper.claims.utility import FREE_RULE, free_claims, utility_claims
from tamedit_paper.claims.verdicts import Claim
from tamedit_paper.grid.measures import Runs
from tamedit_paper.tables.figures import draw, file_name
from tamedit_paper.tables.labels import FIGURES, SOURCES, TABLES, cells_of, figure, table
from tamedit_paper.tables.layout import NONE, Figure
from tamedit_paper.tables.printed import notes_of
from tamedit_paper.tables.regime_figure import NAME as REGIME
from tamedit_paper.tables.regime_figure import draw_regime
from tamedit_paper.tables.render import LEGEND, NOTED, latex, markdown
from tamedit_paper.tables.sweeps import reference_cells, regime_cells

PREAMBLE = r"""\documentclass{article}
\usepackage[a4paper,landscape,margin=1.5cm]{geometry}
\usepackage{amssymb,booktabs,graphicx,makecell}
\begin{document}
"""


def stem(source: str = SOURCES[0]) -> str:
    """The page is `stem`.md, what it shows lies under `stem`/, and the notes by hand are `stem`-notes.md."""
    return "reproduction" if source == SOURCES[0] else f"reproduction-{source}"


def write_document(results_folder: Path, scale: Scale, out: Path, source: str = SOURCES[0]) -> list[Path]:
    """Write the page and what it shows from results such as results/laptop.

    Notes written by hand are copied unchanged, if there are any.
    """
    runs = load_runs(results_folder, scale, source)
    page, folder, notes = out / f"{stem(source)}.md", out / stem(source), out / f"{stem(source)}-notes.md"
    paths = draw_regime(runs, folder, source) if source == SOURCES[0] else []
    paths += [path for label in FIGURES for path in draw(figure(label, source), runs, folder)]
    write_text(folder / "tables.tex", latex_text(runs, source))
    write_text(page, page_text(runs, scale, notes.read_text(encoding="utf-8") if notes.exists() else "", source))
    return [page, folder / "tables.tex", *paths]


def load_runs(results_folder: Path, scale: Scale, source: str = SOURCES[0]) -> Runs:
    """All results that the page shows: those of the paper's cells and of the two sweeps."""
    names = [*cells_of("all", source), *regime_cells(source), *reference_cells()]
    return Runs.load(results_folder, list(dict.fromkeys(names)), scale)


def latex_text(runs: Runs, source: str = SOURCES[0]) -> str:
    """All tables as one document."""
    return PREAMBLE + "\n".join(latex(table(label, source), runs) for label in TABLES) + "\\end{document}\n"


def page_text(runs: Runs, scale: Scale, notes: str, source: str = SOURCES[0]) -> str:
    """The page."""
    first = source == SOURCES[0]
    claims = [*utility_claims(runs, source), *gradient_claims(runs, source)]
    free = list(free_claims(runs, source))
    introduction = INTRODUCTION if first else STAND_IN
    return "\n".join(
        [
            introduction.format(progress=_progress(runs, source), source=source, notes=f"{stem(source)}-notes.md"),
            *([f"## What was found\n\n{notes.strip()}\n"] if notes.strip() else []),
            *([_regime_picture(runs, source), regime_text(runs, scale, source)] if first else []),
            "## Verdicts\n",
            RULES,
            _tally(claims),
            _verdicts(claims),
            "### Beyond the paper: is anything better than free?\n",
            f"A run *holds* against the free baselines with {FREE_RULE}.\n",
            _free_verdicts(free),
            collapse_text(runs, source),
            loss_text(runs, source),
            *([reference_text(runs), HOW_TO_RUN, settings_text(scale), DIFFERENCES] if first else []),
            f"## Tables\n\n{LEGEND} The same tables for LaTeX: [tables.tex]({stem(source)}/tables.tex).\n",
            *(_table_section(label, runs, source) for label in TABLES),
            "## Figures\n\nThin lines are seeds, thick ones their mean. They show training data without noise: not private.\n",
            *(_figure_section(figure(label, source), runs, stem(source)) for label in FIGURES),
            "## Every comparison behind the verdicts\n",
            "Mean over seeds [95 % interval], number of seeds: outcome.\n",
            *(claim.details() for claim in (*claims, *free)),
        ]
    )


def _regime_picture(runs: Runs, source: str) -> str:
    """The first picture of the page; nothing before a run of a sweep is there."""
    if not any(runs.of(cell) for cell in regime_cells(source)):
        return ""
    name = f"{stem(source)}/{REGIME}"
    said = "Both arms over the walk and over the noise, and along training; dotted: where the paper stands"
    told = "Dots are seeds, lines their medians. |γ| is that after its bound, ‖c‖ that before it"
    return f"![{said}]({name}.png)\n\n{said}. {told}. [SVG]({name}.svg)\n"


def _progress(runs: Runs, source: str) -> str:
    """How much of the grid is there."""
    counts = [runs.seeds(cell) for cell in cells_of("all", source)]
    some = sum(count > 0 for count in counts)
    return f"{some} of {len(counts)} cells have been run, {sum(counts)} runs in all, at most {max(counts)} of a cell"


def _tally(claims: Sequence[Claim]) -> str:
    """How many claims got which verdict."""
    words = [claim.verdict.partition(" (")[0] for claim in claims]
    counts = [f"{words.count(one)} {one}" for one in dict.fromkeys(sorted(words))]
    failed = [[check.outcome for check in claim.checks] for claim in claims if claim.verdict == "not reproduced"]
    against = sum("opposite" in outcomes for outcomes in failed)
    split = (
        f" Of those not reproduced, {against} are contradicted (a comparison is the opposite) and {len(failed) - against} are "
        "undecided (all comparisons are open)."
    )
    return f"Of {len(claims)} claims: {', '.join(counts)}.{split * bool(failed)}\n"


def _free_verdicts(claims: Sequence[Claim]) -> str:
    lines = ["| run | verdict | comparisons |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {one.title} | **{one.verdict}** | {one.count} |" for one in claims)]) + "\n"


def _verdicts(claims: Sequence[Claim]) -> str:
    lines = [
        "| claim of the paper | verdict | comparisons | effect | reproduced if | where |",
        "|---|---|---|---|---|---|",
    ]
    for one in claims:
        effect = _span(one.effects) + (f"<br>*{_span(one.printed)}*" if one.printed else "")
        lines.append(f"| {one.title} | **{one.verdict}** | {one.count} | {effect} | {one.rule} | {one.where} |")
    return "\n".join(lines) + "\n"


def _span(shares: Sequence[float]) -> str:
    """The smallest and the largest effect, in percent."""
    if not shares:
        return NONE
    low, high = (f"{100 * value:.1f}".replace("-0.0", "0.0") for value in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _table_section(label: str, runs: Runs, source: str) -> str:
    found = table(label, source)
    return f"### {found.caption}\n\n`{label}`\n\n{markdown(found, runs)}"


def _figure_section(one: Figure, runs: Runs, folder: str) -> str:
    head = f"### {one.caption}\n\n`{one.label}`\n"
    notes = "".join(f"\n{NOTED} {note.text}\n" for note in notes_of(one.label))
    if not any(runs.of(cell) for cell in one.cells()):
        return f"{head}\nnot yet run\n{notes}"
    name = f"{folder}/{file_name(one.label)}"
    return f"{head}\n![{one.caption}]({name}.png)\n\n[SVG]({name}.svg)\n{notes}"
