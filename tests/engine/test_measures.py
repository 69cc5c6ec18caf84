"""Checks and gates with functions as agents, reports as files, and comparisons in Python."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from backedge import Engine, MemoryJournal, Report, Step
from backedge.adapters.agents.report_value import ReportValue
from backedge.core import events as e
from backedge.core.errors import AgentError
from backedge.core.state.evolve import replay
from backedge.core.workflow.checks import Check, Gate
from backedge.core.workflow.definition import Step as Bare
from backedge.core.workflow.definition import Workflow
from backedge.engine.engine import LiveEngine
from backedge.errors import WorkflowError
from tests.agents.parts import told
from tests.engine.parts import flow, named, only, play


async def result(*steps: Step, **more: Any) -> tuple[Report, list[e.Event]]:
    async with Engine() as engine:
        run = await engine.start(flow(*steps, **more))
        report = await run.result()
        events = await run.events()
        assert replay(events) == await run.state()
        return report, events


def saying(name: str, key: str, *values: Any, **more: Any) -> Step:
    """A step whose attempts put these values into its output."""

    def work(briefing: Any) -> dict[str, Any]:
        return {key: values[min(briefing.attempt, len(values)) - 1]}

    return Step(name, work, **more)


BREAKPOINTS = {"breakpoints": {"compare": ["ux:/at", "arch:/at"]}}


def test_a_check_makes_two_steps_agree() -> None:
    steps = (saying("ux", "at", 320, 360), saying("arch", "at", 768, 360), Step("code", named, needs=["ux", "arch"]))
    report, events = play(result(*steps, checks=BREAKPOINTS))
    assert (report.outcome, report.usage.attempts) == ("verified", 5)
    assert {name: step.attempts for name, step in report.steps.items()} == {"ux": 2, "arch": 2, "code": 1}
    check = report.checks["breakpoints"]
    assert (check.state, check.verdict, check.attempts) == ("done", "pass", 2)
    assert check.output == {"positions": {"ux:/at": 360, "arch:/at": 360}}
    assert report.gates == {}
    assert [event.word for event in only(e.VerdictGiven, events)] == ["fail", "pass"]


@pytest.mark.parametrize(("said", "why"), [(False, "not compatible"), ("ie11 is too old", "ie11 is too old")])
def test_a_function_may_compare(said: object, why: str) -> None:
    def fits(ux: int, arch: int) -> object:
        return True if ux == arch else said

    steps = (saying("ux", "at", 1, 2), saying("arch", "at", 2))
    checks = {"c": {"compare": ["ux:/at", "arch:/at"], "compatible": fits, "resolve": "authority", "authority": "arch"}}
    report, _ = play(result(*steps, checks=checks))
    assert report.outcome == "verified"
    assert {name: step.attempts for name, step in report.steps.items()} == {"ux": 2, "arch": 1}
    assert report.findings[0].description == f"c: {why}: ux:/at is 1; arch:/at is 2"


def test_a_comparison_without_a_verdict_is_a_measuring_error() -> None:
    checks = {"c": {"compare": ["ux:/at", "arch:/at"], "compatible": lambda ux, arch: None}}
    steps = (saying("ux", "at", 1), saying("arch", "at", 2))
    report, events = play(result(*steps, checks=checks, limits={"errors_in_a_row": 1}))
    assert report.outcome == "waiting"
    assert "the comparison returned NoneType" in only(e.AttemptFailed, events)[0].error


def test_a_comparison_by_a_command_needs_a_file() -> None:
    checks = {"c": {"compare": ["ux:/at", "arch:/at"], "compatible": {"run": ["x"]}}}
    with pytest.raises(WorkflowError, match="expected a function of the compared values"):
        flow(saying("ux", "at", 1), saying("arch", "at", 2), checks=checks)


def test_a_gate_sends_each_target_its_own_request() -> None:
    steps = (
        saying("code", "x", 1, 2),
        saying("test", "coverage", 60, 90, needs="code"),
        Step("ship", named, needs="test"),
    )
    gates = {"coverage": {"metric": "test:/coverage", "at_least": 80, "requests": {"code": "add tests"}}}
    report, _ = play(result(*steps, gates=gates))
    assert report.outcome == "verified"
    assert {name: step.attempts for name, step in report.steps.items()} == {"code": 2, "test": 2, "ship": 1}
    assert report.loops[0].kind == "quality_gate_failure"
    assert report.gates["coverage"].output == {"actual": 90}


def test_a_gate_reads_a_report_of_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def tested(briefing: Any) -> int:
        Path("coverage.json").write_text(json.dumps({"totals": {"percent": 70 + 10 * briefing.attempt}}))
        return int(briefing.attempt)

    gates = {
        "coverage": {"metric": {"report": "coverage.json", "path": "/totals/percent"}, "at_least": 90, "needs": "test"}
    }
    report, _ = play(result(Step("test", tested), gates=gates))
    assert (report.outcome, report.steps["test"].attempts) == ("verified", 2)


@pytest.mark.parametrize(
    ("text", "pointer", "why"),
    [
        (
            None,
            "",
            "cannot be read: No such file or directory; a step has to write it, and a judge that writes it has to name it in its `keeps`",
        ),
        ("{", "", "is not JSON"),
        ("{}", "/x", "has nothing at /x: correct the path"),
    ],
)
def test_a_report_without_the_metric_is_an_error(tmp_path: Path, text: str | None, pointer: str, why: str) -> None:
    if text is not None:
        (tmp_path / "r.json").write_text(text)
    with pytest.raises(AgentError, match=why):
        asyncio.run(ReportValue(tmp_path, "r.json", pointer).work(told(), None))  # type: ignore[arg-type]


def test_a_report_is_a_file_of_the_workspace(tmp_path: Path) -> None:
    os.symlink("/etc/hostname", tmp_path / "link.json")
    for report in ("../r.json", "link.json"):
        with pytest.raises(AgentError, match="leaves the workspace"):
            asyncio.run(ReportValue(tmp_path, report, "").work(told(), None))  # type: ignore[arg-type]
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(AgentError, match="cannot be read"):
        asyncio.run(ReportValue(tmp_path, "pipe.json", "").work(told(), None))  # type: ignore[arg-type]
    assert list(ReportValue(tmp_path, "r", "").input_errors({})) == []


def test_a_check_without_an_agent_that_it_needs_does_not_start() -> None:
    steps = (Bare("a"), Bare("b"))
    work = Workflow(
        "w",
        steps,
        checks=(Check("c", ("a:/x", "b:/x"), rule="compatible", command=True),),
        gates=(Gate("g", report="r.json", threshold=1, needs=("a",)),),
    )

    async def start() -> None:
        journal = MemoryJournal()
        async with LiveEngine(journal, journal) as engine:
            await engine.start(work, {"": flow(Step("x", named)).agents["x"]})

    with pytest.raises(WorkflowError, match=r"'c' has no agent to measure it.*'g' has no agent to measure it"):
        play(start())
