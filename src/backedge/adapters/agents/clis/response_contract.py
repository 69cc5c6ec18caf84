"""How a CLI must answer an attempt: the schema for its mode, and the same in words for the prompt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from backedge.adapters.agents.clis.cli import Cli
from backedge.adapters.agents.clis.schemas import answer_schema, decision_schema, judge_schema, producer_schema, strict
from backedge.adapters.agents.prompts import fenced
from backedge.core.briefing import Briefing, KnownStep
from backedge.core.feedback.guidelines import AnswerRules, guidelines
from backedge.core.model import HUMAN, SIDE_MODES
from backedge.core.text import one_line
from backedge.core.value import Json

_FLAGGED = "Your final answer is one JSON object that follows the required JSON Schema."
_ASKED = "End with one JSON object that matches this JSON Schema, and write nothing after it:"

_ANSWER = "Only answer the question: do not work on the task now, and change no files. Put your answer into `answer`."
_DECIDE = (
    "Only choose one of the options: do not work on the task now, and change no files. Put the option you prefer, exactly as "
    "it is written and without what is said about it, and your reason into `decision`."
)
_PROPOSE = (
    "Only say what should be done: do not work on the task now, and change no files. Put it into `option` of `decision`, and "
    "your reason into `reason`."
)
_JUDGE = (
    "`verdict` is pass, fail or needs_improvement (it may go on, and the findings can wait). A pass has no critical or high "
    "finding; a fail has at least one finding. "
)
_COMPUTED = (
    "Report findings and no verdict: backedge computes it from the severity of your findings. The work passes if {rule}. "
    "`summary` says what you looked at and what you conclude. "
)
_FINDINGS = (
    "Report each defect as one finding. Severity is critical, high, medium or low; `blocking` means that nothing may go on "
    "before it is fixed. Give the `file` and `line`, or the `path` (a JSON pointer) in the output you judge."
)
_PHASES = "`affected_phase` names the phase that caused a finding, which gets it back to correct:"
_ASK = (
    "If you cannot judge because you lack a fact (an expected value, a missing requirement), do not guess: raise `feedback`, "
    "for example a context_request, to a step that knows it{steps}, and report your findings too."
)
_PRODUCER = (
    "`output` is what the next steps work from: any JSON. Do not repeat the files that you changed. `summary` says in "
    "one sentence what you did and why; later attempts and judges read it. "
)
_TO_STEPS = "Use `feedback` only for what another step{steps} has to fix or to tell you."
_TO_PERSON = "Use `feedback` only for what a person (`human`) has to decide or to tell you."
_FIXED = " In `resolutions`, report each finding listed above by its id as fixed or, with a reason, as contested."
_CONFIDENT = (
    " `confidence` says from 0 to 1 how confident you are that your result is right and complete: be honest, a person looks at "
    "what is uncertain."
)
_VERIFIED = (
    " In `resolutions`, report each finding listed above by its id as fixed, not_fixed, withdrawn (it is not a defect) or "
    "duplicate (of another finding), and say in `note` what you saw. not_fixed counts as found again: do not list the same "
    "defect in `findings` too."
)

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
    attempts = f"{step.attempts} attempt{'' if step.attempts == 1 else 's'}"
    judges = f", judges {', '.join(step.judges)}" if step.judges else ""
    return f"{step.name} ({step.phase or 'no phase'}, {attempts}{running}{judges}){needs}"


def _bounds(rules: AnswerRules) -> list[str]:
    """Which files may be changed, and by which steps the work is judged."""
    parts = []
    if rules.writes is not None:
        only = (
            f"only files that match {', '.join(f'`{one_line(glob)}`' for glob in rules.writes)}"
            if rules.writes
            else "no files"
        )
        other = "other " if rules.writes else ""
        parts.append(f"Change {only}: any {other}change is refused, and the attempt does not count.")
    if rules.judged_by:
        parts.append(f"Your work will be judged by {', '.join(rules.judged_by)}.")
    return [" ".join(parts)] if parts else []


@dataclass(frozen=True, slots=True)
class ResponseContract:
    """How the CLI of one step must answer."""

    cli: Cli
    judges: bool
    output: Json = None
    """The step's own schema."""
    agents: Sequence[str] = ()
    """The agents that steps of a planner can name."""

    def schema(self, briefing: Briefing) -> Json:
        rules = briefing.rules
        if briefing.mode == "answer":
            shape = answer_schema()
        elif briefing.mode == "decide":
            offered = briefing.feedback.requests[0].options if briefing.feedback.requests else ()
            shape = decision_schema([option.option for option in offered])
        elif self.judges:
            shape = judge_schema(rules, [each.id for each in briefing.changes.protected])
        else:
            output = None if self.cli.strict else self.output
            shape = producer_schema(rules, output, bool(briefing.steps))
        return strict(shape) if self.cli.strict else shape

    def words(self, briefing: Briefing) -> str:
        rules = briefing.rules
        targets = f" ({', '.join(rules.targets)})" if rules.targets else ""
        parts: list[str] = []
        if briefing.mode == "answer":
            instructions = _ANSWER
        elif briefing.mode == "decide":
            asked = briefing.feedback.requests
            instructions = _DECIDE if asked and asked[0].options else _PROPOSE
        elif self.judges:
            instructions = _COMPUTED.format(rule=rules.passes_if) if rules.passes_if else _JUDGE
            instructions += _FINDINGS
            instructions += _VERIFIED if briefing.verify else ""
            if briefing.changes.protected:
                instructions += _APPROVED.format(first=briefing.changes.protected[0].id)
            if choices := guidelines(rules.phases, briefing.phase):
                parts.append(f"{_PHASES}\n{choices}")
            parts.append(_ASK.format(steps=targets))
        else:
            instructions = _PRODUCER + (_TO_PERSON if rules.targets == (HUMAN,) else _TO_STEPS.format(steps=targets))
            instructions += _FIXED if briefing.feedback.findings else ""
            instructions += _CONFIDENT if rules.confidence else ""
        parts.insert(0, instructions)
        if not self.judges and briefing.mode not in SIDE_MODES:
            parts += _bounds(rules)
        if briefing.steps and not self.judges and briefing.mode not in SIDE_MODES:
            parts.append(_PLANNER.format(most=int(briefing.left["max_steps"])))
            parts.append(fenced("\n".join(map(_step_line, briefing.steps))))
            if self.agents:
                parts.append(f"The `agent` of a new step is one of these: {', '.join(self.agents)}.")
        if self.output is not None and not self.judges and briefing.mode not in SIDE_MODES:
            parts.append("`output` must match this JSON Schema:")
            parts.append(fenced(json.dumps(self.output, indent=2, ensure_ascii=False)))
        if self.cli.has_schema:
            parts.append(_FLAGGED)
        else:
            parts += [_ASKED, fenced(json.dumps(self.schema(briefing), ensure_ascii=False))]
        return "\n\n".join(parts)
