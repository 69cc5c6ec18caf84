"""`decide`: the events that follow from a state and a command. All rules are reached from here."""

from __future__ import annotations

from typing import assert_never

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.breaches import first_breach
from backedge.core.checks import with_verdict
from backedge.core.context import read_feedback, restore_checkpoint, save_checkpoint, set_value
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound, WorkflowError
from backedge.core.escalation.answering import decide_escalation, outcome_by_hand, reclassify, with_plain_choice
from backedge.core.escalation.by_hand import escalate_by_hand, open_loop, resolve_loop, withdraw_loop
from backedge.core.escalation.expiring import keep_deadlines
from backedge.core.escalation.opening import escalate_step
from backedge.core.evidence.delivered import judged_files, with_later_tree
from backedge.core.evidence.protected import answer_as_reviewer, approval_problem, findings_of, with_rejections
from backedge.core.evidence.values import NO_EVIDENCE
from backedge.core.feedback.closing import end_run
from backedge.core.feedback.judging import check_inputs, record_verdict
from backedge.core.feedback.loop import LoopState
from backedge.core.feedback.raising import feedback_problem, raise_feedback, resolve_by_rerun, said_words
from backedge.core.feedback.rollback import report_restored
from backedge.core.feedback.voting import choice_problem, lose_target, take_position
from backedge.core.findings.answerable import answerable
from backedge.core.findings.verdicts import (
    contradiction,
    ignored_fields_warning,
    overruled_warning,
    verdict_of,
    with_known_phases,
    with_stated_findings,
)
from backedge.core.model import HUMAN, SIDE_MODES, Breach, Outcome, VerdictWord
from backedge.core.planning import plan_problem, replan
from backedge.core.scheduling.pending import needs_input_check
from backedge.core.scheduling.provider_wait import provider_wait_reason, seconds_to_wait
from backedge.core.scheduling.scheduler import ready
from backedge.core.scheduling.settle import settle, start_attempt
from backedge.core.scheduling.skipping import exhausted_reason, help_request, must_repeat, repeat_count_after
from backedge.core.scheduling.staleness import artifact_digest
from backedge.core.state.attempts import still_answers
from backedge.core.state.evolve import evolve
from backedge.core.state.run import PROVIDER_WAIT, REPEAT, Running, RunState
from backedge.core.suggestions import did_you_mean
from backedge.core.text import printable_line
from backedge.core.transaction import Transaction
from backedge.core.value import replace
from backedge.core.workflow.definition import Step, Workflow
from backedge.core.workflow.limits import BUDGETS
from backedge.core.workflow.validate import problems_of

FIRST_RETRY = 0.5
LONGEST_RETRY = 30.0


def decide(state: RunState | None, command: c.Command, now: float, free_slots: int = 0) -> tuple[e.Event, ...]:
    """The events that follow from a command: all of them, or none.

    `free_slots` is how many attempts may start. It is 0 in a process that does not execute the run. Raises
    IllegalCommand, with the reason, if the command does not answer anything that is pending.
    """
    return transact(state, command, now, free_slots)[0]


def transact(
    state: RunState | None, command: c.Command, now: float, free_slots: int = 0
) -> tuple[tuple[e.Event, ...], RunState]:
    """The events of `decide`, with the state that they lead to."""
    if state is None and isinstance(command, c.ImportFile):
        return _imported(command, now)
    if state is None:
        if not isinstance(command, c.StartRun):
            raise NotFound(f"the run does not exist: start it before {type(command).__name__}")
        if problems := problems_of(command.workflow):
            raise WorkflowError(problems)
        started = e.RunStarted(now, command.run, command.workflow, command.input, command.input_payload, command.files)
        tx = Transaction(evolve(None, started), now, free_slots)
        tx.events.append(started)
        for baseline in command.baselines:
            tx.add(e.BaselineRecorded(now, baseline))
    else:
        tx = Transaction(state, now, free_slots)
        _apply(tx, command)
        keep_deadlines(tx)
    settle(tx)
    return tuple(tx.events), tx.state


