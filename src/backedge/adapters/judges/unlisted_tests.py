"""Tests that no report lists: a judge with nothing but an exit code. What it printed has to agree with a pass.

A product that ends the test process with exit code 0 looks like a pass. But the runner then prints no summary, or one with
fewer tests; and a script whose exit code was changed still prints what it printed when it failed.
"""

from __future__ import annotations

from backedge.adapters.judges.explanation import explains
from backedge.adapters.judges.lost_tests import LostTests
from backedge.adapters.judges.runs import AS_THEY_WERE, Reading, Runs
from backedge.core.evidence.values import ProtectedQuestion
from backedge.engine.protocol import Finding


def unlisted_tests(runs: Runs) -> LostTests:
    """What follows if a judge passes and prints something else."""
    held = runs.held if runs.held is not None and runs.held.began else None
    findings, questions = list[Finding](), list[ProtectedQuestion]()
    for reading, words in ((runs.delivered, ""), (held, f" {AS_THEY_WERE}")):
        if reading is None or reading.outcome.verdict != "pass":
            continue
        fewer, still = _fewer(runs, reading), _still_printed(runs, reading)
        files = explains(runs.changed, "") if fewer and reading is runs.delivered and held is not None else []
        if files and held is not None and not (held.outcome.verdict == "pass" and _fewer(runs, held)):
            questions += [ProtectedQuestion(file, runs.changed[file].digest, fewer) for file in files]
        elif fewer or still:
            suggested = "make all tests run again, and let the program fail if one of them fails"
            if reading.printed.tests is None and fewer:
                suggested += "; if it hides what tests print when they pass, give the judge a report with test ids"
            found = Finding(f"{fewer or still}{words}", severity="high", category="evidence", suggested_fix=suggested)
            findings += [found] if not findings else []
    return LostTests(tuple(findings), tuple(questions))


def _fewer(runs: Runs, reading: Reading) -> str:
    """How many tests are missing in what the runner printed, in words; empty if none are. If somebody has answered for changed
    tests, their number may be another one, but some have to run."""
    before, now = runs.printed_before.last, reading.printed.tests
    if not before or (now or 0) >= (1 if runs.approved else before):
        return ""
    return f"it ended with exit code 0 but printed {_tests(now)}, and {_tests(before)} when the run began"


def _still_printed(runs: Runs, reading: Reading) -> str:
    """What it printed when it failed and still prints, in words; empty if not all of that is printed. A program may speak of
    what it expected also if all is well: then every other line has to be the same, too."""
    before, now = runs.printed_before, reading.printed
    if not before.failures or not set(before.failures) <= set(now.failures):
        return ""
    if not before.certain and not set(before.lines) <= set(now.lines):
        return ""
    return f'it ended with exit code 0 but still prints "{before.failures[-1][:200]}", as when it failed'


def _tests(number: int | None) -> str:
    if number is None:
        return "no summary of its tests"
    return f"{number} test{'' if number == 1 else 's'}"
