"""How a CLI must answer an attempt: the schema for its mode, and the same in words for the prompt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from backedge.adapters.agents.clis.cli import Cli
from backedge.adapters.agents.clis.schemas import answer_schema, decision_schema, judge_schema, producer_schema, strict
from backedge.adapters.agents.prompts import fenced
from backedge.core.briefing import Briefing, KnownStep
from backedge.core.model import SIDE_MODES
from backedge.core.value import Json

_FLAGGED = "Your final answer is one JSON object that follows the required JSON Schema."
_ASKED = "End with one JSON object that matches this JSON Schema, and write nothing after it:"

_ANSWER = "Answer the question. You need not change anything. Put your answer into `answer`."
_DECIDE = (
    "Choose one of the options. You need not change anything. Put the option you prefer, exactly as it is written, and "
    "your reason into `decision`."
)
_JUDGE = (
    "`verdict` is pass, fail or needs_improvement. A pass has no critical or high finding; a fail has at least one finding. "
    "Severity is critical, high, medium or low. `affected_phase` names the phase that caused a finding if it is "
    "not the one under review{phases}."
)
_PRODUCER = (
    "`output` is what the next steps work from: any JSON. Do not repeat the files that you changed. `summary` says in "
    "one sentence what you did. Use `feedback` only for what another step{steps} has to fix."
)
_FIXED = " In `resolutions`, report each finding listed above by its id as fixed or, with a reason, as contested."
_VERIFIED = " In `resolutions`, report each finding listed above by its id as fixed, not_fixed, withdrawn or duplicate."

_APPROVED = (
    " In `approvals`, answer for each changed test and configuration of judges listed above, by its id (such as {first}): "
    "approved if the task needs the change, else rejected, with the reason in `note`. If you reject one, the verdict is fail."
)

_PLANNER = (
    "You may change the steps of this run: `add_steps` adds steps or replaces those of the same name, `remove_steps` removes "
    "steps. You can add at most {most} more, and you cannot change a step that is running. The steps are:"
)


def _step_line(step: KnownStep) -> str:
    needs = f" needs {', '.join(step.needs)}" if step.needs else ""
    running = ", running" if step.running else ""
    return f"{step.name} ({step.phase or 'no phase'}, {step.attempts} attempts{running}){needs}"


@dataclass(frozen=True, slots=True)
class ResponseContract:
    """How the CLI of one step must answer."""

    cli: Cli
    judges: bool
    phases: Sequence[str] = ()
    steps: Sequence[str] = ()
    output: Json = None
    """The step's own schema."""
    kinds: Sequence[str] = ()
    """The workflow's own kinds of feedback."""

    def schema(self, briefing: Briefing) -> Json:
        if briefing.mode == "answer":
            shape = answer_schema()
        elif briefing.mode == "decide":
            offered = briefing.feedback.requests[0].options if briefing.feedback.requests else ()
            shape = decision_schema([option.option for option in offered])
        elif self.judges:
            shape = judge_schema(self.phases, [each.id for each in briefing.changes.protected])
        else:
            output = None if self.cli.strict else self.output
            shape = producer_schema(self.steps, output, bool(briefing.steps), self.kinds)
        return strict(shape) if self.cli.strict else shape

    def words(self, briefing: Briefing) -> str:
        if briefing.mode == "answer":
            instructions = _ANSWER
        elif briefing.mode == "decide":
            instructions = _DECIDE
        elif self.judges:
            instructions = _JUDGE.format(phases=f" ({', '.join(self.phases)})" if self.phases else "")
            instructions += _VERIFIED if briefing.verify else ""
            if briefing.changes.protected:
                instructions += _APPROVED.format(first=briefing.changes.protected[0].id)
        else:
            instructions = _PRODUCER.format(steps=f" ({', '.join(self.steps)})" if self.steps else "")
            instructions += _FIXED if briefing.feedback.findings else ""
        parts = [instructions]
        if briefing.steps and not self.judges and briefing.mode not in SIDE_MODES:
            parts.append(_PLANNER.format(most=int(briefing.left["max_steps"])))
            parts.append(fenced("\n".join(map(_step_line, briefing.steps))))
        if self.output is not None and not self.judges and briefing.mode not in SIDE_MODES:
            parts.append("`output` must match this JSON Schema:")
            parts.append(fenced(json.dumps(self.output, indent=2, ensure_ascii=False)))
        if self.cli.has_schema:
            parts.append(_FLAGGED)
        else:
            parts += [_ASKED, fenced(json.dumps(self.schema(briefing), ensure_ascii=False))]
        return "\n\n".join(parts)
