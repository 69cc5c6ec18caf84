"""The identity of a finding: when two reports describe the same defect. Also: whether a finding lies in a change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import sha256

from backedge.core.model import Change, Finding
from backedge.core.text import ANSI


def fingerprint(finding: Finding) -> str:
    """The identity of a finding: a digest of its category, file, requirement and description, all normalised."""
    parts = (finding.category, relative_path(finding.file or ""), finding.requirement_id or "", finding.description)
    return sha256("\n".join(map(normalised, parts)).encode()).hexdigest()[:16]


def fingerprints(findings: Iterable[Finding]) -> list[str]:
    """The identities of the findings of one report. The same text for several locations makes several findings, which
    are recognised later by their order. The same text twice for one location makes one."""
    found: list[str] = []
    locations: dict[str, list[tuple[str | None, int | None, str | None]]] = {}
    for finding in findings:
        print_ = fingerprint(finding)
        known = locations.setdefault(print_, [])
        location = (finding.file, finding.line, finding.path)
        if location not in known:
            known.append(location)
        ordinal = known.index(location) + 1
        found.append(print_ if ordinal == 1 else f"{print_}#{ordinal}")
    return found


def relative_path(file: str) -> str:
    """A file name without a leading `./`."""
    while file.startswith("./"):
        file = file[2:]
    return file


def location_of(finding: Finding) -> str:
    """The location that a finding names: file and line, file, or path; empty if it names none."""
    if finding.file:
        return f"{finding.file}:{finding.line}" if finding.line is not None else finding.file
    return finding.path or ""


def lies_in(finding: Finding, changes: Iterable[Change]) -> bool:
    """Whether a finding lies in one of the changes. A finding without a location does not."""
    changes = list(changes)
    if finding.file is not None and any(change.where and not change.where.startswith("/") for change in changes):
        # The changes name files, so a change of the output as a whole says nothing about the other files.
        changes = [change for change in changes if change.where]
    return any(_touches(finding, change) for change in changes)


def _touches(finding: Finding, change: Change) -> bool:
    if change.where == "":
        # The output changed in too many locations to list them, or it is a text.
        has_location = bool(finding.path) or finding.file is not None or finding.line is not None
        return has_location and _in_lines(finding, change)
    if finding.path and change.where.startswith("/"):
        inner, outer = finding.path.rstrip("/") + "/", change.where + "/"
        if inner == outer:
            return _in_lines(finding, change)
        if inner.startswith(outer) or outer.startswith(inner):
            return True
    if finding.file is None:
        return False
    last = change.where.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~")
    return relative_path(finding.file) in (relative_path(change.where), relative_path(last)) and _in_lines(
        finding, change
    )


def _in_lines(finding: Finding, change: Change) -> bool:
    if finding.line is None or not change.lines:
        return True
    return any(first <= finding.line <= last for first, last in change.lines)


_NAME = r"[\w.@+-]+"


_SLASH = r"[\\/]"


_TEMPORARY = (
    rf"(?:private{_SLASH})?var{_SLASH}folders{_SLASH}{_NAME}{_SLASH}{_NAME}(?:{_SLASH}T{_SLASH}{_NAME}(?={_SLASH}))?",
    rf"(?:(?:private|var){_SLASH})?tmp{_SLASH}(?:pytest-of-{_NAME}{_SLASH})?{_NAME}",
    rf"Users{_SLASH}{_NAME}{_SLASH}AppData{_SLASH}Local{_SLASH}Temp{_SLASH}{_NAME}",
)


_HOMES = rf"(?:home{_SLASH}{_NAME}|Users{_SLASH}{_NAME}|root|srv|work|workspace|workspaces|app|build|builds|ci)"
"""Where people and machines keep their checkouts. URL routes begin with such words too, so the path must end in a file
name with an extension."""


_BELOW = rf"(?:{_SLASH}{_NAME})"


_START = rf"(?<![\w.:/\\])(?:file://)?(?:[A-Za-z]:)?{_SLASH}"


_LOCAL = re.compile(
    rf"{_START}(?:{'|'.join(_TEMPORARY)})(?P<below>{_BELOW}+)"
    rf"|{_START}{_HOMES}(?P<file>{_BELOW}*{_SLASH}{_NAME}\.\w{{1,6}}(?![\w\\/]))"
)
"""A path that begins with a folder of one machine, and the part below that folder."""


def _below(path: re.Match[str]) -> str:
    return (path["below"] or path["file"])[1:].replace("\\", "/")


# What varies between two reports of one defect: (a character that it contains, its pattern, what replaces it). Looking
# for the character first is cheap, and saves most searches.
_VARIATIONS: tuple[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    ("\x1b", re.compile(ANSI), ""),
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
"""A text without any of these characters varies only in white space."""


@lru_cache(maxsize=2_048)
def normalised(text: str) -> str:
    """The text without what varies by chance: times, local paths, line numbers, ids, addresses, colours, white space."""
    if _SUSPICIOUS.search(text):
        for character, pattern, substitute in _VARIATIONS:
            if character in text:
                text = pattern.sub(substitute, text)
    return " ".join(text.split())
