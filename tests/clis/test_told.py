"""What claude is told in whole runs: its prompts and the schemas of its answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backedge.adapters.agents.schema import Schema
from tests.clis.fake_claude import FakeClaude

TIGHT = """\
name: shop
limits: {rounds_per_loop: 2}
steps:
  plan:   {phase: planning, agent: claude, writes: []}
  code:   {phase: code, needs: [plan], agent: claude, writes: ["*.py"]}
  review: {reviews: code, agent: claude, session: fresh}
  test:   {tests: code, agent: claude, session: fresh}
"""
PLAN = {"output": "# Plan\n\n1. a login", "summary": "one unit"}


def made(summary: str, **more: Any) -> dict[str, Any]:
    return {"output": summary, "summary": summary, **more}


def failing(summary: str, *descriptions: str, **more: Any) -> dict[str, Any]:
    found = [
        {"description": each, "severity": "high", "category": "security", "requirement_id": "REQ-1"}
        for each in descriptions
    ]
    return {"verdict": "fail", "summary": summary, "findings": found, **more}


PASS = {"verdict": "pass", "summary": "fine", "findings": []}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> FakeClaude:
    """A run in which the review fails once, the test fails twice, and the last round is good."""
    claude = FakeClaude(
        tmp_path_factory.mktemp("told"),
        TIGHT,
        plan=[PLAN],
        code=[made("added a form"), made("checked the session"), made("compared hashes")],
        review=[failing("The session is not checked anywhere.", "no session check"), PASS],
        test=[
            failing("One of two tests fails.", "test_login fails"),
            failing("Still the same.", "test_login fails"),
            PASS,
        ],
    )
    done = claude.run("run", "--json", "--input", "task=add a login")
    assert json.loads(done.stdout)["outcome"] == "verified", done.stderr
    return claude


def test_a_coder_gets_review_issues_and_test_failures_apart_with_the_words_of_the_judges(shop: FakeClaude) -> None:
    told = shop.prompt("code", 2)
    review, test = (
        told.index("### Review issues to address, from review"),
        told.index("### Test failures to fix, from test"),
    )
    assert review < told.index("The session is not checked anywhere.") < told.index("no session check") < test
    assert test < told.index("One of two tests fails.") < told.index("test_login fails")
    assert "Requirement: REQ-1" in told and "Category: security" in told


def test_it_is_told_the_iteration_what_to_read_first_and_that_it_is_the_last_round(shop: FakeClaude) -> None:
    second, third = shop.prompt("code", 2), shop.prompt("code", 3)
    assert "### Iteration 1\n" in second and "### Iteration 2\n" in third
    assert "last round" not in second and "This is the last round (rounds_per_loop)" in third
    pad = Path(third.partition("Read first what happened so far: ")[2].partition("\n")[0])
    assert "no session check" in pad.read_text()
    assert "Read first" not in shop.prompt("code", 1)


def test_what_earlier_attempts_did_is_told_to_the_coder_and_to_the_judges(shop: FakeClaude) -> None:
    for told in (shop.prompt("code", 3), shop.prompt("test", 3)):
        assert "- code, attempt 1: added a form\n- code, attempt 2, iteration 1: checked the session" in told
    assert "- test, attempt 1: One of two tests fails." in shop.prompt("test", 2)


def test_targets_and_phases_in_schema_and_prompt_are_the_legal_ones(shop: FakeClaude) -> None:
    feedback = shop.schema("code")["properties"]["feedback"]["items"]["properties"]
    assert feedback["to"]["items"]["enum"] == ["plan", "human"]
    assert feedback["details"]["type"] == "object"
    assert "step (plan, human)" in shop.prompt("code")
    finding = shop.schema("review")["properties"]["findings"]["items"]["properties"]
    assert finding["affected_phase"]["items"]["enum"] == ["planning", "code"]


def test_resolutions_may_name_the_findings_that_are_told_and_no_others(shop: FakeClaude) -> None:
    for step in ("code", "test"):
        first, second = (shop.schema(step, n)["properties"]["resolutions"] for n in (1, 2))
        assert first["description"] == "Leave it empty."
        ids = second["items"]["properties"]["finding"]["enum"]
        assert ids and all(f"- **{id}**" in shop.prompt(step, 2) for id in ids)
        good = [{"finding": ids[0], "status": "fixed"}]
        assert Schema(second).input_errors(good) == []
        assert Schema(second).input_errors([{**good[0], "finding": "F-99"}]) != []
    told = shop.prompt("test", 2)
    assert "not_fixed counts as found again: do not list the same defect in `findings` too." in told
    kind = shop.schema("code")["properties"]["feedback"]["items"]["properties"]["kind"]
    assert "context_request: answer a question; nothing is changed" in kind["description"]


def test_a_judge_gets_guidelines_for_the_phase_and_for_uncertainty(shop: FakeClaude) -> None:
    told = shop.prompt("review")
    assert "- planning: a requirement or a unit of work is missing" in told
    assert "- design" not in told
    assert "name the phase under review (code)" in told


def test_a_judge_may_raise_feedback(shop: FakeClaude) -> None:
    feedback = shop.schema("test")["properties"]["feedback"]["items"]["properties"]
    assert feedback["to"]["items"]["enum"] == ["plan", "code", "human"]
    assert "a context_request" in shop.prompt("test")


def test_a_producer_is_told_which_files_it_may_change_and_who_judges(shop: FakeClaude) -> None:
    told = shop.prompt("code")
    assert "Change only files that match `*.py`: any other change is refused, and the attempt does not count." in told
    assert "Your work will be judged by review, test." in told
    assert "Change no files: any change is refused" in shop.prompt("plan")
    assert "what a person (`human`) has to decide" in shop.prompt("plan")


def test_a_task_of_one_text_is_that_text(shop: FakeClaude) -> None:
    assert "## The task\n\n```\nadd a login\n```" in shop.prompt("code")


CHOICE = """\
name: choice
steps:
  architect: {phase: planning, agent: claude, writes: []}
  pm:        {phase: planning, agent: claude, writes: []}
  code:      {phase: code, needs: [architect, pm], agent: claude, writes: []}
