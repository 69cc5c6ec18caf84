"""The rules, as one function: what happens when a command meets a state."""

from __future__ import annotations

from typing import assert_never

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.accidents import one_line
from backedge.core.choosing import choice_problem, take_position
from backedge.core.context import keep_values, read_feedback, restore_values, set_value
from backedge.core.decisions import decide_escalation, done_by_hand, reclassify, spelled
from backedge.core.draft import Draft, end_run, escalate_step
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound
from backedge.core.judging import check_inputs, judge
from backedge.core.limits import BUDGETS, first_breach
from backedge.core.loops import LoopState
from backedge.core.measuring import judged
from backedge.core.model import ASIDE, HUMAN, Breach, Outcome
from backedge.core.near import nearest
from backedge.core.pending import checked_first
from backedge.core.raising import raise_feedback, verify_by_doing
from backedge.core.replanning import plan_problem, replan
from backedge.core.settle import settle, start_attempt
from backedge.core.shapes import call_for_help, exhausted, repeats
from backedge.core.state import REPEAT, Running, RunState, delivers, evolve
from backedge.core.survey import ready
from backedge.core.value import replace
from backedge.core.verdicts import contradiction, left_aside, verdict_of, with_known_phases, with_stated_findings
from backedge.core.workflow import Step, Workflow

FIRST_RETRY = 0.5
LONGEST_RETRY = 30.0


def decide(state: RunState | None, command: c.Command, now: float, room: int = 0) -> tuple[e.Event, ...]:
    """The events that follow from a command: all of them, or none.

    `room` is how many attempts may start; a process that does not execute the run says 0. Raises IllegalCommand, with
    the reason, for a command that answers nothing that is pending.
    """
    return transact(state, command, now, room)[0]


def transact(
    state: RunState | None, command: c.Command, now: float, room: int = 0
) -> tuple[tuple[e.Event, ...], RunState]:
    """What `decide` says, with the state that it leads to."""
    if state is None and isinstance(command, c.ImportFile):
        return _imported(command, now)
    if state is None:
        if not isinstance(command, c.StartRun):
            raise NotFound(f"the run does not exist: it has to be started before {type(command).__name__}")
        started = e.RunStarted(now, command.run, command.workflow, command.input, command.input_payload)
        draft = Draft(evolve(None, started), now, room)
        draft.events.append(started)
    else:
        draft = Draft(state, now, room)
        _apply(draft, command)
    settle(draft)
    return tuple(draft.events), draft.state


def _imported(command: c.ImportFile, now: float) -> tuple[tuple[e.Event, ...], RunState]:
    """A run that has ended when it begins. Its one step stands for the file; nobody ever does it."""
    started = e.RunStarted(now, command.run, Workflow(command.name, (Step("import", agents=(HUMAN,)),)))
    draft = Draft(evolve(None, started), now, room=0)
    draft.events.append(started)
    draft.add(e.FileImported(now, command.form, command.name, command.text))
    draft.add(e.RunEnded(now, "imported"))
    return tuple(draft.events), draft.state


def _apply(draft: Draft, command: c.Command) -> None:
    state = draft.state
    match command:
        case c.StartRun():
            raise IllegalCommand(f"run {command.run!r} was started before: resume it, or choose another id")
        case c.ImportFile():
            raise AlreadyClosed(
                f"{command.name} was imported before, as run {command.run!r}: there is nothing left to do"
            )
        case c.Proceed():
            return
        case c.FinishAttempt():
            draft.mentions = command.mentions
            _finish(draft, command)
        case c.FailAttempt():
            running = _running(state, command.step, command.attempt)
            _fail(draft, running, command)
        case c.DropAttempt():
            _drop(draft, command)
        case c.CheckedInputs():
            _check(draft, command)
        case c.RaiseFeedback():
            draft.mentions = command.mentions
            _raise(draft, command)
        case c.Await():
            _await(draft, command)
        case c.StopWaiting():
            running = _running(state, command.step, command.attempt)
            if command.loop in running.awaits:
                draft.add(e.WaitEnded(draft.now, command.loop, command.step, command.attempt))
        case c.Acknowledge():
            _acknowledge(draft, command)
        case c.Decide():
            command = spelled(command)
            decide_escalation(draft, command)
            done = done_by_hand(draft, command)
            if done is not None:
                _finish(draft, done)
        case c.Reclassify():
            reclassify(draft, command)
        case c.ChangeInput():
            _refuse_ended(state)
            draft.add(e.InputChanged(draft.now, command.input))
        case c.SetValue():
            set_value(draft, command)
        case c.KeepValues():
            keep_values(draft, command)
        case c.RestoreValues():
            restore_values(draft, command)
        case c.ReadFeedback():
            read_feedback(draft, command)
        case c.Pause():
            _refuse_ended(state)
            if state.paused_by is None:
                draft.add(e.RunPaused(draft.now, command.by))
        case c.Resume():
            if state.paused_by is not None:
                draft.add(e.RunResumed(draft.now, command.by))
        case c.Cancel():
            _refuse_ended(state)
            by = one_line(command.by)
            reason = one_line(command.reason) or (f"cancelled by {by}" if by else "cancelled")
            end_run(draft, "cancelled", reason, by or "a person")
        case _:
            assert_never(command)


