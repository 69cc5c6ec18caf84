"""The fold: from the events of a run to its state.

`evolve` only records what an event says, because `decide` has already made every judgement. `core/state/run.py` defines
the state; the other modules of `core/state/` fold the larger events.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from backedge.core import events as e
from backedge.core.errors import JournalDamaged
from backedge.core.state import version_0_1
from backedge.core.state.attempts import (
    answer_given,
    attempt_dropped,
    attempt_failed,
    attempt_limited,
    attempt_started,
    attempt_succeeded,
)
from backedge.core.state.escalations import (
    escalation_decided,
    escalation_expired,
    escalation_opened,
    escalation_reminded,
    loop_overdue,
)
from backedge.core.state.evidence import (
    baseline_recorded,
    evidence_recorded,
    protected_answered,
    verdicts_voided,
)
from backedge.core.state.findings import finding_reclassified, findings_contested, findings_settled, verdict_given
from backedge.core.state.loops import (
    choice_made,
    feedback_acknowledged,
    feedback_routed,
    loop_closed,
    loop_opened,
    position_taken,
    target_skipped,
)
from backedge.core.state.rollbacks import files_restored, rolled_back
from backedge.core.state.run import (
    ConditionResult,
    RunState,
    StepState,
    with_step,
)
from backedge.core.state.steps import steps_changed
from backedge.core.state.waits import feedback_rejoined, result_delivered, wait_began, wait_ended
from backedge.core.value import Json, replace
from backedge.core.workflow.graph import graph_of


def replay(events: Iterable[e.Event], state: RunState | None = None) -> RunState | None:
    """The state after these events of a journal, from the beginning or from a state; None if there are no events. Raises
    JournalDamaged, naming the event, if one of them cannot follow the events before it."""
    event: e.Event | None = None
    try:
        for event in events:
            state = evolve(state, event)
    except (LookupError, AttributeError, TypeError, ValueError, AssertionError) as error:
        seq, run = (state.seq + 1, f"run {state.run!r}") if state is not None else (1, "a run")
        raise JournalDamaged(
            f"event {seq} of {run} is damaged: {type(event).__name__} cannot follow the events before it "
            f"({type(error).__name__}: {error}); restore a backup"
        ) from error
    return state


def evolve(state: RunState | None, event: e.Event) -> RunState:
    """The state after one more event."""
    if state is None:
        if not isinstance(event, e.RunStarted):
            raise ValueError(f"the first event of a run is {type(event).__name__}: expected RunStarted")
        graph = graph_of(event.workflow)
        return RunState(
            run=event.run,
            graph=graph,
            started_at=event.at,
            last_at=event.at,
            seq=1,
            input=event.input,
            input_payload=event.input_payload,
            steps=dict.fromkeys(graph.steps, StepState()),
            steps_ever=len(event.workflow.steps),
        )
    after = _evolved(state, event)
    seq, last_at = state.seq + 1, event.at if event.at > state.last_at else state.last_at
    return replace(after, seq=seq, last_at=last_at)


def _evolved(state: RunState, event: e.Event) -> RunState:
    match event:
        case e.AttemptStarted():
            return attempt_started(state, event)
        case e.AttemptSucceeded():
            return attempt_succeeded(state, event)
        case e.EvidenceRecorded():
            return evidence_recorded(state, event)
        case e.VerdictGiven():
            return verdict_given(state, event)
        case e.BaselineRecorded():
            return baseline_recorded(state, event)
        case e.ProtectedAnswered():
            return protected_answered(state, event)
        case e.VerdictsVoided():
            return verdicts_voided(state, event)
        case e.FeedbackRouted():
            return feedback_routed(state, event)
        case e.RolledBack():
            return rolled_back(state, event)
        case e.FilesRestored():
            return files_restored(state, event)
        case e.LoopOpened():
            return loop_opened(state, event)
        case e.LoopClosed():
            return loop_closed(state, event)
        case e.RunEnded():
            return replace(state, ended=event)
        case e.AttemptFailed():
            return attempt_failed(state, event)
        case e.AttemptLimited():
            return attempt_limited(state, event)
        case e.AttemptDropped():
            return attempt_dropped(state, event)
        case e.RefusedFeedback():
            return replace(state, refused=state.refused.set(len(state.refused), event))
        case e.FeedbackAcknowledged():
            return feedback_acknowledged(state, event)
        case e.FeedbackRejoined():
            return feedback_rejoined(state, event)
        case e.AnswerGiven():
            return answer_given(state, event)
        case e.PositionTaken():
            return position_taken(state, event)
        case e.TargetSkipped():
            return target_skipped(state, event)
        case e.ChoiceMade():
            return choice_made(state, event)
        case e.WaitBegan():
            return wait_began(state, event)
        case e.WaitEnded():
            return wait_ended(state, event)
        case e.ResultDelivered():
            return result_delivered(state, event)
        case e.EscalationOpened():
            return escalation_opened(state, event)
        case e.LoopOverdue():
            return loop_overdue(state, event)
        case e.EscalationReminded():
            return escalation_reminded(state, event)
        case e.EscalationExpired():
            return escalation_expired(state, event)
        case e.EscalationDecided():
            return escalation_decided(state, event)
        case e.StepSkipped():
            step = replace(state.steps[event.step], skipped_by_decision=True)
            fixes = {id: fix for id, fix in state.fixes.items() if event.step not in fix.steps}
            return with_step(state, event.step, step, has_accepted=True, fixes=fixes)
        case e.ConditionEvaluated():
            basis = event.basis or version_0_1.condition_basis(state, event.step)
            result = ConditionResult(event.met, basis, event.loops)
            return with_step(
                state, event.step, replace(state.steps[event.step], condition=result, condition_false=not event.met)
            )
        case e.FindingsSettled():
            return findings_settled(state, event)
        case e.FindingsContested():
            return findings_contested(state, event)
        case e.FindingReclassified():
            return finding_reclassified(state, event)
        case e.StepsChanged():
            return steps_changed(state, event)
        case e.InputChanged():
            return replace(state, input=event.input, input_payload=None)
        case e.ValueSet():
            return replace(state, values=with_value(state.values, event.path, event.value))
        case e.CheckpointSaved():
            return replace(state, checkpoints={**state.checkpoints, event.name: state.values})
        case e.CheckpointRestored():
            return replace(state, values=state.checkpoints[event.name])
        case e.FeedbackRead():
            return replace(state, read={**state.read, event.step: (*state.read.get(event.step, ()), *event.loops)})
        case e.FileImported():
            return replace(state, imported=event)
        case e.RunPaused():
            return replace(state, paused_by=event.by)
        case e.RunResumed():
            return replace(state, paused_by=None)
        case e.RunRecovered():
            return replace(state, seconds_worked=state.seconds_at_work(state.last_at), busy_since=event.at)
        case e.RunStarted():
            raise ValueError(f"run {state.run!r} has a second RunStarted: expected it only as the first event")
        case _:
            assert_never(event)


def with_value(values: Json, path: str, value: Json) -> Json:
    """The values with one more at a dotted path. Missing parents are created."""
    key, _, rest = path.partition(".")
    child = values.get(key, {}) if rest else None
    return {**values, key: with_value(child, rest, value) if rest else value}
