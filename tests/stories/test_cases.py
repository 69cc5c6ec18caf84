"""The cases of the refinement loop, through the command line: A1-01 to A1-22."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.parts import STEPS, Stories, rejected

QUERY = {
    "description": "SQL from user input",
    "severity": "blocker",
    "file": "src/db/query.ts",
    "line": 42,
    "suggested_fix": "use parameters",
}
NAMES = {"description": "names say nothing", "severity": "major", "file": "src/db/names.ts"}


def step(project: Stories, times: int = 1) -> str:
    """Do this many actions; returns the output of the last one."""
    said = ""
    for _ in range(times):
        said = project.backedge("run")[1]
    return said


def test_a1_01_02_05_08_09_a_rejected_review_is_reworked_with_its_feedback(project: Stories) -> None:
    project.story("a", title="Search", priority=3)
    project.script(a={"review": [rejected(NAMES, QUERY), rejected({**QUERY, "description": "still SQL"})]})
    step(project, 4)
    before = project.says("a")
    assert (before["status"], before["implementation_complete"], before["refinement_count"]) == ("in-progress", True, 0)
    (action,) = project.json("next")
    assert (action["kind"], action["priority"], action["target"], action["iteration"]) == ("rework", 3, "implement", 1)
    assert action["feedback"] == "Review failed: 1 blocker(s), 1 major"

    said = step(project)
    assert " ▸ implement (attempt 2) reworks L-1\n" in said
    recorded = "story file: recorded refinement attempt 1 of 3, target implement; reset implement_complete"
    assert f"a |            {recorded}\n" in said
    story = project.says("a")
    assert story["refinement_count"] == 1
    (iteration,) = story["refinement_iterations"]
    assert (iteration["iteration"], iteration["agentType"], iteration["result"]) == (1, "implement", "in_progress")
    assert iteration["reviewFeedback"] == "Review failed: 1 blocker(s), 1 major"
    assert story["review_history"][0]["severity"] == "CRITICAL"
    assert "### Refinement Iteration 1\n" in project.text("a")
    told = project.told("a", "implement", 2)
    assert told["round"] == 1 and told["history"] == []
    assert [each["description"] for each in told["feedback"]["findings"]] == [
        "SQL from user input",
        "names say nothing",
    ]

    step(project, 2)
    text = project.text("a")
    assert text.index("### Refinement Iteration 1") < text.index("### Refinement Iteration 2")
    assert "- [blocker] `src/db/query.ts:42` SQL from user input\n  Suggested fix: use parameters\n" in text
    assert "- [major] `src/db/names.ts` names say nothing\n" in text
    assert text.index("[blocker]") < text.index("[major]")
    assert [each["result"] for each in project.says("a")["refinement_iterations"]] == ["failed", "in_progress"]
    assert project.told("a", "implement", 3)["history"] != []


def test_a1_02_a_story_shows_that_its_rework_is_under_way(project: Stories) -> None:
    project.story("a")
    project.script(a={"review": [rejected("wrong")], "implement": [{}, {"!sleep": 30}]})
    step(project, 4)
    going = project.start("run")
    try:
        assert going.stderr is not None
        while "recorded refinement attempt" not in (line := going.stderr.readline()):
            assert line
        story = project.says("a")
        assert (story["implementation_complete"], story["plan_complete"], story["refinement_count"]) == (False, True, 1)
        assert project.json("board")["in-progress"][0]["running"] == ["implement"]
    finally:
        going.terminate()
        going.communicate(timeout=60)
    assert going.returncode == 130
    # Interrupted is not done: the same iteration goes on, and is not counted again.
    (action,) = project.json("next")
    assert (action["kind"], action["priority"], action["iteration"]) == ("implement", 50, 1), "A1-13: no rework"
    assert project.says("a")["refinement_count"] == 1


def test_a1_03_rework_of_the_plan_resets_all_later_phases(project: Stories) -> None:
    project.story("a")
    gap = {"description": "no login", "severity": "critical", "category": "architecture"}
    project.script(a={"review": [rejected(gap, "two"), {"verdict": "pass"}]})
    step(project, 4)
    assert project.json("next")[0]["target"] == "plan"
    said = step(project)
    assert "recorded refinement attempt 1 of 3, target plan" in said
    assert "reset plan_complete, implement_complete" in said
    story = project.says("a")
    flags = [story[f"{name}_complete"] for name in ("research", "plan", "implementation", "reviews")]
    assert flags == [True, True, False, False]
    assert [action["kind"] for action in project.json("next")] == ["implement"]
    project.auto()
    assert project.says("a")["status"] == "done"


def test_a1_06_an_error_is_kept_on_disk_until_the_work_succeeds(project: Stories) -> None:
    project.story("a")
    project.script(a={"implement": [{"!exit": 3}, {}]})
    step(project, 3)
    assert "3" in project.says("a")["last_error"]
    step(project)
    assert "last_error" not in project.says("a")


@pytest.mark.parametrize(
    ("category", "findings", "phase"),
    [
        ("missing_research", 1, "research"),
        ("architecture", 1, "plan"),
        ("scope", 1, "plan"),
        ("story_type", 1, "plan"),
        ("content_type", 1, "plan"),
        ("code_quality", 1, "implement"),
        ("", 1, "implement"),
        ("", 2, "plan"),
    ],
)
def test_a1_07_the_category_decides_which_phase_is_reworked(
    project: Stories, category: str, findings: int, phase: str
) -> None:
    project.workflow(steps={**STEPS, "review": {"reviews": "implement"}})
    project.story("a")
    found = [{"description": f"wrong {each}", "severity": "blocker", "category": category} for each in "ab"[:findings]]
    project.script(a={"review": [rejected(*found)]})
    project.backedge("run", "--auto", "--story", "a", expect=3)
    assert project.says("a")["refinement_iterations"][0]["agentType"] == phase


def test_a1_10_a_review_without_findings_gives_its_summary(project: Stories) -> None:
    project.story("a")
    project.script(a={"review": [{"verdict": "fail", "summary": "the approach is not sound"}, {"verdict": "pass"}]})
    project.auto()
    assert [each["description"] for each in project.told("a", "implement", 2)["feedback"]["findings"]] == [
        "the approach is not sound"
    ]


def test_a1_12_13_16_reject_rework_implement_approve_ends_with_create_pr(tmp_path: Path) -> None:
    project = Stories(tmp_path / "p", {"create_pr": ["sh", "-c", 'echo made > pr.txt; echo \'{"output": "pr 1"}\'']})
    project.story("a")
    project.script(a={"review": [rejected("wrong"), {"verdict": "pass"}]})
    kinds = ["research", "plan", "implement", "review", "rework", "review", "create_pr"]
    assert project.actions("a") == kinds
    story = project.says("a")
    assert (story["status"], story["reviews_complete"], story["refinement_count"]) == ("done", True, 1)
    assert [each["decision"] for each in story["review_history"]] == ["REJECTED", "APPROVED"]
    assert [each["result"] for each in story["refinement_iterations"]] == ["success"]
    assert (project.folder / "pr.txt").read_text() == "made\n"
    assert project.json("next") == []


@pytest.mark.parametrize("said", ["https://host/pr/7", '{"url": "https://host/pr/7"}', "", '{"half": '])
def test_create_pr_may_be_any_program_and_runs_once(tmp_path: Path, said: str) -> None:
    project = Stories(tmp_path / "p", {"create_pr": ["sh", "-c", 'echo made >> pr.txt; echo "$0"', said]})
    project.story("a")
    project.script(a={"review": [{"verdict": "pass"}]})
    project.auto()
    assert (project.says("a")["status"], (project.folder / "pr.txt").read_text()) == ("done", "made\n")
    assert project.json("show", "s-a")["steps"]["create_pr"]["output"] == (said.strip() or None)


def test_a_create_pr_that_fails_is_an_error(tmp_path: Path) -> None:
    project = Stories(
        tmp_path / "p", {"create_pr": ["sh", "-c", "echo no remote >&2; exit 1"]}, limits={"errors_in_a_row": 1}
    )
    project.story("a")
    project.script(a={"review": [{"verdict": "pass"}]})
    project.json("run", "--auto", expect=3)
    assert "no remote" in project.says("a")["last_error"]


def test_a1_16_four_rejections_block_the_story_after_iterations_1_2_3(project: Stories) -> None:
    project.story("a")
    project.script(a={"review": [rejected(f"wrong {each}") for each in "abcd"]})
    done = project.json("run", "--auto", expect=3)
    assert [each["iteration"] for each in done["actions"] if each["kind"] == "rework"] == [1, 2, 3]
    story = project.says("a")
    why = "Max refinement attempts (3/3): [blocker] wrong d"
    assert (story["status"], story["blocked_reason"]) == ("blocked", why)
    assert story["open_findings"] == ["[blocker] wrong d"], "what is wrong now, not what was wrong before"
    assert "Circuit breaker" in story["last_error"] and "maximum refinement attempts" in story["last_error"]
    assert story["blocked_at"].endswith("Z") and "E-1" in story["diagnostic"]
    assert [each["result"] for each in story["refinement_iterations"]] == ["failed"] * 3
    (action,) = project.json("next")
    assert (action["kind"], action["priority"], action["reason"]) == ("person", 10_000, why)
    # Nothing more happens, and no new iteration is recorded.
    before = project.text("a")
    said = project.auto(expect=3)
    assert f"for you: a: {why}\n     backedge inbox\n     backedge decide E-1 continue|" in said
    assert project.text("a") == before


@pytest.mark.parametrize("reset", [True, False])
def test_a1_19_unblocking_grants_more_rounds_or_resets_the_count_and_keeps_the_rest(
    project: Stories, reset: bool
) -> None:
    path = project.story("a", "Words of mine.\n", title="Mine", owner="me")
    path.write_text(path.read_text().replace("owner:", "# keep\nowner:"))
    project.script(a={"review": [*(rejected(f"wrong {each}") for each in "abcd"), {"verdict": "pass"}]})
    assert "(3/3): [blocker] wrong d\na |              `backedge unblock a` grants" in project.auto(expect=3)
    blocked = project.text("a")
    words = ["unblock", "a", "--reset"] if reset else ["unblock", "a"]
    assert project.backedge(*words)[0].startswith("a is in-progress")
    story = project.says("a")
    assert (story["status"], story["refinement_count"]) == ("in-progress", 0 if reset else 3)
    assert not {"blocked_reason", "blocked_at", "diagnostic", "last_error", "open_findings"} & set(story)
    after = project.text("a")
    assert after.partition("\n---\n")[2] == blocked.partition("\n---\n")[2]
    assert "# keep\nowner: " in after and story["title"] == "Mine"
    (action,) = project.json("next")
    assert (action["kind"], action["iteration"]) == ("rework", 1 if reset else 4)
    assert "is not blocked: it is in-progress" in project.backedge("unblock", "a", expect=2)[1]
    project.auto()
    assert project.says("a")["status"] == "done"
    events = project.backedge("audit", "export", "s-a")[0]
    assert f'"choice":"{"revise" if reset else "continue"}"' in events


def test_a1_22_a_reason_is_one_clean_line(project: Stories) -> None:
    project.story("a")
    hostile = "\x1b[31mred\x1b[0m `rm -rf`\nsecond line\r\nthird"
    project.workflow(limits={"errors_in_a_row": 1})
    project.script(a={"review": [{"verdict": hostile}]})
    project.auto(expect=3)
    reason = project.says("a")["blocked_reason"]
    assert "\n" not in reason and "\x1b" not in reason and "`" not in reason
    assert "red" in reason and "rm -rf" in reason and "third" in reason


def test_a_reviewer_that_breaks_never_counts(project: Stories) -> None:
    project.story("a")
    project.script(a={"review": [{"!exit": 1}, {"verdict": "pass"}]})
    step(project, 4)
    story = project.says("a")
    assert ([each["decision"] for each in story["review_history"]], story["refinement_count"]) == (["FAILED"], 0)
    (action,) = project.json("next")
    assert (action["kind"], action["priority"]) == ("review", 150)
    project.auto()
    assert project.says("a")["status"] == "done"


def test_the_review_history_keeps_the_last_ten(project: Stories) -> None:
    project.workflow({"circuit_breaker": False}, limits={"rounds_total": 14})
    project.story("a")
    project.script(a={"review": [*(rejected(f"wrong {each}") for each in "abcdefghijkl"), {"verdict": "pass"}]})
    project.auto()
    decisions = [each["decision"] for each in project.says("a")["review_history"]]
    assert decisions == ["REJECTED"] * 9 + ["APPROVED"]
    assert len(project.says("a")["refinement_iterations"]) == 12
