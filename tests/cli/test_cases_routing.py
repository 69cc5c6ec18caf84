"""From the outside: the cases of phase-aware routing (A3) and of the feedback coordinator (A4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Project, Result, failed, passed, raises

# A3: phase-aware routing

ASP: dict[str, Any] = {
    "profile": "asp",
    "steps": {
        "plan": {"phase": "planning"},
        "design": {"phase": "design", "needs": ["plan"]},
        "review": {"reviews": "design"},
    },
}
HIGH_DESIGN = {"description": "no index", "severity": "High", "affected_phase": "Design"}
PLANNING = {"description": "no authentication", "severity": "critical", "affected_phase": ["planning"]}


def asp(make: Make, *reviews: Any) -> tuple[Project, Result]:
    project = make(ASP, review=list(reviews))
    return project, project.run()


def test_a3_01_a_review_that_passes_at_once_sends_no_feedback(make: Make) -> None:
    project, result = asp(make, passed())
    assert (result.attempts, result.outcome) == ({"plan": 1, "design": 1, "review": 1}, "verified")
    nothing: dict[str, Any] = {
        "findings": [],
        "requests": [],
        "resolutions": [],
        "advice": [],
        "verdicts": [],
        "answered": [],
        "unverified": [],
        "unverified_requests": [],
    }
    assert [told["feedback"] for name in result.attempts for told in project.briefings(name)] == [nothing] * 3


def test_a3_02_one_high_design_issue_then_pass(make: Make) -> None:
    project, result = asp(make, failed(HIGH_DESIGN), passed())
    assert result.attempts == {"plan": 1, "design": 2, "review": 2}
    assert project.told("design") == [[], ["no index"]]
    assert result.steps["design"]["version"] == 2
    assert (result.loop["routed_by"], result.loop["targets"]) == ("affected_phase", ["design"])


def test_a3_03_one_planning_issue_then_pass(make: Make) -> None:
    project, result = asp(make, failed(PLANNING), passed())
    assert result.attempts == {"plan": 2, "design": 2, "review": 2}
    assert (project.told("plan"), project.told("design")) == ([[], ["no authentication"]], [[], []])
    assert (result.finding["introduced_by"], result.finding["status"]) == ("plan", "fixed")
    (asked,) = project.briefings("review")[1]["verify"]
    assert (asked["id"], asked["description"]) == ("F-1", "no authentication")
    assert project.briefings("review")[1]["mode"] == "verify"


def test_show_names_every_rule_that_routed_a_round(make: Make) -> None:
    workflow = {**ASP, "profile": "default", "routes": [{"to": "plan", "keywords": "login"}]}
    reviews = [failed("no login", "no index"), passed()]
    project = make(workflow, review=reviews)
    assert "↩ L-1 plan, design ◄── review, round 1 of " in project.backedge("run").err
    assert "(by routes, subject): attempt 2" in project.backedge("show").out


def test_a3_06_needs_improvement_is_accepted_without_a_loop(make: Make) -> None:
    project = make({**ASP, "profile": "default"}, review=[{"verdict": "needs_improvement", "findings": [HIGH_DESIGN]}])
    result = project.run()
    # It goes on without a loop, but what leaves a high finding behind is not verified.
    assert (result.code, result.outcome, result.loops) == (4, "accepted", [])
    assert result.finding["status"] == "deferred"


@pytest.mark.parametrize(("finding", "name"), [(HIGH_DESIGN, "design"), (PLANNING, "plan")])
def test_a3_08_work_that_always_fails_stops_after_three_and_names_the_limit(
    make: Make, finding: Any, name: str
) -> None:
    _, result = asp(make, failed(finding))
    assert (result.attempts[name], result.breach) == (3, ("rounds_per_step", 2, 2))
    assert result.loop["breach"] == {"limit": "rounds_per_step", "count": 2, "bound": 2}


def test_a3_12_without_an_affected_phase_the_step_under_review_gets_it(make: Make) -> None:
    steps = {**ASP["steps"], "code": {"phase": "code", "needs": ["design"]}, "code_review": {"reviews": "code"}}
    critical = {"description": "x", "severity": "critical"}
    project = make({**ASP, "steps": steps}, review=[passed()], code_review=[failed(critical), passed()])
    result = project.run()
    assert (result.loop["targets"], result.loop["routed_by"]) == (["code"], "subject")
    assert result.attempts == {"plan": 1, "design": 1, "review": 1, "code": 2, "code_review": 2}


def test_a3_12_an_unknown_phase_is_an_error_of_the_judge_that_names_it(make: Make) -> None:
    project, result = asp(make, failed({**HIGH_DESIGN, "affected_phase": "desing"}), passed())
    assert (result.outcome, result.loops, result.attempts["review"]) == ("verified", [], 2)
    (error,) = [each["error"] for each in project.events() if each["type"].startswith("attempt_failed")]
    assert error.startswith("affected_phase 'desing' is unknown: did you mean 'design'?")


@pytest.mark.parametrize(
    ("findings", "word"),
    [
        (["high"] * 4, "conditional"),
        (["high"] * 5, "fail"),
        (["critical"], "fail"),
        (["medium"] * 9, "pass"),
        ([], "pass"),
    ],
)
def test_a3_14_four_high_pass_conditionally_five_or_a_critical_do_not(
    make: Make, findings: list[str], word: str
) -> None:
    found = [{"description": f"{n}", "severity": severity} for n, severity in enumerate(findings)]
    work = {"profile": "asp", "steps": {"code": {"phase": "code"}, "review": {"reviews": "code"}}}
    project = make(work, review=[{"findings": found}, passed()])
    result = project.run()
    assert result.attempts == ({"code": 2, "review": 2} if word == "fail" else {"code": 1, "review": 1})
    assert next(each["word"] for each in project.events() if each["type"].startswith("verdict_given")) == word
    if word != "fail":
        assert (result.code, result.steps["review"]["verdict"]) == (0, word)


def test_a3_16_a_failing_test_gets_one_regeneration_and_is_then_reported(make: Make) -> None:
    work = {"profile": "asp", "steps": {"code": {"phase": "code"}, "test": {"tests": "code"}}}
    project = make(work, test=[failed("x"), failed("y")])
    result = project.run()
    assert (result.attempts, result.breach) == ({"code": 2, "test": 2}, ("rounds_per_loop", 1, 1))
    assert project.told("code") == [[], ["x"]]


def test_a3_17_a_crash_is_an_error_and_not_a_round(make: Make) -> None:
    _project, result = asp(make, {"!exit": 7, "!stderr": "boom"})
    assert (result.attempts["review"], result.breach, result.loops) == (3, ("errors_in_a_row", 3, 3), [])
    assert "the command failed (exit code 7): boom" in result.escalation["reason"]
    assert (result.escalation["step"], result.escalation["loop"]) == ("review", None)


def test_a3_18_the_defect_log_has_the_origin_and_the_cost(make: Make) -> None:
    cost = {"usage": {"cost_usd": 0.5, "tokens_in": 100, "tokens_out": 10}}
    project = make(ASP, plan=[cost], design=[cost], review=[failed(PLANNING, **cost), passed(**cost)])
    result = project.run()
    (defect,) = project.backedge("export", "--format", "defects").json
    assert (defect["injected_phase"], defect["detected_by"], defect["detected_phase"]) == (
        "planning",
        "review",
        "design",
    )
    assert (defect["attempts"], defect["cost_usd"]) == ({"plan": 1, "design": 1}, 1.0)
    assert defect["latency"] > 0 and defect["seconds"] > 0
    assert (result.usage["cost_usd"], result.usage["tokens_in"], result.usage["tokens_out"]) == (3.0, 600, 60)


def test_a3_19_passing_work_is_not_repaired_and_a_repair_without_change_is_counted(make: Make) -> None:
    steps = {"code": {"phase": "code", "writes": []}, "review": {"reviews": "code"}}
    project = make({"steps": steps}, code=[{"output": "v1"}], review=[failed("x"), failed("y"), failed("z")])
    result = project.run()
    assert (result.breach, result.steps["code"]["version"]) == (("no_change", 2, 2), 1)
    assert result.steps["code"]["output"] == "v1"


def test_a3_20_an_invalid_input_is_refused_before_the_agent_runs(make: Make) -> None:
    shape = {"type": "object", "required": ["units"]}
    steps = {
        "plan": {"phase": "planning"},
        "design": {"phase": "design", "needs": ["plan"], "accepts": {"plan": shape}},
    }
    project = make({"steps": steps}, plan=[{"output": {}}, {"output": {"units": []}}])
    result = project.run()
    assert (result.attempts, result.loop["kind"]) == ({"plan": 2, "design": 1}, "validation_failure")
    assert (result.loop["source"], result.loop["targets"], result.loop["routed_by"]) == ("design", ["plan"], "explicit")
    assert "units" in project.told("plan")[1][0]
    assert project.briefings("design")[0]["inputs"] == {"plan": {"units": []}}


# A4: the feedback coordinator

NODES = ("root", "model", "service", "controller", "e2e")
CHAIN: dict[str, Any] = {
    "profile": "reactree",
    "steps": {name: {"needs": list(NODES[:place][-1:])} for place, name in enumerate(NODES)},
}


def chain(make: Make, **scripts: Any) -> tuple[Project, Result]:
    project = make(CHAIN, **scripts)
    return project, project.run()


def test_a4_01_and_09_a_complete_fix_request_to_an_ancestor_is_delivered_fixed_verified_resolved(make: Make) -> None:
    item = raises("fix_request", "model", suggested_fix="add a field", artifacts=["model.py:4"], requirement_id="REQ-1")
    project, result = chain(make, e2e=[{"feedback": [item]}, {}])
    assert (result.code, result.outcome) == (0, "done")
    assert (result.loop["id"], result.loop["rounds"], result.loop["state"]) == ("L-1", 1, "resolved")
    assert (result.loop["routed_by"], result.loop["caused_by"]) == ("explicit", None)
    (request,) = project.briefings("model")[1]["feedback"]["requests"]
    assert (request["suggested_fix"], request["artifacts"], request["requirement_id"]) == (
        "add a field",
        ["model.py:4"],
        "REQ-1",
    )
    (told,) = project.briefings("e2e")[1]["feedback"]["resolutions"]
    assert (told["loop"], told["state"]) == ("L-1", "fixed")
    kinds = [each["type"].partition("/")[0] for each in project.events()]
    places = [kinds.index(kind) for kind in ("loop_opened", "feedback_routed", "loop_closed")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"kind": "fix_request", "to": ["model"], "message": ""}, "message"),
        ({"kind": "fix_request", "to": [], "message": "x"}, "to"),
        ({"kind": "wish", "to": "model", "message": "x"}, "kind 'wish' is unknown"),
        ({"kind": "fix_request", "to": "model", "message": "x", "severity": "banana"}, "severity 'banana' is unknown"),
        ({"kind": "fix_request", "to": "nobody", "message": "x"}, "unknown target 'nobody': use one of"),
    ],
)
def test_a4_02_a_missing_or_unknown_field_is_an_error_that_names_it(make: Make, item: Any, reason: str) -> None:
    project, result = chain(make, e2e=[{"feedback": [item]}, {}])
    assert project.briefings("e2e")[1]["last_error"].startswith(f"its feedback can go nowhere: {reason}")
    assert (result.loops, result.outcome, result.usage["attempts"]) == ([], "done", 6)


def test_a4_04_three_hops_pass_and_a_fourth_is_refused_so_that_a_person_is_asked(make: Make) -> None:
    project, result = chain(
        make,
        e2e=[{"feedback": [raises("fix_request", "controller")]}, {}],
        controller=[{}, {"feedback": [raises("fix_request", "service")]}, {}],
        service=[{}, {"feedback": [raises("fix_request", "model")]}, {}],
        model=[{}, {"feedback": [raises("fix_request", "root")]}, {}],
    )
    assert [(each["source"], each["caused_by"]) for each in result.loops] == [
        ("e2e", None),
        ("controller", "L-1"),
        ("service", "L-2"),
    ]
    (refused,) = result.refused
    assert refused["reason"].startswith("chain_depth: 4 hops (e2e → controller → service → model → root)")
    assert (result.outcome, result.attempts["root"]) == ("waiting", 1)
    assert {each["state"] for each in result.loops} == {"resolved"}
    assert result.escalation["reason"].startswith("refused feedback of 'model': chain_depth: 4 hops")
    assert project.answer("E-1", "continue").outcome == "done"


def test_a4_a_causal_cycle_is_refused_naming_the_path(make: Make) -> None:
    work = {**CHAIN, "scope": "any"}
    project = make(
        work,
        e2e=[{"feedback": [raises("fix_request", "controller")]}, {}],
        controller=[{}, {"feedback": [raises("fix_request", "e2e")]}, {}],
    )
    result = project.run()
    (refused,) = result.refused
    assert refused["reason"].startswith("causal cycle: e2e → controller → e2e")


@pytest.mark.parametrize(
    ("target", "reason"),
    [("e2e", "'e2e' is the source itself"), ("check", "target 'check' is a judge"), ("late", "is out of scope for")],
)
def test_a4_06_feedback_to_oneself_a_judge_or_downstream_is_an_error(make: Make, target: str, reason: str) -> None:
    more = {"check": {"reviews": "model"}, "late": {"needs": ["e2e"]}}
    project = make(
        {**CHAIN, "steps": {**CHAIN["steps"], **more}},
        e2e=[{"feedback": [raises("fix_request", target)]}, {}],
        check=[passed()],
    )
    result = project.run()
    assert reason in project.briefings("e2e")[1]["last_error"]
    assert (result.outcome, result.loops) == ("verified", [])


def test_a4_08_an_earlier_sibling_and_the_root_are_reached(make: Make) -> None:
    steps = {
        "start": {"phase": "planning"},
        "model": {"phase": "code", "needs": ["start"]},
        "spec": {"phase": "test", "needs": ["start"]},
    }
    project = make({**CHAIN, "steps": steps}, spec=[{"feedback": [raises("fix_request", "model", "root")]}, {}])
    result = project.run("--max-parallel", "1")
    assert (result.loop["targets"], result.loop["state"]) == (["model", "start"], "resolved")


def test_a4_11_a_fix_that_breaks_is_not_verified(make: Make) -> None:
    project, result = chain(make, model=[{}, {"!exit": 1}], e2e=[{"feedback": [raises("fix_request", "model")]}, {}])
    assert (result.code, result.breach, result.attempts["e2e"]) == (3, ("errors_in_a_row", 3, 3), 1)
    again = project.answer("E-1", "cancel")
    assert (again.code, again.loop["state"], again.attempts["e2e"]) == (1, "cancelled", 1)


def test_a4_13_a_question_is_answered_without_a_new_version(make: Make) -> None:
    item = raises("context_request", "model", message="which key?", requested_info="the primary key")
    project, result = chain(make, model=[{"output": "m"}, {"answer": {"key": "id"}}], e2e=[{"feedback": [item]}, {}])
    assert (result.outcome, result.loop["state"], result.steps["model"]["version"]) == ("done", "resolved", 1)
    assert result.attempts == {"root": 1, "model": 2, "service": 1, "controller": 1, "e2e": 2}
    asked = project.briefings("model")[1]
    assert (asked["mode"], asked["feedback"]["requests"][0]["requested_info"]) == ("answer", "the primary key")
    (told,) = project.briefings("e2e")[1]["feedback"]["resolutions"]
    assert told["answers"] == {"model": {"key": "id"}}


def test_a4_15_the_most_severe_findings_come_first(make: Make) -> None:
    found = [{"description": word, "severity": word} for word in ("low", "critical", "medium", "high")]
    steps = {"code": {"phase": "code"}, "review": {"reviews": "code"}}
    project = make({"steps": steps}, review=[failed(*found), passed()])
    project.run()
    assert project.told("code")[1] == ["critical", "high", "medium", "low"]


def test_a4_rounds_of_a_pair_are_counted_across_loops(make: Make) -> None:
    items = [{"output": n, "feedback": [raises("fix_request", "model", message=f"{n}")]} for n in range(9)]
    _, result = chain(make, e2e=items)
    assert (result.breach, result.loops[-1]["state"]) == (("rounds_per_pair", 2, 2), "escalating")
    assert result.attempts["model"] == 3


def test_the_flagship_example_of_the_protocol_is_understood_word_for_word(make: Make) -> None:
    said = {
        "output": {"any": "json"},
        "summary": "what was done, in a sentence",
        "verdict": "fail",
        "findings": [
            {
                "description": "no authentication",
                "severity": "critical",
                "blocking": False,
                "category": "security",
                "affected_phase": ["planning"],
                "evidence": "e",
                "impact": "i",
                "file": "api.md",
                "line": 12,
                "path": "/api/users",
                "suggested_fix": "add a login unit",
                "requirement_id": "REQ-1",
            }
        ],
        "usage": {"cost_usd": 0.05, "tokens_in": 1200, "tokens_out": 300},
    }
    again = passed(resolutions=[{"finding": "F-1", "status": "fixed", "note": "seen"}])
    project, result = asp(make, said, again)
    assert (result.outcome, result.finding["status"], result.finding["rounds_seen"]) == ("verified", "fixed", 1)
    (given,) = project.briefings("plan")[1]["feedback"]["findings"]
    for key, value in said["findings"][0].items():  # type: ignore[index]
        assert given[key] == value, key
    assert json.dumps(result.usage["cost_usd"]) == "0.05"
