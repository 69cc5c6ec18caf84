"""Files of tests that only a report shows: a project may call its tests `check_cart.py`.

A file that has tests and is also the product, as with examples in its documentation, is not evidence: it has to change. So a
file counts only if it uses other files of the workspace, and none of them uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from backedge.adapters.judges.run_evidence import RunEvidence
from backedge.adapters.judges.test_ids import name_of_test

MOST_READ = 2_000
"""How many files are read to see whether they use a file of tests."""
_PYTHON, _SCRIPT = re.compile(r".*\.py"), re.compile(r".*\.[cm]?[jt]sx?")
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([.\w]+)", re.MULTILINE)
_REQUIRES = re.compile(rb"""(?:require|from|import)\s*\(?\s*["']\.""")
_ROOTS = ("src", "lib", "python")


def keep_reported(run: RunEvidence, files: Mapping[str, str]) -> None:
    """Protect the files of the tests of a report, given by the ids of the tests, as far as they are nothing but tests."""
    base, by_file = run.start.base.tree.files, dict[str, list[str]]()
    for test, file in files.items():
        if file in base and run.start.protected.kind(file) is None:
            by_file.setdefault(file, []).append(test)
    candidates = [file for file, tests in by_file.items() if not any(_is_example(test, file) for test in tests)]
    found = {file for file in candidates if _uses_others(run.read(file) or b"", file, base)}
    found -= _used(run, found, base)
    if found:
        run.keep_tests(sorted(found))


def _is_example(test: str, file: str) -> bool:
    """Whether a test is an example in the documentation of a module: its name begins with that of the module."""
    return name_of_test(test).startswith(_module(file))


def _uses_others(content: bytes, file: str, base: Iterable[str]) -> bool:
    if _SCRIPT.fullmatch(file):
        return _REQUIRES.search(content) is not None
    if not _PYTHON.fullmatch(file):
        return False
    imported = {found[1].decode(errors="replace").partition(".")[0] for found in _IMPORTS.finditer(content)}
    return not imported.isdisjoint({"", *(_top(name) for name in base if _PYTHON.fullmatch(name) and name != file)})


def _used(run: RunEvidence, files: Iterable[str], base: Iterable[str]) -> set[str]:
    """Those of some files that another file of the workspace imports."""
    left = {file: PurePosixPath(file).name.partition(".")[0] for file in files}
    if not left:
        return set()
    others = [name for name in base if name not in left and (_PYTHON.fullmatch(name) or _SCRIPT.fullmatch(name))]
    text = b"\n".join(run.read(name) or b"" for name in others[:MOST_READ]).decode("utf-8", "replace")
    return {file for file, stem in left.items() if _import_of(stem).search(text)}


def _import_of(stem: str) -> re.Pattern[str]:
    word = re.escape(stem)
    return re.compile(
        rf"""^[ \t]*(?:from|import)\b[^\n]*\b{word}\b|(?:require|from|import)\s*\(?\s*["'][^"'\n]*/{word}\b""",
        re.MULTILINE,
    )


def _module(file: str) -> str:
    return PurePosixPath(file).with_suffix("").as_posix().replace("/", ".")


def _top(file: str) -> str:
    first, *more = file.split("/")
    return (more[0] if first in _ROOTS and more else first).removesuffix(".py")
