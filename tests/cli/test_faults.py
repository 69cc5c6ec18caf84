"""From the outside: faults of earlier systems that must not come back, numbered by system."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Project, Result, failed, finished, passed, raises, until

PLANNED: dict[str, Any] = {
    "plan": {"phase": "planning"},
    "design": {"phase": "design", "needs": ["plan"]},
    "review": {"reviews": "design"},
}
TWO: dict[str, Any] = {"a": {"phase": "planning"}, "b": {"phase": "code", "needs": ["a"]}}


def planned(make: Make, *reviews: Any, **more: Any) -> tuple[Project, Result]:
    project = make({"steps": PLANNED, **more}, review=list(reviews))
    return project, project.run()


# 0: the loop engine


def test_fault_0_ids_of_runs_and_loops_do_not_collide_within_one_instant(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code"}}})
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: project.run(), range(4)))
    assert len({result.run for result in results}) == 4
    raising = ["feedback", "raise", "--kind", "fix_request", "--to", "a", "--message", "x", "--run", results[0].run]
    with ThreadPoolExecutor(3) as pool:
        loops = list(pool.map(lambda _: project.backedge(*raising).out.strip(), range(3)))
    assert sorted(loops) == ["L-1", "L-2", "L-3"]


def test_fault_0_details_and_options_are_not_lost(make: Make) -> None:
    item = raises("fix_request", "a", details={"deep": [1, {"k": None}]}, options=[{"option": "polling"}])
    project = make({"steps": TWO}, b=[{"feedback": [item]}, {}])
    project.run()
    (request,) = project.briefings("a")[1]["feedback"]["requests"]
    assert request["details"] == {"deep": [1, {"k": None}]}
    assert request["options"] == [{"option": "polling", "effort": "", "impact": "", "rework": [], "accept": False}]


def test_fault_0_resolving_one_of_two_blockers_does_not_resume_the_run(make: Make) -> None:
    items = [raises("fix_request", "human", message=f"{n}", blocking=True) for n in (1, 2)]
    steps = {**TWO, "aside": {"phase": "test", "needs": ["b"]}}
    project = make({"steps": steps}, b=[{"feedback": items}, {}])
    assert len(project.run().escalations) == 2
    project.decide("E-1", "resolve", "--note", "one")
    result = project.resume()
    assert (result.code, result.paused, result.attempts["aside"]) == (3, True, 0)
    again = project.answer("E-2", "resolve", "--note", "two")
    assert (again.outcome, again.attempts["aside"]) == ("done", 1)


def test_fault_0_a_decision_reaches_the_waiting_process_at_once(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code"}}}, a=[{"feedback": [raises("fix_request", "human")]}, {}])
    process = project.started("run", "--wait", "--json")
    project.wait_for_execution("a")
    until(lambda: project.backedge("inbox", "--json").code == 0 and project.backedge("inbox", "--json").json)
    project.decide("E-1", "resolve", "--note", "yes")
    decided = time.monotonic()
    assert finished(process).code == 0
    assert time.monotonic() - decided < 3


# 1: the refinement loop


def test_fault_1_rework_of_the_plan_reruns_everything_after_it(make: Make) -> None:
    _, result = planned(make, failed({"description": "x", "affected_phase": "planning"}), passed())
    assert result.attempts == {"plan": 2, "design": 2, "review": 2}
    assert (result.steps["review"]["verdict"], result.loop["rounds"]) == ("pass", 1)


def test_fault_1_no_record_stays_in_progress_forever(make: Make) -> None:
    _, result = planned(make, failed("x"), failed("y"), passed())
    assert [each["state"] for each in result.loops] == ["resolved"]
    assert {each["status"] for each in result.findings} == {"fixed"}


def test_fault_1_the_last_error_is_on_disk(make: Make) -> None:
    project = make(
        {"steps": {"a": {"phase": "code"}}, "limits": {"errors_in_a_row": 1}}, a=[{"!exit": 1, "!stderr": "no disk"}]
    )
    project.run()
    assert "no disk" in project.show().steps["a"]["last_error"]


# 2: the tight loop


def test_fault_2_three_different_issues_are_not_the_same_issue(make: Make) -> None:
    _, result = planned(make, failed("x"), failed("y"), failed("z"), passed())
    assert (result.outcome, result.loop["rounds"]) == ("verified", 3)


def test_fault_2_an_edit_after_a_passed_review_voids_the_pass(make: Make) -> None:
    steps = {"code": {"phase": "code"}, "review": {"reviews": "code"}, "test": {"tests": "code"}}
    project = make({"profile": "tight-loop", "steps": steps}, review=[passed()], test=[failed("t"), passed()])
    assert project.run().attempts == {"code": 2, "review": 2, "test": 2}


def test_fault_2_with_two_domains_both_finish(make: Make) -> None:
    steps: dict[str, Any] = {}
    for name in ("api", "web"):
        steps |= {name: {"phase": "code"}, f"{name}_review": {"reviews": name}, f"{name}_test": {"tests": name}}
    rejects = [failed("x"), passed()]
    judges = {"api_review": rejects, "web_test": rejects, "web_review": [passed()], "api_test": [passed()]}
    result = make({"profile": "tight-loop", "steps": steps}, **judges).run()
    assert (result.outcome, [each["state"] for each in result.loops]) == ("verified", ["resolved", "resolved"])


# 3: phase-aware routing


def test_fault_3_after_a_failed_redesign_every_retry_has_the_feedback(make: Make) -> None:
    project = make(
        {"steps": PLANNED}, design=[{}, {"!exit": 1}, {"!exit": 1}, {"output": 2}], review=[failed("x"), passed()]
    )
    assert project.run().outcome == "verified"
    assert project.told("design") == [[], ["x"], ["x"], ["x"]]


def test_fault_3_a_both_issue_reaches_the_planner_once_and_the_designer_once(make: Make) -> None:
    project, result = planned(make, failed({"description": "x", "affected_phase": ["planning", "design"]}), passed())
    assert (project.told("plan"), project.told("design")) == ([[], ["x"]], [[], ["x"]])
    assert result.loop["targets"] == ["plan", "design"]


def test_fault_3_the_total_counts_corrections_not_calls_and_does_not_overshoot(make: Make) -> None:
    many = [failed(f"{n}", {"description": f"p{n}", "affected_phase": "planning"}) for n in range(9)]
    _, result = planned(make, *many, limits={"rounds_total": 4, "rounds_per_loop": False})
    assert (result.breach, result.attempts) == (("rounds_total", 4, 4), {"plan": 3, "design": 3, "review": 3})


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"verdict": "fail"}, "the verdict is fail without findings"),
        (
            passed(findings=[{"description": "x", "severity": "critical"}]),
            "the verdict is pass, but 'x' is critical or high",
        ),
        (failed({"description": " "}), "a finding has no description"),
        (passed(resolutions=[{"finding": "F-7", "status": "fixed"}]), "resolutions name 'F-7'"),
        ({"verdict": "approved"}, "the outcome is not understood"),
        ({"verdict": "pass", "verdct": "fail"}, "verdct"),
        ({"verdict": "fail", "findings": [{"description": "x", "severity": "banana"}]}, "severity 'banana' is unknown"),
    ],
)
def test_fault_3_a_contradictory_verdict_is_not_a_pass_and_the_judge_is_asked_again(
    make: Make, said: Any, complaint: str
) -> None:
    project, result = planned(make, said, passed())
    assert (result.outcome, result.attempts["review"], result.loops) == ("verified", 2, [])
    (error,) = [each["error"] for each in project.events() if each["type"].startswith("attempt_failed")]
    assert complaint in error


# 4: the feedback coordinator


def test_fault_4_fixing_and_verifying_ends_when_verification_keeps_failing(make: Make) -> None:
    again = [{"output": n, "feedback": [raises("fix_request", "a", message=f"{n}")]} for n in range(20)]
    result = make({"steps": TWO}, b=again).run()
    assert (result.code, result.breach, result.loop["rounds"]) == (3, ("rounds_per_loop", 5, 5), 5)


def test_fault_4_a_new_item_does_not_change_resolved_history(make: Make) -> None:
    project, result = planned(make, failed("x"), passed())
    project.backedge("feedback", "raise", "--kind", "fix_request", "--to", "design", "--message", "x")
    assert project.show().loops[0] == result.loop


def test_fault_4_one_refused_target_refuses_the_whole_item(make: Make) -> None:
    project = make({"steps": TWO}, b=[{"feedback": [raises("fix_request", "a", "nobody")]}, {}])
    result = project.run()
    assert (result.loops, len(project.briefings("a"))) == ([], 1)
    assert "unknown target 'nobody'" in project.briefings("b")[1]["last_error"]


def test_fault_4_quotes_in_a_run_id_are_only_an_id(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code"}}, "limits": {"errors_in_a_row": 1}}, a=[{"!exit": 1}, {}])
    name = "r'; DROP TABLE runs; --\""
    assert project.backedge("run", "--json", "--run", name).json["run"] == name
    assert project.backedge("decide", "E-1", "continue", "--run", name).code == 0
    assert project.backedge("resume", "--json", name).json["outcome"] == "done"
    assert project.backedge("audit", "verify").code == 0


# elsewhere in the field


def test_fault_elsewhere_a_missed_finding_does_not_move_the_goalposts_silently(make: Make) -> None:
    late = {"description": "style", "severity": "medium"}
    _, result = planned(make, failed("x"), failed("y", late), passed())
    assert [(each["description"], each["status"]) for each in result.findings] == [
        ("x", "fixed"),
        ("y", "fixed"),
        ("style", "deferred"),
    ]


@pytest.mark.parametrize(("policy", "outcome"), [("rework", "verified"), ("defer", "verified"), ("ask", "waiting")])
def test_fault_elsewhere_new_findings_follow_the_policy_of_the_file(make: Make, policy: str, outcome: str) -> None:
    late = {"description": "late", "severity": "low"}
    project, result = planned(make, failed("x"), failed(late), passed(), new_findings=policy)
    assert result.outcome == outcome
    assert len(project.briefings("design")) == (3 if policy == "rework" else 2)


def test_fault_elsewhere_a_step_whose_input_did_not_change_is_not_run_again(make: Make) -> None:
    steps = {**PLANNED, "docs": {"needs": ["design"], "reads": {"design": ["/api"]}}, "code": {"needs": ["design"]}}
    steps["plan"] = {**PLANNED["plan"], "writes": []}
    steps["design"] = {**PLANNED["design"], "writes": []}
    project = make(
        {"steps": steps},
        design=[{"output": {"api": 1, "n": 1}}, {"output": {"api": 1, "n": 2}}],
        review=[passed()],
    )
    assert project.run().outcome == "verified"
    project.backedge("feedback", "raise", "--kind", "fix_request", "--to", "design", "--message", "x")
    result = project.resume()
    assert (result.outcome, result.attempts["docs"], result.attempts["code"]) == ("verified", 1, 2)
