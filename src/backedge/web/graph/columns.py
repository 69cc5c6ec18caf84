"""The columns of a graph: each node has a column inside the band of its phase, and long edges pass through the columns
between."""

from __future__ import annotations

from dataclasses import dataclass, field

from backedge.web.graph.model import DrawnStep, GraphModel

PORT = 16.0
"""How far below the top of a box forward edges meet it."""


@dataclass(slots=True, eq=False)
class Cell:
    """One place in a column: a box with its pills, or a passage for a long edge."""

    name: str
    column: int
    height: float
    port: float
    """How far below its top edges meet it."""
    before: list[Cell] = field(default_factory=list)
    after: list[Cell] = field(default_factory=list)
    at: float = 0.0
    """Its place among its neighbours, while they are sorted; then its top."""


@dataclass
class Columns:
    """A graph in columns."""

    cells: list[list[Cell]]
    first: list[int]
    """The first column of each band, and the number of all columns at the end."""
    boxes: dict[str, Cell]
    pills: dict[str, list[DrawnStep]]
    """The judges below each box."""
    paths: list[tuple[str, str, list[Cell]]]
    """Each forward edge with the cells that it passes, from its box to its box."""
    where: dict[str, tuple[Cell, int]]
    """The box of each node, and which of its pills it is; -1 for the box itself."""
    against: list[tuple[str, str]]
    """Needs that run against the order of the bands: they are drawn like loops."""


def host_of(model: GraphModel) -> dict[str, str]:
    """The box that each node is, or below which it hangs."""
    above = {node.name: node.hangs_at for node in model.nodes}
    found: dict[str, str] = {}
    for node in model.nodes:
        name, seen = node.name, {node.name}
        while (up := above[name]) and up in above and up not in seen:
            seen.add(up)
            name = up
        found[node.name] = name
    return found


def in_columns(model: GraphModel, box_height: float, pill_height: float, passage: float) -> Columns:
    """Give each node its column: its band, and its depth among the nodes of that band."""
    host = host_of(model)
    nodes = {node.name: node for node in model.nodes}
    place = {node.name: index for index, node in enumerate(model.nodes)}
    pills: dict[str, list[DrawnStep]] = {name: [] for name in nodes if host[name] == name}
    needs: dict[str, list[str]] = {name: [] for name in pills}
    against: list[tuple[str, str]] = []
    for node in model.nodes:
        own = host[node.name]
        if own != node.name:
            # What a judge needs does not move the box below which it hangs.
            pills[own].append(node)
            continue
        for need in node.needs:
            if need not in host or host[need] == own or host[need] in needs[own]:
                continue
            other = host[need]
            forward = nodes[other].band < nodes[own].band or (
                nodes[other].band == nodes[own].band and place[other] < place[own]
            )
            if forward:
                needs[own].append(other)
            elif (other, own) not in against:
                against.append((other, own))
    depth: dict[str, int] = {}
    for name in pills:
        band = nodes[name].band
        depth[name] = max((depth[need] + 1 for need in needs[name] if nodes[need].band == band), default=0)
    widths = [0] * len(model.bands)
    for name, deep in depth.items():
        widths[nodes[name].band] = max(widths[nodes[name].band], deep + 1)
    first = [0]
    for width in widths:
        first.append(first[-1] + width)
    columns: list[list[Cell]] = [[] for _ in range(first[-1])]
    boxes: dict[str, Cell] = {}
    for name, below in pills.items():
        cell = Cell(name, first[nodes[name].band] + depth[name], box_height + pill_height * len(below), PORT)
        boxes[name] = cell
        columns[cell.column].append(cell)
    where = {name: (cell, -1) for name, cell in boxes.items()}
    where |= {node.name: (boxes[name], index) for name, below in pills.items() for index, node in enumerate(below)}
    return Columns(columns, first, boxes, pills, _paths(needs, boxes, columns, passage), where, against)


def _paths(
    needs: dict[str, list[str]], boxes: dict[str, Cell], columns: list[list[Cell]], passage: float
) -> list[tuple[str, str, list[Cell]]]:
    """The forward edges. All long edges from one box share their passages, so that they leave it as one line."""
    shared: dict[str, list[Cell]] = {}
    found = []
    for name, each in needs.items():
        target = boxes[name]
        for need in each:
            source = boxes[need]
            chain = shared.setdefault(need, [source])
            while chain[-1].column < target.column - 1:
                cell = Cell("", chain[-1].column + 1, passage, passage / 2, before=[chain[-1]])
                chain[-1].after.append(cell)
                columns[cell.column].append(cell)
                chain.append(cell)
            last = chain[target.column - source.column - 1]
            last.after.append(target)
            target.before.append(last)
            found.append((need, name, [*chain[: target.column - source.column], target]))
    return found
