"""A plan: the steps that a planner adds, replaces or removes during a run, and the workflow after that."""

from __future__ import annotations

from collections.abc import Mapping

from backedge.core.model import Kind
from backedge.core.value import Json, Value, replace
from backedge.core.workflow.definition import Step, Workflow


class NotedValues(Value, frozen=True):
    """The parts of an existing artifact that new steps read, or refer to in conditions; by JSON pointer.

    They are recorded with the plan because the artifact is older than the steps that read it.
    """

    parts: dict[str, str] = {}
    values: dict[str, Json] = {}


class Plan(Value, frozen=True):
    """The changes that a planner asks for. Adding a step that exists replaces it."""

    add: tuple[Step, ...] = ()
    remove: tuple[str, ...] = ()
    specs: dict[str, Json] = {}
    """The added steps as the planner wrote them. Their agents are built from this again after a restart."""
    noted: dict[str, NotedValues] = {}
    """What the new steps read of existing artifacts, by the steps that made these."""
    files: dict[str, str] = {}
    """The files that the added steps name: digests of stored values, by path."""

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)


def with_plan(
    workflow: Workflow, added: tuple[Step, ...], removed: tuple[str, ...], gained: Mapping[str, tuple[str, ...]]
) -> Workflow:
    """The workflow after a change. Replaced steps keep their position, the other steps no longer need removed ones, and
    `gained` has the additional needs of each step."""
    leaving = [step for step in workflow.steps if step.name in removed]
    staying = {
        step.name: _with_new_members(_without(step, removed), added) for step in workflow.steps if step not in leaving
    }
    steps = {**staying, **{step.name: _without_old_members(step, leaving) for step in added}}
    return replace(workflow, steps=tuple(_with_needs(step, gained.get(name, ())) for name, step in steps.items()))


def group_members_added(step: Step, added: tuple[Step, ...]) -> tuple[str, ...]:
    """The added steps that a step needs because they join a group that it needs or judges."""
    groups = (*step.needs_groups, *step.judges_groups)
    known = (step.name, *step.needs, *step.judges)
    return tuple(each.name for each in added if each.group and each.group in groups and each.name not in known)


def _with_new_members(step: Step, added: tuple[Step, ...]) -> Step:
    """A step that also needs or judges the new members of its groups."""
    names = group_members_added(step, added)
    if not names:
        return step
    judged = tuple(each.name for each in added if each.name in names and each.group in step.judges_groups)
    needed = tuple(name for name in names if name not in judged)
    return replace(step, needs=(*step.needs, *needed), judges=(*step.judges, *judged))


def _without_old_members(step: Step, leaving: list[Step]) -> Step:
    """A new step that does not need or judge the members that leave its groups in the same plan."""
    groups = (*step.needs_groups, *step.judges_groups)
    members = {each.name for each in leaving if each.group in groups}
    return _without(step, tuple(members)) if members else step


def _without(step: Step, removed: tuple[str, ...]) -> Step:
    if not any(name in removed for name in (*step.needs, *step.judges)):
        return step
    judged = tuple(name for name in step.judges if name not in removed)
    return replace(
        step,
        needs=tuple(name for name in step.needs if name not in removed),
        # A judge that loses all its subjects keeps them: validation then refuses the definition and names the judge.
        judges=judged or step.judges,
        reads=tuple((name, pointers) for name, pointers in step.reads if name not in removed),
    )


def _with_needs(step: Step, more: tuple[str, ...]) -> Step:
    return replace(step, needs=tuple(dict.fromkeys((*step.needs, *more)))) if more else step


def requests_new_steps(kind: Kind) -> bool:
    """Whether feedback of this kind asks a planner for new steps, which its source will then need."""
    return kind is Kind.DEPENDENCY_MISSING
