"""The briefing of an attempt: exactly its share of the feedback, the earlier rounds, and what is left of the limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from backedge.core.breaches import limits_left
from backedge.core.evidence.values import ProtectedFile, TestCounts
from backedge.core.feedback.guidelines import AnswerRules, answer_rules
from backedge.core.feedback.loop import Loop, result_so_far, with_chooser
from backedge.core.feedback.offers import offered_options
from backedge.core.feedback.undoable import difference
from backedge.core.findings.answerable import answerable
from backedge.core.findings.held_out import HELD_OUT, for_producers, is_hidden
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.model import SIDE_MODES, ChosenOption, Mode, Option, Position, Severity
from backedge.core.scheduling.skipping import present_needs
from backedge.core.scheduling.verification import human_feedback_to_verify, not_delivered_yet
from backedge.core.state.run import Running, RunState
from backedge.core.text import counted
from backedge.core.value import Json, Value, replace
from backedge.core.workflow.graph import Graph


class BriefedFinding(Value, frozen=True):
    """A finding as it appears in a briefing."""

    id: str
    description: str
    severity: Severity
    found_by: str
    """Its judge; if several judges found the same, all of them."""
    blocking: bool = False
    word: str = ""
    category: str = ""
    evidence: str = ""
    impact: str = ""
    file: str | None = None
    line: int | None = None
    path: str | None = None
    suggested_fix: str | None = None
    requirement_id: str | None = None
    affected_phase: tuple[str, ...] = ()
    status: str = "open"
    persistent: bool = False
    """Whether it was reported in two or more rounds."""
    fix_authored: bool = False
    same_as: tuple[str, ...] = ()
    """The ids of the same finding of other judges."""
    same_place: tuple[str, ...] = ()
    """The ids of findings at the same place, of several judges: one fix has to resolve all of them, but each
    is verified by its own judge."""
    claim: str = ""
    """What the step that reworked it claims, for the judge to check."""
    gap: str = ""
    """For a missing requirement: where it got lost."""
    test: str = ""
    """The id of the test that failed."""
    note: str = ""
    """What its judge said about it when it was last asked."""
    by_test: bool = False
    """Whether a test found it; else a review did."""

    @property
    def location(self) -> str:
        """File and line, file, or path; empty if it names none."""
        if self.file is not None:
            return f"{self.file}:{self.line}" if self.line is not None else self.file
        return self.path or ""


class Request(Value, frozen=True):
    """Feedback raised by an agent or a person, as its target gets it."""

    loop: str
    kind: str
    source: str
    message: str
    severity: Severity
    blocking: bool = False
    suggested_fix: str | None = None
    requested_info: str | None = None
    artifacts: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    requirement_id: str | None = None
    details: Json = None
    positions: tuple[Position, ...] = ()
    """The options that the targets of a choice have preferred so far, by round."""
    targets: tuple[str, ...] = ()
    """Everybody who was asked."""
    choice: ChosenOption | None = None
    """The chosen option, for the steps that have to rework because of it."""


class LoopResult(Value, frozen=True):
    """The result of feedback that this step raised."""

    loop: str
    kind: str
    state: str
    message: str = ""
    by: str = ""
    text: str = ""
    option: str | None = None
    answers: dict[str, Json] = {}


class EarlierRound(Value, frozen=True):
    """One earlier round of a loop."""

    loop: str
    round: int
    findings: tuple[str, ...] = ()
    message: str = ""


class RolledBackRound(Value, frozen=True):
    """An earlier round whose fix made things worse: the version before it counts again."""

    loop: str
    round: int
    targets: tuple[str, ...]
    """The steps whose fix it was."""
    versions: dict[str, int] = {}
    """The versions that count again, by step."""
    why: str = ""
    """What the fix left, against what there was before: "3 findings instead of 1"."""
    caused: tuple[BriefedFinding, ...] = ()
    """The findings that were open after the fix, and not before it."""
    by: str = ""
    """Who decided it; empty if `on_worse` did."""
    files_kept: bool = False
    """Whether the files stayed as they were, because somebody had edited them."""


class EarlierAttempt(Value, frozen=True):
    """What an earlier attempt did, in its own words."""

    step: str
    attempt: int
    round: int
    """The round of the feedback that it addressed; 0 if there was none."""
    summary: str
    rolled_back: bool = False
    """Whether its work was rolled back."""


class BriefedVerdict(Value, frozen=True):
    """The last verdict of a judge about the work, in its own words."""

    judge: str
    verdict: str
    summary: str = ""


class FeedbackForAttempt(Value, frozen=True):
    """The feedback that this attempt has to address."""

    findings: tuple[BriefedFinding, ...] = ()
    requests: tuple[Request, ...] = ()
    resolutions: tuple[LoopResult, ...] = ()
    advice: tuple[str, ...] = ()
    """What people wrote about how to go on."""
    verdicts: tuple[BriefedVerdict, ...] = ()
    """What each judge of the work concluded."""
    answered: tuple[LoopResult, ...] = ()
    """What came of feedback that earlier attempts of this step raised, oldest first: they were told, and it still holds."""
    unverified: tuple[BriefedFinding, ...] = ()
    """The findings that earlier attempts of this step addressed and no judge has verified yet. They must stay fixed."""
    unverified_requests: tuple[Request, ...] = ()
    """The requests that earlier attempts of this step did and nobody has verified yet."""

    def __bool__(self) -> bool:
        return bool(self.findings or self.requests or self.resolutions)


class KnownStep(Value, frozen=True):
    """A step of the run, in the briefing of a planner."""

    name: str
    phase: str
    needs: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    attempts: int = 0
    running: bool = False
    """Whether it is running. A running step cannot be replaced or removed."""


class BriefedChange(Value, frozen=True):
    """The change of a protected file, for the reviewer who answers for it."""

    id: str
    file: str
    change: str
    step: str
    lines: str = ""
    question: str = ""
    """Why a judge cannot count it without an answer."""
    tests: tuple[str, ...] = ()
    passed_by: tuple[str, ...] = ()
    """The reviewers whose pass does not approve it, because it hides a failure that was there when the run began. It needs
    an approval by its id, or a person's."""