"""


def test_the_targets_of_a_choice_are_told_who_else_is_asked_and_how_they_agree(tmp_path: Path) -> None:
    options = [{"option": "polling", "effort": "low"}, {"option": "push"}]
    item = {"kind": "constraint_violation", "to": ["architect", "pm"], "message": "no sockets", "options": options}
    polling = {"decision": {"option": "polling", "reason": "simple"}}
    code = [{"output": None, "summary": "blocked", "feedback": [item]}, made("polls")]
    claude = FakeClaude(tmp_path, CHOICE, architect=[made("a"), polling], pm=[made("b"), polling], code=code)
    assert claude.run().returncode == 0
    told = claude.prompt("pm", 2)
    assert "Asked: architect, pm. All have to choose the same option." in told
    assert "This time you only choose: your work stays as it is." in told


def test_a_planner_is_told_the_agents_that_new_steps_can_have(tmp_path: Path) -> None:
    workflow = "name: p\nagents: {tiny: {cli: claude, model: haiku}}\nsteps:\n  plan: {phase: planning, plans: true, agent: claude, writes: []}\n"
    claude = FakeClaude(tmp_path, workflow, plan=[made("x")])
    assert claude.run().returncode == 0
    assert "The `agent` of a new step is one of these: tiny, claude, codex, gemini, opencode, human." in claude.prompt(
        "plan"
    )


@pytest.mark.parametrize("blocks", [False, True])
def test_after_a_refused_answer_the_next_attempt_is_told_why(tmp_path: Path, blocks: bool) -> None:
    why = "Output does not match required schema: root: must have required property 'summary'"
    content = [{"type": "text", "text": why}] if blocks else why
    refusal = {"type": "tool_result", "is_error": True, "content": content}
    refused = {"!text": "Done!", "!lines": [{"type": "user", "message": {"content": [refusal]}}]}
    claude = FakeClaude(tmp_path, "name: r\nsteps:\n  code: {agent: claude, writes: []}\n", code=[refused, made("x")])
    assert claude.run().returncode == 0
    told = claude.prompt("code", 2).partition("did not count, because of this error:")[2]
    assert "the answer of claude does not match the schema: root: must have required property 'summary'" in told


def test_texts_of_several_lines_are_not_json_strings(shop: FakeClaude) -> None:
    assert "From `plan`:\n```\n# Plan\n\n1. a login\n```" in shop.prompt("code")


def test_an_oracle_asks_and_judges_again_with_the_answer(tmp_path: Path) -> None:
    workflow = "name: w\nsteps:\n  plan: {phase: planning, agent: claude, writes: []}\n"
    workflow += "  code: {phase: code, needs: [plan], agent: claude, writes: []}\n  test: {tests: code, agent: claude, session: fresh}\n"
    question = {"kind": "context_request", "to": ["plan"], "message": "Round up or down?", "artifacts": ["price.py:3"],
                "requirement_id": "REQ-9", "severity": "medium", "details": {"cent": 0.5}}  # fmt: skip
    claude = FakeClaude(
        tmp_path,
        workflow,
        plan=[PLAN, {"answer": "down"}],
        code=[made("priced it")],
        test=[{"verdict": "needs_improvement", "summary": "cannot tell", "findings": [], "feedback": [question]}, PASS],
    )
    done = json.loads(claude.run().stdout)
    asked = claude.prompt("plan", 2)
    for part in (
        "context_request from test (medium, L-1)",
        "price.py:3",
        "REQ-9",
        '"cent": 0.5',
        "Round up or down?",
        "you only answer a question",
    ):
        assert part in asked
    assert "is answered\n```\nRound up or down?\nplan: down\n```" in claude.prompt("test", 2)
    assert done["outcome"] == "verified"


RULED = """\
name: ruled
steps:
  code:   {phase: code, agent: claude, writes: []}
  review: {reviews: code, agent: claude, passes_if: {critical: 0, high: 1}}
