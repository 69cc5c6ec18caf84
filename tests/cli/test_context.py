"""From the outside: the state of a run as a tree of values, including your own."""

from __future__ import annotations

from tests.cli.conftest import Make
from tests.cli.project import Project, raises

TEAM = {"steps": {"architect": {"phase": "planning"}, "developer": {"phase": "code", "needs": ["architect"]}}}


def team(make: Make) -> Project:
    item = raises("technical_infeasibility", "architect", message="no push")
    project = make(TEAM, developer=[{"output": "stub", "feedback": [item]}, {"output": "done"}])
    project.run()
    return project


def test_a_run_is_read_by_path(make: Make) -> None:
    project = team(make)
    assert project.backedge("context", "get", "agent_contexts.developer.status").json == "done"
    assert project.backedge("context", "get", "feedback_loops.L-1.state").json == "resolved"
    assert project.backedge("context", "get", "workflow_state.paused").json is False
    assert set(project.backedge("context", "get").json) == {
        "agent_contexts", "feedback_loops", "workflow_state", "values",
    }  # fmt: skip
    assert "did you mean 'developer'" in project.refused("context", "get", "agent_contexts.develper.status")


def test_values_are_set_checkpointed_and_restored(make: Make) -> None:
    project = team(make)
    assert project.backedge("context", "set", "review.depth", "2", "--by", "ann").code == 0
    assert project.backedge("context", "set", "note", "in words").code == 0
    assert project.backedge("context", "checkpoint", "before").code == 0
    assert project.backedge("context", "set", "review.depth", "3").code == 0
    assert project.backedge("context", "restore", "before").code == 0
    assert project.backedge("context", "get", "values").json == {"review": {"depth": 2}, "note": "in words"}
    assert "did you mean 'before'" in project.refused("context", "restore", "befor")
    (first, *_) = [event for event in project.events() if event["type"] == "value_set/1"]
    assert (first["path"], first["value"], first["by"]) == ("review.depth", 2, "ann")
    assert project.backedge("audit", "verify").code == 0


def test_reading_feedback_once_clears_the_inbox(make: Make) -> None:
    project = team(make)
    (notice,) = project.backedge("context", "read", "architect").json
    assert (notice["loop_id"], notice["message"], notice["resolved"]) == ("L-1", "no push", True)
    assert project.backedge("context", "read", "architect").json == []
    assert project.show().loop["id"] == "L-1"
