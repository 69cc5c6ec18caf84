"""A run as people and programs read it: the shape of `show --json`, folded from the state."""

from __future__ import annotations

from collections.abc import Mapping

from backedge.analytics.attempt_errors import AttemptError
from backedge.analytics.changes import AttemptChange
from backedge.analytics.evidence_report import (
    EvidenceReport,
    ProtectedReport,
    evidence_report,
    failed_before,
    protected_report,
)
from backedge.analytics.rounds import Histories, LoopHistory, RoundReport, VerdictReport
from backedge.analytics.sentence import sentence
from backedge.analytics.shape import Shape
from backedge.core.briefing import rolled_back_round
from backedge.core.escalation.options import choice_words
from backedge.core.events import RefusedFeedback
from backedge.core.evidence.values import Baseline, TestCounts
from backedge.core.feedback.loop import FINAL, Loop
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.model import Breach, ChosenOption, Option, Position, Resolution
from backedge.core.scheduling.pending import outcome_of
from backedge.core.scheduling.scheduler import passes
from backedge.core.scheduling.skipping import is_skipped
from backedge.core.scheduling.staleness import is_fresh
from backedge.core.state.run import Escalation, RunState
from backedge.core.value import Json


class WaitReport(Shape, frozen=True):
    """A step that waits because the provider of its agent has reached a limit."""

    until: float
    """When it tries again, in seconds since the epoch."""
    message: str
    """What the provider said."""
    refusals: int
    """How often in a row its provider refused."""


class StepReport(Shape, frozen=True):
    phase: str
    state: str
    """waiting, running, done, stale, failing, skipped or passed_over."""
    attempts: int
    output: Json = None
    verdict: str | None = None
    version: int = 0
    last_error: str | None = None
    tests: TestCounts | None = None
    """What the last report of a tool judge lists."""
    notes: tuple[str, ...] = ()
    """What backedge noticed in its last attempt."""
    ended: tuple[str, ...] = ()
    """The processes that its last attempt left behind and that were ended."""
    summary: str = ""
    """What its agent said about the newest artifact, in its own words; for a judge, about the last verdict."""
    waits: WaitReport | None = None
    """Until when it waits for a limit of its provider, and why; null if it does not."""
    errors: tuple[AttemptError, ...] = ()
    """Why attempts did not count, oldest first; also those before a later success."""


class RollbackReport(Shape, frozen=True):
    """A round that was rolled back: the versions before it count again."""

    round: int
    targets: tuple[str, ...]
    """The steps whose fix it was."""
    versions: dict[str, int]
    """The versions that count again, by step."""
    why: str
    """What the fix left, against what there was before: "3 findings instead of 1"."""
    caused: tuple[str, ...]
    """The findings that were open after the fix, and not before it."""
    by: str
    """Who decided it; empty if `on_worse` did."""
    files_kept: bool
    """Whether the files stayed as they were, because somebody had edited them."""


class LoopReport(Shape, frozen=True):
    id: str
    kind: str
    source: str
    targets: tuple[str, ...]
    state: str
    rounds: int
    routed_by: str
    caused_by: str | None
    follows: str | None
    findings: tuple[str, ...]
    breach: Breach | None
    resolution: Resolution | None
    message: str = ""
    severity: str = ""
    blocking: bool = False
    options: tuple[Option, ...] = ()
    positions: tuple[Position, ...] = ()
    """The positions of the targets of a choice, oldest first."""
    choice: ChosenOption | None = None
    responses: dict[str, Json] = {}
    """How targets acknowledged this round: message, action and eta, by target."""
    suggested_fix: str | None = None
    requested_info: str | None = None
    artifacts: tuple[str, ...] = ()
    requirement_id: str | None = None
    details: Json = None
    advice: str = ""
    """The approach that a person gave in a decision."""
    history: tuple[RoundReport, ...] = ()
    """Every round, oldest first, in the words of that round."""
    verdicts: tuple[VerdictReport, ...] = ()
    """Every verdict about it, oldest first. The first one started the loop."""
    rolled_back: tuple[RollbackReport, ...] = ()
    """The rounds that were rolled back, oldest first."""


class FindingReport(Shape, frozen=True):
    id: str
    description: str
    severity: str
    status: str
    found_by: str
    affected_phase: tuple[str, ...]
    introduced_by: str | None
    rounds_seen: int
    fix_authored: bool
    test: str = ""
    """The id of the test that failed."""
    blocking: bool = False
    category: str = ""
    file: str | None = None
    line: int | None = None
    loop: str | None = None
    requirement_id: str | None = None
    gap: str = ""
    """Where the missing requirement got lost."""
    failed_before: bool = False
    """Whether it failed on the files of the start of the run, before anything was changed."""
    note: str = ""
    """What its judge said about it when it was last asked."""
    evidence: str = ""
    impact: str = ""
    path: str | None = None
    suggested_fix: str | None = None
    word: str = ""
    """The judge's own word for the severity, if it differs from ours."""
    claim: str = ""
    """What the step that reworked it says: fixed or contested, and why."""


