"""From the outside: the loops of a run with their statistics."""

from __future__ import annotations

from typing import Any

from tests.cli.conftest import Make
from tests.cli.project import failed, passed, raises

STEPS: dict[str, Any] = {
    "plan": {"phase": "planning"},
    "code": {"phase": "code", "needs": ["plan"]},
    "review": {"reviews": "code"},
}


def test_case_a0_16_the_export_of_loops_has_their_statistics(make: Make) -> None:
    project = make(
        {"steps": STEPS},
        code=[{"feedback": [raises("fix_request", "human", severity="low")]}, {"output": 2}, {"output": 3}],
        review=[failed({"description": "no", "severity": "critical"}), passed()],
    )
    project.run()
    project.answer("E-1", "resolve", "--note", "so be it")
    project.backedge("feedback", "raise", "--kind", "fix_request", "--to", "human", "--message", "look")
    told = project.backedge("export", "--format", "loops").json
    assert (told["run"], told["workflow"]) == (project.show().run, "w")
    assert told["loops"] == project.show().loops
    statistics = told["statistics"]
    assert {key: statistics[key] for key in ("total", "resolved", "escalations")} == {
        "total": len(told["loops"]),
        "resolved": sum(loop["state"] == "resolved" for loop in told["loops"]),
        "escalations": len(told["escalations"]),
    }
    assert statistics["by_kind"]["review_rejection"] == 1
    assert statistics["by_severity"]["critical"] == 1
    assert sum(statistics["by_kind"].values()) == sum(statistics["by_severity"].values()) == statistics["total"] >= 2
    assert statistics["success_rate"] == round(100 * statistics["resolved"] / statistics["total"], 1)


def test_case_a4_17_without_loops_everything_is_zero(make: Make) -> None:
    project = make({"steps": STEPS}, review=[passed()])
    project.run()
    told = project.backedge("export", "--format", "loops").json
    assert (told["loops"], told["escalations"]) == ([], [])
    assert told["statistics"] == {
        "total": 0,
        "active": 0,
        "resolved": 0,
        "escalations": 0,
        "by_kind": {},
        "by_type": {},
        "by_severity": {},
        "by_state": {},
        "success_rate": 0.0,
        "average_rounds": 0.0,
        "rounds_to_resolution": {},
    }
