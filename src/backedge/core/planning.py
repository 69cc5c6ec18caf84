"""How a planner changes the run: whether the change is allowed, and which loops and questions it closes.

The bound on attempts holds although the run grows. All steps that ever existed count towards `max_steps`, and each is
executed at most once, plus once for every execution that feedback asked for. So a planner that does not rework feedback
(its first run, or a rerun because its input changed) may not change a step that has run, unless that step is downstream
of it: downstream steps run again on its new output anyway.
"""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.feedback.closing import close_loop
from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.model import HUMAN, SIDE_MODES, Resolution, Status
from backedge.core.state.attempts import still_answers
from backedge.core.state.run import Running, RunState
from backedge.core.suggestions import did_you_mean
from backedge.core.transaction import Transaction
from backedge.core.value import replace
from backedge.core.workflow.bound import max_attempts
from backedge.core.workflow.definition import Step
from backedge.core.workflow.plan import Plan, group_members_added, requests_new_steps, with_plan
from backedge.core.workflow.validate import problems_of


def new_part_of(state: RunState, plan: Plan) -> Plan:
    """The part of a plan that is new: a planner that runs again may repeat its earlier plan."""
    known = [step.name for step in plan.add if step.name in state.specs and _same(state, plan, step.name)]
    return replace(
        plan,
        add=tuple(step for step in plan.add if step.name not in known),
        remove=tuple(dict.fromkeys(name for name in plan.remove if name in state.steps or name not in state.retired)),
        specs={name: spec for name, spec in plan.specs.items() if name not in known},
    )


def _same(state: RunState, plan: Plan, name: str) -> bool:
    return bool(state.specs[name] == plan.specs.get(name))


def may_plan(state: RunState, name: str) -> bool:
    return state.graph.steps[name].plans


def not_a_planner(name: str) -> str:
    """The error for a step that changes the run without being a planner."""
    return f"step {name!r} adds or removes steps: only a step with `plans: true` may do that"


def plan_problem(state: RunState, name: str, running: Running, plan: Plan) -> str | None:
    """Why a step cannot change the run in this way; None if it can."""
    if not plan:
        return None
    if not may_plan(state, name):
        return not_a_planner(name)
    if running.mode in SIDE_MODES:
        return f"step {name!r} was asked a question: it may change steps only when it works, not when it answers"
    plan = new_part_of(state, plan)
    for each in plan.remove:
        known = [step.name for step in state.workflow.steps]
        if each not in known:
            return f"remove_steps names {each!r}, which is not a step: {did_you_mean(each, known)}"
    for each in (*plan.remove, *(step.name for step in plan.add)):
        problem = _change_problem(state, name, running, each)
        if problem is not None:
            return problem
    for step in plan.add:
        if step.plans_judges and not state.graph.steps[name].plans_judges:
            return (
                f"step {step.name!r} would plan judges, but {name!r} may not do that itself: use `plans: true`, or set "
                f"`plans: {{judges: true}}` for {name!r} in the workflow file"
            )
    problem = _group_problem(state, name, running, plan)
    if problem is not None:
        return problem
    both = [step.name for step in plan.add if step.name in plan.remove]
    if both:
        return f"step {both[0]!r} is both added and removed: just add it, which replaces the step with that name"
    bound, total = state.workflow.max_steps, state.steps_ever + len(plan.add)
    if total > bound:
        return (
            f"max_steps: {len(plan.add)} more would make {total} steps in this run, removed and replaced ones included, "
            f"and at most {bound} are allowed: add fewer"
        )
    changed = with_plan(state.workflow, plan.add, plan.remove, _gained(state, name, running, plan))
    problems = problems_of(changed)
    if problems:
        return f"the changed workflow cannot run: {'; '.join(problems)}"
    needed, promised = max_attempts(changed), max_attempts(state.workflow)
    if needed is not None and promised is not None and needed > promised:
        return _bound_problem(state, plan, needed, promised)
    return None


def _bound_problem(state: RunState, plan: Plan, needed: int, promised: int) -> str:
    longest = max((each.repeat.max for each in state.workflow.steps if each.repeat), default=1)
    for each in plan.add:
        if each.repeat is not None and each.repeat.max > longest:
            return (
                f"step {each.name!r} has repeat with max {each.repeat.max}, but the bound of this run assumes at most "
                f"{longest}: use that, or raise the max of a step in the workflow file"
            )
    return (
        f"the limits of an added step would allow {needed} attempts in this run, but its bound is {promised}: "
        "remove these limits or tighten them"
    )


def _change_problem(state: RunState, planner: str, running: Running, name: str) -> str | None:
    """Why a planner cannot replace or remove a step; None if it can."""
    if name not in state.steps:
        return None
    if name == planner:
        return f"step {name!r} replaces or removes itself: a planner may change only other steps"
    if _is_guarded(state, planner, name):
        return (
            f"step {name!r} is a judge of the workflow, and {planner!r} may not replace or remove it: leave it as it is, "
            f"or set `plans: {{judges: true}}` for {planner!r} in the workflow file"
        )
    if state.steps[name].running is not None:
        return f"step {name!r} is running: replace or remove it when it is done"
    if not _may_run_again(state, planner, running, name):
        return (
            f"step {name!r} has run and is not downstream of {planner!r}: without feedback that asks for it, "
            f"{planner!r} may change only downstream steps"
        )
    return None


