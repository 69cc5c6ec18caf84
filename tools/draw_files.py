"""Draws the references for files and the command line: the workflow file, the agent protocol, the commands and their
JSON. Everything comes from the code that checks it, except the sentences that have no place in the code; they are here.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import click
import msgspec

from backedge.adapters.agents import command, outcome
from backedge.adapters.agents.briefing_json import briefing_json
from backedge.adapters.agents.clis.cli import Call, Cli, Options
from backedge.adapters.agents.clis.registry import CLIS
from backedge.adapters.agents.prompts import LONGEST, MOST
from backedge.analytics import changes, inbox, report, rounds
from backedge.catalog import ROLES
from backedge.cli.commands import TOPICS, main
from backedge.cli.common import EXIT
from backedge.cli.execute import INTERRUPTED
from backedge.config.agents import AgentSpec
from backedge.config.schema import SCHEMA
from backedge.config.yaml import MAX_BYTES
from backedge.core import briefing, model
from backedge.core.escalation import options
from backedge.core.evidence import values
from backedge.core.workflow.definition import DEFAULT_PHASES, Workflow
from backedge.core.workflow.limits import Limits
from backedge.engine import protocol
from backedge.ports import PLACEHOLDERS

MEANINGS: dict[str, str] = {
    "Finding.test": "the id of the test that failed",
    "Baseline.judge": "the step",
    "Report.baselines": "what the tool judges reported about the files of the start of the run",
    # What an agent gets
    "Briefing.run": "the id of the run",
    "Briefing.input": "the input of the run, from `--input`, `--input-file` and `--story`",
    "Briefing.step": "the step that this attempt does",
    "Briefing.phase": "its phase",
    "Briefing.attempt": "the number of the attempt, from 1, per step",
    "Briefing.round": "the round of the feedback that it addresses; 0 if there is none",
    "Briefing.mode": "`work`, `rework` (address feedback), `verify` (judge findings or human feedback again), `answer` "
    "(answer a question) or `decide` (choose an option); with the last two, the artifact does not change",
    "Briefing.inputs": "the outputs of the steps that it needs, by name",
    "Briefing.based_on": "for a reviewer: the outputs of the steps that the work under judgement is based on, the nearest first",
    "Briefing.rolled_back": "the earlier rounds that were rolled back, oldest first",
    "Briefing.feedback": "the feedback for this step; see below",
    "Briefing.verify": "for a judge: the findings to answer for, each as in `feedback.findings`",
    "Briefing.previous": "the output of its last successful attempt, or null",
    "Briefing.history": "earlier rounds of the loops that it addresses",
    "Briefing.changes": "for a judge: what the steps under judgement changed",
    "Briefing.tried": "what the earlier attempts of this step did, in their own words; for a judge, also those of the steps "
    "under judgement",
    "Briefing.rules": "what the answer may contain, and what it is held to",
    "EarlierAttempt.step": "the step",
    "EarlierAttempt.attempt": "the attempt",
    "EarlierAttempt.summary": "its summary",
    "BriefedVerdict.judge": "the judge",
    "BriefedVerdict.verdict": "its verdict",
    "BriefedVerdict.summary": "its summary",
    "Briefing.limits_left": "how much is left of each active limit",
    "Briefing.steps": "for a step with `plans`: all steps of the run, with phase, needs and state",
    "Briefing.last_error": "why the last attempt was an error; empty if it was not",
    "Briefing.agent": "the agent of the ladder that is used",
    "Briefing.session": "the conversation of the last attempt, for agents that keep one",
    "Briefing.scratchpad": "the path of `feedback-scratchpad.md`, or null",
    "Briefing.progress": "the path of `progress.json`, or null",
    "FeedbackForAttempt.findings": "the findings of judges, the most severe first",
    "FeedbackForAttempt.requests": "feedback from other steps and people, the most severe first; for a judge, the human feedback to verify",
    "FeedbackForAttempt.resolutions": "the results of feedback that this step raised",
    "BriefedFinding.id": "the finding's id: name it in `resolutions`",
    "BriefedFinding.found_by": "the judge",
    **{
        f"{kind}.severity": "critical, high, medium or low"
        for kind in ("BriefedFinding", "Request", "LoopReport", "FindingReport")
    },
    "BriefedFinding.word": "the judge's own word for the severity, if it used another",
    "BriefedFinding.status": "its status",
    "BriefedFinding.fix_authored": "whether it is in what the last fix changed",
    "Request.loop": "the loop that this feedback opened",
    "Request.source": "the step or person that raised it",
    "LoopResult.loop": "the loop",
    "LoopResult.state": "how it ended",
    "LoopResult.text": "the answer or the reason, as text",
    "LoopResult.option": "the option that was chosen",
    "LoopResult.answers": "the answers, by target",
    "EarlierRound.loop": "the loop",
    "EarlierRound.round": "the round",
    "EarlierRound.findings": "the findings of that round, as text",
    # What an agent reports
    "Outcome.output": "the artifact: any JSON, given to the steps that need this one",
    "Outcome.summary": "what was done, in a sentence",
    "Outcome.verdict": "for a judge; required unless `passes_if` computes it",
    "Outcome.findings": "the defects that a judge found",
    "Outcome.resolutions": "the status of findings: a judge reports those in `verify`, a rework those in `feedback`",
    "Outcome.feedback": "feedback for other steps to fix or answer",
    "Outcome.answer": "the answer, if `mode` is `answer`",
    "Outcome.decision": "the chosen option, if `mode` is `decide`",
    "Outcome.remove_steps": "names of steps to remove, for a step with `plans`",
    "Outcome.usage": "what the attempt cost",
    "Finding.description": "what is wrong; findings with different descriptions are different findings",
    "Finding.severity": "`critical`, `high`, `medium` or `low`, or a word for one: blocker, blocking, major, error, warning, "
    "minor, info",
    "Finding.blocking": "pauses the run until it is resolved",
    "Finding.category": "a word for its kind; `routes` can use it",
    "Finding.affected_phase": "the phase or phases that caused it; it goes to the step of that phase",
    "Finding.evidence": "how to reproduce or see it",
    "Finding.impact": "why it matters",
    "Finding.file": "the file, relative to the workspace",
    "Finding.line": "the line in that file",
    "Finding.path": "the place in the output, as a JSON pointer",
    "Finding.suggested_fix": "how it could be fixed",
    "Finding.requirement_id": "the requirement that it violates",
    "FindingResolution.finding": "the id of the finding",
    "FindingResolution.status": "`fixed`, `not_fixed`, `withdrawn` or `duplicate` for a judge; `fixed` or `contested` for a rework",
    "FindingResolution.note": "why",
    "Feedback.kind": "see [the kinds](rules.md#kinds-of-feedback)",
    "Feedback.to": "one or several steps, or `human`; required unless it goes to the planner (`dependency_missing`, `architecture_issue`) or to the owner of `requirement_id` (`technical_infeasibility`, `missing_requirement`)",
    "Feedback.message": "what is wrong, or the question",
    "Feedback.severity": "as in findings",
    "Feedback.blocking": "pauses the run until it is resolved",
    "Feedback.suggested_fix": "how it could be fixed",
    "Feedback.requested_info": "the information that is needed",
    "Feedback.artifacts": "places, like `spec.md:42`",
    "Feedback.options": "options to choose from",
    "Feedback.requirement_id": "the requirement that it is about",
    "Feedback.details": "anything else that the target should know",
    "Option.option": "its name",
    "Option.effort": "how much work it is",
    "Option.impact": "its impact",
    "Option.rework": "the steps that rework if it is chosen",
    "Option.accept": "whether choosing it accepts the problem: the loop and the run end as accepted",
    "Decision.option": "one of the offered options; any text if there are none",
    "Decision.reason": "why",
    "Usage.cost_usd": "US dollars",
    "Usage.tokens_in": "tokens read",
    "Usage.tokens_out": "tokens written",
    # What a report has
    "Report.loops": "the loops, in the order in which they were opened",
    "Report.findings": "every defect that was found",
    "Report.escalations": "the questions to people",
    "Report.usage": "the usage of all attempts together",
    "StepReport.phase": "its phase",
    "WorkReport.step": "its step",
    "WorkReport.attempt": "the number of the attempt",
    "WorkReport.summary": "what its agent says that it did",
    "VerdictReport.judge": "the judge",
    "VerdictReport.word": "pass, conditional, needs_improvement or fail",
    "RoundReport.number": "1, 2 …",
    "RoundReport.targets": "the steps or people that got it",
    "RoundReport.message": "the message of that round; empty if findings say it",
    "RoundReport.options": "options to choose from",
    "RoundReport.work": "what the targets did",
    "RoundReport.answers": "the answers, by target",
    "AttemptChange.step": "the step",
    "AttemptChange.attempt": "the number of the attempt",
    "AttemptChange.summary": "what its agent says that it did",
    "AttemptChange.files_left_out": "how many lines of that were left out",
    "AttemptChange.undone_left_out": "how many lines of that were left out",
    "InboxItem.run": "the run",
    "InboxItem.workflow": "the name of the workflow",
    "InboxItem.kind": "the kind of the feedback behind it; empty if it is not about feedback",
    "InboxItem.source": "the step or person that raised it",
    "InboxItem.targets": "the steps or people that get it",
    "InboxItem.severity": "critical, high, medium or low",
    "InboxItem.blocking": "pauses the run until it is decided",
    "InboxInput.step": "the step that made it",
    "InboxInput.version": "its version",
    "InboxInput.summary": "what its agent says about it",
    "InboxInput.output": "the artifact, or the beginning of a large one",
    "InboxInput.payload": "the digest of an artifact that is too large for an event",
    "InboxChange.id": "P-1, P-2 …",
    "InboxChange.file": "the file",
    "InboxChange.change": "added, changed or removed",
    "InboxChange.step": "the step that changed it",
    "InboxChange.lines": "how many lines changed",
    "InboxChange.tests": "the tests in question",
    "Estimate.cost_usd": "US dollars",
    "Estimate.seconds": "seconds",
    "PacketOption.choice": "the word for `decide`",
    "PacketOption.effort": "how much work it is",
    "PacketOption.impact": "its impact",
    "LoopReport.id": "L-1, L-2 …",
    "LoopReport.message": "the message of feedback that a step or a person raised",
    "FindingReport.id": "F-1, F-2 …",
    "FindingReport.affected_phase": "the phase that caused it, according to the judge",
    "EscalationReport.id": "E-1, E-2 …",
    "RefusalReport.source": "the step or person that raised it",
    "RefusalReport.targets": "its targets",
    "RefusalReport.reason": "why it was refused",
    "UsageReport.cost_usd": "US dollars",
    "UsageReport.tokens_in": "tokens read",
    "UsageReport.tokens_out": "tokens written",
    "Resolution.by": "the step or person that ended it",
    "Resolution.text": "the answer or the reason, as text",
    "Resolution.option": "the option that was chosen",
    "LoopResult.by": "the step or person that ended it",
    "Report.run": "its id",
    "Report.workflow": "the name of the workflow",
    "Report.outcome": "verified, done, accepted, failed, cancelled, waiting, running, or imported for a file from another system",
    "Report.paused": "whether it is paused, by blocking feedback or by a person",
    "Report.steps": "the steps, by name",
    "PlanReport.by": "the step that plans",
    "PlanReport.attempt": "the attempt that changed the steps",
    "PlanReport.added": "steps that were added or replaced",
    "PlanReport.replaced": "names of the steps that were replaced",
    "PlanReport.removed": "steps that were removed",
    "Report.plans": "what planners changed: the planner, and the steps that were added and removed",
    "Report.gates": "the same for gates",
    "Report.refused": "feedback that was refused",
    "StepReport.attempts": "how many attempts were started",
    "StepReport.output": "the newest artifact",
    "StepReport.verdict": "for a judge: the last verdict",
    "StepReport.version": "the version of the artifact, from 1; it increases when the artifact changes",
    "StepReport.last_error": "the error of the last attempt, if there was one",
    "LoopReport.kind": "the kind of the feedback",
    "LoopReport.source": "the step or person that raised it",
    "LoopReport.targets": "the steps or people that get it",
    "LoopReport.state": "see [the life of a loop](../concepts.md#the-life-of-a-loop)",
    "LoopReport.rounds": "the number of rounds",
    "LoopReport.routed_by": "the rule that chose the targets",
    "LoopReport.caused_by": "the loop whose rework raised it",
    "LoopReport.follows": "the earlier loop of the same judge",
    "LoopReport.findings": "the ids of its findings",
    "LoopReport.breach": "the limit that it reached",
    "LoopReport.choice": "for a choice: the option that was chosen, and by whom",
    "LoopReport.resolution": "how it ended",
    "FindingReport.status": "open, fixed, not_fixed, unconfirmed, regressed, withdrawn, duplicate, contested, deferred or accepted",
    "FindingReport.found_by": "the judge",
    "FindingReport.introduced_by": "the step that caused it, according to the route",
    "FindingReport.rounds_seen": "in how many rounds it was seen",
    "FindingReport.fix_authored": "whether it is in what a fix changed",
    "FindingReport.loop": "its loop",
    "EscalationReport.loop": "the loop that it is about",
    "EscalationReport.step": "the step that it is about",
    "EscalationReport.reason": "why a person is asked",
    "EscalationReport.breach": "the limit that was reached",
    "EscalationReport.options": "the choices for `decide`",
    "EscalationReport.decided": "the choice that was made",
    "EscalationReport.by": "the person who decided",
    "UsageReport.attempts": "attempts that were started",
    "UsageReport.seconds": "the seconds in which at least one attempt was running",
    "Breach.limit": "its name",
    "Breach.count": "the count",
    "Breach.bound": "the bound",
}
"""What fields mean, if the source has no sentence below them."""

DEFAULTS = {
    "repeat.to": "none: a person is asked",
    "checks.rule": "`equal`, or `compatible` if that is given",
    "checks.compatible": "none",
    "checks.resolve": "`consensus`",
    "checks.authority": "none; `resolve: authority` needs it",
    "checks.severity": "`high`",
    **{f"gates.{bound}": "" for bound in ("at_least", "at_most", "equals", "zero")},
    "gates.causes": "none",
    "gates.requests": "the step that produces the metric",
    "gates.needs": "the step that produces the metric",
    "gates.severity": "`high`",
    "checks": "none",
    "gates": "none",
    "kinds": "none",
    "authority": "none",
    "max_steps": "`50`",
    "group": "none",
    "when": "always",
    "repeat": "once",
    "approval": "none",
    "plans": "`false`",
    "steps.agents": "",
    "steps.limits": "those of the workflow",
    "prices.cached_input": "the same as `input`",
    **{f"notify.{key}": "" for key in ("to", "command")},
    "notify.on": "`opened`, `expired`, and its own reminders",
    "notify.for": "all questions",
    "notify.remind": "none",
    "notify.quiet": "none",
    "notify.secret": "none: messages are not signed",
    "expire.only": "`medium`, `low`",
    "notify": "none",
    "roles": "none",
    "expire": "none",
    "for": "none",
    "stories.folder": "`stories`",
    "stories.worktree": "`false`",
    "stories.create_pr": "none: a story is done when its reviews pass",
    "stories.on_breach": "that of the workflow",
    "stories.circuit_breaker": "`true`",
    "stories": "none; on by default if there is a folder `stories` with stories",
    "agents": "the agent CLIs and `human`",
    "phases": " < ".join(DEFAULT_PHASES),
    "routes": "none, or those of the profile",
    "limits": "those of the profile",
    "redact": "none",
    "new_findings": "rework high and critical ones, defer the rest",
    "phase": "none; for a judge, that of its subject",
    "needs": "none",
    "reviews": "none",
    "tests": "none",
    "report": "none: the outcome is read",
    "accepts": "anything",
    "schema": "anything",
    "reads": "all of each input",
    "writes": "what git does not ignore",
    "workspace": "the folder of the file",
    "passes_if": "the judge's own verdict, or the profile's rule",
    "on_doubt": "`ask`, or `rerun` if idempotent",
    "idempotent": "`false`",
    "complete": "`true` for `tests` and for reports that list findings",
    "prompt": "the shipped one for the phase",
    "permission_mode": "see [below](#agent-clis)",
    "timeout": "none",
    "env": "none",
    "model": "the CLI's own",
    "allowed_tools": "the CLI's own",
    "max_turns": "the CLI's own",
    "max_budget_usd": "none",
}
"""Defaults that are not a single value in the code."""


# The workflow file


def workflow_file() -> str:
    step, agent = _values(SCHEMA, "steps"), _values(SCHEMA, "agents")
    options = [key for key in agent["properties"] if key not in ("run", "cli", "python", "human")]
    parts = {
        "At the top": _keys(SCHEMA),
        "Limits": _keys(SCHEMA["properties"]["limits"]),
        "A step": _keys(step, leave=options, place="steps."),
        "Options of an agent": _keys(agent, only=options),
        "An entry of `agents`": _keys(agent, leave=options),
        "An entry of `routes`": _keys(SCHEMA["properties"]["routes"]["items"]),
        "`repeat`": _keys(step["properties"]["repeat"], place="repeat."),
        "An entry of `checks`": _keys(_values(SCHEMA, "checks"), place="checks."),
        "An entry of `gates`": _keys(_values(SCHEMA, "gates"), place="gates."),
        "An entry of `prices`": _keys(SCHEMA["properties"]["prices"]["additionalProperties"], place="prices."),
        "An entry of `notify`": _keys(SCHEMA["properties"]["notify"]["items"], place="notify."),
        "`expire`": _keys(SCHEMA["properties"]["expire"], place="expire."),
        "`stories`": _keys(SCHEMA["properties"]["stories"], place="stories."),
    }
    notes = {
        "Limits": "A judge may have `limits` too, except the first four. They apply to its own loops. The "
        "defaults are those of the profile `default`; [the rules](rules.md#limits) list all limits and profiles.",
        "A step": "Use exactly one of `run`, `agent` and `agents`. The options of the agent are keys of the step, too.",
        "Options of an agent": "Use them in a step or in an entry of `agents`. An option that has no effect on the kind of "
        "agent is refused.",
        "An entry of `agents`": "Exactly one of these, and options.",
        "An entry of `routes`": "`to`, and at least one of the others.",
        "`repeat`": "See [conditions, repetitions and groups](../how-to/conditions-and-groups.md).",
        "An entry of `checks`": "See [checks and gates](../how-to/checks-and-gates.md). A place is `step:/json/pointer`.",
        "An entry of `gates`": "`metric`, and exactly one of `at_least`, `at_most`, `equals` and `zero`.",
        "An entry of `prices`": "See [provider limits and prices](../how-to/provider-limits-and-prices.md).",
        "An entry of `notify`": "Exactly one of `to` and `command`; see [notifications](../how-to/notifications.md).",
        "`stories`": "The [tutorial](../tutorial-stories.md) shows how to use them. `.ai-sdlc.json` or "
        "`.agentic-sdlc.json` next to the file can set the same limits with `refinement.maxIterations`, `escalateOnMaxAttempts` and `enableCircuitBreaker`; this "
        "file takes precedence.",
    }
    text = []
    for title, rows in parts.items():
        text.append(f"## {title}")
        text += [notes[title]] if title in notes else []
        text.append(table(("key", "value", "default", "meaning"), rows))
    return "\n\n".join(text)


def agent_clis() -> str:
    rows = []
    for name, cli in CLIS.items():
        flags = ", ".join(f"`{option}`" for option in sorted(cli.options))
        modes = ", ".join(f"`{mode}`" for mode in cli.modes)
        usual = (_usual_mode(cli, judges=False), _usual_mode(cli, judges=True))
        shape = "by its own flag" if cli.has_schema else "by the prompt"
        rows.append((f"`{name}`", f"`{cli.package}`", flags, modes, *usual, shape))
    head = ("agent", "npm package", "options", "permission modes", "default", "of a judge", "shape of the answer")
    return table(head, rows)


def _usual_mode(cli: Cli, judges: bool) -> str:
    """The permission mode of a step that names none: the one whose arguments are the same."""

    def arguments(mode: str) -> list[str]:
        return cli.arguments(Call(Options(permission_mode=mode), judges, None, {}, Path("schema.json")))

    return next((f"`{mode}`" for mode in cli.modes if arguments(mode) == arguments("")), "the CLI's own")


def prompt_words() -> str:
    from backedge.adapters.agents.prompts import _NEEDED, _WORDS

    sections, words = (", ".join(f"`{{{{{name}}}}}`" for name in names) for names in (_NEEDED, _WORDS))
    roles = ", ".join(f"`{role}`" for role in ROLES)
    return f"Sections: {sections}. Words: {words}. Shipped templates: {roles}."


def _values(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schema["properties"][key]["additionalProperties"]
    return found


def _keys(
    schema: Mapping[str, Any], only: Sequence[str] = (), leave: Sequence[str] = (), place: str = ""
) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for key, value in schema["properties"].items():
        if (only and key not in only) or key in leave:
            continue
        default = "required" if key in schema.get("required", ()) else _default(key, schema, place)
        rows.append((f"`{key}`", kind_of(value), default, value["description"]))
    return rows


def _default(key: str, schema: Mapping[str, Any], place: str) -> str:
    if schema is SCHEMA["properties"]["limits"]:
        bound = getattr(Limits(), key)
        return "off" if bound in (None, False) else f"`{bound:g}`"
    for owner in (Workflow, AgentSpec):
        parameter = inspect.signature(owner).parameters.get(key)
        if parameter is not None and isinstance(parameter.default, str) and parameter.default:
            return f"`{parameter.default}`"
    return DEFAULTS.get(f"{place}{key}", DEFAULTS.get(key, ""))


def kind_of(schema: Mapping[str, Any]) -> str:
    """The kind of value that a schema allows, in words."""
    if "anyOf" in schema and "type" not in schema:
        return " or ".join(dict.fromkeys(kind_of(each) for each in schema["anyOf"]))
    if "const" in schema:
        return f"`{str(schema['const']).lower()}`"
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    match schema.get("type"):
        case "array":
            return f"list of {_plural(schema['items'])}"
        case "object" if "properties" in schema:
            return f"mapping: {', '.join(f'`{key}`' for key in schema['properties'])}" if _small(schema) else "mapping"
        case "object":
            return "mapping"
        case "boolean":
            return "`true`, `false`"
        case "integer":
            return "whole number"
        case "number":
            return "number"
        case _:
            return str(schema.get("title", "text"))


def _small(schema: Mapping[str, Any]) -> bool:
    return len(schema["properties"]) <= 5


def _plural(schema: Mapping[str, Any]) -> str:
    return {"text": "texts", "mapping": "mappings"}.get(kind := kind_of(schema), kind)


# The agent protocol


def briefing_keys() -> str:
    told = msgspec.json.decode(briefing_json(briefing.Briefing("r", "code", "code", 1, "work")))
    kinds = get_type_hints(briefing.Briefing)
    renamed = {"limits_left": "left"}
    rows = [
        (f"`{key}`", words_of(kinds[renamed.get(key, key)]) if renamed.get(key, key) in kinds else "text or null",
         MEANINGS.get(f"Briefing.{key}", ""))
        for key in told
    ]  # fmt: skip
    text = [table(("key", "value", "meaning"), rows)]
    names = {"feedback": "FeedbackForAttempt", "feedback.findings[]": "BriefedFinding", "feedback.requests[]": "Request",
             "feedback.resolutions[]": "LoopResult", "feedback.verdicts[]": "BriefedVerdict",
             "history[]": "EarlierRound", "tried[]": "EarlierAttempt", "rules": "AnswerRules"}  # fmt: skip
    for place, name in names.items():
        text += [f"### `{place}`", fields_of(getattr(briefing, name), defaults=False)]
    return "\n\n".join(text)


def outcome_keys() -> str:
    text = [fields_of(protocol.Outcome)]
    names = {"findings[]": protocol.Finding, "resolutions[]": model.FindingResolution, "feedback[]": protocol.Feedback,
             "feedback[].options[]": model.Option, "decision": model.Decision, "approvals[]": values.Approval,
             "usage": model.Usage}  # fmt: skip
    for place, kind in names.items():
        text += [f"### `{place}`", fields_of(kind)]
    return "\n\n".join(text)


def sizes() -> str:
    made = inspect.signature(command.CommandAgent.__init__).parameters
    rows = [
        ("the outcome, in its file or on stdout", _bytes(made["max_output"].default), "an error of the attempt"),
        ("stdout, and stderr", _bytes(made["max_stdout"].default), "the command is ended; an error of the attempt"),
        (
            "the end of stdout that is searched for the outcome",
            _bytes(outcome.TAIL),
            "anything before that is ignored",
        ),
        ("the end of stderr that is kept in the journal", _bytes(command.LOG_KEPT), "the beginning is left out"),
        (
            "one text in a finding or feedback",
            f"{protocol.LONGEST_TEXT:,} characters",
            "the rest is left out and counted",
        ),
        ("one value in the prompt of an agent CLI", f"{LONGEST:,} characters", "the rest is in the briefing file"),
        ("all feedback in the prompt of an agent CLI", f"{MOST:,} characters", "the rest is in the briefing file"),
        ("the time to end when asked to", f"{made['grace'].default:g} s", "then the whole process group is killed"),
        ("the workflow file", _bytes(MAX_BYTES), "it is refused"),
    ]
    return table(("what", "at most", "beyond that"), rows)


def placeholders() -> str:
    return ", ".join(f"`{{{word}}}`" for word in PLACEHOLDERS)


def _bytes(count: int) -> str:
    size, unit = next(
        (count / each, unit) for each, unit in ((2**20, "MiB"), (2**10, "KiB"), (1, "bytes")) if count >= each
    )
    return f"{size:g} {unit}"


# Commands


def commands() -> str:
    context = click.Context(main, info_name="backedge")
    text = []
    for topic, named in TOPICS.items():
        listed = [f"- [`backedge {name}`](#backedge-{name}): {summary}" for name, (_, summary) in named.items()]
        text += [f"{topic}:", "\n".join(listed)]
    for path, each in every_command():
        text += _command(path, each, context)
    return "\n\n".join(text)


def every_command() -> Iterator[tuple[str, click.Command]]:
    """All commands by name, including those in groups."""
    context = click.Context(main)
    for name in main.list_commands(context):
        found = main.get_command(context, name)
        assert found is not None
        yield name, found
        if isinstance(found, click.Group):
            yield from ((f"{name} {word}", each) for word, each in found.commands.items())


def _command(path: str, each: click.Command, above: click.Context) -> list[str]:
    usage = " ".join(each.collect_usage_pieces(click.Context(each, parent=above)))
    said, _, example = inspect.cleandoc(each.help or "").partition("\b\nExample:\n")
    text = [f"{'###' if ' ' in path else '##'} `backedge {path}`", f"```text\nbackedge {path} {usage}\n```"]
    text += [" ".join(part.split()) for part in said.strip().split("\n\n")]
    rows = [_option(each) for each in each.params if isinstance(each, click.Option)]
    text += [table(("option", "default", "meaning"), rows)] if rows else []
    text += [f"```sh\n{inspect.cleandoc(example)}\n```"] if example else []
    return text


def _option(option: click.Option) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*sorted(option.opts, key=len, reverse=True), *option.secondary_opts))
    takes = ""
    if not option.is_flag:
        kind = option.type
        takes = " " + (
            " \\| ".join(f"`{word}`" for word in kind.choices)
            if isinstance(kind, click.Choice)
            else f"`{option.metavar or kind.name.upper()}`"
        )
    usual = option.default if isinstance(option.default, str | int | float) and not option.is_flag else None
    default = "required" if option.required else f"`{usual}`" if usual not in (None, "") else ""
    return f"{names}{takes}", default, option.help or ""


def exit_codes() -> str:
    codes: dict[int, list[str]] = {}
    for word, code in EXIT.items():
        codes.setdefault(code, []).append(word)
    meanings = {
        **{code: ", ".join(f"**{word}**" for word in words) for code, words in codes.items()},
        2: "bad usage, a bad file, an unknown run, a second decision; a message on stderr says what to do",
        INTERRUPTED: "interrupted by a signal; continue with `backedge resume`",
    }
    return table(("code", "what happened"), [(f"`{code}`", meanings[code]) for code in sorted(meanings)])


# JSON


def json_report() -> str:
    kinds = (report.Report, report.StepReport, report.LoopReport, report.FindingReport, report.EscalationReport,
             report.RefusalReport, report.UsageReport, model.Breach, model.Resolution, model.Option,
             report.PlanReport, values.Baseline, values.TestCounts, rounds.RoundReport, rounds.WorkReport,
             rounds.VerdictReport, changes.AttemptChange)  # fmt: skip
    places = ("The whole", "`steps.NAME`", "`loops[]`", "`findings[]`", "`escalations[]`", "`refused[]`", "`usage`",
              "`breach`", "`resolution`", "`offers[]`", "`plans[]`", "`baselines[]`", "`tests`",
              "`loops[].history[]`", "`loops[].history[].work[]`", "`loops[].verdicts[]`", "`changes[]`")  # fmt: skip
    return _tables(places, kinds)


def json_inbox() -> str:
    kinds = (inbox.InboxItem, options.PacketOption, inbox.Estimate, briefing.BriefedFinding, inbox.InboxRound,
             briefing.Request, inbox.InboxInput, inbox.InboxChange)  # fmt: skip
    places = ("An entry of the inbox", "`choices[]`", "`estimate`", "`findings[]` of an entry", "`history[]`",
              "`requests[]`", "`inputs[]`", "`changes[]` of an entry")  # fmt: skip
    return _tables(places, kinds)


def _tables(places: Sequence[str], kinds: Sequence[type[Any]]) -> str:
    text = []
    for place, kind in zip(places, kinds, strict=True):
        text += [f"### {place}", fields_of(kind, defaults=False)]
    return "\n\n".join(text)


# Fields


def fields_of(kind: type[Any], defaults: bool = True) -> str:
    hints, sentences = get_type_hints(kind), _sentences(kind)
    rows = []
    for field in msgspec.structs.fields(kind):
        usual = "required" if field.required else _shown(field)
        names = [each.__name__ for each in kind.__mro__]
        known = next((MEANINGS[key] for name in names if (key := f"{name}.{field.name}") in MEANINGS), "")
        meaning = known or sentences.get(field.name) or _shared(field.name)
        if not meaning:
            raise ValueError(f"{kind.__name__}.{field.name} has no meaning: add a sentence below it, or to MEANINGS")
        cells = (f"`{field.name}`", words_of(hints[field.name]), *((usual,) if defaults else ()), meaning)
        rows.append(cells)
    return table(("key", "value", *(("default",) if defaults else ()), "meaning"), rows)


def _shared(name: str) -> str:
    """What a field means, whatever its class."""
    found = (MEANINGS.get(f"{owner}.{name}") for owner in ("Finding", "Feedback"))
    return next((meaning for meaning in found if meaning), "")


def _shown(field: Any) -> str:
    empty = field.default in (None, (), "", msgspec.NODEFAULT) or isinstance(field.default, msgspec.Struct)
    return "" if empty else f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def _sentences(kind: type[Any]) -> dict[str, str]:
    """The sentences below the fields in the source."""
    base = kind.__base__
    inherited = _sentences(base) if base is not None and getattr(base, "__struct_fields__", None) else {}
    found = re.findall(r'^    (\w+): [^\n]*\n    """(.*?)"""', inspect.getsource(kind), re.MULTILINE | re.DOTALL)
    return inherited | {name: " ".join(said.split()).rstrip(".") for name, said in found}


def words_of(kind: Any) -> str:
    """A type in the words of JSON."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(words_of(part) for part in parts)
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if origin is not None and not issubclass(origin, Mapping):
        return f"list of {_many(words_of(parts[0]))}"
    if kind is type(None):
        return "null"
    if isinstance(kind, type):
        for python, word in (
            (bool, "true or false"),
            (str, "text"),
            (int | float, "number"),
            (msgspec.Struct, "object"),
        ):
            if issubclass(kind, python):
                return word
    return "object" if origin is not None or kind is dict else "any JSON"


def _many(word: str) -> str:
    return f"{word}s" if word in ("text", "number", "object") else word


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([_row(head), "|" + "---|" * len(head), *(_row(row) for row in rows)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in cells) + " |"
