"""Checks and gates from the workflow file, with agents, reports and comparisons in separate processes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import PYTHON, failed, killed, passed, until

DESIGN: dict[str, Any] = {
    "steps": {
        "plan": {"phase": "planning"},
        "ux": {"phase": "design", "group": "design", "needs": ["plan"]},
        "arch": {"phase": "design", "group": "design", "needs": ["plan"]},
        "code": {"phase": "code", "needs": "design"},
    }
}
PLACES = ["ux:/design_system/breakpoints", "arch:/responsive/breakpoints"]


def ux(*values: Any) -> list[dict[str, Any]]:
    return [{"output": {"design_system": {"breakpoints": value}}} for value in values]


def arch(*values: Any) -> list[dict[str, Any]]:
    return [{"output": {"responsive": {"breakpoints": value}}} for value in values]


def checked(**more: Any) -> dict[str, Any]:
    return {**DESIGN, "checks": {"breakpoints": {"compare": PLACES, **more}}}


def test_conflicting_positions_are_resolved_before_downstream_steps_start(make: Make) -> None:
    ours = make(checked(rule="equal", resolve="consensus", severity="high"), ux=ux(320, 360), arch=arch(768, 360))
    result = ours.run()
    assert (result.code, result.outcome) == (0, "verified")
    assert result.attempts == {"plan": 1, "ux": 2, "arch": 2, "code": 1}
    assert result.checks["breakpoints"]["verdict"] == "pass"
    assert (result.loop["kind"], result.loop["source"]) == ("inconsistency", "breakpoints")
    assert (result.loop["targets"], result.loop["rounds"]) == (["ux", "arch"], 1)
    for name in ("ux", "arch"):
        (found,) = ours.briefings(name)[1]["feedback"]["findings"]
        assert json.loads(found["evidence"])["positions"] == {PLACES[0]: 320, PLACES[1]: 768}
    assert ours.briefings("code")[0]["inputs"]["ux"] == {"design_system": {"breakpoints": 360}}
    assert "breakpoints" in ours.backedge("show").out


def test_the_position_of_the_first_authority_stands(make: Make) -> None:
    ours = make(checked(resolve="authority", authority=["ux", "arch"]), ux=ux(320), arch=arch(768, 320))
    result = ours.run()
    assert (result.outcome, result.attempts) == ("verified", {"plan": 1, "ux": 1, "arch": 2, "code": 1})
    (found,) = ours.briefings("arch")[1]["feedback"]["findings"]
    assert "adopt the position of ux" in found["suggested_fix"]


def test_steps_that_never_agree_become_a_question_with_all_positions(make: Make) -> None:
    ours = make(checked(), ux=ux(1, 2, 3, 4, 5, 6, 7), arch=arch(10, 20, 30, 40, 50, 60, 70))
    result = ours.run()
    assert (result.code, result.outcome, result.breach) == (3, "waiting", ("rounds_per_loop", 5, 5))
    assert "is 6" in result.escalation["message"]
    assert "is 60" in result.escalation["message"]
    assert result.attempts["code"] == 0
    result = ours.answer("E-1", "accept")
    assert (result.outcome, result.attempts["code"]) == ("accepted", 1)


COMPARE = """\
import json, sys
told = json.load(sys.stdin)
first, second = told["inputs"].values()
print(json.dumps({"verdict": "pass"} if first < second else {"verdict": "fail", "summary": f"{first} is not below {second}"}))
"""


def test_a_command_can_compare(make: Make) -> None:
    ours = make(ux=ux(5, 1), arch=arch(3))
    (ours.folder / "compare.py").write_text(COMPARE)
    run = [*PYTHON, "compare.py"]
    ours.write(checked(rule="compatible", compatible={"run": run}, resolve="authority", authority=["arch"]))
    result = ours.run()
    assert (result.outcome, result.attempts) == ("verified", {"plan": 1, "ux": 2, "arch": 1, "code": 1})
    assert result.finding["description"].startswith("breakpoints: 5 is not below 3: ")
    assert result.usage["attempts"] == 5


def test_a_failing_comparison_command_is_an_error_and_not_a_verdict(make: Make) -> None:
    run = [*PYTHON, "-c", "raise SystemExit('no table')"]
    ours = make({**checked(compatible={"run": run}), "limits": {"errors_in_a_row": 2}}, ux=ux(1), arch=arch(2))
    result = ours.run()
    assert (result.code, result.breach, result.loops) == (3, ("errors_in_a_row", 2, 2), [])
    assert "no table" in result.escalation["reason"]
    assert ours.answer("E-1", "skip").outcome == "accepted"


def test_resume_waits_for_a_comparison_that_a_crash_interrupted(make: Make) -> None:
    ours = make(ux=ux(1), arch=arch(2))
    script = "import time, pathlib; pathlib.Path('began').touch(); time.sleep(1.5); print('{\"verdict\": \"pass\"}')"
    ours.write(checked(compatible={"run": [*PYTHON, "-c", script]}))
    process = ours.started("run")
    until(lambda: (ours.folder / "began").exists())
    killed(process)
    result = ours.resume()
    assert (result.outcome, result.checks["breakpoints"]["attempts"]) == ("verified", 1)


@pytest.mark.parametrize(("browser", "framework", "fits"), [("ie11", "react17", True), ("ie11", "react18", False)])
def test_a_table_lists_compatible_values(make: Make, browser: str, framework: str, fits: bool) -> None:
    table = {"table": {"ie11": ["react17", "preact"]}}
    ours = make({**checked(compatible=table), "limits": {"rounds_per_loop": 0}}, ux=ux(browser), arch=arch(framework))
    assert (ours.run().outcome == "verified") is fits


GATES: dict[str, Any] = {
    "steps": {
        "design": {"phase": "design"},
        "code": {"phase": "code", "needs": ["design"]},
        "test": {"phase": "test", "needs": ["code"]},
        "ship": {"needs": ["test"]},
    },
    "gates": {
        "coverage": {
            "metric": "test:/coverage",
            "at_least": 80,
            "causes": "test:/uncovered",
            "requests": {"code": "add tests for the uncovered lines", "design": "split the module"},
        }
    },
}


def covered(*values: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"output": {"coverage": value, **more}} for value in values]


def test_a_failing_gate_sends_each_target_its_request_and_measures_once(make: Make) -> None:
    ours = make(
        GATES,
        design=[{"output": 1}, {"output": 2}],
        code=[{"output": 1}, {"output": 2}],
        test=covered(60, 85, uncovered=["a.py:3"]),
    )
    result = ours.run()
    assert (result.code, result.outcome) == (0, "verified")
    assert result.attempts == {"design": 2, "code": 2, "test": 2, "ship": 1}
    assert (result.gates["coverage"]["attempts"], result.gates["coverage"]["verdict"]) == (2, "pass")
    assert (result.loop["kind"], result.loop["state"]) == ("quality_gate_failure", "resolved")
    (code,) = ours.briefings("code")[1]["feedback"]["findings"]
    (design,) = ours.briefings("design")[1]["feedback"]["findings"]
    assert code["description"] == (
        "coverage: test:/coverage is 60, expected at least 80: add tests for the uncovered lines"
    )
    assert design["suggested_fix"] == "split the module"
    assert json.loads(code["evidence"])["causes"] == ["a.py:3"]


def test_a_gate_on_a_report_blocks_what_depends_on_it(make: Make) -> None:
    work = {
        "steps": GATES["steps"],
        "gates": {
            "coverage": {
                "metric": {"report": "coverage.json", "path": "/totals/percent_covered"},
                "at_least": 80,
                "needs": "test",
                "requests": {"code": "add tests"},
            }
        },
        "limits": {"rounds_per_loop": 0},
    }
    ours = make(work)
    (ours.folder / "coverage.json").write_text('{"totals": {"percent_covered": 61.5}}')
    result = ours.run()
    assert (result.code, result.attempts["ship"]) == (3, 0)
    assert "coverage.json:/totals/percent_covered is 61.5, expected at least 80" in result.escalation["message"]


def test_a_missing_report_is_an_error_that_says_so(make: Make) -> None:
    gate = {"metric": {"report": "none.json"}, "zero": True, "needs": ["test"]}
    ours = make({"steps": GATES["steps"], "gates": {"g": gate}, "limits": {"errors_in_a_row": 1}})
    result = ours.run()
    assert (result.code, result.breach) == (3, ("errors_in_a_row", 1, 1))
    assert "the report 'none.json' cannot be read" in result.escalation["reason"]


def test_several_judges_of_one_artifact_make_one_rework(make: Make) -> None:
    steps = {
        "code": {},
        "code_review": {"reviews": "code"},
        "security": {"reviews": "code"},
        "product": {"reviews": "code"},
    }
    same = {"description": "no login", "category": "security", "severity": "high"}
    ours = make(
        {"steps": steps},
        code=[{"output": 1}, {"output": 2}],
        code_review=[failed(same), passed()],
        security=[failed({**same, "severity": "critical"}, "weak hash"), passed()],
        product=[passed()],
    )
    result = ours.run()
    assert (result.outcome, result.attempts) == (
        "verified",
        {"code": 2, "code_review": 2, "security": 2, "product": 2},
    )
    told = ours.briefings("code")[1]["feedback"]["findings"]
    assert [(each["description"], each["found_by"]) for each in told] == [
        ("no login", "security, code_review"),
        ("weak hash", "security"),
    ]
    assert {each["status"] for each in result.findings} == {"fixed"}


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"checks": {"c": {"compare": ["ux:/a"]}}}, "checks.c.compare"),
    (
        {"checks": {"c": {"compare": ["ux:/a", "arh:/a"]}}},
        "check 'c' names 'arh', which does not exist: did you mean 'arch'?",
    ),
    ({"checks": {"c": {"compare": PLACES, "rule": "eqal"}}}, "did you mean 'equal'?"),
    ({"checks": {"ux": {"compare": PLACES}}}, "check 'ux' has the name of a step"),
    ({"gates": {"g": {"metric": "ux:/a"}}}, "expected one of at_least, at_most, equals or zero"),
    ({"gates": {"g": {"metric": {"report": "../x"}, "zero": True, "needs": ["ux"]}}}, "leaves the folder of this file"),
    ({"gates": {"g": {"metric": "ux:/a", "at_least": 1, "requests": {"code": "x"}}}}, "which is not before it"),
]


@pytest.mark.parametrize(("more", "why"), MISTAKES)
def test_a_mistake_is_reported_with_its_place(make: Make, more: dict[str, Any], why: str) -> None:
    said = make({**DESIGN, **more}).refused("check")
    assert why in said
    assert "backedge.yaml:" in said


def test_check_draws_checks_and_gates(make: Make) -> None:
    ours = make({**checked(), "gates": {"size": {"metric": "ux:/size", "at_most": 3}}})
    drawn = ours.backedge("check").out
    assert f"compares {', '.join(PLACES)}".split()[1].rstrip(",") in drawn
    assert "holds ux:/size to at most 3" in drawn
    told = ours.backedge("check", "--json").json
    assert (told["checks"], told["gates"], told["steps"]) == (["breakpoints"], ["size"], ["plan", "ux", "arch", "code"])
    assert told["max_attempts"] == 3 * 4 * 21
