"""`stats` from the outside."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from tests.cli.conftest import make, patience
from tests.cli.project import Project, failed, passed

__all__ = ["make", "patience"]

STEPS: dict[str, Any] = {
    "plan": {"phase": "planning"},
    "code": {"phase": "code", "needs": ["plan"]},
    "review": {"reviews": "code"},
}
GAP = {"description": "no login", "severity": "critical", "affected_phase": "planning"}


@pytest.fixture
def project(make: Any) -> Project:
    """One run that was reworked once, and one that was not."""
    made: Project = make(
        {"steps": STEPS},
        plan=[{"output": 1, "usage": {"cost_usd": 0.5}}, {"output": 2, "usage": {"cost_usd": 0.25}}],
        code=[{"output": 1}, {"output": 2}],
        review=[failed(GAP), passed()],
    )
    made.run("--run", "long")
    made.script(review=[passed()])
    made.run("--run", "short")
    return made


def test_all_runs_together(project: Project) -> None:
    told = project.backedge("stats", "--json").json
    assert (told["runs"], told["attempts"], told["cost_usd"]) == (2, 9, 0.75)
    assert told["loops"]["by_kind"] == {"review_rejection": 1}
    assert told["loops"]["by_severity"] == {"critical": 1}
    assert (told["loops"]["success_rate"], told["loops"]["average_rounds"]) == (100.0, 1.0)
    assert told["findings"]["by_phase"] == [{"injected": "planning", "detected": "code", "findings": 1}]
    assert [(each["phase"], each["per_cent"]) for each in told["findings"]["yields"]] == [
        ("planning", 0.0),
        ("code", 100.0),
    ]
    assert [(each["phase"], each["attempts"], each["cost_usd"]) for each in told["rework"]["by_phase_and_agent"]] == [
        ("code", 1, 0.0),
        ("planning", 1, 0.25),
    ]
    assert [each["run"] for each in told["rework"]["most"]] == ["long"]


def test_in_words(project: Project) -> None:
    said = project.backedge("stats")
    assert said.code == 0
    assert said.out.startswith("2 runs, 9 attempts, $0.75, ")
    assert "loops      1: 1 resolved (100 %), 0 active, 0 escalations\n" in said.out
    assert "  injected in planning, detected in code: 1\n" in said.out
    assert "  code caught 1 of 1 (100 %)\n" in said.out
    assert "  planning by plan: 1 attempt, $0.25, " in said.out


def test_as_rows(project: Project) -> None:
    table = list(csv.reader(io.StringIO(project.backedge("stats", "--csv").out)))
    assert table[0] == ["measure", "of", "value"]
    assert ["loops.by_kind", "review_rejection", "1"] in table
    assert ["findings.by_phase.findings", "planning/code", "1"] in table
    assert ["rework.by_phase_and_agent.cost_usd", "planning/plan", "0.25"] in table


def test_of_some_runs_only(project: Project) -> None:
    def runs(*args: str) -> int:
        found: int = project.backedge("stats", "--json", *args).json["runs"]
        return found

    assert project.backedge("stats", "--json", "--run", "sho").json["loops"]["total"] == 0
    assert (runs("--run", "long"), runs("--workflow", "w")) == (1, 2)
    assert (runs("--since", "1h"), runs("--since", "2020-01-31")) == (2, 2)
    assert runs("--since", "2999-12-31") == 0


def test_mistakes_are_reported(project: Project) -> None:
    assert "there is no run of workflow 'v'" in project.refused("stats", "--workflow", "v")
    assert "'soon' is not a time: use a date" in project.refused("stats", "--since", "soon")
    assert "unknown run 'nobody'" in project.refused("stats", "--run", "nobody")
    assert "cannot be combined: use one of them" in project.refused("stats", "--csv", "--json")


@pytest.mark.parametrize("phase", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_no_cell_of_the_table_is_a_formula(project: Project, phase: str) -> None:
    defect = {"defect": "x", "severity": "High", "phase_injected": phase, "phase_detected": phase, "attempts": 1}
    (project.folder / "log.json").write_text(json.dumps([defect]))
    assert project.backedge("import", "log.json", "--as", "defects").code == 0
    rows = list(csv.reader(io.StringIO(project.backedge("stats", "--csv").out)))
    assert all(not of.startswith(("=", "+", "-", "@")) for _, of, _ in rows)
    assert any(of.lower().startswith(f"'{phase.lower()}") for _, of, _ in rows)
