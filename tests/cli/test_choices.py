"""From the outside: choices, callbacks, approval and replanning."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Reply, failed, passed, raises

STEPS: dict[str, Any] = {
    "pm": {"phase": "planning"},
    "architect": {"phase": "design", "needs": ["pm"]},
    "code": {"phase": "code", "needs": ["architect"]},
}
OPTIONS = [
    {"option": "polling", "effort": "low", "impact": "slower", "rework": ["architect"]},
    {"option": "queue", "effort": "high", "impact": "faster"},
    {"option": "live with it", "accept": True},
]


def constraint(*to: str, **more: Any) -> Reply:
    """Code that meets a constraint."""
    offered = {"options": OPTIONS, **more}
    return {"output": "draft", "feedback": [raises("constraint_violation", *to, message="no websockets", **offered)]}


def decides(option: str, reason: str = "") -> Reply:
    return {"decision": {"option": option, "reason": reason}}


def test_targets_choose_and_the_chosen_steps_rework(make: Make) -> None:
    project = make(
        {"steps": STEPS},
        code=[constraint("architect", "pm"), {"output": "final"}],
        pm=[{"output": "plan"}, decides("polling", "cheap")],
        architect=[{"output": "design"}, decides("polling", "simple"), {"output": "design with polling"}],
    )
    result = project.run()
    assert (result.code, result.outcome) == (0, "done")
    assert result.attempts == {"pm": 2, "architect": 3, "code": 2}
    loop = result.loop
    assert (loop["kind"], loop["state"], loop["targets"], loop["rounds"]) == (
        "constraint_violation",
        "resolved",
        ["architect", "pm"],
        1,
    )
    assert (loop["choice"]["option"], loop["choice"]["by"]) == ("polling", "architect, pm")
    assert (loop["resolution"]["option"], loop["resolution"]["by"]) == ("polling", "architect, pm")
    assert {(each["who"], each["option"]) for each in loop["positions"]} == {
        ("pm", "polling"),
        ("architect", "polling"),
    }
    assert result.steps["pm"]["output"] == "plan", "a decision is no output"
    asked = project.briefings("pm")[1]
    assert (asked["mode"], asked["feedback"]["requests"][0]["options"][0]["effort"]) == ("decide", "low")
    assert project.briefings("architect")[2]["feedback"]["requests"][0]["choice"]["option"] == "polling"
    told = project.briefings("code")[1]["feedback"]["resolutions"][0]
    assert (told["option"], told["state"]) == ("polling", "chosen")
    words = project.backedge("show").out
    assert "pm is for “polling”: cheap" in words
    assert "chosen by architect, pm: “polling”" in words


def test_targets_that_disagree_are_asked_once_more_and_then_a_person_chooses(make: Make) -> None:
    project = make(
        {"steps": STEPS},
        code=[constraint("architect", "pm"), {"output": "final"}],
        pm=[{"output": "plan"}, decides("queue", "fast")],
        architect=[{"output": "design"}, decides("polling", "simple"), decides("polling"), {"output": "again"}],
    )
    result = project.run()
    assert result.code == 3
    assert "the targets do not agree" in result.escalation["reason"]
    assert {each["round"] for each in result.escalation["positions"]} == {1, 2}
    second = project.briefings("architect")[2]["feedback"]["requests"][0]["positions"]
    assert {(each["who"], each["option"]) for each in second} == {("pm", "queue"), ("architect", "polling")}
    inbox = project.backedge("inbox").out
    assert "round 1: architect is for “polling”: simple" in inbox
    assert "did you mean 'polling'" in project.refused("decide", "E-1", "resolve", "--option", "poling")
    again = project.answer("E-1", "resolve", "--option", "polling", "--by", "eva")
    assert (again.code, again.loop["choice"]["by"], again.attempts["architect"]) == (0, "eva", 4)
    assert (again.loop["resolution"]["by"], again.attempts["code"]) == ("eva", 2)


@pytest.mark.parametrize(
    ("rule", "chosen"),
    [
        ({"agreement": "authority", "authority": ["pm"]}, "queue"),
        ({"agreement": "authority", "authority": "architect"}, "live with it"),
    ],
)
def test_the_order_of_authority_decides(make: Make, rule: dict[str, Any], chosen: str) -> None:
    project = make(
        {"steps": STEPS, **rule},
        code=[constraint("architect", "pm"), {"output": "final"}],
        pm=[{"output": "plan"}, decides("queue")],
        architect=[{"output": "design"}, decides("live with it")],
    )
    result = project.run()
    assert result.loop["choice"]["option"] == chosen
    assert (result.code, result.outcome) == ((4, "accepted") if chosen == "live with it" else (0, "done"))


def test_an_option_that_was_not_offered_is_an_error_that_lists_them(make: Make) -> None:
    project = make(
        {"steps": STEPS},
        code=[constraint("pm"), {"output": "final"}],
        pm=[{"output": "plan"}, decides("pigeons"), {}, decides("queue")],
    )
    result = project.run()
    assert (result.code, result.loop["choice"]["option"]) == (0, "queue")
    errors = [event["error"] for event in project.events() if event["type"] == "attempt_failed/1"]
    assert "use one of polling, queue, live with it" in errors[0] and "no decision" in errors[1]


def test_a_person_is_offered_the_options(make: Make) -> None:
    project = make({"steps": STEPS}, code=[constraint("human"), {"output": "final"}])
    assert project.run().code == 3
    again = project.answer("E-1", "resolve", "--option", "live with it", "--note", "next year", "--by", "eva")
    assert (again.code, again.outcome, again.loop["state"]) == (4, "accepted", "accepted")
    told = project.briefings("code")[1]["feedback"]["resolutions"][0]
    assert (told["option"], told["by"], told["text"]) == ("live with it", "eva", "next year")


def test_a_person_offers_options_to_a_step(make: Make) -> None:
    project = make({"steps": STEPS}, pm=[{"output": "plan"}, decides("b", "better")])
    project.run()
    words = ("--kind", "constraint_violation", "--to", "pm", "--message", "which?", "--option", "a", "--option", "b")
    assert project.backedge("feedback", "raise", *words).out == "L-1\n"
    assert project.resume().loop["choice"]["option"] == "b"


def test_options_that_cannot_be_carried_out_are_an_error_and_the_agent_is_asked_again(make: Make) -> None:
    bad = [{"option": "x", "rework": ["architct"]}]
    project = make({"steps": STEPS}, code=[constraint("pm", options=bad), {"output": 1}])
    result = project.run()
    assert (result.code, result.loops, result.attempts["code"]) == (0, [], 2)
    told = project.briefings("code")[1]["last_error"]
    assert told.startswith("its feedback can go nowhere: ") and "did you mean 'architect'" in told


def test_a_workflow_has_kinds_of_its_own(make: Make) -> None:
    block = raises("security_block", "pm", message="no login", suggested_fix="add one")
    project = make(
        {"steps": STEPS, "kinds": {"security_block": "fix_request"}},
        code=[{"output": 1, "feedback": [block]}, {"output": 2}],
    )
    result = project.run()
    assert (result.loop["kind"], result.loop["state"], result.attempts["pm"]) == ("security_block", "resolved", 2)
    assert "security_block" in project.backedge("show").out


def test_an_infeasible_requirement_goes_to_its_owner(make: Make) -> None:
    details = {"analysis": "200 ms of latency", "alternatives": ["polling", "batches"]}
    item = {"kind": "technical_infeasibility", "message": "no realtime", "requirement_id": "REQ-1", "details": details}
    project = make(
        {"steps": STEPS},
        pm=[{"output": {"requirements": {"REQ-1": "realtime"}}}],
        architect=[{"output": "for REQ-10"}],
        code=[{"output": 1, "feedback": [item]}, {"output": 2}],
    )
    result = project.run()
    assert (result.loop["targets"], result.loop["routed_by"], result.code) == (["pm"], "requirement", 0)
    assert project.briefings("pm")[1]["feedback"]["requests"][0]["details"] == details


@pytest.mark.parametrize(
    ("design", "target", "gap"),
    [
        ("covers REQ-7", "code", "REQ-7 is in pm and architect, and missing in code"),
        ("nothing of it", "architect", "REQ-7 is in pm, and missing in architect and code"),
    ],
)
def test_missing_functionality_goes_to_the_step_that_dropped_it(make: Make, design: str, target: str, gap: str) -> None:
    lost = {"description": "no export", "category": "missing functionality", "requirement_id": "REQ-7"}
    project = make(
        {"steps": {**STEPS, "test": {"tests": "code"}}},
        pm=[{"output": {"units": ["REQ-7"]}}],
        architect=[{"output": design}, {"output": f"{design}, then REQ-7"}],
        code=[{"output": "x"}, {"output": "y"}],
        test=[failed(lost), passed()],
    )
    result = project.run()
    assert (result.loop["targets"], result.loop["routed_by"], result.code) == ([target], "requirement", 0)
    assert result.finding["gap"] == gap
    assert project.briefings(target)[1]["feedback"]["findings"][0]["gap"] == gap
    assert gap in project.backedge("show").out


@pytest.mark.parametrize(
    ("word", "code", "outcome"), [("approve", 0, "done"), ("continue", 0, "done"), ("reject", 1, "cancelled")]
)
def test_a_step_runs_only_with_approval(make: Make, word: str, code: int, outcome: str) -> None:
    project = make({"steps": {**STEPS, "deploy": {"needs": ["code"], "approval": "human"}}})
    result = project.run()
    assert (result.code, result.attempts["deploy"]) == (3, 0)
    assert result.escalation["reason"].startswith("no approver")
    assert (result.escalation["step"], result.escalation["options"]) == ("deploy", ["continue", "skip", "cancel"])
    project.decide("E-1", word)
    after = project.show() if word == "reject" else project.resume()
    assert (after.outcome, after.attempts["deploy"]) == (outcome, 1 if code == 0 else 0)


def test_results_beyond_a_threshold_wait_for_approval(make: Make) -> None:
    """Critical files and low confidence: a rejection reworks with the note, and nothing uses what was not approved."""
    writes = 'mkdir -p infra; echo $BACKEDGE_ATTEMPT > infra/main.tf; echo \'{"output": 1, "confidence": 0.9}\''
    approval = {"when": {"files": 3, "paths": ["infra/**"], "confidence": 0.5}}
    project = make(
        {
            "steps": {
                "code": {"phase": "code", "approval": approval, "run": ["sh", "-c", writes], "writes": ["infra/**"]},
                "ship": {"phase": "test", "needs": ["code"], "writes": []},
            }
        }
    )
    assert "asks a person beyond a threshold" in project.backedge("check").out
    result = project.run()
    assert (result.code, result.attempts["ship"]) == (3, 0)
    assert result.escalation["sentence"] == "code needs your approval: it changed infra/main.tf."
    assert result.escalation["words"][:2] == ["approve", "reject"]
    assert "needs a note" in project.refused("decide", "E-1", "reject")
    after = project.answer("E-1", "reject", "--note", "not in the main region")
    assert (after.attempts["code"], after.attempts["ship"]) == (2, 0)
    assert after.findings[0]["description"] == "not in the main region"
    done = project.answer("E-2", "approve")
    assert (done.code, done.outcome, done.attempts["ship"]) == (0, "done", 1)


def test_the_question_shows_every_change_that_needs_approval(make: Make) -> None:
    """Also those of earlier attempts, which a review had rejected for something else."""
    writes = (
        "mkdir -p infra; [ $BACKEDGE_ATTEMPT = 1 ] && echo danger > infra/main.tf; echo $BACKEDGE_ATTEMPT > a.txt; "
        "echo '{\"output\": 1}'"
    )
    code = {"phase": "code", "run": ["sh", "-c", writes], "approval": {"when": {"paths": ["infra/**"]}}}
    project = make({"steps": {"code": code, "review": {"reviews": "code"}}}, review=[failed("wrong"), passed()])
    subprocess.run(["git", "init", "-q"], cwd=project.folder, check=True)
    result = project.run()
    assert result.escalation["sentence"] == "code needs your approval: it changed infra/main.tf."
    said = project.backedge("inbox").out
    assert (
        said.index("what code made (attempt 1)")
        < said.index("| +danger")
        < said.index("what code last changed (attempt 2)")
    )
    # What was rejected has been seen.
    project.answer("E-1", "reject", "--note", "not this")
    assert "danger" not in project.backedge("inbox").out


def test_an_unsure_agent_is_looked_at_and_a_sure_one_is_not(make: Make) -> None:
    steps = {"code": {"approval": {"when": {"confidence": 0.6}}}}
    project = make({"steps": steps}, code=[{"confidence": 0.7}])
    assert project.run().outcome == "done"
    project.script(code=[{"confidence": 2}, {"confidence": 0.5}])
    result = project.run()
    assert (result.code, result.attempts["code"]) == (3, 2), "a confidence of 2 is an error of the agent"
    assert result.escalation["sentence"].endswith("confidence 0.5, and less than 0.6 needs approval.")


def test_a_cheaper_agent_verifies_the_fixes(make: Make) -> None:
    agent = "import json, sys, os; told = json.load(sys.stdin); ok = told['attempt'] > 2; print(json.dumps({WORDS}))"
    says = {
        name: [
            *("python3", "-c"),
            agent.replace(
                "{WORDS}",
                f"{{'verdict': 'pass' if ok else 'fail', 'summary': '{name}', 'findings': [] if ok else [dict(description='x')]}}",
            ),
        ]
        for name in ("strong", "cheap")
    }
    review = {"reviews": "code", "agents": {"first": "strong", "verify": "cheap"}}
    workflow = {"agents": {name: {"run": run} for name, run in says.items()}, "steps": {"code": {}, "review": review}}
    project = make(workflow, code=[{"output": 1}, {"output": 2}, {"output": 3}])
    said = project.backedge("run")
    assert said.code == 0, said
    assert [
        word in said.err for word in ("review by strong", "review (attempt 2) by cheap", "(attempt 3) by cheap")
    ] == [True] * 3
    project.write({**workflow, "steps": {"code": {"agents": {"first": "strong", "verify": "cheap"}}}})
    assert "has an agent to verify but is not a judge" in project.refused("check")


def test_a_loop_that_hits_its_limit_goes_to_the_planner_once(make: Make) -> None:
    project = make(
        {
            "on_breach": "replan",
            "limits": {"rounds_per_loop": 1},
            "steps": {**STEPS, "review": {"reviews": "architect"}},
        },
        pm=[{"output": 1}, {"output": 2}],
        architect=[{"output": 1}, {"output": 2}, {"output": 3}, {"output": 4}],
        review=[failed("one"), failed("two"), failed("three"), passed()],
    )
    result = project.run()
    assert (result.code, result.attempts["pm"]) == (3, 2)
    kinds = [(loop["kind"], loop["routed_by"], loop["state"]) for loop in result.loops]
    assert kinds == [("review_rejection", "subject", "escalating"), ("architecture_issue", "replan", "resolved")]
    assert "two" in project.briefings("pm")[1]["feedback"]["requests"][0]["message"]
    assert result.breach[0] == "rounds_per_loop"


def test_an_unrequested_answer_is_ignored_with_a_warning(make: Make) -> None:
    steps = {"pm": {"phase": "planning"}, "review": {"reviews": "pm"}}
    project = make(
        {"steps": steps}, pm=[{"output": "plan", "answer": "so"}], review=[{**passed(), "decision": {"option": "x"}}]
    )
    told = project.backedge("run").err
    assert "✓ pm (warning: answer: ignored, because mode work does not ask for it)" in told
    assert "! review: warning: decision: ignored, because mode work does not ask for it" in told