def _imported(command: c.ImportFile, now: float) -> tuple[tuple[e.Event, ...], RunState]:
    """A run that ends as it starts. Its one step represents the file and is never executed."""
    started = e.RunStarted(now, command.run, Workflow(command.name, (Step("import", agents=(HUMAN,)),)))
    tx = Transaction(evolve(None, started), now, free_slots=0)
    tx.events.append(started)
    tx.add(e.FileImported(now, command.form, command.name, command.text, reading=3))
    tx.add(e.RunEnded(now, "imported"))
    return tuple(tx.events), tx.state


def _apply(tx: Transaction, command: c.Command) -> None:
    state = tx.state
    match command:
        case c.StartRun():
            raise IllegalCommand(f"run {command.run!r} already exists: resume it, or choose another id")
        case c.ImportFile():
            raise AlreadyClosed(
                f"{command.name} was already imported as run {command.run!r}: there is nothing left to do"
            )
        case c.Proceed():
            return
        case c.Recover():
            if state.ended is None and state.busy:
                tx.add(e.RunRecovered(tx.now))
        case c.FinishAttempt():
            tx.mentions = command.mentions
            _finish(tx, command)
        case c.FailAttempt():
            running = _running(state, command.step, command.attempt)
            _fail(tx, running, command)
        case c.LimitAttempt():
            running = _running(state, command.step, command.attempt)
            _limit(tx, running, command)
        case c.DropAttempt():
            _drop(tx, command)
        case c.ReportInputCheck():
            _check(tx, command)
        case c.ReportRestored():
            report_restored(tx, command)
        case c.RaiseFeedback():
            tx.mentions = command.mentions
            _raise(tx, command)
        case c.BeginWait():
            _await(tx, command)
        case c.EndWait():
            running = _running(state, command.step, command.attempt)
            if command.loop in running.awaits:
                tx.add(e.WaitEnded(tx.now, command.loop, command.step, command.attempt))
        case c.Acknowledge():
            _acknowledge(tx, command)
        case c.Decide():
            command = with_plain_choice(command)
            decide_escalation(tx, command)
            by_hand = outcome_by_hand(tx, command)
            if by_hand is not None:
                _finish(tx, by_hand)
        case c.ResolveLoop():
            resolve_loop(tx, command)
        case c.EscalateLoop():
            escalate_by_hand(tx, command)
        case c.WithdrawLoop():
            withdraw_loop(tx, command)
        case c.Reclassify():
            reclassify(tx, command)
        case c.ChangeInput():
            _refuse_ended(state)
            tx.add(e.InputChanged(tx.now, command.input))
        case c.SetValue():
            set_value(tx, command)
        case c.SaveCheckpoint():
            save_checkpoint(tx, command)
        case c.RestoreCheckpoint():
            restore_checkpoint(tx, command)
        case c.ReadFeedback():
            read_feedback(tx, command)
        case c.Pause():
            _refuse_ended(state)
            if state.paused_by is None:
                tx.add(e.RunPaused(tx.now, command.by))
        case c.Resume():
            if state.ended is None and state.paused_by is not None:
                tx.add(e.RunResumed(tx.now, command.by))
        case c.Cancel():
            _refuse_ended(state)
            by = printable_line(command.by)
            reason = printable_line(command.reason) or (f"cancelled by {by}" if by else "cancelled")
            end_run(tx, "cancelled", reason, by or "a person")
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
        current = f"attempt {running.attempt} is" if running else "no attempt is"
        raise IllegalCommand(
            f"attempt {attempt} of step {step!r} is not running ({current}): report only a running attempt"
        )
    return running