def _refuse_ended(state: RunState) -> None:
    if state.ended is not None:
        raise AlreadyClosed(f"run {state.run!r} has ended: {state.ended.outcome}")


def _running(state: RunState, step: str, attempt: int) -> Running:
    if step not in state.steps:
        raise NotFound(f"step {step!r} is not in run {state.run!r}: use one of {', '.join(state.steps)}")
    running = state.steps[step].running
    if running is None or running.attempt != attempt:
        now = f"attempt {running.attempt} is" if running else "no attempt is"
        raise IllegalCommand(f"attempt {attempt} of step {step!r} is not running: {now}")
    return running


def _finish(draft: Draft, command: c.FinishAttempt) -> None:
    state, name, outcome = draft.state, command.step, command.outcome
    running = _running(state, name, command.attempt)
    if state.ended is not None:
        draft.add(e.AttemptDropped(draft.now, name, command.attempt, "interrupted", outcome.usage, command.seconds))
        return
    outcome = with_known_phases(state, outcome)
    error = None
    if name in state.graph.measures:
        try:
            outcome = judged(state.graph, name, outcome)
        except ValueError as wrong:
            error = str(wrong)
    error = error or _nonsense(state, name, running, outcome) or plan_problem(state, name, running, command.plan)
    if error is not None:
        failed = c.FailAttempt(
            name, command.attempt, error, outcome.usage, command.seconds, command.log, command.session
        )
        _fail(draft, running, failed)
        return
    word = verdict_of(state, name, outcome) if state.graph.is_judge(name) and running.mode not in ASIDE else None
    outcome = with_stated_findings(outcome)
    replan(draft, name, running, command.plan)
    draft.add(
        e.AttemptSucceeded(
            draft.now,
            name,
            command.attempt,
            outcome.made,
            outcome.summary,
            outcome.claims,
            outcome.usage,
            command.seconds,
            command.log,
            command.session,
            left_aside(running.mode, outcome),
        )
    )
    if running.mode == "answer":
        for loop in running.loops:
            if delivers(draft.state, loop, name):
                draft.add(e.AnswerGiven(draft.now, loop, name, outcome.answer))
    elif running.mode == "decide":
        assert outcome.decision is not None
        if delivers(draft.state, running.loops[0], name):
            take_position(draft, running.loops[0], name, outcome.decision)
    elif not repeats(draft.state, name):
        # Repeated in vain, it asks for help as if its agent had: once more is the next round.
        plea = call_for_help(draft.state, name)
        if plea is not None:
            outcome = replace(outcome, feedback=(*outcome.feedback, plea))
        verify_by_doing(draft, name, running, outcome.feedback)
    if word is not None:
        judge(draft, name, command.attempt, outcome, word)
    for item in outcome.feedback:
        raise_feedback(draft, name, item, running)
    if running.mode not in ASIDE:
        _give_in(draft, name)


def _give_in(draft: Draft, name: str) -> None:
    """Ask a person about a step that was repeated as often as it may be, unless another step was asked for help."""
    reason = exhausted(draft.state, name)
    if reason is None:
        return
    repeat, turns = draft.state.graph.steps[name].repeat, draft.state.steps[name].turns
    assert repeat is not None
    helped = any(loop.source == name and repeat.to in loop.targets for loop in draft.state.loops.values())
    if not helped:
        escalate_step(draft, name, Breach(REPEAT, turns, turns), reason)


