"""What a check or a gate measures, and the verdict that follows from it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from backedge.core.feedback.routing import Route
from backedge.core.model import Finding, Option, Outcome
from backedge.core.state.run import RunState
from backedge.core.value import Json, replace
from backedge.core.workflow.checks import Check, EngineJudge, Gate
from backedge.core.workflow.graph import Graph
from backedge.core.workflow.values import Missing, equal, parse_amount, parse_reference, value_at

SHOWN = 120
"""How many characters of a value the description of a finding shows. Its evidence has the full value."""


def measure(judge: EngineJudge, inputs: Mapping[str, Json]) -> dict[str, Json]:
    """The values that a check compares, or that a gate compares with its threshold, from the outputs of the producers.
    Skipped steps are left out. Raises ValueError if a referenced value is missing."""
    if isinstance(judge, Check):
        available = [each for each in judge.references if each.step in inputs]
        return {"positions": {str(each): _at(inputs, str(each)) for each in available}}
    measured: dict[str, Json] = {}
    if judge.metric and parse_reference(judge.metric).step in inputs:
        measured["actual"] = _at(inputs, judge.metric)
    if judge.causes and parse_reference(judge.causes).step in inputs:
        reference = parse_reference(judge.causes)
        causes = value_at(inputs[reference.step], reference.pointer)
        measured["causes"] = causes if isinstance(causes, list) else [] if isinstance(causes, Missing) else [causes]
    return measured


def _at(inputs: Mapping[str, Json], text: str) -> Json:
    reference = parse_reference(text)
    value = value_at(inputs[reference.step], reference.pointer)
    if isinstance(value, Missing):
        raise ValueError(f"there is no value at {text}: {reference.step!r} has to include it in its output")
    return value


def with_verdict(graph: Graph, name: str, outcome: Outcome) -> Outcome:
    """The outcome of a check or gate with the verdict that follows from the measured values. Raises ValueError if they
    cannot be compared."""
    judge, measured = graph.engine_judges[name], outcome.made.values.get("")
    if not isinstance(measured, dict) or (isinstance(judge, Check) and "positions" not in measured):
        raise ValueError(f"{name!r} finished without its measured values: measure it again")
    findings = _conflict(judge, measured) if isinstance(judge, Check) else _shortfall(judge, measured)
    summary = outcome.summary or _summary(judge, measured)
    return replace(outcome, verdict="fail" if findings else "pass", findings=findings, summary=summary)


def _summary(judge: EngineJudge, measured: dict[str, Json]) -> str:
    """What was measured, in words: each verdict keeps its own values, also when the finding stays the same."""
    if isinstance(judge, Check):
        return _stated(_positions(judge, measured))
    return _compared(judge, measured["actual"]) if "actual" in measured else ""


def route_of_engine_judge(state: RunState, name: str, finding: Finding) -> Route:
    """Which steps rework a finding of a check or gate. For a check: all that disagree, except the one with authority.
    For a gate: those that it has a request for, else the producer of the metric."""
    judge, subjects = state.graph.engine_judges[name], state.graph.steps[name].judges
    if isinstance(judge, Check):
        available = tuple(each for each in subjects if not state.steps[each].condition_false)
        winner = _winner(judge, available)
        if winner is None:
            return Route(available, "consensus")
        others = tuple(each for each in available if each != winner)
        agreeing = _agreeing(judge, json.loads(finding.evidence)["positions"], winner)
        return Route(tuple(each for each in others if each not in agreeing) or others, "authority")
    requested = tuple(target for target, request in judge.requests if request == finding.suggested_fix)
    if requested:
        return Route(requested, "requests")
    producer = parse_reference(judge.metric).step if judge.metric else ""
    return Route(state.graph.steps[producer].judges or (producer,) if producer else subjects, "subject")


def _winner(check: Check, available: tuple[str, ...]) -> str | None:
    """The step whose position the others have to adopt; None if they have to agree."""
    if check.resolve == "consensus":
        return None
    return next((each for each in check.authority if each in available), None)


def _agreeing(check: Check, positions: dict[str, Json], winner: str) -> set[str]:
    """The steps that already have the winner's position, for a check that all are equal."""
    values_of: dict[str, list[Json]] = {}
    for reference, value in positions.items():
        values_of.setdefault(parse_reference(reference).step, []).append(value)
    if check.rule != "equal" or winner not in values_of:
        return set()
    wanted = values_of[winner][0]
    same = {step for step, values in values_of.items() if all(equal(value, wanted) for value in values)}
    return same if winner in same else set()


