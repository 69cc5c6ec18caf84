"""From the outside: workflows that change while they run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import PYTHON, Project, failed, killed, passed, raises, until

SHOP: dict[str, Any] = {
    "steps": {
        "plan": {"phase": "planning", "plans": True},
        "code": {"phase": "code", "needs": ["plan"]},
        "ship": {"phase": "code", "needs": ["code"]},
    },
}


def scripted(project: Project, **more: Any) -> dict[str, Any]:
    """A step whose agent is scripted."""
    return {"run": [*PYTHON, str(project.folder / "agent.py")], **more}


def planning(make: Make, workflow: dict[str, Any] = SHOP, **scripts: Any) -> Project:
    """A project; a script may be a function of it."""
    project = make(workflow)
    project.script(**{name: each(project) if callable(each) else each for name, each in scripts.items()})
    return project


def order(project: Project) -> list[str]:
    return [step for _, step, _, _ in project.executions()]


MISSING = raises("dependency_missing", message="there is no refund model")


def test_a_missing_dependency_is_added_and_the_step_that_needs_it_runs_after_it(make: Make) -> None:
    project = planning(
        make,
        plan=lambda it: [{"output": "p"}, {"output": "p", "add_steps": {"refund_model": scripted(it, needs=["plan"])}}],
        code=[{"output": "stub", "feedback": [MISSING]}, {"output": "done"}],
        refund_model=[{"output": {"table": "refunds"}}],
    )
    result = project.run()
    assert (result.code, result.outcome) == (0, "done")
    assert order(project) == ["plan", "code", "plan", "refund_model", "code", "ship"]
    assert result.loop["targets"] == ["plan"] and result.loop["state"] == "resolved"
    assert project.briefings("plan")[1]["feedback"]["requests"][0]["message"] == "there is no refund model"
    assert project.briefings("code")[1]["inputs"] == {"plan": "p", "refund_model": {"table": "refunds"}}
    assert result.plans == [
        {"by": "plan", "attempt": 2, "added": ["refund_model"], "removed": [], "loops": ["L-1"], "replaced": []}
    ]


def test_a_circular_design_is_replanned_and_only_what_depends_on_the_change_runs_again(make: Make) -> None:
    workflow = {
        "steps": {
            "plan": {"phase": "planning", "plans": True, "writes": []},
            "auth": {"phase": "design", "needs": ["plan"]},
            "users": {"phase": "design", "needs": ["plan"]},
            "docs": {"phase": "design", "needs": ["plan"]},
            "review": {"reviews": ["auth", "users"]},
            "code": {"phase": "code", "needs": ["auth", "users"]},
        }
    }
    circle = {"description": "auth needs users, users needs auth", "affected_phase": "planning"}
    project = planning(
        make,
        workflow,
        plan=lambda it: [
            {"output": "p"},
            {
                "output": "p",
                "add_steps": {
                    "identity": scripted(it, phase="design", needs=["plan"]),
                    "users": scripted(it, phase="design", needs=["plan", "identity"]),
                },
            },
        ],
        users=[{"output": "v1"}, {"output": "v2"}],
        review=[failed(circle), passed()],
    )
    result = project.run()
    assert (result.code, result.outcome) == (0, "verified")
    assert result.attempts == {
        "plan": 2, "auth": 1, "users": 2, "docs": 1, "review": 2, "code": 1, "identity": 1,
    }  # fmt: skip
    assert project.briefings("users")[1]["inputs"].keys() == {"plan", "identity"}


def test_a_removed_step_asks_no_questions(make: Make) -> None:
    project = planning(make, plan=[{"output": "p", "remove_steps": ["ship"]}])
    result = project.run()
    assert (result.outcome, list(result.steps)) == ("done", ["plan", "code"])


def test_a_planner_gets_the_steps_and_how_many_more_it_may_add(make: Make) -> None:
    project = planning(make, {**SHOP, "max_steps": 7})
    project.run()
    told = project.briefings("plan")[0]
    assert [(each["name"], each["needs"]) for each in told["steps"]] == [
        ("plan", []), ("code", ["plan"]), ("ship", ["code"]),
    ]  # fmt: skip
    assert told["limits_left"]["max_steps"] == 4
    assert project.briefings("code")[0]["steps"] == []


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ({"x": {"run": ["true"], "nedds": ["plan"]}}, "add_steps.x.nedds: unknown key: did you mean 'needs'?"),
        ({"x": {"needs": ["plan"]}}, "add_steps.x: missing: expected one of run, agent or agents"),
        ({"x": {"agent": "clade"}}, "add_steps.x.agent: unknown agent 'clade': did you mean 'claude'?"),
        ({"x": {"run": ["true"], "workspace": "../.."}}, "which leaves the folder of this file"),
        ({"x y": {"run": ["true"]}}, "got the name 'x y'"),
        ({"x": {"run": ["true"], "needs": ["y"]}, "y": {"run": ["true"], "needs": ["x"]}}, "in a circle"),
        ({"x": {"run": ["true"], "needs": ["ship"], "phase": "planning"}}, "of the later phase code"),
        ({"x": {"reviews": "nobody", "run": ["true"]}}, "judges 'nobody', which does not exist"),
        ({"x": "true"}, "add_steps.x: got"),
        ({f"x{number}": {"run": ["true"]} for number in range(48)}, "max_steps: 48 more would make 51 steps"),
    ],
)
def test_a_step_that_cannot_be_added_is_an_error_that_names_it(make: Make, added: Any, said: str) -> None:
    project = planning(make, {**SHOP, "limits": {"errors_in_a_row": 1}}, plan=[{"add_steps": added}])
    result = project.run()
    assert result.code == 3 and list(result.steps) == ["plan", "code", "ship"]
    assert said in result.escalation["reason"], result.escalation["reason"]


def test_a_step_without_plans_cannot_add_steps(make: Make) -> None:
    project = planning(make, {**SHOP, "limits": {"errors_in_a_row": 1}}, code=[{"add_steps": {"x": {"run": ["true"]}}}])
    assert "only a step with `plans: true` may" in project.run().escalation["reason"]


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"installs": True}, "add_steps.more.installs: a planner may not add a step with `installs: true`"),
        ({"sandbox": "off"}, "add_steps.more.sandbox: a planner may not add a step with `sandbox: off`"),
        ({"run": None, "agent": "python:shop.agents:more"}, "a planner may not add the function 'shop.agents:more'"),
    ],
)
def test_a_planner_allows_its_steps_nothing_that_only_people_may_allow(
    make: Make, given: dict[str, Any], refused: str
) -> None:
    def plan(it: Project) -> list[Any]:
        more = {key: value for key, value in {**scripted(it, phase="code"), **given}.items() if value is not None}
        return [{"output": "p", "add_steps": {"more": more}}]

    assert refused in planning(make, plan=plan).run().escalation["reason"]


def test_check_prints_the_bound_with_what_planners_may_add(make: Make) -> None:
    assert make(SHOP).backedge("check", "--json").json["max_attempts"] == 3 * (50 + 50) * 21
    assert make({**SHOP, "max_steps": 5}).backedge("check", "--json").json["max_attempts"] == 3 * (5 + 5) * 21
    said = make({**SHOP, "max_steps": 2}).refused("check")
    assert "the workflow has 3 steps, but max_steps is 2: raise max_steps" in said


def test_added_steps_outlive_the_process_that_added_them(make: Make) -> None:
    """kill -9 while an added step runs; the resumed process starts the next steps, with agents from the file."""
    project = planning(
        make,
        plan=lambda it: [
            {"add_steps": {"slow": scripted(it, needs=["plan"]), "last": {"agent": "helper", "needs": ["slow"]}}}
        ],
        slow=[{"output": "s", "!wait": "go"}],
        last=[{"output": "l"}],
    )
    project.write({**SHOP, "agents": {"helper": scripted(project)}})
    process = project.started("run")
    project.wait_for_execution("slow")
    until(lambda: project.show().steps["ship"]["state"] == "done")
    killed(process)
    (project.folder / "go").touch()
    result = project.resume()
    assert (result.code, result.outcome) == (0, "done")
    assert result.steps["last"]["output"] == "l" and result.attempts["slow"] == 1


def test_steps_join_a_run_whose_checks_are_done_by_commands_and_whose_gates_read_reports(make: Make) -> None:
    agrees = [*PYTHON, "-c", 'print(\'{"verdict": "pass"}\')']
    measured = {
        "checks": {"fits": {"compare": ["plan:/a", "code:/a"], "compatible": {"run": agrees}}},
        "gates": {"size": {"metric": {"report": "size.json"}, "at_most": 5, "needs": ["code"]}},
    }
    project = planning(
        make,
        {**SHOP, **measured},
        plan=lambda it: [{"output": {"a": 1}, "add_steps": {"docs": scripted(it, needs=["plan"])}}],
        code=[{"output": {"a": 2}}],
    )
    (project.folder / "size.json").write_text("3")
    result = project.run()
    assert (result.code, result.outcome, result.attempts["plan"], result.attempts["docs"]) == (0, "verified", 1, 1)


@pytest.mark.parametrize("change", [{"remove_steps": ["plan"]}, {"add_steps": {"plan": {"run": ["true"]}}}])
def test_a_planner_cannot_change_itself(make: Make, change: dict[str, Any]) -> None:
    project = planning(make, {**SHOP, "limits": {"errors_in_a_row": 1}}, plan=[{"output": 1, **change}])
    assert (
        "'plan' replaces or removes itself: a planner may change only other steps" in project.run().escalation["reason"]
    )


def test_show_distinguishes_new_steps_from_replaced_ones(make: Make) -> None:
    project = planning(
        make,
        plan=lambda it: [
            {
                "add_steps": {name: scripted(it, phase="code", needs=["plan"]) for name in ("docs", "code")},
                "remove_steps": ["ship"],
            }
        ],
    )
    result = project.run()
    assert "plan added docs, replaced code and removed ship" in project.backedge("show").out
    (change,) = result.plans
    assert (change["added"], change["replaced"], change["removed"]) == (["docs", "code"], ["code"], ["ship"])


def test_a_step_that_needs_a_group_needs_the_steps_that_join_it(make: Make) -> None:
    steps = {
        "plan": {"phase": "planning", "plans": True},
        "login": {"phase": "code", "group": "screens", "needs": ["plan"]},
        "release": {"phase": "test", "needs": "screens"},
    }
    search = {"phase": "code", "group": "screens", "needs": ["plan"]}
    project = planning(make, {"steps": steps}, plan=lambda it: [{"add_steps": {"search": scripted(it, **search)}}])
    assert project.run().code == 0
    assert project.briefings("release")[0]["inputs"].keys() == {"login", "search"}


def test_show_and_the_journal_have_the_change(make: Make) -> None:
    project = planning(make, plan=lambda it: [{"add_steps": {"docs": scripted(it, needs=["plan"])}}])
    project.run()
    (change,) = [event for event in project.events() if event["type"] == "steps_changed/2"]
    assert change["by"] == "plan" and change["specs"]["docs"]["needs"] == ["plan"]
    assert "plan added docs" in project.backedge("show").out
    assert project.backedge("audit", "verify").code == 0
