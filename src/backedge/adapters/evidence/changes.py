"""What an attempt changed, for the reviewer and for people: every file, what was silenced, and what looks odd.

Protected files come first and are never left out, however many others there are. All texts come from files that an agent
wrote: they are shortened, printable, and only ever shown as data.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from backedge.adapters.evidence.names import name_of
from backedge.adapters.evidence.protected import Kind
from backedge.adapters.evidence.tree import Tree, differing

MOST_FILES = 200
"""Files that are named if nothing is special about them."""
MOST_LINES, MOST_LINES_OF_A_FILE = 100, 5
"""Lines that are named, of suppressions and again of what looks odd: noise in one file must not hide another."""
LONGEST_LINE = 200
LARGEST, LARGEST_TOGETHER = 1024 * 1024, 64 * 1024 * 1024
"""Bytes of the largest file whose lines are looked at, and of all of them."""

SUPPRESSIONS = re.compile(
    r"#\s*(?i:noqa|nosec|type:\s*ignore|pyright:|yamllint\s+disable|hadolint\s+ignore|codespell:ignore|pytype:\s*skip-file|pylint:\s*(?:disable|skip-file)|pragma:\s*no\s*(?:cover|branch)|fmt:\s*(?:off|skip)|"
    r"mypy:|ruff:\s*(?:noqa|ignore|disable)|flake8:\s*noqa|isort:\s*skip|rubocop:disable|shellcheck\s+disable|semgrep"
    r"|(?:pyre|ty|pyrefly|pytype|pyanalyze):?[\s-]*(?:ignore|disable|fixme))|nosemgrep|NOSONAR|@(?:typing\.|t\.)?no_type_check"
    r"|@(?:pytest\.mark\.|unittest\.|mark\.)?(?:skip|skipIf|skipUnless|xfail|expectedFailure)\b|pytest\.(?:skip|xfail|importorskip)\("
    r"|\.skipTest\(|collect_ignore|__test__\s*=\s*False|pytestmark\s*=|deselect"
    r"|tslint:disable|jshint\s+(?:ignore|-W)|/\*\s*eslint\s+[\w@/-]+\s*:|/\*\s*globals?\s+\w|deno-lint-ignore|swiftlint:disable|phpcs:ignore"
    r"|@(?:phpstan-ignore|psalm-suppress)|markdownlint-disable"
    r"|(?:eslint|tslint|biome|oxlint|prettier|stylelint|jshint)-(?:disable|ignore)|@ts-(?:ignore|nocheck|expect-error)|(?:istanbul|c8|v8)\s+ignore"
    r"|\b(?:it|test|describe|context|suite)\.(?:only|skip|todo|fails?|failing)\b|^\s*[xf](?:it|test|describe|context)\s*\(\s*['\"`]"
    r"|\{\s*(?:skip|todo|only)\s*:\s*(?:true|['\"])"
    r"|#!?\[(?:ignore|allow|cfg_attr)\b|\bt\.Skip(?:f|Now)?\(|//\s*(?:nolint|NOLINT)|//go:build\s+ignore|@(?:Disabled|Ignore|SuppressWarnings)\b"
)
"""What silences a test, a linter or a type checker."""
SUSPICIOUS = re.compile(
    r"sys\.modules|PYTEST_(?:CURRENT_TEST|XDIST|VERSION)|BACKEDGE_|JEST_WORKER_ID|VITEST|NODE_TEST_CONTEXT|NODE_ENV"
    r"|sys\._getframe|inspect\.(?:stack|currentframe)|\bos\._exit\(|sys\.exit\(0?\)|process\.(?:exit|reallyExit)\(|\batexit\b"
    r"|\bdef __(?:eq|ne)__\(self|pytest_(?:runtest|collection|sessionfinish|report|terminal|configure|pyfunc)\w*"
    r"|\btrap\b.*\bEXIT\b|^\s*exit\s+0\b|\|\|\s*(?:true|exit 0|:)\s*$|settrace|setprofile|addinivalue_line|makereport"
    r"|(?:ignore|disregard)\s+(?:all\s+|any\s+)?(?:previous|prior|above|earlier)\s+instructions|(?:reviewer|judge|llm|assistant)s?\s*[:,].{0,40}\b(?:pass|approve)"
    "|[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]",
    re.IGNORECASE,
)
"""What honest code has too, and what dishonest code often has. Information, never a verdict."""


class FileChange(msgspec.Struct, frozen=True):
    """One file that is not as it was."""

    file: str
    change: str
    """added, changed or removed."""
    kind: Kind | None = None
    """What it is evidence for, if it is protected."""
    digest: str = ""
    """What it is now, as the tree has it; empty if it was removed."""
    added: int | None = None
    removed: int | None = None
    """Lines; None if the file is not text, is too large, or its old content is not known."""
    moved_from: str = ""
    """A removed file that had the same content."""

    @property
    def lines(self) -> str:
        """The same for people: +3 −7. A file that only moved has no new lines: it says where it was."""
        if self.moved_from:
            return f"moved from {self.moved_from}"
        return "" if self.added is None else f"+{self.added} −{self.removed}"


class Line(msgspec.Struct, frozen=True):
    """One line that was added."""

    file: str
    line: int
    text: str


class TreeChanges(msgspec.Struct, frozen=True):
    """What changed between two trees."""

    files: tuple[FileChange, ...] = ()
    left_out: int = 0
    """Files that are not named. None of them is protected."""
    silenced: tuple[Line, ...] = ()
    suspicious: tuple[Line, ...] = ()
    lines_left_out: int = 0


Text = Callable[[str], bytes | None]
"""The content of a file by its name; None if it is not known."""


def changes_between(before: Tree, after: Tree, kind: Callable[[str], Kind | None], old: Text, new: Text) -> TreeChanges:
    """What an attempt changed. Lines are counted as if their order did not matter, which no content can make slow."""
    names = differing(before, after)
    gone = {before.files[name]: name for name in reversed(names) if name not in after.files}
    looked_at = [_Looked(name, kind(name)) for name in names]
    looked_at.sort(key=lambda each: (each.kind is None, each.name))
    room = LARGEST_TOGETHER
    for each in looked_at:
        each.moved_from = gone.get(after.files.get(each.name, "")) if each.name not in before.files else None
        if room > 0 and each.moved_from is None:
            room -= each.look(before, after, old, new)
    special = [each for each in looked_at if each.kind is not None or each.silenced]
    plain = [each for each in looked_at if each.kind is None and not each.silenced]
    shown = [*special, *plain[: max(0, MOST_FILES - len(special))]]
    silenced = [line for each in looked_at for line in each.silenced]
    suspicious = [line for each in looked_at for line in each.suspicious]
    named = _some(silenced), _some(suspicious)
    left_out = len(silenced) + len(suspicious) - sum(map(len, named))
    files = tuple(each.change(before, after) for each in shown)
    return TreeChanges(files, len(names) - len(shown), *named, left_out)


class _Looked:
    """One changed file while it is looked at."""

    def __init__(self, name: str, kind: Kind | None) -> None:
        self.name, self.kind = name, kind
        self.moved_from: str | None = None
        self.counts: tuple[int, int] | None = None
        self.silenced: list[Line] = []
        self.suspicious: list[Line] = []

    def look(self, before: Tree, after: Tree, old: Text, new: Text) -> int:
        """Compare the lines, and give how many bytes were read."""
        first = b"" if self.name not in before.files else _text(self.name, old)
        second = b"" if self.name not in after.files else _text(self.name, new)
        if second is None:
            return 0
        # Without the old content every line may be new: it is better to name too much than too little.
        lines, removed = _added(first or b"", second)
        self.counts = (len(lines), removed) if first is not None else None
        self.silenced = list(_matching(self.name, lines, SUPPRESSIONS))
        self.suspicious = list(_matching(self.name, lines, SUSPICIOUS))
        return len(first or b"") + len(second)

    def change(self, before: Tree, after: Tree) -> FileChange:
        added, removed = (0, 0) if self.moved_from else self.counts or (None, None)
        return FileChange(
            self.name,
            _change(self.name, before, after),
            self.kind,
            after.files.get(self.name, ""),
            added,
            removed,
            self.moved_from or "",
        )


def _some(lines: list[Line]) -> tuple[Line, ...]:
    """The first lines of each file, within the limits."""
    of_file: Counter[str] = Counter()
    named = []
    for line in lines:
        of_file[line.file] += 1
        if of_file[line.file] <= MOST_LINES_OF_A_FILE:
            named.append(line)
    return tuple(named[:MOST_LINES])


def _change(name: str, before: Tree, after: Tree) -> str:
    return "added" if name not in before.files else "removed" if name not in after.files else "changed"


def _text(name: str, read: Text) -> bytes | None:
    content = read(name)
    return None if content is None or len(content) > LARGEST or b"\0" in content else content


def _added(first: bytes, second: bytes) -> tuple[list[tuple[int, str]], int]:
    """The lines that are new, with their numbers, and how many are gone."""
    old = Counter(first.splitlines())
    left = old.copy()
    lines = []
    for number, line in enumerate(second.splitlines(), start=1):
        if left[line] > 0:
            left[line] -= 1
        else:
            lines.append((number, line.decode("utf-8", "replace")))
    return lines, sum(left.values())


def _matching(name: str, lines: list[tuple[int, str]], pattern: re.Pattern[str]) -> Iterator[Line]:
    for number, text in lines:
        found = pattern.search(text[:10_000])
        if found is not None:
            start = max(0, found.start() - LONGEST_LINE // 2)
            yield Line(name, number, name_of(text[start : start + LONGEST_LINE].strip().replace("\\", "/")))
