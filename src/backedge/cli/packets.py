"""The decision packet of an escalation in words: why, the numbers, what happened so far, and what each option does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backedge.analytics.report import EscalationReport, Report
from backedge.app import Engine
from backedge.cli.common import shown
from backedge.core.choices import Choice
from backedge.core.packet import Packet, Round, packet

OPEN = ("running", "waiting")
MOST_FINDINGS = 5
"""Findings of one round that are listed."""
INDENT = "      "


async def open_packets(engine: Engine) -> list[tuple[Report, EscalationReport, Packet]]:
    """Every open escalation with its run, oldest run first: as reports have it, and all that is known of it."""
    found: list[tuple[Report, EscalationReport, Packet]] = []
    for head in reversed(await engine.runs()):
        if head.outcome in OPEN:
            run = await engine.find(head.run)
            state, report = await run.state(), await run.report()
            found += [(report, each, packet(state, each.id)) for each in report.escalations if each.decided is None]
    return found


def packet_lines(told: Packet) -> Iterator[str]:
    """All of a packet but its id and its reason, a line each."""
    if told.loop is not None:
        word = " and blocks the run" if told.blocking else ""
        grade = f", {told.severity}{word}" if told.severity else ""
        yield f"{told.loop} {told.kind}: {shown(told.source, 40)} → {shown(', '.join(told.targets), 60)}{grade}"
    if told.message:
        yield f"  “{shown(told.message, 200)}”"
    if told.last_error:
        yield f"  it broke with: {shown(told.last_error, 200)}"
    if told.advice:
        yield f"  told before: {shown(told.advice, 200)}"
    counted = [f"{each.limit} {each.count:g}/{each.bound:g}" for each in told.numbers if each.count]
    if counted:
        yield f"numbers: {', '.join(counted)}"
    for said in told.positions:
        why = f": {shown(said.reason, 100)}" if said.reason else ""
        yield f"round {said.round}: {shown(said.who, 40)} is for “{shown(said.option, 60)}”{why}"
    for each in told.history:
        yield from _round_lines(each, told.message)
    yield "options:"
    for choice in told.options:
        yield from _choice_lines(choice)


def _round_lines(turn: Round, known: str) -> Iterator[str]:
    state = "" if turn.state == "done" else f" ({turn.state})"
    said = f": {shown(turn.message, 100)}" if turn.message not in ("", known) and not turn.findings else ""
    yield f"round {turn.number}{state} → {shown(', '.join(turn.targets), 60)}{said}"
    for finding in turn.findings[:MOST_FINDINGS]:
        place = f" {shown(finding.place, 60)}" if finding.place else ""
        yield f"  {finding.id} [{finding.severity}] {finding.status}{place}: {shown(finding.description, 100)}"
    if len(turn.findings) > MOST_FINDINGS:
        yield f"  … and {len(turn.findings) - MOST_FINDINGS} more"


def _choice_lines(choice: Choice) -> Iterator[str]:
    words = f' --option "{shown(choice.option, 60)}"' if choice.option else _needed(choice.needs)
    yield f"  {choice.choice}{words}: {shown(choice.next, 200)}"
    parts = [("effort", choice.effort), ("impact", choice.impact)]
    told = "; ".join(f"{name}: {shown(part, 120)}" for name, part in parts if part)
    if told:
        yield f"    {told}"


def _needed(needs: Sequence[str]) -> str:
    # Where words will do, the options are listed on lines of their own.
    return f" --{needs[-1]} …" if needs else ""