def _is_guarded(state: RunState, planner: str, name: str) -> bool:
    """Whether a step is a judge that the workflow started with, and the planner may change only those that were added."""
    judges = name in state.graph.judges and name not in state.specs
    return judges and not state.graph.steps[planner].plans_judges


def _group_problem(state: RunState, planner: str, running: Running, plan: Plan) -> str | None:
    """Why steps cannot join a group that other steps need: these would run again without feedback that asks for it."""
    unchanged = (
        step for step in state.workflow.steps if step.name not in (*plan.remove, *(new.name for new in plan.add))
    )
    for step in unchanged:
        new = ", ".join(map(repr, group_members_added(step, plan.add)))
        if new and state.steps[step.name].running is not None:
            return f"step {step.name!r} is running and would also need {new}, which joins its group: add it when that step is done"
        if new and not _may_run_again(state, planner, running, step.name):
            return (
                f"step {step.name!r} has run and would also need {new}, which joins its group: without feedback that asks for "
                f"it, {planner!r} may change only downstream steps"
            )
    return None


def _may_run_again(state: RunState, planner: str, running: Running, name: str) -> bool:
    """Whether a planner may make a step run again: feedback asked for it, the step has not run, or it is downstream."""
    return bool(running.loops) or not state.steps[name].attempts or name in state.graph.downstream[planner]


def replan(tx: Transaction, name: str, running: Running, plan: Plan) -> None:
    """Change the run; `plan_problem` has allowed it. Loops from or to removed steps are cancelled."""
    if not plan or not (plan := new_part_of(tx.state, plan)):
        return
    gained = _gained(tx.state, name, running, plan)
    changed = {step.name: step for step in plan.add if step.name in tx.state.steps}
    replaced_or_removed = [
        *plan.remove,
        *(each for each in changed if _other_kind(tx.state.graph.steps[each], changed[each])),
    ]
    for each in replaced_or_removed:
        for loop in [loop for loop in tx.state.loops.values() if _names(loop, each)]:
            _cancel(tx, loop, name, f"{name} {'removed' if each in plan.remove else 'replaced'} {each}")
        _settle_findings(tx, each, plan.remove)
    for each in (*plan.remove, *changed):
        _settle_questions(tx, each, name, f"{name} {'removed' if each in plan.remove else 'replaced'} it")
    loops = tuple(id for id in running.loops if id in tx.state.loops)
    noted = {each: found for each, found in plan.noted.items() if each in tx.state.steps and each not in plan.remove}
    before = {step.name: step for step in tx.state.workflow.steps}
    after = {step.name: step for step in with_plan(tx.state.workflow, plan.add, plan.remove, gained).steps}
    added = tuple(after.pop(step.name) for step in plan.add)
    tx.add(
        e.StepsChanged(
            tx.now,
            name,
            running.attempt,
            added,
            plan.remove,
            gained,
            loops,
            plan.specs,
            noted,
            tuple(changed),
            tuple(step for step in after.values() if step != before[step.name]),
            plan.files,
        )
    )


def _names(loop: Loop, step: str) -> bool:
    """Whether a step is the source or a target of a loop, or would be reworked by one of its options."""
    offered = loop.feedback.options if loop.feedback else ()
    return step == loop.source or step in loop.involved or any(step in option.rework for option in offered)


def _other_kind(before: Step, after: Step) -> bool:
    """Whether a replaced step cannot continue the loops of the old one: it became a judge or stopped being one, or no
    longer checks its inputs."""
    return bool(before.judges) != bool(after.judges) or (before.checked and not after.checked)


def _cancel(tx: Transaction, loop: Loop, planner: str, reason: str) -> None:
    close_loop(tx, loop, LoopState.CANCELLED, Resolution("cancelled", by=planner, text=reason))


def _settle_findings(tx: Transaction, name: str, removed: tuple[str, ...]) -> None:
    """Settle the unresolved findings of a judge that was removed or replaced: deferred if it was removed but a step that it
    judged remains, else withdrawn."""
    unresolved = (*tx.state.steps[name].open_findings, *tx.state.steps[name].unmentioned)
    judged = tx.state.graph.steps[name].judges
    subject_remains = name in removed and any(subject not in removed for subject in judged)
    if unresolved:
        tx.add(e.FindingsSettled(tx.now, unresolved, Status.DEFERRED if subject_remains else Status.WITHDRAWN))


def _settle_questions(tx: Transaction, step: str, planner: str, reason: str) -> None:
    """Close the escalations about a step that was removed or replaced."""
    for packet in [each for each in tx.state.escalations.values() if each.step == step]:
        choice = "continue" if packet.breach else "cancelled"
        tx.add(e.EscalationDecided(tx.now, packet.id, choice, by=planner, note=reason))


def _gained(state: RunState, name: str, running: Running, plan: Plan) -> dict[str, tuple[str, ...]]:
    """The new needs of the steps that requested steps: each needs the new steps. Judges among the new steps gate it
    anyway."""
    new = tuple(step.name for step in plan.add if step.name not in state.steps and not step.judges)
    loops = (state.loops[id] for id in running.loops if still_answers(state, id, name))
    sources = dict.fromkeys(loop.source for loop in loops if requests_new_steps(loop.kind) and loop.source != HUMAN)
    return {source: new for source in sources if new and source not in plan.remove}
