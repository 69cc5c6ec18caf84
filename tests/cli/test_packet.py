"""From the outside: what a person is shown before deciding, in the inbox and at the terminal."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Project, failed, passed, raises
from tests.cli.test_auto import Terminal

STEPS: dict[str, Any] = {
    "plan": {"phase": "planning"},
    "code": {"phase": "code", "needs": ["plan"]},
    "review": {"reviews": "code"},
}


def stuck(make: Make) -> Project:
    """A run whose loop has used up its two rounds."""
    project = make(
        {"steps": STEPS, "limits": {"rounds_per_loop": 2}},
        code=[{"output": n} for n in range(9)],
        review=[
            failed("no login"),
            failed({"description": "no paging", "file": "a.py", "line": 3}),
            failed("slow"),
            passed(),
        ],
    )
    assert project.run().code == 3
    return project


def test_the_inbox_shows_reason_numbers_rounds_and_what_each_option_does(make: Make) -> None:
    project = stuck(make)
    lines = [line.strip() for line in project.backedge("inbox").out.splitlines()]
    assert "about L-1: limit rounds_per_loop (2/2)" in lines[0]
    assert "L-1 review_rejection: review → code, high" in lines
    (numbers,) = [line for line in lines if line.startswith("numbers: ")]
    assert "rounds_per_loop 2/2" in numbers and " 0/" not in numbers
    assert lines[1] == "review rejected code 3 times. Still wrong: slow"
    table = [line.split() for line in lines if line.startswith(("verdict of", "F-"))]
    assert table == [
        ["verdict", "of", "review", "1", "2", "3"],
        ["F-3", "[high]", "slow", "new"],
        ["F-2", "[high]", "a.py:3", "no", "paging", "new", "?"],
        ["F-1", "[high]", "no", "login", "new", "?", "·"],
    ]
    options = lines[lines.index("options:") :]
    for choice in (
        "continue: code reworks F-3",
        "revise --note …: ",
        "reassign --target …: ",
        "reclassify --phase …: ",
    ):
        assert any(line.startswith(choice) for line in options), choice
    assert options[1].startswith("continue: ") and options[2].startswith("effort: up to 2 attempts per round")
    assert "recommended: continue (the last fix removed what was wrong, and something else was found)" in lines


def test_the_inbox_as_json_keeps_its_shape_and_explains_the_options(make: Make) -> None:
    project = stuck(make)
    (told,) = project.backedge("inbox", "--json").json
    assert told["options"][0] == "continue" and told["decided"] is None
    assert [each["choice"] for each in told["choices"]] == [*told["options"], "history"]
    assert all(each["next"] for each in told["choices"])
    assert [(turn["number"], turn["state"]) for turn in told["history"]] == [(1, "done"), (2, "done"), (3, "next")]
    assert {"limit": "rounds_per_loop", "count": 2, "bound": 2} in told["numbers"]


def test_the_inbox_quotes_the_error_of_an_agent(make: Make) -> None:
    project = make(
        {"steps": {"a": {"phase": "code"}}, "limits": {"errors_in_a_row": 1}}, a=[{"!exit": 3, "!stderr": "no key"}]
    )
    project.run()
    said = project.backedge("inbox").out
    assert "last error: the command failed (exit code 3): no key" in said
    assert "continue: a is tried again" in said


def at_terminal(project: Project, *answers: tuple[str, str]) -> str:
    """Decide E-1 by answering questions; returns what was shown first."""
    terminal = Terminal(project, "decide", "E-1")
    shown = ""
    try:
        for question, answer in answers:
            terminal.wait_for(question)
            shown = shown or terminal.before
            terminal.type(f"{answer}\n")
        assert terminal.end() == 0
    finally:
        terminal.close()
    return shown


def test_decide_without_a_choice_shows_the_packet_and_asks(make: Make) -> None:
    project = stuck(make)
    shown = at_terminal(project, ("Your choice", "revise"), ("The new approach", "use a library"))
    assert "review rejected code 3 times" in shown and "continue: code reworks F-3" in shown
    assert project.resume().outcome == "verified"
    decided = next(event for event in project.events() if event["type"].startswith("escalation_decided"))
    assert (decided["choice"], decided["note"]) == ("revise", "use a library")


@pytest.mark.parametrize(("answer", "key"), [("push", "option"), ("by pigeon", "text")])
def test_a_question_accepts_an_option_or_a_free_text(make: Make, answer: str, key: str) -> None:
    item = raises("fix_request", "human", options=[{"option": "polling"}, {"option": "push"}])
    project = make({"steps": {"a": {"phase": "code"}}}, a=[{"feedback": [item]}, {}])
    project.run()
    at_terminal(project, ("Your choice", "resolve"), ("One of the options, or your own answer", answer))
    assert project.resume().loop["resolution"][key] == answer


def test_a_person_who_judges_is_asked_for_the_verdict(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code"}, "look": {"reviews": "a", "agent": "human"}}})
    project.run()
    shown = at_terminal(project, ("Your choice", "resolve"), ("One of the options, or your own answer", "pass"))
    assert "a, version 1" in shown
    assert project.resume().outcome == "verified"


def test_a_person_who_judges_sees_the_artifact(make: Make) -> None:
    work: dict[str, Any] = {"steps": {"a": {"phase": "code"}, "look": {"reviews": "a", "agent": "human"}}}
    long = {"lines": [f"line {n} \x1b[31m" for n in range(900)]}
    project = make(work, a=[{"output": {"page": "login"}, "summary": "a first page"}, {"output": long}])
    run = project.run().run
    lines = [line.strip() for line in project.backedge("inbox").out.splitlines()]
    assert "a, version 1: a first page" in lines and '| {"page": "login"}' in lines
    assert any(line.startswith("pass: ") for line in lines) and any(
        line.startswith("fail --note …: ") for line in lines
    )
    project.answer("E-1", "resolve", "--option", "fail", "--note", "no tests")
    said = project.backedge("inbox").out
    whole = f"backedge context get agent_contexts.a.output --run {run}"
    assert "F-1 [high] open: no tests" in said and "line 3" in said and "line 50" not in said and "\x1b" not in said
    assert f"all of it: {whole}" in said
    (told,) = project.backedge("inbox", "--json").json
    (made,) = told["inputs"]
    assert (made["step"], made["version"], made["whole"]) == ("a", 2, whole)
    assert "line 3" in made["output"] and len(made["output"]) < 3000
    assert [each["description"] for each in told["findings"]] == ["no tests"]
    assert project.backedge(*whole.split()[1:]).json == long


def test_show_and_inbox_say_why_a_judge_still_sees_a_finding(make: Make) -> None:
    note = "it is still there with the tests as they were"
    again = {"verdict": "fail", "resolutions": [{"finding": "F-1", "status": "not_fixed", "note": note}]}
    steps = {"code": {"phase": "code"}, "review": {"reviews": "code"}}
    project = make({"limits": {"rounds_per_loop": 1}, "steps": steps}, review=[failed("total is wrong"), again])
    result = project.run()
    assert (result.code, result.finding["note"]) == (3, note)
    assert f"F-1 [high] total is wrong: not fixed ({note})" in project.backedge("show").out
    assert f"    review says: {note}" in project.backedge("inbox").out
