"""JUnit XML: what test runners of every language write. Failures and errors are findings, skipped tests are not."""

from __future__ import annotations

import re
from typing import NoReturn
from xml.parsers import expat

from backedge.adapters.reports.junit_case import JUnitCase
from backedge.adapters.reports.places import FileNames, line_of
from backedge.adapters.reports.tests import ReportedTests, TestList, require_tests
from backedge.core.errors import AgentError
from backedge.engine.protocol import Finding

MOST_TEXT = 200_000
"""How many characters of one failure are read."""
_NOT_XML = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|&#(?:0*(?:[0-8]|1[1245-9]|2\d|3[01])|[xX]0*(?:[0-8bBcCeEfF]|1[0-9a-fA-F]));"
)
"""Characters that XML cannot have. Some runners write them as they stand in the name of a test or in what it printed."""


def read_junit(text: bytes, names: FileNames, allow_empty: bool = False) -> tuple[ReportedTests, list[Finding]]:
    """The tests with their results, and a finding for each that failed. Raises AgentError for what is not a report.

    `allow_empty` accepts a report without tests, or with skipped tests only: something else says what should have run.
    """
    try:
        reader = _parsed(text, names)
    except expat.ExpatError as error:
        plain = _NOT_XML.sub(b"?", text)
        if plain == text or b"\0" in text:  # with a zero byte it may be UTF-16
            raise _not_xml(error) from error
        try:
            reader = _parsed(plain, names)
        except expat.ExpatError as again:
            raise _not_xml(again) from again
    if reader.declared > reader.listed:
        raise AgentError(
            f"the JUnit report declares {reader.declared} failures but lists {reader.listed}: it is incomplete, so run the tests again"
        )
    tests = reader.tests.tests()
    require_tests(tests, reader.findings, "the JUnit report", allow_empty)
    return tests, reader.findings


def _parsed(text: bytes, names: FileNames) -> _Reader:
    reader = _Reader(names)
    try:
        reader.parser.Parse(text, True)
    except (ValueError, LookupError) as error:  # an encoding that does not exist, or that is not for XML
        raise AgentError(f"the JUnit report cannot be read: {error}; write it in UTF-8") from error
    return reader


def _not_xml(error: expat.ExpatError) -> AgentError:
    return AgentError(f"the JUnit report is not XML: {error}; the tool may have been cut off")


class _Reader:
    """Reads a report as a stream: of a large report too, only the findings are stored."""

    def __init__(self, names: FileNames) -> None:
        self.tests = TestList()
        self.findings: list[Finding] = []
        self.declared = self.listed = 0
        self._names = names
        self._path: list[str] = []
        self._suites: list[str] = []
        self._case: JUnitCase | None = None
        self._before: JUnitCase | None = None
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
        in_case = self._case is not None and self._path[-1] == "testcase"
        if tag == "testsuite":
            if "testsuite" not in self._path:
                # Nested suites are already included in the counts of the outer one.
                self.declared += sum(line_of(attributes.get(count)) or 0 for count in ("failures", "errors"))
            self._suites.append(attributes.get("name", ""))
        elif tag == "testcase" and self._case is None:
            self._case = JUnitCase(attributes, tuple(self._suites), self._path[0] == "testsuites")
        elif self._case is not None and in_case:
            self._case.note(tag, attributes)
            if tag in ("failure", "error"):
                self.listed += 1
                self._text, self._room = [], MOST_TEXT
        self._path.append(tag)

    def _data(self, text: str) -> None:
        if self._room > 0 and self._path[-1] in ("failure", "error"):
            self._text.append(text[: self._room])
            self._room -= len(text)

    def _end(self, _: str) -> None:
        tag = self._path.pop()
        if tag == "testsuite":
            self._suites.pop()
        elif self._case is None:
            return
        elif tag in ("failure", "error") and self._path[-1] == "testcase":
            self._case.texts.append("".join(self._text))
            self._room = 0
        elif tag == "testcase" and "testcase" not in self._path:
            self._add(self._case)
            self._before, self._case = self._case, None

    def _add(self, case: JUnitCase) -> None:
        file, id = case.file(self._names), case.id(self._names)
        stands_for_more = case.is_hook or case.whole_file(self._names) is not None
        if stands_for_more or case.continues(self._before):
            known = self.tests.result(id) == "failed"
            case.listed_as = self.tests.merge(id, case.result, file, case.flaky)
        else:
            known = False
            case.listed_as = self.tests.add(id, case.result, file, case.flaky)
        if case.result == "failed" and not known:
            self.findings.append(case.finding(self._names, file))


def _refused(*_: object) -> NoReturn:
    raise AgentError(
        "the JUnit report declares a document type: remove the document type, which could read other files"
    )
