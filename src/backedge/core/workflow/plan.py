"""What a planner may change about a run: steps added, replaced or removed, and the workflow that follows from it."""

from __future__ import annotations

from collections.abc import Mapping

from backedge.core.model import Kind
from backedge.core.value import Json, Value, replace
from backedge.core.workflow.definition import Step, Workflow


class NotedValues(Value, frozen=True):
    """What new steps read, or refer to in conditions, of an artifact that was made before them; by JSON pointer."""

    parts: dict[str, str] = {}
    values: dict[str, Json] = {}


class Plan(Value, frozen=True):
    """What a planner asks for. A step that is there already is replaced."""

    add: tuple[Step, ...] = ()
    remove: tuple[str, ...] = ()
    specs: dict[str, Json] = {}
    """The added steps as they were written: enough to find their agents again."""
    noted: dict[str, NotedValues] = {}
    """Of artifacts that are there already, by their steps."""

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)


def with_plan(
    workflow: Workflow, added: tuple[Step, ...], removed: tuple[str, ...], gained: Mapping[str, tuple[str, ...]]
) -> Workflow:
    """The workflow after a change: replaced steps keep their place, others lose their needs of removed ones, and
    `gained` says who needs what from now on."""
    left = [step for step in workflow.steps if step.name in removed]
    kept = {step.name: _joined(_without(step, removed), added) for step in workflow.steps if step not in left}
    steps = {**kept, **{step.name: _parted(step, left) for step in added}}
    return replace(workflow, steps=tuple(_with_needs(step, gained.get(name, ())) for name, step in steps.items()))


def group_members_added(step: Step, added: tuple[Step, ...]) -> tuple[str, ...]:
    """The steps that a step needs because they join a group that it needs or judges."""
    groups = (*step.needs_groups, *step.judges_groups)
    known = (step.name, *step.needs, *step.judges)
    return tuple(each.name for each in added if each.group and each.group in groups and each.name not in known)


def _joined(step: Step, added: tuple[Step, ...]) -> Step:
    """A step with those who join the groups that it needs or judges."""
    names = group_members_added(step, added)
    if not names:
        return step
    judged = tuple(each.name for each in added if each.name in names and each.group in step.judges_groups)
    needed = tuple(name for name in names if name not in judged)
    return replace(step, needs=(*step.needs, *needed), judges=(*step.judges, *judged))


def _parted(step: Step, left: list[Step]) -> Step:
    """A new step without those who leave the groups that it needs or judges with its coming."""
    groups = (*step.needs_groups, *step.judges_groups)
    gone = {each.name for each in left if each.group in groups}
    return _without(step, tuple(gone)) if gone else step


def _without(step: Step, removed: tuple[str, ...]) -> Step:
    if not any(name in removed for name in (*step.needs, *step.judges)):
        return step
    judged = tuple(name for name in step.judges if name not in removed)
    return replace(
        step,
        needs=tuple(name for name in step.needs if name not in removed),
        # A judge whose every subject is gone keeps them: the definition is refused, and the problem names it.
        judges=judged or step.judges,
        reads=tuple((name, pointers) for name, pointers in step.reads if name not in removed),
    )


def _with_needs(step: Step, more: tuple[str, ...]) -> Step:
    return replace(step, needs=tuple(dict.fromkeys((*step.needs, *more)))) if more else step


def asks_for_steps(kind: Kind) -> bool:
    """Whether feedback of this kind is answered by steps that its source then needs."""
    return kind is Kind.DEPENDENCY_MISSING
