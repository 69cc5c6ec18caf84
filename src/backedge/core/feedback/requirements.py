"""Requirements by id: which step owns one, which step dropped it, and which loop is about it.

The shell has the outputs, so it searches them for requirement ids and passes the result in with the command.
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
"""The routing rule that follows the id of a requirement."""
MISSING = ("missing functionality", "missing requirement", "missing feature")
OWNED = (Kind.TECHNICAL_INFEASIBILITY, Kind.MISSING_REQUIREMENT)
"""The kinds of feedback that go to the owner of their requirement when they name no target."""

Mentions = Mapping[str, Collection[str]]
"""The steps whose artifacts mention a requirement, by its id."""


class Gap(Value, frozen=True):
    """The step that dropped a requirement, and the text that explains it."""

    step: str
    words: str


def mentions(value: Json, requirement: str) -> bool:
    """Whether a JSON value contains the id of a requirement as a whole word, in a value or a key."""
    word = re.compile(rf"(?<![\w-]){re.escape(requirement)}(?![\w-])")
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            stack += [*part.keys(), *part.values()]
        elif isinstance(part, list):
            stack += part
        elif isinstance(part, str | int | float) and word.search(str(part)):
            return True
    return False


def requirements_to_trace(
    feedback: Iterable[Feedback | MalformedFeedback], findings: Iterable[Finding] = ()
) -> tuple[str, ...]:
    """The requirements that routing depends on: the shell has to look up which artifacts mention them."""
    raised = (
        item.requirement_id for item in feedback if isinstance(item, Feedback) and goes_to_requirement_owner(item)
    )
    found = (finding.requirement_id for finding in findings if says_missing(finding))
    return tuple(dict.fromkeys(id for id in (*raised, *found) if id))


def requirements_of(outcome: Outcome) -> tuple[str, ...]:
    return requirements_to_trace(outcome.feedback, outcome.findings) if outcome.feedback or outcome.findings else ()


def goes_to_requirement_owner(feedback: Feedback) -> bool:
    """Whether feedback names a requirement instead of a target, and so goes to the owner of that requirement."""
    return not feedback.to and feedback.kind in OWNED and bool(feedback.requirement_id)


def says_missing(finding: Finding) -> bool:
    """Whether a finding reports that a requirement is missing."""
    return bool(finding.requirement_id) and has_words(finding.category, MISSING)


def producers_before(state: RunState, source: str) -> list[str]:
    """The upstream steps with an artifact, in the order of the graph: a requirement is traced through these."""
    graph = state.graph
    upstream = graph.upstream[source] if source != HUMAN else graph.steps
    made = (name for name in graph.order if name in upstream and name in state.steps and name not in graph.judges)
    return [name for name in made if state.steps[name].artifact is not None and not state.steps[name].condition_false]


def owner_of(state: RunState, source: str, mentioned: Collection[str]) -> str | None:
    """The earliest step that mentions a requirement; if none does, the planning step, else the root."""
    legal = legal_targets(state.graph, source)
    owners = (name for name in producers_before(state, source) if name in mentioned and name in legal)
    return next(iter((*owners, *planning_steps(state.graph, source))), None)


def gap_of(state: RunState, judge: str, requirement: str, mentioned: Collection[str]) -> Gap | None:
    """The step that dropped a requirement: the first that lacks it although a step upstream has it. If there is none,
    the planning step (else the root) dropped it, provided it lacks it. None if every step has the requirement."""
    steps = producers_before(state, judge)
    have = [name for name in steps if name in mentioned]
    lack = [name for name in steps if name not in mentioned]
    planned = (name for name in planning_steps(state.graph, judge) if name in lack)
    dropped = (name for name in lack if not state.graph.upstream[name].isdisjoint(have))
    step = next(iter((*dropped, *planned)), None)
    if step is None or step not in legal_targets(state.graph, judge):
        return None
    where = f"in {_listed(have)}, and missing" if have else "missing"
    return Gap(step, f"{requirement} is {where} in {_listed(lack)}")


def loop_about(state: RunState, name: str, source: str | None = None) -> Loop | None:
    """A loop by its id, or the newest loop about a requirement, preferring open ones. `source` limits the search."""
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
