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
_CHECKS = re.compile(
    r"(?:.*[_.-]|run|do|self|all)?(?:checks?|tests?|verify|validate|lint|ci|asserts?|expect|smoke|e2e|acceptance|regression)"
    r"(?:[_.-].*)?"
)
"""Names of programs that check, wherever they are."""
_MAKEFILES = re.compile(r"(?:gnu)?makefile|.*\.mk", re.IGNORECASE)
_INCLUDE = re.compile(r"^[ ]*[-s]?include[ \t]+(?P<files>[^#\n]+)", re.MULTILINE)
_SCRIPTS = (".sh", ".bash")
IMPORTS = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\.?\w[\w.]*)", re.MULTILINE)
REQUIRES = re.compile(r"""(?:require|from|import)\s*\(?\s*["'](\.{1,2}/[^"'\n]+)["']""")
_WORD = re.compile(r"[\w./-]+\.\w+")
_EXCEPTIONS = re.compile(
    r".*(?:allow|deny|ignor|exclu|exempt|suppress|baseline|waive|threshold).*\.(?!(?:py|[cm]?[jt]sx?)$)\w+",
    re.IGNORECASE,
)
"""Names of lists that tell a check what not to report."""
_CONFTESTS = re.compile(r"(?:.*/)?conftest\.py|\.?pytest\.(?:ini|toml)|pyproject\.toml|setup\.(?:cfg|py)|tox\.ini")
_PLUGINS = re.compile(
    r"""(?:^|[\s"'=,\[])-p[\s=,"']+(\w[\w.]*)|pytest_plugins\s*=\s*(["'\[(][^\])\n]*(?:\n[^\])=]*[\])])?)"""
)
_DOTTED = re.compile(r"\w[\w.]*")
_ANNOUNCES = "pytest11"


def files_behind(first: Iterable[str], names: Collection[str], read: Callable[[str], bytes | None]) -> frozenset[str]:
    """The names of files behind judges, which begin with `first` and with every Makefile and package.json at the top.
    `names` are all files, and `read` gives the content of one. A file that is included need not be there yet."""
    found: set[str] = set()
    looked_at: set[str] = set()
    left = {*first, *(name for name in names if "/" not in name and _is_entry(name))} & set(names)
    found |= _plugins(names, read)
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
    named = {os.path.normpath(word) for word in _WORD.findall(text)}
    yield from (each for each in sorted(named) if each in names and _EXCEPTIONS.fullmatch(os.path.basename(each)))
    if name.endswith((".py", ".js", ".cjs", ".mjs", ".ts")):
        # A script of checks that lies beside the product may import the product: only tools have modules of their own.
        yield from (each for each in _modules(name, text) if each in names and _is_in_tools(each))
        return
    if _MAKEFILES.fullmatch(last):
        included = (word for found in _INCLUDE.finditer(text) for word in found["files"].split())
        yield from (os.path.normpath(word) for word in included if "$" not in word and not word.startswith(("/", "..")))
    commands = _commands(name, content)
    loaded = setting_files(commands)
    yield from (each for each in judge_files(commands) | loaded if each in names and (_is_tool(each) or each in loaded))


def commands_at_the_top(names: Collection[str], read: Callable[[str], bytes | None]) -> list[list[str]]:
    """The commands of every Makefile and package.json at the top."""
    entries = sorted(name for name in names if "/" not in name and _is_entry(name))
    return [command for name in entries for command in _commands(name, (read(name) or b"")[:LARGEST])]


def _commands(name: str, content: bytes) -> list[list[str]]:
    """The commands of a Makefile, a package.json or a shell script; none of any other file."""
    text, last = content.decode("utf-8", "replace"), os.path.basename(name)
    if _MAKEFILES.fullmatch(last):
        text = "\n".join(line[1:].lstrip("@-+") for line in text.splitlines() if line.startswith("\t"))
    elif last == "package.json":
        text = "\n".join(_scripts(content))
    elif not (last.endswith(_SCRIPTS) or re.match(r"#!.*\b(?:ba|da|z)?sh\b", text)):
        return []
    return list(commands_in(text))


def _scripts(package: bytes) -> Iterator[str]:
    try:
        scripts = msgspec.json.decode(package).get("scripts")
    except (msgspec.DecodeError, AttributeError):
        return
    if isinstance(scripts, dict):
        yield from (str(each) for each in scripts.values())


def _modules(name: str, text: str) -> Iterator[str]:
    """The files that a script of Python or JavaScript may import from its own folder, and below it or beside it."""
    folder = os.path.dirname(name)
    if name.endswith(".py"):
        for found in IMPORTS.findall(text):
            path = found.lstrip(".").replace(".", "/")
            yield from _python_files(os.path.join(folder, path))
            yield from _python_files(path)
        return
    for found in REQUIRES.findall(text):
        path = os.path.normpath(os.path.join(folder, found))
        yield from (f"{path}{end}" for end in ("", ".js", ".cjs", ".mjs", ".ts", ".json", "/index.js"))


def _python_files(path: str) -> tuple[str, str]:
    return f"{path}.py", f"{path}/__init__.py"


def _plugins(names: Collection[str], read: Callable[[str], bytes | None]) -> set[str]:
    """The modules of the workspace that pytest is told to load as plugins. A project that offers a plugin to others develops
    it: there, it is the product."""
    texts = [(read(name) or b"")[:LARGEST].decode("utf-8", "replace") for name in names if _CONFTESTS.fullmatch(name)]
    if any(_ANNOUNCES in text for text in texts):
        return set()
    words = {
        word for text in texts for found in _PLUGINS.findall(text) for each in found for word in _DOTTED.findall(each)
    }
    paths = (f"{root}{word.replace('.', '/')}" for word in words for root in ("", "src/"))
    return {file for path in paths for file in _python_files(path) if file in names}


def _is_tool(name: str) -> bool:
    return _is_in_tools(name) or _CHECKS.fullmatch(os.path.basename(name).casefold()) is not None


def _is_in_tools(name: str) -> bool:
    return not TOOLS.isdisjoint(name.casefold().split("/")[:-1])
