"""What a check or a gate measures, and the verdict that follows from it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from backedge.core.feedback.routing import Route
from backedge.core.model import Finding, Outcome
from backedge.core.state.run import RunState
from backedge.core.value import Json, replace
from backedge.core.workflow.checks import Check, EngineJudge, Gate
from backedge.core.workflow.graph import Graph
from backedge.core.workflow.values import Missing, equal, parse_amount, parse_reference, value_at

SHOWN = 120
"""Characters of a value that a finding's description shows; its evidence has the whole."""


def measure(measure: EngineJudge, inputs: Mapping[str, Json]) -> dict[str, Json]:
    """The values that a check compares or a gate holds against its threshold, from the outputs of their producers. A
    step that is skipped has no say. Raises ValueError for a place where there is nothing."""
    if isinstance(measure, Check):
        there = [each for each in measure.references if each.step in inputs]
        return {"positions": {str(each): _at(inputs, str(each)) for each in there}}
    said: dict[str, Json] = {}
    if measure.metric and parse_reference(measure.metric).step in inputs:
        said["actual"] = _at(inputs, measure.metric)
    if measure.causes and parse_reference(measure.causes).step in inputs:
        place = parse_reference(measure.causes)
        causes = value_at(inputs[place.step], place.pointer)
        said["causes"] = causes if isinstance(causes, list) else [] if isinstance(causes, Missing) else [causes]
    return said


def _at(inputs: Mapping[str, Json], text: str) -> Json:
    place = parse_reference(text)
    value = value_at(inputs[place.step], place.pointer)
    if isinstance(value, Missing):
        raise ValueError(f"there is nothing at {text}: {place.step!r} has to put it into its output")
    return value


def with_verdict(graph: Graph, name: str, outcome: Outcome) -> Outcome:
    """The outcome of a check or gate with the verdict that follows from what was measured. Raises ValueError for
    values that cannot be compared."""
    measure, said = graph.measures[name], outcome.made.values.get("")
    if not isinstance(said, dict) or (isinstance(measure, Check) and "positions" not in said):
        raise ValueError(f"{name!r} was finished without what it measures: it has to be measured again")
    findings = _conflict(measure, said) if isinstance(measure, Check) else _shortfall(measure, said)
    return replace(outcome, verdict="fail" if findings else "pass", findings=findings)


def route_of_engine_judge(state: RunState, name: str, finding: Finding) -> Route:
    """Who is to mend what a check or gate found: all who disagree, or all but the authority; whom the gate requests
    something of, else who made the metric."""
    measure, judges = state.graph.measures[name], state.graph.steps[name].judges
    if isinstance(measure, Check):
        there = tuple(each for each in judges if not state.steps[each].condition_false)
        wins = _winner(measure, there)
        if wins is None:
            return Route(there, "consensus")
        others = tuple(each for each in there if each != wins)
        like = _like(measure, json.loads(finding.evidence)["positions"], wins)
        return Route(tuple(each for each in others if each not in like) or others, "authority")
    asked = tuple(target for target, request in measure.requests if request == finding.suggested_fix)
    if asked:
        return Route(asked, "requests")
    producer = parse_reference(measure.metric).step if measure.metric else ""
    return Route(state.graph.steps[producer].judges or (producer,) if producer else judges, "subject")


def _winner(check: Check, there: tuple[str, ...]) -> str | None:
    if check.resolve == "consensus":
        return None
    return next((each for each in check.authority if each in there), None)


def _like(check: Check, positions: dict[str, Json], wins: str) -> set[str]:
    """Who has the position that stands already, where all have to have the same."""
    taken: dict[str, list[Json]] = {}
    for place, value in positions.items():
        taken.setdefault(parse_reference(place).step, []).append(value)
    if check.rule != "equal" or wins not in taken:
        return set()
    standing = taken[wins][0]
    same = {step for step, values in taken.items() if all(equal(value, standing) for value in values)}
    return same if wins in same else set()


def _conflict(check: Check, said: Json) -> tuple[Finding, ...]:
    # In the order of the check: the outcome that was recorded need not keep it.
    taken: dict[str, Json] = said["positions"]
    positions = {place: taken[place] for place in map(str, check.references) if place in taken}
    if len(positions) < 2:
        return ()
    problem = _disagreement(check, positions, said)
    if problem is None:
        return ()
    stated = "; ".join(f"{place} is {_shown(value)}" for place, value in positions.items())
    wins = _winner(check, tuple(parse_reference(place).step for place in positions))
    if wins is None:
        wanted = "agree on a position that fits both, and change yours to it"
    else:
        standing = {place: value for place, value in positions.items() if parse_reference(place).step == wins}
        wanted = f"the position of {wins} stands: {'; '.join(f'{p} is {_shown(v)}' for p, v in standing.items())}"
    return (
        Finding(
            description=f"{check.name}: {problem}: {stated}",
            severity=check.severity,
            blocking=check.blocking,
            category="inconsistency",
            evidence=_text({"check": check.name, "rule": check.rule, "positions": positions}),
            suggested_fix=wanted,
        ),
    )


def _disagreement(check: Check, positions: dict[str, Json], said: Json) -> str | None:
    """Why positions do not agree; None if they do."""
    places, values = list(positions), list(positions.values())
    if check.command:
        return None if said.get("compatible") else str(said.get("reason") or "not compatible")
    match check.rule:
        case "equal":
            return None if all(equal(values[0], each) for each in values[1:]) else "not equal"
        case "subset" | "superset":
            for place in range(len(values) - 1):
                small, large = (place, place + 1) if check.rule == "subset" else (place + 1, place)
                if not _inside(values[small], values[large]):
                    return f"{places[small]} is not a subset of {places[large]}"
            return None
        case _:
            return _misfit(dict(check.table), values)


def _inside(small: Json, large: Json) -> bool:
    if isinstance(small, dict) and isinstance(large, dict):
        return all(key in large and equal(value, large[key]) for key, value in small.items())
    others = _listed(large)
    return all(any(equal(each, other) for other in others) for each in _listed(small))


def _misfit(table: Mapping[str, tuple[str, ...]], values: list[Json]) -> str | None:
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


def _shortfall(gate: Gate, said: Json) -> tuple[Finding, ...]:
    if "actual" not in said or _meets(gate, said["actual"]):
        return ()
    evidence = {"gate": gate.name, "metric": gate.measures, "threshold": gate.expected, "actual": said["actual"]}
    evidence["causes"] = said.get("causes", [])
    requests = tuple(dict.fromkeys(request for _, request in gate.requests)) or ("",)
    return tuple(
        Finding(
            description=f"{gate.name}: {gate.measures} is {_shown(said['actual'])}, expected {gate.expected}"
            + (f": {request}" if request else ""),
            severity=gate.severity,
            blocking=gate.blocking,
            category="quality gate",
            evidence=_text(evidence),
            suggested_fix=request or None,
        )
        for request in requests
    )


def _meets(gate: Gate, actual: Json) -> bool:
    if gate.bound == "equals":
        return equal(actual, gate.threshold)
    zero = gate.bound == "zero"
    measured = parse_amount(len(actual) if zero and isinstance(actual, list | dict) else actual)
    bound = parse_amount(0 if zero else gate.threshold)
    if measured is None or bound is None:
        raise ValueError(f"{gate.measures} is {_shown(actual)}: expected a number to hold against {gate.expected}")
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