def _nonsense(state: RunState, name: str, running: Running, outcome: Outcome) -> str | None:
    """Why an outcome cannot be one of this step; None if it can."""
    if running.mode == "answer":
        return "no answer: the step was asked a question" if outcome.answer is None else None
    if running.mode == "decide":
        asked = state.loop(running.loops[0])
        assert asked is not None
        return choice_problem(asked, outcome.decision)
    if state.graph.is_judge(name):
        return contradiction(state, name, outcome)
    if outcome.verdict is not None or outcome.findings:
        return f"step {name!r} judges nothing, but gave a verdict or findings: raise feedback instead"
    given = {f"F-{id}" for id in (*running.given, *running.kept)}
    for claim in outcome.claims:
        if claim.finding not in given:
            return f"resolutions name {claim.finding!r}, which was not given to {name!r} ({', '.join(sorted(given))})"
        if claim.status not in ("fixed", "contested"):
            return f"resolutions say {claim.status!r} of {claim.finding}: who reworks says fixed or contested"
    return None


def _fail(draft: Draft, running: Running, command: c.FailAttempt) -> None:
    name, error = command.step, command.error
    streak = draft.state.steps[name].errors
    wait = min(FIRST_RETRY * 2 ** min(streak, 10), LONGEST_RETRY)
    draft.add(
        e.AttemptFailed(
            draft.now,
            name,
            running.attempt,
            error,
            draft.now + wait,
            command.usage,
            command.seconds,
            command.log,
            command.session,
        )
    )
    if draft.state.ended is None:
        breach = first_breach(draft.state, draft.now, step=name)
        if breach is not None and breach.limit not in BUDGETS:
            escalate_step(draft, name, breach, f"agent of {name!r} keeps breaking: {error}")


def _drop(draft: Draft, command: c.DropAttempt) -> None:
    _running(draft.state, command.step, command.attempt)
    draft.add(
        e.AttemptDropped(draft.now, command.step, command.attempt, command.reason, command.usage, command.seconds)
    )
    asks = draft.state.graph.steps[command.step].on_doubt == "ask"
    if command.reason == "in doubt" and asks and draft.state.ended is None:
        escalate_step(
            draft,
            command.step,
            None,
            f"attempt {command.attempt} of {command.step!r} is in doubt: {command.why}; continue runs it again",
        )


def _check(draft: Draft, command: c.CheckedInputs) -> None:
    start = next((s for s in ready(draft.state, draft.now) if s.step == command.step), None)
    if start is None or not checked_first(draft.state, start):
        raise IllegalCommand(f"step {command.step!r} is not waiting for a check of its inputs")
    for producer, _ in command.problems:
        if producer not in draft.state.graph.needs[command.step]:
            raise IllegalCommand(f"step {command.step!r} does not need {producer!r}: it cannot have rejected it")
    if check_inputs(draft, command.step, command.problems):
        # The check may have closed the one loop that this step was to go on for while the run is paused.
        start = next((s for s in ready(draft.state, draft.now) if s.step == command.step), None)
        if start is not None:
            start_attempt(draft, start)


def _raise(draft: Draft, command: c.RaiseFeedback) -> None:
    state, source = draft.state, command.source
    if state.ended is not None and state.ended.outcome in ("failed", "cancelled", "imported"):
        _refuse_ended(state)
    if source != HUMAN and source not in state.steps:
        raise NotFound(f"source {source!r} is unknown: {nearest(source, (*state.steps, HUMAN))}")
    running = _running(state, source, command.attempt) if command.attempt else None
    raise_feedback(draft, source, command.feedback, running)


def _await(draft: Draft, command: c.Await) -> None:
    running = _running(draft.state, command.step, command.attempt)
    loop = draft.state.loop(command.loop)
    if loop is None or loop.source != command.step:
        raise NotFound(f"step {command.step!r} did not raise {command.loop!r}: it can wait only for what it raised")
    if loop.open and loop.state is not LoopState.ESCALATING and not loop.told and loop.id not in running.awaits:
        draft.add(e.WaitBegan(draft.now, loop.id, command.step, command.attempt))


def _acknowledge(draft: Draft, command: c.Acknowledge) -> None:
    loop = draft.state.loop(command.loop)
    if loop is None:
        raise NotFound(f"loop {command.loop!r} is unknown: open are {', '.join(draft.state.loops) or 'none'}")
    if not loop.open:
        raise AlreadyClosed(f"loop {loop.id} is {loop.state}: there is nothing left to acknowledge")
    if command.target not in loop.targets:
        targets = ", ".join(loop.targets)
        raise IllegalCommand(f"{command.target!r} is not a target of {loop.id}: only {targets} can acknowledge it")
    if command.target in loop.acknowledged:
        raise AlreadyClosed(f"{command.target!r} has acknowledged {loop.id} already: the first word stands")
    draft.add(e.FeedbackAcknowledged(draft.now, loop.id, command.target, command.message, command.action, command.eta))
