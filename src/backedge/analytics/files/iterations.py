"""The iterations of a tight loop: progress.json, and the scratchpad that tells the same in Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import get_args

import msgspec

from backedge.analytics.defects import Defect
from backedge.analytics.files.contents import Contents, LoopRecord, Trouble, word
from backedge.analytics.progress import FeedbackLoop, Iteration, Progress, Result, read_progress
from backedge.analytics.tight_loop import LoopStatus
from backedge.core.errors import ImportRefused
from backedge.core.feedback.loop import LoopState
from backedge.core.model import Kind, Severity, Status
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Json

STATUSES: tuple[LoopStatus, ...] = get_args(LoopStatus)
_LOOP_STATES: dict[LoopStatus, LoopState] = {
    "in_progress": LoopState.RESOLVING,
    "escalated": LoopState.ESCALATING,
    "accepted": LoopState.ACCEPTED,
    "cancelled": LoopState.CANCELLED,
    "failed": LoopState.FAILED,
    "IMPLEMENTATION_VERIFIED": LoopState.RESOLVED,
    "done": LoopState.RESOLVED,
}
_HEADING = re.compile(r"## Iteration (\d+)\s*")
_FIELD = re.compile(r"- \*\*(Implementation|Review Result|Test Result|Person|Status)\*\*: ?(.*)")
_RESULT = re.compile(r"(PASS|FAIL|not run)(?: - (.*))?")
_COUNTED = re.compile(r"\d+ issues")
_HEAD = re.compile(
    r"(?:Run (?P<run>\S+)\. )?Iteration (?P<current>\d+)(?: of at most (?P<most>\d+))?: (?P<status>\w+)\..*"
)


def read_progress_file(document: Json) -> Contents:
    """What a progress.json says. Raises ImportRefused."""
    try:
        loop = document.get("feedback_loop") if isinstance(document, dict) else None
        if isinstance(loop, dict):
            word(loop, "status", STATUSES)
        told = read_progress(msgspec.json.encode(document))
    except Trouble as trouble:
        raise ImportRefused(f"feedback_loop: {trouble}") from None
    except msgspec.ValidationError as error:
        raise ImportRefused(f"not the progress of a feedback loop: {error}") from None
    return _contents(told)


def read_scratchpad(content: str) -> Contents:
    """What a feedback-scratchpad.md says. Raises ImportRefused with the number of the line that it cannot be."""
    pad = _Pad()
    for place, line in enumerate(content.splitlines(), 1):
        try:
            pad.add(line.rstrip())
        except Trouble as trouble:
            raise ImportRefused(f"line {place}: {trouble}") from None
    return _contents(pad.progress(), pad.notes)


class _Pad:
    """A scratchpad as it is read, line by line."""

    def __init__(self) -> None:
        self.notes: dict[int, tuple[str, ...]] = {}
        self._iterations: list[Iteration] = []
        self._issues: Callable[[str], None] | None = None
        """Who gets the issues that are listed under a result."""
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
        said = last.status if last else "in_progress"
        return Progress(
            FeedbackLoop(
                enabled=True,
                current_iteration=self._current or (last.number if last else 0),
                max_iterations=self._most,
                status=self._status or ("in_progress" if said == "continuing" else _status(said)),
                consecutive_review_failures=_row(each.review_result for each in self._iterations),
                consecutive_test_failures=_row(each.test_result for each in self._iterations),
                iterations=tuple(self._iterations),
                known_issues=tuple(self._known),
            ),
            self._run,
        )

    def _begin(self, number: int) -> None:
        if self._iterations and number <= self._iterations[-1].number:
            raise Trouble(f"iteration {number} comes after iteration {self._iterations[-1].number}: put them in order")
        self._iterations.append(Iteration(number))
        self._issues = None

    def _field(self, name: str, value: str) -> None:
        if not self._iterations:
            raise Trouble(f"{name} stands before the first iteration: begin with a line such as `## Iteration 1`")
        self._issues = None
        if name == "Implementation":
            self._set(implementation="" if value == "under way" else value)
        elif name == "Status":
            self._set(status=value if value == "continuing" else _status(value))
        elif name == "Person":
            number = self._iterations[-1].number
            self.notes[number] = (*self.notes.get(number, ()), value)
        else:
            self._result(name, value)

    def _result(self, name: str, value: str) -> None:
        found = _RESULT.fullmatch(value)
        if not found:
            said = value.partition(" ")[0]
            raise Trouble(f"{name} {said!r} is unknown: {did_you_mean(said, ('PASS', 'FAIL', 'not run'))}")
        tests = name == "Test Result"
        result: Result | None = None if found[1] == "not run" else ("PASS" if found[1] == "PASS" else "FAIL")
        self._set(**{"test_result" if tests else "review_result": result})
        if found[2] and not _COUNTED.fullmatch(found[2]):
            self._issue(tests, found[2])
        self._issues = lambda issue: self._issue(tests, issue)

    def _issue(self, tests: bool, issue: str) -> None:
        last = self._iterations[-1]
        if tests:
            self._set(test_failures=(*last.test_failures, issue))
        else:
            self._set(review_issues=(*last.review_issues, issue))

    def _set(self, **fields: object) -> None:
        self._iterations[-1] = msgspec.structs.replace(self._iterations[-1], **fields)


def _status(said: str) -> LoopStatus:
    for known in STATUSES:
        if said == known:
            return known
    raise Trouble(f"status {said!r} is unknown: {did_you_mean(said, ('continuing', *STATUSES))}")


def _row(results: Iterable[Result | None]) -> int:
    """How many of the last results that there are were failures."""
    row = 0
    for result in results:
        row = row + 1 if result == "FAIL" else 0 if result == "PASS" else row
    return row


def _contents(told: Progress, notes: dict[int, tuple[str, ...]] | None = None) -> Contents:
    """The iterations as loops: one of the reviews that failed and one of the tests, each with its issues."""
    loop = told.feedback_loop
    reviews = [(each.review_result, each.review_issues) for each in loop.iterations]
    tests = [(each.test_result, each.test_failures) for each in loop.iterations]
    loops: list[LoopRecord] = []
    defects: list[Defect] = []
    for source, kind, results in (("review", Kind.REVIEW_REJECTION, reviews), ("test", Kind.TEST_FAILURE, tests)):
        failures = [issues for result, issues in results if result == "FAIL"]
        if not failures:
            continue
        mended = [result for result, _ in results if result][-1] == "PASS"
        state = LoopState.RESOLVED if mended else _LOOP_STATES[loop.status]
        id = f"L-{len(loops) + 1}"
        seen = tuple(dict.fromkeys(issue for issues in failures for issue in issues))
        # The last failure is a round only if something was made of it.
        rounds = len(failures) if mended else len(failures) - 1
        loops.append(LoopRecord(id, kind, source, ("implementation",), "; ".join(seen), state, rounds=rounds))
        defects += _defects(seen, source, id, state, len(defects))
    return Contents(tuple(loops), tuple(defects), told, notes or {})


def _defects(issues: Sequence[str], source: str, loop: str, state: LoopState, before: int) -> Iterator[Defect]:
    statuses = {LoopState.RESOLVED: Status.FIXED, LoopState.ACCEPTED: Status.ACCEPTED}
    for place, issue in enumerate(issues, before + 1):
        yield Defect(
            finding=f"F-{place}",
            description=issue,
            severity=Severity.HIGH,
            status=statuses.get(state, Status.OPEN),
            injected_phase="code",
            injected_by=("implementation",),
            detected_by=source,
            detected_phase="code",
            loop=loop,
            attempts={},
            cost_usd=0.0,
            seconds=0.0,
            latency=0.0,
        )