class ListedLoop(LoopReport, frozen=True):
    """A loop as `feedback list` has it: with everything that a report has elsewhere."""

    findings_in_full: tuple[FindingReport, ...] = ()
    """Its findings, each with all that its judge said."""
    changes: tuple[AttemptChange, ...] = ()
    """The last change of each step that it is about, while it is open."""
    reason: str = ""
    """Why it was refused; empty if it was delivered."""


class EscalationReport(Shape, frozen=True):
    id: str
    loop: str | None
    step: str | None
    reason: str
    breach: Breach | None
    options: tuple[str, ...]
    decided: str | None
    by: str = ""
    message: str = ""
    """The message of the feedback behind it."""
    offers: tuple[Option, ...] = ()
    """The options of the feedback behind it."""
    positions: tuple[Position, ...] = ()
    """The positions of the targets of a choice so far."""
    note: str = ""
    """The note with the decision, or why the question was withdrawn."""
    option: str | None = None
    """The option that was chosen with the decision."""
    sentence: str = ""
    """What it is about, in one or two sentences; empty once it is decided."""
    words: tuple[str, ...] = ()
    """The choices in the words of the question, such as approve and reject, the recommended one first; none once it is
    decided."""
    for_roles: tuple[str, ...] = ()
    """The roles of the people who are asked; empty for everybody."""


class RefusalReport(Shape, frozen=True):
    source: str
    targets: tuple[str, ...]
    reason: str
    message: str = ""
    """What it said."""
    kind: str = ""
    severity: str = ""
    blocking: bool = False
    suggested_fix: str | None = None
    requested_info: str | None = None
    artifacts: tuple[str, ...] = ()
    requirement_id: str | None = None
    details: Json = None
    options: tuple[Option, ...] = ()


class PlanReport(Shape, frozen=True):
    """A change of the run by a planner."""

    by: str
    attempt: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    loops: tuple[str, ...]
    """The loops that asked for it."""
    replaced: tuple[str, ...] = ()


class UsageReport(Shape, frozen=True):
    cost_usd: float
    tokens_in: int
    tokens_out: int
    attempts: int
    seconds: float


class ImportedRound(Shape, frozen=True):
    """One round of a tight loop in an imported file, which calls it an iteration."""

    number: int
    implementation: str
    review_result: str | None
    review_issues: tuple[str, ...]
    test_result: str | None
    test_failures: tuple[str, ...]


class Report(Shape, frozen=True):
    """The state of a run, and its history."""

    run: str
    workflow: str
    outcome: str
    paused: bool
    steps: dict[str, StepReport]
    loops: tuple[LoopReport, ...]
    findings: tuple[FindingReport, ...]
    escalations: tuple[EscalationReport, ...]
    refused: tuple[RefusalReport, ...]
    usage: UsageReport
    plans: tuple[PlanReport, ...] = ()
    checks: dict[str, StepReport] = {}
    """The judges that the engine executes itself; their attempts are measurements."""
    gates: dict[str, StepReport] = {}
    evidence: EvidenceReport | None = None
    """What was in force; null before a judge has judged."""
    protected: tuple[ProtectedReport, ...] = ()
    """The tests and configuration of judges that differ from the start of the run."""
    baselines: tuple[Baseline, ...] = ()
    reason: str = ""
    """Why the run ended as it did, if that needs a reason."""
    changes: tuple[AttemptChange, ...] = ()
    """What open questions and open loops are about: the last change of each step that is to be judged or was reworked.
    `show --diff` has the changes of all attempts."""
    decisions: tuple[str, ...] = ()
    """The decisions of people that an imported file lists."""
    waits_until: float | None = None
    """When the first step tries again that waits for a limit of its provider, in seconds since the epoch."""
    iterations: tuple[ImportedRound, ...] = ()
    """The iterations that an imported progress file or scratchpad lists."""

    @property
    def everybody(self) -> dict[str, StepReport]:
        """The steps, checks and gates."""
        return {**self.steps, **self.checks, **self.gates}


NO_HISTORIES: Histories = {}
NO_ERRORS: Mapping[str, tuple[AttemptError, ...]] = {}


