"""A journal with runs as teams have them, to look at pages and to test them.

    python -m tests.web.example FOLDER [--hostile] [--live]
    python -m tests.web.example FOLDER --execute RUN

writes FOLDER/backedge.yaml and its journal: payments that loop and then ask a person (r-pay), a choice with options
(r-licence), an approval (r-deploy), a judgement by a person (r-copy), a broken agent (r-broken), a budget that is used up
(r-budget), a verified run (r-users), and a cancelled one (r-old). With --live a run (r-live) goes on until it is interrupted. --execute starts
one of these runs, and goes on with it whenever somebody has answered.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import backedge as be
from backedge.project import Project, find_project

AHEAD = 60.0
"""How many seconds of the example pass in one second."""

Said = Sequence[tuple[str, str, str | None, int | None, str | None]]
"""Findings of one verdict: description, severity, file, line, phase."""


class QuickClock:
    """Time that begins some seconds ago and passes faster, so that a run of minutes takes seconds."""

    def __init__(self, before: float, ahead: float = AHEAD) -> None:
        self._start, self._first, self._ahead = time.monotonic(), time.time() - before, ahead

    def now(self) -> float:
        return self._first + (time.monotonic() - self._start) * self._ahead

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._ahead)


def maker(name: str, texts: Sequence[str], seconds: float = 6.0, cost: float = 0.08) -> Any:
    """An agent that makes one version after the other."""

    async def make(brief: be.Briefing) -> be.Outcome:
        await asyncio.sleep(seconds / AHEAD)
        text = texts[min(brief.attempt, len(texts)) - 1]
        fixed = ", ".join(each.description for each in brief.feedback.findings)
        claims = [be.FindingResolution(each.id, "fixed", "see the change") for each in brief.feedback.findings]
        return be.Outcome(
            output=text if brief.attempt <= len(texts) else f"{text}\n# version {brief.attempt}",
            summary=f"fixed: {fixed}" if fixed else f"{name} is done",
            resolutions=claims,
            usage=be.Usage(cost, 9_000, 1_200),
        )

    return make


def judge(verdicts: Mapping[int, Said], seconds: float = 5.0, cost: float = 0.05) -> Any:
    """An agent that fails the attempts it has findings for. What it does not say again is fixed."""

    async def look(brief: be.Briefing) -> be.Outcome:
        await asyncio.sleep(seconds / AHEAD)
        said = verdicts.get(brief.attempt, ())
        usage = be.Usage(cost, 12_000, 700)
        again = {description for description, *_ in said}
        known = [
            be.FindingResolution(each.id, "not_fixed" if each.description in again else "fixed")
            for each in brief.verify
        ]
        if not said:
            return be.passed(resolutions=known, usage=usage, summary="it does what was asked")
        old = {each.description for each in brief.verify}
        found = [
            be.Finding(
                description,
                severity=severity,
                file=file,
                line=line,
                affected_phase=phase or (),
                evidence=EVIDENCE.get(description, ""),
                suggested_fix=FIXES.get(description),
            )
            for description, severity, file, line, phase in said
            if description not in old
        ]
        return be.failed(
            *found,
            resolutions=known,
            usage=usage,
            summary=f"still wrong: {said[0][0]}" if old else f"{len(said)} findings",
        )

    return look


EVIDENCE = {
    "refund e-mail is sent twice": "e2e/refunds.spec.ts:88\nexpected 1 e-mail to ann@example.org, got 2\n"
    "  10:04:11.120  refund 7f3 accepted\n  10:04:11.362  mail queued (refund 7f3)\n  10:04:11.371  mail queued (refund 7f3)",
    "token is logged in clear text": 'log.info("charged %s", card.token)',
    "test_refund_twice: expected 409 got 200": "assert response.status_code == 409\nE   assert 200 == 409",
}
FIXES = {
    "refund e-mail is sent twice": "send the mail after the transaction, once per refund id",
    "no idempotency key on POST /payments": "require the header Idempotency-Key, and answer a repeat with the first answer",
}
PLAN = "# Payments\n\n- charge a card\n- refund a payment\n- tell the customer by e-mail\n{}"
MAIL = '''import smtplib

from payments.queue import mails


def refunded(refund):
    """Tell the customer about a refund."""
{}

def body(refund):
    return f"We have sent {{refund.amount}} back to your card."
'''
MAILS = [
    "    mails.put(refund.customer, body(refund))\n    mails.put(refund.order.customer, body(refund))\n",
    "    mails.put(refund.customer, body(refund))\n    if refund.order.customer != refund.customer:\n"
    "        mails.put(refund.order.customer, body(refund))\n",
    "    if not refund.told:\n        mails.put(refund.customer, body(refund))\n        refund.told = True\n",
    "    with refund.lock:\n        if not refund.told:\n            mails.put(refund.customer, body(refund))\n"
    "            refund.told = True\n",
]


def payments() -> be.Workflow:
    """Fifteen steps, five loops, and a limit that is reached."""
    plan = [PLAN.format(""), PLAN.format("- done when: a refund arrives once\n"), PLAN.format("- partial refunds\n")]
    mail_twice = ("refund e-mail is sent twice", "high", "src/mail.py", 20, None)
    steps = [
        be.Step("research", maker("research", ["three providers were compared"], 8), phase="research"),
        be.Step("plan", maker("plan", plan), phase="planning", needs="research"),
        be.Step(
            "plan_review",
            judge({1: [("acceptance criteria missing for refunds", "high", None, None, None)]}),
            reviews="plan",
            phase="planning",
        ),
        be.Step(
            "api_design",
            maker("api_design", [f"POST /payments v{n}" for n in range(1, 6)]),
            phase="design",
            needs="plan",
        ),
        be.Step(
            "data_design",
            maker("data_design", [f"table payments v{n}" for n in range(1, 6)]),
            phase="design",
            needs="plan",
        ),
        be.Step(
            "design_review",
            judge({1: [("no idempotency key on POST /payments", "critical", "design/api.md", 42, None)]}),
            reviews=["api_design", "data_design"],
            phase="design",
        ),
        be.Step(
            "migrations",
            maker("migrations", [f"alter table payments -- {n}" for n in range(1, 5)]),
            phase="code",
            needs="data_design",
        ),
        be.Step(
            "code_api",
            maker("code_api", [f"def pay(): return {n}" for n in range(1, 7)], 8, 0.11),
            phase="code",
            needs=["api_design", "data_design"],
        ),
        be.Step(
            "code_ui",
            maker("code_ui", [f"<Pay v={n}/>" for n in range(1, 7)], 9, 0.09),
            phase="code",
            needs="api_design",
        ),
        be.Step("lint", judge({}, 3, 0.0), tests=["code_api", "code_ui"], phase="code"),
        be.Step(
            "unit",
            judge(
                {
                    1: [("test_refund_twice: expected 409 got 200", "high", "tests/test_refund.py", 31, None)],
                    2: [
                        ("test_refund_twice: expected 409 got 200", "high", "tests/test_refund.py", 31, None),
                        ("test_rounding fails", "high", "tests/test_round.py", 7, None),
                    ],
                },
                4,
                0.0,
            ),
            tests="code_api",
            phase="code",
        ),
        be.Step(
            "security",
            judge(
                {
                    1: [("token is logged in clear text", "critical", "src/api.py", 88, "design")],
                    3: [("no rate limit is designed for login", "high", None, None, "design")],
                },
                6,
            ),
            reviews=["code_api", "code_ui"],
            phase="code",
        ),
        be.Step(
            "integrate",
            maker("integrate", [MAIL.format(each) for each in MAILS], 7, 0.12),
            phase="test",
            needs=["code_api", "code_ui", "migrations"],
        ),
        be.Step(
            "e2e",
            judge(
                {
                    1: [
                        ("the plan has no rule for partial refunds", "critical", None, None, "planning"),
                        ("button overlaps on mobile", "medium", "ui/pay.css", 12, None),
                        mail_twice,
                    ],
                    2: [mail_twice],
                    3: [mail_twice],
                    4: [mail_twice],
                    5: [mail_twice],
                },
                8,
            ),
            tests="integrate",
            phase="test",
        ),
        be.Step("docs", maker("docs", ["how to pay"]), phase="release", needs="integrate"),
    ]
    limits = {"cost_usd": 4.5, "rounds_per_loop": 3, "rounds_total": 14}
    phases = ("research", "planning", "design", "code", "test", "release")
    return be.Workflow("payments", steps, limits=limits, phases=phases)


def licence() -> be.Workflow:
    """An agent asks a person to choose one of three options."""

    async def audit(brief: be.Briefing) -> be.Outcome:
        if brief.feedback.resolutions:
            return be.Outcome(output="audited")
        options = [
            be.Option("write our own", effort="a week", rework=("code",)),
            be.Option("ask the lawyers", effort="a month"),
            be.Option("live with it", impact="nobody may redistribute it", accept=True),
        ]
        message = "the licence of the library pdfkit (AGPL) does not fit ours"
        return be.Outcome(feedback=[be.Feedback("constraint_violation", "human", message, options=options)])

    code = be.Step("code", maker("code", ["import pdfkit", "class Pdf: ..."]), phase="code")
    return be.Workflow("release", [code, be.Step("audit", audit, needs="code", phase="test")])


def deploy() -> be.Workflow:
    """A step that runs only if a person approves it."""
    build = be.Step("build", maker("build", ["image sha256:9f2c, 212 tests, 0 failed"]), phase="code")
    release = be.Step(
        "deploy",
        maker("deploy", ["deployed"]),
        needs="build",
        phase="release",
        approval="human",
        question="Deploy version 2.4.0 to production?",
    )
    return be.Workflow("deploy", [build, release])


def texts() -> be.Workflow:
    """A person judges what an agent wrote."""
    text = "# Refunds\n\nYou get your money back within five days.\n\nWe send it to the card you paid with.\n"
    return be.Workflow(
        "help pages",
        [
            be.Step("write", maker("write", [text, text.replace("five", "three")]), phase="code"),
            be.Step("read", "human", reviews="write", question="Would a customer understand this page?"),
        ],
    )


def broken() -> be.Workflow:
    """An agent that ends with an error each time."""

    async def scan(brief: be.Briefing) -> str:
        await asyncio.sleep(2 / AHEAD)
        raise RuntimeError(f"\x1b[31mscanner 3.1 exited with 137\x1b[0m on attempt {brief.attempt}: out of memory")

    return be.Workflow(
        "nightly scan",
        [be.Step("fetch", maker("fetch", ["412 packages"])), be.Step("scan", scan, needs="fetch")],
        limits={"errors_in_a_row": 3},
    )


def budget() -> be.Workflow:
    """A run whose money is spent before a critic is content."""
    critic = judge({n: [(f"section {n} has no example", "medium", "docs/guide.md", 10 * n, None)] for n in range(1, 9)})
    return be.Workflow(
        "guide",
        [
            be.Step("draft", maker("draft", [f"# Guide\n\nsection {n}\n" for n in range(1, 9)], cost=0.6)),
            be.Step("critic", critic, reviews="draft"),
        ],
        limits={"cost_usd": 1.0},
    )


def users() -> be.Workflow:
    """A run that is verified after one round."""
    return be.Workflow(
        "users",
        [
            be.Step("plan", maker("plan", ["create user", "create user\nlog in"]), phase="planning"),
            be.Step(
                "design", maker("design", ["POST /user", "POST /user\nPOST /log-in"]), phase="design", needs="plan"
            ),
            be.Step(
                "design_review",
                judge({1: [("anyone can delete users", "critical", None, None, "planning")]}),
                reviews="design",
            ),
        ],
    )


def hostile() -> be.Workflow:
    """Agents that write markup and terminal codes into everything."""
    evil = '<script>document.title="owned"</script><img src=x onerror=alert(1)> \x1b[31mred\x1b[0m \x1b]0;title\x07'

    async def write(brief: be.Briefing) -> be.Outcome:
        await asyncio.sleep(1 / AHEAD)
        return be.Outcome(output=f"{evil} {brief.attempt}", summary=evil)

    async def look(brief: be.Briefing) -> be.Outcome:
        if brief.verify:
            said = [be.FindingResolution(each.id, "not_fixed", evil) for each in brief.verify]
            return be.failed(resolutions=said, summary=evil)
        return be.failed(
            be.Finding(evil, file=evil, line=3, evidence=evil, impact=evil, suggested_fix=evil), summary=evil
        )

    steps = [be.Step("write", write, phase="code"), be.Step("look", look, reviews="write", phase="code")]
    return be.Workflow("hostile", steps, limits={"rounds_per_loop": 2})


def long() -> be.Workflow:
    """Long names, long words, text from right to left, and many findings."""
    word, arabic = "a" * 400, "\u202eevil\u202c مرحبا بالعالم"

    async def write(brief: be.Briefing) -> be.Outcome:
        return be.Outcome(output=f"{word}\n{arabic} {brief.attempt}", summary=word)

    async def look(brief: be.Briefing) -> be.Outcome:
        if brief.verify:
            said = [be.FindingResolution(each.id, "not_fixed", f"{word} {arabic}") for each in brief.verify]
            return be.failed(resolutions=said, summary=word)
        found = [
            be.Finding(f"{number} {arabic} {word}", file=f"{word}.py", line=3, evidence=5 * word, suggested_fix=word)
            for number in range(40)
        ]
        return be.failed(*found, summary=arabic)

    name, judge = f"write_{50 * 'w'}", f"look_{50 * 'j'}"
    steps = [be.Step(name, write, phase=40 * "p"), be.Step(judge, look, reviews=name)]
    return be.Workflow(60 * "l", steps, phases=[40 * "p"], limits={"rounds_per_loop": 1})


def live(seconds: float = 20.0) -> be.Workflow:
    """A run that is at work for as long as someone looks."""

    async def work(brief: be.Briefing) -> be.Outcome:
        await asyncio.sleep(seconds)
        return be.Outcome(output=f"version {brief.attempt}", summary="a little more", usage=be.Usage(0.02, 900, 100))

    async def look(brief: be.Briefing) -> be.Outcome:
        await asyncio.sleep(seconds / 4)
        known = [be.FindingResolution(each.id, "fixed") for each in brief.verify]
        return be.failed(be.Finding(f"line {brief.attempt} is too long", severity="low"), resolutions=known)

    steps = [be.Step("write", work, phase="code"), be.Step("look", look, reviews="write", phase="code")]
    return be.Workflow(
        "novel", steps, limits={"attempts": 1000, "rounds_per_loop": 500, "rounds_total": None, "same_finding": None}
    )


RUNS: Mapping[str, Callable[[], be.Workflow]] = {
    "r-users": users,
    "r-old": texts,
    "r-pay": payments,
    "r-copy": texts,
    "r-licence": licence,
    "r-deploy": deploy,
    "r-broken": broken,
    "r-budget": budget,
    "r-hostile": hostile,
    "r-long": long,
}
"""The runs that end or wait, oldest first."""
USUAL = tuple(run for run in RUNS if run not in ("r-hostile", "r-long"))
"""Those of them that a picture shows."""

FILE = """\
name: shop
steps:
  plan: {phase: planning, run: [python3, plan.py]}
