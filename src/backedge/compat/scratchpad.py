"""feedback-scratchpad.md: the iterations of a tight loop as Markdown, for people and for prompts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from backedge.compat.contents import Contents
from backedge.compat.iterations import contents_of_progress
from backedge.compat.progress import (
    MOST_ITERATIONS,
    STATUSES,
    VERIFIED,
    FeedbackLoop,
    Iteration,
    LoopStatus,
    Progress,
    Result,
)
from backedge.compat.record_fields import RecordError
from backedge.core.errors import ImportRefused
from backedge.core.suggestions import did_you_mean
from backedge.core.text import counted

_HEADING = re.compile(r"## Iteration (\d+)\s*")
_FIELD = re.compile(r"- \*\*(Implementation|Review Result|Test Result|Person|Status)\*\*: ?(.*)")
_NOT_RUN = r"not run|skipped|n/a|-|"
_RESULT = re.compile(rf"(PASS|FAIL|(?i:{_NOT_RUN}))(?: - (.*))?")
"""Tests that a failing review made superfluous have no result, in whatever words."""
_COUNTED = re.compile(r"\d+ issues")
_HEAD = re.compile(
    r"(?:Run (?P<run>\S+)\. )?Iteration (?P<current>\d+)(?: of at most (?P<most>\d+))?: (?P<status>\w+)\..*"
)

# Writing


def scratchpad_text(progress: Progress, notes: Mapping[int, tuple[str, ...]]) -> str:
    """The text of the file; `notes` has the decisions by people, by iteration."""
    return "\n".join(_lines(progress.feedback_loop, progress.run, notes)) + "\n"


def _lines(loop: FeedbackLoop, run: str, notes: Mapping[int, tuple[str, ...]]) -> Iterator[str]:
    most = f" of at most {loop.max_iterations}" if loop.max_iterations is not None else ""
    yield "# Feedback scratchpad"
    yield ""
    of = f"Run {run}. " if run else ""
    yield f"{of}Iteration {loop.current_iteration}{most}: {loop.status}. Done is {VERIFIED}."
    if run and loop.iterations and loop.iterations[0].number > 1:
        yield f"The last {MOST_ITERATIONS} iterations; `backedge show {run}` tells all of them."
    for iteration in loop.iterations:
        yield ""
        yield f"## Iteration {iteration.number}"
        yield f"- **Implementation**: {iteration.implementation or 'under way'}"
        yield from _result("Review Result", iteration.review_result, iteration.review_issues)
        yield from _result("Test Result", iteration.test_result, iteration.test_failures)
        for note in notes.get(iteration.number, ()):
            yield f"- **Person**: {note}"
        yield f"- **Status**: {iteration.status}"
    if loop.known_issues:
        yield ""
        yield "## Known issues, accepted by a person"
        yield from (f"- {issue}" for issue in loop.known_issues)


def _result(label: str, result: Result | None, issues: tuple[str, ...]) -> Iterator[str]:
    if len(issues) == 1:
        yield f"- **{label}**: {result} - {issues[0]}"
        return
    many = f" - {counted(len(issues), 'issue')}" if issues else ""
    yield f"- **{label}**: {result or 'not run'}{many}"
    yield from (f"  - {issue}" for issue in issues)


# Reading


def read_scratchpad(text: str) -> Contents:
    """Read the text of the file. Raises ImportRefused with the number of the line that is wrong."""
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), 1):
        try:
            reader.add(line.rstrip())
        except RecordError as error:
            raise ImportRefused(f"line {number}: {error}") from None
    return contents_of_progress(reader.progress(), reader.notes)


class _Reader:
    """What the lines so far contain."""

    def __init__(self) -> None:
        self.notes: dict[int, tuple[str, ...]] = {}
        self._iterations: list[Iteration] = []
        self._issues: Callable[[str], None] | None = None
        """Takes the issues that are listed below the current line."""
        self._run, self._current = "", 0
        self._most: int | None = None
        self._status: LoopStatus | None = None
        self._known: list[str] = []

    def add(self, line: str) -> None:
        heading, head, field = _HEADING.fullmatch(line), _HEAD.fullmatch(line), _FIELD.fullmatch(line)
        if heading:
            self._begin(int(heading[1]))
        elif line.startswith("## Known issues"):
            self._issues = self._known.append
        elif line.startswith(("## ", "# ")):
            self._issues = None
        elif field:
            self._field(field[1], field[2].strip())
        elif head and not self._iterations:
            self._run, self._current = head["run"] or "", int(head["current"])
            self._most = int(head["most"]) if head["most"] else None
            self._status = _status(head["status"])
        elif self._issues is not None and line.lstrip().startswith("- "):
            self._issues(line.lstrip()[2:])

    def progress(self) -> Progress:
        last = self._iterations[-1] if self._iterations else None
        status = last.status if last else "in_progress"
        return Progress(
            FeedbackLoop(
                enabled=True,
                current_iteration=self._current or (last.number if last else 0),
                max_iterations=self._most,
                status=self._status or ("in_progress" if status == "continuing" else _status(status)),
                consecutive_review_failures=failures_in_a_row(each.review_result for each in self._iterations),
                consecutive_test_failures=failures_in_a_row(each.test_result for each in self._iterations),
                iterations=tuple(self._iterations),
                known_issues=tuple(self._known),
            ),
            self._run,
        )

    def _begin(self, number: int) -> None:
        if self._iterations and number <= self._iterations[-1].number:
            previous = self._iterations[-1].number
            raise RecordError(f"iteration {number} comes after iteration {previous}: put them in order")
        self._iterations.append(Iteration(number))
        self._issues = None

    def _field(self, name: str, value: str) -> None:
        if not self._iterations:
            raise RecordError(f"{name} comes before the first iteration: begin with a line such as `## Iteration 1`")
        self._issues = None
        if name == "Implementation":
            self._set(implementation="" if value == "under way" else value)
        elif name == "Status":
            self._set(status=value if value == "continuing" else _status(value))
        elif name == "Person":
            number = self._iterations[-1].number
            self.notes[number] = (*self.notes.get(number, ()), value)
        else:
            self._read_result(name, value)

    def _read_result(self, name: str, value: str) -> None:
        found = _RESULT.fullmatch(value)
        if not found:
            word = value.partition(" ")[0]
            raise RecordError(f"{name} {word!r} is unknown: {did_you_mean(word, ('PASS', 'FAIL', 'not run'))}")
        tests = name == "Test Result"
        result: Result | None = ("PASS" if found[1] == "PASS" else "FAIL") if found[1] in ("PASS", "FAIL") else None
        self._set(**{"test_result" if tests else "review_result": result})
        if found[2] and not _COUNTED.fullmatch(found[2]):
            self._add_issue(tests, found[2])
        self._issues = lambda issue: self._add_issue(tests, issue)

    def _add_issue(self, tests: bool, issue: str) -> None:
        last = self._iterations[-1]
        if tests:
            self._set(test_failures=(*last.test_failures, issue))
        else:
            self._set(review_issues=(*last.review_issues, issue))

    def _set(self, **fields: object) -> None:
        self._iterations[-1] = msgspec.structs.replace(self._iterations[-1], **fields)


def _status(word: str) -> LoopStatus:
    for known in STATUSES:
        if word == known:
            return known
    raise RecordError(f"status {word!r} is unknown: {did_you_mean(word, ('continuing', *STATUSES))}")


def failures_in_a_row(results: Iterable[Result | None]) -> int:
    """How many of the latest results are failures, ignoring iterations without a result."""
    count = 0
    for result in results:
        count = count + 1 if result == "FAIL" else 0 if result == "PASS" else count
    return count
