"""The graph of a workflow with its back edges, as Mermaid and as plain text."""

from __future__ import annotations

from itertools import groupby
from unicodedata import east_asian_width

from backedge.core.workflow.checks import Check, Gate
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.graph import Graph, graph_of

_LEAST = 20
"""The smallest width of a drawing."""
_MOST = 20
"""The most back edges that are drawn for one judge: the nearest ones."""


def back_edges(definition: Workflow) -> dict[str, tuple[str, ...]]:
    """For each judge, the steps that its findings are likely to go back to: what it judges, then the steps upstream,
    nearest first, then the targets of routes. Other targets may be legal too."""
    graph = graph_of(definition)
    routed = [name for rule in definition.routes for name in graph.steps if rule.to in (name, graph.phase_of[name])]
    found = {}
    for name in _in_order(graph):
        if graph.is_judge(name):
            likely = dict.fromkeys(_likely(graph, name, routed))
            found[name] = tuple(each for each in likely if graph.is_legal(name, each))
    return found


def _likely(graph: Graph, judge: str, routed: list[str]) -> tuple[str, ...]:
    measure, judged = graph.engine_judges.get(judge), graph.steps[judge].judges
    if measure is not None:
        return tuple(dict(measure.requests)) or judged if isinstance(measure, Gate) else judged
    near = graph.distances(judge)
    return (*judged, *sorted(graph.upstream[judge], key=lambda each: (near[each], graph.file_order[each])), *routed)


def mermaid(definition: Workflow) -> str:
    """The graph as a Mermaid flowchart: needs are arrows, judges are hexagons, back edges are dashed."""
    graph = graph_of(definition)
    ids = {name: f"s{index}" for name, index in graph.file_order.items()}
    lines = ["flowchart TD"]
    for number, (phase, names) in enumerate(_by_phase(graph)):
        boxes = _boxes(graph, names, ids, f"p{number}")
        if phase:
            lines += [f'  subgraph p{number}["{_escaped(phase)}"]', *(f"    {box}" for box in boxes), "  end"]
        else:
            lines += [f"  {box}" for box in boxes]
    for name in _in_order(graph):
        lines += [f"  {ids[need]} --> {ids[name]}" for need in graph.needs[name]]
    for judge, targets in back_edges(definition).items():
        lines += [f"  {ids[judge]} -.-> {ids[target]}" for target in targets[:_MOST]]
    return "\n".join(lines) + "\n"


def picture(definition: Workflow, width: int = 80) -> str:
    """The graph for a terminal: steps (●) and judges (◆) by phase, in an order in which they can run, with the needs of
    each (←) and the targets of its findings (↩). The same workflow always gives the same text."""
    graph, edges = graph_of(definition), back_edges(definition)
    width = max(width, _LEAST)
    column = min(max(map(_cells, graph.steps)), width // 3)
    phases = _by_phase(graph)
    lines = [*_wrapped(definition.name, width), ""]
    for phase, names in phases:
        if phase or len(phases) > 1:
            lines += _wrapped(phase or "(no phase)", width)
        for name in names:
            mark = "◆" if graph.is_judge(name) else "●"
            relations = _relations(graph, name, edges.get(name, ()))
            if _cells(name) > column:
                lines += [*_indented(name, f"  {mark} ", width), *_indented(relations, "      ", width)]
            else:
                padded = name + " " * (column - _cells(name))
                lines += _indented(relations, f"  {mark} {padded}  ", width) or [f"  {mark} {name}"]
    return "\n".join(lines) + "\n"


def _relations(graph: Graph, name: str, targets: tuple[str, ...]) -> str:
    step = graph.steps[name]
    needs = [need for need in graph.needs[name] if need not in step.judges and name not in graph.engine_judges]
    more = f" and {len(targets) - _MOST} more" if len(targets) > _MOST else ""
    parts = (
        _judges(graph, name),
        f"← {', '.join(needs)}" if needs else "",
        f"↩ {', '.join(targets[:_MOST])}{more}" if targets else "",
        f"in {step.group}" if step.group else "",
        "may add steps" if step.plans else "",
        "asks a person first" if step.approval else "",
        "asks a person beyond a threshold" if step.approver else "",
        f"when {' and '.join(step.when)}" if step.when else "",
        f"until {' and '.join(step.repeat.until)}, at most {step.repeat.max} times" if step.repeat else "",
    )
    return "  ".join(part for part in parts if part)


def _boxes(graph: Graph, names: list[str], ids: dict[str, str], phase: str) -> list[str]:
    """The steps of a phase; each group has its own box."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(graph.steps[name].group, []).append(f"{ids[name]}{_shape(name, graph.is_judge(name))}")
    lines = groups.pop("", [])
    for number, (group, boxes) in enumerate(groups.items()):
        lines += [f'subgraph {phase}g{number}["{_escaped(group)}"]', *(f"  {box}" for box in boxes), "end"]
    return lines


def _judges(graph: Graph, name: str) -> str:
    """What a judge does, and to which steps."""
    measure, step = graph.engine_judges.get(name), graph.steps[name]
    if isinstance(measure, Check):
        return f"compares {', '.join(measure.compare)}"
    if measure is not None:
        return f"holds {measure.measures} to {measure.expected}"
    return f"{'tests' if step.tests else 'reviews'} {', '.join(step.judges)}" if step.judges else ""


def _in_order(graph: Graph) -> list[str]:
    """An order in which the steps can run, phase by phase: no step needs one of a later phase."""
    return sorted(graph.order, key=graph.rank)


def _by_phase(graph: Graph) -> list[tuple[str, list[str]]]:
    return [(phase, list(names)) for phase, names in groupby(_in_order(graph), key=lambda name: graph.phase_of[name])]


def _shape(name: str, judge: bool) -> str:
    return f'{{{{"{_escaped(name)}"}}}}' if judge else f'["{_escaped(name)}"]'


def _escaped(text: str) -> str:
    """A text as a Mermaid label: characters that could end the label become entities."""
    return "".join(each if each.isalnum() or each in " _-.,/" else f"#{ord(each)};" for each in text)


def _indented(text: str, start: str, width: int) -> list[str]:
    """A text after a prefix; further lines are aligned with the first."""
    room = max(width - _cells(start), 1)
    lines = _wrapped(text, room)
    return [(start if number == 0 else " " * _cells(start)) + line for number, line in enumerate(lines)]


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells, broken between words where that is possible."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if _cells(longer) <= width:
            line = longer
            continue
        if line.strip():
            lines.append(line.rstrip())
        line = ""
        for character in word:
            if _cells(line + character) > width:
                lines.append(line)
                line = ""
            line += character
    return [*lines, line.rstrip()] if line.strip() else lines


def _cells(text: str) -> int:
    """How wide a text is on a terminal."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