"""


def project(folder: Path) -> Project:
    """A project in a folder, with a workflow file and no runs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "backedge.yaml").write_text(FILE)
    return find_project(folder / "backedge.yaml", None)


async def fill(folder: Path, runs: Sequence[str] = USUAL) -> Project:
    """Write the runs of the example into the journal of a folder."""
    place = project(folder)
    for number, name in enumerate(runs):
        # The retries of a broken agent come after a second: in quicker time they would be due before they are planned.
        clock = QuickClock(300.0 * (len(runs) - number), 1.0 if name == "r-broken" else AHEAD)
        async with be.Engine(place.journal, clock=clock) as engine:
            run = await engine.start(RUNS[name](), run=name)
            await asyncio.wait_for(run.at_rest(), 60.0)
            if name == "r-old":
                await run.cancel("ann", "the feature is no longer wanted")
    return place


async def stay_live(folder: Path, run: str = "r-live", seconds: float = 20.0) -> None:
    """Execute a run until it is interrupted."""
    async with be.Engine(project(folder).journal) as engine:
        started = await engine.start(live(seconds), run=run)
        await started.at_rest()


async def execute(folder: Path, name: str) -> None:
    """Execute one run of the example until it has ended, through all its questions."""
    async with be.Engine(project(folder).journal) as engine:
        run = await engine.start(RUNS[name](), run=name)
        while (state := await run.state()).ended is None:
            await run.changed(state.seq)


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0])
    if "--execute" in arguments:
        asyncio.run(execute(folder, arguments[arguments.index("--execute") + 1]))
        return
    asyncio.run(fill(folder, tuple(RUNS) if "--hostile" in arguments else USUAL))
    if "--live" in arguments:
        asyncio.run(stay_live(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
