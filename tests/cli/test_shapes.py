"""The JSON that commands print: every key with its type, and nothing else on stdout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import NODE, Project, failed, passed, raises

Null = type(None)
NUMBER = (int, float)

REPORT = {
    "run": str,
    "workflow": str,
    "outcome": str,
    "paused": bool,
    "steps": dict,
    "loops": list,
    "findings": list,
    "escalations": list,
    "refused": list,
    "usage": dict,
}
STEP = {"phase": str, "state": str, "attempts": int, "output": object}
LOOP = {
    "id": str,
    "kind": str,
    "source": str,
    "targets": list,
    "state": str,
    "rounds": int,
    "routed_by": str,
    "caused_by": (str, Null),
    "findings": list,
    "breach": (dict, Null),
    "resolution": (dict, Null),
}
FINDING = {
    "id": str,
    "description": str,
    "severity": str,
    "status": str,
    "found_by": str,
    "affected_phase": list,
    "introduced_by": (str, Null),
    "rounds_seen": int,
    "fix_authored": bool,
}
ESCALATION = {
    "id": str,
    "loop": (str, Null),
    "step": (str, Null),
    "reason": str,
    "breach": (dict, Null),
    "options": list,
    "decided": (str, Null),
}
BREACH = {"limit": str, "count": NUMBER, "bound": NUMBER}
RESOLUTION = {"state": str, "by": str, "text": str, "option": (str, Null), "answers": dict}
REFUSED = {"source": str, "targets": list, "reason": str}
USAGE = {"cost_usd": NUMBER, "tokens_in": int, "tokens_out": int, "attempts": int, "seconds": NUMBER}
BRIEFING = {
    "run": str,
    "input": object,
    "step": str,
    "phase": str,
    "attempt": int,
    "round": int,
    "mode": str,
    "inputs": dict,
    "feedback": dict,
    "verify": list,
    "previous": object,
    "history": list,
    "limits_left": dict,
    "last_error": str,
    "scratchpad": (str, Null),
    "progress": (str, Null),
}


def check(value: Mapping[str, Any], shape: Mapping[str, Any]) -> None:
    for key, kind in shape.items():
        assert key in value, f"{key} is missing in {value}"
        assert isinstance(value[key], kind), f"{key} is {value[key]!r}"
        assert kind is not int or not isinstance(value[key], bool), key


def check_report(report: Mapping[str, Any]) -> None:
    check(report, REPORT)
    for step in report["steps"].values():
        check(step, STEP)
    for loop in report["loops"]:
        check(loop, LOOP)
        if loop["breach"]:
            check(loop["breach"], BREACH)
        if loop["resolution"]:
            check(loop["resolution"], RESOLUTION)
    for finding in report["findings"]:
        check(finding, FINDING)
    for packet in report["escalations"]:
        check(packet, ESCALATION)
        if packet["breach"]:
            check(packet["breach"], BREACH)
    for refusal in report["refused"]:
        check(refusal, REFUSED)
    check(report["usage"], USAGE)


def eventful(make: Make) -> Project:
    """A project whose run has loops, findings and an escalation."""
    steps: dict[str, Any] = {
        "plan": {"phase": "planning"},
        "code": {"phase": "code", "needs": ["plan"]},
        "review": {"reviews": "code"},
    }
    item = raises("context_request", "plan", message="why?")
    return make(
        {"name": "eventful", "limits": {"rounds_per_loop": 1}, "steps": steps},
        plan=[{"output": {"units": [1, 2]}}, {"answer": "because"}],
        code=[{"output": "v1", "feedback": [item]}, {"output": "v2"}, {"output": "v3"}],
        review=[failed("one"), failed("two"), failed("three"), passed()],
    )


def test_run_show_resume_and_inbox_have_the_shape_of_the_contract(make: Make) -> None:
    project = eventful(make)
    report = project.run().report
    check_report(report)
    assert report["loops"] and report["findings"] and report["escalations"]
    project.backedge("feedback", "raise", "--kind", "fix_request", "--to", "review", "--message", "no")
    assert (report["workflow"], report["steps"]["plan"]["output"]) == ("eventful", {"units": [1, 2]})
    shown = project.show(report["run"]).report
    check_report(shown)
    assert shown["refused"]
    resumed = project.resume().report
    check_report(resumed)
    assert {key: shown[key] for key in ("loops", "findings", "escalations", "refused", "steps")} == {
        key: resumed[key] for key in ("loops", "findings", "escalations", "refused", "steps")
    }
    (packet,) = project.backedge("inbox", "--json").json
    check(packet, {**ESCALATION, "run": str, "workflow": str})
    check_report(project.answer(packet["id"], "continue").report)
    assert project.backedge("inbox", "--json").json == []


def test_runs_are_listed_newest_first(make: Make) -> None:
    project = make({"name": "first", "steps": {"a": {"phase": "code"}}})
    first = project.run().run
    project.write({"name": "second", "steps": {"a": {"phase": "code"}}})
    second = project.run().run
    listed = project.backedge("runs", "--json").json
    assert [(each["run"], each["workflow"], each["outcome"]) for each in listed] == [
        (second, "second", "done"),
        (first, "first", "done"),
    ]
    assert first < second
    words = project.backedge("runs", "--limit", "1").out
    assert second in words and first not in words and "1 more" in words


def test_check_prints_the_bound_and_the_graph(make: Make) -> None:
    project = eventful(make)
    checked = project.backedge("check", "--json").json
    assert (checked["workflow"], checked["max_attempts"]) == ("eventful", 3 * (3 + 1) * 21)
    assert "review" in project.backedge("check").out
    assert project.backedge("check", "--mermaid").out.startswith(("flowchart", "graph"))


def test_audit_export_is_json_lines_that_verify(make: Make) -> None:
    project = eventful(make)
    run = project.run().run
    events = project.events(run)
    assert [each["seq"] for each in events] == list(range(1, len(events) + 1))
    assert {each["run"] for each in events} == {run}
    assert all({"type", "at", "link"} <= set(each) for each in events)
    assert project.backedge("audit", "verify").out == "1 run: the chain is valid\n"
    told = project.backedge("audit", "verify", "--json").json
    assert (told["runs"], told["valid"]) == (1, True)
    assert project.backedge("audit", "verify", "--head", told["head"]).code == 0
    assert "the first 4 events of the journal" in project.refused("audit", "verify", "--head", "4:" + "0" * 64)
    told = project.backedge("audit", "verify", run, "--json").json
    assert (told["runs"], told["valid"], told["head"]) == (1, True, events[-1]["link"])
    assert project.backedge("audit", "verify", run, "--head", events[3]["link"]).code == 0
    assert "no event of run" in project.refused("audit", "verify", run, "--head", "0" * 64)


def test_export_feedback_list_what_if_agents_and_dry_run_print_json(make: Make) -> None:
    project = eventful(make)
    assert project.backedge("run", "--dry-run", "--json").json == {
        "workflow": "eventful",
        "starts": ["plan"],
        "max_attempts": 252,
        "not_imported": [],
    }
    project.run()
    check_report(project.backedge("export").json)
    for loop in project.backedge("feedback", "list", "--json").json:
        check(loop, LOOP)
    assert isinstance(project.backedge("what-if", "L-1", "--json").json, dict)
    assert {each["agent"] for each in project.backedge("agents", "--json").json} >= {"claude", "codex"}
    assert "properties" in project.backedge("schema").json


def test_a_briefing_has_every_key_by_stdin_and_by_file(make: Make) -> None:
    project = eventful(make)
    project.run("--input", "task=login", "--input", "n=3")
    for step in ("plan", "code", "review"):
        for told in project.briefings(step):
            check(told, BRIEFING)
            assert told["input"] == {"task": "login", "n": 3}
    second = project.briefings("review")[1]
    assert (second["mode"], second["inputs"], [each["id"] for each in second["verify"]]) == (
        "verify",
        {"code": "v3"},
        ["F-1"],
    )
    assert project.briefings("code")[1]["previous"] == "v1"


def test_the_input_comes_from_pairs_files_and_a_story(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code"}}})
    (project.folder / "in.json").write_text('{"k": [1, null], "n": 1}')
    (project.folder / "in.txt").write_text("words {")
    (project.folder / "story.md").write_text("---\ntitle: x\n---\nbody")
    given = []
    for args in (
        ("--input-file", "in.json", "--input", "n=2"),
        ("--input-file", "in.txt"),
        ("--story", "story.md", "--input", "x=a=b"),
        ("--input", "t=NaN", "--input", "big=123456789012345678901234567890", "--input", "e=", "--input", "l=[1]"),
        (),
    ):
        run = project.run(*args)
        assert run.code == 0
        (told,) = project.briefings("a", run.run)
        given.append(told["input"])
    assert given[:2] == [{"k": [1, None], "n": 2}, "words {"]
    assert given[2] == {"story": {"path": "story.md", "text": "---\ntitle: x\n---\nbody"}, "x": "a=b"}
    assert (given[3]["t"], given[3]["e"], given[3]["l"], given[4]) == ("NaN", "", [1], None)
    assert int(given[3]["big"]) == pytest.approx(123456789012345678901234567890)


# Agents in any language

SH = """\
name: languages
steps:
  code: {phase: code, run: [sh, agent.sh]}
  review: {reviews: code, run: [%s]}
