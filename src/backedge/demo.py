"""`make demo`: the missing authentication requirement, told as it happens.

A plan forgets authentication. The design follows the plan, and the review of the design notices. The defect goes back
to planning, where it was made; what depended on the plan is done again; the reviewer verifies the fix.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import backedge as be
from backedge.adapters.journals.audit import verify
from backedge.analytics.defects import Defect, defects
from backedge.core import events as e
from backedge.core.briefing import Briefing
from backedge.core.events import Event
from backedge.core.state import RunState, evolve

PACE = 0.35
"""Seconds that each scripted agent takes, so that one can follow."""
UNITS = ["CreateUser", "UpdateUser", "DeleteUser", "ListUsers"]
APIS = {
    "CreateUser": "POST /users",
    "UpdateUser": "PUT /users/{id}",
    "DeleteUser": "DELETE /users/{id}",
    "ListUsers": "GET /users",
    "Authentication": "POST /login",
}


async def plan(brief: Briefing) -> be.Outcome:
    """A planner that forgets authentication until somebody says so."""
    await asyncio.sleep(PACE)
    asked = [finding.description for finding in brief.feedback.findings]
    units = [*UNITS, "Authentication"] if asked else UNITS
    summary = f"{len(units)} units: {', '.join(units)}"
    return be.Outcome(output={"units": units}, summary=summary, usage=be.Usage(cost_usd=0.02, tokens_out=400))


async def design(brief: Briefing) -> be.Outcome:
    await asyncio.sleep(PACE)
    units = brief.inputs["plan"]["units"]
    token = " (token required)" if "Authentication" in units else ""
    apis = [APIS[unit] + (token if unit != "Authentication" else "") for unit in units]
    usage = be.Usage(cost_usd=0.03, tokens_out=900)
    return be.Outcome(output={"apis": apis}, summary="; ".join(apis), usage=usage)


async def review(brief: Briefing) -> be.Outcome:
    """A reviewer that names the phase that injected the defect."""
    await asyncio.sleep(PACE)
    if any("/login" in api for api in brief.inputs["design"]["apis"]):
        return be.passed(summary="every route asks for a token", usage=be.Usage(cost_usd=0.01))
    return be.failed(
        be.Finding(
            "no authentication mechanism",
            severity="critical",
            category="security",
            affected_phase="planning",
            evidence="no unit of the plan covers login or tokens",
            impact="anyone can delete users",
            path="/apis",
            suggested_fix="add an Authentication unit to the plan",
        ),
        summary="the API is open to everybody",
        usage=be.Usage(cost_usd=0.01),
    )


async def code(brief: Briefing) -> be.Outcome:
    await asyncio.sleep(PACE)
    files = ["users.py", "auth.py"] if "POST /login" in brief.inputs["design"]["apis"] else ["users.py"]
    return be.Outcome(output={"files": files}, summary=", ".join(files), usage=be.Usage(cost_usd=0.04))


async def check(brief: Briefing) -> be.Outcome:
    await asyncio.sleep(PACE)
    files = brief.inputs["code"]["files"]
    return be.passed(summary=f"the tests of {' and '.join(files)} pass", usage=be.Usage(cost_usd=0.01))


WORKFLOW = be.Workflow(
    "user-management",
    [
        be.Step("plan", plan, phase="planning"),
        be.Step("design", design, phase="design", needs="plan"),
        be.Step("design_review", review, reviews="design", needs="plan"),
        be.Step("code", code, phase="code", needs="design"),
        be.Step("test", check, tests="code"),
    ],
)


class Story:
    """Tells events on a terminal, one line each."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._state: RunState | None = None

    def tell(self, _run: str, event: Event) -> None:
        self._state = evolve(self._state, event)
        line = self._line(event, self._state)
        if line:
            seconds = event.at - self._state.started_at
            self._console.print(f"[dim]{seconds:5.2f} s[/dim]  {line}", highlight=False)

    def _line(self, event: Event, state: RunState) -> str:
        match event:
            case e.AttemptStarted():
                return self._started(event)
            case e.AttemptSucceeded() if state.graph.is_judge(event.step):
                return ""
            case e.AttemptSucceeded():
                return f"  [green]✓[/green] {event.step}: {escape(event.summary)}"
            case e.VerdictGiven(word="fail"):
                found = "; ".join(state.findings[s.id].finding.description for s in event.findings)
                return f"  [red]✗ {event.judge} fails it:[/red] {escape(found)}"
            case e.VerdictGiven():
                artifact = state.steps[event.judge].artifact
                return f"  [green]✓ {event.judge} passes:[/green] {escape(artifact.summary if artifact else '')}"
            case e.FeedbackRouted():
                loop = state.loops[event.loop]
                rule = next(iter(event.rules), "")
                targets = ", ".join(event.shares)
                return f"[yellow]↩ {loop.id}: back from {loop.source} to [bold]{targets}[/bold][/yellow] (by {rule})"
            case e.LoopClosed():
                return f"[green]● {event.loop} is {event.state}: verified by who complained[/green]"
            case e.RunEnded():
                return f"[bold green]■ the run is {event.outcome}[/bold green]"
            case _:
                return ""

    @staticmethod
    def _started(event: e.AttemptStarted) -> str:
        again = f", attempt {event.attempt}" if event.attempt > 1 else ""
        why = {
            "rework": " with the finding in its briefing",
            "verify": " verifies the fix",
            "answer": " answers",
            "work": " because its input changed" if event.cause else "",
        }[event.mode]
        return f"[cyan]▸ {event.step}[/cyan]{again}{why}"


def telemetry(defect: Defect) -> str:
    """One defect in one line, as a process improvement group would file it."""
    attempts = " + ".join(f"{count} {step}" for step, count in defect.attempts.items())
    return (
        f"{defect.finding} {defect.description}: injected in {defect.injected_phase}, detected by {defect.detected_by}, "
        f"{attempts} = {defect.correction_attempts} correction attempts, +${defect.cost_usd:.2f}, +{defect.latency:.1f} s"
    )


async def main() -> int:
    console = Console(soft_wrap=True)
    console.print("[bold]Build user management[/bold]: plan → design → design_review → code → test", highlight=False)
    console.print(
        f"[dim]No run of this workflow can make more than {WORKFLOW.max_attempts} attempts.[/dim]\n", highlight=False
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.db"
        async with be.Engine(path) as engine:
            engine.subscribe(Story(console).tell)
            run = await engine.start(WORKFLOW, input={"task": "Build a user management system"})
            report = await run.result()
            log = defects(await run.events())
            await verify(engine.journal, run.id)
            events = len(await run.events())
    console.print("\n[bold]Telemetry[/bold]")
    for defect in log:
        console.print(f"  {escape(telemetry(defect))}", highlight=False)
    usage = report.usage
    console.print(
        f"  {usage.attempts} attempts, ${usage.cost_usd:.2f}; {events} events in the journal, hash chain valid",
        highlight=False,
    )
    return 0 if report.outcome == "verified" else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
