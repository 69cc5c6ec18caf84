"""The rounds of each loop, all of them and in full, folded from the events: what was asked, what the targets did, and
what the judge said about it in its own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from backedge.analytics.shape import Shape
from backedge.core import events as e
from backedge.core.feedback.loop import BY_OPTION
from backedge.core.model import HUMAN, Feedback, FindingResolution, Option
from backedge.core.value import Json

Rules = Mapping[str, tuple[int, ...]]
"""The findings that each rule routed."""


class WorkReport(Shape, frozen=True):
    """What one target of a round did."""

    step: str
    attempt: int
    summary: str = ""
    error: str = ""
    """Why the attempt did not count."""
    claims: tuple[FindingResolution, ...] = ()
    """What it says about each finding."""


class VerdictReport(Shape, frozen=True):
    """One verdict about a loop: the first one started it, each later one is about the last fix."""

    judge: str
    attempt: int
    """0 for a check of inputs."""
    word: str
    summary: str
    """The words of the judge itself."""
    findings: dict[str, str]
    """What it says about each finding: open (new), not_fixed, regressed, fixed, unconfirmed …"""


class RoundReport(Shape, frozen=True):
    """One round of a loop: what was asked, in the words of that round, and what was done."""

    number: int
    state: str
    """done, under way or next; dropped if the loop was closed before it began."""
    targets: tuple[str, ...]
    shares: dict[str, tuple[str, ...]]
    """The findings that each target got."""
    message: str = ""
    suggested_fix: str | None = None
    requested_info: str | None = None
    artifacts: tuple[str, ...] = ()
    requirement_id: str | None = None
    details: Json = None
    options: tuple[Option, ...] = ()
    work: tuple[WorkReport, ...] = ()
    answers: dict[str, Json] = {}
    routed_by: tuple[str, ...] = ()
    """The rules that chose the targets."""
    rolled_back: bool = False
    """Whether the version before it was restored, because it made things worse or a person decided so."""


class Round:
    """One round while the events are folded."""

    def __init__(
        self, number: int, shares: Mapping[str, tuple[int, ...]], rules: Rules, asked: Feedback | None
    ) -> None:
        self.number, self.shares, self.asked, self.rules = number, dict(shares), asked, rules
        self.delivered = self.rolled_back = False
        self.work: dict[tuple[str, int], WorkReport] = {}
        self.answers: dict[str, Json] = {}
        self._done: set[str] = set()

    def started(self, event: e.AttemptStarted) -> None:
        self.delivered = True
        self.work[event.step, event.attempt] = WorkReport(event.step, event.attempt)

    def ended(self, work: WorkReport) -> None:
        if (work.step, work.attempt) in self.work:
            self.work[work.step, work.attempt] = work
            if not work.error:
                self._done.add(work.step)

    def answered(self, target: str, answer: Json) -> None:
        self.delivered = True
        self.answers[target] = answer
        self._done.add(target)

    @property
    def state(self) -> str:
        if not self.delivered:
            return "next"
        return "done" if self._done.issuperset(self.shares) else "under way"

    def report(self, over: bool) -> RoundReport:
        """The round; `over` if a later one was asked for or the loop is closed."""
        asked = self.asked
        return RoundReport(
            self.number,
            ("done" if self.delivered else "dropped") if over else self.state,
            tuple(self.shares),
            {target: tuple(f"F-{id}" for id in ids) for target, ids in self.shares.items()},
            asked.message if asked else "",
            asked.suggested_fix if asked else None,
            asked.requested_info if asked else None,
            asked.artifacts if asked else (),
            asked.requirement_id if asked else None,
            asked.details if asked else None,
            asked.options if asked else (),
            tuple(self.work.values()),
            self.answers,
            tuple(self.rules),
            self.rolled_back,
        )


Entry = Round | VerdictReport | e.Event
"""Something that happened to a loop. Other events are acknowledgements, answers, positions, questions, decisions and
its end."""


class LoopHistory:
    """Everything that happened to one loop, in order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.asked: Feedback | None = None
        self.closed = False
        self._current: Round | None = None
        self._base = 0

    def route(self, event: e.FeedbackRouted) -> None:
        """The next round. What is routed again before it was delivered replaces what was routed before, and the rework
        that a chosen option asks for belongs to the round of the choice."""
        if event.feedback is not None:
            self.asked = event.feedback
        last = self._current
        if last is not None and (event.kept or BY_OPTION in event.rules):
            kept = {target: last.shares.get(target, ()) for target in event.kept}
            last.shares = {**(kept if event.kept else last.shares), **event.shares}
            return
        self._next(event.shares, event.rules)

    def _next(self, shares: Mapping[str, tuple[int, ...]], rules: Rules) -> None:
        last = self._current
        number = self._base + 1 if last is None else last.number + last.delivered
        if last is not None and not last.delivered:
            self.entries.remove(last)
        self._current = Round(number, shares, rules, self.asked)
        self.entries.append(self._current)

    def continue_from(self, before: LoopHistory) -> None:
        """Count on from the rounds of an earlier loop."""
        self._base = before.current.number if before.current is not None else 0

    def roll_back(self, event: e.RolledBack, shares: Mapping[str, tuple[int, ...]] | None) -> None:
        """The last round was rolled back; `shares` is what has to be fixed again, None if the loop is closed."""
        rounds = [entry for entry in self.entries if isinstance(entry, Round) and entry.delivered]
        for last in rounds[-1:]:
            last.rolled_back = True
        self.entries.append(event)
        if shares is not None:
            self._next(shares, self._current.rules if self._current is not None else {})

    def start(self, event: e.AttemptStarted) -> Round | None:
        """An attempt works on the current round. The round begins when it is delivered, perhaps after a decision."""
        found = self._current
        if found is not None:
            if not found.delivered:
                self.entries.remove(found)
                self.entries.append(found)
            found.started(event)
        return found

    @property
    def current(self) -> Round | None:
        return self._current

    @property
    def rounds(self) -> tuple[RoundReport, ...]:
        found = [entry for entry in self.entries if isinstance(entry, Round)]
        return tuple(each.report(self.closed or each is not self._current) for each in found)

    @property
    def verdicts(self) -> tuple[VerdictReport, ...]:
        return tuple(entry for entry in self.entries if isinstance(entry, VerdictReport))