def _finish(tx: Transaction, command: c.FinishAttempt) -> None:
    """Record what a finished attempt made, and apply its outcome."""
    state, name = tx.state, command.step
    running = _running(state, name, command.attempt)
    if state.ended is not None:
        usage = command.outcome.usage
        tx.add(e.AttemptDropped(tx.now, name, command.attempt, "interrupted", usage, command.seconds))
        return
    plans = bool(command.plan.add or command.plan.remove)
    try:
        outcome = _validated(state, name, running, command)
        if plans and (refusal := plan_problem(state, name, running, command.plan)) is not None:
            raise ValueError(refusal)
    except ValueError as problem:
        usage, log, session, seen = command.outcome.usage, command.log, command.session, command.evidence
        failed = c.FailAttempt(name, command.attempt, str(problem), usage, command.seconds, log, session, seen)
        _fail(tx, running, failed)
        return
    judges = name in state.graph.judges and running.mode not in SIDE_MODES
    word = verdict_of(state, name, outcome) if judges else None
    outcome = with_stated_findings(outcome)
    if plans:
        replan(tx, name, running, command.plan)
    _record_success(tx, running, command, outcome, word)
    _record_evidence(tx, running, command)
    match running.mode:
        case "answer":
            for loop in running.loops:
                if still_answers(tx.state, loop, name):
                    tx.add(e.AnswerGiven(tx.now, loop, name, outcome.answer))
        case "decide":
            assert outcome.decision is not None
            if still_answers(tx.state, running.loops[0], name):
                take_position(tx, running.loops[0], name, outcome.decision)
        case _:
            outcome = _resolve_own_loops(tx, running, name, outcome)
    if word is not None:
        record_verdict(tx, name, command.attempt, outcome, word)
        answer_as_reviewer(tx, name, running, outcome, word)
    for item in outcome.feedback:
        raise_feedback(tx, name, item, running)
    if name in tx.state.graph.until_conditions and running.mode not in SIDE_MODES:
        _escalate_exhausted_repeat(tx, name)


def _validated(state: RunState, name: str, running: Running, command: c.FinishAttempt) -> Outcome:
    """The outcome in the form that the rules work on. Raises ValueError, with the reason, if this step cannot have it."""
    outcome = with_known_phases(state, command.outcome)
    if name in state.graph.engine_judges:
        outcome = with_verdict(state.graph, name, outcome)
    problem = None
    if running.mode not in SIDE_MODES:
        problem = approval_problem(running, outcome)
        outcome = with_rejections(state, outcome, findings_of(state, name, command.evidence))
    problem = problem or _outcome_problem(state, name, running, outcome)
    if problem is not None:
        raise ValueError(problem)
    for item in outcome.feedback:
        # The agent is asked again, so that nothing it saw is lost.
        wrong = feedback_problem(state, name, item, command.mentions)
        if wrong is not None:
            raise ValueError(f"its feedback can go nowhere: {wrong}{said_words(item)}")
    return outcome


def _record_evidence(
    tx: Transaction, running: Running, command: c.FinishAttempt | c.FailAttempt | c.LimitAttempt
) -> None:
    """Record what backedge itself saw of an attempt."""
    seen = command.evidence
    if seen != NO_EVIDENCE:
        seen = with_later_tree(tx.state, command.step, running, seen)
        overtakes = judged_files(tx.state, command.step, seen.files)
        tx.add(e.EvidenceRecorded(tx.now, command.step, command.attempt, seen, overtakes))


def _record_success(
    tx: Transaction, running: Running, command: c.FinishAttempt, outcome: Outcome, word: VerdictWord | None
) -> None:
    state, name = tx.state, command.step
    warnings = (ignored_fields_warning(running.mode, outcome), overruled_warning(state, name, outcome, word))
    repeats = name in state.graph.until_conditions and running.mode not in SIDE_MODES
    tx.add(
        e.AttemptSucceeded(
            tx.now,
            name,
            command.attempt,
            outcome.made,
            outcome.summary,
            outcome.resolutions,
            outcome.usage,
            command.seconds,
            command.log,
            command.session,
            "; ".join(filter(None, warnings)),
            artifact_digest(state, name, outcome.made, running),
            repeat_count_after(state, name) if repeats else None,
            outcome.confidence,
        )
    )


