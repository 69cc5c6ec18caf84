"""From the outside: demands that undo each other, moving goalposts, and what another round would cost."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Project, failed, passed, raises

LOCK = {"description": "take the lock", "file": "api.py", "line": 12}
NO_LOCK = {"description": "take no lock", "file": "api.py", "line": 12}
TWO = {
    "code": {"phase": "code", "writes": []},
    "review": {"reviews": "code"},
    "security": {"reviews": "code"},
}
VERSIONS = [{"output": number} for number in range(20)]


def ping_pong(make: Make) -> Project:
    return make(
        {"steps": TWO},
        code=VERSIONS,
        review=[failed(LOCK), passed(), failed(LOCK), passed()],
        security=[passed(), failed(NO_LOCK), passed()],
    )


def test_opposite_demands_go_to_the_inbox_and_nothing_is_reworked(make: Make) -> None:
    project = ping_pong(make)
    result = project.run()
    assert (result.code, result.outcome, result.attempts["code"]) == (3, "waiting", 3)
    assert result.escalation["reason"] == (
        "contested: F-1 of review wants 'take the lock', F-2 of security wants 'take no lock', both at api.py:12"
    )
    assert [each["status"] for each in result.findings] == ["contested", "contested"]
    assert "Contested: F-1 of review wants 'take the lock'" in project.backedge("inbox").out
    assert project.backedge("resume", "--json").json["steps"]["code"]["attempts"] == 3


@pytest.mark.parametrize(
    ("choice", "outcome", "statuses"),
    [
        (("continue", "--note", "the lock stays"), "verified", ["fixed", "fixed"]),
        (("accept",), "accepted", ["accepted", "fixed"]),
        (("resolve", "--note", "no lock"), "verified", ["fixed", "fixed"]),
    ],
)
def test_a_decision_about_opposite_demands_ends_them(
    make: Make, choice: tuple[str, ...], outcome: str, statuses: list[str]
) -> None:
    project = ping_pong(make)
    project.run()
    project.decide("E-1", *choice)
    after = project.backedge("resume", "--json").json
    assert (after["outcome"], [each["status"] for each in after["findings"]]) == (outcome, statuses)


def test_new_findings_are_handled_by_severity(make: Make) -> None:
    steps = {"code": {"phase": "code", "writes": []}, "review": {"reviews": "code"}}
    late = [{"description": word, "severity": word} for word in ("critical", "high", "medium", "low")]
    policy = {"critical": "rework", "high": "defer", "medium": "rework", "low": "defer"}
    project = make(
        {"steps": steps, "new_findings": policy}, code=VERSIONS, review=[failed("first"), failed(*late), passed()]
    )
    result = project.run()
    # What a policy defers is not fixed: a run that leaves a high finding deferred is not verified.
    assert (result.outcome, result.code) == ("accepted", 4)
    assert result.report["reason"] == "critical or high findings are deferred: F-3"
    statuses = {each["description"]: each["status"] for each in result.findings}
    assert statuses == {
        "first": "fixed",
        "critical": "fixed",
        "high": "deferred",
        "medium": "fixed",
        "low": "deferred",
    }


def test_a_diverging_loop_shows_its_numbers_everywhere(make: Make) -> None:
    steps = {"code": {"phase": "code", "writes": []}, "review": {"reviews": "code", "complete": True}}
    project = make(
        {"steps": steps, "limits": {"diverging": True, "rounds_per_loop": 9}},
        code=[{"output": {"a": number}} for number in range(20)],
        review=[failed({"description": f"{number}", "path": "/a"}) for number in range(20)],
    )
    result = project.run()
    words = "limit diverging (2/2): the last two fixes introduced 2 findings and removed 2"
    assert result.escalation["reason"] == words
    assert result.escalation["breach"] == {"limit": "diverging", "count": 2, "bound": 2}
    assert words in project.backedge("show").out


# What a further round sets in motion

COSTS = {"plan": 0.5, "code": 0.25, "docs": 0.125, "review": 0.0625}


def costly(name: str, *replies: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**reply, "usage": {"cost_usd": COSTS[name]}} for reply in replies]


def test_what_if_predicts_what_really_runs_and_what_it_costs(make: Make) -> None:
    steps = {
        "plan": {"phase": "planning", "writes": []},
        "code": {"phase": "code", "needs": ["plan"], "writes": []},
        "docs": {"phase": "code", "needs": ["plan"], "writes": []},
        "review": {"reviews": "code", "needs": ["docs"]},
    }
    both = {"description": "wrong from the start", "affected_phase": ["planning", "code"]}
    outputs = [{"output": number} for number in range(9)]
    project = make(
        {"steps": steps, "limits": {"rounds_per_loop": 0}},
        plan=costly("plan", *outputs),
        code=costly("code", *outputs),
        docs=costly("docs", *outputs),
        review=costly("review", dict(failed(both)), dict(passed())),
    )
    before = project.run()
    blast = project.backedge("what-if", "L-1", "--json").json
    project.decide("E-1", "continue")
    after = project.backedge("resume", "--json").json
    ran = Counter({name: step["attempts"] for name, step in after["steps"].items()}) - Counter(before.attempts)
    told = Counter([*blast["reworks"], *blast["cascades"], *blast["verifies"]])
    assert after["outcome"] == "verified"
    assert told == ran
    assert blast["cost_usd"] == pytest.approx(after["usage"]["cost_usd"] - sum(COSTS.values()))


def test_what_if_of_a_question_names_only_the_target_and_the_source(make: Make) -> None:
    steps = {
        "plan": {"phase": "planning", "writes": []},
        "code": {"phase": "code", "needs": ["plan"], "writes": []},
        "docs": {"phase": "code", "needs": ["plan"], "writes": []},
    }
    project = make(
        {"steps": steps, "limits": {"rounds_total": 0}},
        plan=[{"output": 1}, {"answer": "yes"}],
        code=[{"feedback": [raises("context_request", "plan")]}, {}],
    )
    before = project.run()
    blast = project.backedge("what-if", "L-1", "--json").json
    assert (blast["reworks"], blast["cascades"], blast["verifies"]) == (["plan"], ["code"], [])
    project.decide("E-1", "continue")
    after = project.backedge("resume", "--json").json
    ran = Counter({name: step["attempts"] for name, step in after["steps"].items()}) - Counter(before.attempts)
    assert ran == Counter(["plan", "code"])


@pytest.mark.parametrize(("kind", "without"), [("constraint_violation", []), ("fix_request", ["plan"])])
def test_what_if_of_a_choice_shows_the_effect_of_each_option(make: Make, kind: str, without: list[str]) -> None:
    """An option without `rework` is only an answer, unless the kind is resolved by rework of the targets."""
    steps = {
        "plan": {"phase": "planning", "writes": []},
        "code": {"phase": "code", "needs": ["plan"], "writes": []},
        "docs": {"phase": "code", "needs": ["plan"], "writes": []},
    }
    options = [{"option": "polling", "rework": ["plan"]}, {"option": "push"}]
    asks = {**raises(kind, "plan"), "to": ["plan", "human"], "options": options}
    costs = {"plan": 1.0, "code": 2.0, "docs": 4.0}
    project = make(
        {"steps": steps},
        plan=[{"output": 1, "usage": {"cost_usd": costs["plan"]}}, {"decision": {"option": "polling"}}],
        code=[{"feedback": [asks], "usage": {"cost_usd": costs["code"]}}, {}],
        docs=[{"usage": {"cost_usd": costs["docs"]}}],
    )
    assert project.run().code == 3
    chosen = project.backedge("what-if", "L-1", "--json").json["options"]
    assert {option: (each["reworks"], each["cascades"]) for option, each in chosen.items()} == {
        "polling": (["plan"], ["code", "docs"]),
        "push": (without, ["code", "docs"] if without else ["code"]),
    }
    # The attempt of plan that chose cost nothing.
    assert (chosen["polling"]["cost_usd"], chosen["push"]["cost_usd"]) == (6.5, 6.5 if without else 2.0)
    words = project.backedge("what-if", "L-1").out
    assert "asked to choose: plan" in words and "if “polling” is chosen\n  reworked: plan" in words
