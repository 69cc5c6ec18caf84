"""What a run did, in a few lines at its end: findings, changed files, denied tools, and what to type next."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.analytics.report import Report
from backedge.cli.common import shown
from backedge.core import events as e
from backedge.core.events import Event
from backedge.core.evidence.values import DENIED
from backedge.core.findings.ledger import UNSETTLED
from backedge.core.text import counted
from backedge.project import Project

MOST_FILES = 5
"""How many changed files to name."""
MOST_DENIED = 5
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def summary_lines(report: Report, events: Sequence[Event], project: Project) -> Iterator[str]:
    """The lines below the first one of a summary."""
    if report.findings:
        yield f"  findings: {counted_findings(report)}"
    changed = changed_lines(_diffs(events, project, report.run))
    if changed:
        added, removed = (sum(each[side] for each in changed.values()) for side in (0, 1))
        named = [f"{shown(name, 60)} +{plus} −{minus}" for name, (plus, minus) in changed.items()]
        more = f", … and {len(named) - MOST_FILES} more" if len(named) > MOST_FILES else ""
        total = f"{counted(len(changed), 'file')}, +{added} −{removed}: " if len(changed) > 1 else ""
        yield f"  changed: {total}{', '.join(named[:MOST_FILES])}{more}"
    denied = list(dict.fromkeys(_denied(events)))
    yield from (f"  ! {each}" for each in denied[:MOST_DENIED])
    if len(denied) > MOST_DENIED:
        yield f"  ! … and {len(denied) - MOST_DENIED} more denied tools: backedge logs {report.run}"


def counted_findings(report: Report) -> str:
    """How many findings there were, and what became of them: "3 found, 2 fixed, 1 open"."""
    counts = Counter("open" if each.status in UNSETTLED else each.status for each in report.findings)
    order = ["fixed", *sorted(word for word in counts if word not in ("fixed", "open")), "open"]
    words = [f"{counts[word]} {word.replace('_', ' ')}" for word in order if counts[word]]
    return ", ".join([f"{len(report.findings)} found", *words])


def _denied(events: Iterable[Event]) -> Iterator[str]:
    """The tools that agent CLIs were denied, each with the attempt."""
    for event in events:
        if isinstance(event, e.EvidenceRecorded):
            yield from (
                f"{event.step}-{event.attempt}: {shown(note, 160)}"
                for note in event.evidence.notes
                if note.startswith(DENIED)
            )


def _diffs(events: Iterable[Event], project: Project, run: str) -> Iterator[str]:
    for event in events:
        if isinstance(event, e.AttemptSucceeded):
            try:
                path = AttemptFolder(project.state, run, event.step, event.attempt).files
                yield path.read_text("utf-8", "replace")
            except OSError:
                continue


def changed_lines(diffs: Iterable[str]) -> dict[str, tuple[int, int]]:
    """How many lines were added to and removed from each file, in all attempts together."""
    found: dict[str, tuple[int, int]] = {}
    for diff in diffs:
        name, left, old = "", [0, 0], ""
        for line in diff.split("\n"):
            if any(left):
                sign = line[:1]
                added, removed = found.get(name, (0, 0))
                found[name] = added + (sign == "+"), removed + (sign == "-")
                left = [left[0] - (sign != "+" and sign != "\\"), left[1] - (sign != "-" and sign != "\\")]
            elif line.startswith("--- "):
                old = line[4:]
            elif line.startswith("+++ "):
                name = (old if line[4:] == "/dev/null" else line[4:]).partition("/")[2]
                found.setdefault(name, (0, 0))
            elif hunk := _HUNK.match(line):
                left = [int(hunk[1] or 1), int(hunk[2] or 1)]
    return found
