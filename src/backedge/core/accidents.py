"""What varies by accident between two reports of the same defect, taken out of their text.

Only accidents: two findings that differ in words stay two findings. A route such as /users/me is words; an absolute
path of a file is an accident up to its last two components, a temporary one up to its last.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_ANSI = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"
_ROOTS = r"(?:home|root|Users|private|usr|opt|mnt|srv|build|builds|workspace|workspaces|work|app|tmp|temp|var)"
_NAME = r"[\w.@+-]+"
_ABSOLUTE = (
    rf"(?<![\w.:/\\])(?:(?:file://)?/{_ROOTS}(?:/{_NAME})+|(?:file://)?(?:/{_NAME})+/{_NAME}\.\w{{1,6}}"
    rf"|[A-Za-z]:(?:[\\/]{_NAME})+)"
)
_TEMPORARY = re.compile(r"(?:^|[\\/])(?:tmp|temp|folders)[\\/]", re.IGNORECASE)


def _shortened(path: re.Match[str]) -> str:
    names = re.split(r"[\\/]", path.group())
    return names[-1] if _TEMPORARY.search(path.group()) else "/".join(names[-2:])


# Each accident with what a text must contain to have it: looking for that first is what makes this cheap.
_ACCIDENTS: tuple[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    ("\x1b", re.compile(_ANSI), ""),
    ("", re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"), ""),
    (":", re.compile(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?"), "<time>"),
    (":", re.compile(r"\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b"), "<time>"),
    ("-", re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    ("x", re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<address>"),
    ("", re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b", re.IGNORECASE), "<id>"),
    ("", re.compile(r"\b\d{10,}\b"), "<id>"),
    (":", re.compile(r"\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d+\b"), "<address>"),
    ("/", re.compile(_ABSOLUTE), _shortened),
    ("\\", re.compile(_ABSOLUTE), _shortened),
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
