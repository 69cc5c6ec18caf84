"""A run like those of a team: fifteen steps, five loops, an agent that breaks, a provider that is busy, and a loop that
asks a person. `python -m tests.web.payments FOLDER` makes it in a folder, to look at with `backedge serve`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from backedge import Briefing, Engine, Finding, MemoryJournal, Outcome, Step, Usage, Workflow, failed, passed
from backedge.core.errors import AgentError, ProviderLimit
from backedge.core.events import Event
from backedge.testing import FakeClock

RUN = "r-pay"
START = 1_790_000_000.0

SECONDS: dict[str, tuple[float, ...]] = {
    "research": (84,),
    "plan": (82, 96, 88),
    "plan_review": (76, 61),
    "api_design": (75, 74, 63, 66),
    "data_design": (84, 70, 68),
    "design_review": (66, 82, 60, 64),
    "migrations": (84, 66, 58),
    "code_api": (92, 73, 71, 60),
    "code_ui": (95, 98, 74, 71),
    "lint": (84, 72, 66, 61),
    "unit": (79, 83, 65, 62),
    "security": (92, 86, 63, 79),
    "integrate": (78, 62, 66, 61),
    "e2e": (66, 71, 63, 58),
}
"""How long each attempt of a step takes."""

CRITERIA = Finding("acceptance criteria missing for refunds", affected_phase="planning")
NO_KEY = Finding("no idempotency key on POST /payments", severity="critical", file="design/api.md", line=42)
REFUND_TWICE = Finding(
    "test_refund_twice: expected 409 got 200", file="tests/test_refund.py", line=31, evidence="assert 200 == 409"
)
ROUNDING = Finding("test_rounding fails", file="tests/test_round.py", line=7)
TOKEN_LOGGED = Finding(
    "token is logged in clear text", severity="critical", file="src/api.py", line=88, affected_phase="design"
)
NO_RATE = Finding("no rate limit is designed for login", affected_phase="design")
NO_PARTIAL = Finding("the plan has no rule for partial refunds", severity="critical", affected_phase="planning")
OVERLAP = Finding("button overlaps on mobile", severity="medium", file="ui/pay.css", line=12)
MAIL_TWICE = Finding(
    "refund e-mail is sent twice",
    file="src/mail.py",
    line=20,
    evidence="2 messages in the outbox after one refund",
    impact="customers believe that they were refunded twice",
    suggested_fix="send it from the payment's event, not from the request",
)

VERDICTS: dict[str, tuple[tuple[Finding, ...], ...]] = {
    "plan_review": ((CRITERIA,),),
    "design_review": ((NO_KEY,),),
    "unit": ((REFUND_TWICE,), (REFUND_TWICE, ROUNDING)),
    "security": ((TOKEN_LOGGED,), (NO_RATE,)),
    "e2e": ((NO_PARTIAL, OVERLAP), (MAIL_TWICE,), (MAIL_TWICE,), (MAIL_TWICE,)),
}
"""What the judges find, verdict by verdict; after that they pass."""

WORDS = {
    "plan": ("The plan for payments and refunds.", "Refunds have acceptance criteria.", "Partial refunds have a rule."),
    "integrate": ("All parts together.", "The outbox is flushed once.", "The mail goes out after commit.", "A lock."),
}


class VirtualTime:
    """A clock that jumps to the next moment at which somebody wakes up, as soon as nobody has anything else to do."""

    def __init__(self, start: float = START) -> None:
        self.clock = FakeClock(start)

    async def drive(self, until: float = 86_400.0) -> None:
        last = self.clock.now() + until
        while True:
            for _ in range(30):
                await asyncio.sleep(0)
            await asyncio.sleep(0.002)
            due = min((each[0] for each in self.clock._sleepers if not each[2].done()), default=None)
            if due is not None and due <= last:
                self.clock.set(max(due, self.clock.now()))


Agent = Callable[[Briefing], Any]


def agent(time: VirtualTime, does: Agent | None = None) -> Any:
    """An agent that takes its time. It does its part of the example, or something else."""

    async def work(briefing: Briefing) -> Any:
        step, attempt = briefing.step, briefing.attempt
        known = SECONDS.get(step, (30,))
        await time.clock.sleep(known[min(attempt, len(known)) - 1] / 2)
        said = (does or _part)(briefing)
        await time.clock.sleep(known[min(attempt, len(known)) - 1] / 2)
        return said

    return work


def _part(briefing: Briefing) -> Outcome:
    step, attempt = briefing.step, briefing.attempt
    usage = Usage(cost_usd=0.04 + 0.03 * (len(step) % 5), tokens_in=3200 + 211 * attempt, tokens_out=800)
    if step in ("lint", "design_review", "plan_review", "unit", "security", "e2e"):
        wrong = VERDICTS.get(step, ())
        if attempt <= len(wrong):
            return failed(*wrong[attempt - 1], summary=f"{step} found what must not be shipped.", usage=usage)
        return passed(summary="Nothing left to say.", usage=usage)
    words = WORDS.get(step, ())
    said = words[attempt - 1] if attempt <= len(words) else f"{step}, version {attempt}."
    output = {"file": f"{step}.md", "version": attempt, "text": f"# {step}\n\n{said}\n\nround {briefing.round}"}
    return Outcome(output=output, summary=said, usage=usage)


def _breaks_once(briefing: Briefing) -> Outcome:
    if briefing.attempt == 1:
        raise AgentError("npm ERR! code ELIFECYCLE: the build ended with status 137 (out of memory)")
    return _part(briefing)


def payments(time: VirtualTime, judge: str = "", does: Agent | None = None, **more: Any) -> Workflow:
    """The workflow of the example; `does` replaces what one of its steps does."""

    def by(name: str, own: Agent | None = None) -> Any:
        return agent(time, does if name == judge else own)

    busy = {"once": True}

    def _limited(briefing: Briefing) -> Outcome:
        if busy.pop("once", False):
            raise ProviderLimit("429 rate_limit_error: 5-hour limit reached", wait=1500)
        return _part(briefing)

    return Workflow(
        "payments",
        [
            Step("research", by("research"), phase="research"),
            Step("plan", by("plan"), phase="planning", needs="research"),
            Step("plan_review", by("plan_review"), reviews="plan"),
            Step("api_design", by("api_design"), phase="design", needs="plan"),
            Step("data_design", by("data_design"), phase="design", needs="plan"),
            Step("design_review", by("design_review"), reviews=("api_design", "data_design")),
            Step("code_ui", by("code_ui", _breaks_once), phase="code", needs="api_design"),
            Step("code_api", by("code_api"), phase="code", needs=("api_design", "data_design")),
            Step("lint", by("lint"), reviews="code_api"),
            Step("unit", by("unit"), tests="code_api"),
            Step("security", by("security"), reviews=("code_api", "code_ui")),
            Step("migrations", by("migrations"), phase="code", needs="data_design"),
            Step("integrate", by("integrate", _limited), phase="test", needs=("code_api", "code_ui", "migrations")),
            Step("e2e", by("e2e"), tests="integrate"),
            Step("docs", by("docs"), phase="release", needs="integrate"),
        ],
        phases=("research", "planning", "design", "code", "test", "release"),
        limits={"rounds_per_loop": 3, "cost_usd": 8, "rounds_total": 30, **more.pop("limits", {})},
        new_findings="rework",
        **more,
    )


async def play(engine: Engine, time: VirtualTime, workflow: Workflow, run: str = RUN) -> str:
    """Play a run until it rests; returns its outcome."""
    driver = asyncio.ensure_future(time.drive())
    try:
        started = await engine.start(workflow, {"goal": "take payments"}, run=run)
        return await started.at_rest()
    finally:
        driver.cancel()


async def paid(judge: str = "", does: Agent | None = None, **more: Any) -> Sequence[Event]:
    """The events of the example, played in memory; `does` replaces what one of its steps does."""
    time = VirtualTime()
    async with Engine(MemoryJournal(), clock=time.clock) as engine:
        await play(engine, time, payments(time, judge, does, **more))
        return await (await engine.find(RUN)).events()


async def make(folder: Path, run: str = RUN) -> Path:
    """Make the example in a folder; returns its journal."""
    journal = folder / ".backedge" / "journal.db"
    journal.parent.mkdir(parents=True, exist_ok=True)
    time = VirtualTime()
    async with Engine(journal, clock=time.clock) as engine:
        await play(engine, time, payments(time), run)
    return journal


def main(arguments: Sequence[str]) -> None:
    print(asyncio.run(make(Path(arguments[0]))))


if __name__ == "__main__":
    main(sys.argv[1:])
