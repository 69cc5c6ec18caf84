"""After a run: the defect log and the statistics."""

from __future__ import annotations

import subprocess
import sys

from backedge import Briefing, Engine, Feedback, Finding, Outcome, Step, Usage, failed, passed
from backedge.analytics.defects import defects
from backedge.analytics.loop_stats import loop_stats
from backedge.core import events as e
from backedge.core.state.run import RunState
from backedge.testing import FakeClock, ScriptedAgent
from tests.engine.parts import flow, named, play


def test_a3_18_the_defect_log_has_the_phases_and_the_cost_of_the_fix() -> None:
    clock = FakeClock()

    def costs(seconds: float, dollars: float) -> ScriptedAgent:
        def reply(briefing: Briefing) -> Outcome:
            clock.advance(seconds)
            return Outcome(output=f"{briefing.step} {briefing.attempt}", usage=Usage(cost_usd=dollars))

        return ScriptedAgent(reply)

    auth = Finding("no authentication", "critical", affected_phase="planning")

    async def scenario() -> list[e.Event]:
        async with Engine(clock=clock) as engine:
            run = await engine.start(
                flow(
                    Step("plan", costs(10, 0.02), phase="planning"),
                    Step("design", costs(20, 0.03), phase="design", needs="plan"),
                    Step("design_review", ScriptedAgent(failed(auth), passed()), reviews="design"),
                )
            )
            await run.result()
            return await run.events()

    [defect] = defects(play(scenario()))
    assert (defect.injected_phase, defect.injected_by) == ("planning", ("plan",))
    assert (defect.detected_by, defect.detected_phase) == ("design_review", "design")
    assert defect.attempts == {"plan": 1, "design": 1}
    assert defect.correction_attempts == 2
    assert (defect.cost_usd, defect.seconds, defect.latency) == (0.05, 30, 30)
    assert defect.status == "fixed"


def test_the_defect_log_of_nothing_is_empty() -> None:
    assert defects([]) == []


def test_a4_17_statistics_of_nothing_are_zeros() -> None:
    nothing = loop_stats([])
    assert (nothing.total, nothing.success_rate, nothing.average_rounds) == (0, 0.0, 0.0)


def test_a0_16_statistics_count_by_kind_severity_and_state() -> None:
    async def scenario() -> list[RunState]:
        async with Engine() as engine:
            review = ScriptedAgent(failed("x"), failed("y"), passed())
            one = await engine.start(flow(Step("a", ScriptedAgent(1, 2, 3)), Step("r", review, reviews="a")))
            two = await engine.start(flow(Step("a", named)))
            for run in (one, two):
                await run.result()
            await two.raise_feedback(Feedback("missing_requirement", "human", "?", severity="low"), source="a")
            return [await one.state(), await two.state()]

    found = loop_stats(play(scenario()))
    assert (found.total, found.active, found.resolved, found.escalations) == (2, 1, 1, 1)
    assert found.by_kind == {"missing_requirement": 1, "review_rejection": 1}
    assert found.by_severity == {"high": 1, "low": 1}
    assert found.by_state == {"resolved": 1, "waiting_response": 1}
    assert (found.success_rate, found.average_rounds) == (50.0, 2.0)


def test_the_demo_module_ends_verified() -> None:
    done = subprocess.run([sys.executable, "-m", "backedge.demo"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "verified" in done.stdout
