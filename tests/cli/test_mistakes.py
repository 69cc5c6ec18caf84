"""Typical mistakes, each once: one helpful sentence, the right exit code, never a traceback."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import COMMAND, Project, in_shell, passed

ONE: dict[str, Any] = {"steps": {"a": {"phase": "code"}}}
GOOD = "name: w\nsteps:\n  a: {phase: code, run: [sh, -c, 'echo {}']}\n"


def test_no_file_and_the_wrong_folder(make: Make, tmp_path: Path) -> None:
    project = make()
    for command in ("run", "check", "resume", "runs", "inbox", "pause"):
        complaint = project.refused(command)
        assert "no backedge.yaml in" in complaint and "backedge init" in complaint


def test_commands_work_in_a_subfolder_of_the_project(make: Make) -> None:
    project = make(ONE)
    below = project.folder / "src" / "deep"
    below.mkdir(parents=True)
    run = project.run(cwd=below).run
    assert project.backedge("show", "--json", cwd=below).json["run"] == run
    assert not (below / ".backedge").exists()


def test_a_missing_or_wrong_file(make: Make) -> None:
    project = make(ONE)
    assert "nope.yaml" in project.refused("run", "nope.yaml")
    assert "nope.yaml" in project.refused("check", "nope.yaml")
    (project.folder / "notes").mkdir()
    assert "notes" in project.refused("run", "notes")


def test_before_the_first_run_reading_commands_fail_and_create_nothing(make: Make) -> None:
    project = make(ONE)
    commands: list[list[str]] = [
        ["show"],
        ["runs", "--journal", "elsewhere.db"],
        ["watch"],
        ["resume"],
        ["pause"],
        ["cancel", "r-1"],
        ["decide", "E-1", "accept"],
        ["feedback", "list"],
        ["what-if", "L-1"],
        ["audit", "verify"],
        ["export"],
    ]
    for command in commands:
        assert "there is no journal at" in project.refused(*command), command
    assert not (project.folder / ".backedge").exists()


def test_lists_are_empty_before_the_first_run_and_statistics_are_zeros(make: Make) -> None:
    project = make(ONE)
    runs, inbox, stats = (project.backedge(command, "--json").json for command in ("runs", "inbox", "stats"))
    assert (runs, inbox) == ([], [])
    assert (stats["runs"], stats["loops"]["total"], stats["loops"]["success_rate"]) == (0, 0, 0)
    assert [project.backedge(command).code for command in ("runs", "inbox", "stats")] == [0, 0, 0]
    assert not (project.folder / ".backedge").exists()


BAD_FILES: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "empty"),
    "only a comment": ("# nothing\n", "empty"),
    "a list": ("- a\n- b\n", "backedge.yaml:1:1"),
    "a typo of YAML": ("name: w\nsteps: {a: {run: [sh}\n", "backedge.yaml:2:"),
    "a tab": ("name: w\nsteps:\n\ta: {}\n", "backedge.yaml:3:"),
    "a misspelt key": (GOOD.replace("phase", "phse"), "did you mean 'phase'?"),
    "a misspelt top key": (GOOD.replace("steps", "stpes"), "did you mean 'steps'?"),
    "an unknown agent": ("name: w\nsteps: {a: {agent: clade}}\n", "unknown agent 'clade': did you mean 'claude'?"),
    "no agent": ("name: w\nsteps: {a: {phase: code}}\n", "missing: expected one of run, agent or agents"),
    "a command as text": ("name: w\nsteps: {a: {run: sh x}}\n", "steps.a.run"),
    "an unknown profile": (GOOD + "profile: bmda\n", "'bmda'"),
    "a negative limit": (GOOD + "limits: {rounds_per_loop: -1}\n", "rounds_per_loop"),
    "a limit in words": (GOOD + "limits: {cost_usd: five}\n", "limits.cost_usd"),
    "an unknown limit": (GOOD + "limits: {rounds_per_lop: 1}\n", "did you mean 'rounds_per_loop'?"),
    "needs in a circle": (
        "name: w\nsteps:\n  a: {needs: [b], run: [x]}\n  b: {needs: [a], run: [x]}\n",
        "in a circle",
    ),
    "needs itself": ("name: w\nsteps: {a: {needs: [a], run: [x]}}\n", "itself"),
    "an unknown need": ("name: w\nsteps: {plan: {run: [x]}, b: {needs: [pln], run: [x]}}\n", "did you mean 'plan'?"),
    "a judge of nobody": ("name: w\nsteps: {plan: {run: [x]}, b: {reviews: pln, run: [x]}}\n", "'pln'"),
    "an unknown on_breach": (GOOD + "on_breach: explode\n", "on_breach"),
    "a key twice": (GOOD + "name: again\n", "name"),
    "a step that is a person's name": ("name: w\nsteps: {human: {run: [x]}}\n", "reserved name"),
    "a bad duration": (GOOD.replace("{phase: code,", "{phase: code, timeout: soon,"), "timeout"),
    "invalid UTF-8": (b"name: \xff\xfe\n", "UTF-8"),
    "a NUL": (b"name: a\x00b\n", "backedge.yaml"),
}


@pytest.mark.parametrize("mistake", BAD_FILES)
def test_a_bad_file_is_reported_with_its_place(make: Make, mistake: str) -> None:
    text, hint = BAD_FILES[mistake]
    project = make()
    data = text if isinstance(text, bytes) else text.encode()
    (project.folder / "backedge.yaml").write_bytes(data)
    complaint = project.refused("check", "--json")
    assert hint in complaint, complaint
    assert "backedge.yaml" in complaint
    assert len(complaint) < 600
    assert not (project.folder / ".backedge").exists()


def test_all_mistakes_in_a_file_are_reported_at_once(make: Make) -> None:
    project = make("nmae: w\nsteps:\n  a: {phse: code, run: [x]}\n  b: {needs: [c], run: [x]}\n")
    complaint = project.refused("check")
    assert all(word in complaint for word in ("nmae", "phse", "'c'")) and len(complaint.splitlines()) >= 3
    assert project.refused("run") == complaint


# Each row: the program, and what has to be said about it.
PROGRAMS: dict[str, tuple[list[str], str]] = {
    "not there": (["./no-such-program-here"], "there is no such program; install it, or correct `run`"),
    "without its interpreter": (["./odd"], "the interpreter in its #! line does not exist"),
    "no program": (["./noise"], "cannot start './noise'"),
}


@pytest.mark.parametrize("row", PROGRAMS)
def test_a_program_that_cannot_be_started(make: Make, row: str) -> None:
    argv, hint = PROGRAMS[row]
    project = make({"limits": {"errors_in_a_row": 1}, "steps": {"a": {"phase": "code", "run": argv}}})
    for name, text in (("odd", "#!/no/such/interpreter\n"), ("noise", "\x01\x02")):
        (project.folder / name).write_text(text)
        (project.folder / name).chmod(0o755)
    result = project.run()
    assert (result.code, result.outcome, result.breach) == (3, "waiting", ("errors_in_a_row", 1, 1))
    assert hint in result.escalation["reason"]
    said = project.backedge("resume")
    assert (
        said.code == 3
        and "backedge decide E-1 continue|skip|cancel" in said.out
        and "then: backedge resume" in said.out
    )


def test_a_script_that_cannot_start_as_it_is_is_reported_before_anything_starts(make: Make) -> None:
    steps = {
        "plan": {"phase": "planning"},
        "code": {"phase": "code", "needs": ["plan"], "run": ["make.sh"]},
        "test": {"tests": "code", "run": ["./test.py"]},
        "lint": {"reviews": "code", "run": ["lint"]},
        "docs": {"reviews": "code", "run": ["python3", "tools/gone.py"]},
    }
    project = make({"steps": steps})
    for name, text, mode in (("make.sh", "", 0o644), ("test.py", "", 0o644), ("lint", "#!/usr/bin/env bash\n", 0o755)):
        (project.folder / name).write_text(text)
        (project.folder / name).chmod(mode)
    complaint = project.refused("run")
    for said in (
        "step 'code': 'make.sh' is in the workspace and not on the PATH: write './make.sh' and run `chmod +x make.sh`, "
        "or write [sh, make.sh]",
        "step 'test': './test.py' is not executable: run `chmod +x ./test.py`, or write [python3, ./test.py]",
        "step 'lint': 'lint' is in the workspace and not on the PATH: write './lint'",
    ):
        assert said in complaint
        assert f"warning: {said}" in project.backedge("check").err
    assert "there is no file 'tools/gone.py' for python3" in project.backedge("check").err
    project.write({"steps": {"code": {"phase": "code", "run": ["bash make.sh"]}}})
    advice = "step 'code': 'bash make.sh' is one word: write [bash, make.sh]"
    assert advice in project.refused("run") and f"warning: {advice}" in project.backedge("check").err
    assert not (project.folder / ".backedge").exists()


# Each row: what the agent says, and what has to be said about it.
OUTCOMES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({"!stdout": ""}, "no outcome: expected JSON in $BACKEDGE_OUTCOME or as the last object on stdout"),
    "prose": ({"!stdout": "I am done!"}, "got 'I am done!'"),
    "wrong JSON": ({"!stdout": '{"output": 1,}'}, "JSON"),
    "wrong JSON in the file": ({"!stdout": '{"output": ', "!file": True}, "the outcome file is not JSON"),
    "a list in the file": ({"!stdout": "[1]", "!file": True}, "the outcome is not understood"),
    "an unknown key": ({"outptu": 1}, "outptu"),
    "a wrong type": ({"summary": 7}, "$.summary"),
    "negative usage": ({"usage": {"cost_usd": -1}}, "cost_usd"),
    "a verdict of a step that judges nothing": (dict(passed()), "is not a judge"),
    "an exit code": ({"!exit": 3, "!stderr": "disk full"}, "the command failed (exit code 3): disk full"),
}


@pytest.mark.parametrize("row", OUTCOMES)
def test_an_invalid_outcome_is_an_error_that_names_the_problem(make: Make, row: str) -> None:
    said, hint = OUTCOMES[row]
    project = make({**ONE, "limits": {"errors_in_a_row": 1}}, a=[said])
    result = project.run()
    assert (result.code, result.outcome, result.attempts) == (3, "waiting", {"a": 1})
    assert hint in result.escalation["reason"], result.escalation["reason"]
    assert hint in result.steps["a"]["last_error"]


def test_an_output_that_violates_the_schema_is_an_error_and_the_retry_can_succeed(make: Make) -> None:
    steps = {"a": {"phase": "code", "schema": {"type": "object", "required": ["units"]}}}
    project = make({"steps": steps}, a=[{"output": {}}, {"output": {"units": 1}}])
    assert project.run().attempts == {"a": 2}
    (failure,) = [each for each in project.events() if each["type"].startswith("attempt_failed")]
    assert "does not match the step's schema" in failure["error"] and "units" in failure["error"]


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["run", "--input", "task"], "--input 'task': expected KEY=VALUE"),
        (["run", "--input", "=x"], "expected KEY=VALUE"),
        (["run", "--input-file", "nope.json"], "nope.json cannot be read: No such file"),
        (["run", "--input-file", "broken.json"], "is not JSON"),
        (["run", "--input-file", "notes"], "is a directory"),
        (["run", "--input-file", "list.json", "--input", "a=1"], "is not a JSON object"),
        (["run", "--input-file", "latin.txt"], "it is not UTF-8"),
        (["run", "--story", "nope.md"], "nope.md cannot be read"),
        (["run", "--max-parallel", "0"], "0 is not in the range x>=1"),
        (["run", "--max-parallel", "lots"], "'lots' is not a valid integer"),
        (["rnu"], "unknown command 'rnu': did you mean 'run'?"),
        (["frobnicate"], "see `backedge --help`"),
        (["run", "--jsn"], "No such option"),
        (["runs", "extra"], "unexpected extra argument"),
        (["decide"], "there is no journal"),
        (["cancel"], "Missing argument"),
        (["audit", "verifi"], "No such command"),
        (["feedback", "raise", "--kind", "fix_request"], "Missing option '--message'"),
        (["export", "--format", "xml"], "'xml' is not one of"),
        (["runs", "--limit", "0"], "0 is not in the range"),
    ],
)
def test_a_mistake_on_the_command_line(make: Make, args: list[str], hint: str) -> None:
    project = make(ONE)
    (project.folder / "notes").mkdir()
    (project.folder / "broken.json").write_text("{nope")
    (project.folder / "list.json").write_text("[1]")
    (project.folder / "latin.txt").write_bytes(b"caf\xe9")
    assert hint in project.refused(*args)
    assert not (project.folder / ".backedge").exists()


def test_endlessly_nested_input_is_text_or_refused(make: Make) -> None:
    project = make(ONE)
    deep = "[" * 60_000
    assert project.run("--input", f"x={deep}").code == 0
    (project.folder / "deep.json").write_text(deep + "]" * 60_000)
    assert "is not JSON" in project.refused("run", "--input-file", "deep.json")


@pytest.fixture
def ran(make: Make) -> Project:
    project = make(ONE)
    project.run("--run", "r-known")
    return project


@pytest.mark.parametrize(
    "args",
    [
        ["show", "r-nope"],
        ["resume", "r-nope"],
        ["watch", "r-nope"],
        ["pause", "r-nope"],
        ["cancel", "r-nope"],
        ["export", "r-nope"],
        ["audit", "export", "r-nope"],
        ["audit", "verify", "r-nope"],
        ["feedback", "list", "--run", "r-nope"],
        ["what-if", "L-1", "--run", "r-nope"],
        ["decide", "E-1", "accept", "--run", "r-nope"],
        ["feedback", "raise", "--kind", "fix_request", "--to", "a", "--message", "x", "--run", "r-nope"],
    ],
)
def test_an_unknown_run_is_an_error_that_lists_the_newest_runs(ran: Project, args: list[str]) -> None:
    complaint = ran.refused(*args)
    assert "unknown run 'r-nope': the newest runs are r-known" in complaint


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (["show", "--step", "A"], "a"),
        (["feedback", "raise", "--kind", "fix_request", "--to", "A", "--message", "x"], "a"),
        (["feedback", "raise", "--kind", "fix_request", "--to", "a", "--from", "HUMAN", "--message", "x"], "human"),
        (["stats", "--workflow", "W"], "w"),
        (["SHOW"], "show"),
    ],
)
def test_a_name_in_other_capitals_gets_a_suggestion(ran: Project, args: list[str], meant: str) -> None:
    assert f"did you mean {meant!r}?" in ran.refused(*args)


def test_a_run_is_found_in_any_capitals(ran: Project) -> None:
    assert ran.backedge("show", "R-Known").out.startswith("r-known ")


def test_a_second_run_with_the_same_id_is_refused(ran: Project) -> None:
    assert "run 'r-known' already exists: continue it with `backedge resume r-known`" in ran.refused(
        "run", "--run", "r-known"
    )


def test_other_unknown_names(ran: Project) -> None:
    assert "unknown escalation 'E-1' (no escalations are open)" in ran.refused("decide", "E-1", "accept")
    assert "unknown escalation 'E-1'" in ran.refused("decide", "E-1", "accept", "--run", "r-known")
    assert "unknown loop 'L-1'" in ran.refused("what-if", "L-1")
    raising = ["feedback", "raise", "--message", "x"]
    assert "kind 'wish' is unknown" in ran.refused(*raising, "--kind", "wish", "--to", "a")
    assert "did you mean" in ran.refused(*raising, "--kind", "fix_requst", "--to", "a")
    assert "unknown target 'b': use one of: a, human" in ran.refused(*raising, "--kind", "fix_request", "--to", "b")
    assert "to is missing" in ran.refused(*raising, "--kind", "fix_request")
    assert "severity 'banana' is unknown" in ran.refused(
        *raising, "--kind", "fix_request", "--to", "a", "--severity", "banana"
    )
    assert "unknown source 'x'" in ran.refused(*raising, "--kind", "fix_request", "--to", "a", "--from", "x")


def test_a_file_that_is_not_a_journal_is_refused(make: Make) -> None:
    project = make(ONE)
    (project.folder / "notes.db").write_text("just notes, " * 999)
    complaint = project.refused("runs", "--journal", "notes.db")
    assert "notes.db" in complaint
    assert "notes.db" in project.refused("run", "--journal", "notes.db")
    assert "nope.db" in project.refused("runs", "--journal", "nope.db")


def test_a_state_folder_that_is_a_file_is_refused(make: Make) -> None:
    project = make(ONE)
    (project.folder / ".backedge").write_text("")
    assert ".backedge" in project.refused("run")


def test_a_damaged_journal_is_detected(ran: Project) -> None:
    import sqlite3

    with sqlite3.connect(ran.folder / ".backedge" / "journal.db") as db:
        (table,) = [
            name
            for (name,) in db.execute("select name from sqlite_master where type = 'table'")
            if {"seq", "body"} <= {row[1] for row in db.execute(f"pragma table_info({name})")}
        ]
        body = db.execute(f"select body from {table} where seq = 2").fetchone()[0]
        text = body if isinstance(body, str) else body.decode()
        changed = text.replace('"a"', '"b"')
        db.execute(
            f"update {table} set body = ? where seq = 2", (changed if isinstance(body, str) else changed.encode(),)
        )
    db.close()
    assert "event 2 of run 'r-known' was changed" in ran.refused("audit", "verify")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("def other(briefing): ...\n", "has no function 'work'"),
        ("import nothing_of_the_kind\n", "cannot be imported: No module named"),
        ("def work(:\n", "cannot be imported: SyntaxError"),
        ("1 / 0\n", "cannot be imported: ZeroDivisionError"),
        ("import sys; sys.exit(3)\n", "cannot be imported: SystemExit"),
        ("work = 3\n", "has a value 'work', not a function"),
    ],
)
def test_a_python_agent_that_cannot_be_imported_is_refused(make: Make, text: str, hint: str) -> None:
    project = make("name: w\nsteps: {a: {phase: code, agent: 'python:mine:work'}}\n")
    (project.folder / "mine.py").write_text(text)
    complaint = project.refused("check", "--import")
    assert hint in complaint and "backedge.yaml:2:33: steps.a.agent: " in complaint
    assert project.refused("run") == complaint


def test_a_file_broken_after_the_start_does_not_affect_the_run(make: Make) -> None:
    work = {"limits": {"errors_in_a_row": 1}, **ONE}
    project = make(work, a=[{"!exit": 1}, {}])
    project.run()
    (project.folder / "backedge.yaml").write_text("steps: [broken")
    assert project.answer("E-1", "continue").outcome == "done"
    (project.folder / "backedge.yaml").unlink()
    assert project.backedge("runs", "--json").json[0]["outcome"] == "done"
    assert "no backedge.yaml" in project.refused("run")


@pytest.mark.parametrize("name", ["a/b", "..", ".", "a b", "ä", "-x", "A" * 300])
def test_any_id_of_a_run_stays_inside_the_state_folder(make: Make, name: str) -> None:
    project = make({"limits": {"errors_in_a_row": 1}, **ONE}, a=[{"!exit": 1}, {}])
    agent = {"run": ["sh", "-c", "[ $BACKEDGE_ATTEMPT = 2 ] && echo {}"]}
    project.write({"limits": {"errors_in_a_row": 1}, "steps": {"a": {"phase": "code", **agent}}})
    before = set(project.folder.parent.rglob("*"))
    assert project.run(f"--run={name}").run == name
    said = project.backedge("decide", "E-1", "continue", f"--run={name}")
    assert said.code == 0, said
    assert project.backedge("resume", "--json", "--", name).json["outcome"] == "done"
    made = set(set(project.folder.parent.rglob("*")) - before)
    assert all((project.folder / ".backedge") in (path, *path.parents) for path in made)


def test_a_journal_elsewhere_does_not_move_the_workspace(make: Make, tmp_path: Path) -> None:
    agent = {"run": ["sh", "-c", 'pwd >&2; [ $BACKEDGE_ATTEMPT = 2 ] && echo "{\\"output\\": \\"$PWD\\"}"']}
    project = make({"limits": {"errors_in_a_row": 1}, "steps": {"a": {"phase": "code", **agent}}})
    elsewhere = tmp_path / "far" / "away.db"
    assert project.run("--journal", elsewhere).code == 3
    assert not (project.folder / ".backedge").exists()
    project.decide("E-1", "continue", "--journal", elsewhere)
    result = project.backedge("resume", "--json", "--journal", elsewhere, cwd=tmp_path).json
    assert (result["outcome"], result["steps"]["a"]["output"]) == ("done", str(project.folder))


def test_a_project_may_be_moved_and_have_any_name(make: Make, tmp_path: Path) -> None:
    odd = tmp_path / "it's $(touch pwned) ü {run} & co"
    agent = {
        "run": ["sh", "-c", 'cat > told; [ $BACKEDGE_ATTEMPT = 2 ] && cat "$BACKEDGE_BRIEFING" | cmp - told && echo {}']
    }
    project = Project(odd, {"limits": {"errors_in_a_row": 1}, "steps": {"a": {"phase": "code", **agent}}})
    assert project.run().code == 3
    moved = odd.rename(tmp_path / "moved")
    again = Project(moved)
    assert again.answer("E-1", "continue").outcome == "done"
    assert (moved / "told").exists() and not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_does_no_harm(make: Make, closed: str) -> None:
    project = make(ONE)
    done = in_shell(f"{COMMAND} run {closed}", project.folder)
    assert done.returncode == 0, done.stderr
    assert project.backedge("runs", "--json").json[0]["outcome"] == "done"


def test_a_full_disk_under_stdout_is_reported(make: Make) -> None:
    project = make(ONE)
    project.run()
    shell = f"{COMMAND} runs --json > /dev/full"
    done = in_shell(shell, project.folder)
    assert done.returncode == 2 and b"No space left" in done.stderr and b"Traceback" not in done.stderr


def test_a_minimal_environment_is_enough(make: Make) -> None:
    project = make("name: w\nsteps: {a: {phase: code, run: [/bin/sh, -c, 'echo {}']}}\n")
    done = subprocess.run([COMMAND, "run"], cwd=project.folder, env={"LC_ALL": "C"}, capture_output=True, timeout=60)
    assert done.returncode == 0 and b"done" in done.stderr


def test_a_workflow_file_may_have_another_name(make: Make) -> None:
    project = make()
    (project.folder / "sub").mkdir()
    (project.folder / "sub" / "other.yaml").write_text(GOOD)
    assert project.run("sub/other.yaml").outcome == "done"
    assert json.loads(project.backedge("runs", "--json", cwd=project.folder / "sub").out)[0]["workflow"] == "w"


def test_what_functions_print_does_not_mix_with_the_result(make: Make) -> None:
    project = make("name: w\nsteps: {a: {phase: code, agent: 'python:loud:work'}}\n")
    code = "import os\nprint('at import')\n\ndef work(brief):\n    print('at work')\n    os.system('echo from a program')\n    return 1\n"
    (project.folder / "loud.py").write_text(code)
    said = project.backedge("run", "--json", "--quiet")
    assert json.loads(said.out)["outcome"] == "done"
    for words in ("at import", "at work", "from a program"):
        assert words in said.err


def test_a_missing_program_is_reported_before_anything_starts(make: Make) -> None:
    project = make("name: w\nsteps: {a: {phase: code, run: [no-such-program-at-all]}}\n")
    for words in (("run",), ("run", "--dry-run")):
        assert "no such program" in project.refused(*words)


def test_an_input_key_given_twice_is_refused(make: Make) -> None:
    project = make("name: w\nsteps: {a: {phase: code, run: ['true']}}\n")
    assert "'k' twice" in project.refused("run", "--input", "k=1", "--input", "k=2")
