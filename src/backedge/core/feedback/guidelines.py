"""What an answer may contain, in the words of the rules that check it: legal targets, phases, and when a verdict passes.

Briefings, prompts and answer schemas take it from here, so that an agent is told the same rule that it is held to.
"""

from __future__ import annotations

from backedge.core.feedback.routing import legal_targets, steps_of_phase
from backedge.core.findings.held_out import is_hidden
from backedge.core.model import HUMAN, Kind
from backedge.core.value import Value
from backedge.core.workflow.definition import PassRule
from backedge.core.workflow.graph import Graph

MOST_TARGETS = 200
"""In a larger workflow, targets are not listed: every briefing would repeat all steps."""

CAUSED_BY: dict[str, str] = {
    "research": "a fact about the problem or about the existing code is wrong or missing",
    "planning": "a requirement or a unit of work is missing, the work is divided wrongly, a dependency between units is "
    "missing, or the task was misunderstood",
    "design": "an interface is wrong (operations, error codes), a data model does not fit (types, indexes), parts depend "
    "on each other in the wrong way, or the design itself is insecure (no encryption, weak authentication)",
    "code": "plan and design are right, and the code does not do what they say",
    "test": "the test itself is wrong or missing",
}
"""How to recognise the phase that caused a defect. Phases with other names are listed without an explanation."""

ASKS_FOR: dict[Kind, str] = {
    Kind.FIX_REQUEST: "correct what you made",
    Kind.REVIEW_REJECTION: "correct what a review rejects",
    Kind.TEST_FAILURE: "make a failing test pass",
    Kind.MISSING_REQUIREMENT: "add a requirement that is missing",
    Kind.ARCHITECTURE_ISSUE: "change the plan or the design, which is wrong",
    Kind.TECHNICAL_INFEASIBILITY: "change the plan or the design, which cannot be built",
    Kind.VALIDATION_FAILURE: "correct an output that does not have the agreed form",
    Kind.CONTEXT_REQUEST: "answer a question; nothing is changed",
    Kind.CONSTRAINT_VIOLATION: "choose among options, because the work cannot be done as asked",
    Kind.DEPENDENCY_MISSING: "add a step whose result is missing",
    Kind.INCONSISTENCY: "agree with another step that says the opposite",
    Kind.QUALITY_GATE_FAILURE: "correct what keeps a measured value below its bound",
}
"""What each kind of feedback asks its targets to do."""

AGREEMENTS = {
    "first": "The first answer counts.",
    "all": "All have to choose the same option. If they do not, all are asked once more, and then a person decides.",
    "authority": "The option of the highest in authority counts.",
}
"""How several targets of a choice agree, by the workflow's `agreement`."""
LAST_VOTE = (
    "All have to choose the same option. They did not: this is the last time that you are asked, then a person decides."
)

UNCERTAIN = (
    "If the defect is in more than one phase, name each phase whose work has to change. If you are not certain, {instead}, "
    "and say in the description which other phase it may come from: a person can correct it."
)


class AnswerRules(Value, frozen=True):
    """What the answer of an attempt may contain."""

    targets: tuple[str, ...] = ()
    """The steps that it may send feedback to, and `human`."""
    phases: tuple[str, ...] = ()
    """For a judge: the phases that a finding may be attributed to, in their order."""
    passes_if: str = ""
    """For a judge whose verdict is computed from its findings: when it passes."""
    kinds: tuple[str, ...] = ()
    """The workflow's own kinds of feedback."""
    writes: tuple[str, ...] | None = None
    """The files that it may change, as globs; empty if none, null if that is not restricted."""
    judged_by: tuple[str, ...] = ()
    """The steps that will judge the work. Held-out judges are not among them."""
    agreement: str = ""
    """How several targets of a choice agree."""
    findings: tuple[str, ...] = ()
    """The findings that `resolutions` may name."""
    confidence: bool = False
    """Whether it has to say how confident it is of its result."""


def answer_rules(graph: Graph, step: str) -> AnswerRules:
    """The rules for the answer of a step."""
    rule = graph.steps[step].passes_if
    return AnswerRules(
        targets=(*legal_targets(graph, step), HUMAN) if len(graph.steps) <= MOST_TARGETS else (),
        phases=tuple(phase for phase in graph.phases if _reaches(graph, step, phase)) if step in graph.judges else (),
        passes_if=rule_in_words(rule) if rule is not None else "",
        kinds=tuple(name for name, _ in graph.workflow.kinds),
        writes=graph.steps[step].writes,
        judged_by=tuple(judge for judge in graph.judges_of[step] if _is_told(graph, judge)),
        agreement=AGREEMENTS[graph.workflow.agreement],
        confidence=(bounds := graph.steps[step].thresholds) is not None and bounds.confidence is not None,
    )


def _is_told(graph: Graph, judge: str) -> bool:
    return not is_hidden(graph, judge) and not graph.steps[judge].approver


def _reaches(graph: Graph, judge: str, phase: str) -> bool:
    return bool(steps_of_phase(graph, judge, phase))


def rule_in_words(rule: PassRule) -> str:
    """When `verdict_by_rule` lets work pass."""
    match rule.name:
        case "ai-sdlc":
            return "no finding is blocking, and fewer than 2 are critical"
        case "asp-design":
            return "no finding is critical or high"
        case "asp-code":
            return "no finding is critical, and fewer than 5 are high (1 to 4 pass conditionally)"
        case _:
            return ", and ".join(
                f"at most {count} {'is' if count == 1 else 'are'} {level}" if count else f"none is {level}"
                for level, count in rule.at_most
            )


def guidelines(phases: tuple[str, ...], under_review: str) -> str:
    """How a judge finds the phase that caused a defect; empty if there is nothing to choose."""
    if len(phases) < 2:
        return ""
    lines = [f"- {phase}{f': {CAUSED_BY[phase]}' if phase in CAUSED_BY else ''}" for phase in phases]
    instead = f"name the phase under review ({under_review})" if under_review else "leave `affected_phase` empty"
    return "\n".join([*lines, UNCERTAIN.format(instead=instead)])