def report(
    state: RunState,
    outputs: dict[str, Json] | None = None,
    histories: Histories = NO_HISTORIES,
    errors: Mapping[str, tuple[AttemptError, ...]] = NO_ERRORS,
) -> Report:
    """The report of a run. `outputs` has the ones that are too large for events, `histories` what happened to each
    loop, `errors` why attempts of each step did not count."""
    if state.imported is not None:
        from backedge.analytics.imported_report import imported_report

        return imported_report(state, state.imported)
    by_loop: dict[str, list[str]] = {}
    tracked = state.findings.values()
    for each in tracked:
        if each.loop is not None:
            by_loop.setdefault(each.loop, []).append(each.name)
    loops = sorted((*state.closed_loops.values(), *state.loops.values()), key=lambda loop: int(loop.id[2:]))
    packets = sorted(
        (*state.decided_escalations.values(), *state.escalations.values()), key=lambda packet: int(packet.id[2:])
    )
    steps = {name: _step(state, name, outputs or {}, errors.get(name, ())) for name in state.steps}
    return Report(
        run=state.run,
        workflow=state.workflow.name,
        outcome=outcome_of(state),
        paused=state.paused,
        steps={name: steps[name] for name in state.steps if name not in state.graph.engine_judges},
        checks={check.name: steps[check.name] for check in state.workflow.checks},
        gates={gate.name: steps[gate.name] for gate in state.workflow.gates},
        loops=tuple(
            _loop(state, loop, by_loop.get(loop.id, []), histories.get(loop.id, LoopHistory())) for loop in loops
        ),
        findings=tuple(_finding(state, each) for each in tracked),
        escalations=tuple(
            escalation_report(state, packet, histories.get(packet.loop or "", LoopHistory())) for packet in packets
        ),
        refused=tuple(_refusal(each) for each in state.refused.values()),
        usage=UsageReport(
            round(state.usage.cost_usd, 6),
            state.usage.tokens_in,
            state.usage.tokens_out,
            state.attempts,
            round(state.seconds_at_work(state.last_at), 3),
        ),
        plans=tuple(
            PlanReport(
                each.by, each.attempt, tuple(step.name for step in each.added), each.removed, each.loops, each.replaced
            )
            for each in state.plans.values()
        ),
        evidence=evidence_report(state),
        protected=tuple(protected_report(each) for each in state.protected.values()),
        baselines=tuple(state.baselines.values()),
        reason=state.ended.reason if state.ended else "",
        waits_until=min((step.waits.until for step in steps.values() if step.waits is not None), default=None),
    )


def _step(state: RunState, name: str, outputs: dict[str, Json], errors: tuple[AttemptError, ...]) -> StepReport:
    step = state.steps[name]
    artifact = step.artifact
    return StepReport(
        phase=state.graph.phase_of[name],
        state=step_state(state, name),
        attempts=step.attempts,
        output=outputs.get(name, artifact.output) if artifact else None,
        verdict=step.verdict.word if step.verdict else None,
        version=artifact.version if artifact else 0,
        last_error=step.last_error or None,
        tests=step.evidence.tests,
        notes=step.evidence.notes,
        ended=step.evidence.ended,
        summary=artifact.summary if artifact else "",
        waits=wait_of(state, name),
        errors=errors,
    )


def wait_of(state: RunState, name: str) -> WaitReport | None:
    """Until when a step waits for a limit of its provider; None if it does not."""
    step = state.steps[name]
    if not step.limits_in_a_row or step.running is not None or state.ended is not None:
        return None
    if any(packet.step == name for packet in state.escalations.values()):
        return None  # it waits for a person
    return WaitReport(step.retry_at, step.limit_message, step.limits_in_a_row)


def step_state(state: RunState, name: str) -> str:
    """waiting, running, done, stale, failing, skipped or passed_over."""
    step = state.steps[name]
    if step.running is not None:
        return "running"
    if step.skipped_by_decision:
        return "passed_over"
    if is_skipped(state, name):
        return "skipped"
    if step.artifact is None:
        return "waiting"
    if not is_fresh(state, name):
        return "stale"
    return "failing" if state.graph.is_judge(name) and not passes(state, name) else "done"


def _given(loop: Loop) -> list[str]:
    """The findings of a loop's rounds, as far as it remembers them: one that another loop has by now was here too."""
    rounds = (*(past.findings for past in loop.past_rounds), *(share.findings for share in loop.shares.values()))
    return [f"F-{id}" for findings in rounds for id in findings]


def rollbacks_of(state: RunState, loop: Loop) -> tuple[RollbackReport, ...]:
    """The rounds of a loop, or of one that it continues, that were rolled back."""
    own = {number for number, event in state.rollbacks.items() if loop.id == event.loop or loop.id in event.shares}
    rounds = (rolled_back_round(state, number) for number in sorted(own.union(loop.rollbacks)))
    return tuple(
        RollbackReport(
            each.round,
            each.targets,
            each.versions,
            each.why,
            tuple(id for finding in each.caused for id in (finding.id, *finding.same_as)),
            each.by,
            each.files_kept,
        )
        for each in rounds
    )


