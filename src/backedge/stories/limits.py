"""The limits of a story: those of its front matter, the command line and the project."""

from __future__ import annotations

import dataclasses

from backedge.compat.agentic_sdlc import MAX_ITERATIONS
from backedge.config import WorkflowFile
from backedge.core.value import replace
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.limits import CIRCUIT_BREAKER, Limits, with_overrides
from backedge.stories.entry import Entry
from backedge.stories.record import StoryRecord
from backedge.stories.rules.raised import Raised, limit_not_reached, lowered_limit, raised_limit

OWN = "max_refinement_attempts"
"""The key in the front matter of a story."""


def definition_for(source: WorkflowFile, entry: Entry) -> Workflow:
    """The workflow of a story's run, with the limits at its start. Later changes do not affect it.

    A story that reaches a limit always waits for a decision, so that it can continue, whatever the project's `on_breach`."""
    spec = source.stories
    assert spec is not None
    most, _ = _most_refinements(source, entry)

    def bounded(limits: Limits) -> Limits:
        if not spec.circuit_breaker:
            return with_overrides(limits, dict.fromkeys(CIRCUIT_BREAKER, False))
        return limits if most is None else replace(limits, rounds_per_loop=most)

    definition = source.definition
    steps = tuple(
        step if step.limits is None else replace(step, limits=bounded(step.limits)) for step in definition.steps
    )
    on_breach = "replan" if definition.on_breach == "replan" else "manual"
    return replace(definition, limits=bounded(definition.limits), steps=steps, on_breach=on_breach)


def with_max_iterations(source: WorkflowFile, most: int | None) -> WorkflowFile:
    """A workflow file with the most refinements that the command line sets."""
    assert source.stories is not None
    return dataclasses.replace(source, stories=dataclasses.replace(source.stories, max_iterations=most))


def _most_refinements(source: WorkflowFile, entry: Entry) -> tuple[int | None, str]:
    """The most refinements of a story, and the name of the setting; None if the limits of the workflow apply."""
    spec, summary = source.stories, entry.summary
    assert spec is not None and summary is not None
    if spec.max_iterations is not None:
        return spec.max_iterations, "--max-iterations"
    if summary.max_refinements is not None:
        return summary.max_refinements, OWN
    return spec.max_refinements, "rounds_per_loop" if spec.max_refinements is None else MAX_ITERATIONS


def limits_changed(source: WorkflowFile, entry: Entry, record: StoryRecord | None) -> tuple[Raised | None, str]:
    """What a person has changed to let a blocked story continue, and why a change does not apply; None and "" if there is
    nothing of the kind.

    `record` has what was last written to the file. After a crash it may be old, so a person has changed only what differs
    from it; and what was changed before that may be the work of an agent, which cannot grant itself rounds."""
    view, summary = entry.view, entry.summary
    assert view is not None and summary is not None
    if view.breach is None and (view.first_max_refinements is None or view.status == "done"):
        return None, ""
    definition = definition_for(source, entry)
    own = {step.name: step.limits for step in definition.steps if step.limits is not None}
    now = own.get(view.breach_step, definition.limits)
    _, name = _most_refinements(source, entry)
    count = summary.refinement_count
    edited = record is not None and count != record.fields.get("refinement_count")
    raised = raised_limit(view, now, name, count if edited else None)
    if raised is None:
        return None, limit_not_reached(view, now, name, entry.id) or lowered_limit(view, definition.limits, name)
    if raised.called != OWN:
        return raised, lowered_limit(view, definition.limits, name)
    if record is not None and summary.max_refinements != record.max_refinements:
        return raised, ""
    why = f"{raised.why}, but was changed while agents worked: `backedge unblock {entry.id} --rounds {raised.rounds}`"
    return None, f"{why} applies it"
