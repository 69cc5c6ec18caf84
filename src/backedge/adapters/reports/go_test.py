"""The output of `go test -json`: one event on each line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from backedge.adapters.reports.places import FileNames, evidence_of, first_line, line_of
from backedge.adapters.reports.tests import WHOLE_PACKAGE, ReportedTests, Result, TestList, id_of, require_tests
from backedge.core.errors import AgentError
from backedge.core.ready_types import make_ready
from backedge.engine.protocol import Finding

MOST_OUTPUT = 200_000
"""How many characters of one test's output are kept."""
_ENDS: Mapping[str, Result] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
_WORST: tuple[Result | None, ...] = ("failed", "passed", "skipped", None)
_FRAME = re.compile(r"^\s*(?:=== |--- (?:PASS|FAIL|SKIP|BENCH): |(?:FAIL|ok|PASS|exit status)\b)")
_PLACE = re.compile(r"^\s*(?P<file>[^\s:]+\.go):(?P<line>\d+)\b", re.MULTILINE)
_MODULE = re.compile(r"^module\s+\"?([^\s\"]+)", re.MULTILINE)


class _Event(msgspec.Struct):
    Action: str
    Package: str = ""
    Test: str = ""
    Output: str = ""
    ImportPath: str = ""
    FailedBuild: str = ""


make_ready(_Event)


@dataclass
class _Part:
    """What was said about a test, a package or a build."""

    result: Result | None = None
    output: list[str] = field(default_factory=list)
    room: int = MOST_OUTPUT
    build: str = ""

    def say(self, text: str) -> None:
        if self.room > 0:
            self.output.append(text[: self.room])
            self.room -= len(text)

    def end(self, result: Result) -> None:
        """With -count a test runs more than once: the worst result counts."""
        self.result = min(self.result, result, key=_WORST.index)

    @property
    def text(self) -> str:
        return "".join(line for line in self.output if not _FRAME.match(line))


def read_go_test(text: bytes, names: FileNames, allow_empty: bool = False) -> tuple[ReportedTests, list[Finding]]:
    """The tests with their results, and a finding for each that failed. Raises AgentError if that is not the output."""
    reader = _Reader(names)
    for line in text.decode("utf-8", "replace").splitlines():
        reader.line(line)
    if not reader.packages:
        # Without any package, only a build can have failed.
        said = first_line(text.decode("utf-8", "replace")) or "nothing"
        raise AgentError(f"go test printed no events, but {said!r}: run `go test -json`")
    tests, findings = reader.read()
    require_tests(tests, findings, "the output of go test", allow_empty)
    return tests, findings


class _Reader:
    def __init__(self, names: FileNames) -> None:
        self.packages: dict[str, _Part] = {}
        self._tests: dict[tuple[str, str], _Part] = {}
        self._builds: dict[str, _Part] = {}
        self._names = names
        module = _MODULE.search(names.text("go.mod"))
        self._module = module[1] if module else ""
        self._files: dict[tuple[str, str], str | None] = {}

    def line(self, line: str) -> None:
        """Take in an event. Other lines are from the tests themselves, or from the compiler of an older Go."""
        try:
            event = msgspec.json.decode(line, type=_Event)
        except (msgspec.DecodeError, RecursionError):
            return
        if event.ImportPath and not event.Package:
            self._builds.setdefault(event.ImportPath, _Part()).say(event.Output)
            return
        if not event.Package:
            return
        part = self.packages.setdefault(event.Package, _Part())
        if event.Test:
            part = self._tests.setdefault((event.Package, event.Test), _Part())
        part.build = event.FailedBuild or part.build
        part.say(event.Output)
        if event.Action in _ENDS:
            part.end(_ENDS[event.Action])

    def read(self) -> tuple[ReportedTests, list[Finding]]:
        unfinished = [name for name, part in self.packages.items() if part.result is None]
        if unfinished:
            raise AgentError(f"the output of go test ends before {unfinished[0]!r} ended: it was cut off; run it again")
        listed, findings = TestList(), []
        explained, parents = set(), self._failed_by_a_part()
        for (package, test), part in self._tests.items():
            # A test without an end was running when its package crashed, or was stopped by a timeout.
            result = part.result or "failed"
            file = self._file(package, test)
            id = listed.merge(id_of(package, test), result, file)
            if result == "failed":
                explained.add(package)
                if part.text.strip() or (package, test) not in parents:
                    findings.append(self._finding(id, package, file, part.text))
        for package, part in self.packages.items():
            if part.result == "failed" and package not in explained:
                id = listed.merge(id_of(package, WHOLE_PACKAGE), "failed", None)
                built = self._builds.get(part.build)
                text = built.text if built is not None else part.text
                findings.append(self._finding(id, package, None, text))
        return listed.tests(), findings

    def _failed_by_a_part(self) -> set[tuple[str, str]]:
        """The tests that have a failing subtest."""
        return {
            (package, test[:end])
            for (package, test), part in self._tests.items()
            if part.result == "failed"
            for end in range(len(test))
            if test[end] == "/"
        }

    def _finding(self, id: str, package: str, file: str | None, text: str) -> Finding:
        line = None
        for found in _PLACE.finditer(text):
            path = self._place(package, found["file"])
            if path is not None and file in (None, path):
                file, line = path, line_of(found["line"])
                break
        lines = [each for each in text.splitlines() if each.strip() and not each.startswith("# ")]
        said = re.sub(r"^\s*\S+\.go:\d+(?::\d+)?: ", "", lines[0]) if lines else ""
        return Finding(
            f"{id.removesuffix(f'::{WHOLE_PACKAGE}')}: {first_line(said) or 'failed'}",
            category="test",
            evidence=evidence_of(text),
            file=file,
            line=line,
            test=id,
        )

    def _place(self, package: str, name: str) -> str | None:
        """A file as the output names it: by itself in the folder of its package, or by its path."""
        folder = self._folder(package)
        beside = f"{folder}/{name}" if folder else name
        if folder is not None and "/" not in name and self._names.has(beside):
            return beside
        path = self._names.of(name)
        return path if path is not None and self._names.has(path) else None

    def _folder(self, package: str) -> str | None:
        plain = package.removesuffix("_test")
        for name in (package, plain):
            if self._module and name == self._module:
                return ""
            if self._module and name.startswith(f"{self._module}/"):
                return name.removeprefix(f"{self._module}/")
        return None

    def _file(self, package: str, test: str) -> str | None:
        """The file that declares a test."""
        name = test.partition("/")[0]
        key = package, name
        if key not in self._files:
            folder = self._folder(package)
            declares = re.compile(rf"^func {re.escape(name)}\(", re.MULTILINE)
            candidates = [] if folder is None else self._names.inside(folder)
            self._files[key] = next(
                (path for path in candidates if path.endswith("_test.go") and declares.search(self._names.text(path))),
                None,
            )
        return self._files[key]
