"""From the outside: what a person still had to look up elsewhere."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Project, failed, finished, passed, raises

JUDGED: dict[str, Any] = {"code": {"phase": "code"}, "review": {"reviews": "code"}}
WRONG = {
    "description": "collection failure",
    "category": "environment",
    "path": "/requirements/3",
    "evidence": "ImportError while importing test module\nModuleNotFoundError: No module named 'jwt'",
    "impact": "no test runs",
    "suggested_fix": "install pyjwt",
    "requirement_id": "REQ-9",
    "affected_phase": "code",
    "blocking": True,
    "severity": "critical",
}
DETAILS = (
    "environment",
    "/requirements/3",
    "No module named 'jwt'",
    "no test runs",
    "install pyjwt",
    "REQ-9",
    "blocking",
)


@pytest.mark.parametrize("view", [("show",), ("feedback", "list")])
def test_a_fixed_finding_keeps_everything_that_its_judge_said(make: Make, view: tuple[str, ...]) -> None:
    project = make({"steps": JUDGED}, code=[{"output": 1}, {"output": 2}], review=[failed(WRONG), passed()])
    assert project.run().outcome == "verified"
    text = project.backedge(*view).out
    assert ": fixed" in text
    for words in (*DETAILS, "caused in: code"):
        assert words in text, words


def test_a_person_is_told_the_category_and_the_phase_like_an_agent(make: Make) -> None:
    project = make({"steps": JUDGED, "limits": {"rounds_per_loop": 1}}, code=[{"output": 1}], review=[failed(WRONG)])
    assert project.run().code == 3
    for view in (("inbox",), ("show",), ("feedback", "list"), ("decide", "E-1", "history")):
        text = project.backedge(*view).out
        assert "category: environment" in text and "caused in: code" in text, (view, text)


def test_a_round_that_never_began_is_not_shown_as_the_next_one(make: Make) -> None:
    workflow = {"steps": JUDGED, "limits": {"rounds_per_loop": 1}}
    project = make(workflow, code=[{"output": 1}, {"output": 2}], review=[failed("one"), failed("two")])
    assert project.run().code == 3
    assert "round 2 (next)  F-2 → code: not yet" in project.backedge("show").out
    project.answer("E-1", "accept")
    for view in (("show",), ("feedback", "list")):
        text = project.backedge(*view).out
        assert "round 2 (dropped)  F-2 → code: the loop was closed before" in text and "not yet" not in text
    assert [each["state"] for each in project.show().loop["history"]] == ["done", "dropped"]


@pytest.mark.parametrize("lines", [2, 6, 7, 8])
def test_one_line_is_never_replaced_by_a_remark_about_one_line(make: Make, lines: int) -> None:
    evidence = "\n".join(f"line {number}" for number in range(lines))
    workflow = {"steps": JUDGED, "limits": {"rounds_per_loop": 1}}
    project = make(workflow, code=[{"output": 1}], review=[failed({"description": "one", "evidence": evidence})])
    project.run()
    assert "1 more line" not in project.backedge("inbox").out
    assert "1 more lines" not in project.backedge("logs").out


def choice(make: Make, **more: Any) -> Project:
    options = [{"option": "Polling", "rework": ["design"]}, {"option": "accept the delay", "accept": True}]
    item = raises("constraint_violation", "human", message="no sockets", options=options, **more)
    steps = {"design": {"phase": "design"}, "code": {"phase": "code", "needs": ["design"]}}
    project = make({"steps": steps}, code=[{"feedback": [item]}, {}])
    assert project.run().code == 3
    return project


def test_an_option_is_a_choice_by_itself(make: Make) -> None:
    project = choice(make)
    result = project.answer("E-1", "polling")
    assert result.loop["choice"]["option"] == "Polling" and result.attempts["design"] == 2


def test_a_mistyped_option_is_answered_with_the_nearest_one(make: Make) -> None:
    assert "Polling" in choice(make).refused("decide", "E-1", "Poling")


def test_a_free_text_is_no_choice(make: Make) -> None:
    steps = {"code": {"phase": "code"}}
    project = make({"steps": steps}, code=[{"feedback": [raises("context_request", "human", message="which?")]}, {}])
    assert project.run().code == 3
    assert "is not a valid choice" in project.refused("decide", "E-1", "eu-west")


def test_a_paused_run_ends_with_how_to_go_on(make: Make) -> None:
    steps = {"a": {}, "b": {"needs": ["a"]}}
    project = make({"steps": steps}, a=[{"!wait": "go"}])
    process = project.started("run")
    run, *_ = project.wait_for_execution("a")
    project.backedge("pause", run)
    (project.folder / "go").touch()
    said = finished(process)
    for text in (said.out, project.backedge("show").out):
        assert f"paused: nothing starts until you type backedge resume {run}" in text
    assert "nothing starts" not in project.backedge("resume").out


def test_an_overdue_question_is_overdue_in_every_list(make: Make) -> None:
    steps = {"code": {"phase": "code"}}
    script = [{"feedback": [raises("context_request", "human", message="which?")]}, {}]
    project = make({"steps": steps, "limits": {"response_timeout": "1s"}}, code=script)
    assert project.run().code == 3
    time.sleep(1.1)
    (row,) = project.backedge("runs", "--json").json
    assert row["overdue"] == ["E-1"]
    assert "E-1 (overdue): " in project.backedge("runs").out
    project.backedge("resume")
    assert "L-1 is overdue: no answer within 1 s" in project.backedge("show").out
    project.decide("E-1", "resolve", "--note", "the second one")
    assert "▸ code (attempt 2) with the result of L-1" in project.backedge("resume").err


def test_the_judge_is_told_what_every_step_did_about_its_findings(make: Make) -> None:
    steps = {
        "plan": {"phase": "planning"},
        "design": {"phase": "design", "needs": ["plan"]},
        "review": {"reviews": "design"},
    }
    finding = {"description": "no login", "affected_phase": "planning"}
    plan = [{"output": 1, "summary": "two units"}, {"output": 2, "summary": "added a login unit"}]
    project = make(
        {"steps": steps}, plan=plan, design=[{"output": 1}, {"output": 2}], review=[failed(finding), passed()]
    )
    assert project.run().outcome == "verified"
    tried = [(each["step"], each["summary"]) for each in project.briefings("review")[1]["tried"]]
    assert ("plan", "added a login unit") in tried


def test_an_attempt_with_an_answer_still_has_the_findings_that_it_addresses(make: Make) -> None:
    steps = {
        "design": {"phase": "design"},
        "code": {"phase": "code", "needs": ["design"]},
        "review": {"reviews": "code"},
    }
    question = raises("context_request", "design", message="which hash?")
    project = make(
        {"steps": steps},
        design=[{"output": 1}, {"answer": "argon2"}],
        code=[{"output": 1}, {"output": 2, "feedback": [question]}, {"output": 3}],
        review=[failed(WRONG), passed()],
    )
    assert project.run().outcome == "verified"
    third = project.briefings("code")[2]
    (kept,) = third["feedback"]["unverified"]
    assert (kept["id"], kept["evidence"], kept["suggested_fix"]) == ("F-1", WRONG["evidence"], "install pyjwt")
    assert third["feedback"]["findings"] == []
    assert json.dumps(third["feedback"]["resolutions"]).count("argon2") == 1


def test_a_person_says_where_it_shows_and_anything_more(make: Make) -> None:
    project = make({"steps": {"code": {"phase": "code"}}}, code=[{"output": 1, "!wait": "go"}, {"output": 2}])
    process = project.started("run")
    project.wait_for_execution("code")
    words = ("--artifact", "a.py:3", "--artifact", "b.py", "--details", '{"seen": [1]}', "--suggested-fix", "sort it")
    said = project.backedge(
        "feedback", "raise", "--kind", "fix_request", "--to", "code", "--message", "unsorted", *words
    )
    assert said.code == 0, said
    (project.folder / "go").touch()
    finished(process)
    (request,) = project.briefings("code")[1]["feedback"]["requests"]
    assert (request["artifacts"], request["details"]) == (["a.py:3", "b.py"], {"seen": [1]})


def test_a_text_of_several_lines_is_not_a_json_string_for_people_either(make: Make) -> None:
    item = raises("context_request", "human", message="which?", details={"trace": "line 1\nline 2", "seen": 3})
    steps = {"code": {"phase": "code"}, "review": {"reviews": "code", "agent": "human"}}
    project = make({"steps": steps}, code=[{"output": {"plan": "# Plan\n\n1. login"}}])
    assert project.run().code == 3
    assert "plan:\n    |   # Plan\n    | \n    |   1. login" in project.backedge("inbox").out
    project = make({"steps": {"code": {"phase": "code"}}}, code=[{"feedback": [item]}, {}])
    assert project.run().code == 3
    text = project.backedge("inbox").out
    assert "trace:\n      |   line 1\n      |   line 2" in text and "seen: 3" in text


NESTED = {"constraint": "no sockets", "nested": {"tried": [1, {"deep": "websocket handshake"}]}, "more": "x" * 60}


@pytest.mark.parametrize("view", [("inbox",), ("show",), ("feedback", "list")])
def test_details_are_shown_to_their_depth(make: Make, view: tuple[str, ...]) -> None:
    project = make({"steps": {"code": {"phase": "code"}}}, code=[{"feedback": [asked(details=NESTED)]}, {}])
    assert project.run().code == 3
    text = project.backedge(*view).out
    assert "constraint: no sockets" in text and '{"deep": "websocket handshake"}' in text and "more line" not in text


def asked(**more: Any) -> dict[str, Any]:
    return raises("context_request", "human", message="which hosting?", **more)


def test_the_place_in_the_output_is_shown_beside_the_file(make: Make) -> None:
    finding = {**WRONG, "file": "api.md", "line": 12}
    project = make({"steps": JUDGED, "limits": {"rounds_per_loop": 1}}, code=[{"output": 1}], review=[failed(finding)])
    assert project.run().code == 3
    for view in (("inbox",), ("show",), ("feedback", "list"), ("decide", "E-1", "history")):
        text = project.backedge(*view).out
        assert "api.md:12" in text and "/requirements/3" in text, view


def test_the_history_of_a_question_has_what_it_is_about(make: Make) -> None:
    steps = {"plan": {"phase": "planning"}, "deploy": {"needs": ["plan"], "approval": "human"}}
    project = make({"steps": steps}, plan=[{"output": "\n".join(f"unit {n}" for n in range(30))}])
    assert project.run().code == 3
    text = project.backedge("decide", "E-1", "history").out
    assert "unit 0" in text and "unit 17" in text and "unit 29" in text


def test_the_inbox_says_who_has_acknowledged_the_question(make: Make) -> None:
    project = make({"steps": {"code": {"phase": "code"}}}, code=[{"feedback": [asked()]}, {}])
    assert project.run().code == 3
    project.backedge("feedback", "acknowledge", "L-1", "--message", "I am on it", "--eta", "2h")
    assert "human acknowledges: I am on it; until 2h" in project.backedge("inbox").out
    (item,) = project.backedge("inbox", "--json").json
    assert item["responses"]["human"]["message"] == "I am on it"


def test_a_loop_shows_only_claims_about_its_own_findings(make: Make) -> None:
    steps = {"code": {"phase": "code"}, "review": {"reviews": "code"}, "test": {"tests": "code"}}
    fix = {"output": 2, "resolutions": [{"finding": "F-1", "status": "contested", "note": "the story says so"}]}
    project = make(
        {"steps": steps}, code=[{"output": 1}, fix], review=[failed("one"), passed()], test=[failed("two"), passed()]
    )
    assert project.run().outcome == "verified"
    text = project.backedge("show").out
    assert text.count("code says F-1 is contested: the story says so") == 1
    assert text.count("its author says: contested: the story says so") == 1


def test_text_that_is_cut_names_the_command_that_shows_all_of_it(make: Make) -> None:
    evidence = "\n".join(f"frame {number}" for number in range(30))
    workflow = {"steps": JUDGED, "limits": {"rounds_per_loop": 1}}
    project = make(workflow, code=[{"output": 1}], review=[failed({"description": "one", "evidence": evidence})])
    result = project.run()
    for view in (("show",), ("feedback", "list")):
        text = project.backedge(*view).out
        assert "frame 17" not in text and f"backedge show {result.run} --all" in text
    whole = project.backedge("show", "--all").out
    assert "frame 17" in whole and "--all" not in whole


def test_a_long_description_is_whole_where_the_loop_is_shown(make: Make) -> None:
    long = f"the discount is {'much ' * 30}too large"
    project = make({"steps": JUDGED}, code=[{"output": 1}, {"output": 2}], review=[failed(long), passed()])
    project.run()
    for view in (("show",), ("feedback", "list")):
        assert f"{long}: fixed" in project.backedge(*view).out


def test_the_answer_to_a_question_is_why_its_source_works_again(make: Make) -> None:
    steps = {"plan": {"phase": "planning"}, "code": {"phase": "code", "needs": ["plan"]}}
    item = raises("context_request", "plan", message="which size?")
    project = make({"steps": steps}, plan=[{}, {"answer": "50"}], code=[{"feedback": [item]}, {}])
    assert "▸ code (attempt 2) with the answer to L-1" in project.run().err


def test_one_step_of_a_run_has_no_evidence_of_others(make: Make) -> None:
    judge = {"reviews": "code", "report": "exitcode", "run": ["true"]}
    project = make({"steps": {"code": {"phase": "code"}, "test": judge}}, code=[{"output": 1}])
    assert project.run().outcome == "verified"
    assert "evidence:" in project.backedge("show").out
    assert "evidence:" in project.backedge("show", "--step", "test").out
    assert "evidence:" not in project.backedge("show", "--step", "code").out


def test_the_summary_names_what_was_left_and_why_steps_were_skipped(make: Make) -> None:
    steps = {**JUDGED, "deploy": {"needs": ["review"], "when": "code:/size > 9"}}
    minor = {"description": "a name could be better", "severity": "low"}
    project = make(
        {"steps": steps}, code=[{"output": {"size": 2}}], review=[{"verdict": "needs_improvement", "findings": [minor]}]
    )
    said = project.backedge("run")
    assert said.code == 0
    assert "F-1 [low] deferred: a name could be better" in said.out
    assert "skipped: deploy (code:/size > 9 is false)" in said.out


@pytest.mark.parametrize(
    ("policy", "words"), [("error", "why: limit"), ("skip", "skipped: review (skipped by on_breach)")]
)
def test_the_summary_says_why_a_run_failed_or_was_only_accepted(make: Make, policy: str, words: str) -> None:
    workflow = {"steps": JUDGED, "limits": {"rounds_per_loop": 0}, "on_breach": policy}
    said = make(workflow, code=[{"output": 1}], review=[failed("one")]).backedge("run")
    assert words in said.out


BUILT: dict[str, Any] = {
    "plan": {"phase": "planning"},
    "design": {"phase": "design", "needs": ["plan"]},
    "code": {"phase": "code", "needs": ["design"]},
}


def test_a_reviewer_gets_what_the_work_is_based_on(make: Make) -> None:
    steps = {**BUILT, "review": {"reviews": "code"}}
    project = make(
        {"steps": steps}, plan=[{"output": "two units"}], design=[{"output": "one table"}], review=[passed()]
    )
    assert project.run().outcome == "verified"
    (told,) = project.briefings("review")
    assert list(told["based_on"].items()) == [("design", "one table"), ("plan", "two units")]
    assert project.briefings("code")[0]["based_on"] == {}


def test_a_person_who_judges_sees_what_the_work_is_based_on(make: Make) -> None:
    steps = {**BUILT, "review": {"reviews": "code", "agent": "human"}}
    project = make(
        {"steps": steps}, plan=[{"output": "two units"}], design=[{"output": "one table"}], code=[{"output": "c"}]
    )
    assert project.run().code == 3
    said = project.backedge("inbox").out
    assert "two units" in said and "one table" in said
