"""The patterns: each template is created, checked and run without changes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backedge.templates import PATTERNS
from tests.cli_setup.parts import asked, backedge


@dataclass(frozen=True)
class Story:
    """What a pattern did: its report, and the steps in the order of their starts."""

    folder: Path
    report: dict[str, Any]
    started: list[tuple[str, str]]

    @property
    def attempts(self) -> dict[str, int]:
        return {name: step["attempts"] for name, step in self.report["steps"].items()}

    @property
    def loops(self) -> list[tuple[str, str, list[str], str, str]]:
        return [
            (loop["kind"], loop["source"], loop["targets"], loop["routed_by"], loop["state"])
            for loop in self.report["loops"]
        ]

    def modes(self, step: str) -> list[str]:
        return [mode for name, mode in self.started if name == step]


def told(folder: Path, pattern: str, expect: int = 0) -> Story:
    """Start from a template, check it and run it."""
    said = backedge(folder, "init", "--template", pattern, "--agent", "scripts", "--name", pattern).stdout
    assert f"wrote    .backedge-agents/{pattern}" in said
    assert "A run usually makes about" in backedge(folder, "check").stdout
    backedge(folder, "run", "--quiet", expect=expect)
    return retold(folder)


def retold(folder: Path) -> Story:
    events = backedge(folder, "audit", "export").stdout.splitlines()
    started = [each for each in map(json.loads, events) if each["type"].startswith("attempt_started/")]
    return Story(folder, asked(folder, "show"), [(each["step"], each.get("mode", "work")) for each in started])


def test_the_targets_choose_about_a_constraint_and_the_source_continues_with_the_choice(tmp_path: Path) -> None:
    story = told(tmp_path, "constraint")
    assert story.report["outcome"] == "verified"
    assert story.loops == [("constraint_violation", "developer", ["architect", "pm"], "explicit", "resolved")]
    assert story.attempts == {"pm": 3, "architect": 4, "developer": 2, "test": 1}
    assert story.modes("pm") == ["work", "decide", "decide"]
    assert story.modes("architect") == ["work", "decide", "decide", "rework"]
    loop = story.report["loops"][0]
    assert (loop["choice"]["option"], loop["choice"]["by"], loop["rounds"]) == ("polling", "architect, pm", 2)
    first = {each["who"]: each["option"] for each in loop["positions"] if each["round"] == 1}
    assert first == {"pm": "another hosting", "architect": "polling"}
    assert story.report["steps"]["developer"]["output"] == {"live": "polling"}
    said = backedge(tmp_path, "show").stdout
    assert "round 2  → architect: attempt 3; attempt 4" in said, (
        "what the option says belongs to the round of the choice"
    )
    assert "resolved: “polling”: no migration in this quarter; 2 s are as good as live" in said


def test_an_infeasible_requirement_goes_to_its_owner_and_a_lost_one_to_the_step_that_dropped_it(tmp_path: Path) -> None:
    story = told(tmp_path, "infeasible")
    assert story.report["outcome"] == "verified"
    assert story.loops == [
        ("technical_infeasibility", "architect", ["pm"], "requirement", "resolved"),
        ("test_failure", "test", ["developer"], "requirement", "resolved"),
    ]
    assert story.attempts == {"pm": 2, "architect": 2, "developer": 2, "test": 2}
    assert story.report["steps"]["pm"]["output"]["REQ-89"] == "pages load in 2.5 s"
    (finding,) = story.report["findings"]
    assert finding["gap"] == "REQ-12 is in pm and architect, and missing in developer"


def test_conflicting_specs_are_resolved_before_anything_is_built_on_them(tmp_path: Path) -> None:
    story = told(tmp_path, "conflict")
    assert story.report["outcome"] == "verified"
    assert sorted(story.loops) == [
        ("inconsistency", "breakpoints", ["ux", "architect"], "consensus", "resolved"),
        ("inconsistency", "browsers", ["architect"], "authority", "resolved"),
    ]
    assert story.attempts == {"pm": 1, "ux": 2, "architect": 2, "developer": 1}, "one rework for both conflicts"
    built = story.report["steps"]["developer"]["output"]
    assert built == {"framework": "preact", "responsive": {"breakpoints": [320, 768, 1024, 1280]}}
    assert {each["verdict"] for each in story.report["checks"].values()} == {"pass"}


def test_a_failing_gate_asks_all_three_is_measured_once_more_and_a_person_approves(tmp_path: Path) -> None:
    story = told(tmp_path, "gate", expect=3)
    assert [(loop[1], loop[2], loop[4]) for loop in story.loops] == [
        ("accessibility", ["ux"], "resolved"),
        ("performance", ["architect", "developer", "ux"], "resolved"),
    ]
    assert story.attempts == {"ux": 3, "architect": 2, "developer": 2, "audit": 2, "deploy": 0}
    assert {name: gate["attempts"] for name, gate in story.report["gates"].items()} == {
        "accessibility": 2,
        "performance": 2,
    }
    first = [name for name, _ in story.started].index("developer")
    assert [name for name, _ in story.started][:first].count("ux") == 2, "nobody builds on what a gate holds back"
    (question,) = asked(tmp_path, "inbox")
    assert question["reason"].startswith("no approver: 'deploy'")
    backedge(tmp_path, "decide", question["id"], "approve", "--by", "ann")
    backedge(tmp_path, "resume", "--quiet")
    again = retold(tmp_path)
    assert (again.report["outcome"], again.attempts["deploy"]) == ("verified", 1)


def test_a_missing_step_is_added_and_the_step_that_needs_it_runs_after_it(tmp_path: Path) -> None:
    story = told(tmp_path, "dependency")
    assert story.report["outcome"] == "verified"
    assert story.loops == [("dependency_missing", "refund_service", ["plan"], "planner", "resolved")]
    steps = [name for name, _ in story.started]
    assert steps == ["plan", "payment", "refund_service", "plan", "refund", "refund_service", "spec"]
    assert story.report["plans"][0]["added"] == ["refund"]
    assert story.report["steps"]["refund_service"]["output"] == {"uses": ["Payment", "Refund"]}


def test_the_planner_breaks_a_cycle_and_only_dependent_steps_run_again(tmp_path: Path) -> None:
    story = told(tmp_path, "circular")
    assert story.report["outcome"] == "verified"
    assert story.loops == [("architecture_issue", "payment", ["plan"], "planner", "resolved")]
    assert story.attempts == {
        "plan": 2, "customer": 1, "invoice": 2, "payment": 2, "review": 1, "invoice_payment": 1,
    }  # fmt: skip
    assert story.report["plans"][0]["added"] == ["payment", "invoice_payment"]
    assert story.report["steps"]["invoice_payment"]["output"]["needs"] == ["invoice", "payment"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_next_command_that_init_prints_works_for_the_pattern(pattern: str, tmp_path: Path) -> None:
    said = backedge(tmp_path, "init", "--template", pattern, "--agent", "scripts").stdout
    assert said.endswith("\n         backedge run\n")