def briefed_change(changed: ProtectedFile) -> BriefedChange:
    return BriefedChange(
        changed.name, changed.file, changed.change, changed.step, changed.lines, changed.question, changed.tests
    )


class BriefedChanges(Value, frozen=True):
    """What the steps under judgement changed in the workspace, as backedge saw it."""

    protected: tuple[BriefedChange, ...] = ()
    """Tests and configuration of judges: all of them."""
    files: tuple[str, ...] = ()
    """All changed files, protected ones first."""
    tests: dict[str, TestCounts] = {}
    """How many tests there are now and were at the start, by judge."""
    notes: tuple[str, ...] = ()
    """What else was noticed: warnings that were silenced, processes that were ended."""

    def __bool__(self) -> bool:
        return bool(self.protected or self.files or self.tests or self.notes)


class Briefing(Value, frozen=True, gc=True):
    """Everything that one attempt works from. Unlike other values it is garbage collected, because its inputs may be
    objects of the user."""

    run: str
    step: str
    phase: str
    attempt: int
    mode: Mode
    round: int = 0
    """The round of the feedback it addresses; 0 if there is none."""
    agent: str = ""
    """The agent that makes the attempt, by its name in the workflow file."""
    session: str | None = None
    """The conversation of this step's last attempt, for agents that can continue one."""
    input: Json = None
    inputs: dict[str, Json] = {}
    based_on: dict[str, Json] = {}
    """For a reviewer: the outputs of the steps that the work under judgement is based on, the nearest first."""
    feedback: FeedbackForAttempt = FeedbackForAttempt()
    verify: tuple[BriefedFinding, ...] = ()
    previous: Json = None
    history: tuple[EarlierRound, ...] = ()
    rolled_back: tuple[RolledBackRound, ...] = ()
    """The earlier rounds that were rolled back, oldest first."""
    left: dict[str, float] = {}
    last_error: str = ""
    """Why the last attempt of this step did not count: its agent broke, or contradicted itself. Else empty."""
    steps: tuple[KnownStep, ...] = ()
    """All steps of the run; only for a step that plans."""
    changes: BriefedChanges = BriefedChanges()
    """What the steps under judgement changed; only for judges."""
    tried: tuple[EarlierAttempt, ...] = ()
    """What the earlier attempts of this step did; for a judge, also those of the steps under judgement."""
    rules: AnswerRules = AnswerRules()
    """What the answer may contain."""
    approved: tuple[tuple[str, str], ...] = ()
    """For a tool judge: the changes of protected files that count, as path and digest. The path begins at the folder of the
    workflow file: files of the same name in two workspaces are two files."""
    start: str = ""
    """For a tool judge: the digest of what was recorded about the files of the start; empty if it has no baseline."""


