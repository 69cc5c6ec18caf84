"""The timeline as SVG."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from markupsafe import Markup, escape

from backedge.core.text import counted
from backedge.web.graph.text_width import fitted
from backedge.web.timeline.axis import BREAK, Axis, axis_of
from backedge.web.timeline.bars import Bar, Bars, bar_words, seconds_words, window_of

ROW, TOP, LEFT, WIDTH = 24.0, 44.0, 150.0, 1240.0
BAR = 16.0
NARROWEST = 5.0
MOST_ROWS = 60
WIDEST = 1700
"""A wider picture is not made to fit its box, because nobody could read it: it scrolls."""
SIGNS = {"pass": "✓", "fail": "✗", "error": "!", "dropped": "–", "limited": "…", "judging": "▸"}
STATES = ("asks", "open", "closed")

Address = Callable[[str, int], str]


def timeline_svg(
    known: Bars,
    rows: Sequence[str],
    now: float,
    address: Address,
    loops: Mapping[str, str],
    before: int | None = None,
    waiting: Collection[tuple[str, float]] = (),
) -> Markup:
    """The attempts of a run, or those before an index. `rows` are all steps in order, `loops` how each loop is drawn,
    `waiting` the steps that wait for their provider, and until when."""
    first, end = window_of(known.bars, before)
    shown = known.bars[first:end]
    if not shown:
        return Markup('<p class="muted">No attempt has started yet.</p>')
    used = {bar.step for bar in shown}
    names = [name for name in rows if name in used or len(rows) <= 24][:MOST_ROWS]
    names += [name for name in dict.fromkeys(bar.step for bar in shown) if name not in names][: MOST_ROWS - len(names)]
    place = {name: TOP + ROW * index for index, name in enumerate(names)}
    axis = axis_of(shown, known.bars[:first], known.waits, now, LEFT + 14, WIDTH - LEFT - 14)
    width, height = (
        round(axis.right + 24 + (120 if waiting and end == len(known.bars) else 0)),
        TOP + ROW * len(names) + 10,
    )
    parts = [
        f'<svg class="timeline{"" if width <= WIDEST else " long"}" xmlns="http://www.w3.org/2000/svg" role="group" aria-labelledby="timeline-title" '
        f'width="{width}" height="{height:g}" viewBox="0 0 {width} {height:g}">',
        f'<title id="timeline-title">{counted(len(shown), "attempt")} over the time at work</title>',
        *_markers(),
        *_grid(axis, names, place, width, height),
        *_breaks(axis, height),
        *(_bar(bar, axis, place[bar.step], now, address) for bar in shown if bar.step in place),
        *_arrows(known.bars, range(first, end), axis, place, loops),
    ]
    if end == len(known.bars):
        parts += [_waiting(name, until, axis, place[name], now) for name, until in waiting if name in place]
    return Markup("\n".join([*parts, "</svg>"]))


def _markers() -> Iterator[str]:
    yield "<defs>"
    for state in STATES:
        yield (
            f'<marker id="timeline-{state}" class="tip {state}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="8" '
            'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.8 L10 5 L0 9.2 z"/></marker>'
        )
    yield "</defs>"


def _grid(axis: Axis, names: Sequence[str], place: Mapping[str, float], width: float, height: float) -> Iterator[str]:
    for index, name in enumerate(names):
        y = place[name]
        if index % 2 == 0:
            yield f'<rect class="odd" x="0" y="{y:g}" width="{width:g}" height="{ROW:g}"/>'
        yield (
            f'<text class="row" x="10" y="{y + 16:g}">{escape(fitted(name, LEFT - 14, 12))}'
            f"<title>{escape(name)}</title></text>"
        )
    for tick in axis.ticks:
        yield f'<path class="tick" d="M{tick.x:g} {TOP - 6:g}V{height:g}"/>'
        yield f'<text class="tick" x="{tick.x:g}" y="{TOP - 12:g}">{tick.label}</text>'


def _breaks(axis: Axis, height: float) -> Iterator[str]:
    for each in axis.breaks:
        middle = each.x + BREAK / 2
        yield (
            f'<g class="break"><rect x="{each.x + 5:g}" y="4" width="{BREAK - 10:g}" height="{height - 8:g}" rx="6"/>'
            f'<text x="{middle:g}" y="18">{escape(each.label)}</text>'
            f'<text x="{middle:g}" y="31">{escape(fitted(each.reason, BREAK - 4, 10))}</text></g>'
        )


def _bar(bar: Bar, axis: Axis, y: float, now: float, address: Address) -> str:
    x = axis.x(bar.start)
    width = max(NARROWEST, round(axis.x(now if bar.end is None else bar.end) - x, 1))
    sign = SIGNS.get(bar.kind, str(bar.attempt))
    label = f'<text x="{x + width / 2:g}" y="{y + 16:g}">{sign}</text>' if width >= 7 * len(sign) + 4 else ""
    running = " running" if bar.end is None else ""
    words, kind = escape(bar_words(bar)), "broke" if bar.kind == "error" else bar.kind
    return (
        f'<a class="try {kind}{running}" href="{escape(address(bar.step, bar.attempt))}" tabindex="-1">'
        f'<title>{words}</title><rect x="{x:g}" y="{y + 4:g}" width="{width:g}" height="{BAR:g}" rx="4"/>{label}</a>'
    )


def _arrows(
    bars: Sequence[Bar], window: range, axis: Axis, place: Mapping[str, float], loops: Mapping[str, str]
) -> Iterator[str]:
    """From a failing verdict to the rework that it caused."""
    found = []
    for index in window:
        bar = bars[index]
        for cause, loop in bar.caused_by:
            other = bars[cause]
            if cause not in window or bar.step not in place or other.step not in place or other.end is None:
                continue
            state = loops.get(loop, "closed")
            below = place[other.step] > place[bar.step]
            x, end = axis.x(other.end), axis.x(bar.start)
            y = place[other.step] + 4 + BAR / 2
            low = place[bar.step] + (4 + BAR if below else 4)
            # It arrives a little inside the bar, so that it is seen which bar is meant.
            inside = round(max(end, x) + 3.5, 1)
            path = f"M{x:g} {y:g}H{inside:g}V{low:g}"
            told = f"{loop}: {other.step} {other.attempt} fails it, {bar.step} {bar.attempt} reworks it"
            found.append((STATES[::-1].index(state) if state in STATES else 0, path, state, told, loop))
    for _, path, state, told, loop in sorted(found, key=lambda each: each[0]):
        yield (
            f'<path class="back {state}" data-loop="{escape(loop)}" d="{path}" marker-end="url(#timeline-{state})">'
            f"<title>{escape(told)}</title></path>"
        )


def _waiting(name: str, until: float, axis: Axis, y: float, now: float) -> str:
    left = max(0.0, until - now)
    x = axis.right + 6
    words = f"{name} waits for its provider"
    return (
        f'<g class="wait"><title>{escape(words)}</title><rect x="{x:g}" y="{y + 4:g}" width="116" height="{BAR:g}" rx="4"/>'
        f'<text x="{x + 58:g}" y="{y + 16:g}" data-until="{until:.0f}">tries again in {seconds_words(left)}</text></g>'
    )
