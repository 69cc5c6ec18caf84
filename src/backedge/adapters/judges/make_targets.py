"""What make would not do again: files that it makes itself on the way to a goal, such as a stamp that says "tested".

Make compares times only, and anybody can set these. A file of the name of a goal is enough: "'check' is up to date". So what
came to be since the run began, and what make can make again, is not in the room of a judge.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from backedge.adapters.agents.regular_file import opened
from backedge.adapters.evidence.judge_files import commands_in
from backedge.adapters.evidence.names import name_of

LARGEST = 256 * 1024
_PROGRAMS = frozenset({"make", "gmake"})
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_WITH_VALUE = frozenset({"-C", "-f", "-I", "-o", "-W", "-j", "-l", "--directory", "--file", "--makefile"})
_ASSIGNMENT = re.compile(r"^[ ]*(?:export[ ]+)?(\w+)[ ]*(?:::?|\?|\+)?=[ ]*(.*)$", re.MULTILINE)
_RULE = re.compile(
    r"^(?P<targets>[^\s#:=][^#:=\n]*?)[ ]*::?(?!=)(?P<needs>[^=;#\n]*)(?P<recipe>;[^\n]*)?", re.MULTILINE
)
_VARIABLE = re.compile(r"\$[({](\w+)[)}]")


@dataclass
class _Rules:
    """What a Makefile says about its targets."""

    needs: dict[str, set[str]] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    """Targets with commands."""
    first: str = ""

    def reached(self, goals: Sequence[str]) -> set[str]:
        left, found = set(goals or [self.first]), set[str]()
        while left:
            target = left.pop()
            found.add(target)
            left |= self.needs.get(target, set()) - found
        return found


def made_since(argv: Sequence[str], workspace: Path, base: Collection[str], moment: int) -> list[str]:
    """The paths of targets of make, on the way to the goals of a judge's command line, that are younger than a moment, in
    nanoseconds, and that the run did not begin with."""
    found: set[str] = set()
    for goals, inside in _calls(argv):
        rules = _read(workspace / inside)
        for target in rules.reached(goals) & (rules.made | set(goals)):
            path = os.path.normpath(os.path.join(inside, target))
            if not path.startswith(("..", "/")) and _is_new(workspace, path, base, moment):
                found.add(path)
    return sorted(found)


def _calls(argv: Sequence[str]) -> Iterator[tuple[list[str], str]]:
    """The goals of each call of make, and the folder that it works in."""
    scripts = [list(commands_in(word)) for word in argv[1:] if any(name in word for name in _PROGRAMS) and " " in word]
    for words in (list(argv), *(command for script in scripts for command in script)):
        at = next((n for n, word in enumerate(words) if os.path.basename(word) in _PROGRAMS), None)
        if at is None:
            continue
        goals, folder, option = list[str](), "", ""
        for word in words[at + 1 :]:
            if option in ("-C", "--directory"):
                folder = word
            if not option and not word.startswith("-") and "=" not in word:
                goals.append(os.path.normpath(word))
            option = word if word in _WITH_VALUE and not option else ""
        yield goals, folder


def _read(folder: Path) -> _Rules:
    rules = _Rules()
    for name in _MAKEFILES:
        try:
            with opened(folder / name) as file:
                text = file.read(LARGEST).decode("utf-8", "replace").replace("\\\n", " ")
        except OSError:
            continue
        values = dict(_ASSIGNMENT.findall(text))
        for rule in _RULE.finditer(text):
            targets, needs = (_words(rule[part], values) for part in ("targets", "needs"))
            has_recipe = bool(rule["recipe"]) or text[rule.end() :].lstrip("\n").startswith("\t")
            for target in targets:
                rules.needs.setdefault(target, set()).update(needs)
                rules.made |= {target} if has_recipe else set()
                rules.first = rules.first or ("" if target.startswith(".") and "/" not in target else target)
    return rules


def _words(text: str, values: Mapping[str, str]) -> list[str]:
    for _ in range(3):
        text = _VARIABLE.sub(lambda found: values.get(found[1], ""), text)
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return [os.path.normpath(word) for word in words if word != "|" and "$" not in word and "%" not in word]


def _is_new(workspace: Path, path: str, base: Collection[str], moment: int) -> bool:
    name = name_of(path)
    if name in base or any(each.startswith(f"{name}/") for each in base):
        return False
    try:
        return os.lstat(workspace / path).st_ctime_ns >= moment
    except OSError:
        return False