def brief(state: RunState, step: str, now: float, input: Json, outputs: Mapping[str, Json]) -> Briefing:
    """The briefing of the running attempt of a step. `outputs` has the outputs of its needs and of `basis_of`, and
    its own last output."""
    running = state.steps[step].running
    if running is None:
        raise ValueError(f"step {step!r} is not running: only a running attempt has a briefing")
    graph, judge = state.graph, step in state.graph.judges and running.mode not in SIDE_MODES
    people = human_feedback_to_verify(state, step) if judge and state.loops else ()
    has_loops = running.loops or running.unverified_loops or running.verifies or running.results or people
    about_loops = _about_loops(state, step, now, running, people) if has_loops else {}
    return Briefing(
        run=state.run,
        step=step,
        phase=graph.phase_of[step],
        attempt=running.attempt,
        mode=running.mode,
        agent=graph.steps[step].display_name(running.agent),
        session=state.steps[step].session,
        input=input,
        inputs={
            need: outputs[need]
            for need in present_needs(state, step)
            if need in outputs and (judge or not is_hidden(graph, need))
        },
        based_on={name: outputs[name] for name in basis_of(state, step) if outputs.get(name) is not None},
        verify=briefed_findings(state, state.steps[step].open_findings) if judge else (),
        previous=outputs.get(step),
        last_error=state.steps[step].last_error,
        steps=_known_steps(state) if graph.steps[step].plans else (),
        changes=_changes(state, step, running) if judge else NO_CHANGES,
        tried=_tried(state, (*_looked_at(state, step, running), step) if judge else (step,)),
        rules=replace(answer_rules(graph, step), findings=answerable(state, step, running)),
        approved=_approved(state) if judge and graph.steps[step].tool else (),
        start=state.baselines[step].start if step in state.baselines else "",
        **(about_loops or {"left": limits_left(state, now, None, step)}),
    )


def basis_of(state: RunState, step: str) -> tuple[str, ...]:
    """For a reviewer, the steps that the work under judgement is based on, the nearest first: a defect may come from
    there. Tools do not read their briefing."""
    graph = state.graph
    if step not in graph.judges or graph.steps[step].tool or step in graph.engine_judges:
        return ()
    found = dict.fromkeys(graph.steps[step].judges)
    for name in (names := list(found)):  # grows while it is read
        for need in graph.needs[name]:
            if need not in found and need not in graph.judges and len(found) < MOST_BASIS:
                found[need] = None
                names.append(need)
    return tuple(name for name in found if name not in graph.needs[step] and state.steps[name].artifact is not None)


MOST_BASIS = 12
"""How many steps to look at for what the work under judgement is based on: a workflow can have hundreds."""
NO_CHANGES = BriefedChanges()
MOST_TRIED = 8
"""How many earlier attempts a briefing has; one of each step in any case."""


def _looked_at(state: RunState, judge: str, running: Running) -> list[str]:
    """The steps whose work a judge looks at: those it judges, and those that reworked because of its findings."""
    verified = (loop for id in running.verifies if (loop := state.loop(id)) is not None)
    steps = dict.fromkeys((*(name for loop in verified for name in loop.involved), *state.graph.steps[judge].judges))
    return [name for name in steps if name in state.steps and name != judge]


