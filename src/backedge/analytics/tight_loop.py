"""A run as the tight loop implementation → review → test: iterations, streaks and a status, folded from events.

An iteration is one cycle: what was made, and the verdicts about it. It ends when a step is executed whose work, or work
that was made from it, it already has; a retry after an error does not end it. A verdict belongs to the iteration that
made its subject, so that two steps that run in parallel do not get each other's results.

The fold takes each event once and keeps a bounded number of iterations: its cost does not grow with the run.
"""

from __future__ import annotations

from backedge.compat.progress import MOST_ITERATIONS, LoopStatus
from backedge.core import events as e
from backedge.core.feedback.undoable import words_of
from backedge.core.findings.held_out import HELD_OUT, cut_finding, is_hidden
from backedge.core.model import SIDE_MODES, Finding, Status
from backedge.core.state.persistent_map import Map
from backedge.core.text import shortened
from backedge.core.value import Value, replace
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.graph import Graph, graph_of
from backedge.core.workflow.plan import with_plan

MOST_ISSUES = 50
"""How many issues of one verdict are listed."""

_ENDS: dict[str, LoopStatus] = {
    "verified": "IMPLEMENTATION_VERIFIED",
    "done": "done",
    "accepted": "accepted",
    "failed": "failed",
    "cancelled": "cancelled",
    "imported": "done",
}
_GRANTS = ("continue", "reassign", "reclassify", "rollback")


class Judged(Value, frozen=True):
    """The last verdict of one judge in an iteration."""

    passed: bool
    issues: tuple[str, ...] = ()


class Cycle(Value, frozen=True):
    """One iteration as it is folded."""

    number: int
    made: dict[str, str] = {}
    """The summary of each step that finished."""
    broke: dict[str, str] = {}
    """Errors of steps that have not finished since."""
    reviews: dict[str, Judged] = {}
    tests: dict[str, Judged] = {}
    notes: tuple[str, ...] = ()
    """Escalations and decisions by people."""


class TightLoop(Value, frozen=True):
    """Where the loop stands after some events."""

    run: str
    graph: Graph
    cycles: tuple[Cycle, ...] = (Cycle(1),)
    """The newest ones, oldest first."""
    last_iteration: dict[str, int] = {}
    """The iteration in which each step was last executed."""
    answering: frozenset[str] = frozenset()
    findings: Map[int, str] = Map()
    streaks: dict[str, int] = {}
    """Failing verdicts in a row, by judge."""
    sources: dict[str, str] = {}
    """The source of each open loop."""
    escalations: dict[str, str] = {}
    """The open ones, each with the source of its loop; empty for errors and budgets."""
    known_issues: tuple[str, ...] = ()
    """Issues that a person accepted."""
    base: int = 1
    granted: int = 0
    ended: str | None = None

    @property
    def number(self) -> int:
        return self.cycles[-1].number

    @property
    def workflow(self) -> Workflow:
        return self.graph.workflow

    @property
    def status(self) -> LoopStatus:
        if self.ended is not None:
            return _ENDS[self.ended]
        return "escalated" if self.escalations else "in_progress"

    @property
    def most(self) -> int | None:
        """How many iterations there may be, with what people granted; None if nothing but a budget bounds them."""
        limits = self.workflow.limits
        bounds = (limits.rounds_per_step, limits.rounds_per_loop, limits.rounds_per_pair, limits.rounds_total)
        bound = next((each for each in bounds if each is not None), None)
        # Several loops of one run may together take more iterations than each of them.
        return None if bound is None else max(self.base + bound + self.granted, self.number)

    def streak(self, tests: bool) -> int:
        """The longest row of failures among the judges that test, or those that review."""
        steps = self.graph.steps
        return max((count for judge, count in self.streaks.items() if steps[judge].tests is tests), default=0)


def tight_loop(loop: TightLoop | None, event: e.Event) -> TightLoop:
    """The loop after one more event; the same object if the event does not concern it."""
    if loop is None:
        if not isinstance(event, e.RunStarted):
            raise ValueError(f"the first event of a run is {type(event).__name__}: expected RunStarted")
        return TightLoop(event.run, graph_of(event.workflow))
    match event:
        case e.AttemptStarted():
            return _started(loop, event)
        case e.AttemptSucceeded():
            return _succeeded(loop, event)
        case e.AttemptFailed():
            return _broke(loop, event)
        case e.VerdictGiven():
            return _judged(loop, event)
        case e.LoopOpened():
            return replace(loop, sources={**loop.sources, event.loop: event.source}, ended=None)
        case e.LoopClosed():
            return replace(loop, sources={id: source for id, source in loop.sources.items() if id != event.loop})
        case e.FindingsSettled(status=Status.ACCEPTED):
            texts = (loop.findings[id] for id in event.findings)
            return replace(loop, known_issues=tuple(dict.fromkeys((*loop.known_issues, *texts))))
        case e.EscalationOpened():
            about = loop.sources.get(event.loop or "", "")
            noted = _noted(loop, f"{event.escalation} escalated: {shortened(event.reason)}")
            return replace(noted, escalations={**loop.escalations, event.escalation: about})
        case e.RolledBack():
            return _noted(loop, f"rolled back {words_of(event)}")
        case e.EscalationDecided():
            return _decided(loop, event)
        case e.StepsChanged():
            graph = graph_of(with_plan(loop.workflow, event.added, event.removed, event.gained))
            judges = {name: count for name, count in loop.streaks.items() if name in graph.steps}
            return replace(loop, graph=graph, streaks=judges)
        case e.RunEnded():
            return replace(loop, ended=event.outcome)
        case _:
            return loop


