"""The answers of agent CLIs as JSON Schemas: the parts of an outcome that a model can fill in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from backedge.adapters.agents.outcome import require_unique_keys
from backedge.core.feedback.guidelines import ASKS_FOR, AnswerRules
from backedge.core.model import Kind, Severity
from backedge.core.value import Json

LARGEST = 64 * 1024
"""The most bytes of a step's own schema, or of its options, that are passed on: program arguments have a maximum
length."""

_Shape = dict[str, Any]
_FREE = ("output", "answer", "add_steps", "details")
"""The parts of an answer that may be any JSON. A strict schema has them as text."""
NO_RULES = AnswerRules()


def _text(description: str) -> _Shape:
    return {"type": "string", "description": description}


def _list(items: _Shape, description: str) -> _Shape:
    return {"type": "array", "items": items, "description": description}


def _object(properties: Mapping[str, _Shape], *required: str) -> _Shape:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


_SUMMARY = _text("What was done, in a sentence.")


_CONFIDENCE: _Shape = {
    "type": "number",
    "minimum": 0,
    "maximum": 1,
    "description": "How confident you are that the result is right and complete, from 0 to 1. Below a bound, a person looks.",
}


def _resolutions(rules: AnswerRules, *statuses: str) -> _Shape:
    listed = rules.findings and len(json.dumps(rules.findings)) <= LARGEST
    finding: _Shape = {"type": "string", "enum": list(rules.findings)} if listed else _text("The id, like F-3.")
    item = _object(
        {
            "finding": finding,
            "status": {"type": "string", "enum": list(statuses)},
            "note": _text("Why."),
        },
        "finding",
        "status",
    )
    return _list(item, "One entry for each finding that the briefing names." if rules.findings else "Leave it empty.")


_KINDS = f"What you ask for. {'; '.join(f'{kind}: {asks}' for kind, asks in ASKS_FOR.items())}."


def _feedback(rules: AnswerRules) -> _Shape:
    option = _object(
        {
            "option": _text("What could be done."),
            "effort": _text("low, medium or high."),
            "impact": _text("What it means."),
            "rework": _list(_text("A step."), "The steps that would have to rework."),
            "accept": {"type": "boolean", "description": "Choosing it accepts the limitation; nothing is fixed."},
        },
        "option",
    )
    steps = list(rules.targets)
    to: _Shape = {"type": "string", "enum": steps} if steps else _text("A step.")
    item = _object(
        {
            "kind": {"type": "string", "enum": [*(kind.value for kind in Kind), *rules.kinds], "description": _KINDS},
            "to": _list(to, "The steps that can fix it; `human` asks a person."),
            "message": _text("What is wrong or missing."),
            "severity": {"type": "string", "enum": list(Severity)},
            "blocking": {"type": "boolean", "description": "The work cannot continue until it is resolved."},
            "suggested_fix": _text("How it could be fixed."),
            "requested_info": _text("What you need to know."),
            "artifacts": _list(_text("A location, such as spec.md:42."), "Where it shows."),
            "options": _list(option, "The options, if there is a choice to make."),
            "requirement_id": _text("The requirement it is about."),
            "details": {"type": "object", "description": "Anything else that the targets need, by name."},
        },
        "kind",
        "to",
        "message",
    )
    return _list(item, "Only what another step has to fix or to tell so that this step can do its work; usually empty.")


def _finding(phases: Sequence[str]) -> _Shape:
    phase: _Shape = {"type": "string", "enum": list(phases)} if phases else _text("A phase.")
    return _object(
        {
            "description": _text("The defect, in one sentence. Use the same words if you see the same defect again."),
            "severity": {"type": "string", "enum": list(Severity)},
            "blocking": {"type": "boolean", "description": "Nothing may continue until it is fixed."},
            "category": _text("One word, like security or correctness."),
            "affected_phase": _list(phase, "The phases that caused it; if you are not certain, the one under review."),
            "evidence": _text("What shows it."),
            "impact": _text("What happens because of it."),
            "file": _text("The file it is in."),
            "line": {"type": "integer", "description": "The line in that file."},
            "path": _text("If it is in an output and not in a file: where, as a JSON pointer like /api/users."),
            "suggested_fix": _text("How it could be fixed."),
            "requirement_id": _text("The requirement it violates."),
        },
        "description",
        "severity",
    )


def answer_schema() -> _Shape:
    """The answer of a step to a question."""
    return _object({"answer": {"description": "The answer."}, "summary": _SUMMARY}, "answer")


def decision_schema(options: Sequence[str] = ()) -> _Shape:
    """The answer of a step that has to choose. Without options, or with very long ones, any text is valid."""
    listed = len(options) > 0 and len(json.dumps(options)) <= LARGEST
    option: _Shape = {"type": "string", "enum": list(options)} if listed else _text("What should be done.")
    decision = _object({"option": option, "reason": _text("Why.")}, "option", "reason")
    return _object({"decision": decision, "summary": _SUMMARY}, "decision")


def _approvals(changes: Sequence[str]) -> _Shape:
    item = _object(
        {
            "change": {"type": "string", "enum": list(changes)},
            "status": {"type": "string", "enum": ["approved", "rejected"]},
            "note": _text("Why."),
        },
        "change",
        "status",
        "note",
    )
    return _list(item, "One entry for each changed test or configuration of a judge that the briefing names.")


def judge_schema(rules: AnswerRules = NO_RULES, changes: Sequence[str] = ()) -> _Shape:
    """The answer of a judge. `changes` are the ids of changed protected files that it has to answer for. If the verdict is
    computed from the findings, it does not state one."""
    verdict = {
        "type": "string",
        "enum": ["pass", "fail", "needs_improvement"],
        "description": "fail if anything critical or high is wrong; needs_improvement if the rest can wait.",
    }
    every = (
        f"Every defect you see. The work passes if {rules.passes_if}." if rules.passes_if else "Every defect you see."
    )
    stated = {} if rules.passes_if else {"verdict": verdict}
    return _object(
        {
            **stated,
            "summary": _text("What you looked at and what you conclude: the author reads it."),
            "findings": _list(_finding(rules.phases), every),
            "resolutions": _resolutions(rules, "fixed", "not_fixed", "withdrawn", "duplicate"),
            "feedback": _feedback(rules),
            **({"approvals": _approvals(changes)} if changes else {}),
        },
        *stated,
        "summary",
        "findings",
        *(["approvals"] if changes else []),
    )


def producer_schema(rules: AnswerRules = NO_RULES, output: Json = None, plans: bool = False) -> _Shape:
    """The answer of a producer; `output` is the step's own schema. A planner may change steps."""
    free = {"description": "What the next steps work from: any JSON. Files that you changed need not be repeated."}
    planned = {
        "add_steps": {"type": "object", "description": _ADDED},
        "remove_steps": _list(_text("A step."), "The steps to remove from the run; usually empty."),
    }
    return _object(
        {
            "output": output if _passable(output) else free,
            "summary": _SUMMARY,
            "resolutions": _resolutions(rules, "fixed", "contested"),
            "feedback": _feedback(rules),
            **({"confidence": _CONFIDENCE} if rules.confidence else {}),
            **(planned if plans else {}),
        },
        "output",
        "summary",
        *(["confidence"] if rules.confidence else []),
    )


