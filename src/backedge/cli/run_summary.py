"""What a run did, in a few lines at its end: findings, changed files, denied tools, and what to type next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from backedge.analytics.report import Report
from backedge.analytics.sentence import often
from backedge.cli.changed_files import changed_files
from backedge.cli.common import clock_time, shown
from backedge.cli.evidence import closing_changes, evidence_line, flaky_tests
from backedge.core import events as e
from backedge.core.events import Event
from backedge.core.evidence.values import DENIED
from backedge.core.findings.ledger import UNSETTLED
from backedge.core.state.run import ASKED
from backedge.core.text import counted
from backedge.ports import OPEN
from backedge.project import Project
from backedge.project.worktrees import has_worktree
from backedge.reading.run_status import MERGED

MOST_FILES = 5
"""How many changed files to name."""
MOST_DENIED = 5
MOST_REFUSED = 3
MOST_LEFT = 5
"""How many findings to name that were accepted or deferred."""
SKIPPED = ("skipped", "passed_over")
NOT_BROKEN = ("interrupted", "in doubt")
"""Why attempts ended that are no errors of their agents."""
UNLIMITED = 10_000
"""As wide as lines are where there is no terminal."""


def closing_words(
    report: Report,
    changes: bool = True,
    more: Iterable[str] = (),
    questions: bool = True,
    answers: bool = True,
    width: int = UNLIMITED,
    next: str = "",
) -> Iterator[str]:
    """The summary that `run` prints at the end; with `changes`, it names changed tests, with `questions`, what open
    escalations are about, and with `answers`, what to type. `more` follows its first line, and `next` is what to type after
    the end."""
    usage = report.usage
    money = f", ${usage.cost_usd:.2f}" if usage.cost_usd else ""
    yield f"{report.outcome}: {counted(usage.attempts, 'attempt')}{money}, {usage.seconds:.1f} s at work"
    yield from more
    evidence = evidence_line(report)
    if evidence:
        yield f"  {evidence}"
    yield from flaky_tests(report)
    if changes:
        yield from closing_changes(report)
    waiting = [packet for packet in report.escalations if packet.decided is None]
    for refused in report.refused[:MOST_REFUSED]:
        to = ", ".join(refused.targets)
        yield f"  ! refused feedback from {shown(refused.source, 40)} to {shown(to, 60)}: {shown(refused.message, 120)}"
    if len(report.refused) > MOST_REFUSED:
        yield f"  ! … and {len(report.refused) - MOST_REFUSED} more that were refused: backedge feedback list"
    for name, step in report.everybody.items():
        errors = [each.error for each in step.errors if each.error not in NOT_BROKEN]
        if errors and all(packet.step != name for packet in waiting):
            yield f"  ! {name} broke {often(len(errors))}: {shown(errors[-1], 160)}"
        if step.waits is not None:
            yield f"  {name} waits until {clock_time(step.waits.until)} for its provider: {shown(step.waits.message)}"
    for packet in waiting:
        yield f"  {packet.id} about {packet.loop or packet.step or 'the run'}: {shown(packet.reason)}"
        if questions and (packet.loop or packet.reason == ASKED):
            yield f"     {shown(packet.sentence, 200)}"
        if answers:
            yield decide_command(packet.id, packet.words, report.run, width)
    if report.paused and not waiting and report.outcome == "waiting":
        yield f"  paused: nothing starts until you type backedge resume {report.run}"
    elif waiting and answers:
        yield f"  then: backedge resume {report.run}"
    elif changes and report.outcome not in OPEN:
        yield f"  next: {next or f'backedge show {report.run}'}"


def decide_command(escalation: str, words: Iterable[str], run: str, width: int = UNLIMITED) -> str:
    """What to type to answer a question. If the choices do not fit, the command without them, which asks for one: a
    command that is cut or wrapped cannot be copied."""
    whole = f"     backedge decide {escalation} {'|'.join(words)} --run {run}"
    return whole if len(whole) <= width else f"     backedge decide {escalation} --run {run}"


def summary_lines(report: Report, events: Sequence[Event], project: Project) -> Iterator[str]:
    """The lines below the first one of a summary."""
    if report.reason and report.outcome in ("failed", "cancelled"):
        yield f"  why: {shown(report.reason, 200)}"
    if report.findings:
        yield f"  findings: {counted_findings(report)}"
    left = [each for each in report.findings if each.status in ("accepted", "deferred")]
    for each in left[:MOST_LEFT]:
        yield f"     {each.id} [{each.severity}] {each.status}: {shown(each.description)}"
    if len(left) > MOST_LEFT:
        yield f"     … and {len(left) - MOST_LEFT} more: backedge show {report.run}"
    for name, why in skipped_steps(events).items():
        if report.everybody[name].state in SKIPPED:
            yield f"  skipped: {name} ({shown(why)})"
    changed = changed_files(events, project, report.run)
    if changed:
        named = [f"{shown(name, 60)}{_lines(each)}" for name, each in changed.items()]
        more = f", … and {len(named) - MOST_FILES} more" if len(named) > MOST_FILES else ""
        total = f"{counted(len(named), 'file')}{_sum_of(list(changed.values()))}: " if len(named) > 1 else ""
        yield f"  changed: {total}{', '.join(named[:MOST_FILES])}{more}"
    denied = list(dict.fromkeys(_denied(events)))
    yield from (f"  ! {each}" for each in denied[:MOST_DENIED])
    if len(denied) > MOST_DENIED:
        yield f"  ! … and {len(denied) - MOST_DENIED} more denied tools: backedge logs {report.run}"


def skipped_steps(events: Iterable[Event]) -> dict[str, str]:
    """Why each step that was ever skipped was skipped last."""
    found: dict[str, str] = {}
    for event in events:
        match event:
            case e.ConditionEvaluated(met=False):
                found[event.step] = f"{event.reason} is false"
            case e.StepSkipped():
                found[event.step] = event.reason
            case _:
                pass
    return found


def next_words(project: Project, report: Report) -> str:
    """What to do with the work of a run that has ended in a worktree; empty if it has none."""
    if not has_worktree(project, report.run):
        return ""
    if report.outcome in MERGED:
        return f"backedge merge {report.run} (or discard; `backedge show {report.run} --diff` shows the work)"
    return f"backedge discard {report.run} (`backedge show {report.run} --diff` shows the work)"


def counted_findings(report: Report) -> str:
    """How many findings there were, and what became of them: "3 found, 2 fixed, 1 open"."""
    counts = Counter("open" if each.status in UNSETTLED else each.status for each in report.findings)
    order = ["fixed", *sorted(word for word in counts if word not in ("fixed", "open")), "open"]
    words = [f"{counts[word]} {word.replace('_', ' ')}" for word in order if counts[word]]
    return ", ".join([f"{len(report.findings)} found", *words])


def _denied(events: Iterable[Event]) -> Iterator[str]:
    """The tools that agent CLIs were denied, each with the attempt."""
    for event in events:
        if isinstance(event, e.EvidenceRecorded):
            yield from (
                f"{event.step}-{event.attempt}: {shown(note, 160)}"
                for note in event.evidence.notes
                if note.startswith(DENIED)
            )


def _lines(changed: tuple[int, int] | None) -> str:
    return f" +{changed[0]} −{changed[1]}" if changed is not None else ""


def _sum_of(changes: Sequence[tuple[int, int] | None]) -> str:
    """How many lines were added and removed in all files, as far as they were counted."""
    known = [each for each in changes if each is not None]
    if not known:
        return ""
    added, removed = (sum(each[side] for each in known) for side in (0, 1))
    return f", +{added} −{removed}" + (f" in {len(known)} of them" if len(known) < len(changes) else "")
