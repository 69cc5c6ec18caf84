"""Makes text safe to show: removes what a terminal or an editor would interpret instead of display."""

from __future__ import annotations

import re

ANSI = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"
"""A regular expression for an escape sequence of a terminal."""
_CONTROL = re.compile(rf"{ANSI}|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


_ORDINARY = re.compile("[!-_a-~]+(?: [!-_a-~]+)*")
"""Text that is one line already: ASCII words without backticks, with single spaces between them."""
_HIDDEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def escaped(text: bytes) -> bytes:
    """JSON text with the same values, in which control and direction characters are written as \\u escapes."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text.decode()).encode()


def clean(text: str) -> str:
    """The text without escape sequences, control characters (except tab and newline) and text direction marks."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """The text as one line of a list or a log: white space becomes single spaces, backticks are removed."""
    if _ORDINARY.fullmatch(text):
        return text
    return " ".join(clean(text).replace("`", "").split())


def printable_line(text: str) -> str:
    """A name or a reason as one line of printable characters."""
    plain = re.sub(ANSI, "", text)
    return " ".join("".join(each if each.isprintable() else " " for each in plain).split())


def shortened(text: str, longest: int = 400) -> str:
    """Text for one line, cut at `longest` characters."""
    line = one_line(text)
    return line if len(line) <= longest else line[: longest - 1] + "…"
