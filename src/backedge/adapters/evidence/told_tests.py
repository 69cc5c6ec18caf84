"""Files of tests whose names do not say so: a test runner is told to run them, or to look in their folder.

A report with test ids shows where tests are; an exit code does not. What a runner is told also says it, in the command line
of a judge, in the Makefile or package.json behind it, and in the configuration of pytest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from backedge.adapters.evidence.behind import IMPORTS, LARGEST, REQUIRES, commands_at_the_top
from backedge.adapters.evidence.judge_files import commands_of, judge_files, starts_runner

_CONFIGURATIONS = ("pyproject.toml", "pytest.ini", ".pytest.ini", "setup.cfg", "tox.ini")
_TESTPATHS = re.compile(r"^testpaths[ \t]*=[ \t]*(\[[^\]]*\]|[^\n]*(?:\n[ \t]+[^\n]+)*)", re.MULTILINE)
_PATH = re.compile(r"[^\s\"',\[\]]+")
_MODULE = re.compile(r"\w+(?:\.\w+)+")
_SCRIPT = re.compile(r".*\.[cm]?[jt]sx?")
_ROOTS = ("src", "lib", "python")

_TEST_MODULE = re.compile(
    r"test_.*\.py|.*_test\.py|.*[._-](?:tests?|spec|e2e|cy)\.\w+|tests?\.\w+|.*\.t", re.IGNORECASE
)

Read = Callable[[str], bytes | None]


def told_tests(argvs: Iterable[Sequence[str]], names: Collection[str], read: Read) -> frozenset[str]:
    """The files of tests among `names` that the judges' command lines, or what lies behind them, tell a runner to run. If
    names in a folder say which files are tests, or if it also has the product, the other files are not."""
    commands = [*(each for argv in argvs for each in commands_of(argv)), *commands_at_the_top(names, read)]
    told = {word for command in commands if starts_runner(command) for word in _operands(command)}
    told |= _testpaths(names, read)
    found = {path for path in told if path in names}
    for folder in sorted({_before_wildcards(path) for path in told - found} - {"", "."}):
        inside = [name for name in names if name.startswith(f"{folder}/")]
        if (
            inside
            and not any(_TEST_MODULE.fullmatch(name.rpartition("/")[2]) for name in inside)
            and _is_apart(folder, inside, names, read)
        ):
            found.update(inside)
    return frozenset(found)


def _operands(command: Sequence[str]) -> Iterator[str]:
    yield from judge_files([command])
    # A module of tests, as `python -m unittest` takes it.
    modules = (word.replace(".", "/") for word in command if _MODULE.fullmatch(word))
    yield from (f"{path}{end}" for path in modules for end in ("", ".py"))


def _testpaths(names: Collection[str], read: Read) -> set[str]:
    texts = [(read(name) or b"")[:LARGEST].decode("utf-8", "replace") for name in _CONFIGURATIONS if name in names]
    paths = [path for text in texts for found in _TESTPATHS.findall(text) for path in _PATH.findall(found)]
    return {os.path.normpath(path) for path in paths}


def _before_wildcards(path: str) -> str:
    """The folder in which a pattern begins to vary."""
    parts = path.split("/")
    end = next((at for at, part in enumerate(parts) if set("*?[{") & set(part)), len(parts))
    return "/".join(parts[:end])


def _is_apart(folder: str, inside: Sequence[str], names: Collection[str], read: Read) -> bool:
    """Whether a folder uses what is outside, and nothing outside uses it: then it has tests, and not the product."""
    outside = [name for name in names if not name.startswith(f"{folder}/")]
    theirs, ours = _modules(outside, ""), _modules(inside, folder) | {folder.rpartition("/")[2]}
    used, uses = _used_by(inside, read), _used_by(outside, read)
    return not used.isdisjoint(theirs - ours | {".."}) and uses.isdisjoint(ours)


def _modules(names: Iterable[str], folder: str) -> set[str]:
    """What others call the modules among some files, when they import them."""
    found: set[str] = set()
    for name in names:
        if name.endswith(".py") or _SCRIPT.fullmatch(name):
            first, *more = (name[len(folder) + 1 :] if folder else name).split("/")
            found.add((more[0] if first in _ROOTS and more else first).partition(".")[0])
    return found


def _used_by(names: Iterable[str], read: Read) -> set[str]:
    """The modules that some files import: of Python by their first name, of JavaScript every part of the path."""
    found: set[str] = set()
    for name in names:
        if name.endswith(".py"):
            text = (read(name) or b"")[:LARGEST].decode("utf-8", "replace")
            found.update(each.partition(".")[0] for each in IMPORTS.findall(text))
        elif _SCRIPT.fullmatch(name):
            text = (read(name) or b"")[:LARGEST].decode("utf-8", "replace")
            found.update(part.partition(".")[0] or part for each in REQUIRES.findall(text) for part in each.split("/"))
    return found
