"""The files of the workspace that a judge's command line names as part of the judge: its script, its configuration.

What a linter is told to look at is the product, not the judge: `ruff check shop/cart.py` does not protect the cart. The
command line alone decides, not what is on the disk, so that the answer is the same after any change of the files.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from backedge.adapters.evidence.names import name_of

_SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "fish"}
_INTERPRETERS = {
    *_SHELLS,
    "python",
    "pypy",
    "node",
    "nodejs",
    "ruby",
    "perl",
    "php",
    "deno",
    "bun",
    "tsx",
    "ts-node",
    "rscript",
}
_RUNNERS = {
    "pytest",
    "py.test",
    "unittest",
    "nose2",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "tap",
    "bats",
    "rspec",
    "phpunit",
    "behave",
    "robot",
    "playwright",
    "prove",
}
_WRAPPERS = {
    *(
        "env",
        "uv",
        "uvx",
        "poetry",
        "pipenv",
        "pdm",
        "hatch",
        "rye",
        "npx",
        "pnpm",
        "yarn",
        "bundle",
        "timeout",
        "nice",
    ),
    *("nohup", "time", "sudo", "stdbuf", "xvfb-run", "coverage", "run", "exec", "dlx", "command", "ionice", "setsid"),
}
"""Programs that start the program that follows, and the words between."""
_SETTINGS = re.compile(
    r"-c|-f|-p|-r|--(?:conf(?:ig)?(?:[-_]?file)?|config-path|rcfile|rc-file|settings(?:-file)?|makefile|file|project|"
    r"tsconfig|import|require|loader|experimental-loader|setup|preset|rulesdir|rootdir|ignore-path|baseline|env-file|plugin)"
)
"""Options whose value is a file that configures the judge."""
_DATA = (".md", ".txt", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".xml", ".sh", ".csv", ".feature", ".robot")
"""Endings of files that a script is given to work by, such as a rubric."""
_OPERATORS = re.compile(r"[;&|()<>]+")
_VERSION = re.compile(r"[\d.]+$")
_ASSIGNMENT = re.compile(r"\w+=")
_DURATION = re.compile(r"[\d.]+[smhd]?")


def judge_files(argvs: Iterable[Sequence[str]], folder: str = "") -> frozenset[str]:
    """The names of files that are part of judges. `folder` is the workspace, for absolute paths."""
    found = (path for argv in argvs for path in _of_command(list(argv)))
    return frozenset(name for path in found if (name := _name(path, folder)))


def starts_runner(command: Sequence[str]) -> bool:
    """Whether a command starts a test runner: what it is given then are tests."""
    return any(_base(word) in _RUNNERS for word in command) or "--test" in command


def commands_of(argv: Sequence[str]) -> list[list[str]]:
    """A command line, and the commands in it if it is a shell with a script."""
    words = list(argv)
    script = _script_of(words) if words and _base(words[0]) in _SHELLS else None
    return [words] if script is None else list(commands_in(script))


def setting_files(argvs: Iterable[Sequence[str]]) -> frozenset[str]:
    """The names of files that programs load because of an option such as `--require`, whatever their names are."""
    found: set[str] = set()
    for argv in argvs:
        for option, value in pairwise((*argv, "")):
            name, equals, own = option.partition("=")
            if name.startswith("--") and _SETTINGS.fullmatch(name):
                found.add(_name(own if equals else value, ""))
    return frozenset(found - {""})


def files_outside(argvs: Iterable[Sequence[str]], folder: str) -> frozenset[str]:
    """The paths outside the workspace that are part of judges, such as `../ci/test.sh`: the scripts, tests and settings that
    command lines name."""
    found = (path.partition("::")[0] for argv in argvs for path in _of_command(list(argv)))
    whole = (os.path.normpath(os.path.join(folder, path)) for path in found if path and not set("{\0") & set(path))
    return frozenset(
        path for path in whole if not f"{folder}/".startswith(f"{path}/") and not path.startswith(f"{folder}/")
    )


def _of_command(words: list[str]) -> Iterator[str]:
    while words and (_ASSIGNMENT.match(words[0]) or _base(words[0]) in _WRAPPERS):
        yield from _program(words[0])
        words = words[1:]
        while words and (words[0].startswith("-") or _DURATION.fullmatch(words[0])) and words[0] != "-m":
            words = words[1:]
    if not words:
        return
    if words[0] == "-m":  # of `coverage run -m pytest`
        words = ["python", *words]
    if words[0] in (".", "source"):  # of a shell: the file is part of the script
        yield from words[1:2]
        return
    program = _base(words[0])
    yield from _program(words[0])
    if program in _SHELLS and (script := _script_of(words)) is not None:
        for command in commands_in(script):
            yield from _of_command(command)
    elif program in _INTERPRETERS and "-m" in words:
        at = words.index("-m")
        yield from _module(words[at + 1 : at + 2])
        yield from _operands(_base("".join(words[at + 1 : at + 2])), words[at + 2 :])
    else:
        yield from _operands(program, words[1:])


def _operands(program: str, words: list[str]) -> Iterator[str]:
    """The files among the arguments of a program."""
    first = program in _INTERPRETERS
    doctests = any(word.startswith("--doctest") for word in words)
    option = ""
    for word in words:
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            if equals and _SETTINGS.fullmatch(name):
                yield value
            option = "" if equals else name
            continue
        if _SETTINGS.fullmatch(option) and not (program in _INTERPRETERS and option in ("-c", "-p")):
            yield word
        elif option in ("-c", "-e", "--eval") and program in _INTERPRETERS:
            first = False  # the program is in the command line itself
        elif first or (program in _RUNNERS and not doctests):
            yield word
            first = False
        elif program in _INTERPRETERS and not option and word.endswith(_DATA):
            yield word
        option = ""


def _program(word: str) -> Iterator[str]:
    if "/" in word:
        yield word


def _module(words: list[str]) -> Iterator[str]:
    """The files that may be the module of `python -m`. Runners and other installed modules have no file here."""
    for word in words:
        path = word.replace(".", "/")
        if _base(word) not in _RUNNERS:
            yield from (f"{start}{path}{end}" for start in ("", "src/") for end in (".py", "/__main__.py"))


def _script_of(words: list[str]) -> str | None:
    """The text that a shell is told to execute, as in `sh -ec 'pytest && ruff check'`."""
    for at, word in enumerate(words[1:-1], start=1):
        if re.fullmatch(r"-[a-z]*c[a-z]*", word):
            return words[at + 1]
        if not word.startswith("-"):
            return None
    return None


def commands_in(script: str) -> Iterator[list[str]]:
    """The commands of a shell script, as words."""
    for line in script.splitlines():
        reader = shlex.shlex(line, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        try:
            words = list(reader)
        except ValueError:
            words = line.split()  # a quote that does not end
        command: list[str] = []
        before = ""
        for word in (*words, ";"):
            if _OPERATORS.fullmatch(word):
                yield command
                command = []
            elif ">" not in before or not _OPERATORS.fullmatch(before):  # output is not part of a command
                command.append(word)
            before = word


def _base(word: str) -> str:
    """A program without its folder and version: `.venv/bin/python3.12` is python."""
    return _VERSION.sub("", word.rpartition("/")[2]).lower()


def _name(path: str, folder: str) -> str:
    """The name of a file in the workspace; empty if the path leads elsewhere, or is a placeholder."""
    plain = path.partition("::")[0]
    if not plain or "{" in plain or "\0" in plain:
        return ""
    inside = os.path.relpath(plain, folder) if folder and os.path.isabs(plain) else os.path.normpath(plain)
    return "" if inside.startswith(("..", "/")) or inside == "." else name_of(inside)