_ADDED = (
    "Steps to add to this run, by name, each as in the workflow file: phase, needs, and the "
    "agent that does it (run, agent or agents). A step with an existing name replaces that step. Leave it empty if no step "
    "is missing."
)


def strict(schema: _Shape) -> _Shape:
    """The same schema for a CLI that allows no optional keys and no free values: optional values may be null, and free
    values are texts that contain JSON."""
    kind = schema.get("type")
    if kind == "object" and schema.get("additionalProperties") is False:
        required = schema["required"]
        return {
            **schema,
            "properties": {
                name: strict(each) if name in required else _nullable(strict(each))
                for name, each in schema["properties"].items()
            },
            "required": list(schema["properties"]),
        }
    if kind == "array":
        return {**schema, "items": strict(schema["items"])}
    if kind is None or kind == "object":
        return {"type": "string", "description": f"{schema.get('description', '')} Written as JSON text.".strip()}
    return schema


def without_nulls(outcome: Json) -> Json:
    """An outcome without its nulls; output and answer stay as they are."""
    if isinstance(outcome, list):
        return [without_nulls(each) for each in outcome]
    if not isinstance(outcome, dict):
        return outcome
    return {key: value if key in _FREE else without_nulls(value) for key, value in outcome.items() if value is not None}


def unwrapped(outcome: Json) -> Json:
    """The outcome of a strict schema: output and answer are texts that contain JSON, or plain texts. Raises AgentError for a
    key that is there twice."""
    if not isinstance(outcome, dict):
        return outcome
    found = {key: _decoded(value) if key in _FREE else value for key, value in outcome.items()}
    if isinstance(found.get("feedback"), list):
        found["feedback"] = [unwrapped(each) for each in found["feedback"]]
    return found


def _decoded(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    try:
        found: Json = json.loads(value)
    except ValueError:
        return value
    require_unique_keys(value, "a part of the answer")
    return found


def _nullable(schema: _Shape) -> _Shape:
    found = {**schema, "type": [schema["type"], "null"]}
    if "enum" in found:
        found["enum"] = [*found["enum"], None]
    return found


def _passable(schema: Json) -> bool:
    """Whether a step's own schema can be put inside another one: references in it would break."""
    if not isinstance(schema, dict):
        return False
    text = json.dumps(schema)
    return len(text) <= LARGEST and '"$ref"' not in text and '"$schema"' not in text and '"$id"' not in text
