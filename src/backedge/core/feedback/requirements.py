"""Requirements by their ids: who owns one, who dropped it on the way, and which loop is about it.

What an artifact mentions is found out by the shell, which has the outputs, and comes with the command.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from backedge.core.feedback.loop import Loop
from backedge.core.feedback.routing import legal_targets, planning_steps
from backedge.core.model import HUMAN, Feedback, Finding, Kind, MalformedFeedback, Outcome
from backedge.core.state.run import RunState
from backedge.core.value import Json, Value
from backedge.core.workflow.routes import has_words

BY_REQUIREMENT = "requirement"
"""The rule that routes by the id of a requirement."""
MISSING = ("missing functionality", "missing requirement", "missing feature")
OWNED = (Kind.TECHNICAL_INFEASIBILITY, Kind.MISSING_REQUIREMENT)
"""The kinds of feedback that find their way to the owner of a requirement by themselves."""

Mentions = Mapping[str, Collection[str]]
"""The steps whose artifacts mention a requirement, by its id."""


class Gap(Value, frozen=True):
    """Where a requirement got lost."""

    step: str
    words: str


def mentions(value: Json, requirement: str) -> bool:
    """Whether a JSON value has the id of a requirement as a whole word, in a text or a key."""
    word = re.compile(rf"(?<![\w-]){re.escape(requirement)}(?![\w-])")
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, str | int | float) and word.search(str(part)):
            return True
    return False


def requirements_to_trace(
    feedback: Iterable[Feedback | MalformedFeedback], findings: Iterable[Finding] = ()
) -> tuple[str, ...]:
    """The requirements whose mentions decide where something goes."""
    raised = (
        item.requirement_id for item in feedback if isinstance(item, Feedback) and goes_to_requirement_owner(item)
    )
    found = (finding.requirement_id for finding in findings if says_missing(finding))
    return tuple(dict.fromkeys(id for id in (*raised, *found) if id))


def requirements_of(outcome: Outcome) -> tuple[str, ...]:
    return requirements_to_trace(outcome.feedback, outcome.findings) if outcome.feedback or outcome.findings else ()


def goes_to_requirement_owner(feedback: Feedback) -> bool:
    """Whether feedback goes to the owner of its requirement."""
    return not feedback.to and feedback.kind in OWNED and bool(feedback.requirement_id)


def says_missing(finding: Finding) -> bool:
    """Whether a finding says that something required is not there."""
    return bool(finding.requirement_id) and has_words(finding.category, MISSING)


def producers_before(state: RunState, source: str) -> list[str]:
    """The steps with an artifact that a source can trace a requirement through, in the order of the graph."""
    graph = state.graph
    upstream = graph.upstream[source] if source != HUMAN else graph.steps
    made = (name for name in graph.order if name in upstream and name in state.steps and name not in graph.judges)
    return [name for name in made if state.steps[name].artifact is not None and not state.steps[name].condition_false]


def owner_of(state: RunState, source: str, mentioned: Collection[str]) -> str | None:
    """The earliest step that a requirement is in; where it is in none, the planning step, else the root."""
    legal = legal_targets(state.graph, source)
    owners = (name for name in producers_before(state, source) if name in mentioned and name in legal)
    return next(iter((*owners, *planning_steps(state.graph, source))), None)


def gap_of(state: RunState, judge: str, requirement: str, mentioned: Collection[str]) -> Gap | None:
    """Who dropped a requirement: the first step that is without it though what comes before has it. One that the plan
    is without, and nobody dropped later, was dropped by the planning step, else by the root. None for one that is
    everywhere."""
    steps = producers_before(state, judge)
    have = [name for name in steps if name in mentioned]
    lack = [name for name in steps if name not in mentioned]
    planned = (name for name in planning_steps(state.graph, judge) if name in lack)
    dropped = (name for name in lack if not state.graph.upstream[name].isdisjoint(have))
    who = next(iter((*dropped, *planned)), None)
    if who is None or who not in legal_targets(state.graph, judge):
        return None
    where = f"in {_listed(have)}, and missing" if have else "missing"
    return Gap(who, f"{requirement} is {where} in {_listed(lack)}")


def loop_about(state: RunState, name: str, source: str | None = None) -> Loop | None:
    """A loop by its id, or the newest one about a requirement, an open one first; of one source, if that is said."""
    found = state.loop(name)
    if found is not None:
        return found
    loops = [
        loop
        for loop in (*state.closed_loops.values(), *state.loops.values())
        if loop.feedback is not None
        and loop.feedback.requirement_id == name
        and (source is None or loop.source == source)
    ]
    return max(loops, key=lambda loop: (loop.open, int(loop.id[2:])), default=None)


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
