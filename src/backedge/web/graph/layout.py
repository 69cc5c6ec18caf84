"""Where everything in a graph is: bands, boxes, edges, and the loops in gutters and lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from backedge.web.graph.columns import Cell, Columns, host_of, in_columns
from backedge.web.graph.model import BackEdge, DrawnStep, GraphModel
from backedge.web.graph.order import put_in_order
from backedge.web.graph.text_width import text_width

NARROWEST, WIDEST = 150.0, 224.0
"""How wide boxes are: as wide as the longest name needs, between these."""
BOX = 46.0
PILL, PILL_ROW = 25.0, 33.0
INDENT = 12.0
PASSAGE = 10.0
GAP = 20.0
HEAD = 40.0
"""The height of the names of the bands."""
GUTTER, SLOT = 46.0, 7.0
"""The room left of a column, and what each loop in it adds."""
BETWEEN = 14.0
"""Additional room between two bands."""
LANE, CHIP = 28.0, 20.0
MARGIN = 12.0

Point = tuple[float, float]


@dataclass(frozen=True)
class Rect:
    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def overlaps(self, other: Rect) -> bool:
        return self.x < other.right and other.x < self.right and self.y < other.bottom and other.y < self.bottom


@dataclass(frozen=True)
class Band:
    label: str
    x: float
    width: float


@dataclass(frozen=True)
class Segment:
    """A part of a forward edge: from a box or passage to the next one, and through that if it is a passage."""

    start: Point
    end: Point
    through: float
    target: str
    """The box in which it ends; empty for a passage."""


@dataclass(frozen=True)
class Drawn:
    """A loop with its line, and its chip if it has a lane."""

    loop: BackEdge
    points: tuple[Point, ...]
    chip: Rect | None


@dataclass(frozen=True)
class Layout:
    width: float
    height: float
    bands: tuple[Band, ...]
    boxes: dict[str, Rect]
    """Boxes and pills, by the names of their nodes."""
    segments: tuple[Segment, ...]
    loops: tuple[Drawn, ...]
    against: tuple[Drawn, ...]
    """Needs against the order of the bands, drawn in lanes too."""


@dataclass
class _Route:
    """A loop on its way: the gutters it runs in, and its lane."""

    loop: BackEdge
    source: str
    target: str
    hook: bool
    need: bool = False
    exit_slot: int = 0
    entry_slot: int = 0
    entry_y: float = 0.0
    lane: int = 0
    chip_x: float = 0.0
    leader: _Route | None = None
    """The route of the same loops from the same source, to another target, whose lane and chip it shares."""


@dataclass
class _Gutter:
    """The vertical lines left of a column. Lines that would touch get slots of their own."""

    taken: list[list[tuple[float, float]]] = field(default_factory=list)

    def slot(self, top: float, bottom: float) -> int:
        for index, lines in enumerate(self.taken):
            if all(bottom + 4 < first or last + 4 < top for first, last in lines):
                lines.append((top, bottom))
                return index
        self.taken.append([(top, bottom)])
        return len(self.taken) - 1


def laid_out(model: GraphModel) -> Layout:
    """Lay out a graph."""
    columns = _ordered(
        len(model.bands), tuple((each.name, each.band, each.needs, each.hangs_at) for each in model.nodes)
    )
    width = round(min(WIDEST, max([NARROWEST, *(_wanted(node, node.name in columns.boxes) for node in model.nodes)])))
    deepest = max((cell.at + cell.height for column in columns.cells for cell in column), default=0.0) + HEAD
    routes = _routes(model, columns)
    gutters = _in_gutters(model, columns, routes, deepest)
    lefts, bands, right = _across(model, columns, gutters, width)
    boxes = _boxes(columns, lefts, width)
    lanes = _in_lanes(routes, columns, lefts)
    drawn = [_line(route, boxes, columns, lefts, deepest) for route in routes]
    chips = [each.chip.right for each in drawn if each.chip is not None]
    return Layout(
        round(max([right + MARGIN, *(each + MARGIN for each in chips)]), 1),
        round(deepest + (lanes * LANE + 14 if lanes else 10), 1),
        tuple(bands),
        boxes,
        _segments(columns, lefts, width),
        tuple(each for each, route in zip(drawn, routes, strict=True) if not route.need),
        tuple(each for each, route in zip(drawn, routes, strict=True) if route.need),
    )


@lru_cache(maxsize=64)
def _ordered(bands: int, nodes: tuple[tuple[str, int, tuple[str, ...], str], ...]) -> Columns:
    """The boxes in columns and in order. They stay where they are while a run goes on: only its loops come and go."""
    columns = in_columns(GraphModel(("",) * bands, tuple(DrawnStep(*each) for each in nodes)), BOX, PILL_ROW, PASSAGE)
    put_in_order(columns.cells, GAP)
    return columns


def _wanted(node: DrawnStep, box: bool) -> float:
    """How wide the text of a node is, with what is around it."""
    name, note = text_width(node.label or node.name, 12.5), text_width(node.note, 11)
    return max(name + 42, note + 24) if box else name + note + 48 + INDENT


def _routes(model: GraphModel, columns: Columns) -> list[_Route]:
    host = host_of(model)
    found: list[_Route] = []
    leaders: dict[tuple[str, tuple[str, ...]], _Route] = {}
    for loop in model.loops:
        if loop.target in host and (not loop.source or loop.source in host) and loop.source != loop.target:
            near = loop.source and _column(columns, host[loop.source]) == _column(columns, host[loop.target])
            route = _Route(loop, loop.source, loop.target, bool(near))
            if not near:
                route.leader = leaders.setdefault((loop.source, loop.loops), route)
            found.append(route)
    for other, own in columns.against:
        back = BackEdge(other, own, (), 0, "need", f"{own} needs {other}")
        near = _column(columns, other) == _column(columns, own)
        found.append(_Route(back, other, own, near, need=True))
    return found


def _column(columns: Columns, box: str) -> int:
    return columns.boxes[box].column


def _place(columns: Columns, name: str) -> tuple[Cell, float, bool]:
    """The cell of a node, the top of its box or pill in the drawing, and whether it is a box."""
    cell, pill = columns.where[name]
    top = cell.at + HEAD
    return (cell, top, True) if pill < 0 else (cell, top + BOX + PILL_ROW * pill + (PILL_ROW - PILL), False)


def _in_gutters(model: GraphModel, columns: Columns, routes: list[_Route], deepest: float) -> list[int]:
    """Give each loop its slots; returns how many slots each gutter has. Short lines are next to the boxes."""
    places = {node.name: _place(columns, node.name) for node in model.nodes}
    gutters = [_Gutter() for _ in columns.cells]
    entries: dict[str, int] = {}

    def reach(route: _Route) -> float:
        _, top, _ = places[route.target]
        below = places[route.source][1] if route.hook else deepest
        return abs(below - top)

    for route in sorted(routes, key=lambda each: (not each.hook, reach(each))):
        cell, top, box = places[route.target]
        rank = entries.get(route.target, 0)
        entries[route.target] = rank + 1
        route.entry_y = top + (BOX - 9 - 5 * min(rank, 2) if box else PILL / 2)
        gutter = gutters[cell.column]
        if route.hook:
            start = _exit_y(places[route.source])
            route.entry_slot = gutter.slot(min(start, route.entry_y), max(start, route.entry_y))
            continue
        route.entry_slot = gutter.slot(route.entry_y, deepest + 10_000)
        leads = route.leader is None or route.leader is route
        if route.source and leads:
            start = _exit_y(places[route.source])
            route.exit_slot = gutters[places[route.source][0].column].slot(start, deepest + 10_000)
    return [len(gutter.taken) for gutter in gutters]


def _exit_y(place: tuple[Cell, float, bool]) -> float:
    _, top, box = place
    return top + (BOX - 14 if box else PILL / 2)


def _across(
    model: GraphModel, columns: Columns, slots: list[int], width: float
) -> tuple[list[float], list[Band], float]:
    """The left edge of the boxes of each column, the bands, and the right end of all."""
    lefts: list[float] = []
    bands: list[Band] = []
    x = MARGIN
    for index, label in enumerate(model.bands):
        begin = x
        for column in range(columns.first[index], columns.first[index + 1]):
            x += GUTTER - 14 + SLOT * slots[column]
            lefts.append(x)
            x += width + 14
        if x > begin:
            bands.append(Band(label, round(begin, 1), round(x - begin, 1)))
            x += BETWEEN
    return lefts, bands, max(MARGIN, x - BETWEEN)


def _boxes(columns: Columns, lefts: list[float], width: float) -> dict[str, Rect]:
    found: dict[str, Rect] = {}
    for name, cell in columns.boxes.items():
        x, y = lefts[cell.column], cell.at + HEAD
        found[name] = Rect(x, y, width, BOX)
        for index, node in enumerate(columns.pills[name]):
            top = y + BOX + PILL_ROW * index + (PILL_ROW - PILL)
            found[node.name] = Rect(x + INDENT, top, width - INDENT, PILL)
    return found


def _slot_x(left: float, slot: int) -> float:
    return left - 12 - SLOT * slot


def _chip_width(loop: BackEdge) -> float:
    return round(text_width(loop.label, 11.5) + 20, 1)


def _in_lanes(routes: list[_Route], columns: Columns, lefts: list[float]) -> int:
    """Give each loop that needs one a lane, short ones first; returns how many lanes there are. Two loops share a lane
    only if they are far from each other."""
    lanes: list[list[tuple[float, float]]] = []
    far: dict[int, tuple[float, float, _Route]] = {}
    for route in routes:
        if route.hook:
            continue
        lead = route.leader or route
        end = _slot_x(lefts[_place(columns, route.target)[0].column], route.entry_slot)
        start = end + 26
        if route.source:
            start = _slot_x(lefts[_place(columns, route.source)[0].column], lead.exit_slot)
        first, last, _ = far.get(id(lead), (min(start, end), max(start, end), lead))
        far[id(lead)] = min(first, start, end), max(last, start, end), lead
    for key, (first, last, lead) in far.items():
        chip = 0.0 if lead.need else _chip_width(lead.loop)
        lead.chip_x = round(max(MARGIN, (first + last - chip) / 2) if lead.source else last, 1)
        far[key] = min(first, lead.chip_x), max(last, lead.chip_x + chip), lead
    for first, last, lead in sorted(far.values(), key=lambda each: (each[1] - each[0], each[0])):
        room = (
            index
            for index, taken in enumerate(lanes)
            if all(last + 12 < begin or end + 12 < first for begin, end in taken)
        )
        lead.lane = next(room, len(lanes))
        if lead.lane == len(lanes):
            lanes.append([])
        lanes[lead.lane].append((first, last))
    return len(lanes)


def _line(route: _Route, boxes: dict[str, Rect], columns: Columns, lefts: list[float], deepest: float) -> Drawn:
    cell = _place(columns, route.target)[0]
    entry = _slot_x(lefts[cell.column], route.entry_slot)
    end = (boxes[route.target].x, route.entry_y)
    if route.hook:
        start = (boxes[route.source].x, _exit_y(_place(columns, route.source)))
        return Drawn(route.loop, (start, (entry, start[1]), (entry, route.entry_y), end), None)
    lead = route.leader or route
    y = round(deepest + 6 + LANE * lead.lane + CHIP / 2, 1)
    chip = None if route.need or lead is not route else Rect(route.chip_x, y - CHIP / 2, _chip_width(route.loop), CHIP)
    last: Sequence[Point] = ((entry, y), (entry, route.entry_y), end)
    if not route.source:
        return Drawn(route.loop, ((lead.chip_x, y), *last), chip)
    place = _place(columns, route.source)
    begin = _slot_x(lefts[place[0].column], lead.exit_slot)
    start = (boxes[route.source].x, _exit_y(place))
    return Drawn(route.loop, (start, (begin, start[1]), (begin, y), *last), chip)


def _segments(columns: Columns, lefts: list[float], width: float) -> tuple[Segment, ...]:
    found: dict[tuple[int, int], Segment] = {}
    for _, target, cells in columns.paths:
        # A shared passage is drawn once: the last two cells differ for each edge.
        for one, other in pairwise(cells):
            key = (id(one), id(other))
            if key not in found:
                start = (lefts[one.column] + width, HEAD + one.at + one.port)
                end = (lefts[other.column], HEAD + other.at + other.port)
                box = bool(other.name)
                found[key] = Segment(start, end, 0.0 if box else width, target if box else "")
    return tuple(found.values())