def loop_histories(events: Iterable[e.Event]) -> dict[str, LoopHistory]:
    """What happened to each loop of a run, by its id."""
    fold = _Fold()
    for event in events:
        fold.add(event)
    return fold.found


class _Fold:
    def __init__(self) -> None:
        self.found: dict[str, LoopHistory] = {}
        self._judged: dict[str, VerdictReport] = {}
        """The last verdict of each judge."""
        self._by_judge: dict[str, str] = {}
        """The open loop that the verdicts of a judge are about."""
        self._said: dict[tuple[str, int], str] = {}
        """What judges said, by attempt."""
        self._asked: dict[str, str] = {}
        self._at_work: dict[tuple[str, int], list[Round]] = {}

    def add(self, event: e.Event) -> None:
        match event:
            case e.AttemptStarted():
                rounds = [started for id in event.loops if (started := self._history(id).start(event)) is not None]
                if rounds:
                    self._at_work[event.step, event.attempt] = rounds
            case e.AttemptSucceeded():
                self._said[event.step, event.attempt] = event.summary
                self._ended(WorkReport(event.step, event.attempt, event.summary, claims=event.claims))
            case e.AttemptFailed():
                self._ended(WorkReport(event.step, event.attempt, error=f"broke: {event.error}"))
            case e.AttemptLimited():
                self._ended(WorkReport(event.step, event.attempt, error=f"waits for its provider: {event.message}"))
            case e.AttemptDropped():
                self._ended(WorkReport(event.step, event.attempt, error=event.reason))
            case e.VerdictGiven():
                self._verdict(event)
            case e.LoopOpened():
                self._opened(event)
            case e.FeedbackRouted():
                self._history(event.loop).route(event)
            case e.RolledBack():
                for id in dict.fromkeys((event.loop, *event.shares)):
                    self._history(id).roll_back(event, event.shares.get(id))
            case e.AnswerGiven():
                found = self._round(event.loop)
                if found is not None:
                    found.answered(event.target, event.answer)
                self._note(event.loop, event)
            case e.FeedbackAcknowledged() | e.PositionTaken() | e.TargetSkipped() | e.ChoiceMade() | e.LoopOverdue():
                self._note(event.loop, event)
            case e.EscalationOpened(loop=str(loop)):
                self._asked[event.escalation] = loop
                current = self._round(loop)
                if current is not None and HUMAN in current.shares:
                    current.delivered = True
                self._note(loop, event)
            case e.EscalationReminded() | e.EscalationExpired() | e.EscalationDecided() if (
                event.escalation in self._asked
            ):
                self._note(self._asked[event.escalation], event)
            case e.LoopClosed():
                self._note(event.loop, event)
                self._history(event.loop).closed = True
                for judge in [judge for judge, loop in self._by_judge.items() if loop == event.loop]:
                    del self._by_judge[judge]
            case _:
                pass

    def _history(self, loop: str) -> LoopHistory:
        return self.found.setdefault(loop, LoopHistory())

    def _round(self, loop: str) -> Round | None:
        return self._history(loop).current

    def _note(self, loop: str, event: e.Event) -> None:
        self._history(loop).entries.append(event)

    def _opened(self, event: e.LoopOpened) -> None:
        history = self.found[event.loop] = LoopHistory()
        history.asked = event.feedback
        if event.carries and event.follows is not None:
            history.continue_from(self._history(event.follows))
        if event.feedback is None:
            self._by_judge[event.source] = event.loop
            if event.source in self._judged:
                history.entries.append(self._judged[event.source])

    def _verdict(self, event: e.VerdictGiven) -> None:
        seen = {f"F-{each.id}": str(each.status) for each in event.findings}
        settled = {f"F-{id}": str(status) for id, status in event.settled}
        said = self._said.pop((event.judge, event.attempt), "")
        given = self._judged[event.judge] = VerdictReport(event.judge, event.attempt, event.word, said, seen | settled)
        if event.judge in self._by_judge:
            self._history(self._by_judge[event.judge]).entries.append(given)

    def _ended(self, work: WorkReport) -> None:
        for each in self._at_work.pop((work.step, work.attempt), ()):
            each.ended(work)


Histories = Mapping[str, LoopHistory]
"""The histories of the loops of a run, by their ids."""