def _conflict(check: Check, measured: Json) -> tuple[Finding, ...]:
    positions = _positions(check, measured)
    if len(positions) < 2:
        return ()
    problem = _disagreement(check, positions, measured)
    if problem is None:
        return ()
    winner = _winner(check, tuple(parse_reference(reference).step for reference in positions))
    if winner is None:
        wanted = "agree on one position, and change your output to it"
        if check.options:
            wanted += f"; the options are: {'; '.join(_said(option) for option in check.options)}"
    else:
        winning = {key: value for key, value in positions.items() if parse_reference(key).step == winner}
        wanted = f"adopt the position of {winner}: {_stated(winning)}"
    return (
        Finding(
            description=f"{check.name}: {problem}: {_stated(positions)}",
            severity=check.severity,
            blocking=check.blocking,
            category="inconsistency",
            evidence=_text({"check": check.name, "rule": check.rule, "positions": positions}),
            suggested_fix=wanted,
        ),
    )


def _positions(check: Check, measured: Json) -> dict[str, Json]:
    """The positions in the order of the check: the recorded outcome need not keep it."""
    recorded: dict[str, Json] = measured["positions"]
    return {reference: recorded[reference] for reference in map(str, check.references) if reference in recorded}


def _said(option: Option) -> str:
    more = [f"{word}: {text}" for word, text in (("effort", option.effort), ("impact", option.impact)) if text]
    return f"{option.option} ({', '.join(more)})" if more else option.option


def _stated(positions: dict[str, Json]) -> str:
    return "; ".join(f"{reference} is {_shown(value)}" for reference, value in positions.items())


def _disagreement(check: Check, positions: dict[str, Json], measured: Json) -> str | None:
    """Why positions do not agree; None if they do."""
    references, values = list(positions), list(positions.values())
    if check.command:
        return None if measured.get("compatible") else str(measured.get("reason") or "not compatible")
    match check.rule:
        case "equal":
            return None if all(equal(values[0], each) for each in values[1:]) else "not equal"
        case "subset" | "superset":
            for index in range(len(values) - 1):
                small, large = (index, index + 1) if check.rule == "subset" else (index + 1, index)
                if not _is_subset(values[small], values[large]):
                    return f"{references[small]} is not a subset of {references[large]}"
            return None
        case _:
            return _incompatibility(dict(check.table), values)


def _is_subset(small: Json, large: Json) -> bool:
    if isinstance(small, dict) and isinstance(large, dict):
        return all(key in large and equal(value, large[key]) for key, value in small.items())
    others = _listed(large)
    return all(any(equal(each, other) for other in others) for each in _listed(small))


def _incompatibility(table: Mapping[str, tuple[str, ...]], values: list[Json]) -> str | None:
    for one in map(_word, _listed(values[0])):
        allowed = table.get(one)
        for other in (_word(each) for value in values[1:] for each in _listed(value)):
            if allowed is not None and other not in allowed:
                return f"{one} goes with {', '.join(allowed) or 'nothing'}, not with {other}"
    return None


def _listed(value: Json) -> list[Json]:
    if isinstance(value, list):
        return value
    return list(value) if isinstance(value, dict) else [value]


def _word(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _shortfall(gate: Gate, measured: Json) -> tuple[Finding, ...]:
    if "actual" not in measured or _meets(gate, measured["actual"]):
        return ()
    evidence = {"gate": gate.name, "metric": gate.measures, "threshold": gate.expected, "actual": measured["actual"]}
    evidence["causes"] = measured.get("causes", [])
    requests = tuple(dict.fromkeys(request for _, request in gate.requests)) or ("",)
    return tuple(
        Finding(
            description=f"{gate.name}: {_compared(gate, measured['actual'])}" + (f": {request}" if request else ""),
            severity=gate.severity,
            blocking=gate.blocking,
            category="quality gate",
            evidence=_text(evidence),
            suggested_fix=request or None,
        )
        for request in requests
    )


def _compared(gate: Gate, actual: Json) -> str:
    return f"{gate.measures} is {_shown(actual)}, expected {gate.expected}"


def _meets(gate: Gate, actual: Json) -> bool:
    if gate.bound == "equals":
        return equal(actual, gate.threshold)
    zero = gate.bound == "zero"
    measured = parse_amount(len(actual) if zero and isinstance(actual, list | dict) else actual)
    bound = parse_amount(0 if zero else gate.threshold)
    if measured is None or bound is None:
        raise ValueError(f"{gate.measures} is {_shown(actual)}: expected a number to compare with {gate.expected}")
    if zero:
        return measured.number == 0
    if not measured.fits(bound):
        raise ValueError(f"{gate.measures} is {_shown(actual)}, expected {gate.expected}: give both in the same unit")
    return measured.number >= bound.number if gate.bound == "at_least" else measured.number <= bound.number


def _shown(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
