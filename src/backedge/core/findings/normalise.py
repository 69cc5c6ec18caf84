"""What varies by accident between two reports of the same defect, taken out of their text.

Only accidents: two findings that differ in words stay two findings. Where a checkout, a home or a temporary folder lies
is an accident, and all below it is words; so are other absolute paths, routes such as /app/users, and short numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_ANSI = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"
_NAME = r"[\w.@+-]+"
_SLASH = r"[\\/]"
_TEMPORARY = (
    rf"(?:private{_SLASH})?var{_SLASH}folders{_SLASH}{_NAME}{_SLASH}{_NAME}(?:{_SLASH}T{_SLASH}{_NAME}(?={_SLASH}))?",
    rf"(?:(?:private|var){_SLASH})?tmp{_SLASH}(?:pytest-of-{_NAME}{_SLASH})?{_NAME}",
    rf"Users{_SLASH}{_NAME}{_SLASH}AppData{_SLASH}Local{_SLASH}Temp{_SLASH}{_NAME}",
)
_HOMES = rf"(?:home{_SLASH}{_NAME}|Users{_SLASH}{_NAME}|root|srv|work|workspace|workspaces|app|build|builds|ci)"
"""Where people and machines keep their checkouts. Routes begin with such words too: only a file tells."""
_BELOW = rf"(?:{_SLASH}{_NAME})"
_START = rf"(?<![\w.:/\\])(?:file://)?(?:[A-Za-z]:)?{_SLASH}"
_LOCAL = re.compile(
    rf"{_START}(?:{'|'.join(_TEMPORARY)})(?P<below>{_BELOW}+)"
    rf"|{_START}{_HOMES}(?P<file>{_BELOW}*{_SLASH}{_NAME}\.\w{{1,6}}(?![\w\\/]))"
)
"""A path that begins with a place of one machine, and what lies below that place."""


def _below(path: re.Match[str]) -> str:
    return (path["below"] or path["file"])[1:].replace("\\", "/")


# Each accident with what a text must contain to have it: looking for that first is what makes this cheap.
_ACCIDENTS: tuple[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    ("\x1b", re.compile(_ANSI), ""),
    ("", re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"), ""),
    (":", re.compile(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?"), "<time>"),
    (":", re.compile(r"\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b"), "<time>"),
    ("-", re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    ("x", re.compile(r"\b0x[0-9a-f]{4,}\b|(?<=\bat )0x[0-9a-f]+(?=>)", re.IGNORECASE), "<address>"),
    ("", re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b", re.IGNORECASE), "<id>"),
    ("", re.compile(r"\b\d{10,}\b"), "<id>"),
    (":", re.compile(r"\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d+\b"), "<address>"),
    ("/", _LOCAL, _below),
    ("\\", _LOCAL, _below),
    (".", re.compile(r"(?<=\.)(\w{1,6})(?::\d+(?::\d+)?\b|\(\d+(?:,\s*\d+)?\))"), r"\1:<n>"),
    ("", re.compile(r"\b(lines?|ln|col|columns?)[ :=]+\d+(?:\s*-\s*\d+)?\b", re.IGNORECASE), r"\1 <n>"),
)

_SUSPICIOUS = re.compile(r"[\d/\\\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Without one of these a text has no accidents but white space."""


@lru_cache(maxsize=2_048)
def normalised(text: str) -> str:
    """The text without its accidents: times, paths of a machine, line numbers, ids, addresses, colours, white space."""
    if _SUSPICIOUS.search(text):
        for sign, pattern, substitute in _ACCIDENTS:
            if sign in text:
                text = pattern.sub(substitute, text)
    return " ".join(text.split())


def printable_line(text: str) -> str:
    """A name or a reason as one line, without orders to a terminal."""
    plain = re.sub(_ANSI, "", text)
    return " ".join("".join(each if each.isprintable() else " " for each in plain).split())
