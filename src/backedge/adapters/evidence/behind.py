"""The files behind a judge: what the Makefile includes and what its scripts start, as they were when the run began.

A test script also starts the product. So only files in places where nobody puts a product are part of a judge this way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from backedge.adapters.evidence.judge_files import commands_in, judge_files, setting_files

LARGEST = 256 * 1024
DEEPEST = 4
"""How many scripts may start each other."""
TOOLS = frozenset(
    {"scripts", "script", "tools", "tooling", "ci", ".ci", "hack", "dev", ".github", "build-tools", "make"}
)
"""Folders of programs that build and check."""
_CHECKS = re.compile(r"(?:run|do)?[_-]?(?:checks?|tests?|verify|validate|lint|ci|asserts?|expect)(?:[_.-].*)?")
"""Names of programs that check, wherever they are."""
_MAKEFILES = re.compile(r"(?:gnu)?makefile|.*\.mk", re.IGNORECASE)
_INCLUDE = re.compile(r"^[ ]*[-s]?include[ \t]+(?P<files>[^#\n]+)", re.MULTILINE)
_SCRIPTS = (".sh", ".bash")


def files_behind(first: Iterable[str], names: Collection[str], read: Callable[[str], bytes | None]) -> frozenset[str]:
    """The names of files behind judges, which begin with `first` and with every Makefile and package.json at the top.
    `names` are all files, and `read` gives the content of one. A file that is included need not be there yet."""
    found: set[str] = set()
    looked_at: set[str] = set()
    left = {*first, *(name for name in names if "/" not in name and _is_entry(name))} & set(names)
    for _ in range(DEEPEST):
        looked_at |= left
        new = {name for each in left for name in _behind(each, names, read(each))}
        found |= new
        left = (new & set(names)) - looked_at
    return frozenset(found)


def _is_entry(name: str) -> bool:
    return name == "package.json" or _MAKEFILES.fullmatch(name) is not None


def _behind(name: str, names: Collection[str], content: bytes | None) -> Iterator[str]:
    if content is None or len(content) > LARGEST:
        return
    text = content.decode("utf-8", "replace")
    last = os.path.basename(name)
    if _MAKEFILES.fullmatch(last):
        included = (word for found in _INCLUDE.finditer(text) for word in found["files"].split())
        yield from (os.path.normpath(word) for word in included if "$" not in word and not word.startswith(("/", "..")))
        text = "\n".join(line[1:].lstrip("@-+") for line in text.splitlines() if line.startswith("\t"))
    elif last == "package.json":
        text = "\n".join(_scripts(content))
    elif not (last.endswith(_SCRIPTS) or text.startswith("#!/bin/sh") or re.match(r"#!.*\b(?:ba|da|z)?sh\b", text)):
        return
    commands = list(commands_in(text))
    loaded = setting_files(commands)
    yield from (each for each in judge_files(commands) | loaded if each in names and (_is_tool(each) or each in loaded))


def _scripts(package: bytes) -> Iterator[str]:
    try:
        scripts = msgspec.json.decode(package).get("scripts")
    except (msgspec.DecodeError, AttributeError):
        return
    if isinstance(scripts, dict):
        yield from (str(each) for each in scripts.values())


def _is_tool(name: str) -> bool:
    *folders, last = name.casefold().split("/")
    return not TOOLS.isdisjoint(folders) or _CHECKS.fullmatch(last) is not None
