"""Replays a recorded series of real review rounds through the engine, and shows where each policy stops.

    python tools/replay_rounds.py

One document was reviewed 21 times. Each round fixed everything that the previous round had found, and found something
again: nearly all of it new, and about two in five in lines that the last fix had written. Without limits it never ends.
"""

from __future__ import annotations

from typing import Any

import backedge as be

ROUNDS = (6, 3, 3, 3, 7, 6, 5, 2, 5, 3, 3, 1, 1, 1, 1, 2, 3, 7, 2, 3, 4)
"""How many findings each round had."""
SEVERITIES = ("high", "medium", "medium", "low", "high")
LINES = 400
OLD = 3
"""A line that no fix touches."""

POLICIES: dict[str, dict[str, Any]] = {
    "default": {},
    "new_findings: rework": {"new_findings": "rework"},
    "new_findings: defer": {"new_findings": "defer"},
    "new_findings: ask": {"new_findings": "ask"},
    "diverging: true": {"limits": {"diverging": True}},
    "rounds_per_loop: false": {"limits": {"rounds_per_loop": False}},
    "rounds_per_loop: false, diverging: true": {"limits": {"rounds_per_loop": False, "diverging": True}},
    "new_findings: rework, no limit but attempts": {
        "new_findings": "rework",
        "limits": {"rounds_per_loop": False, "rounds_total": False, "attempts": 100},
    },
    "profile: tight-loop": {"profile": "tight-loop"},
}


def written_by(attempt: int) -> int:
    """The line that a fix writes."""
    return 10 * attempt


async def write(brief: be.Briefing) -> dict[str, str]:
    lines = [f"line {number}" for number in range(1, LINES + 1)]
    for attempt in range(2, brief.attempt + 1):
        lines[written_by(attempt) - 1] = f"fixed in attempt {attempt}"
    return {"spec.md": "\n".join(lines)}


def found_in(round: int) -> list[be.Finding]:
    """The findings of a round. Of five in a row, the second and the fifth are about lines that the last fix wrote."""
    first = sum(ROUNDS[: round - 1])
    found = []
    for number in range(first, first + ROUNDS[round - 1]):
        authored = round > 1 and number % 5 in (1, 4)
        found.append(
            be.Finding(
                f"defect {number + 1}",
                severity=SEVERITIES[number % len(SEVERITIES)],
                file="spec.md",
                line=written_by(round) if authored else OLD,
            )
        )
    return found


async def review(brief: be.Briefing) -> be.Outcome:
    fixed = [be.FindingResolution(each.id, "fixed") for each in brief.verify]
    if brief.attempt > len(ROUNDS):
        return be.passed(resolutions=fixed)
    return be.failed(*found_in(brief.attempt), resolutions=fixed)


def replayed(**policy: Any) -> be.Report:
    """The series under a policy, until a person is asked or the run ends."""
    return be.run(be.Workflow("spec", [be.Step("write", write), be.Step("review", review, reviews="write")], **policy))


def told(name: str, report: be.Report) -> tuple[str, ...]:
    """One row: the policy, the rounds, what happened to the findings, and where the engine stopped."""
    statuses = [each.status for each in report.findings]
    authored = sum(each.fix_authored for each in report.findings)
    asked = [each.reason for each in report.escalations if each.decided is None]
    return (
        name,
        str(report.steps["write"].attempts - 1),
        str(len(statuses)),
        str(authored),
        str(statuses.count("deferred")),
        asked[0] if asked else report.outcome,
    )


HEADER = ("policy", "reworks", "findings", "written by a fix", "deferred", "where it stops")


def table() -> str:
    rows = [told(name, replayed(**policy)) for name, policy in POLICIES.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in (HEADER, ("---",) * len(HEADER), *rows))


if __name__ == "__main__":
    print(table())
