"""A step as a user writes it, in the workflow file or in Python, parsed into the step that a definition keeps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from backedge.core.errors import WorkflowError
from backedge.core.suggestions import did_you_mean
from backedge.core.workflow.definition import PASS_RULES, PassRule, Repeat, Step, Thresholds
from backedge.core.workflow.parsing import mapping, shown, whole, words

_REPEAT_KEYS = ("until", "max", "to")
_THRESHOLDS = ("files", "paths", "confidence")


def parse_step(
    name: str,
    given: Mapping[str, Any],
    *,
    agents: tuple[str, ...],
    called: tuple[str, ...] = (),
    timeout: float | None = None,
    question: str = "",
    lists_findings: bool = False,
) -> Step:
    """A step from its keys; those of the workflow file that only its agents need are left to the caller.

    `lists_findings` says that its report lists everything it finds. Raises WorkflowError.
    """
    reviews, tests = (words(key, given.get(key, ())) for key in ("reviews", "tests"))
    if reviews and tests:
        raise WorkflowError("it both reviews and tests: choose one, or make it two steps")
    judges = (*reviews, *tests)
    complete, plans = given.get("complete"), parse_plans(given.get("plans", False))
    return Step(
        name=name,
        phase=given.get("phase", ""),
        needs=tuple(need for need in words("needs", given.get("needs", ())) if need not in judges),
        judges=judges,
        tests=bool(tests),
        hidden=given.get("hidden", False),
        complete=bool(tests) or lists_findings if complete is None else complete,
        agents=agents,
        verifier=isinstance(given.get("agents") or given.get("agent"), Mapping),
        called=called,
        passes_if=parse_pass_rule(given.get("passes_if")),
        approval=None if isinstance(given.get("approval"), Mapping) else given.get("approval"),
        thresholds=parse_thresholds(given.get("approval")),
        on_doubt=given.get("on_doubt") or ("rerun" if given.get("idempotent") else "ask"),
        timeout=timeout,
        reads=parse_reads(given.get("reads")),
        when=words("when", given.get("when", ())),
        repeat=parse_repeat(given.get("repeat")),
        group=given.get("group", ""),
        question=question,
        plans=plans is not False,
        plans_judges=plans == {"judges": True},
        on_worse=given.get("on_worse"),
        for_roles=words("for", given.get("for", given.get("for_roles", ()))),
    )


def parse_plans(given: object) -> bool | dict[str, Any]:
    """Whether a step plans, and what it may change: true, false, or `judges: true`. Raises WorkflowError."""
    if isinstance(given, bool):
        return given
    if not isinstance(given, Mapping):
        raise WorkflowError(f"plans is {shown(given)}: expected true, false, or {{judges: true}}")
    found: dict[str, Any] = mapping("plans", given)
    for key, value in found.items():
        if key != "judges":
            raise WorkflowError(f"plans has the key {key!r}: {did_you_mean(key, ('judges',))}")
        if not isinstance(value, bool):
            raise WorkflowError(f"judges of plans is {shown(value)}: expected true or false")
    return found or True


def parse_thresholds(given: object) -> Thresholds | None:
    """When a person has to approve what a step made: `when` with files, paths or confidence. Raises WorkflowError."""
    if not isinstance(given, Mapping):
        return None
    approval: dict[str, Any] = mapping("approval", given)
    for key in approval:
        if key != "when":
            raise WorkflowError(f"approval has the key {key!r}: {did_you_mean(key, ('when',))}")
    when: dict[str, Any] = mapping("when of approval", approval.get("when"))
    for key in when:
        if key not in _THRESHOLDS:
            raise WorkflowError(f"when of approval has the key {key!r}: {did_you_mean(key, _THRESHOLDS)}")
    if not when:
        raise WorkflowError(f"approval is {shown(approval)}: expected human, or `when` with {', '.join(_THRESHOLDS)}")
    files, confidence = when.get("files"), when.get("confidence")
    return Thresholds(None if files is None else whole(files), words("paths", when.get("paths", ())), confidence)


def parse_repeat(given: object) -> Repeat | None:
    """How often a step is repeated, and until when. Raises WorkflowError."""
    if given is None:
        return None
    repeat: dict[str, Any] = mapping("repeat", given)
    for key in repeat:
        if key not in _REPEAT_KEYS:
            raise WorkflowError(f"repeat has the key {key!r}: {did_you_mean(key, _REPEAT_KEYS)}")
    if "until" not in repeat or "max" not in repeat:
        raise WorkflowError(
            f"repeat is {shown(repeat)}: expected `until` with a condition and `max` with a number of executions"
        )
    return Repeat(words("until", repeat["until"]), whole(repeat["max"]), repeat.get("to", ""))


def parse_reads(given: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The parts of its inputs that a step reads: JSON pointers, by producer. Raises WorkflowError."""
    return tuple((producer, _pointers(producer, read)) for producer, read in mapping("reads", given).items())


def _pointers(producer: str, given: object) -> tuple[str, ...]:
    found = words(f"reads of {producer!r}", given)
    for pointer in found:
        if pointer and not pointer.startswith("/"):
            raise WorkflowError(f"it reads {pointer!r} of {producer!r}: expected a JSON pointer, such as '/{pointer}'")
    return found


def parse_pass_rule(given: object) -> PassRule | None:
    """When a judge passes: a rule's name, or how many findings of each severity still pass. Raises WorkflowError."""
    if given is None:
        return None
    if isinstance(given, str):
        return PassRule(name=given)
    if not isinstance(given, Mapping) or not given:
        got = "empty" if isinstance(given, Mapping) else shown(given)
        raise WorkflowError(
            f"passes_if is {got}: expected one of {', '.join(PASS_RULES)}, or how many findings of each severity may pass"
        )
    return PassRule(at_most=tuple((severity, whole(count)) for severity, count in given.items()))


def agent_names(step: str, count: int, taken: Collection[str] = ()) -> tuple[str, ...]:
    """A name for each agent of a step: the step's own, then step#2, step#3 …, longer where that name is taken."""
    names = [step]
    for number in range(2, count + 1):
        name = f"{step}#{number}"
        while name in taken:
            name += "#"
        names.append(name)
    return tuple(names[:count])
