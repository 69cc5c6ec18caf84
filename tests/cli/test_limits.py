"""From the outside: every limit of a workflow file stops at its count and is named."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Project, failed, finished, passed, raises, until

CODE: dict[str, Any] = {"code": {"phase": "code"}, "review": {"reviews": "code"}}
PLANNED: dict[str, Any] = {
    "plan": {"phase": "planning"},
    "design": {"phase": "design", "needs": ["plan"]},
    "review": {"reviews": "design"},
}
DIFFERENT = [failed(f"{n}") for n in range(40)]
SAME = [failed("same")]
COSTLY = {"usage": {"cost_usd": 0.4, "tokens_in": 30, "tokens_out": 10}}
OFF = {"rounds_per_loop": False, "same_finding": False, "no_change": False}


def limited(make: Make, limits: dict[str, Any], steps: dict[str, Any] = CODE, **scripts: Any) -> Project:
    return make({"limits": limits, "steps": steps}, **scripts)


# Each row: what is set, what the agents do, which breach follows, and how often the step under correction ran.
ROWS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, float, float], int]] = {
    "rounds_per_loop": ({}, {"review": DIFFERENT}, ("rounds_per_loop", 5, 5), 6),
    "rounds_per_loop: 1": ({"rounds_per_loop": 1}, {"review": DIFFERENT}, ("rounds_per_loop", 1, 1), 2),
    "rounds_per_loop: 0": ({"rounds_per_loop": 0}, {"review": DIFFERENT}, ("rounds_per_loop", 0, 0), 1),
    "rounds_total": ({"rounds_per_loop": False}, {"review": DIFFERENT}, ("rounds_total", 20, 20), 21),
    "rounds_total: 2": ({"rounds_total": 2}, {"review": DIFFERENT}, ("rounds_total", 2, 2), 3),
    "rounds_per_pair": ({"rounds_per_pair": 2}, {"review": DIFFERENT}, ("rounds_per_pair", 2, 2), 3),
    "rounds_per_step": ({"rounds_per_step": 1}, {"review": DIFFERENT}, ("rounds_per_step", 1, 1), 2),
    "same_finding": ({"rounds_per_loop": 9}, {"review": SAME}, ("same_finding", 6, 6), 6),
    "same_finding: 2": ({"same_finding": 2}, {"review": SAME}, ("same_finding", 2, 2), 2),
    "failures_in_a_row": ({"failures_in_a_row": 2}, {"review": DIFFERENT}, ("failures_in_a_row", 2, 2), 2),
    "attempts": ({"attempts": 4}, {"review": DIFFERENT}, ("attempts", 4, 4), 2),
    "cost_usd": ({"cost_usd": 1}, {"code": [COSTLY], "review": DIFFERENT}, ("cost_usd", 1.2000000000000002, 1), 3),
    "tokens": ({"tokens": 80}, {"code": [COSTLY], "review": DIFFERENT}, ("tokens", 80, 80), 2),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_limit_stops_at_its_count_and_is_named(make: Make, row: str) -> None:
    limits, scripts, breach, executed = ROWS[row]
    result = limited(make, limits, **scripts).run()
    assert (result.code, result.outcome) == (3, "waiting")
    assert result.breach == pytest.approx(breach) if row == "cost_usd" else result.breach == breach
    assert result.attempts["code"] == executed


def test_no_change_counts_reworks_that_return_the_same_artifact(make: Make) -> None:
    steps = {"code": {"phase": "code", "writes": []}, "review": {"reviews": "code"}}
    result = limited(make, {}, steps, code=[{"output": 1}], review=DIFFERENT).run()
    assert (result.breach, result.attempts["code"], result.steps["code"]["version"]) == (("no_change", 2, 2), 3, 1)


def test_oscillation_counts_returns_to_a_rejected_artifact(make: Make) -> None:
    steps = {"code": {"phase": "code", "writes": []}, "review": {"reviews": "code"}}
    outputs = [{"output": n % 2} for n in range(20)]
    result = limited(make, {"rounds_per_loop": 9}, steps, code=outputs, review=DIFFERENT).run()
    assert (result.breach, result.attempts["code"]) == (("oscillation", 2, 2), 4)


def test_diverging_compares_the_findings_that_fixes_add_and_remove(make: Make) -> None:
    steps = {"code": {"phase": "code", "writes": []}, "review": {"reviews": "code", "complete": True}}
    outputs = [{"output": {"a": n}} for n in range(20)]
    found = [failed({"description": f"{n}", "path": "/a"}) for n in range(20)]
    result = limited(make, {"diverging": True, "rounds_per_loop": 9}, steps, code=outputs, review=found).run()
    assert result.breach == ("diverging", 2, 2)
    assert [each["fix_authored"] for each in result.findings] == [False, True, True]


def test_chain_depth_refuses_and_false_switches_it_off(make: Make) -> None:
    names = "abc"
    steps = {name: {"needs": list(names[:place][-1:])} for place, name in enumerate(names)}
    scripts = {
        "c": [{"feedback": [raises("fix_request", "b")]}, {}],
        "b": [{}, {"feedback": [raises("fix_request", "a")]}, {}],
    }
    refused = limited(make, {"chain_depth": 1}, steps, **scripts).run()
    assert refused.refused[0]["reason"].startswith("chain_depth: 2 hops (c → b → a), at most 1")
    free = limited(make, {"chain_depth": False}, steps, **scripts).run()
    assert (free.refused, [each["caused_by"] for each in free.loops]) == ([], [None, "L-1"])


def test_response_timeout_escalates_a_question_to_a_person_exactly_once(make: Make) -> None:
    steps = {"a": {"phase": "code"}}
    project = limited(
        make, {"response_timeout": "0.5s"}, steps, a=[{"feedback": [raises("context_request", "human")]}, {}]
    )
    process = project.started("run", "--wait", "--json")
    until(lambda: (project.folder / ".backedge/journal.db").exists() and _overdue(project))
    time.sleep(0.7)
    assert len(_overdue(project)) == 1
    result = project.show()
    assert (result.loop["state"], result.loop["breach"]["limit"]) == ("escalating", "response_timeout")
    assert len([each for each in result.escalations if each["decided"] is None]) == 1
    project.decide(result.escalation["id"], "cancel")
    assert finished(process).code == 1


def _overdue(project: Project) -> list[Any]:
    said = project.backedge("audit", "export")
    return [line for line in said.out.splitlines() if '"loop_overdue' in line]


@pytest.mark.parametrize("limit", ["rounds_per_loop", "same_finding", "no_change", "oscillation"])
def test_false_switches_a_limit_off(make: Make, limit: str) -> None:
    others = dict.fromkeys(("rounds_per_loop", "same_finding", "no_change", "oscillation"), False)
    steps = {"code": {"phase": "code", "writes": []}, "review": {"reviews": "code"}}
    project = limited(make, {**others, "rounds_total": 4}, steps, code=[{"output": 1}], review=SAME)
    assert project.run().breach == ("rounds_total", 4, 4)


def test_a_workflow_without_a_bound_is_refused(make: Make) -> None:
    complaint = limited(make, {"rounds_total": False, "rounds_per_loop": 3}).refused("check")
    assert "nothing bounds this workflow" in complaint and "backedge.yaml:" in complaint
    assert limited(make, {"rounds_total": False, "attempts": 30}).backedge("check", "--json").json["max_attempts"] == 30


def test_a_judge_may_have_limits_of_its_own(make: Make) -> None:
    steps = {**CODE, "test": {"tests": "code", "limits": {"rounds_per_loop": 1}}}
    project = limited(make, {"rounds_per_loop": 3}, steps, review=[passed()], test=DIFFERENT)
    assert project.run().breach == ("rounds_per_loop", 1, 1)


@pytest.mark.parametrize(
    ("limits", "script", "breach", "args", "after"),
    [
        ({"cost_usd": 0.4}, COSTLY, ("cost_usd", 0.4, 0.4), (), 0.8),
        ({"cost_usd": 0.4}, COSTLY, ("cost_usd", 0.4, 0.4), ("--amount", "0.1"), 0.5),
        ({"tokens": 40}, COSTLY, ("tokens", 40, 40), ("--amount", "40"), 80),
        ({"attempts": 1}, COSTLY, ("attempts", 1, 1), ("--amount", "1"), 2),
    ],
)
def test_a_budget_is_kept_across_resume_and_grows_only_by_a_decision(
    make: Make, limits: dict[str, Any], script: Any, breach: Any, args: tuple[str, ...], after: float
) -> None:
    steps = {name: {"needs": list("abcd"[:place][-1:])} for place, name in enumerate("abcd")}
    project = limited(make, limits, steps, **{key: [script] for key in "abcd"})
    result = project.run()
    assert (result.breach, result.usage["attempts"]) == (breach, 1)
    assert (result.escalation["loop"], result.escalation["step"]) == (None, None)
    assert result.escalation["options"] == ["continue", "cancel"]
    assert project.resume().breach == breach
    again = project.answer("E-1", "continue", *args)
    assert (again.breach[0], again.breach[2], again.usage["attempts"]) == (breach[0], pytest.approx(after), 2)


def test_wall_clock_counts_work_and_not_waiting(make: Make) -> None:
    steps = {"a": {"phase": "code"}, "b": {"needs": ["a"]}, "c": {"needs": ["b"]}}
    project = limited(make, {"wall_clock": "0.6s"}, steps, a=[{"!sleep": 0.1}], b=[{"!sleep": 0.8}])
    result = project.run()
    limit, count, bound = result.breach
    assert (limit, bound, result.attempts) == ("wall_clock", 0.6, {"a": 1, "b": 1, "c": 0})
    assert 0.9 <= count < 10
    time.sleep(0.3)
    assert project.resume().breach[1] == pytest.approx(count, abs=0.25)
    assert project.answer("E-1", "continue", "--amount", "60").outcome == "done"


def test_the_cost_of_a_failed_attempt_counts(make: Make) -> None:
    broken = {**COSTLY, "!exit": 1}
    result = limited(make, {"cost_usd": 0.8}, {"a": {"phase": "code"}}, a=[broken]).run()
    assert (result.breach[0], result.attempts["a"], result.usage["cost_usd"]) == ("cost_usd", 2, 0.8)


@pytest.mark.parametrize(
    ("policy", "code", "outcome", "loop"),
    [("manual", 3, "waiting", "escalating"), ("error", 1, "failed", "failed"), ("skip", 4, "accepted", "accepted")],
)
def test_on_breach_decides_what_happens_at_a_limit(make: Make, policy: str, code: int, outcome: str, loop: str) -> None:
    steps = {**CODE, "ship": {"needs": ["code"]}}
    project = make({"on_breach": policy, "limits": {"rounds_per_loop": 1}, "steps": steps}, review=DIFFERENT)
    result = project.run()
    assert (result.code, result.outcome, result.loop["state"]) == (code, outcome, loop)
    assert result.attempts["ship"] == (1 if policy == "skip" else 0)
    assert result.escalations[0]["decided"] == {"manual": None, "error": "error", "skip": "skip"}[policy]
    if policy == "skip":
        # The first was not mentioned again by the verdict that was its last.
        assert {each["status"] for each in result.findings} == {"deferred"}
        assert result.steps["review"]["state"] == "passed_over"


def test_on_breach_error_also_ends_a_run_whose_agent_keeps_breaking(make: Make) -> None:
    project = make({"on_breach": "error", "steps": {"a": {"phase": "code"}}}, a=[{"!exit": 1}])
    result = project.run()
    assert (result.code, result.outcome, result.attempts["a"]) == (1, "failed", 3)


def test_the_backoff_grows_with_each_error_and_a_success_resets_it(make: Make) -> None:
    broken = {"!exit": 1}
    project = limited(make, {"errors_in_a_row": 3}, {"a": {"phase": "code"}}, a=[broken, broken, {}])
    started = time.monotonic()
    result = project.run()
    assert (result.outcome, result.attempts["a"]) == ("done", 3)
    assert time.monotonic() - started >= 1.5
    failures = [each for each in project.events() if each["type"].startswith("attempt_failed")]
    assert [round(each["retry_at"] - each["at"], 3) for each in failures] == [0.5, 1.0]


def test_continue_grants_more_tries_for_errors(make: Make) -> None:
    project = limited(make, {"errors_in_a_row": 1}, {"a": {"phase": "code"}}, a=[{"!exit": 1}, {"!exit": 1}, {}])
    result = project.run()
    assert (result.breach, result.escalation["options"]) == (("errors_in_a_row", 1, 1), ["continue", "skip", "cancel"])
    again = project.answer("E-1", "continue", "--rounds", "2")
    assert (again.outcome, again.attempts["a"]) == ("done", 3)


def test_a_timeout_is_an_error_and_kills_the_whole_tree(make: Make) -> None:
    steps = {"a": {"phase": "code", "timeout": "0.4s"}}
    project = limited(make, {"errors_in_a_row": 1}, steps, a=[{"!child": 60, "!sleep": 60, "!ignore": True}])
    result = project.run()
    assert (result.code, result.breach) == (3, ("errors_in_a_row", 1, 1))
    assert "timeout" in result.escalation["reason"] and "0.4" in result.escalation["reason"]
    assert len(project.executions()) == 2
    assert project.living() == []


def test_check_prints_the_bound_and_no_run_exceeds_it(make: Make) -> None:
    steps = {"a": {"phase": "code"}, "r": {"reviews": "a"}}
    project = limited(make, {"rounds_total": 2, "errors_in_a_row": 2, **OFF}, steps, r=DIFFERENT)
    checked = project.backedge("check", "--json").json
    assert checked["max_attempts"] == 2 * (2 + 1) * (1 + 2)
    assert ", at most 18, plus any that you grant" in project.backedge("check").out
    assert project.run().usage["attempts"] <= 18


def test_the_briefing_says_what_is_left(make: Make) -> None:
    project = limited(make, {"cost_usd": 1}, code=[COSTLY], review=[failed("x"), passed()])
    project.run()
    first, second = project.briefings("code")
    assert first["limits_left"]["cost_usd"] == 1
    assert second["limits_left"]["cost_usd"] == pytest.approx(0.6)
    assert second["limits_left"]["rounds_per_loop"] == 4
