"""The live frame of a run, as a function of its state: steps, loops, findings, budget, log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.console import Group
from rich.text import Text

from backedge.analytics.report import Report, StepReport, report
from backedge.cli.back_edges import gutter
from backedge.cli.common import clock_time, shown
from backedge.cli.run_summary import decide_command
from backedge.core.breaches import spent
from backedge.core.findings.ledger import UNSETTLED
from backedge.core.state.run import RunState
from backedge.core.text import counted
from backedge.reading.event_words import back_edge, round_of

MARKS = {
    "running": ("▸", "bold cyan"),
    "done": ("✓", "green"),
    "failing": ("✗", "red"),
    "stale": ("↻", "yellow"),
    "waiting": ("·", "dim"),
    "passed_over": ("»", "yellow"),
    "skipped": ("»", "dim"),
}
STORY_ROWS = 6
"""Rows that stay free above the frame, for the timeline."""
LEAST_LOG, MOST_LOG = 2, 12
MOST_LOOPS, MOST_FINDINGS = 3, 2


def frame(state: RunState, now: float, title: str, log: Sequence[str], width: int, height: int) -> Group:
    """The rows of the frame. They fit into the width and the height of the terminal."""
    told = report(state)
    room = max(6, height - (STORY_ROWS if height >= 20 else 1))
    middle = [*_loops(state, told, width), *_escalations(told, width)]
    foot = _wrapped(_totals(state, told, now), width)
    least_log = min(len(log), LEAST_LOG) + bool(log)
    steps = list(_steps(state, told, now, max(2, room - 1 - len(middle) - len(foot) - least_log)))
    rows = [_header(state, told, now, width), *steps, *middle, *foot]
    free = min(MOST_LOG, room - len(rows) - 1)
    if log and free > 0:
        rows += [_rule(title, width), *(Text(line, style="dim") for line in log[-free:])]
    for row in rows:
        row.truncate(width, overflow="ellipsis")
    return Group(*rows[:room])


def _header(state: RunState, told: Report, now: float, width: int) -> Text:
    words = _standing(state, told)
    bounds = dict(state.graph.budgets)
    most = bounds.get("wall_clock", 0) + state.grants.get("wall_clock", 0)
    right = f" {words}, {_time(state.seconds_at_work(now))}{f' of {_time(most)}' if most else ''} ──"
    name = shown(f"{told.workflow}  {told.run}", max(10, width - cell_len(right) - 6))
    line = "─" * max(1, width - cell_len(name) - cell_len(right) - 4)
    return Text.assemble(
        ("── ", "dim"),
        (name, "bold"),
        (f" {line}", "dim"),
        (right, "dim" if told.outcome == "running" else "bold yellow"),
    )


def _standing(state: RunState, told: Report) -> str:
    if state.paused_by is not None:
        return f"paused by {shown(state.paused_by, 20)}" if state.paused_by else "paused"
    if told.outcome == "waiting":
        return "waits for a person"
    if told.waits_until is not None and not state.busy:
        return f"waits for a provider until {clock_time(told.waits_until)}"
    first = [loop.id for loop in state.loops.values() if loop.pauses]
    return f"{', '.join(first[:3])} first" if first else told.outcome


def _steps(state: RunState, told: Report, now: float, room: int) -> Iterable[Text]:
    graph = state.graph
    order = sorted(graph.order, key=graph.rank)
    hidden: Counter[str] = Counter()
    if len(order) > room:
        # Idle steps are the least interesting: they are counted instead of listed.
        quiet = [name for word in ("waiting", "done") for name in order if told.everybody[name].state == word]
        gone = set(quiet[: len(order) - room + 1])
        hidden.update(told.everybody[name].state for name in gone)
        order = [name for name in order if name not in gone]
    phases = max((cell_len(graph.phase_of[name]) for name in order), default=0)
    names = min(28, max((cell_len(name) for name in order), default=0) + 2)
    rows = []
    edges = [(loop.source, loop.targets) for loop in list(state.loops.values())[-MOST_LOOPS:]]
    drawn = dict(zip(order, gutter(order, edges), strict=True))
    for phase, group in groupby(order, key=lambda name: graph.phase_of[name]):
        for place, name in enumerate(group):
            step = told.everybody[name]
            mark, style = MARKS[step.state]
            label = f"◆ {name}" if graph.is_judge(name) else name
            rows.append(
                Text.assemble(
                    (f" {drawn[name]}", "bold yellow"),
                    (f" {_padded(phase if place == 0 else '', phases)}  ", "dim"),
                    (f"{mark} {_padded(shown(label, 28), names)}  ", style),
                    (_step_words(state, name, step, now), style if step.state in ("running", "failing") else "dim"),
                )
            )
    if hidden:
        counts = ", ".join(f"{count} {word}" for word, count in sorted(hidden.items()))
        rows.append(Text(f"  … and {counts}", style="dim"))
    return rows[:room]


def _step_words(state: RunState, name: str, step: StepReport, now: float) -> str:
    of_step = state.steps[name]
    running = of_step.running
    if running is not None:
        loops = ", ".join(running.loops or running.verifies)
        why = {"rework": f"reworks {loops}", "verify": f"verifies {loops}".rstrip(), "answer": f"answers {loops}"}
        why["decide"] = f"chooses in {loops}"
        parts = [f"attempt {running.attempt}", why.get(running.mode, ""), _time(now - running.started)]
    elif step.waits is not None:
        left = _time(step.waits.until - now)
        parts = [f"waits until {clock_time(step.waits.until, now)} ({left})", shown(step.waits.message, 80)]
    elif step.state == "failing":
        found = [f"F-{id}" for id in of_step.open_findings]
        parts = [step.verdict or "", ", ".join(found) if len(found) <= 6 else f"{len(found)} findings"]
    elif step.state == "waiting":
        parts = [f"broke: {shown(step.last_error, 80)}" if step.last_error else _edges(state, name)]
    else:
        again = f"{step.attempts} attempts" if step.attempts > 1 else ""
        parts = [step.verdict or (f"v{step.version}" if step.version > 1 else ""), again]
        parts += ["out of date"] if step.state == "stale" else []
    return " · ".join(part for part in parts if part)


def _edges(state: RunState, name: str) -> str:
    """What a step that has not run yet waits for."""
    step = state.graph.steps[name]
    about = f"{'tests' if step.tests else 'reviews'} {', '.join(step.judges)}" if step.judges else ""
    others = [need for need in state.graph.needs[name] if need not in step.judges]
    return "  ".join(part for part in (about, f"← {', '.join(others)}" if others else "") if part)


def _loops(state: RunState, told: Report, width: int) -> Iterable[Text]:
    findings = {finding.id: finding for finding in told.findings}
    rows = []
    open_loops = list(state.loops.values())
    for loop in open_loops[-MOST_LOOPS:]:
        edge = back_edge(loop.source, loop.targets)
        title = Text.assemble((f"↩ {loop.id} ", "bold yellow"), (edge, "yellow"))
        rows += _wrapped([title, Text(round_of(loop))], width, gap="  ")
        if loop.feedback is not None:
            about = f"{loop.kind_name.replace('_', ' ')}: {loop.feedback.message}"
            rows.append(Text(f"      {shown(about, 200)}"))
        given = [f"F-{id}" for id in dict.fromkeys(id for share in loop.shares.values() for id in share.findings)]
        still = [findings[id] for id in given if findings[id].status in UNSETTLED]
        for finding in still[:MOST_FINDINGS]:
            place = f"{finding.file}:{finding.line} " if finding.file and finding.line else ""
            rows.append(Text(f"      {finding.id} {finding.severity}  {shown(place + finding.description, 200)}"))
        if len(still) > MOST_FINDINGS:
            rows.append(Text(f"      … and {len(still) - MOST_FINDINGS} more", style="dim"))
    if len(open_loops) > MOST_LOOPS:
        rows.append(Text(f"  … and {len(open_loops) - MOST_LOOPS} more loops", style="dim"))
    return rows


def _escalations(told: Report, width: int) -> Iterable[Text]:
    for packet in told.escalations:
        if packet.decided is None:
            about = packet.loop or packet.step or "the run"
            yield Text(f"  ? {packet.id} about {about}: {shown(packet.reason, width)}", style="bold magenta")
            yield Text(decide_command(packet.id, packet.words, told.run, width), style="magenta")


def _totals(state: RunState, told: Report, now: float) -> list[Text]:
    counts = Counter("open" if finding.status in UNSETTLED else finding.status for finding in told.findings)
    order = ["open", "fixed", *sorted(word for word in counts if word not in ("open", "fixed"))]
    found = ", ".join(f"{counts[word]} {word}" for word in order if counts[word]) or "none"
    bounds = {name: bound + state.grants.get(name, 0) for name, bound in state.graph.budgets}

    def against(name: str, words: str, bound: str) -> Text:
        high = name in bounds and spent(state, name, now) >= 0.8 * bounds[name]
        return Text(f"{words} of {bound}" if name in bounds else words, style="bold red" if high else "")

    return [
        Text.assemble("findings ", (found, "red" if counts["open"] else "")),
        against("cost_usd", f"${state.usage.cost_usd:.2f}", f"${bounds.get('cost_usd', 0):.2f}"),
        against("attempts", counted(state.attempts, "attempt"), f"{bounds.get('attempts', 0):g}"),
    ]


def _wrapped(parts: Iterable[Text], width: int, gap: str = "   ") -> list[Text]:
    """The parts side by side, on several rows if the terminal is too narrow."""
    rows: list[Text] = []
    for part in parts:
        if rows and rows[-1].cell_len + len(gap) + part.cell_len <= width:
            rows[-1].append(gap).append_text(part)
        else:
            rows.append(Text("      " if rows else "  ").append_text(part))
    return rows


def _rule(title: str, width: int) -> Text:
    start = f"── {shown(title, max(10, width - 8))} "
    return Text(start + "─" * max(0, width - cell_len(start)), style="dim")


def _padded(text: str, cells: int) -> str:
    return text + " " * max(0, cells - cell_len(text))


def _time(seconds: float) -> str:
    seconds = max(0.0, seconds)
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"
