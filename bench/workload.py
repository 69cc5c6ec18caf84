"""The work that every engine is given, with agents that cost nothing.

One run is plan → implement → review(fail) → implement → review(fail) → implement → review(pass) → test(pass).
A failing review brings three findings of 1 KB in all, and sends the work back to implement: one round.
A run that is told to wait asks a person after its second failing review, and goes on with implement once decided.
"""

from __future__ import annotations

from typing import Any

STEPS_PER_RUN = 8
ROUNDS_PER_RUN = 2
ROUNDS_BEFORE_WAITING = 2
DECISION = "continue"

Json = dict[str, Any]

_WORDS = "the handler accepts a request without checking who sent it and answers with data of another account "


def _finding(number: int) -> Json:
    return {
        "description": f"finding {number}: " + (_WORDS * 2)[:160],
        "severity": "high",
        "category": "security",
        "file": f"src/handlers/accounts_{number}.py",
        "line": 10 * number,
        "suggested_fix": "check the session before the query",
    }


FINDINGS: tuple[Json, ...] = tuple(_finding(number) for number in (1, 2, 3))


def plan() -> Json:
    return {"units": ["login", "accounts"], "summary": "two units, login first"}


def implement(attempt: int) -> Json:
    return {"files": ["src/handlers/accounts.py"], "version": attempt, "summary": "the units are written"}


def review(attempt: int, rounds: int = ROUNDS_PER_RUN) -> Json:
    """The verdict on the given attempt of implement: it fails until `rounds` rounds were made."""
    if attempt <= rounds:
        return {"verdict": "fail", "findings": list(FINDINGS)}
    return {"verdict": "pass", "findings": []}


def test() -> Json:
    return {"verdict": "pass", "findings": []}


def must_wait(failed: int, waits: bool) -> bool:
    """Whether a person is asked after this many failing reviews."""
    return waits and failed == ROUNDS_BEFORE_WAITING
