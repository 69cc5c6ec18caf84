"""From the outside: what `check` and `agents` report about this machine, and what a workflow could cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backedge.catalog import AGENT_CLIS
from tests.cli.conftest import Make
from tests.cli.project import COMMAND, PYTHON, Project, environment, failed, passed

STEPS: dict[str, Any] = {"code": {"phase": "code"}, "review": {"reviews": "code"}}


def bare(folder: Path, **programs: str) -> dict[str, str]:
    """An environment in which only these shell scripts are installed."""
    place = folder / "bin"
    place.mkdir(parents=True, exist_ok=True)
    for name, script in programs.items():
        (place / name).write_text(f"#!/bin/sh\n{script}\n")
        (place / name).chmod(0o755)
    return {"PATH": str(place)}


# check


def test_a_missing_program_is_a_warning_with_the_step_and_what_to_do(make: Make) -> None:
    project = make(
        {
            "steps": {
                "code": {"phase": "code", "agent": "claude"},
                "lint": {"reviews": "code", "run": ["ruff", "check"]},
                "own": {"reviews": "code", "run": ["./own.sh"]},
                "odd": {"reviews": "code", "run": ["no-such-program"]},
                "gone": {"reviews": "code", "run": ["tools/gone"]},
                "here": {"reviews": "code", "run": [*PYTHON, "-c", ""]},
            }
        }
    )
    (project.folder / "own.sh").write_text("#!/bin/sh\n")
    said = project.backedge("check", env=bare(project.folder))
    assert said.code == 0
    assert "A run usually makes about" in said.out
    assert said.err.splitlines() == [
        "warning: step 'code': claude is not installed: run `npm install -g @anthropic-ai/claude-code`",
        "warning: step 'lint': 'ruff' is not installed: run `pip install ruff`, or correct `run`",
        "warning: step 'own': './own.sh' is not executable: run `chmod +x ./own.sh`, or write [sh, ./own.sh]",
        "warning: step 'odd': 'no-such-program' is not installed: install it, or correct `run`",
        "warning: step 'gone': there is no file 'tools/gone': correct the path, or make sure that an earlier step writes it",
    ]
    told = project.backedge("check", "--json", env=bare(project.folder))
    assert (told.code, told.err) == (0, "")
    assert [warning.split(": ")[0] for warning in told.json["warnings"]] == [
        f"step '{name}'" for name in ("code", "lint", "own", "odd", "gone")
    ]
    (project.folder / "own.sh").chmod(0o755)
    (project.folder / "tools").mkdir()
    (project.folder / "tools" / "gone").symlink_to(project.folder / "own.sh")
    found = bare(project.folder, claude="", ruff="", **{"no-such-program": ""})
    assert project.backedge("check", "--json", env=found).json["warnings"] == []


def test_problems_of_a_step_are_reported_even_if_its_cli_is_not_installed(make: Make) -> None:
    project = make({"steps": {"code": {"phase": "code", "agent": "codex", "max_turns": 3}}})
    assert "codex has no flag for max_turns" in project.refused("check", env=bare(project.folder))


def test_before_the_first_run_the_cost_is_unknown(make: Make) -> None:
    project = make({"steps": STEPS})
    assert "The cost is unknown" in project.backedge("check").out
    told = project.backedge("check", "--json").json
    assert (told["cost"], told["warnings"]) == (None, [])
    assert not (project.folder / ".backedge").exists(), "looking makes no journal"


def cost(usd: float) -> dict[str, Any]:
    return {"usage": {"cost_usd": usd}}


def test_the_highest_cost_is_estimated_from_earlier_runs(make: Make) -> None:
    project = make(
        {"steps": STEPS, "limits": {"cost_usd": 50}},
        code=[{"output": 1, **cost(0.5)}, {"output": 2, **cost(1.5)}],
        review=[failed("no", **cost(0.25)), passed(**cost(0.25))],
    )
    assert project.run().outcome == "verified"
    told = project.backedge("check", "--json").json
    bound = told["max_attempts"]
    assert told["cost"] == {
        "runs": 1,
        "attempts": 4,
        "total_usd": 2.5,
        "mean_usd": 0.625,
        "max_usd": 1.5,
        "steps": {
            "code": {"attempts": 2, "mean_usd": 1.0, "max_usd": 1.5},
            "review": {"attempts": 2, "mean_usd": 0.25, "max_usd": 0.25},
        },
        "at_mean_usd": 0.625 * bound,
        "at_most_usd": 1.5 * bound,
        "limit_usd": 50.0,
    }
    said = project.backedge("check").out
    assert f"so {bound} could cost ${0.625 * bound:.2f}, and ${1.5 * bound:.2f} at the highest price seen" in said
    assert "The limit cost_usd stops a run at $50.00." in said


def test_other_workflows_of_the_journal_do_not_count(make: Make) -> None:
    project = make({"steps": STEPS}, code=[cost(0.5)], review=[passed()])
    project.run()
    project.write({"name": "other", "steps": STEPS})
    assert project.backedge("check", "--json").json["cost"] is None
    project.write({"name": "w", "steps": STEPS})
    project.script(code=[{}], review=[passed()])
    assert project.backedge("check", "--json").json["cost"]["attempts"] == 2


def test_check_says_if_earlier_runs_reported_no_cost(make: Make) -> None:
    project = make({"steps": STEPS}, review=[passed()])
    project.run()
    assert "None of the 2 attempts so far reported a cost." in project.backedge("check").out


def test_a_journal_that_cannot_be_read_is_a_warning(make: Make) -> None:
    project = make({"steps": STEPS})
    (project.folder / ".backedge").mkdir()
    (project.folder / ".backedge" / "journal.db").write_text("this is no database, but long enough to be one" * 50)
    said = project.backedge("check")
    assert said.code == 0
    assert "warning: the cost of earlier runs is unknown" in said.err


# agents


def agents(project: Project, env: dict[str, str]) -> dict[str, dict[str, Any]]:
    return {each["agent"]: each for each in project.backedge("agents", "--json", env=env).json}


def test_agents_lists_what_is_installed_and_works(make: Make) -> None:
    project = make()
    env = bare(
        project.folder,
        claude="echo '2.1.7 (Claude Code)'",
        codex="echo boom >&2; exit 3",
        gemini="echo hello",
    )
    found = agents(project, env)
    assert list(found) == list(AGENT_CLIS)
    states = {name: (each["installed"], each["works"], each["version"]) for name, each in found.items()}
    assert states == {
        **dict.fromkeys(AGENT_CLIS, (False, False, None)),
        "claude": (True, True, "2.1.7"),
        "codex": (True, False, None),
        "gemini": (True, False, None),
    }
    assert found["codex"]["problem"] == "exit code 3: boom"
    said = {line.split()[0]: line for line in project.backedge("agents", env=env).out.splitlines()}
    assert said["claude"].split() == ["claude", "2.1.7", str(project.folder / "bin" / "claude")]
    assert "codex      does not work: exit code 3: boom" in said["codex"]
    assert said["opencode"] == "opencode   not installed: npm install -g opencode-ai"


# prompts


def test_prompts_are_ejected_changed_and_used(make: Make) -> None:
    project = make()
    said = project.backedge("agents", "--eject", "review")
    assert "prompt: prompts/review.md" in said.out
    ejected = project.folder / "prompts" / "review.md"
    assert "{{answer}}" in ejected.read_text()
    assert "prompts/review.md already exists" in project.refused("agents", "--eject", "review")
    ejected.write_text("mine {{tsak}}")
    project.write({"steps": {**STEPS, "review": {"reviews": "code", "agent": "claude", "prompt": "prompts/review.md"}}})
    assert "did you mean 'task'?" in project.refused("check")
    assert project.backedge("agents", "--eject", "all", "--force").code == 0
    assert sorted(path.stem for path in ejected.parent.iterdir()) == ["code", "design", "plan", "review", "test-writer"]
    assert project.backedge("check").code == 0
    assert "Invalid value" in project.refused("agents", "--eject", "poet")


@pytest.mark.parametrize("prompt", ["test-writer", "review"])
def test_a_role_can_be_named_as_the_prompt(make: Make, prompt: str) -> None:
    project = make({"on_error": "keep", "steps": {"code": {"phase": "code", "agent": "claude", "prompt": prompt}}})
    # A CLI that only keeps what it is told.
    env = bare(
        project.folder, claude=f'exec {sys.executable} -c \'import sys; open("told", "w").write(sys.stdin.read())\''
    )
    project.backedge("run", "--quiet", env=env)
    shipped = Path(__file__).parents[2] / "src" / "backedge" / "prompts" / f"{prompt}.md"
    words = shipped.read_text().splitlines()[0].partition("}}: ")[2]
    assert words and words in (project.folder / "told").read_text().splitlines()[0]
    project.write({"steps": {"code": {"phase": "code", "agent": "claude", "prompt": "poet"}}})
    assert "got 'poet', which is not a file here" in project.refused("check")


# live


def test_the_log_of_an_agent_cli_is_shown_as_readable_lines(make: Make) -> None:
    project = make({"steps": {"code": {"phase": "code", "agent": "claude"}}})
    events = [
        {"type": "system", "session_id": "s"},
        {"type": "assistant", "message": {"id": "1", "content": [{"type": "text", "text": "I look at\nthe code"}]}},
        {"type": "user", "message": {"content": "x" * 20_000}},
        {
            "type": "assistant",
            "message": {"id": "2", "content": [{"type": "tool_use", "name": "Edit", "input": {"f": 1}}]},
        },
        {"type": "result", "subtype": "success", "is_error": False, "structured_output": {"output": 1}},
    ]
    (project.folder / "stream").write_text("".join(json.dumps(event) + "\n" for event in events))
    env = bare(project.folder, claude="/bin/cat stream; echo complaint >&2")
    said = project.backedge("run", "--log", env=env)
    assert said.code == 0, said
    lines = [line.split("│", 1)[1].strip() for line in said.err.splitlines() if "│" in line]
    assert sorted(lines) == sorted(["I look at", "the code", 'Edit {"f": 1}', "complaint"])


# the entry


def test_ctrl_c_while_the_command_is_loading_prints_one_line(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "from backedge.cli.main import entry\n"
        "entry()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(None), capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr, done.stdout) == (130, "backedge: interrupted\n", "")
    assert os.path.exists(COMMAND)


# functions


def test_a_python_function_is_checked_against_schema_and_accepts(make: Make) -> None:
    number = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    plan = {"phase": "planning", "agent": "python:work:plan", "schema": number}
    code = {"phase": "code", "needs": ["plan"], "agent": "python:work:code", "accepts": {"plan": {"maxProperties": 1}}}
    project = make({"steps": {"plan": plan, "code": code}})
    (project.folder / "work.py").write_text(
        "def plan(brief): return [{}, {'n': 1, 'm': 2}, {'n': 3}][brief.attempt - 1]\n"
        "def code(brief): return brief.inputs['plan']\n"
    )
    result = project.run()
    assert (result.outcome, result.attempts) == ("done", {"plan": 3, "code": 1})
    assert result.steps["code"]["output"] == {"n": 3}
    assert result.loop["kind"] == "validation_failure"
    (error,) = [event["error"] for event in project.events() if event["type"].startswith("attempt_failed")]
    assert "the output does not match the step's schema: the whole: 'n' is a required property" in error


LOOKS = [["check"], ["check", "--json"], ["run", "--dry-run"], ["run", "--dry-run", "--json"]]


@pytest.mark.parametrize("looks", LOOKS, ids=" ".join)
def test_looking_at_a_workflow_file_does_not_execute_the_modules_of_its_folder(make: Make, looks: list[str]) -> None:
    steps = {"plan": {"phase": "planning", "agent": "python:work:plan"}, "code": {"needs": ["plan"]}}
    project = make({"steps": steps})
    (project.folder / "work.py").write_text("open('executed', 'w').close()\ndef plan(brief): ...\n")
    said = project.backedge(*looks)
    assert said.code == 0
    assert not (project.folder / "executed").exists()
    if "--json" in looks:
        assert said.json["not_imported"] == ["plan"]
    else:
        assert "python: agents are not imported (plan); --import does" in said.err
    said = project.backedge(*looks, "--import")
    assert (said.code, said.err) == (0, "")
    assert (project.folder / "executed").exists()
    if "--json" in looks:
        assert said.json["not_imported"] == []


ALL_WRONG = """\
name: w
agents:
  strong: {cli: codex, max_turns: 5}
