"""A layout as SVG. Colours are classes: the style sheet knows them. Each state has its own marker, because a marker that
takes the colour of its line is painted black by browsers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from backedge.web.graph.layout import BOX, Drawn, Layout, Point, Rect, laid_out
from backedge.web.graph.model import DrawnStep, GraphModel
from backedge.web.graph.text_width import fitted, text_width

MARKERS = ("need", "live", "asks", "open", "closed")
MARKS = {
    "done": "✓",
    "failing": "✗",
    "broken": "!",
    "running": "▸",
    "asks": "?",
    "limited": "…",
    "stale": "↻",
    "skipped": "»",
    "passed_over": "»",
}
"""The sign in front of a judge, by its state: colour is never the only difference."""


def graph_svg(model: GraphModel, key: str = "graph") -> Markup:
    """The graph as SVG. `key` begins the ids in it."""
    layout = laid_out(model)
    parts = [
        f'<svg class="graph" id="{key}" xmlns="http://www.w3.org/2000/svg" role="group" '
        f'aria-labelledby="{key}-title {key}-text" width="{layout.width:g}" height="{layout.height:g}" '
        f'viewBox="0 0 {layout.width:g} {layout.height:g}">',
        f'<title id="{key}-title">Steps and loops</title>',
        f'<desc id="{key}-text">{escape(in_words(model))}</desc>',
        *_markers(key),
        *_bands(layout),
        *_edges(model, layout, key),
        *_loops(layout, key),
        *(_node(node, layout.boxes[node.name], key) for node in model.nodes),
        *_chips(layout),
        "</svg>",
    ]
    return Markup("\n".join(parts))


def in_words(model: GraphModel) -> str:
    """The graph for people who cannot see it."""
    steps = ", ".join(f"{node.label or node.name} ({node.told})" for node in model.nodes[:200])
    loops = "; ".join(each.told for each in model.loops[:50])
    return f"{len(model.nodes)} steps: {steps}. {len(model.loops)} loops{f': {loops}' if loops else ''}."


def _markers(key: str) -> Iterator[str]:
    yield "<defs>"
    for state in MARKERS:
        yield (
            f'<marker id="{key}-{state}" class="tip {state}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" '
            'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.8 L10 5 L0 9.2 z"/></marker>'
        )
    yield "</defs>"


def _bands(layout: Layout) -> Iterator[str]:
    for index, band in enumerate(layout.bands):
        yield (
            f'<g class="band{" odd" if index % 2 else ""}"><rect x="{band.x:g}" y="0" width="{band.width:g}" '
            f'height="{layout.height:g}" rx="8"/><text x="{band.x + 14:g}" y="22">'
            f"{escape(fitted(band.label.upper(), band.width - 20, 11.5))}</text></g>"
        )


def _edges(model: GraphModel, layout: Layout, key: str) -> Iterator[str]:
    running = {node.name for node in model.nodes if node.state == "running"}
    for each in layout.segments:
        state = "live" if each.target in running else "need"
        (x, y), (right, low) = each.start, each.end
        middle = round((x + right) / 2, 1)
        path = f"M{x:g} {y:g}C{middle:g} {y:g} {middle:g} {low:g} {right:g} {low:g}"
        path += f"h{each.through:g}" if each.through else ""
        tip = f' marker-end="url(#{key}-{state})"' if each.target else ""
        yield f'<path class="edge {state}" d="{path}"{tip}/>'
    for drawn in layout.against:
        yield f'<path class="edge need against" d="{rounded(drawn.points)}" marker-end="url(#{key}-need)"/>'


def rounded(points: Sequence[Point], radius: float = 7.0) -> str:
    """A line of straight parts with round corners."""
    parts = [f"M{points[0][0]:g} {points[0][1]:g}"]
    for before, here, after in zip(points, points[1:], points[2:], strict=False):
        one, other = _toward(here, before, radius), _toward(here, after, radius)
        parts.append(f"L{one[0]:g} {one[1]:g}Q{here[0]:g} {here[1]:g} {other[0]:g} {other[1]:g}")
    return "".join(parts) + f"L{points[-1][0]:g} {points[-1][1]:g}"


def _toward(start: Point, end: Point, radius: float) -> Point:
    length = abs(end[0] - start[0]) + abs(end[1] - start[1])
    part = min(radius, length / 2) / length if length else 0.0
    return round(start[0] + (end[0] - start[0]) * part, 1), round(start[1] + (end[1] - start[1]) * part, 1)


_RANK = {"closed": 0, "open": 1, "asks": 2}


def _loops(layout: Layout, key: str) -> Iterator[str]:
    for each in sorted(layout.loops, key=lambda drawn: _RANK.get(drawn.loop.state, 0)):
        state = each.loop.state
        yield (
            f'<path class="loop {state}" data-loop="{escape(each.loop.loops[0])}" d="{rounded(each.points)}" '
            f'marker-end="url(#{key}-{state})"><title>{escape(each.loop.told)}</title></path>'
        )


def _chips(layout: Layout) -> Iterator[str]:
    for drawn in layout.loops:
        if drawn.chip is not None:
            yield _chip(drawn, drawn.chip)


def _chip(drawn: Drawn, chip: Rect) -> str:
    inside = (
        f'<title>{escape(drawn.loop.told)}</title><rect x="{chip.x:g}" y="{chip.y:g}" width="{chip.width:g}" '
        f'height="{chip.height:g}" rx="10"/><text x="{chip.x + chip.width / 2:g}" y="{chip.y + 14:g}">'
        f"{escape(drawn.loop.label)}</text>"
    )
    return _linked(inside, f"chip {drawn.loop.state}", drawn.loop.href)


def _linked(inside: str, classes: str, href: str, more: str = "") -> str:
    """What a screen reader says is the title inside."""
    if not href:
        return f'<g class="{classes}"{more}>{inside}</g>'
    return f'<a class="{classes}" href="{escape(href)}"{more}>{inside}</a>'


def _node(node: DrawnStep, box: Rect, key: str) -> str:
    pill = box.height < BOX
    label, told = node.label or node.name, f"{node.label or node.name}: {node.told}"
    mark = MARKS.get(node.state, "")
    rect = (
        f'<title>{escape(told)}</title><rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" '
        f'height="{box.height:g}" rx="{box.height / 2 if pill else 8:g}"/>'
    )
    if pill:
        note = fitted(node.note, 66, 11)
        room = box.width - 40 - (text_width(note, 11) + 6 if note else 0)
        inside = (
            f'{rect}<text class="sign" x="{box.x + 11:g}" y="{box.y + 17:g}">{mark or "·"}</text>'
            f'<text class="name" x="{box.x + 26:g}" y="{box.y + 17:g}">{escape(fitted(label, room, 12))}</text>'
            f'<text class="note" x="{box.right - 10:g}" y="{box.y + 17:g}" text-anchor="end">{escape(note)}</text>'
        )
    else:
        stack = (
            f'<rect class="stack" x="{box.x + 5:g}" y="{box.y + 5:g}" width="{box.width:g}" height="{box.height:g}" rx="8"/>'
            if node.members
            else ""
        )
        inside = (
            f'{stack}{rect}<text class="name" x="{box.x + 12:g}" y="{box.y + 19:g}">'
            f"{escape(fitted(label, box.width - 38, 12.5))}</text>"
            f'<text class="sign" x="{box.right - 12:g}" y="{box.y + 19:g}" text-anchor="end">{mark}</text>'
            f'<text class="note" x="{box.x + 12:g}" y="{box.y + 36:g}">{escape(fitted(node.note, box.width - 22, 11))}</text>'
        )
    shape = "pill" if pill else "group box" if node.members else "box"
    return _linked(inside, f"node {shape} {node.state}", node.href, f' id="{key}-{escape(_id(node.name))}"')


def _id(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