def _resolve_own_loops(tx: Transaction, running: Running, name: str, outcome: Outcome) -> Outcome:
    """Resolve the loops that a step raised earlier, except those it raises again. A step that has used up its
    repetitions asks for help, as if its agent had raised that feedback."""
    if name in tx.state.graph.until_conditions:
        if must_repeat(tx.state, name):
            return outcome
        request = help_request(tx.state, name)
        if request is not None:
            outcome = replace(outcome, feedback=(*outcome.feedback, request))
    if tx.state.loops:
        resolve_by_rerun(tx, name, running, outcome.feedback)
    return outcome


def _escalate_exhausted_repeat(tx: Transaction, name: str) -> None:
    """Ask a person about a step that has used up its repetitions, unless another step was asked for help."""
    reason = exhausted_reason(tx.state, name)
    if reason is None:
        return
    repeat, times = tx.state.graph.steps[name].repeat, tx.state.steps[name].repeats
    assert repeat is not None
    help_requested = any(loop.source == name and repeat.to in loop.targets for loop in tx.state.loops.values())
    if not help_requested:
        escalate_step(tx, name, Breach(REPEAT, times, times), reason)


def _outcome_problem(state: RunState, name: str, running: Running, outcome: Outcome) -> str | None:
    """Why this step cannot have this outcome; None if it can."""
    if running.mode == "answer":
        return (
            "the outcome has no answer, but the step was asked a question: return `answer`"
            if outcome.answer is None
            else None
        )
    if running.mode == "decide":
        loop = state.loop(running.loops[0])
        assert loop is not None
        return choice_problem(state, loop, outcome.decision)
    if name in state.graph.judges:
        return contradiction(state, name, running, outcome)
    if outcome.verdict is not None or outcome.findings:
        return f"step {name!r} is not a judge, but returned a verdict or findings: raise feedback instead"
    delivered = answerable(state, name, running) if outcome.resolutions else ()
    for said in outcome.resolutions:
        if said.finding not in delivered:
            known = ", ".join(sorted(delivered)) or "no findings"
            return f"resolutions name {said.finding!r}, but {name!r} was given {known}"
        if said.status not in ("fixed", "contested"):
            return (
                f"resolution of {said.finding} is {said.status!r}; a reworking step may report only fixed or contested"
            )
    return None


def _fail(tx: Transaction, running: Running, command: c.FailAttempt) -> None:
    name, error = command.step, command.error
    streak = tx.state.steps[name].errors
    wait = min(FIRST_RETRY * 2 ** min(streak, 10), LONGEST_RETRY)
    tx.add(
        e.AttemptFailed(
            tx.now,
            name,
            running.attempt,
            error,
            tx.now + wait,
            command.usage,
            command.seconds,
            command.log,
            command.session,
        )
    )
    _record_evidence(tx, running, command)
    if tx.state.ended is None:
        breach = first_breach(tx.state, tx.now, step=name)
        if breach is not None and breach.limit not in BUDGETS:
            _hand_over(tx, name, running, breach, f"the agent of {name!r} keeps ending with an error: {error}")
        elif command.lasting:
            _hand_over(tx, name, running, None, f"{name!r} would end with the same error again: {error}")


def _hand_over(tx: Transaction, name: str, running: Running, breach: Breach | None, reason: str) -> None:
    """Ask a person about a step whose attempt did not end well."""
    if running.mode == "decide" and still_answers(tx.state, running.loops[0], name):
        lose_target(tx, running.loops[0], name, breach, reason)
    else:
        escalate_step(tx, name, breach, reason)


