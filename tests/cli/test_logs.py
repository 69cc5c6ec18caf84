"""`logs`: what attempts were told, did and printed."""

from __future__ import annotations

import json
import os
import stat
import sys

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Project, failed, finished, passed, until
from tests.cli.terminal import Terminal

STEPS = {"plan": {"phase": "planning"}, "code": {"phase": "code", "needs": ["plan"]}, "review": {"reviews": "code"}}
CLAUDE = """#!{python} -IS
import json, sys
sys.stdin.read()
call = {{"type": "tool_use", "id": "t1", "name": "Edit", "input": {{"file_path": "{folder}/signer.py", "old_string": "a", "new_string": "a\\nb\\nc\\nd\\ne"}}}}
denied = {{"type": "tool_use", "id": "t2", "name": "Bash", "input": {{"command": "curl example.org"}}}}
for block in (call, denied):
    print(json.dumps({{"type": "assistant", "session_id": "s", "message": {{"id": block["id"], "content": [block]}}}}))
print(json.dumps({{"type": "system", "subtype": "permission_denied", "tool_name": "Bash", "tool_use_id": "t2"}}))
denial = {{"tool_name": "Bash", "tool_use_id": "t2", "tool_input": denied["input"]}}
print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "result": "", "total_cost_usd": 0.5,
    "structured_output": {{"output": 1, "summary": "signed"}}, "permission_denials": [denial]}}))
"""


def reworked(make: Make) -> Project:
    project = make(
        {"steps": STEPS},
        plan=[{"output": 1, "!stderr": "thinking about it\n"}],
        code=[{"output": n, "!stderr": f"coding {n}\n"} for n in (1, 2)],
        review=[failed("no login"), passed()],
    )
    project.run("--run", "r-1")
    return project


def test_logs_have_what_every_attempt_was_told_and_printed(make: Make) -> None:
    project = reworked(make)
    lines = project.backedge("logs").out.splitlines()
    assert [line for line in lines if "| coding" in line] == ["code-1   | coding 1", "code-2   | coding 2"]
    assert any(line.startswith("code-2   | > feedback.findings: ") and "no login" in line for line in lines)
    assert 'review-1 | {"verdict": "fail", "findings": [{"description": "no login"}]}' in lines
    assert "review-1 | ✗ fail: F-1" in lines and "review-2 | ✓ pass" in lines
    named = [line.partition(" ")[0] for line in lines]
    assert list(dict.fromkeys(named)) == ["plan-1", "code-1", "review-1", "code-2", "review-2"]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["code"], ["code-1", "code-2"]),
        (["code-2"], ["code-2"]),
        (["r-1", "code-1"], ["code-1"]),
        (["r-1", "plan"], ["plan-1"]),
        (["review-2", "plan"], ["plan-1", "review-2"]),
        (["r-1", "plan", "code-2"], ["plan-1", "code-2"]),
        (["r-1"], ["plan-1", "code-1", "review-1", "code-2", "review-2"]),
    ],
)
def test_a_run_a_step_or_one_attempt_can_be_chosen(make: Make, words: list[str], names: list[str]) -> None:
    out = reworked(make).backedge("logs", *words).out
    assert list(dict.fromkeys(line.partition(" ")[0] for line in out.splitlines())) == names


def test_tail_prompt_and_json_of_logs(make: Make) -> None:
    project = reworked(make)
    assert len(project.backedge("logs", "--tail", 2).out.splitlines()) == 10
    whole = project.backedge("logs", "code-2", "--prompt").out
    told = [line.removeprefix("code-2 | > ") for line in whole.splitlines() if "| > " in line]
    assert json.loads("\n".join(told)) == project.briefings("code")[1]
    rows = [json.loads(line) for line in project.backedge("logs", "code-2", "--json").out.splitlines()]
    assert {"run": "r-1", "step": "code", "attempt": 2, "kind": "output", "text": "coding 2"} in rows


def test_mistakes_are_answered_with_what_there_is(make: Make) -> None:
    project = reworked(make)
    assert project.refused("logs", "r-1", "cod") == "backedge: run r-1 has no step 'cod': did you mean 'code'?"
    assert "unknown run 'x-7'" in project.refused("logs", "x-7")
    assert project.refused("logs", "revew").endswith(
        "; run r-1 has no step of this name either: did you mean 'review'?"
    )
    assert project.refused("logs", "code", "plna").endswith("run r-1 has no step 'plna': did you mean 'plan'?")
    assert project.refused("logs", "code-9") == "backedge: code has made 2 attempts in run r-1: there is no code-9"
    project.backedge("run", "--step", "--run", "r-2")
    assert project.backedge("logs", "plan", "code").err == "code has not started yet in run r-2\n"


def test_the_logs_of_a_running_attempt_can_be_followed(make: Make) -> None:
    project = make({"steps": STEPS}, code=[{"!wait": "go", "!stderr": "coded\n"}], review=[passed()])
    running = project.started("run", "--run", "r-1")
    project.wait_for_execution("code")
    assert "code-1 | > mode" in project.backedge("logs", "code").out, "also without --follow"
    following = project.started("logs", "-f")
    assert following.stdout is not None
    until(lambda: b"code-1   | > mode" in following.stdout.readline())  # type: ignore[union-attr]
    (project.folder / "go").write_text("")
    said = finished(following)
    assert "code-1   | coded\n" in said.out
    assert said.out.rstrip().endswith("review-1 | ✓ pass"), said.out
    finished(running)


def test_following_a_run_that_nobody_executes_ends_with_how_to_go_on(make: Make) -> None:
    project = make({"steps": STEPS}, review=[passed()])
    project.backedge("run", "--step", "--run", "r-1")
    said = project.backedge("logs", "-f")
    assert (said.code, said.err) == (0, "No process is running it. Continue with `backedge resume r-1`\n")
    assert "plan-1   | done" in said.out


def with_a_stand_in(make: Make) -> tuple[Project, dict[str, str]]:
    """A project whose coder is a program that streams as Claude Code does."""
    steps = {"code": {"phase": "code", "agent": "claude"}, "review": {"reviews": "code"}}
    project = make({"steps": steps}, review=[passed()])
    program = project.folder.parent / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(CLAUDE.format(python=sys.executable, folder=project.folder))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return project, {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}


def test_tool_calls_are_short_and_a_denied_tool_is_one_line_everywhere(make: Make) -> None:
    project, env = with_a_stand_in(make)
    said = project.backedge("run", "--log", "--run", "r-1", env=env)
    assert said.code == 0, said
    lines = [line.strip() for line in said.err.splitlines()]
    assert "code │ Edit signer.py +4 −0" in lines
    assert sum(line.endswith("! code: denied Bash (curl example.org)") for line in lines) == 1
    assert "  ! code-1: denied Bash (curl example.org)" in said.out.splitlines()
    told = project.backedge("logs", "code").out.splitlines()
    assert "code-1 | Edit signer.py +4 −0" in told
    assert [line for line in told if "denied" in line] == ["code-1 | ! denied Bash (curl example.org)"]
    assert next(line for line in told if "| > " in line) == "code-1 | > ## How to answer"
    whole = project.backedge("logs", "code", "--prompt").out.splitlines()
    assert any(line.startswith("code-1 | > You do the step") for line in whole)


def test_names_are_coloured_on_a_terminal_only(make: Make) -> None:
    project = reworked(make)
    with Terminal(project.folder, "logs", "code") as terminal:
        assert terminal.end() == 0
    assert "\x1b[36mcode-1 | \x1b[0m" in terminal.raw
    assert "\x1b" not in project.backedge("logs", "code").out
