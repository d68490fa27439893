"""Tables as Markdown and as LaTeX in the paper's layout, our number above the paper's."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Literal

from tamedit.errors import UserError
from tamedit.runs.recipe import Scale
from tamedit_paper.grid.measures import Runs
from tamedit_paper.tables import numbers
from tamedit_paper.tables.filled import Entry, Line, budgets, fill
from tamedit_paper.tables.labels import table as table_of
from tamedit_paper.tables.layout import NONE, Column, Table
from tamedit_paper.tables.printed import notes_of

ONE_SEED, NOTED = "†", "‡"
NOT_RUN = "–  (not run)"
LEGEND = (
    "Mean ± half-width of a 95 % t-interval over seeds; *in italics below: the paper's number*. **Bold**: the best of a group, "
    "where the paired difference over seeds to every rival has a 95 % interval that excludes 0. "
    f"{ONE_SEED} one seed, no interval. {NOTED} the paper disagrees with itself: see the note. "
    "Free rows use no training data and cost no privacy. Errors are in z-units; MAPE in the data's units."
)
LETTERS = {
    **{letter: f"\\{letter}" for letter in "%&#_"},
    "σ": r"$\sigma$",
    "ρ": r"$\rho$",
    "η": r"$\eta$",
    "ε": r"$\varepsilon$",
    "γ": r"$\gamma$",
    "β": r"$\beta$",
    "α": r"$\alpha$",
    "Γ": r"$\Gamma$",
    "₀": "$_0$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "✓": r"$\checkmark$",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "≤": r"$\le$",
    "²": "$^2$",
    "·": r"$\cdot$",
    "−": "$-$",
    "–": "--",
    "∞": r"$\infty$",
    "“": "``",
    "”": "''",
    ONE_SEED: r"\dag{}",
    NOTED: r"\ddag{}",
    "δ": r"$\delta$",
}
Form = Literal["markdown", "latex"]


def table_text(what: str, folder: Path, scale: Scale, form: Form = "markdown", source: str = "household") -> str:
    """One table from the results under a folder such as results/laptop."""
    table = table_of(what, source)
    runs = Runs.load(folder, table.needs(), scale)
    if form not in ("markdown", "latex"):
        raise UserError(f"form={form!r} is unknown; choose markdown or latex.")
    return markdown(table, runs) if form == "markdown" else latex(table, runs)


def entry_text(entry: Entry) -> str:
    """Our number alone, with its marks."""
    if entry.number is None:
        return NOT_RUN if entry.missing else NONE
    return numbers.shown(entry.number, entry.percent) + (f" {ONE_SEED}" if entry.number.seeds == 1 else "")


def paper_text(entry: Entry) -> str:
    return entry.paper + (f" {NOTED}" if entry.noted else "") if entry.paper else ""


def budget_text(table: Table, runs: Runs) -> str:
    """ε of every σ in the table, in the unit of the mechanism and for one reading; empty without privacy."""
    said = [
        f"σ = {sigma:g}: ε = {numbers.epsilon(own.get('window'))} for a window, "
        f"{numbers.epsilon(own.get('record'))} for a reading"
        for sigma, own in budgets(table.cells(), runs).items()
        if own
    ]
    return "; ".join(said) + " (δ = 1e-5)." if said else ""


def _sigma_text(sigma: float, table: Table, runs: Runs) -> str:
    own = budgets(table.cells(), runs).get(sigma)
    if not own:
        return f"{sigma:g}"
    return f"{sigma:g} (ε {numbers.epsilon(own.get('window'))} / {numbers.epsilon(own.get('record'))})"


def _leads(line: Line, table: Table, runs: Runs) -> list[str]:
    """What stands before the numbers; beside σ its ε, for a window / for a reading."""
    return [
        _sigma_text(line.row.sigma, table, runs) if title == "σ" and line.row.sigma is not None else lead
        for title, lead in zip(table.leads, line.row.leads, strict=True)
    ]


def _group(name: str, sigma: float | None, table: Table, runs: Runs) -> str:
    return name if sigma is None else f"σ = {_sigma_text(sigma, table, runs)}"


def markdown(table: Table, runs: Runs) -> str:
    """The table with its ε and the paper's contradictions below."""
    heads = list(table.leads)
    for column in table.columns:
        group = _group(column.group, column.sigma, table, runs)
        heads.append((f"{group}:<br>" if group else "") + column.title + column.arrow)
    lines = ["| " + " | ".join([*heads, "seeds"]) + " |", "|" + "---|" * (len(heads) + 1)]
    for line in fill(table, runs):
        body = _leads(line, table, runs)
        for entry in line.entries:
            text, paper = entry_text(entry), paper_text(entry)
            text = f"**{text}**" if entry.bold else text
            body.append(text + (f"<br>*{paper}*" if paper else ""))
        lines.append("| " + " | ".join([*body, line.seeds]) + " |")
    below = [budget_text(table, runs), *(f"{NOTED} {note.text}" for note in notes_of(table.label))]
    return "\n".join(lines) + "\n" + "".join(f"\n{text}\n" for text in below if text)