def _limit(tx: Transaction, running: Running, command: c.LimitAttempt) -> None:
    """Let a step wait for a limit of its provider; ask a person if that takes longer than it may."""
    name, stated = command.step, command.wait is not None
    retry_at = tx.now + seconds_to_wait(tx.state.steps[name], command.wait)
    tx.add(
        e.AttemptLimited(
            tx.now,
            name,
            running.attempt,
            command.message,
            retry_at,
            stated,
            command.usage,
            command.seconds,
            command.log,
            command.session,
        )
    )
    _record_evidence(tx, running, command)
    if tx.state.ended is None:
        breach = first_breach(tx.state, tx.now, step=name)
        if breach is not None and breach.limit == PROVIDER_WAIT:
            escalate_step(tx, name, breach, provider_wait_reason(name, command.message, breach))


def _drop(tx: Transaction, command: c.DropAttempt) -> None:
    running = _running(tx.state, command.step, command.attempt)
    tx.add(e.AttemptDropped(tx.now, command.step, command.attempt, command.reason, command.usage, command.seconds))
    ask = tx.state.graph.steps[command.step].on_doubt == "ask"
    if command.reason == "in doubt" and ask and tx.state.ended is None:
        _hand_over(
            tx,
            command.step,
            running,
            None,
            f"attempt {command.attempt} of {command.step!r} is in doubt: {command.why}; continue runs it again",
        )


def _check(tx: Transaction, command: c.ReportInputCheck) -> None:
    start = next((s for s in ready(tx.state, tx.now) if s.step == command.step), None)
    if start is None or not needs_input_check(tx.state, start):
        raise IllegalCommand(
            f"step {command.step!r} is not waiting for an input check: report one only when the engine requests it"
        )
    for producer, _ in command.problems:
        if producer not in tx.state.graph.needs[command.step]:
            raise IllegalCommand(
                f"step {command.step!r} does not need {producer!r}: it can reject only the outputs of its needs"
            )
    if check_inputs(tx, command.step, command.problems):
        # The check may have closed the loop that let this step start while the run is paused.
        start = next((s for s in ready(tx.state, tx.now) if s.step == command.step), None)
        if start is not None:
            start_attempt(tx, start)


def _raise(tx: Transaction, command: c.RaiseFeedback) -> None:
    state, source = tx.state, command.source
    if state.ended is not None and state.ended.outcome in ("failed", "cancelled", "imported"):
        _refuse_ended(state)
    if source != HUMAN and source not in state.steps:
        raise NotFound(f"unknown source {source!r}: {did_you_mean(source, (*state.steps, HUMAN))}")
    running = _running(state, source, command.attempt) if command.attempt else None
    raise_feedback(tx, source, command.feedback, running)


def _await(tx: Transaction, command: c.BeginWait) -> None:
    running = _running(tx.state, command.step, command.attempt)
    loop = tx.state.loop(command.loop)
    if loop is None or loop.source != command.step:
        raise NotFound(
            f"step {command.step!r} did not raise {command.loop!r}: it can wait only for feedback that it raised"
        )
    if (
        loop.open
        and loop.state is not LoopState.ESCALATING
        and not loop.result_delivered
        and loop.id not in running.awaits
    ):
        tx.add(e.WaitBegan(tx.now, loop.id, command.step, command.attempt))


def _acknowledge(tx: Transaction, command: c.Acknowledge) -> None:
    loop = open_loop(tx.state, command.loop, "acknowledge")
    if command.target not in loop.targets:
        targets = ", ".join(loop.targets)
        raise IllegalCommand(f"{command.target!r} is not a target of {loop.id}: only {targets} can acknowledge it")
    if command.target in loop.acknowledged:
        raise AlreadyClosed(f"{command.target!r} has already acknowledged {loop.id}: the first acknowledgement stands")
    tx.add(e.FeedbackAcknowledged(tx.now, loop.id, command.target, command.message, command.action, command.eta))