"""
SHELL_AGENT = """\
grep -q '"mode": "rework"' "$BACKEDGE_BRIEFING" && what=fixed || what=first
printf '{"output": "%s %s %s"}' "$what" "$BACKEDGE_STEP" "$BACKEDGE_ATTEMPT" > "$BACKEDGE_OUTCOME"
echo '{"output": "not this one"}'
"""
SHELL_JUDGE = """\
#!/bin/sh
case "$(cat)" in
  *'"fixed code 2"'*) echo '{"verdict": "pass"}' ;;
  *) echo '{"verdict": "fail", "summary": "no"}' ;;
esac
"""
JS_AGENT = """\
const told = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log("thinking { about } it");
console.error("a log line");
const fixed = told.inputs.code.startsWith("fixed");
console.log(JSON.stringify(fixed ? {verdict: "pass", resolutions: told.verify.map(f => ({finding: f.id, status: "fixed"}))}
  : {verdict: "fail", findings: [{description: "not fixed: " + told.inputs.code}]}));
"""
PY_AGENT = """\
import json, sys
told = json.load(sys.stdin)
fixed = told["inputs"]["code"].startswith("fixed")
print(json.dumps({"verdict": "pass"} if fixed else {"verdict": "fail", "findings": [{"description": "x"}]}, indent=2))
print("bye")
"""


@pytest.mark.parametrize("language", ["javascript", "python", "sh"])
def test_agents_in_shell_python_and_javascript_close_a_loop(make: Make, language: str) -> None:
    if language == "javascript" and NODE is None:
        pytest.skip("node is not installed")
    argv = {"javascript": ["node", "judge.js"], "python": ["python3", "judge.py"], "sh": ["./judge"]}[language]
    project = make(SH % ", ".join(map(json.dumps, argv)))
    (project.folder / "agent.sh").write_text(SHELL_AGENT)
    (project.folder / "judge.js").write_text(JS_AGENT)
    (project.folder / "judge.py").write_text(PY_AGENT)
    judge = project.folder / "judge"
    judge.write_text(SHELL_JUDGE)
    judge.chmod(0o755)
    result = project.run()
    assert (result.code, result.outcome, result.attempts) == (0, "verified", {"code": 2, "review": 2})
    assert (result.steps["code"]["output"], result.finding["status"]) == ("fixed code 2", "fixed")


def test_a_python_function_is_an_agent(make: Make) -> None:
    project = make("name: w\nsteps: {a: {phase: code, agent: 'python:mine:work'}}\n")
    (project.folder / "mine.py").write_text("def work(briefing):\n    return {'n': briefing.attempt}\n")
    result = project.run()
    assert (result.outcome, result.steps["a"]["output"]) == ("done", {"n": 1})


def test_reports_are_read_as_evidence(make: Make) -> None:
    script = (
        "import sys, os\n"
        "good = os.path.exists('fixed')\n"
        "body = '' if good else '<failure message=\"expected 2\">assert 1 == 2</failure>'\n"
        "open(sys.argv[1], 'w').write(f'<testsuite><testcase classname=\"t\" name=\"adds\">{body}</testcase></testsuite>')\n"
        "sys.exit(0 if good else 1)\n"
    )
    steps = {
        "code": {"phase": "code", "run": ["sh", "-c", "[ $BACKEDGE_ATTEMPT = 1 ] || touch fixed; echo '{}'"]},
        "test": {"tests": "code", "report": "junit", "run": ["python3", "report.py", "{report}"]},
        "lint": {"reviews": "code", "report": "exitcode", "run": ["test", "-e", "fixed"]},
    }
    project = make({"steps": steps})
    (project.folder / "report.py").write_text(script)
    result = project.run()
    assert (result.code, result.outcome, result.attempts) == (0, "verified", {"code": 2, "test": 2, "lint": 2})
    assert {each["found_by"]: each["status"] for each in result.findings} == {"test": "fixed", "lint": "fixed"}
