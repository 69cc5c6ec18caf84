"""The two tables: what was measured, and what it means for us."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench.engines import ENGINES
from bench.figures import FIGURES
from bench.results import Results
from bench.sizes import Sizes
from bench.targets import Finding

WIDTH_WHEN_PIPED = 150


def show(results: Results, engines: Sequence[str], findings: Sequence[Finding], sizes: Sizes, reps: int) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH_WHEN_PIPED)
    console.print(_absolute(results, engines, reps))
    for note in _notes(results, engines, sizes):
        console.print(note, markup=False)
    console.print()
    console.print(_ratios(findings))
    if sizes != Sizes():
        console.print("sizes are not the default ones: these verdicts say nothing")


def number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _absolute(results: Results, engines: Sequence[str], reps: int) -> Table:
    table = Table(title=f"medians of {reps} repetition{'s' if reps > 1 else ''}")
    table.add_column("")
    for name in engines:
        table.add_column(name, justify="right")
    for figure in FIGURES:
        if any((name, figure.scenario) in results.cells for name in engines):
            table.add_row(figure.label, *(number(results.value(name, figure)) for name in engines))
    return table


def _notes(results: Results, engines: Sequence[str], sizes: Sizes) -> list[str]:
    """What the bare figures do not say: smaller sizes, empty cells, and what an engine's figures leave out."""
    notes: dict[str, list[str]] = {}
    for name in engines:
        entry = ENGINES[name]
        for size, cap in entry.caps.items():
            if cap < getattr(sizes, size):
                notes.setdefault(f"{size}: {cap} rather than {getattr(sizes, size):,}", []).append(name)
        if entry.note:
            notes.setdefault(entry.note, []).append(name)
    for (name, scenario), cell in results.cells.items():
        if cell.reason:
            notes.setdefault(f"–, {cell.reason}", []).append(f"{name} ({scenario})")
        if cell.failure:
            notes.setdefault(f"FAILED, {cell.failure}", []).append(f"{name} ({scenario})")
    return [f"{', '.join(names)}: {text}" for text, names in notes.items()]


def _ratios(findings: Sequence[Finding]) -> Table:
    table = Table(title="what we hold ourselves to")
    for heading in ("target", "ours", "against", "value", "bound", ""):
        table.add_column(heading, justify="left" if heading in ("target", "against", "") else "right")
    for finding in findings:
        target = finding.target
        against = f"{finding.other[0]} {number(finding.other[1])}" if finding.other else ""
        bound = f"{'≥' if target.at_least else '≤'} {target.bound:g}"
        verdict = {None: "not measured", True: "[green]met[/]", False: "[red]missed[/]"}[finding.met]
        table.add_row(target.text, number(finding.ours), against, number(finding.value), bound, verdict)
    return table
