"""Text that can be shown to people: nothing in it gives orders to a terminal."""

from __future__ import annotations

import re

ANSI = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"
"""An escape sequence, as a regular expression."""
_CONTROL = re.compile(rf"{ANSI}|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


_HIDDEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escaped(text: bytes) -> bytes:
    """JSON text whose strings show what a terminal or an editor would obey: the same values."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text.decode()).encode()


def clean(text: str) -> str:
    """Text that can be shown: no escape sequences, no control characters but tab and newline, nothing that turns lines."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """Text for one line of a list or a log: words kept, the rest folded."""
    return " ".join(clean(text).replace("`", "").split())


def printable_line(text: str) -> str:
    """A name or a reason as one line, without orders to a terminal."""
    plain = re.sub(ANSI, "", text)
    return " ".join("".join(each if each.isprintable() else " " for each in plain).split())


def shortened(text: str, longest: int = 400) -> str:
    """Text for one line, cut at `longest` characters."""
    line = one_line(text)
    return line if len(line) <= longest else line[: longest - 1] + "…"
