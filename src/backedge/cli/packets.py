"""The decision packet of an escalation as text: the reason, the numbers, the history, and what each option does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backedge.analytics.report import EscalationReport, escalation_report
from backedge.cli.common import shown
from backedge.core.briefing import BriefedChange, BriefedFinding, Request
from backedge.core.errors import JournalError
from backedge.core.escalation.answering import VERDICTS
from backedge.core.escalation.options import PacketOption
from backedge.core.escalation.packet import Material, Packet, PacketRound, packet
from backedge.core.state.run import RunState
from backedge.core.text import clean
from backedge.core.value import Json, replace
from backedge.engine.store import States
from backedge.ports import Journal
from backedge.project import Project

if TYPE_CHECKING:
    from backedge.cli.protected_diff import ProtectedDiff

MOST_FINDINGS = 5
"""How many findings of one round to list."""
MOST_LINES = 12
"""How many lines of one artifact to show."""
BEGINNING = 2000
"""How many characters to show of an artifact that is too large for an event."""
MOST_DIFF_LINES = 40
"""How many lines of the difference of one file to show."""
INDENT = "      "


@dataclass(frozen=True)
class Open:
    """One open escalation: its report, and its whole packet."""

    run: str
    workflow: str
    known: EscalationReport
    told: Packet
    diffs: Mapping[str, ProtectedDiff] = field(default_factory=dict)
    """How the files that it asks about differ from the start of the run, by the ids of the changes."""


async def open_packets(journal: Journal, project: Project) -> list[Open]:
    """Every open escalation of all runs, oldest run first."""
    found, states = [], States(journal)
    for run in dict.fromkeys(each.run for each in await journal.open_escalations()):
        state = await states.of(run)
        for each in state.escalations.values():
            told = await told_packet(journal, state, each.id)
            diffs = diffs_of(project, state, told)
            found.append(Open(run, state.workflow.name, escalation_report(state, each), told, diffs))
    return found


def diffs_of(project: Project, state: RunState, told: Packet) -> dict[str, ProtectedDiff]:
    """The differences of the files that a packet asks about."""
    if not told.changes:
        return {}
    from backedge.cli.protected_diff import RunDiffs

    asked = {each.id for each in told.changes}
    return RunDiffs(project, state.run).all_of(each for each in state.protected.values() if each.name in asked)


async def told_packet(journal: Journal, state: RunState, escalation: str) -> Packet:
    """A packet with the beginnings of its large artifacts, which are not part of the events."""
    told = packet(state, escalation)
    return replace(told, inputs=tuple([await _begun(journal, each) for each in told.inputs]))


async def _begun(journal: Journal, material: Material) -> Material:
    if material.payload is None:
        return material
    try:
        text = (await journal.payload(material.payload)).decode()
    except JournalError as error:
        return replace(material, output=f"({error})")
    return replace(material, output=f"{_text(json.loads(text))[:BEGINNING]}…")


def whole_of(told: Packet, material: Material) -> str:
    """The command that prints all of an artifact."""
    return f"backedge context get agent_contexts.{material.step}.output --run {told.run}"


def packet_lines(told: Packet, diffs: Mapping[str, ProtectedDiff] | None = None) -> Iterator[str]:
    """The lines of a packet, without its id and its reason."""
    for changed in told.changes:
        yield from _change_lines(told, changed, (diffs or {}).get(changed.id))
    if told.loop is not None:
        word = " and blocks the run" if told.blocking else ""
        grade = f", {told.severity}{word}" if told.severity else ""
        yield f"{told.loop} {told.kind}: {shown(told.source, 40)} → {shown(', '.join(told.targets), 60)}{grade}"
    if told.message:
        yield f"  “{shown(told.message, 200)}”"
    if told.last_error:
        yield f"  last error: {shown(told.last_error, 200)}"
    if told.advice:
        yield f"  earlier advice: {shown(told.advice, 200)}"
    for request in told.requests:
        yield from _request_lines(request)
    yield from _issue_lines(told.findings)
    for material in told.inputs:
        yield from _material_lines(told, material)
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


def _change_lines(told: Packet, changed: BriefedChange, diff: ProtectedDiff | None) -> Iterator[str]:
    """One changed protected file: why it is in question, the tests, and the difference."""
    by = f" by {shown(changed.step, 40)}" if changed.step else ""
    lines = f" ({shown(changed.lines, 100)})" if changed.lines else ""
    yield f"{changed.id} {shown(changed.file, 100)} {changed.change}{by}{lines}"
    if changed.question:
        yield f"  {shown(changed.question, 300)}"
    if len(changed.tests) > 1:
        yield f"  tests: {shown(', '.join(changed.tests), 300)}"
    if diff is None:
        return
    if diff.note:
        yield f"  ({diff.note})"
    yield from (f"  | {line}" for line in diff.lines[:MOST_DIFF_LINES])
    if len(diff.lines) > MOST_DIFF_LINES:
        yield f"  … and {len(diff.lines) - MOST_DIFF_LINES} more lines: backedge show {told.run} --diff"


def _round_lines(turn: PacketRound, known: str) -> Iterator[str]:
    state = "" if turn.state == "done" else f" ({turn.state})"
    said = f": {shown(turn.message, 100)}" if turn.message not in ("", known) and not turn.findings else ""
    yield f"round {turn.number}{state} → {shown(', '.join(turn.targets), 60)}{said}"
    yield from _issue_lines(turn.findings)


def _issue_lines(findings: Sequence[BriefedFinding]) -> Iterator[str]:
    for finding in findings[:MOST_FINDINGS]:
        place = f" {shown(finding.location, 60)}" if finding.location else ""
        yield f"  {finding.id} [{finding.severity}] {finding.status}{place}: {shown(finding.description, 100)}"
        if finding.note:
            yield f"    {shown(finding.found_by, 40)} says: {shown(finding.note, 200)}"
        if finding.claim:
            yield f"    its author says: {shown(finding.claim, 100)}"
    if len(findings) > MOST_FINDINGS:
        yield f"  … and {len(findings) - MOST_FINDINGS} more"


def _request_lines(request: Request) -> Iterator[str]:
    yield f"  {request.loop} {request.kind} from {shown(request.source, 40)}: {shown(request.message, 200)}"
    for label, text in (("suggested fix", request.suggested_fix), ("requested", request.requested_info)):
        if text:
            yield f"    {label}: {shown(text, 200)}"


def _material_lines(told: Packet, material: Material) -> Iterator[str]:
    """The beginning of an artifact, and the command that prints all of it."""
    summary = f": {shown(material.summary, 100)}" if material.summary else ""
    yield f"{shown(material.step, 40)}, version {material.version}{summary}"
    if material.output is None:
        return
    lines = clean(_text(material.output)).expandtabs().splitlines()
    cut = material.payload is not None or len(lines) > MOST_LINES or any(len(line) > 200 for line in lines)
    for line in lines[:MOST_LINES]:
        yield f"  | {line if len(line) <= 200 else line[:199] + '…'}"
    if cut:
        yield f"  all of it: {whole_of(told, material)}"


def _text(output: Json) -> str:
    return output if isinstance(output, str) else json.dumps(output, indent=1, ensure_ascii=False)


def _choice_lines(choice: PacketOption) -> Iterator[str]:
    words = f' --option "{shown(choice.option, 60)}"' if choice.option else _needed(choice.needs)
    yield f"  {choice.choice}{words}: {shown(choice.next, 200)}"
    parts = [("effort", choice.effort), ("impact", choice.impact)]
    told = "; ".join(f"{name}: {shown(part, 120)}" for name, part in parts if part)
    if told:
        yield f"    {told}"


def _needed(needs: Sequence[str]) -> str:
    if needs == ("option",):
        return f" --option {'|'.join(VERDICTS)}"
    # If free text is allowed, the options are listed on lines of their own.
    return f" --{needs[-1]} …" if needs else ""
