"""Tests that ran before and do not run any more: a question about the change that explains it, else one finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from backedge.adapters.judges.explanation import explains
from backedge.adapters.judges.runs import Reading, Runs
from backedge.adapters.judges.test_ids import is_loaded, is_repetition, name_of_test, stands_for_many
from backedge.core.evidence.values import ProtectedQuestion
from backedge.engine.protocol import Finding

MOST_TESTS_NAMED = 20
"""How many tests a question names."""
MOST_TESTS_LISTED = 200
"""How many tests the evidence of a finding lists."""


@dataclass(frozen=True)
class LostTests:
    """What follows from tests that no longer run."""

    findings: tuple[Finding, ...] = ()
    questions: tuple[ProtectedQuestion, ...] = ()
    asked: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """The lost tests, with the file and digest of each change that a question is about."""


def lost_tests(runs: Runs) -> LostTests:
    """What follows from the tests that have to run and do not."""
    by_test = {test: _explained(runs, test) for test in _lost(runs)}
    for test in _under_other_names(runs, [test for test, files in by_test.items() if not files]):
        del by_test[test]
    by_test |= {test: [runs.file_of(test)] for test, files in by_test.items() if not files and _is_dropped(runs, test)}
    asked = {
        test: tuple((file, _digest(runs, test, file)) for file in files) for test, files in by_test.items() if files
    }
    by_file: dict[str, list[str]] = {}
    for test, files in by_test.items():
        for file in files:
            by_file.setdefault(file, []).append(test)
    unexplained = [test for test, files in by_test.items() if not files]
    return LostTests(
        () if not unexplained or _cannot_load(runs.delivered) else (_finding(unexplained),),
        tuple(_question(runs, file, tests) for file, tests in by_file.items()),
        asked,
    )


def _lost(runs: Runs) -> list[str]:
    delivered, held = runs.delivered.tests, runs.held
    on_held = held.tests.ran if held is not None else frozenset()
    answered = {each.test for each in runs.open if each.test}
    missing = ((runs.required - runs.excused | on_held) - delivered.ran | _not_on_held(runs)) - answered
    moved = {name_of_test(id) for id in delivered.passed - runs.known - on_held}
    return sorted(
        test
        for test in missing
        if not is_loaded(test, delivered, runs.known)
        and not (test in runs.failed_before and test not in on_held and is_repetition(test, delivered))
        # A test of the same name is new and passes, and the product passes the test as it was: it has moved.
        and not (held is not None and test in held.tests.passed and name_of_test(test) in moved)
    )


def _not_on_held(runs: Runs) -> frozenset[str]:
    """The tests that run as delivered but not with the protected files as they were, although all of these files can be
    loaded: what ran as delivered was another test, with the same id."""
    held = runs.held
    if held is None or not held.began or _cannot_load(held):
        return frozenset()
    needed = runs.baseline & (runs.required - runs.excused)
    return frozenset(test for test in needed - held.tests.ran if not is_loaded(test, held.tests, runs.known))


def _explained(runs: Runs, test: str) -> list[str]:
    """The changed files because of which a test does not run. None if it does not run with them as they were either: then
    the product keeps it from running."""
    file, held = runs.file_of(test), runs.held
    on_held = held.tests if held is not None and held.began else None
    if on_held is None or test in on_held.ran:
        return explains(runs.changed, file)
    is_seen = test in on_held.results or file in on_held.files_run
    return [] if is_seen else explains(runs.changed, file)


def _under_other_names(runs: Runs, lost: Sequence[str]) -> set[str]:
    """The cases whose place others have taken: ids may contain the time, or the names of files of the product. The file of
    the tests is as it was, and at least as many new cases of the same function pass. Another function proves nothing: the
    product may have put it there."""
    delivered, found = runs.delivered.tests, set[str]()
    by_function: dict[tuple[str, str], list[str]] = {}
    for test in lost:
        if _passed_before(runs, test) and (function := _function(test)):
            by_function.setdefault((runs.file_of(test), function), []).append(test)
    for (file, function), tests in by_function.items():
        new = sum(
            delivered.files.get(test) == file and _function(test) == function
            for test in delivered.passed - runs.required
        )
        on_held = [test for test in tests if test not in runs.required]
        if max(len(on_held), len(tests) - len(on_held)) <= new:
            found.update(tests)
    return found


def _function(test: str) -> str:
    """The function that a test is one case of; empty if it is a test of its own."""
    function, bracket, _ = test.partition("[")
    return function if bracket else ""


def _is_dropped(runs: Runs, test: str) -> bool:
    """Whether a test is one of several cases of a function, others of which pass: the product decides which there are, such
    as one for each of its files."""
    function = _function(test)
    if not function or not _passed_before(runs, test) or not runs.versions.get(test):
        return False
    return any(_function(each) == function for each in runs.delivered.tests.passed)


def _passed_before(runs: Runs, test: str) -> bool:
    """Whether a test that is not reported at all hid nothing that failed at the start, and its file is as it was."""
    file = runs.file_of(test)
    is_gone = test not in runs.delivered.tests.results and test not in runs.failed_before
    return is_gone and file != "" and file not in runs.changed


def _digest(runs: Runs, test: str, file: str) -> str:
    return runs.changed[file].digest if file in runs.changed else runs.versions.get(test, "")


def _cannot_load(reading: Reading) -> bool:
    """Whether a file of tests cannot be loaded. That is a finding already, and many runners then run nothing at all."""
    tests = reading.tests
    return any(stands_for_many(id) and id in tests.failed for id in tests.results)


def _question(runs: Runs, file: str, tests: Sequence[str]) -> ProtectedQuestion:
    reason = f"{named(tests)} no longer run{'s' if len(tests) == 1 else ''}"
    elsewhere = sorted({where for test in tests if (where := runs.file_of(test)) not in ("", file)})
    if elsewhere:
        reason += f" (of {', '.join(elsewhere[:5])}{' and others' if len(elsewhere) > 5 else ''})"
    if file not in runs.changed:
        reason += ", although this file is as it was: the product decides which cases there are"
    return ProtectedQuestion(file, _digest(runs, tests[0], file), reason, tuple(tests[:MOST_TESTS_NAMED]))


def _finding(tests: Sequence[str]) -> Finding:
    return Finding(
        f"{named(tests)} ran before and no longer run{'s' if len(tests) == 1 else ''}",
        severity="high",
        category="evidence",
        evidence="\n".join(tests[:MOST_TESTS_LISTED]),
        suggested_fix="make these tests run again",
    )


def named(tests: Sequence[str]) -> str:
    """Some tests in words: the first three, and how many more."""
    shown = ", ".join(tests[:3])
    return f"{shown} and {len(tests) - 3} more tests" if len(tests) > 3 else shown
