"""From the outside: a person is never shown less than an agent is told, and nothing is left out silently."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Project, failed, finished, passed, raises, until
from tests.cli.test_auto import Terminal

STEPS: dict[str, Any] = {"plan": {"phase": "planning"}, "code": {"phase": "code", "needs": ["plan"]}}
ASKED: dict[str, Any] = {
    "requested_info": "the maximum size of a page",
    "suggested_fix": "take 50",
    "artifacts": ["spec.md:42"],
    "requirement_id": "REQ-7",
    "details": {"seen": [10, 1000]},
    "severity": "medium",
}
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
EVIDENCE = "collected 0 items\nImportError while importing test module\nModuleNotFoundError: No module named 'httpx'"


def asks(make: Make, **more: Any) -> Project:
    item = raises("context_request", "human", message="How many rows fit on a page?", **{**ASKED, **more})
    project = make({"steps": STEPS}, code=[{"feedback": [item]}, {}])
    assert project.run().code == 3
    return project


@pytest.mark.parametrize("view", [("inbox",), ("show",), ("feedback", "list")])
def test_everything_that_was_asked_is_shown_as_text(make: Make, view: tuple[str, ...]) -> None:
    options = [{"option": "50 rows", "effort": "low", "impact": "fast"}, {"option": "all rows", "impact": "slow"}]
    said = asks(make, options=options).backedge(*view).out
    for words in ("How many rows fit on a page?", "the maximum size of a page", "take 50", "spec.md:42", "REQ-7"):
        assert words in said, words
    assert '"seen": [10, 1000]' in said and "50 rows" in said and "fast" in said and "all rows" in said


@pytest.mark.parametrize("view", [("inbox",), ("show",), ("feedback", "list")])
def test_everything_that_was_asked_is_in_the_json(make: Make, view: tuple[str, ...]) -> None:
    told = asks(make).backedge(*view, "--json").json
    (loop,) = told if isinstance(told, list) else told["loops"]
    assert {key: loop[key] for key in ASKED} == ASKED
    assert loop["message"] == "How many rows fit on a page?"


def rejected(make: Make, *more: Any, **limits: Any) -> Project:
    """Tests that fail with evidence, and a judge that says something in its own words."""
    wrong = {"description": "refund e-mail is sent twice", "evidence": EVIDENCE, "impact": "customers complain"}
    other = {"description": "no login", "file": "a.py", "line": 3}
    project = make(
        {"steps": {**STEPS, "e2e": {"reviews": "code"}}, "limits": {"rounds_per_loop": 2, **limits}},
        code=[{"output": {"version": n}, "summary": f"version {n} of it"} for n in range(9)],
        e2e=[
            failed(wrong, other, summary="two things are wrong"),
            failed(wrong, summary="the e-mail is still sent twice"),
            failed(wrong, summary="I give up on this e-mail"),
            *more,
        ],
    )
    assert project.run().code == 3
    return project


def test_the_packet_says_in_a_sentence_what_is_wrong_and_since_when(make: Make) -> None:
    lines = rejected(make).backedge("inbox").out.splitlines()
    assert lines[1] == "  e2e rejected code 3 times. Still wrong: refund e-mail is sent twice"
    table = [
        line.split() for line in lines if line.startswith("    ") and line.lstrip().startswith(("verdict of", "F-"))
    ]
    assert table == [
        ["verdict", "of", "e2e", "1", "2", "3"],
        ["F-1", "[high]", "refund", "e-mail", "is", "sent", "twice", "new", "still", "still"],
        ["F-2", "[high]", "a.py:3", "no", "login", "new", "?", "·"],
    ]
    text = "\n".join(lines)
    assert "ModuleNotFoundError: No module named 'httpx'" in text and "impact: customers complain" in text
    assert "e2e says: I give up on this e-mail" in text
    assert '-  "version": 1' in text and '+  "version": 2' in text
    assert "recommended: revise (the last fix removed none of its findings)" in text
    choices = [line.strip() for line in lines[lines.index("  options:") + 1 :]]
    assert choices[0].startswith("revise --note …: ")
    assert len(lines) < 45


def test_every_view_as_json_has_the_evidence_the_words_of_the_judge_and_the_last_change(make: Make) -> None:
    project = rejected(make)
    (item,) = project.backedge("inbox", "--json").json
    report = project.backedge("show", "--json").json
    listed = project.backedge("feedback", "list", "--json").json
    assert item["sentence"].startswith("e2e rejected code 3 times.")
    for verdicts in (item["verdicts"], report["loops"][0]["verdicts"], listed[0]["verdicts"]):
        assert [(each["word"], each["summary"]) for each in verdicts] == [
            ("fail", "two things are wrong"),
            ("fail", "the e-mail is still sent twice"),
            ("fail", "I give up on this e-mail"),
        ]
        assert [each["findings"] for each in verdicts] == [
            {"F-1": "open", "F-2": "open"},
            {"F-1": "not_fixed", "F-2": "unconfirmed"},
            {"F-1": "not_fixed"},
        ]
    assert report["findings"][0]["evidence"] == EVIDENCE and item["findings"][0]["evidence"] == EVIDENCE
    assert report["steps"]["e2e"]["summary"] == "I give up on this e-mail"
    rounds = report["loops"][0]["history"]
    assert [(each["number"], each["state"]) for each in rounds] == [(1, "done"), (2, "done"), (3, "next")]
    assert [work["summary"] for each in rounds for work in each["work"]] == ["version 1 of it", "version 2 of it"]
    for changes in (item["last_changes"], report["changes"]):
        assert [(each["step"], each["version"]) for each in changes] == [("code", 3)]
        assert '+  "version": 2' in changes[0]["diff"]
    assert item["estimate"]["attempts"] == 2


def test_the_reference_lists_every_key_of_an_entry_of_the_inbox(make: Make) -> None:
    (item,) = rejected(make).backedge("inbox", "--json").json
    text = REFERENCE.read_text(encoding="utf-8")
    places = {
        "An entry of the inbox": item,
        "`choices[]`": item["choices"][0],
        "`history[]`": item["history"][0],
        "`findings[]` of an entry": item["findings"][0],
        "`loops[].verdicts[]`": item["verdicts"][0],
        "`changes[]`": item["last_changes"][0],
    }
    for place, value in places.items():
        part = text.split(f"### {place}\n")[1].split("\n#")[0]
        assert list(value) == re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE), place


def test_run_prints_the_same_report_as_show(make: Make) -> None:
    project = make({"steps": {**STEPS, "look": {"reviews": "code", "agent": "human"}}}, code=[{"output": "page"}])
    report = project.run().report
    assert report == project.backedge("show", "--json").json
    assert report["changes"][0]["diff"][-1] == "+page"


def test_earlier_rounds_stay_visible(make: Make) -> None:
    """A step that raises the same kind again replaces its message; the first one must not be lost."""
    item = ("first: no size", "second: no unit", "third: no order")
    scripts = [
        {"feedback": [raises("fix_request", "plan", message=each, suggested_fix=f"fix {each}")]} for each in item
    ]
    project = make({"steps": STEPS}, plan=[{"output": n} for n in range(9)], code=[*scripts, {}])
    assert project.run().code == 0
    said = project.backedge("show").out
    lines = project.backedge("export", "--format", "feedback-jsonl").out
    for each in item:
        assert each in said and f"fix {each}" in said and each in lines
    assert [turn["message"] for turn in project.show().loop["history"]] == list(item)
    assert [turn["message"] for turn in json.loads(lines)["earlier_rounds"]] == list(item[:2])


def test_sixteen_findings_are_a_range_and_not_sixteen_ids(make: Make) -> None:
    many = [f"defect {n}" for n in range(1, 17)]
    project = make(
        {"steps": {**STEPS, "review": {"reviews": "code"}}, "limits": {"rounds_per_loop": 2}},
        code=[{"output": n} for n in range(9)],
        review=[failed(*many)],
    )
    project.run()
    said = project.backedge("inbox").out
    assert "revise --note …: code reworks F-1…F-16" in said
    assert "F-2, F-3" not in said and "… and F-9…F-16: backedge decide E-1 history" in said
    assert "round 1  F-1…F-16 → code" in project.backedge("show").out
    full = project.backedge("decide", "E-1", "history").out
    assert all(each in full for each in many)


def test_history_prints_every_round_and_changes_nothing(make: Make) -> None:
    project = rejected(make)
    before = len(project.events())
    said = project.decide("E-1", "history").out
    for words in ("two things are wrong", "version 1 of it", "no login", "ModuleNotFoundError", "round 2", "F-2"):
        assert words in said, words
    assert len(project.events()) == before
    assert project.backedge("inbox", "--json").json[0]["decided"] is None


@pytest.mark.parametrize(("word", "code"), [("pass", 0), ("approve", 0), ("fail", 3), ("reject", 3)])
def test_a_person_judges_in_the_words_of_a_judge(make: Make, word: str, code: int) -> None:
    project = make({"steps": {"a": {"phase": "code"}, "look": {"reviews": "a", "agent": "human"}}})
    project.run()
    assert "backedge decide E-1 pass|fail|needs_improvement|skip|cancel|history" in project.backedge("inbox").out
    if code:
        assert "a fail needs a note" in project.refused("decide", "E-1", word)
    assert project.answer("E-1", word, "--note", "the page is blank").code == code


# The same question of many runs


def three_runs(make: Make) -> Project:
    project = make({"steps": {"a": {"phase": "code"}}, "limits": {"errors_in_a_row": 1}}, a=[{"!exit": 3}, {}])
    for _ in range(3):
        assert project.run().code == 3
    return project


def test_one_answer_for_the_same_question_of_many_runs(make: Make) -> None:
    project = three_runs(make)
    assert "decide the same question everywhere with --all" in project.refused("decide", "E-1", "continue")
    complaint = project.refused("decide", "--all", "continue")
    assert "3 questions: a broke once. Last error: " in complaint and "add --yes" in complaint
    assert len(project.backedge("inbox", "--json").json) == 3
    runs = sorted(each["run"] for each in project.backedge("runs", "--json").json)
    project.decide("E-1", "continue", "--run", runs[0])
    said = project.decide("--all", "continue", "--yes")
    assert sorted(said.out.splitlines()) == [f"E-1 of {run}: continue" for run in runs[1:]]
    assert "2 questions decided: continue" in said.err
    decided = [event["type"] for run in runs for event in project.events(run)].count("escalation_decided/1")
    assert (decided, project.backedge("inbox").out) == (3, "the inbox is empty\n")


def test_different_questions_are_never_decided_together(make: Make) -> None:
    project = three_runs(make)
    project.script(a=[{"!exit": 4}])
    project.run()
    assert "2 different questions are open" in project.refused("decide", "--all", "continue", "--yes")
    assert len(project.backedge("inbox", "--json").json) == 4


def test_at_a_terminal_deciding_everywhere_asks_first(make: Make) -> None:
    project = three_runs(make)
    terminal = Terminal(project, "decide", "--all", "cancel")
    try:
        terminal.wait_for("Decide cancel for all 3?")
        terminal.type("n\n")
        assert terminal.end() == 1
    finally:
        terminal.close()
    assert len(project.backedge("inbox", "--json").json) == 3


# Overdue


def test_the_inbox_says_overdue_although_no_process_lives(make: Make) -> None:
    item = raises("context_request", "human", message="which size?")
    project = make({"steps": STEPS, "limits": {"response_timeout": 0.2}}, code=[{"feedback": [item]}, {}])
    project.run()
    until(lambda: project.backedge("inbox", "--json").json[0]["overdue"])
    assert "overdue for " in project.backedge("inbox").out and "E-1 (overdue): " in project.backedge("show").out
    project.backedge("resume", "--quiet")
    assert [event["type"] for event in project.events()].count("loop_overdue/1") == 1
    assert "overdue for " in project.backedge("inbox").out
    assert project.answer("E-1", "resolve", "--note", "50").code == 0


def test_the_inbox_says_when_an_answer_is_due(make: Make) -> None:
    project = asks(make)
    (item,) = project.backedge("inbox", "--json").json
    assert not item["overdue"] and 500 < item["due_at"] - time.time() <= 600
    assert "the answer is due in 10 min" in project.backedge("inbox").out


def test_the_inbox_says_overdue_while_a_process_waits(make: Make) -> None:
    item = raises("context_request", "human", message="which size?")
    project = make({"steps": STEPS, "limits": {"response_timeout": 0.2}}, code=[{"feedback": [item]}, {}])
    process = project.started("run", "--wait", "--quiet")
    until(lambda: (project.folder / ".backedge/journal.db").exists() and "overdue for" in project.backedge("inbox").out)
    project.decide("E-1", "resolve", "--note", "50")
    assert finished(process).code == 0


# Small things


def test_show_step_shows_only_that_step(make: Make) -> None:
    project = rejected(make)
    said = project.backedge("show", "--step", "plan").out
    assert "plan" in said and "e2e" not in said and "L-1" not in said
    told = project.backedge("show", "--step", "e2e", "--json").json
    assert (list(told["steps"]), [loop["id"] for loop in told["loops"]]) == (["e2e"], ["L-1"])


def test_show_diff_has_the_first_version(make: Make) -> None:
    project = make({"steps": {"plan": {"phase": "planning"}}}, plan=[{"output": {"units": ["login"]}}])
    project.run()
    said = project.backedge("show", "--diff").out
    assert "plan v1, attempt 1" in said and '"login"' in said


@pytest.mark.parametrize(
    ("key", "word", "meant"),
    [("--kind", "fix_reqest", "fix_request"), ("--severity", "hihg", "high"), ("--to", "cod", "code")],
)
def test_a_typo_in_feedback_is_refused_and_not_kept(make: Make, key: str, word: str, meant: str) -> None:
    project = make({"steps": STEPS})
    project.run()
    before = len(project.events())
    given = {"--kind": "fix_request", "--to": "code", "--message": "slow", key: word}
    complaint = project.refused("feedback", "raise", *(part for pair in given.items() for part in pair))
    assert f"did you mean {meant!r}?" in complaint
    assert len(project.events()) == before


def test_an_answered_question_is_answered_and_not_fixed(make: Make) -> None:
    item = raises("context_request", "plan", message="which size?")
    project = make({"steps": STEPS}, plan=[{}, {"answer": "50"}], code=[{"feedback": [item]}, {}])
    assert project.run().code == 0
    (told,) = project.briefings("code")[1]["feedback"]["resolutions"]
    assert (told["state"], told["answers"]) == ("answered", {"plan": "50"})


def test_deciding_an_unknown_escalation_names_the_open_ones(make: Make) -> None:
    project = asks(make)
    run = project.show().run
    assert f"(open escalations: E-1 of {run}); `backedge inbox` lists all" in project.refused("decide", "E-9", "accept")
    project.decide("E-1", "cancel")
    assert "no escalations are open" in project.refused("decide", "E-9", "accept")


def test_one_is_not_written_as_many(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code"}}}, a=[{"usage": {"cost_usd": 0.5}}])
    project.run()
    assert "(1 attempt in 1 run)" in project.backedge("check").out


def test_stats_name_the_means_and_only_phases_of_the_workflow(make: Make) -> None:
    lint = {"reviews": "code", "run": ["sh", "-c", "echo unused import; exit 1"], "report": "exitcode"}
    project = make(
        {"steps": {**STEPS, "lint": lint}, "limits": {"rounds_per_loop": 1}}, code=[{"output": n} for n in range(5)]
    )
    project.run()
    said = project.backedge("stats").out
    assert "found by: lint 1\n  by kind of judge: tool 1\n" in said and "design" not in said and "research" not in said


# Terminals


@pytest.mark.parametrize("columns", [60, 80])
def test_a_packet_fits_a_narrow_terminal(make: Make, columns: int) -> None:
    long = "the refund e-mail is sent twice " * 20
    project = make(
        {"steps": {**STEPS, "review": {"reviews": "code"}}, "limits": {"rounds_per_loop": 1}},
        code=[{"output": {"page": "x" * 300, "n": n}, "summary": long} for n in range(9)],
        review=[
            failed({"description": f"{long}\x1b[31m", "evidence": f"{long}\n\x07last", "file": "a/b.py"}, summary=long)
        ],
    )
    project.run()
    for command in (["inbox"], ["show"], ["decide", "E-1", "history"], ["feedback", "list"]):
        terminal = Terminal(project, *command, columns=columns, results=True)
        try:
            terminal.end()
            said = terminal.seen
        finally:
            terminal.close()
        commands = [line for line in said.splitlines() if "backedge " in line]
        too_long = [line for line in said.splitlines() if len(line) > columns and line not in commands]
        assert not too_long, (command, too_long)
        assert "\x1b[31m" not in said and "\x07" not in said


def test_everything_passes_without_noise(make: Make) -> None:
    project = make({"steps": {**STEPS, "review": {"reviews": "code"}}}, review=[passed(summary="well done")])
    project.run()
    assert "says: well done" in project.backedge("show").out


def test_the_list_of_feedback_has_the_words_of_every_verdict_and_an_answer_once(make: Make) -> None:
    steps = {"code": {"phase": "code"}, "review": {"reviews": "code"}}
    words = [failed("x", summary=f"words {n}") for n in (1, 2)]
    project = make({"limits": {"rounds_per_loop": 1}, "steps": steps}, review=words)
    project.run()
    project.backedge("feedback", "resolve", "L-1", "--note", "it is fine")
    told = project.backedge("feedback", "list").out
    assert "review said in attempt 1: words 1" in told and "review says: words 2" in told
    assert told.count("it is fine") == 1, told


def sixteen(make: Make) -> Project:
    """Sixteen findings over four rounds, the last five of which stay."""
    many = [
        {
            "description": f"problem number {n} of the refund service",
            "severity": ["critical", "high", "medium", "low"][n % 4],
            "evidence": f"Trace\nline {n}\nValueError: bad {n}",
            "impact": f"impact {n}",
            "suggested_fix": f"fix {n}",
            "requirement_id": f"REQ-{n}",
            "file": f"src/refund_{n}.py",
        }
        for n in range(1, 17)
    ]
    project = make(
        {"steps": {**STEPS, "review": {"reviews": "code"}}, "limits": {"rounds_per_loop": 4}},
        code=[{"output": {"version": n}, "summary": f"try number {n}"} for n in range(9)],
        review=[failed(*many[:left], summary=f"{left} are left") for left in (16, 12, 8, 5, 5)],
    )
    assert project.run().code == 3
    return project


@pytest.mark.parametrize("columns", [80, 120])
def test_a_packet_of_many_findings_and_rounds_fits_one_screen(make: Make, columns: int) -> None:
    project = sixteen(make)
    terminal = Terminal(project, "inbox", columns=columns, results=True)
    try:
        terminal.end()
        lines = terminal.seen.splitlines()
    finally:
        terminal.close()
    assert len(lines) <= 41 and max(map(len, lines)) <= columns, terminal.seen
    for words in ("ValueError: bad 4", "fix 4", "REQ-4", "5 are left", "try number 4", "revise --note", "history"):
        assert words in terminal.seen, words


def test_the_list_of_feedback_and_its_lines_leave_nothing_out(make: Make) -> None:
    project = sixteen(make)
    told = project.backedge("feedback", "list").out
    (loop,) = project.backedge("feedback", "list", "--json").json
    line = project.backedge("export", "--format", "feedback-jsonl").out
    for n in range(1, 17):
        for words in (f"problem number {n} of", f"ValueError: bad {n}", f"impact {n}", f"fix {n}", f"REQ-{n}"):
            assert words in told and words in line and words in json.dumps(loop), words
    for words in ("16 are left", "12 are left", "8 are left"):
        assert words in told and words in line and words in json.dumps(loop), words
    assert "round 2  F-1…F-12 → code: attempt 3, try number 2" in told and '+  "version": 4' in told
    assert [each["step"] for each in loop["changes"]] == ["code"] and len(loop["findings_in_full"]) == 16


def test_the_list_of_feedback_has_the_positions_in_a_choice(make: Make) -> None:
    options = [{"option": "batching", "rework": ["plan"]}, {"option": "push"}]
    steps = {**STEPS, "pm": {"phase": "planning"}}
    project = make(
        {"steps": {**steps, "code": {"phase": "code", "needs": ["plan", "pm"]}}, "limits": {"rounds_per_loop": 2}},
        plan=[{}, {"decision": {"option": "batching", "reason": "cheap enough"}}],
        pm=[{}, {"decision": {"option": "push", "reason": "simple for us"}}],
        code=[{"feedback": [raises("constraint_violation", "plan", "pm", options=options)]}, {}],
    )
    assert project.run().code == 3
    told = project.backedge("feedback", "list").out
    assert "plan is for “batching”: cheap enough" in told and "pm is for “push”: simple for us" in told
    said = project.backedge("inbox").out
    assert "about L-1: the targets do not agree\n" in said
    assert "continue: plan, pm choose among the options" in said and "changed nothing" not in said


def test_refused_feedback_keeps_everything_that_it_said(make: Make) -> None:
    """By a limit, and in an outcome whose agent never gets it right."""
    said = raises("fix_request", "plan", message="the study is wrong", **{**ASKED, "severity": "high"})
    words = ("the study is wrong", "the maximum size of a page", "take 50", "spec.md:42", "REQ-7", "1000")
    project = make(
        {"steps": {"research": {"phase": "research"}, **STEPS}, "limits": {"chain_depth": 1}},
        plan=[{"output": 1}, {"output": 2, "feedback": [{**said, "to": "research"}]}],
        code=[{"feedback": [raises("fix_request", "plan", message="no refunds")]}, {}],
    )
    assert project.run().code == 3
    for view in (["inbox"], ["inbox", "--json"], ["show"], ["show", "--json"], ["feedback", "list"]):
        told = project.backedge(*view).out
        assert all(each in told for each in words), view
    assert "Feedback from plan was not delivered: chain_depth" in project.backedge("inbox").out
    other = make({"steps": STEPS, "limits": {"errors_in_a_row": 1}}, code=[{"feedback": [{**said, "to": "nobody"}]}])
    assert other.run().code == 3
    for view in (["inbox"], ["inbox", "--json"], ["show"], ["show", "--json"]):
        assert all(each in other.backedge(*view).out for each in words), view


def test_the_packet_has_every_error_since_the_last_success(make: Make) -> None:
    project = make(
        {"steps": {"a": {"phase": "code"}}, "limits": {"errors_in_a_row": 2}},
        a=[{"!exit": 3, "!stderr": "x\nKeyError: 'API_KEY'"}, {"!exit": 3, "!stderr": "y\nOSError: full"}],
    )
    run = project.run().run
    said = project.backedge("inbox").out
    assert "KeyError: 'API_KEY'" in said and "OSError: full" in said
    assert f"its output: backedge logs {run} a-2" in said
    assert project.backedge("logs", run, "a-2").code == 0
    (item,) = project.backedge("inbox", "--json").json
    assert [each["attempt"] for each in item["errors"]] == [1, 2]


def test_show_has_what_is_to_be_approved(make: Make) -> None:
    steps = {"plan": {"phase": "planning"}, "deploy": {"phase": "code", "needs": ["plan"], "approval": "human"}}
    project = make({"steps": steps}, plan=[{"output": {"servers": ["east", "west"]}}])
    project.run()
    for view in ("inbox", "show"):
        assert '"east"' in project.backedge(view).out, view


def test_refused_feedback_and_earlier_errors_are_in_every_list(make: Make) -> None:
    """Also after the run went on without them: nothing is dropped silently."""
    steps = {
        "a": {"phase": "planning"},
        "b": {"phase": "design", "needs": ["a"]},
        "c": {"phase": "code", "needs": ["b"]},
    }
    asked = raises("fix_request", "c", message="a back to c", severity="low", requirement_id="REQ-9")
    project = make(
        {"steps": steps, "scope": "any"},
        a=[{"output": 1}, {"output": 2, "feedback": [asked]}, {}],
        b=[{"output": 1}, {"output": 2, "feedback": [raises("fix_request", "a", message="b to a")]}, {}],
        c=[{"!exit": 3, "!stderr": "no key"}, {"feedback": [raises("fix_request", "b", message="c to b")]}, {}],
    )
    said = project.backedge("run", "--run", "r-1")
    assert said.code == 0
    assert "! refused feedback from a to c: a back to c" in said.out and "! c broke once: " in said.out
    *_, refused = project.backedge("feedback", "list", "--json").json
    assert (refused["id"], refused["state"], refused["requirement_id"]) == ("refused-1", "refused", "REQ-9")
    assert refused["reason"].startswith("causal cycle: c → b → a → c")
    *_, line = map(json.loads, project.backedge("export", "--as", "feedback-jsonl").out.splitlines())
    assert (line["feedback_id"], line["status"], line["message"]) == ("refused-1", "failed", "a back to c")
    assert line["refused"] == refused["reason"]
    (error,) = project.show().steps["c"]["errors"]
    assert error["attempt"] == 1 and "no key" in error["error"]


def test_the_packet_of_a_budget_says_which_step_spent_what(make: Make) -> None:
    project = make(
        {"steps": {**STEPS, "review": {"reviews": "code"}}, "limits": {"cost_usd": 1}},
        plan=[{"usage": {"cost_usd": 0.1}}],
        code=[{"output": n, "usage": {"cost_usd": 0.3}} for n in range(9)],
        review=[failed("no login", usage={"cost_usd": 0.2})],
    )
    project.run()
    told = project.backedge("inbox").out
    assert "used by: code $0.60 in 2 attempts, review $0.40 in 2 attempts, plan $0.10 in 1 attempt" in told
    assert "F-1 [high] not fixed: no login" in told
    (item,) = project.backedge("inbox", "--json").json
    assert [(each["step"], each["cost_usd"]) for each in item["spent"]] == [
        ("code", 0.6),
        ("review", 0.4),
        ("plan", 0.1),
    ]
