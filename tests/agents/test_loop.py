"""Commands within a run: a coder that reads its feedback, a real test tool that judges it, an engine that stops it."""

from __future__ import annotations

import sys
from pathlib import Path

from backedge import Engine, MemoryJournal, Report, Step, Workflow
from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.agents.process_tree import marked
from backedge.adapters.reports import ReportSpec
from tests.agents.parts import agent, play, python, shell

CODER = """
import json, sys
briefing = json.load(sys.stdin)
found = briefing["feedback"]["findings"]
right = bool(found) and found[0]["file"] == "test_add.py" and "assert -1 == 3" in found[0]["evidence"]
open("add.py", "w").write("def add(a, b):\\n    return a + b\\n" if right else "def add(a, b):\\n    return a - b\\n")
print("working on it")
print(json.dumps({"summary": "mended" if right else "written"}))
"""


def test_findings_of_a_real_test_go_back_to_the_command_that_wrote_the_code(tmp_path: Path) -> None:
    (tmp_path / "test_add.py").write_text("from add import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n")
    tool = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml={report}"]
    workflow = Workflow(
        "add",
        [
            Step("code", agent(tmp_path, python(CODER), writes=["add.py"]), phase="code"),
            Step("test", agent(tmp_path, tool, judges=True, report=ReportSpec("junit")), tests="code"),
        ],
    )

    async def scenario() -> Report:
        async with Engine(MemoryJournal()) as engine:
            return await (await engine.start(workflow, run="r")).result()

    report = play(scenario())
    assert report.outcome == "verified"
    assert report.steps["code"].attempts == 2
    [finding] = report.findings
    assert (finding.status, finding.description) == ("fixed", "test_add::test_add: assert -1 == 3")


def test_the_timeout_of_a_step_ends_the_commands_whole_tree(tmp_path: Path) -> None:
    slow = agent(tmp_path, shell("sleep 60 & sleep 60"), grace=0.1)
    workflow = Workflow("slow", [Step("slow", slow, timeout=0.3)], limits={"errors_in_a_row": 1})

    async def scenario() -> Report:
        async with Engine(MemoryJournal()) as engine:
            return await (await engine.start(workflow, run="r")).result()

    report = play(scenario())
    assert report.outcome == "waiting"
    assert "timeout" in report.escalations[0].reason
    assert marked(AttemptFolder(tmp_path / ".backedge", "r", "slow", 1).mark) == []
