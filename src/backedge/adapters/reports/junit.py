"""JUnit XML: what test runners of every language write. Failures and errors are findings, skipped tests are not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from backedge.adapters.reports.places import evidence_of, first_line, line_of, path_in_workspace
from backedge.core.errors import AgentError
from backedge.engine.protocol import Finding

MOST_TEXT = 200_000
"""How many characters of one failure are read."""

# The line of a traceback that says where it happened, as pytest and compilers print it.
_PLACE = re.compile(r"^(?P<file>[^\s:][^:\n]*\.\w+):(?P<line>\d+): ", re.MULTILINE)


def read_junit(text: bytes, folder: Path, allow_empty: bool = False) -> tuple[int, list[Finding]]:
    """The number of tests, and a finding for each that failed. Raises AgentError if it is not a complete report."""
    reader = _Reader(folder)
    try:
        reader.parser.Parse(text, True)
    except expat.ExpatError as error:
        raise AgentError(f"the JUnit report is not XML: {error}; the tool may have been cut off") from error
    if reader.declared > len(reader.findings):
        raise AgentError(
            f"the JUnit report declares {reader.declared} failures but lists {len(reader.findings)}: it is incomplete, so run the tests again"
        )
    if not reader.tests and not allow_empty:
        raise AgentError("the JUnit report has no tests: nothing was tested; correct the command")
    if reader.tests and reader.skipped == reader.tests:
        raise AgentError(
            f"the JUnit report has {reader.tests} tests, all skipped: nothing was tested; run at least one"
        )
    return reader.tests, reader.findings


class _Reader:
    """Reads a report as a stream: of a large report too, only the findings are stored."""

    def __init__(self, folder: Path) -> None:
        self.tests = self.skipped = 0
        self.findings: list[Finding] = []
        self.declared = 0
        self._folder = folder
        self._path: list[str] = []
        self._case: dict[str, str] = {}
        self._message = ""
        self._text: list[str] = []
        self._room = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        # Without a document type there are no entities, so none can expand without end or read other files.
        self.parser.StartDoctypeDeclHandler = _refused
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2]
        if not self._path and tag not in ("testsuites", "testsuite"):
            raise AgentError(f"the JUnit report begins with <{tag[:50]}>: expected <testsuites> or <testsuite>")
        if tag == "testsuite" and "testsuite" not in self._path:
            # Nested suites are already included in the counts of the outer one.
            self.declared += sum(line_of(attributes.get(count)) or 0 for count in ("failures", "errors"))
        elif tag == "testcase":
            self.tests += 1
            self._case = attributes
        elif tag == "skipped" and self._path[-1] == "testcase":
            self.skipped += 1
        elif tag in ("failure", "error") and self._path[-1] == "testcase":
            self._message, self._text, self._room = attributes.get("message", ""), [], MOST_TEXT
        self._path.append(tag)

    def _data(self, text: str) -> None:
        if self._room > 0 and self._path[-1] in ("failure", "error"):
            self._text.append(text[: self._room])
            self._room -= len(text)

    def _end(self, _: str) -> None:
        tag = self._path.pop()
        if tag in ("failure", "error") and self._path and self._path[-1] == "testcase":
            self.findings.append(self._finding("".join(self._text)))
            self._room = 0

    def _finding(self, text: str) -> Finding:
        case = self._case
        message = first_line(self._message) or first_line(text) or "failed"
        test = "::".join(part for part in (case.get("classname", ""), case.get("name", "")) if part) or "a test"
        declared = path_in_workspace(case.get("file"), self._folder)
        file, line = declared, line_of(case.get("line"))
        for found in _PLACE.finditer(text):
            # The last location is where it failed; the attributes, if there are any, say where the test begins.
            path = path_in_workspace(found["file"], self._folder)
            if path is not None and declared in (None, path):
                file, line = path, line_of(found["line"])
        return Finding(
            f"{first_line(test)}: {message}",
            category="test",
            evidence=evidence_of(text or self._message),
            file=file,
            line=line,
        )


def _refused(*_: object) -> NoReturn:
    raise AgentError(
        "the JUnit report declares a document type: remove the document type, which could read other files"
    )