def _started(loop: TightLoop, event: e.AttemptStarted) -> TightLoop:
    name = event.step
    if loop.graph.is_judge(name):
        return loop
    if event.mode in SIDE_MODES:
        return replace(loop, answering=loop.answering | {name})
    cycles = loop.cycles
    if cycles[-1].made.keys() & {name, *loop.graph.downstream[name]}:
        cycles = (*cycles, Cycle(cycles[-1].number + 1))[-MOST_ITERATIONS:]
    last_iteration = {**loop.last_iteration, name: cycles[-1].number}
    return replace(loop, cycles=cycles, last_iteration=last_iteration, answering=loop.answering - {name})


def _succeeded(loop: TightLoop, event: e.AttemptSucceeded) -> TightLoop:
    name = event.step
    if loop.graph.is_judge(name) or name in loop.answering:
        return loop
    number = loop.last_iteration.get(name, loop.number)
    cycle = _cycle(loop, number)
    broke = {step: error for step, error in cycle.broke.items() if step != name}
    return _with(loop, replace(cycle, made={**cycle.made, name: shortened(event.summary)}, broke=broke))


def _broke(loop: TightLoop, event: e.AttemptFailed) -> TightLoop:
    name, error = event.step, shortened(event.error)
    if name in loop.answering:
        return loop
    if loop.graph.is_judge(name):
        # A judge that broke has not passed: the iteration says so until there is a verdict.
        why = HELD_OUT if is_hidden(loop.graph, name) else error
        return _with_verdict(loop, name, Judged(False, (f"no verdict of {name}: {why}",)))
    cycle = _cycle(loop, loop.last_iteration.get(name, loop.number))
    return _with(loop, replace(cycle, broke={**cycle.broke, name: error}))


def _judged(loop: TightLoop, event: e.VerdictGiven) -> TightLoop:
    # Producers read this view: the findings of a held-out judge are not for them.
    hidden = is_hidden(loop.graph, event.judge)
    texts = {
        sighting.id: _issue(cut_finding(sighting.finding) if hidden else sighting.finding)
        for sighting in event.findings
        if sighting.finding is not None
    }
    failing = event.word == "fail"
    loop = replace(
        loop,
        findings=loop.findings.merged(texts) if texts else loop.findings,
        streaks={**loop.streaks, event.judge: loop.streaks.get(event.judge, 0) + 1 if failing else 0},
    )
    seen = [loop.findings[sighting.id] for sighting in event.findings] if failing else []
    if len(seen) > MOST_ISSUES:
        seen = [*seen[:MOST_ISSUES], f"… and {len(seen) - MOST_ISSUES} more"]
    return _with_verdict(loop, event.judge, Judged(not failing, tuple(seen)))


def _with_verdict(loop: TightLoop, judge: str, judged: Judged) -> TightLoop:
    step = loop.graph.steps[judge]
    subjects = step.judges or loop.graph.needs[judge]
    cycle = _cycle(loop, max((loop.last_iteration.get(each, 1) for each in subjects), default=loop.number))
    if step.tests:
        return _with(loop, replace(cycle, tests={**cycle.tests, judge: judged}))
    return _with(loop, replace(cycle, reviews={**cycle.reviews, judge: judged}))


def _decided(loop: TightLoop, event: e.EscalationDecided) -> TightLoop:
    about = loop.escalations.get(event.escalation, "")
    words = " ".join(part for part in (event.choice, f"by {event.by}" if event.by else "") if part)
    note = f": {shortened(event.note)}" if event.note else ""
    loop = _noted(loop, f"{event.escalation} decided: {shortened(words)}{note}")
    loop = replace(loop, escalations={id: source for id, source in loop.escalations.items() if id != event.escalation})
    if event.choice == "revise":
        streaks = {judge: 0 if judge == about else count for judge, count in loop.streaks.items()}
        return replace(loop, base=loop.number, granted=0, streaks=streaks)
    if event.choice in _GRANTS and about:
        return replace(loop, granted=loop.granted + event.rounds)
    return loop


def _noted(loop: TightLoop, note: str) -> TightLoop:
    cycle = loop.cycles[-1]
    return _with(loop, replace(cycle, notes=(*cycle.notes, note)[-MOST_ISSUES:]))


def _cycle(loop: TightLoop, number: int) -> Cycle:
    """The cycle of that number, or the oldest stored one if it is no longer stored."""
    return loop.cycles[max(0, number - loop.cycles[0].number)]


def _with(loop: TightLoop, cycle: Cycle) -> TightLoop:
    index = cycle.number - loop.cycles[0].number
    return replace(loop, cycles=(*loop.cycles[:index], cycle, *loop.cycles[index + 1 :]))


def _issue(finding: Finding) -> str:
    where = finding.file or finding.path or ""
    if finding.file and finding.line is not None:
        where = f"{where}:{finding.line}"
    return shortened(f"{where} - {finding.description}" if where else finding.description)
