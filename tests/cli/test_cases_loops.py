"""From the outside: the cases of the loop engine (A0) and of the refinement loop (A1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Project, Result, failed, passed, raises

# A0: the loop engine

TEAM: dict[str, Any] = {
    "profile": "bmad",
    "steps": {
        "architect": {"phase": "planning"},
        "pm": {"phase": "planning"},
        "developer": {"phase": "code", "needs": ["architect", "pm"]},
    },
}


def asked(make: Make, item: dict[str, Any], **more: Any) -> tuple[Project, Result]:
    """A developer that raises feedback in its first attempt and accepts the result."""
    project = make(TEAM, developer=[{"output": "stub", "feedback": [item]}, {"output": "done"}], **more)
    return project, project.run()


def test_a0_01_a_triggered_loop_is_listed_and_noticed_once_by_its_target(make: Make) -> None:
    project, result = asked(make, raises("technical_infeasibility", "architect", message="no push"))
    assert (result.code, result.outcome) == (0, "done")
    assert (result.loop["id"], result.loop["kind"], result.loop["state"]) == (
        "L-1",
        "technical_infeasibility",
        "resolved",
    )
    first, second = project.briefings("architect")
    assert first["feedback"]["requests"] == []
    (notice,) = second["feedback"]["requests"]
    assert (notice["loop"], notice["source"], notice["message"]) == ("L-1", "developer", "no push")
    assert project.briefings("pm")[0]["feedback"]["requests"] == [] and len(project.briefings("pm")) == 1


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"kind": "fix_request", "message": "x"}, "to is missing"),
        ({"kind": "fix_request", "to": "architect"}, "message is missing"),
        ({"kind": "fix_request", "to": "architect", "message": "  "}, "message is missing"),
        ({"kind": "wish", "to": "architect", "message": "x"}, "kind 'wish' is unknown"),
    ],
)
def test_a0_02_a_missing_field_is_named_and_nothing_is_stored(make: Make, item: dict[str, Any], field: str) -> None:
    project, result = asked(make, item)
    # The agent is asked again, so that what it saw is not lost.
    assert project.briefings("developer")[1]["last_error"].startswith(f"its feedback can go nowhere: {field}")
    assert (result.outcome, result.loops, result.refused) == ("done", [], [])
    assert result.attempts == {"architect": 1, "pm": 1, "developer": 2}


def test_a0_02_a_missing_kind_is_an_error_of_the_agent(make: Make) -> None:
    _, result = asked(make, {"to": "architect", "message": "x"})
    assert (result.outcome, result.attempts["developer"], result.loops) == ("done", 2, [])


def test_a0_03_a_single_target_may_be_a_plain_word(make: Make) -> None:
    _, result = asked(make, {"kind": "fix_request", "to": "architect", "message": "x"})
    assert result.loop["targets"] == ["architect"]


def test_a0_04_two_targets_get_one_notice_each_with_everything_in_it(make: Make) -> None:
    options = [{"option": "polling", "effort": "low", "impact": "slower", "rework": ["architect"]}]
    item = raises("fix_request", "architect", "pm", severity="medium", details={"api": [1, None]}, options=options)
    project, result = asked(make, item)
    assert (result.loop["targets"], result.loop["rounds"]) == (["architect", "pm"], 1)
    for name in ("architect", "pm"):
        (notice,) = project.briefings(name)[1]["feedback"]["requests"]
        assert (notice["severity"], notice["message"]) == ("medium", "mend it")
        offered = [{**option, "accept": False} for option in options]
        assert (notice["details"], notice["options"]) == ({"api": [1, None]}, offered)


def test_a0_05_without_a_severity_it_is_high(make: Make) -> None:
    _, result = asked(make, raises("fix_request", "pm"))
    assert result.loop["severity"] == "high"


@pytest.mark.parametrize(
    ("more", "paused"),
    [
        ({"severity": "blocking"}, True),
        ({"severity": "critical"}, True),
        ({"blocking": True}, True),
        ({"severity": "medium"}, False),
        ({"severity": "low"}, False),
    ],
)
def test_a0_06_blocking_or_critical_pauses_and_less_does_not(make: Make, more: dict[str, Any], paused: bool) -> None:
    aside = {"writer": {"phase": "test", "needs": ["developer"]}, "extra": {"phase": "test", "needs": ["pm"]}}
    project = make(
        {**TEAM, "steps": {**TEAM["steps"], **aside}},
        developer=[{"feedback": [raises("fix_request", "human", **more)]}, {}],
        pm=[{}],
        extra=[{"!sleep": 0.3}],
    )
    result = project.run("--max-parallel", "1")
    assert (result.code, result.outcome, result.paused) == (3, "waiting", paused)
    assert result.loop["blocking"] is (more.get("severity") == "blocking" or "blocking" in more)
    (packet,) = project.backedge("inbox", "--json").json
    assert (packet["loop"], packet["reason"]) == ("L-1", "asked")
    again = project.answer(packet["id"], "resolve", "--note", "go on")
    assert (again.outcome, again.paused) == ("done", False)


def test_a0_08_a_waiting_attempt_gets_the_resolution_with_its_option(make: Make) -> None:
    options = [{"option": "polling", "effort": "low"}, {"option": "push", "effort": "high"}]
    project, result = asked(make, raises("fix_request", "human", options=options))
    assert result.code == 3
    again = project.answer("E-1", "resolve", "--option", "polling", "--by", "ann")
    assert (again.outcome, again.loop["state"]) == ("done", "resolved")
    assert again.loop["resolution"]["option"] == "polling" and again.loop["resolution"]["by"] == "ann"
    (told,) = project.briefings("developer")[1]["feedback"]["resolutions"]
    assert (told["loop"], told["state"], told["option"], told["by"]) == ("L-1", "resolved", "polling", "ann")


def test_a0_11_a_manual_resolution_keeps_reason_and_count(make: Make) -> None:
    work = {**TEAM, "limits": {"rounds_per_loop": 0}}
    project = make(work, developer=[{"feedback": [raises("fix_request", "architect")]}, {}])
    assert project.run().breach == ("rounds_per_loop", 0, 0)
    again = project.answer("E-1", "resolve", "--note", "done by hand")
    assert again.loop["state"] == "resolved"
    assert again.loop["breach"] == {"limit": "rounds_per_loop", "count": 0, "bound": 0}
    assert again.escalations[0]["reason"] == "limit rounds_per_loop (0/0)"


def test_a0_12_resolving_twice_or_nothing_is_a_clear_error(make: Make) -> None:
    project, _ = asked(make, raises("fix_request", "human"))
    project.decide("E-1", "resolve", "--note", "yes", "--by", "ann")
    assert "E-1 was already decided: resolve by ann" in project.refused("decide", "E-1", "resolve", "--note", "no")
    assert "unknown escalation 'E-9'" in project.refused("decide", "E-9", "resolve", "--note", "no")


def test_a0_14_an_acknowledgement_by_a_target_is_recorded_and_any_other_is_refused(make: Make) -> None:
    project, result = asked(make, raises("fix_request", "human"))
    assert result.loop["state"] == "waiting_response"
    for command in ("acknowledge", "ack"):
        assert "'architect' is not a target of L-1" in project.refused(
            "feedback", command, "L-1", "--target", "architect"
        )
    said = project.backedge(
        "feedback", "ack", "L-1", "--target", "human", "--message", "on it", "--action", "a", "--eta", "2h"
    )
    assert said.code == 0
    assert project.show().loop["state"] == "resolving"
    (event,) = [each for each in project.events() if each["type"].startswith("feedback_acknowledged")]
    assert (event["target"], event["message"], event["action"], event["eta"]) == ("human", "on it", "a", "2h")
    assert "unknown loop 'L-7'" in project.refused("feedback", "ack", "L-7", "--target", "pm")
    assert "unknown loop 'L-7'" in project.refused("feedback", "ack", "L-7")


@pytest.mark.parametrize("to", [["human"], ["pm", "human"]])
def test_an_acknowledgement_needs_a_target_only_if_there_are_several(make: Make, to: list[str]) -> None:
    project, _ = asked(make, raises("fix_request", *to))
    if len(to) == 1:
        assert project.backedge("feedback", "ack", "L-1").out == "L-1 acknowledged by human\n"
    else:
        assert "choose one with --target (pm, human)" in project.refused("feedback", "ack", "L-1")


REVIEWED: dict[str, Any] = {"steps": {"code": {"phase": "code"}, "review": {"reviews": "code"}}}


@pytest.mark.parametrize(("bound", "outcome"), [(1, "waiting"), (2, "verified")])
def test_a0_15_a_fix_that_fails_validation_is_reworked_or_escalates(make: Make, bound: int, outcome: str) -> None:
    work = {**REVIEWED, "limits": {"rounds_per_loop": bound}}
    result = make(work, review=[failed("x"), failed("y"), passed()]).run()
    assert (result.outcome, result.loop["rounds"]) == (outcome, bound)
    assert result.loop["state"] == ("escalating" if bound == 1 else "resolved")


def test_a0_17_another_process_reads_the_same_state(make: Make) -> None:
    project, result = asked(make, raises("fix_request", "human", details={"k": [1, None]}))
    again = project.show().report
    again["usage"]["seconds"] = result.report["usage"]["seconds"]
    assert again == result.report


# A1: the refinement loop

SDLC: dict[str, Any] = {
    "profile": "ai-sdlc",
    "steps": {
        "research": {"phase": "research"},
        "plan": {"phase": "planning", "needs": ["research"]},
        "implement": {"phase": "code", "needs": ["plan"]},
        "review": {"reviews": "implement"},
        "create_pr": {"needs": ["implement"]},
    },
}
BLOCKER = {"description": "injection", "severity": "blocker", "category": "code_quality"}


def refining(make: Make, *reviews: Any, **more: Any) -> tuple[Project, Result]:
    project = make({**SDLC, **more}, review=list(reviews))
    return project, project.run()


def test_a1_01_a_rejection_with_one_blocker_is_round_one_of_implement(make: Make) -> None:
    project, result = refining(make, failed(BLOCKER), passed())
    assert (result.code, result.outcome) == (0, "verified")
    assert (result.loop["targets"], result.loop["rounds"], result.loop["routed_by"]) == (["implement"], 1, "routes")
    told = project.briefings("implement")[1]
    assert (told["round"], told["mode"], told["attempt"]) == (1, "rework", 2)


def test_a1_02_and_13_nothing_after_a_rejected_implementation_starts(make: Make) -> None:
    project, result = refining(make, failed(BLOCKER), failed({**BLOCKER, "description": "again"}), passed())
    order = [(step, attempt) for _, step, attempt, _ in project.executions()]
    assert order.index(("create_pr", "1")) > order.index(("review", "3"))
    assert result.attempts == {"research": 1, "plan": 1, "implement": 3, "review": 3, "create_pr": 1}


def test_a1_03_rework_of_the_plan_reruns_all_later_phases(make: Make) -> None:
    _, result = refining(make, failed({**BLOCKER, "category": "scope"}), passed())
    assert result.attempts == {"research": 1, "plan": 2, "implement": 2, "review": 2, "create_pr": 1}


def test_a1_05_and_08_the_second_iteration_has_the_history_of_the_first(make: Make) -> None:
    project, _ = refining(make, failed(BLOCKER), failed(BLOCKER), passed())
    none, first, second = project.briefings("implement")
    assert (none["round"], none["history"], none["mode"]) == (0, [], "work")
    assert (first["round"], first["history"]) == (1, [])
    assert (second["round"], [each["round"] for each in second["history"]]) == (2, [1])
    assert "injection" in second["history"][0]["findings"][0]
    assert [each["persistent"] for each in first["feedback"]["findings"]] == [False]
    assert [each["persistent"] for each in second["feedback"]["findings"]] == [True]


def test_a1_06_a_success_clears_the_last_error(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code"}}}, a=[{"!exit": 1, "!stderr": "no disk"}, {}])
    result = project.run()
    assert (result.attempts, result.steps["a"]["last_error"]) == ({"a": 2}, None)
    assert "no disk" in next(each["error"] for each in project.events() if each["type"].startswith("attempt_failed"))


@pytest.mark.parametrize(
    ("category", "blockers", "target"),
    [
        ("missing_research", 1, "research"),
        ("architecture", 1, "plan"),
        ("scope", 1, "plan"),
        ("story_type", 1, "plan"),
        ("content_type", 1, "plan"),
        ("code_quality", 1, "implement"),
        ("code_quality", 2, "plan"),
    ],
)
def test_a1_07_categories_and_blockers_choose_the_phase(make: Make, category: str, blockers: int, target: str) -> None:
    found = [{**BLOCKER, "description": f"{n}", "category": category} for n in range(blockers)]
    # The first round is enough to see where it goes.
    _, result = refining(make, failed(*found), passed())
    assert result.loop["targets"] == [target]
    assert {each["introduced_by"] for each in result.findings} == {target}


def test_a1_09_a_briefing_has_the_worst_first_with_place_and_fix(make: Make) -> None:
    blocker = {**BLOCKER, "file": "src/db/query.ts", "line": 42, "suggested_fix": "bind it"}
    major = {"description": "slow", "severity": "major", "file": "src/db/pool.ts"}
    project, _ = refining(make, failed(major, blocker), passed())
    found = project.briefings("implement")[1]["feedback"]["findings"]
    assert [(each["file"], each["line"], each["suggested_fix"]) for each in found] == [
        ("src/db/query.ts", 42, "bind it"),
        ("src/db/pool.ts", None, None),
    ]
    assert [(each["severity"], each["blocking"], each["word"]) for each in found] == [
        ("critical", True, "blocker"),
        ("high", False, "major"),
    ]


def test_a1_10_a_failing_review_without_findings_sends_its_summary(make: Make) -> None:
    project = make(REVIEWED, review=[{"verdict": "fail", "summary": "not what was asked for"}, passed()])
    assert project.run().finding["description"] == "not what was asked for"
    assert project.told("code") == [[], ["not what was asked for"]]


def test_a1_12_an_approval_leads_straight_to_the_pull_request(make: Make) -> None:
    project, result = refining(make, passed())
    assert (result.attempts["create_pr"], result.loops) == (1, [])
    assert project.executions()[-1][1] == "create_pr"


def test_a1_11_and_16_the_fourth_rejection_blocks_after_iterations_one_to_three(make: Make) -> None:
    project, result = refining(make, *[failed({**BLOCKER, "description": f"{n}"}) for n in range(4)])
    assert (result.code, result.outcome, result.breach) == (3, "waiting", ("rounds_per_loop", 3, 3))
    assert [told["round"] for told in project.briefings("implement")] == [0, 1, 2, 3]
    assert result.attempts["create_pr"] == 0
    assert project.told("implement") == [[], ["0"], ["1"], ["2"]]


@pytest.mark.parametrize(("choice", "more"), [("revise", 3), ("continue", 2)])
def test_a1_19_unblocking_resets_the_counters_only_if_asked_to(make: Make, choice: str, more: int) -> None:
    project, _ = refining(make, *[failed({**BLOCKER, "description": f"{n}"}) for n in range(20)])
    again = project.answer("E-1", choice, "--rounds", "2", "--note", "another way")
    assert again.attempts["implement"] == 4 + more
    assert project.briefings("implement")[4]["feedback"]["advice"] == ["another way"]
    assert "was already decided" in project.refused("decide", "E-1", choice, "--note", "x", "--run", again.run)


def test_a1_22_a_reason_is_one_clean_line_on_the_terminal(make: Make) -> None:
    hostile = "\x1b[31mMax\x1b[0m\n `attempts`\r\n reached"
    project = make(
        {"steps": {"a": {"phase": "code"}}, "limits": {"errors_in_a_row": 1}}, a=[{"!exit": 1, "!stderr": hostile}]
    )
    assert project.run().code == 3
    (line,) = [each for each in project.backedge("show").out.splitlines() if "! a broke" in each]
    assert line.endswith(": Max attempts reached")


@pytest.mark.parametrize(
    ("findings", "outcome"),
    [
        ([{"description": "1", "severity": "critical"}], "pass"),
        ([{"description": "1", "severity": "critical"}, {"description": "2", "severity": "critical"}], "fail"),
        ([{"description": "1", "severity": "blocker"}], "fail"),
        ([{"description": f"{n}", "severity": "major"} for n in range(9)], "pass"),
    ],
)
def test_a1_the_verdict_is_computed_from_the_findings(make: Make, findings: list[Any], outcome: str) -> None:
    _project, result = refining(make, {"findings": findings}, passed())
    assert result.attempts["review"] == (1 if outcome == "pass" else 2)
    assert {each["status"] for each in result.findings} == ({"deferred"} if outcome == "pass" else {"fixed"})