"""


def test_a_judge_with_a_rule_reports_findings_only_and_reads_the_rule(tmp_path: Path) -> None:
    high = {"description": "slow", "severity": "high"}
    claude = FakeClaude(tmp_path, RULED, code=[made("x")], review=[{"summary": "one thing", "findings": [high]}])
    done = json.loads(claude.run().stdout)
    assert done["steps"]["review"]["verdict"] == "pass"
    schema, told = claude.schema("review"), claude.prompt("review")
    assert "verdict" not in schema["properties"] and "verdict" not in schema["required"]
    rule = "The work passes if none is critical, and at most 1 is high"
    assert rule in told and rule in schema["properties"]["findings"]["description"]
    assert Schema(schema).input_errors({"summary": "one thing", "findings": [high]}) == []


STORIES = """\
name: s
stories: {folder: stories}
steps:
  code: {phase: code, agent: claude, writes: []}
"""


def test_the_task_of_a_story_is_its_markdown(tmp_path: Path) -> None:
    claude = FakeClaude(tmp_path, STORIES, code=[made("x")])
    (claude.work / "stories").mkdir()
    story = "---\nid: login\ntitle: Log in\nstatus: ready\n---\n\n# Log in\n\n- with a password\n"
    (claude.work / "stories" / "login.md").write_text(story)
    done = claude.run("run", "--story", "stories/login.md", "--json")
    assert done.returncode == 0, done.stderr
    told = claude.prompt("code")
    assert "\n# Log in\n\n- with a password\n" in told
    assert "\\n" not in told


def test_a_finding_in_a_file_that_no_step_may_write_is_a_question_at_once(tmp_path: Path) -> None:
    outside = {
        "verdict": "fail",
        "summary": "no",
        "findings": [{"description": "old", "severity": "high", "file": "docs/api.md"}],
    }
    claude = FakeClaude(tmp_path, TIGHT, plan=[PLAN], code=[made("x")], review=[outside], test=[PASS])
    done = claude.run()
    assert done.returncode == 3, done.stderr
    told = json.loads(done.stdout)
    assert told["steps"]["code"]["attempts"] == 1
    assert told["escalations"][0]["reason"].startswith("no step may write 'docs/api.md' (F-1); plan may write nothing;")
