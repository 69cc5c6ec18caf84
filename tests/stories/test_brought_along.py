"""Stories with a history, from another system or from a cancelled run."""

from __future__ import annotations

from tests.stories.parts import Stories, rejected

ITERATIONS = [
    {"iteration": 1, "agentType": "implement", "startedAt": "2024-01-09T10:30:00Z", "result": "failed"},
    {"iteration": 2, "agentType": "implement", "startedAt": "2024-01-09T11:15:00Z", "result": "in_progress"},
]
REVIEWS = [{"timestamp": "2024-01-09T11:30:00Z", "decision": "REJECTED", "feedback": "Review failed: 1 critical"}]


def test_a_story_that_was_started_elsewhere_keeps_its_history(project: Stories) -> None:
    past = {"refinement_iterations": ITERATIONS, "review_history": REVIEWS, "refinement_count": 2}
    project.story("a", status="in-progress", implementation_complete=True, **past)
    project.script(a={"review": [rejected("wrong"), {"verdict": "pass"}]})
    said = project.auto()
    assert said.count("a.md: work began in another system: here it starts at its first step and keeps its history") == 1
    says = project.says("a")
    assert says["refinement_iterations"][:2] == ITERATIONS
    assert [each["result"] for each in says["refinement_iterations"][2:]] == ["success"]
    assert says["review_history"][:1] == REVIEWS
    assert [each["decision"] for each in says["review_history"][1:]] == ["REJECTED", "APPROVED"]
    assert "implement, 2024-01-09T10:30:00Z, failed" in project.backedge("details", "a")[0]
    # What we remember of the file may get lost: nothing is doubled then.
    (project.folder / ".backedge" / "stories" / "a.json").unlink()
    project.story("b")
    project.auto()
    assert project.says("a") == says


def test_the_run_after_a_cancelled_one_keeps_earlier_reviews(project: Stories) -> None:
    project.story("a", max_refinement_attempts=1)
    project.script(a={"review": [rejected("one"), rejected("two")]})
    project.auto(expect=3)
    before = project.says("a")
    project.backedge("decide", "E-1", "cancel", "--run", "s-a")
    project.backedge("unblock", "a")
    project.backedge("run", "--story", "a")
    assert project.says("a")["review_history"] == before["review_history"]
    assert project.says("a")["refinement_iterations"] == before["refinement_iterations"]
    assert project.says("a")["refinement_count"] == 0
    assert [line for line in project.text("a").splitlines() if line.startswith("### ")] == [
        "### Refinement Iteration 1"
    ]


def test_a_story_without_any_rounds_says_so(project: Stories) -> None:
    project.story("a", max_refinement_attempts=0)
    project.script(a={"review": [rejected("one")]})
    project.auto(expect=3)
    assert "rounds 0/0" in project.backedge("details", "a")[0]
