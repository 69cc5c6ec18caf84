"""How wide text will be, about, in a browser: names are shortened on the server, because SVG does not do it."""

from __future__ import annotations

from unicodedata import combining, east_asian_width

from backedge.core.text import one_line

_NARROW = frozenset("iljtfrI1.,:;|!'()[] -")
_BROAD = frozenset("mwMW@%—…↩")


def text_width(text: str, size: float) -> float:
    """The width of a line in pixels, rather too much than too little."""
    return sum(map(_part, text)) * size


def _part(letter: str) -> float:
    if letter in _NARROW:
        return 0.4
    if letter in _BROAD or letter.isupper():
        return 0.85 if letter in _BROAD else 0.74
    if letter.isascii():
        return 0.62
    return 0.0 if combining(letter) else 1.15 if east_asian_width(letter) in "WF" else 0.85


def fitted(text: str, width: float, size: float) -> str:
    """A line that fits a width; what does not fit is cut off."""
    line = one_line(text[:400])
    if text_width(line, size) <= width:
        return line
    left, kept = width - 0.85 * size, 0
    for letter in line:
        left -= _part(letter) * size
        if left < 0:
            break
        kept += 1
    return f"{line[:kept].rstrip()}…"
