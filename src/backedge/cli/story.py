"""What `show` prints below the timeline: steps, each loop round by round, decisions, and what was accepted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from backedge.analytics.report import FindingReport, LoopReport, Report
from backedge.cli.common import counted, earlier, shown
from backedge.cli.evidence import BEFORE, evidence_lines
from backedge.core import events as e
from backedge.core.events import Event
from backedge.core.feedback.loop import BY_OPTION
from backedge.core.wording import tests_text


def story(report: Report, events: Sequence[Event], most: int | None = None) -> Iterator[str]:
    """The lines below the timeline, with at most the last `most` findings and lines of each loop."""
    widest = max(map(len, report.everybody), default=0)
    for name, step in report.everybody.items():
        verdict = f", {step.verdict}" if step.verdict else ""
        verdict += f" ({tests_text(step.tests)})" if step.tests is not None else ""
        noun = "attempt" if name in report.steps else "measurement"
        yield f"  {name:{widest}}  {step.phase:10} {step.state:12} {counted(step.attempts, noun)}{verdict}"
    histories = Histories(events).lines()
    for loop in report.loops:
        yield ""
        yield from _loop(loop, report.findings, histories.get(loop.id, []), most)
    decisions = list(decided(events))
    if decisions:
        yield from ("", "decided", *(f"  {line}" for line in decisions))
    for status, title in (("accepted", "accepted as it is"), ("deferred", "left for later")):
        left = [finding for finding in report.findings if finding.status == status]
        if left:
            yield from ("", title, *(f"  {_finding(finding)}, found by {finding.found_by}" for finding in left))
    yield from evidence_lines(report)
    for refusal in report.refused:
        yield ""
        targets = shown(", ".join(refusal.targets), 60)
        yield f"refused: feedback from {shown(refusal.source, 40)} to {targets}: {shown(refusal.reason)}"


def _loop(
    loop: LoopReport, findings: Iterable[FindingReport], history: Sequence[str], most: int | None
) -> Iterator[str]:
    caused = f", caused by {loop.caused_by}" if loop.caused_by else ""
    follows = f", follows {loop.follows}" if loop.follows else ""
    yield (
        f"{shown(loop.id, 40)} {loop.kind}: {shown(loop.source, 40)} → {shown(', '.join(loop.targets))}, {loop.state} after "
        f"{counted(loop.rounds, 'round')}, routed by {loop.routed_by}{caused}{follows}"
    )
    if loop.message:
        yield f"  “{shown(loop.message)}”"
    own = set(loop.findings)
    found = [finding for finding in findings if finding.id in own]
    yield from earlier(found, most, "finding", "  ")
    for finding in found[-(most or len(found)) :]:
        gap = f" ({finding.gap})" if finding.gap else ""
        before = f" ({BEFORE})" if finding.failed_before else ""
        note = f" ({shown(finding.note, 200)})" if finding.note else ""
        yield f"  {_finding(finding)}{gap}{before}: {finding.status.replace('_', ' ')}{note}"
    yield from earlier(history, most, "line", "    ")
    yield from (f"    {line}" for line in history[-(most or len(history)) :])


def _finding(finding: FindingReport) -> str:
    line = f":{finding.line}" if finding.line is not None else ""
    place = f"{shown(finding.file, 60)}{line} " if finding.file else ""
    return f"{finding.id} [{finding.severity}] {place}{shown(finding.description)}"


class Round:
    """One round: the feedback that was delivered, what its targets did, and the verdict on that."""

    def __init__(self, number: int, routed: e.FeedbackRouted) -> None:
        self._number, self._shares = number, routed.shares
        self._done: dict[str, str] = {}
        self._verdict = ""

    def started(self, event: e.AttemptStarted) -> None:
        self._done[event.step] = f"attempt {event.attempt}"

    def ended(self, step: str, attempt: int, words: str) -> None:
        if step in self._done:
            self._done[step] = f"attempt {attempt}{f', {words}' if words else ''}"

    def judged(self, event: e.VerdictGiven) -> None:
        """Only the first verdict after the fix is about this round."""
        if self._verdict:
            return
        seen = [f"{_names([each.id])} {each.status.replace('_', ' ')}" for each in event.findings]
        settled = [f"{_names([id])} {status.replace('_', ' ')}" for id, status in event.settled]
        self._verdict = f"{event.judge}: {event.word}{_listed([*seen, *settled])}"

    def lines(self) -> Iterator[str]:
        label = f"round {self._number}  "
        for target, findings in self._shares.items():
            given = f"{_names(findings)} → " if findings else "→ "
            yield f"{label}{given}{target}: {self._done.get(target, 'not yet')}"
            label = " " * len(label)
        if self._verdict:
            yield f"{label}{self._verdict}"


class Histories:
    """What happened to each loop, in order: rounds, escalations, decisions, the end."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._entries: dict[str, list[Round | str]] = {}
        self._judges: dict[str, set[str]] = {}
        """The open loops of each source."""
        self._routed: dict[str, e.FeedbackRouted] = {}
        """Feedback that is not delivered yet; a round begins when a target gets it."""
        self._under_way: dict[str, Round] = {}
        self._rounds: dict[str, int] = {}
        self._attempts: dict[tuple[str, int], list[Round]] = {}
        self._asked: dict[str, str] = {}
        for event in events:
            self._add(event)

    def lines(self) -> dict[str, list[str]]:
        return {
            loop: [line for entry in entries for line in (entry.lines() if isinstance(entry, Round) else [entry])]
            for loop, entries in self._entries.items()
        }

    def _add(self, event: Event) -> None:
        match event:
            case e.LoopOpened():
                self._entries[event.loop] = []
                self._judges.setdefault(event.source, set()).add(event.loop)
            case e.FeedbackRouted():
                self._routed[event.loop] = event
            case e.AttemptStarted():
                self._started(event)
            case e.AttemptSucceeded():
                self._ended(event.step, event.attempt, shown(event.summary, 80))
            case e.AttemptFailed():
                self._ended(event.step, event.attempt, f"broke: {shown(event.error, 80)}")
            case e.AttemptDropped():
                self._ended(event.step, event.attempt, event.reason)
            case e.VerdictGiven():
                for loop in self._judges.get(event.judge, ()):
                    if loop in self._under_way:
                        self._under_way[loop].judged(event)
            case e.FeedbackAcknowledged():
                self._say(event.loop, f"{event.target} acknowledges: {shown(event.message or event.action, 80)}")
            case e.AnswerGiven():
                self._say(event.loop, f"{event.target} answers: {shown(_text(event.answer), 80)}")
            case e.PositionTaken():
                why = f": {shown(event.reason, 80)}" if event.reason else ""
                self._say(event.loop, f"{event.target} is for “{shown(event.option, 60)}”{why}")
            case e.ChoiceMade():
                why = f": {shown(event.reason, 80)}" if event.reason else ""
                self._say(event.loop, f"chosen by {shown(event.by, 60)}: “{shown(event.option, 60)}”{why}")
            case e.EscalationOpened(loop=str(loop)):
                self._asked[event.escalation] = loop
                self._say(loop, f"{event.escalation} asked: {shown(event.reason)}")
            case e.EscalationDecided():
                if event.escalation in self._asked:
                    self._say(self._asked[event.escalation], f"{event.escalation} decided: {_choice(event)}")
            case e.LoopClosed():
                self._closed(event)
            case _:
                pass

    def _started(self, event: e.AttemptStarted) -> None:
        for loop in event.loops:
            routed = self._routed.pop(loop, None)
            if routed is not None:
                # The rework that a chosen option asks for belongs to the round of the choice.
                turn = BY_OPTION not in routed.rules or loop not in self._rounds
                number = self._rounds[loop] = self._rounds.get(loop, 0) + turn
                self._under_way[loop] = Round(number, routed)
                self._entries[loop].append(self._under_way[loop])
            if loop in self._under_way:
                self._under_way[loop].started(event)
                self._attempts.setdefault((event.step, event.attempt), []).append(self._under_way[loop])

    def _ended(self, step: str, attempt: int, words: str) -> None:
        for each in self._attempts.pop((step, attempt), ()):
            each.ended(step, attempt, words)

    def _closed(self, event: e.LoopClosed) -> None:
        for loops in self._judges.values():
            loops.discard(event.loop)
        resolution = event.resolution
        option = f"“{resolution.option}”" if resolution.option else ""
        words = ": ".join(part for part in (option, resolution.text) if part)
        by = f" by {shown(resolution.by, 40)}" if resolution.by else ""
        self._say(event.loop, f"{event.state}{by}{f': {shown(words, 80)}' if words else ''}")

    def _say(self, loop: str, words: str) -> None:
        self._entries.setdefault(loop, []).append(words)


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


def _names(findings: Iterable[int]) -> str:
    return ", ".join(f"F-{id}" for id in findings)


def _listed(words: Sequence[str]) -> str:
    return f" ({', '.join(words[:6])}{', …' if len(words) > 6 else ''})" if words else ""


def _text(answer: object) -> str:
    return answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