steps:
  plan: {phase: planing, run: [echo, "{reprot}", "${HOME}", "{{x}}"]}
  code: {nedds: [plan], phase: code, agent: claude, permission_mode: acceptEdit, prompt: code.md}
  test: {tests: code, agent: python:nomod:f}
  look: {reviews: code, agent: python:helpers:lok}
  last: {needs: [code], agents: [claude, strong], prompt: none.md}
"""


def test_all_problems_are_reported_at_once_including_those_of_agents(make: Make) -> None:
    project = make(ALL_WRONG)
    (project.folder / "code.md").write_text("Hello\n{{tsak}}\n")
    (project.folder / "helpers.py").write_text("def look(briefing): ...\n")
    said = project.backedge("check", "--import")
    assert (said.code, said.out) == (2, "")
    assert said.err.removeprefix("backedge: ").splitlines() == [
        "backedge.yaml:3:35: agents.strong.max_turns: codex has no flag for max_turns: remove it, or use another agent",
        "backedge.yaml:6:10: steps.code.nedds: unknown key: did you mean 'needs'?",
        "backedge.yaml:6:70: steps.code.permission_mode: claude has no permission_mode 'acceptEdit': "
        "did you mean 'acceptEdits'?",
        "backedge.yaml:6:90: steps.code.prompt: cannot be used: {{tsak}} in line 2 is not a placeholder: "
        "did you mean 'task'?",
        "backedge.yaml:7:30: steps.test.agent: agent python:nomod:f cannot be imported: No module named 'nomod': "
        "write nomod.py, or install it",
        "backedge.yaml:8:32: steps.look.agent: module 'helpers' has no function 'lok': did you mean 'look'?",
        "backedge.yaml:9:59: steps.last.prompt: got 'none.md', which is not a file here: create it, or correct the path",
    ]


def test_other_braces_stay_and_a_misspelt_placeholder_is_a_warning(make: Make) -> None:
    project = make("name: w\nsteps:\n  a: {run: [awk, '{print} ${report} {{x}}', 'BEGIN {exit}', '{reprot}']}\n")
    said = project.backedge("check")
    warning = "backedge.yaml:3:61: steps.a.run[3]: {reprot} is left as it is: did you mean '{report}'?"
    assert (said.code, said.err) == (0, f"warning: {warning}\n")


def test_an_undeclared_phase_comes_after_the_declared_ones(make: Make) -> None:
    steps = "{a: {phase: planning, run: [echo]}, b: {phase: rollout, needs: [a], run: [echo]}}"
    project = make(f"name: w\nphases: [planning, design]\nsteps: {steps}\n")
    said = project.backedge("check")
    warning = "backedge.yaml:3:55: steps.b.phase: got 'rollout', which is not in `phases`: it comes after those"
    assert (said.code, said.err) == (0, f"warning: {warning} (planning, design)\n")


def test_a_phase_outside_phases_is_refused_and_a_misspelt_one_is_a_warning(make: Make) -> None:
    steps = "{a: {phase: planing, run: [echo]}, b: {phase: rollout-1, run: [echo]}, c: {phase: rollout-2, run: [echo]}}"
    project = make(f"name: w\nphases: [planning, rollout-1, rollout-2]\nsteps: {steps}\n")
    complaint = project.refused("check")
    assert complaint.endswith("3:20: steps.a.phase: got 'planing', which is not in `phases`: did you mean 'planning'?")
    project.write(f"name: w\nsteps: {steps}\n")
    said = project.backedge("check")
    warning = (
        "backedge.yaml:2:20: steps.a.phase: got 'planing', which becomes a separate phase: did you mean 'planning'?"
    )
    assert (said.code, said.err) == (0, f"warning: {warning}\n")
    assert project.backedge("check", "--json").json["warnings"] == [warning]


def test_check_says_how_many_attempts_are_usual_and_what_multiplies_the_most(make: Make) -> None:
    steps = {"code": {"phase": "code"}, "review": {"reviews": "code"}}
    project = make({"steps": steps}, review=[failed("bad"), passed()])
    said = " ".join(project.backedge("check").out.split())
    assert (
        "A run usually makes about 2 attempts (one for each step, and more for what comes back), at most 189," in said
    )
    assert (
        "What multiplies: 2 executions + 1 to judge again after late changes, in the first pass and in each of 20 rounds "
        "of feedback (the limit rounds_total), each tried up to 3 times if its agent breaks (errors_in_a_row)." in said
    )
    assert project.run().code == 0
    assert "about 4 attempts (the average of 1 run), at most 189" in project.backedge("check").out
    limited = make({"limits": {"attempts": 5}, "steps": steps}).backedge("check").out
    assert "at most 5, plus" in limited and "The limit attempts allows no more than 5." in limited
