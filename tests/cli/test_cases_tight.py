"""From the outside: the cases of the tight feedback loop (A2)."""

from __future__ import annotations

import signal
from typing import Any

from tests.cli.conftest import Make
from tests.cli.project import Project, Result, failed, finished, passed

TIGHT: dict[str, Any] = {
    "profile": "tight-loop",
    "steps": {"implement": {"phase": "code"}, "review": {"reviews": "implement"}, "test": {"tests": "implement"}},
}


def tight(make: Make, reviews: list[Any], tests: list[Any] | None = None, **more: Any) -> tuple[Project, Result]:
    project = make({**TIGHT, **more}, review=reviews, test=tests or [passed()])
    return project, project.run()


def test_a2_01_all_pass_at_once(make: Make) -> None:
    _, result = tight(make, [passed()])
    assert (result.code, result.outcome) == (0, "verified")
    assert (result.attempts, result.loops) == ({"implement": 1, "review": 1, "test": 1}, [])
    assert {step["state"] for step in result.steps.values()} == {"done"}


def test_a2_02_a_failing_review_skips_the_tests_and_goes_into_the_next_iteration(make: Make) -> None:
    project, result = tight(make, [failed("not compliant"), passed()])
    assert result.attempts == {"implement": 2, "review": 2, "test": 1}
    assert project.told("implement") == [[], ["not compliant"]]
    order = [step for _, step, _, _ in project.executions()]
    assert order == ["implement", "review", "implement", "review", "test"]


def test_a2_03_failing_tests_are_one_more_iteration(make: Make) -> None:
    _project, result = tight(make, [passed()], [failed("t"), passed()])
    assert (result.outcome, result.attempts) == ("verified", {"implement": 2, "review": 2, "test": 2})
    assert (result.loop["kind"], result.loop["rounds"], result.finding["status"]) == ("test_failure", 1, "fixed")
    assert result.finding["found_by"] == "test"


def test_a2_04_an_iteration_gets_only_the_issues_of_the_previous_one(make: Make) -> None:
    project, _ = tight(make, [failed("r1"), passed()], [failed("t2"), passed()])
    assert project.told("implement") == [[], ["r1"], ["t2"]]
    first, second, third = project.briefings("implement")
    assert (first["history"], first["feedback"]["findings"], first["previous"]) == ([], [], None)
    assert [each["found_by"] for each in second["feedback"]["findings"]] == ["review"]
    assert [each["found_by"] for each in third["feedback"]["findings"]] == ["test"]


def test_a2_07_the_same_test_failure_in_three_runs_escalates(make: Make) -> None:
    # What differs by accident (a line, a time, an address) does not make it another failure.
    same = [failed(f"/tmp/x{n}/t.py:{n}: AssertionError at 0x7f{n}c at 2024-01-0{n}T10:00:00Z") for n in (1, 2, 3)]
    _, result = tight(make, [passed()], same)
    assert result.breach == ("same_finding", 3, 3)
    assert (result.finding["rounds_seen"], result.attempts["implement"]) == (3, 3)


def stopped(make: Make) -> tuple[Project, Result]:
    return tight(make, [failed(f"{n}") for n in range(20)])


def test_a2_the_fifth_cycle_is_the_last_and_continue_adds_three(make: Make) -> None:
    project, result = stopped(make)
    assert (result.attempts["implement"], result.breach) == (5, ("rounds_per_step", 4, 4))
    again = project.answer("E-1", "continue")
    assert (again.attempts["implement"], again.breach) == (8, ("rounds_per_step", 7, 7))


def test_a2_10_accepting_the_current_state_is_not_verified(make: Make) -> None:
    project, _ = stopped(make)
    again = project.answer("E-1", "accept", "--by", "ann", "--note", "good enough")
    assert (again.code, again.outcome, again.loop["state"]) == (4, "accepted", "accepted")
    # Those of earlier rounds were not mentioned again; the known issue is on the debt list.
    assert [each["description"] for each in again.findings if each["status"] == "accepted"][-1] == "4"
    assert "open" not in {each["status"] for each in again.findings}
    assert again.attempts == {"implement": 5, "review": 5, "test": 1}
    assert project.backedge("resume", "--json").code == 4


def test_a2_11_showing_the_history_changes_nothing_and_cancelling_keeps_the_work(make: Make) -> None:
    project, _result = stopped(make)
    before = project.events()
    shown = project.backedge("show")
    assert shown.code == 0 and all(f"F-{n}" in shown.out for n in range(1, 6))
    assert project.events() == before
    again = project.answer("E-1", "cancel")
    assert (again.code, again.outcome, again.loop["state"]) == (1, "cancelled", "cancelled")
    assert again.steps["implement"]["version"] == 5


def test_a2_12_an_unrecognised_verdict_is_never_a_pass(make: Make) -> None:
    vague = {"summary": "looks fine to me"}
    _project, result = tight(make, [vague, vague, vague, passed()])
    assert (result.code, result.breach) == (3, ("errors_in_a_row", 3, 3))
    assert result.escalation["step"] == "review"
    assert "no verdict: say pass, fail or needs_improvement; it said: looks fine" in result.escalation["reason"]
    assert (result.attempts["test"], result.loops) == (0, [])


def test_a2_14_counters_survive_a_restart_in_the_middle_of_the_loop(make: Make) -> None:
    project = make(
        TIGHT,
        implement=[{}, {"!sleep": 60}, {}],
        review=[passed()],
        test=[failed("same"), failed("same"), failed("same")],
    )
    process = project.started("run", "--json")
    project.wait_for_execution("implement", 2)
    process.send_signal(signal.SIGINT)
    assert finished(process).code == 130
    result = project.resume()
    assert (result.breach, result.loop["rounds"]) == (("same_finding", 3, 3), 2)
    assert [told["round"] for told in project.briefings("implement")] == [0, 1, 1, 2]


def test_a2_15_another_agent_does_not_reset_the_counters_revise_does_and_is_logged(make: Make) -> None:
    project = make()
    agent = {"run": ["python3", "-I", "-S", str(project.folder / "agent.py")]}
    steps = {**TIGHT["steps"], "implement": {"phase": "code", "agents": ["junior", "senior"]}}
    project.write({**TIGHT, "agents": {"junior": agent, "senior": agent}, "steps": steps})
    project.script(review=[failed(f"{n}") for n in range(20)])
    result = project.run()
    assert result.breach == ("rounds_per_step", 4, 4)
    assert [told["agent"] for told in project.briefings("implement")] == ["junior"] * 2 + ["senior"] * 3
    # A new name for the workflow is not a new run either.
    project.write({**TIGHT, "name": "renamed", "steps": steps, "agents": {"junior": agent, "senior": agent}})
    assert project.resume().breach == ("rounds_per_step", 4, 4)
    again = project.answer("E-1", "revise", "--note", "start over")
    assert again.attempts["implement"] == 9
    (decided,) = [each for each in project.events() if each["type"].startswith("escalation_decided")]
    assert (decided["choice"], decided["note"]) == ("revise", "start over")
