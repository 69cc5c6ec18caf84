"""What a person sees and types at a terminal."""

from __future__ import annotations

import re

from tests.cli.conftest import Make
from tests.cli.project import Project, failed, passed
from tests.cli.terminal import Terminal

STEPS = {"plan": {"phase": "planning"}, "code": {"phase": "code", "needs": ["plan"]}, "review": {"reviews": "code"}}


def test_check_breaks_lines_between_words_on_a_narrow_terminal(make: Make) -> None:
    many = {f"a_step_with_a_name_{n}": {"phase": "code"} for n in range(5)}
    project = make({"steps": {**many, "review": {"reviews": next(iter(many)), "needs": list(many)[1:]}}})
    words = set(project.backedge("check").out.split())
    with Terminal(project.folder, "check", columns=60) as terminal:
        assert terminal.end() == 0
    assert max(map(len, terminal.lines)) <= 60
    assert set(terminal.text.split()) - words <= {"warning:"}


def test_enter_while_a_run_is_shown_leaves_no_line_behind(make: Make) -> None:
    project = make({"steps": STEPS}, code=[{"!sleep": 1.5}], review=[passed()])
    with Terminal(project.folder, "run", "--run", "r-1") as terminal:
        terminal.wait_for("▸ code      attempt 1")
        for _ in range(3):
            terminal.type("\n")
        assert terminal.end() == 0
    assert not any(row.startswith("── ") for row in terminal.lines), terminal.lines
    assert "" not in terminal.lines, terminal.lines


def test_every_error_has_the_same_form(make: Make) -> None:
    project = make({"steps": STEPS})
    for words in (
        ("nonsense",),
        ("run", "--nonsense"),
        ("decide", "E-1", "continue"),
        ("show", "r-9"),
        ("schema", "x"),
    ):
        said = project.backedge(*words)
        assert said.code == 2 and re.match(r"backedge: \S.*\n$", said.err), said
    assert project.refused("run", "--nonsense").endswith("see `backedge run --help`")


def asking(make: Make) -> Project:
    """A project whose reviewer is not content before its third attempt, in a run that may have one round."""
    return make(
        {"steps": STEPS, "limits": {"rounds_per_loop": 1}},
        code=[{"output": n} for n in range(5)],
        review=[failed("no login"), failed("no logout"), passed()],
    )


def test_a_question_is_answered_where_the_run_is_shown(make: Make) -> None:
    project = asking(make)
    with Terminal(project.folder, "run", "--run", "r-1") as terminal:
        terminal.wait_for("Enter: later): ")
        assert "\a" in terminal.raw, "it rings"
        for text in ("about L-1: limit rounds_per_loop (1/1)", "Still wrong: no logout", "continue: "):
            assert text in terminal.text
        terminal.type("nonsense\n")
        terminal.wait_for("backedge: 'nonsense' is not one of the choices")
        terminal.type("revise\n")
        terminal.wait_for("The new approach: ")
        terminal.type("use the session\n")
        assert terminal.end() == 0
    assert "! E-1 decided: revise by" in terminal.text
    assert terminal.lines[-3].startswith("verified: 7 attempts")
    assert terminal.lines[-2:] == ["  findings: 2 found, 2 fixed", "  next: backedge show r-1"]
    assert not any(row.startswith("── ") for row in terminal.lines), terminal.lines
    assert project.briefings("code")[-1]["feedback"]["advice"] == ["use the session"]


def test_enter_leaves_the_question_for_later(make: Make) -> None:
    project = asking(make)
    with Terminal(project.folder, "run", "--run", "r-1", "--plain") as terminal:
        terminal.wait_for("Enter: later): ")
        assert "\a" in terminal.raw, "it rings"
        terminal.type("\n")
        assert terminal.end() == 3
    assert "  then: backedge resume r-1" in terminal.lines


def test_a_question_that_is_answered_elsewhere_is_no_longer_asked(make: Make) -> None:
    project = asking(make)
    with Terminal(project.folder, "run", "--run", "r-1") as terminal:
        terminal.wait_for("Enter: later): ")
        project.decide("E-1", "accept")
        assert terminal.end() == 4
    assert "it was answered elsewhere" in terminal.text


def test_ctrl_c_at_the_question_stops_the_run_cleanly(make: Make) -> None:
    project = asking(make)
    with Terminal(project.folder, "run", "--run", "r-1") as terminal:
        terminal.wait_for("Enter: later): ")
        terminal.type("\x03")
        assert terminal.end() == 130
    assert terminal.lines[-1] == "interrupted; continue with `backedge resume r-1`"
    assert "stopping" not in terminal.text, "nothing was running"


def test_the_summary_breaks_between_words_and_keeps_its_commands_whole(make: Make) -> None:
    project = asking(make)
    with Terminal(project.folder, "run", "--run", "r-1", columns=50, rows=20) as terminal:
        terminal.wait_for("later): ")
        terminal.type("\n")
        assert terminal.end() == 3
    end = terminal.lines[terminal.lines.index(next(row for row in terminal.lines if row.startswith("waiting: "))) :]
    assert end[1:] == [
        "  findings: 2 found, 2 open",
        "  E-1 about L-1: limit rounds_per_loop (1/1)",
        "     review rejected code twice. Still wrong: no",
        "       logout",
        "     backedge decide E-1 --run r-1",
        "  then: backedge resume r-1",
    ]


def test_a_hundred_findings_do_not_make_a_long_line(make: Make) -> None:
    many = [{"description": f"finding {n}: {'very ' * 30}bad"} for n in range(100)]
    project = make({"steps": STEPS}, code=[{"output": n} for n in range(3)], review=[failed(*many), passed()])
    said = project.backedge("run", "--run", "r-1")
    lines = [*said.err.splitlines(), *said.out.splitlines()]
    assert max(map(len, lines)) <= 260
    place = next(n for n, line in enumerate(lines) if line.endswith("✗ review fails it: 100 findings"))
    assert lines[place + 1].strip().startswith("F-1 finding 0: very")
    assert lines[place + 6].strip() == "… and 95 more: backedge show r-1 --all"
    assert lines[place + 7].endswith("↩ L-1 code ◄── review, round 1 of 5")
    assert said.out.splitlines()[1:] == ["  findings: 100 found, 100 fixed", "  next: backedge show r-1"]


def test_the_frame_of_a_run_draws_the_back_edge(make: Make) -> None:
    project = make({"steps": STEPS}, code=[{"output": 1}, {"output": 2, "!sleep": 1}], review=[failed("no"), passed()])
    with Terminal(project.folder, "run", "--run", "r-1", columns=60) as terminal:
        assert terminal.end() == 0
    rows = [row.rstrip() for row in terminal.text.replace("\r", "\n").split("\n")]
    assert any(row.startswith(" ╭▶ code      ▸ code      attempt 2 · reworks L-1") for row in rows), rows
    assert " ╰─           ✗ ◆ review  fail · F-1" in rows
    assert "  ↩ L-1 code ◄── review  round 1 of 5" in rows
    assert max(map(len, terminal.lines)) <= 60


def test_statistics_break_between_words(make: Make) -> None:
    long = "a description that is longer than the terminal is wide, so that it has to be broken somewhere"
    project = make(
        {"steps": STEPS}, code=[{"output": 1}, {"output": 2}, {"output": 3}], review=[failed(long)] * 2 + [passed()]
    )
    assert project.run().outcome == "verified"
    with Terminal(project.folder, "stats", columns=60) as terminal:
        assert terminal.end() == 0
    assert "a description that" in " ".join(terminal.text.split())
    assert max(map(len, terminal.text.splitlines())) <= 60
