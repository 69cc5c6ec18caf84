"""What `show` prints below the timeline: steps, each loop round by round, decisions, and what was accepted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from backedge.analytics.inbox import InboxItem
from backedge.analytics.report import FindingReport, ListedLoop, LoopReport, RefusalReport, Report
from backedge.analytics.rounds import Histories, LoopHistory, Round, RoundReport, VerdictReport
from backedge.cli.common import earlier, shown
from backedge.cli.evidence import evidence_lines
from backedge.cli.packet_text import acknowledged, last_change_lines, material_lines, option_text
from backedge.cli.page import Page
from backedge.core import events as e
from backedge.core.events import Event
from backedge.core.feedback.undoable import words_of
from backedge.core.model import HUMAN, Resolution
from backedge.core.state.run import ASKED
from backedge.core.text import counted, duration, finding_ids
from backedge.core.wording import tests_text
from backedge.reading.evidence_words import BEFORE


def story(
    report: Report,
    events: Sequence[Event],
    histories: Histories,
    items: Sequence[InboxItem],
    page: Page,
    most: int | None = None,
) -> Iterator[str]:
    """The lines below the timeline, with at most the last `most` findings and lines of each loop."""
    widest = max(map(len, report.everybody), default=0)
    for name, step in report.everybody.items():
        verdict = f", {step.verdict}" if step.verdict else ""
        verdict += f" ({tests_text(step.tests)})" if step.tests is not None else ""
        noun = "attempt" if name in report.steps else "measurement"
        line = f"{name:{widest}}  {step.phase:10} {step.state:12} {counted(step.attempts, noun)}{verdict}"
        yield from page.own_line(line, 2)
        if step.summary and step.tests is None:
            yield from page.text("says" if step.verdict else "did", step.summary, 4, 4)
        if step.last_error:
            yield from page.text("last error", step.last_error, 4)
    for loop in report.loops:
        yield ""
        yield from _loop(loop, report.findings, histories.get(loop.id, LoopHistory()), page, most)
    yield from _without_loop(report, page)
    yield from _imported_rounds(report, page)
    yield from _open_questions(items, page)
    decisions = [*decided(events), *(shown(each) for each in report.decisions)]
    if decisions:
        yield from ("", "decided", *(line for each in decisions for line in page.own_line(each, 2)))
    for status, title in (("accepted", "accepted as it is"), ("deferred", "left for later")):
        left = [finding for finding in report.findings if finding.status == status]
        if left:
            yield from ("", title)
            for finding in left:
                yield from page.own_line(f"{_finding(finding, page)}, found by {finding.found_by}", 2)
    yield from evidence_lines(report)
    for refusal in report.refused:
        yield ""
        yield from refusal_lines(refusal, page)


def refusal_lines(refusal: RefusalReport, page: Page) -> Iterator[str]:
    """Feedback that was not delivered: why, and everything that it said."""
    targets = shown(", ".join(refusal.targets), 60)
    kind = f" ({refusal.kind}, {refusal.severity})" if refusal.kind else ""
    yield from page.own_line(
        f"refused: feedback from {shown(refusal.source, 40)} to {targets}{kind}: {page.cut(refusal.reason, 300)}"
    )
    if refusal.message:
        yield from page.text("it said", refusal.message, 2)
    yield from request_lines(refusal, page, 2)


def _without_loop(report: Report, page: Page) -> Iterator[str]:
    """The findings of an imported defect log, which has no loops."""
    alone = [finding for finding in report.findings if finding.loop is None] if report.outcome == "imported" else []
    if alone:
        yield from ("", "findings")
    for finding in alone:
        yield from _finding_lines(finding, page)
        phases = ", ".join(finding.affected_phase)
        yield from page.own_line(f"injected in {shown(phases, 60)}, found by {shown(finding.found_by, 60)}", 4)


def _imported_rounds(report: Report, page: Page) -> Iterator[str]:
    """The iterations of an imported tight loop: what was done, and what its judges said."""
    if report.iterations:
        yield from ("", "iterations")
    for each in report.iterations:
        yield from page.own_line(f"{each.number}: {page.cut(each.implementation, 300) or 'nothing is said of it'}", 2)
        for judge, result, issues in (
            ("review", each.review_result, each.review_issues),
            ("test", each.test_result, each.test_failures),
        ):
            if result is not None:
                said = f": {page.cut('; '.join(issues), 300)}" if issues else ""
                yield from page.own_line(f"{judge} {result}{said}", 5)


def _open_questions(items: Sequence[InboxItem], page: Page) -> Iterator[str]:
    """What waits for a decision, and what it is about."""
    if items:
        yield from ("", "open")
    for item in items:
        overdue = " (overdue)" if item.overdue else ""
        roles = f" for {page.cut(' or '.join(item.for_roles), 60)}" if item.for_roles else ""
        yield from page.own_line(f"{item.id}{roles}{overdue}: {item.sentence}", 2)
        yield from material_lines(item, page)


def _loop(
    loop: LoopReport, findings: Iterable[FindingReport], history: LoopHistory, page: Page, most: int | None
) -> Iterator[str]:
    caused = f", caused by {loop.caused_by}" if loop.caused_by else ""
    follows = f", follows {loop.follows}" if loop.follows else ""
    yield from page.own_line(
        f"{shown(loop.id, 40)} {loop.kind}: {shown(loop.source, 40)} → {shown(', '.join(loop.targets))}, {loop.state} after "
        f"{counted(loop.rounds, 'round')}, routed by {loop.routed_by}{caused}{follows}"
    )
    yield from asked_lines(loop, page, 2)
    own = set(loop.findings)
    found = [finding for finding in findings if finding.id in own]
    yield from earlier(found, most, "finding", "  ")
    for finding in found[-(most or len(found)) :]:
        yield from _finding_lines(finding, page)
    lines = list(history_lines(history, loop.message, page))
    if not lines and loop.resolution is not None:  # an imported loop has no events of its own
        lines = list(page.own_line(_closed(loop.state, loop.resolution, page), 4))
    yield from earlier(lines, most, "line", "    ")
    yield from lines[-(most or len(lines)) :]


def loop_lines(loop: ListedLoop, report: Report, page: Page) -> Iterator[str]:
    """A loop in a list: who asks whom, everything that was asked and done in every round, the words of its judge, what
    was changed last, what people decided, and how it ended."""
    rounds = f", {counted(loop.rounds, 'round')}" if loop.rounds else ""
    ways = f"{shown(loop.source, 40)} → {shown(', '.join(loop.targets))}"
    grade = f", {loop.severity}{' and blocking' if loop.blocking else ''}" if loop.severity else ""
    yield from page.own_line(f"{shown(loop.id, 40)}  {loop.state:16}  {loop.kind}: {ways}{grade}{rounds}")
    yield from asked_lines(loop, page, 4)
    for finding in loop.findings_in_full:
        yield from _finding_lines(finding, page, 4)
    for turn in loop.history:
        if turn.message and turn.message != loop.message:
            yield from page.own_line(f"asked in round {turn.number}:", 4)
            yield from asked_lines(turn, page, 6)
        yield from work_lines(turn, page, 4)
        for taken in loop.positions:
            if taken.round == turn.number:
                why = f": {page.cut(taken.reason, 200)}" if taken.reason else ""
                yield from page.own_line(f"{shown(taken.who, 40)} is for “{shown(taken.option, 60)}”{why}", 4 + _LABEL)
    for said in loop.verdicts:
        if said.summary:
            says = "says" if said is loop.verdicts[-1] else f"said in attempt {said.attempt}"
            yield from page.text(f"{shown(said.judge, 40)} {says}", said.summary, 4, 4)
    yield from last_change_lines(loop.changes, loop.history, report.run, page, indent=4)
    if loop.breach is not None:
        yield from page.own_line(f"limit {loop.breach}", 4)
    for asked in report.escalations:
        if asked.loop == loop.id and asked.decided is None:
            yield from page.own_line(f"open: backedge decide {asked.id} --run {report.run}", 4)
        elif asked.loop == loop.id and asked.decided != "resolve":
            note = f": {page.cut(asked.note, 200)}" if asked.note and asked.note != loop.advice else ""
            yield from page.own_line(f"{asked.id} decided: {asked.decided}{_by(asked.by)}{note}", 4)
    if loop.advice and (loop.resolution is None or loop.advice != loop.resolution.text):
        yield from page.text("advice", loop.advice, 4)
    if loop.resolution is not None:
        end = loop.resolution
        answers = [f"{who}: {_text(answer)}" for who, answer in end.answers.items()]
        words = "; ".join(part for part in (end.option or "", end.text, *answers) if part)
        by = f" by {shown(end.by, 40)}" if end.by else ""
        yield from page.line(f"{end.state}{by}{f': {words}' if words else ''}", 4)


def _finding_lines(finding: FindingReport, page: Page, indent: int = 2) -> Iterator[str]:
    """A finding with its status; what its judge said about it, unless it is settled."""
    gap = f" ({finding.gap})" if finding.gap else ""
    before = f" ({BEFORE})" if finding.failed_before else ""
    note = f" ({page.cut(finding.note, 200)})" if finding.note else ""
    status = finding.status.replace("_", " ")
    yield from page.own_line(f"{_finding(finding, page)}{gap}{before}: {status}{note}", indent)
    parts = (
        ("path", finding.path if finding.file and finding.path else ""),
        (f"severity in the words of {shown(finding.found_by, 40)}", finding.word),
        ("category", finding.category),
        ("test", finding.test if finding.test not in finding.description else ""),
        ("caused in", ", ".join(finding.affected_phase)),
        ("evidence", finding.evidence),
        ("impact", finding.impact),
        ("requirement", finding.requirement_id or ""),
        ("suggested fix", finding.suggested_fix or ""),
        ("its author says", finding.claim),
    )
    settled = finding.status in SETTLED and not page.whole
    for label, text in parts:
        if text and settled:
            yield from page.line(f"{label}: {text}", indent + 2, ONE_LINE)
        elif text:
            yield from page.text(label, text, indent + 2)


SETTLED = ("fixed", "withdrawn", "duplicate", "rolled_back")
"""Findings that are over: each of their details has one line."""
ONE_LINE = 200


def asked_lines(asked: LoopReport | RoundReport, page: Page, indent: int) -> Iterator[str]:
    """Everything that feedback asked."""
    if asked.message:
        if "\n" in asked.message.strip() or len(asked.message) > 400:
            yield from page.text("message", asked.message, indent)
        else:
            yield from page.own_line(f"“{page.cut(asked.message, 400)}”", indent)
    yield from request_lines(asked, page, indent)


def request_lines(asked: LoopReport | RoundReport | RefusalReport, page: Page, indent: int) -> Iterator[str]:
    """What feedback asked beside its message."""
    for label, text in (("requested", asked.requested_info), ("suggested fix", asked.suggested_fix)):
        if text:
            yield from page.text(label, text, indent)
    if asked.requirement_id:
        yield from page.line(f"requirement: {asked.requirement_id}", indent)
    if asked.artifacts:
        yield from page.line(f"artifacts: {', '.join(asked.artifacts)}", indent)
    if asked.details is not None:
        yield from page.value("details", asked.details, indent)
    for option in asked.options:
        yield from page.own_line(f"option: {option_text(option, page)}", indent)


def _finding(finding: FindingReport, page: Page) -> str:
    line = f":{finding.line}" if finding.line is not None else ""
    where = f"{page.cut(finding.file, 100)}{line} " if finding.file else ""
    where = where or (f"{page.cut(finding.path, 100)} " if finding.path else "")
    blocking = ", blocking" if finding.blocking else ""
    return f"{finding.id} [{finding.severity}{blocking}] {where}{page.cut(finding.description, 300)}"


def history_lines(history: LoopHistory, message: str, page: Page, indent: int = 4) -> Iterator[str]:
    """What happened to a loop, in order: verdicts, rounds, questions, decisions, the end. `message` is the newest message,
    which is not repeated."""
    for entry in history.entries:
        if isinstance(entry, Round):
            yield from _round_lines(entry, entry is not history.current or history.closed, message, page, indent)
        elif isinstance(entry, VerdictReport):
            yield from page.own_line(f"{entry.judge}: {entry.word}{_statuses(entry)}", indent + _LABEL)
            if entry.summary:
                yield from page.text(f"{shown(entry.judge, 40)} says", entry.summary, indent + _LABEL + 2, 4)
        else:
            words = _event_words(entry, page)
            if words:
                yield from page.own_line(words, indent)


_LABEL = len("round 1  ")


def _round_lines(turn: Round, over: bool, message: str, page: Page, indent: int) -> Iterator[str]:
    told = turn.report(over)
    yield from work_lines(told, page, indent)
    if told.message and told.message != message:
        yield from asked_lines(told, page, indent + _LABEL)
    given = {id for ids in told.shares.values() for id in ids}
    for work in told.work:
        for claim in work.claims:
            if claim.finding not in given:  # an attempt can address several loops
                continue
            note = f": {page.cut(claim.note, 200)}" if claim.note else ""
            yield from page.own_line(f"{work.step} says {claim.finding} is {claim.status}{note}", indent + _LABEL)


def work_lines(told: RoundReport, page: Page, indent: int) -> Iterator[str]:
    """What each target of a round got, and what it did."""
    state = f" ({told.state})" if told.state in ("next", "dropped") else ""
    label = f"round {told.number}{state}  "
    done: dict[str, list[str]] = {}
    for work in told.work:
        words = work.error or work.summary
        done.setdefault(work.step, []).append(f"attempt {work.attempt}{f', {page.cut(words, 200)}' if words else ''}")
    for target, ids in told.shares.items():
        given = f"{finding_ids(int(id[2:]) for id in ids)} → " if ids else "→ "
        by = f" (by {', '.join(told.routed_by)})" if len(told.routed_by) > 1 and label.strip() else ""
        otherwise = "answered" if target == HUMAN else "no attempt"
        otherwise = {"done": otherwise, "dropped": "the loop was closed before"}.get(told.state, "not yet")
        yield from page.own_line(f"{label}{given}{target}{by}: {'; '.join(done.get(target, [otherwise]))}", indent)
        label = " " * len(label)


def _statuses(verdict: VerdictReport) -> str:
    """The findings of a verdict, by what it says about them."""
    by_status: dict[str, list[int]] = {}
    for id, status in verdict.findings.items():
        word = "new" if status == "open" else status.replace("_", " ")
        by_status.setdefault(word, []).append(int(id[2:]))
    words = [f"{finding_ids(ids)} {status}" for status, ids in by_status.items()]
    return f" ({', '.join(words)})" if words else ""


def _event_words(event: Event, page: Page) -> str:
    match event:
        case e.FeedbackAcknowledged():
            return acknowledged(event.target, event.message, event.action, event.eta, page)
        case e.AnswerGiven():
            return f"{event.target} answers: {page.cut(_text(event.answer), 300)}"
        case e.PositionTaken():
            why = f": {page.cut(event.reason, 200)}" if event.reason else ""
            return f"{event.target} is for “{shown(event.option, 60)}”{why}"
        case e.TargetSkipped():
            return f"{event.target} is skipped: {page.cut(event.reason, 200)}"
        case e.ChoiceMade():
            why = f": {page.cut(event.reason, 200)}" if event.reason else ""
            return f"chosen by {shown(event.by, 60)}: “{shown(event.option, 60)}”{why}"
        case e.RolledBack():
            return f"rolled back {page.cut(words_of(event), 200)}"
        case e.LoopOverdue():
            return f"overdue: limit {event.breach}"
        case e.EscalationOpened():
            asks = "asks a person" if event.reason == ASKED else f"asked: {page.cut(event.reason, 200)}"
            roles = f" (for {page.cut(' or '.join(event.for_roles), 60)})" if event.for_roles else ""
            return f"{event.escalation} {asks}{roles}"
        case e.EscalationReminded():
            return f"{event.escalation}: reminded after {duration(max(event.after))}"
        case e.EscalationExpired():
            return f"{event.escalation} was not answered in time{'' if event.choice else ', and stays open'}"
        case e.EscalationDecided():
            return f"{event.escalation} decided: {_choice(event)}"
        case e.LoopClosed():
            return _closed(event.state, event.resolution, page)
        case _:
            return ""


def _closed(state: str, resolution: Resolution, page: Page) -> str:
    option = f"“{resolution.option}”" if resolution.option else ""
    words = ": ".join(part for part in (option, resolution.text) if part)
    by = f" by {shown(resolution.by, 40)}" if resolution.by else ""
    return f"{state}{by}{f': {page.cut(words, 200)}' if words else ''}"


def decided(events: Iterable[Event]) -> Iterator[str]:
    """The decisions in order."""
    reasons: dict[str, str] = {}
    for event in events:
        match event:
            case e.EscalationOpened():
                about = event.loop or event.step or "the run"
                reasons[event.escalation] = f"about {about}, {shown(event.reason, 80)}"
            case e.EscalationDecided():
                yield f"{event.escalation} {reasons[event.escalation]}: {_choice(event)}"
            case e.FindingReclassified():
                yield f"F-{event.finding} was caused in {shown(event.phase, 40)}{_by(event.by)}"
            case e.RunPaused():
                yield f"paused{_by(event.by)}"
            case e.RunResumed():
                yield f"resumed{_by(event.by)}"
            case _:
                pass


def _choice(event: e.EscalationDecided) -> str:
    amount = f", {event.amount:g} more" if event.amount else ""
    rounds = f", {counted(event.rounds, 'more round')}" if event.rounds else ""
    chosen = [shown(each, 60) for each in (event.option, event.target, event.phase) if each]
    note = f": {shown(event.note)}" if event.note else ""
    return f"{' '.join([event.choice, *chosen])}{amount or rounds}{_by(event.by)}{note}"


def _by(who: str) -> str:
    return f", by {shown(who, 40)}" if who else ""


def _text(answer: object) -> str:
    return answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