def _tried(state: RunState, steps: Sequence[str]) -> tuple[EarlierAttempt, ...]:
    """What the last attempts of these steps did, equally many of each, oldest first."""
    undone = {attempt for rollback in state.rollbacks.values() for attempt in rollback.attempts}
    each_has = max(1, MOST_TRIED // len(steps))
    return tuple(
        EarlierAttempt(name, each.attempt, each.round, each.summary, (name, each.attempt) in undone)
        for name in steps
        for each in state.steps[name].tried[-each_has:]
    )


def _verdicts(state: RunState, step: str, loops: Iterable[Loop]) -> tuple[BriefedVerdict, ...]:
    """What the judges of a step, and those whose feedback it gets, concluded last. Held-out judges say nothing."""
    judges = dict.fromkeys((*(loop.source for loop in loops if loop.by_verdict), *state.graph.judges_of[step]))
    return tuple(
        BriefedVerdict(judge, verdict.word, artifact.summary)
        for judge in judges
        if (verdict := state.steps[judge].verdict) is not None
        and (artifact := state.steps[judge].artifact) is not None
        and not is_hidden(state.graph, judge)
    )


def _changes(state: RunState, judge: str, running: Running) -> BriefedChanges:
    subjects = [state.steps[name] for name in state.graph.steps[judge].judges]
    seen = [subject for subject in subjects if subject.files or subject.evidence.notes]
    if not seen and not running.told:
        return NO_CHANGES
    told = tuple(briefed_change(each) for each in state.protected.values() if each.id in running.told)
    files = (*(each.file for each in told), *(file for subject in seen for file in subject.files))
    tests = {
        name: replace(counts, flaky=()) if is_hidden(state.graph, name) else counts
        for name, step in state.steps.items()
        if (counts := step.evidence.tests) is not None
    }
    notes = tuple(dict.fromkeys(note for subject in seen for note in subject.evidence.notes))
    return BriefedChanges(told, tuple(dict.fromkeys(files)), tests, notes)


def _approved(state: RunState) -> tuple[tuple[str, str], ...]:
    return tuple((each.key, each.digest) for each in state.protected.values() if each.approved)


def _known_steps(state: RunState) -> tuple[KnownStep, ...]:
    graph = state.graph
    return tuple(
        KnownStep(
            name,
            graph.phase_of[name],
            graph.needs[name],
            each.judges,
            state.steps[name].attempts,
            state.steps[name].running is not None,
        )
        for name, each in graph.steps.items()
    )


def _about_loops(state: RunState, step: str, now: float, running: Running, people: tuple[Loop, ...]) -> dict[str, Any]:
    """The fields of a briefing that depend on loops. `people` are the loops of people that this judge verifies."""
    # Since the attempt began, a decision may have closed a loop or sent it elsewhere.
    unverified = [loop for id in running.unverified_loops if (loop := state.loop(id)) is not None]
    delivered_before = [loop for loop in unverified if not not_delivered_yet(loop, step)]
    to_address = [loop for id in running.loops if (loop := state.loop(id)) is not None]
    to_address += [loop for loop in unverified if not_delivered_yet(loop, step)]
    to_verify = [loop for id in running.verifies if (loop := state.loop(id)) is not None]
    raised = [loop for loop in to_verify if loop.feedback is not None]
    judged = [loop for loop in to_verify if loop.by_verdict]
    closed = [loop for id in running.results if (loop := state.loop(id)) is not None]
    told = {loop.id for loop in (*closed, *raised)}
    before = [loop for id in state.steps[step].answered if id not in told and (loop := state.loop(id)) is not None]
    by_priority = sorted((*to_address, *people), key=_priority)
    return {
        "round": max((loop.round for loop in (*to_address, *judged, *people)), default=0),
        "feedback": FeedbackForAttempt(
            findings=_for_producer(state, running.to_address),
            requests=tuple(request for loop in by_priority if (request := request_of(state, loop)) is not None),
            resolutions=tuple(loop_result(loop) for loop in (*closed, *raised)),
            answered=tuple(map(loop_result, before)),
            advice=tuple(
                dict.fromkeys(loop.advice for loop in (*to_address, *delivered_before, *judged) if loop.advice)
            ),
            verdicts=_verdicts(state, step, to_address) if running.to_address else (),
            unverified=_for_producer(
                state, (each for each in running.must_keep_fixed if each not in running.to_address)
            ),
            unverified_requests=tuple(
                request for loop in delivered_before if (request := request_of(state, loop)) is not None
            ),
        ),
        "history": (
            *(
                earlier
                for loop in (*to_address, *delivered_before, *judged, *raised)
                for earlier in _history(state, step, loop)
            ),
            *(_unverified(state, step, loop) for loop in delivered_before),
        ),
        "rolled_back": tuple(
            rolled_back_round(state, number, step)
            for number in sorted(
                {each for loop in (*to_address, *delivered_before, *judged) for each in loop.rollbacks}
            )
        ),
        "left": limits_left(state, now, max(to_address, key=lambda loop: loop.round, default=None), step),
    }


def _priority(loop: Loop) -> tuple[int, int]:
    """The order of requests in a briefing: by severity, then later rounds first. Equal ones stay in order of age."""
    return loop.severity.rank, -loop.round


def briefed_finding(tracked: TrackedFinding, graph: Graph) -> BriefedFinding:
    finding, judge = tracked.finding, graph.steps.get(tracked.found_by)
    return BriefedFinding(
        id=tracked.name,
        description=finding.description,
        severity=finding.severity,
        found_by=tracked.found_by,
        blocking=finding.blocking,
        word=finding.word,
        category=finding.category,
        evidence=finding.evidence,
        impact=finding.impact,
        file=finding.file,
        line=finding.line,
        path=finding.path,
        suggested_fix=finding.suggested_fix,
        requirement_id=finding.requirement_id,
        affected_phase=tracked.phases,
        status=tracked.status,
        persistent=tracked.persistent,
        fix_authored=tracked.fix_authored,
        claim=tracked.claim,
        gap=tracked.gap,
        test=finding.test,
        note=tracked.note,
        by_test=judge is not None and judge.tests,
    )


def briefed_findings(state: RunState, ids: Iterable[int]) -> tuple[BriefedFinding, ...]:
    """The findings by severity, blocking ones first. The same finding of several loops or judges appears once."""
    return _briefed(state.graph, (state.findings[id] for id in dict.fromkeys(ids)))


def _for_producer(state: RunState, ids: Iterable[int]) -> tuple[BriefedFinding, ...]:
    """The findings that a rework has to address. Those of a held-out judge are told as one for each category."""
    found = _briefed(state.graph, (for_producers(state.graph, state.findings[id]) for id in dict.fromkeys(ids)))
    return tuple(
        replace(each, description=f"{HELD_OUT} ({counted(1 + len(each.same_as), 'finding')})")
        if each.description == HELD_OUT and each.same_as
        else each
        for each in found
    )


def _briefed(graph: Graph, findings: Iterable[TrackedFinding]) -> tuple[BriefedFinding, ...]:
    same: dict[str, list[BriefedFinding]] = {}
    for tracked in findings:
        same.setdefault(tracked.fingerprint, []).append(briefed_finding(tracked, graph))
    merged = [found[0] if len(found) == 1 else _merged(sorted(found, key=_by_severity)) for found in same.values()]
    return tuple(_by_place(merged))


def _by_place(found: Iterable[BriefedFinding]) -> Iterator[BriefedFinding]:
    """The findings by severity. What several judges found at one place is one item, as grave as the gravest of them. A
    whole file is one place only for findings of one category."""
    places: dict[tuple[str, str], list[BriefedFinding]] = {}
    for each in found:
        exact = bool(each.location) and (each.file is None or each.line is not None)
        about = (each.location, "" if exact else each.category)
        places.setdefault(about if exact or all(about) else (each.id, ""), []).append(each)
    items: list[list[BriefedFinding]] = []
    for group in places.values():
        several = len({each.found_by for each in group}) > 1
        items += [sorted(group, key=_by_severity)] if several else [[each] for each in group]
    for item in sorted(items, key=lambda item: _by_severity(item[0])):
        for each in item:
            yield replace(each, same_place=tuple(other.id for other in item if other is not each)) if item[1:] else each


def _by_severity(finding: BriefedFinding) -> tuple[int, bool]:
    return finding.severity.rank, not finding.blocking


def _merged(found: list[BriefedFinding]) -> BriefedFinding:
    """The same finding of several judges as one, in the words of the most severe, with what each judge says about it."""
    said = {
        label: "\n".join(dict.fromkeys(text for each in found if (text := getattr(each, label))))
        for label in ("evidence", "impact", "suggested_fix", "note")
    }
    return replace(
        found[0],
        **{label: text for label, text in said.items() if text},
        found_by=", ".join(dict.fromkeys(each.found_by for each in found)),
        same_as=tuple(each.id for each in found[1:]),
        persistent=any(each.persistent for each in found),
        by_test=all(each.by_test for each in found),
    )


def request_of(state: RunState, loop: Loop) -> Request | None:
    """The request of a loop that an agent or a person raised; None for a loop that a verdict started."""
    raised = loop.feedback
    if raised is None:
        return None
    return Request(
        loop=loop.id,
        kind=loop.kind_name,
        source=loop.source,
        message=raised.message,
        severity=raised.severity,
        blocking=raised.blocking,
        suggested_fix=raised.suggested_fix,
        requested_info=raised.requested_info,
        artifacts=raised.artifacts,
        options=offered_options(state, loop),
        requirement_id=raised.requirement_id,
        details=raised.details,
        positions=loop.positions,
        targets=loop.targets,
        choice=loop.choice,
    )


def loop_result(loop: Loop) -> LoopResult:
    """The result of a loop so far, for the step that raised it."""
    message = loop.feedback.message if loop.feedback else ""
    result = loop.resolution
    if result is None:
        word = "chosen" if loop.choice is not None else "answered" if loop.answers_only else "fixed"
        result = with_chooser(loop, result_so_far(loop, word))
    return LoopResult(
        loop.id, loop.kind_name, result.state, message, result.by, result.text, result.option, result.answers
    )


def _history(state: RunState, step: str, loop: Loop) -> tuple[EarlierRound, ...]:
    return tuple(
        EarlierRound(
            loop.id,
            past.round,
            tuple(
                f"{(tracked := state.findings[id]).name} ({tracked.status}): {_description(state, step, tracked)}"
                for id in past.findings
            ),
            past.message,
        )
        for past in loop.past_rounds
    )


def rolled_back_round(state: RunState, number: int, step: str | None = None) -> RolledBackRound:
    """A rollback by its number: for a step that may not know what held-out judges found, or for people."""
    event = state.rollbacks[number]
    caused = (state.findings[id] for id in event.caused)
    seen = (each if step in (None, each.found_by) else for_producers(state.graph, each) for each in caused)
    return RolledBackRound(
        event.loop,
        event.round,
        event.targets,
        event.versions,
        difference(event.before, event.after),
        _briefed(state.graph, seen),
        event.by,
        state.files_kept.get(number, False),
    )


def _description(state: RunState, step: str, tracked: TrackedFinding) -> str:
    """What a step may read about a finding: a held-out judge reads its own, others do not."""
    seen = tracked if tracked.found_by == step else for_producers(state.graph, tracked)
    return seen.finding.description


def _unverified(state: RunState, step: str, loop: Loop) -> EarlierRound:
    """What an earlier attempt of a step fixed for a loop. Until that is verified, later attempts must keep it."""
    share, raised, choice = loop.shares.get(step), loop.feedback, loop.choice
    findings = (state.findings[id] for id in (share.findings if share is not None else ()))
    chosen = f" (chosen: {choice.option})" if choice is not None else ""
    return EarlierRound(
        loop.id,
        loop.round,
        tuple(f"{each.name} (addressed, not verified yet): {_description(state, step, each)}" for each in findings),
        f"(addressed, not verified yet) {raised.message}{chosen}" if raised is not None else "",
    )


class Notice(Value, frozen=True):
    """One piece of feedback in a step's inbox."""

    loop: str
    source: str
    kind: str
    message: str
    severity: Severity
    resolved: bool
    acknowledged: bool = False
    details: Json = None
    options: tuple[Option, ...] = ()
    resolution: LoopResult | None = None
    response: Json = None
    """The message, action and eta of the target's acknowledgement."""


def notices(state: RunState, target: str) -> tuple[Notice, ...]:
    """All feedback that was ever addressed to a step, oldest first."""
    loops = [*state.closed_loops.values(), *state.loops.values()]
    return tuple(_notice(state, loop, target) for loop in sorted(loops, key=_age) if target in loop.involved)


def _age(loop: Loop) -> int:
    return int(loop.id.partition("-")[2])


def _notice(state: RunState, loop: Loop, target: str) -> Notice:
    share = loop.shares.get(target)
    findings = (_description(state, target, state.findings[id]) for id in (share.findings if share is not None else ()))
    return Notice(
        loop=loop.id,
        source=loop.source,
        kind=loop.kind_name,
        message=loop.feedback.message if loop.feedback else "; ".join(findings),
        severity=loop.severity,
        resolved=not loop.open,
        acknowledged=target in loop.acknowledged,
        details=loop.feedback.details if loop.feedback else None,
        options=loop.feedback.options if loop.feedback else (),
        resolution=loop_result(loop) if not loop.open else None,
        response=loop.acknowledged.get(target),
    )
