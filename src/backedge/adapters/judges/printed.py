"""What a test runner prints about itself: how many tests it ran, and what failed. An exit code alone says neither."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from backedge.adapters.evidence.store import Printed
from backedge.core.text import clean

MOST_SYMPTOMS = 20
LONGEST_SYMPTOM = 300
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_SUMMARIES = tuple(
    re.compile(each, re.MULTILINE)
    for each in (
        r"^=*[ ]?(?P<pytest>\d+ [a-z]+(?:, \d+ [a-z]+)*) in \d[\d.]*s",
        r"^Ran (?P<unittest>\d+) tests? in [^\n]*\n+(?:OK|FAILED)[^\n]*",
        r"^(?:#|ℹ) tests \d+\n(?:(?:#|ℹ) \w+ [\d.]+\n)*?(?:#|ℹ) pass (?P<passed>\d+)\n(?:#|ℹ) fail (?P<failed>\d+)",
        r"^\s*Tests:?\s+(?P<jest>\d+ \w+(?:(?:,| \|) \d+ \w+)*)",
        r"^\s+(?P<mocha>\d+) passing\b[^\n]*(?:\n\s+\d+ pending)?(?:\n\s+(?P<failing>\d+) failing)?",
        r"^(?P<rspec>\d+) examples?, \d+ failures?",
        r"^OK \((?P<phpunit>\d+) tests?, |^Tests: (?P<phpunit_failed>\d+), Assertions: \d+",
    )
)
_RAN = re.compile(r"(\d+) (?:failed|passed|xpassed)\b")
_DURATION = re.compile(r"\d[\d.]*\s?(?:ms|s)\b")
_LEFT_OUT = re.compile(r"(?:skipped|expected failures)=(\d+)")
_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed;", re.MULTILINE)
_HOOKS = re.compile(r"^[^\n]*\.{3,}(?:\([^)\n]*\))?(?:Passed|Failed)$", re.MULTILINE)
"""How pre-commit says what became of a hook. It shows what a hook printed only if that failed, so only hooks are counted."""
_FAILURES = re.compile(
    r"AssertionError|^FAIL(?:ED|URE)?\b|^not ok \d|^[✖✗✘]|^E  |\*\*\* \[|\b[1-9]\d* (?:failed|failing|failures?)\b"
)
"""What programs print about a failure, and not otherwise."""
_EXPECTED = re.compile(r"\b[Ee]xpected\b.*\b(?:got|but|actual|received|found|was)\b")
"""What programs print about a failure, and sometimes otherwise."""
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


def read_printed(printed: bytes) -> Printed:
    """Look at the end of what a program printed."""
    text = _COLOURS.sub("", printed.decode("utf-8", "replace"))
    found = sorted(_counts(text))
    cargo = [int(each[1]) + int(each[2]) for each in _CARGO.finditer(text)]
    counts = [number for _, number in found] + ([sum(cargo)] if cargo else [])
    if hooks := len(_HOOKS.findall(text)):
        counts = [hooks]
    lines = [line[:LONGEST_SYMPTOM] for line in text.splitlines()]
    certain = [line for line in lines if _FAILURES.search(line)]
    failures = [line for line in lines if _FAILURES.search(line) or _EXPECTED.search(line)]
    return Printed(
        sum(counts) if counts else None,
        counts[-1] if counts else None,
        _different(failures, _DURATION)[:MOST_SYMPTOMS],
        bool(certain),
        _different(lines, _NUMBER) if failures else (),
    )


def _different(lines: Iterable[str], varying: re.Pattern[str]) -> tuple[str, ...]:
    """Each line once, without what varies from run to run."""
    return tuple(dict.fromkeys(varying.sub("…", clean(line.strip())) for line in lines if line.strip()))


def _counts(text: str) -> Iterator[tuple[int, int]]:
    """Where each summary stands, and how many tests ran according to it: skipped tests did not."""
    for pattern in _SUMMARIES:
        for found in pattern.finditer(text):
            words = {name: value for name, value in found.groupdict().items() if value is not None}
            if listed := words.get("pytest") or words.get("jest"):
                yield found.start(), sum(int(each) for each in _RAN.findall(listed))
            else:
                left_out = sum(int(each) for each in _LEFT_OUT.findall(found[0])) if "unittest" in words else 0
                yield found.start(), sum(map(int, words.values())) - left_out