def latex(table: Table, runs: Runs) -> str:
    """The same with booktabs, multirow-free: what the paper spans, every row repeats."""
    lines = fill(table, runs)
    groups = [(name, list(own)) for name, own in groupby(table.columns, key=lambda column: column.group)]
    kinds = "l" * len(table.leads) + "|".join("c" * len(own) for _, own in groups) + "c"
    body = [
        r"\begin{table*}[t]",
        r"    \centering",
        r"    \resizebox{\textwidth}{!}{%",
        rf"    \begin{{tabular}}{{{kinds}}}",
    ]
    body.append(r"        \toprule")
    if any(name for name, _ in groups):
        body += _group_heads(groups, table, runs)
    heads = [*map(escaped, table.leads), *(escaped(column.title + column.arrow) for column in table.columns), "seeds"]
    body += [_row(heads), r"        \midrule"]
    before = lines[0].row.contest
    for line in lines:
        if line.row.contest != before:
            body.append(r"        \addlinespace")
            before = line.row.contest
        leads = map(escaped, _leads(line, table, runs))
        body.append(_row([*leads, *map(_latex_entry, line.entries), escaped(line.seeds)]))
    below = [budget_text(table, runs), *(f"{NOTED} {note.text}" for note in notes_of(table.label))]
    caption = " ".join([f"{table.caption}.", *filter(None, below)])
    body += [r"        \bottomrule", r"    \end{tabular}}", rf"    \caption{{{escaped(caption)}}}"]
    return "\n".join([*body, rf"    \label{{{table.label}}}", r"\end{table*}", ""])


def _group_heads(groups: Sequence[tuple[str, list[Column]]], table: Table, runs: Runs) -> list[str]:
    spans, rules, at = [""] * len(table.leads), [], len(table.leads) + 1
    for name, own in groups:
        shown = escaped(_group(name, own[0].sigma, table, runs))
        spans.append(rf"\multicolumn{{{len(own)}}}{{c}}{{{shown}}}")
        rules.append(rf"\cmidrule(lr){{{at}-{at + len(own) - 1}}}")
        at += len(own)
    return [_row([*spans, ""]), "        " + " ".join(rules)]


def _row(parts: Sequence[str]) -> str:
    return "        " + " & ".join(parts) + r" \\"


def _latex_entry(entry: Entry) -> str:
    ours, paper = escaped(entry_text(entry)), escaped(paper_text(entry))
    ours = rf"\textbf{{{ours}}}" if entry.bold else ours
    return rf"\makecell{{{ours} \\ \textit{{{paper}}}}}" if paper else ours


def escaped(text: str) -> str:
    """Text for LaTeX."""
    return "".join(LETTERS.get(letter, letter) for letter in text)
