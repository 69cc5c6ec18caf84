"""Groups, conditions and repetitions from the workflow file, with agents in separate processes."""

from __future__ import annotations

from typing import Any

from tests.cli.conftest import Make
from tests.cli.project import failed, passed

GROUPS: dict[str, Any] = {
    "steps": {
        "plan": {"phase": "planning"},
        "ux": {"phase": "design", "group": "design", "needs": ["plan"]},
        "arch": {"phase": "design", "group": "design", "needs": ["plan"]},
        "review": {"reviews": "ux"},
        "code": {"phase": "code", "needs": "design"},
    }
}


def test_the_next_group_waits_for_the_open_loops_of_the_one_before(make: Make) -> None:
    ours = make(GROUPS, ux=[{"output": 1}, {"output": 2}], review=[failed("no contrast"), passed()])
    result = ours.run()
    assert (result.code, result.outcome) == (0, "verified")
    assert result.attempts == {"plan": 1, "ux": 2, "arch": 1, "review": 2, "code": 1}
    assert ours.briefings("code")[0]["inputs"] == {"ux": 2, "arch": None}
    assert "in design" in ours.backedge("check").out


WHEN: dict[str, Any] = {
    "steps": {
        "plan": {},
        "ui": {"needs": ["plan"], "when": "plan:/ui == true"},
        "ui_review": {"reviews": "ui"},
        "ship": {"needs": ["plan", "ui"]},
        "plan_review": {"reviews": "plan"},
    }
}


def test_a_step_whose_condition_is_not_met_is_skipped_with_its_judge(make: Make) -> None:
    ours = make(WHEN, plan=[{"output": {"ui": False}}], plan_review=[passed()])
    result = ours.run()
    assert (result.code, result.outcome) == (0, "verified")
    assert result.attempts == {"plan": 1, "ui": 0, "ui_review": 0, "ship": 1, "plan_review": 1}
    assert [result.steps[name]["state"] for name in ("ui", "ui_review", "ship")] == ["skipped", "skipped", "done"]
    assert ours.briefings("ship")[0]["inputs"] == {"plan": {"ui": False}}
    assert "ui is skipped: plan:/ui == true is false" in ours.backedge("show").out


def test_a_changed_plan_brings_a_skipped_step_back(make: Make) -> None:
    answers = [{"output": {"ui": False}}, {"output": {"ui": True}}]
    ours = make(WHEN, plan=answers, plan_review=[passed()], ui_review=[passed()])
    run = ours.run().run
    ours.backedge("feedback", "raise", "--kind", "fix_request", "--to", "plan", "--message", "add a UI")
    result = ours.resume(run)
    assert (result.outcome, result.steps["ui"]["state"]) == ("verified", "done")
    assert result.attempts == {"plan": 2, "ui": 1, "ui_review": 1, "ship": 2, "plan_review": 2}


REPEAT: dict[str, Any] = {
    "steps": {
        "draft": {},
        "polish": {"needs": ["draft"], "repeat": {"until": "polish:/score >= 90", "max": 3}},
        "ship": {"needs": ["polish"]},
    }
}


def scores(*values: int) -> list[dict[str, Any]]:
    return [{"output": {"score": value}} for value in values]


def test_a_step_is_repeated_until_it_is_good_enough(make: Make) -> None:
    ours = make(REPEAT, polish=scores(70, 80, 90))
    result = ours.run()
    assert (result.outcome, result.attempts) == ("done", {"draft": 1, "polish": 3, "ship": 1})
    assert [told["previous"] for told in ours.briefings("polish")] == [None, {"score": 70}, {"score": 80}]
    assert ours.backedge("check", "--json").json["max_attempts"] == 3 * (1 + 3 + 1) * (1 + 20)


def test_an_exhausted_repetition_asks_a_person_who_can_grant_more(make: Make) -> None:
    ours = make(REPEAT, polish=scores(70, 80, 85, 88, 91))
    result = ours.run()
    assert (result.code, result.outcome, result.breach) == (3, "waiting", ("repeat", 3, 3))
    assert result.escalation["options"] == ["continue", "skip", "cancel"]
    assert "'polish:/score >= 90' is still not met: it is 85" in result.escalation["reason"]
    result = ours.answer("E-1", "continue", "--rounds", 2)
    assert (result.outcome, result.attempts["polish"]) == ("done", 5)


def test_an_exhausted_repetition_can_go_back_to_another_step(make: Make) -> None:
    steps = {
        **REPEAT["steps"],
        "polish": {"needs": ["draft"], "repeat": {"until": "polish:/ok", "max": 2, "to": "draft"}},
    }
    ours = make({"steps": steps}, draft=[{"output": 1}, {"output": 2}], polish=[{}, {}, {"output": {"ok": True}}])
    result = ours.run()
    assert (result.outcome, result.attempts) == ("done", {"draft": 2, "polish": 3, "ship": 1})
    assert (result.loop["kind"], result.loop["source"], result.loop["state"]) == ("fix_request", "polish", "resolved")
    (request,) = ours.briefings("draft")[1]["feedback"]["requests"]
    assert "'polish' ran 2 times" in request["message"]


def test_what_a_condition_names_must_run_before_it(make: Make) -> None:
    ours = make({"steps": {"a": {"when": "b:/x"}, "b": {"needs": ["a"]}}})
    assert "which does not run before it: add that step to needs" in ours.refused("check")