def _loop(state: RunState, loop: Loop, findings: list[str], history: LoopHistory) -> LoopReport:
    raised = loop.feedback
    return LoopReport(
        loop.id,
        loop.kind_name,
        loop.source,
        loop.targets,
        loop.state,
        loop.round,
        loop.routed_by,
        loop.caused_by,
        loop.follows,
        tuple(sorted({*findings, *_given(loop)}, key=lambda name: int(name[2:]))),
        loop.breach,
        loop.resolution,
        raised.message if raised else "",
        loop.severity,
        loop.blocking,
        loop.options,
        loop.positions,
        loop.choice,
        loop.acknowledged,
        raised.suggested_fix if raised else None,
        raised.requested_info if raised else None,
        raised.artifacts if raised else (),
        raised.requirement_id if raised else None,
        raised.details if raised else None,
        loop.advice,
        history.rounds,
        history.verdicts,
        rollbacks_of(state, loop),
    )


def listed_loops(report: Report) -> tuple[ListedLoop, ...]:
    """The loops of a report, each with its findings and the last changes that it is about."""
    return tuple(_listed(report, loop) for loop in report.loops)


def listed_refusals(report: Report) -> tuple[ListedLoop, ...]:
    """The feedback of a report that was refused, in the shape of loops: no loop was opened for it."""
    return tuple(
        ListedLoop(
            f"refused-{number}",
            each.kind,
            each.source,
            each.targets,
            "refused",
            0,
            "",
            None,
            None,
            (),
            None,
            None,
            reason=each.reason,
            **{name: getattr(each, name) for name in _SAID},
        )
        for number, each in enumerate(report.refused, 1)
    )


_SAID = (
    "message",
    "severity",
    "blocking",
    "suggested_fix",
    "requested_info",
    "artifacts",
    "requirement_id",
    "details",
    "options",
)


def _listed(report: Report, loop: LoopReport) -> ListedLoop:
    own, reworked = set(loop.findings), {step for turn in loop.history for step in turn.targets}
    steps = reworked.union(loop.targets) if loop.state not in FINAL else set()
    return ListedLoop(
        **{name: getattr(loop, name) for name in loop.__struct_fields__},
        findings_in_full=tuple(each for each in report.findings if each.id in own),
        changes=tuple(each for each in report.changes if each.step in steps),
    )


def _refusal(refused: RefusedFeedback) -> RefusalReport:
    said = refused.feedback
    if said is None:
        return RefusalReport(refused.source, refused.targets, refused.reason, refused.message)
    return RefusalReport(
        refused.source,
        refused.targets,
        refused.reason,
        said.message,
        said.word,
        said.severity,
        said.blocking,
        said.suggested_fix,
        said.requested_info,
        said.artifacts,
        said.requirement_id,
        said.details,
        said.options,
    )


def _finding(state: RunState, tracked: TrackedFinding) -> FindingReport:
    finding = tracked.finding
    return FindingReport(
        tracked.name,
        finding.description,
        finding.severity,
        tracked.status,
        tracked.found_by,
        tracked.phases,
        ", ".join(tracked.introduced_by) or None,
        tracked.rounds_seen,
        tracked.fix_authored,
        finding.test,
        finding.blocking,
        finding.category,
        finding.file,
        finding.line,
        tracked.loop,
        finding.requirement_id,
        tracked.gap,
        failed_before(state, tracked),
        tracked.note,
        finding.evidence,
        finding.impact,
        finding.path,
        finding.suggested_fix,
        finding.word,
        tracked.claim,
    )


def escalation_report(state: RunState, packet: Escalation, history: LoopHistory) -> EscalationReport:
    """One escalation as reports have it. `history` is that of its loop."""
    decided = packet.decided
    loop = state.loop(packet.loop) if packet.loop else _asked_to_choose(state, packet.step)
    raised = loop.feedback if loop else state.refused[packet.refused - 1].feedback if packet.refused else None
    given = [id for share in loop.shares.values() for id in share.findings] if loop else []
    findings = "; ".join(state.findings[id].finding.description for id in dict.fromkeys(given))
    return EscalationReport(
        packet.id,
        packet.loop,
        packet.step,
        packet.reason,
        packet.breach,
        packet.options,
        decided.choice if decided else None,
        decided.by if decided else "",
        raised.message if raised else findings,
        raised.options if raised else (),
        loop.positions if loop else (),
        decided.note if decided else "",
        decided.option if decided else None,
        "" if decided else sentence(state, packet, history),
        () if decided else choice_words(state, packet),
        packet.for_roles,
    )


def _asked_to_choose(state: RunState, step: str | None) -> Loop | None:
    """The loop in which a step that a person does has to choose."""
    for loop in state.loops.values():
        if loop.choosing and step in loop.shares and not loop.shares[step].done:
            return loop
    return None
