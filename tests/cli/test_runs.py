"""`runs`: how each run is doing, and what to type next."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from tests.cli.conftest import Make
from tests.cli.project import Project, failed, finished, passed, until
from tests.cli.terminal import Terminal

STEPS = {"code": {"phase": "code"}, "review": {"reviews": "code"}}
WORKFLOW = {"steps": STEPS, "limits": {"rounds_per_loop": 1}}


def statuses(project: Project) -> dict[str, Any]:
    return {each["run"]: each for each in project.backedge("runs", "--json").json}


def test_runs_says_how_each_run_is_doing_and_what_to_type_next(make: Make) -> None:
    project = make(WORKFLOW, code=[{"usage": {"cost_usd": 0.25}}], review=[passed()])
    project.run("--run", "r-verified")
    project.backedge("run", "--step", "--run", "r-stopped")
    project.backedge("run", "--step", "--run", "r-paused")
    paused = project.backedge("pause", "r-paused")
    assert paused.err == "  Running attempts finish, and none starts. Continue with `backedge resume r-paused`\n"
    project.script(review=[failed("no")])
    project.run("--run", "r-asks")
    project.script(code=[{"!wait": "go"}], review=[passed()])
    running = project.started("run", "--run", "r-live")
    project.wait_for_execution("code", 6)

    known = statuses(project)
    told = {run: (each["state"], each["steps"], each["next"]) for run, each in known.items()}
    assert told == {
        "r-live": ("live", ["code-1"], "backedge watch r-live"),
        "r-asks": ("asks you", ["review-2"], "backedge decide E-1 --run r-asks"),
        "r-paused": ("paused", ["code-1"], "backedge resume r-paused"),
        "r-stopped": ("stopped", ["code-1"], "backedge resume r-stopped"),
        "r-verified": ("verified", [], "backedge show r-verified"),
    }
    assert [run for run, each in known.items() if each["held_by"]] == ["r-live"]
    assert (known["r-verified"]["cost_usd"], known["r-verified"]["asks"], known["r-asks"]["asks"]) == (
        0.25,
        [],
        ["E-1"],
    )
    assert 0 <= known["r-live"]["age_seconds"] < 60 and known["r-live"]["started"].endswith("Z")

    lines = project.backedge("runs").out.splitlines()
    for run, (state, steps, command) in told.items():
        place = next(n for n, line in enumerate(lines) if line.startswith(f"{run} "))
        assert state in lines[place] and all(step in lines[place] for step in steps)
        ended = state == "verified"
        assert (f"    → {command}" in lines) is not ended
    assert any(line.startswith("    E-1: review rejected code twice. Still wrong: ") for line in lines), lines
    assert "$0.25" in next(line for line in lines if line.startswith("r-verified"))

    running.kill()
    finished(running)
    assert until(lambda: statuses(project)["r-live"]["state"] == "stopped"), "its process holds no claim any more"


def test_the_list_fits_a_narrow_terminal(make: Make) -> None:
    project = make({**WORKFLOW, "name": "a-workflow-with-a-rather-long-name"}, review=[failed("x" * 300)])
    project.run("--run", "r-1234567890abcdef0")
    with Terminal(project.folder, "runs", columns=60) as terminal:
        assert terminal.end() == 0
    assert max(map(len, terminal.lines)) <= 60, terminal.lines
    assert "    → backedge decide E-1 --run r-1234567890abcdef0" in terminal.lines


def test_the_step_is_named_where_the_row_has_no_room_for_it(make: Make) -> None:
    long = {"steps": {"implementation": {"phase": "code"}, "review": {"reviews": "implementation"}}, "name": "checkout"}
    project = make(long)
    project.backedge("run", "--step", "--run", "r-1a1ef08fec687f5cf")
    with Terminal(project.folder, "runs", columns=60) as terminal:
        assert terminal.end() == 0
    assert " ago  " in terminal.lines[0]
    assert terminal.lines[1:] == ["    last implementation-1", "    → backedge resume r-1a1ef08fec687f5cf"]


# Works in the folder of the project: what each attempt writes and removes is in its script.
WRITER = """\
import json, os, time
step, attempt = os.environ["BACKEDGE_STEP"], int(os.environ["BACKEDGE_ATTEMPT"])
open("started-" + step, "w").close()
while step in ("api", "web") and not all(os.path.exists("started-" + each) for each in ("api", "web")):
    time.sleep(0.01)
if step != "review":
    lines = {("api", 1): ["a", "b", "c"], ("api", 2): ["a", "d"], ("web", 1): ["w"]}[step, attempt]
    with open(step + ".py", "w") as file:
        file.writelines(line + "\\n" for line in lines)
    time.sleep(0.3 if step == "web" else 0)
verdict = {"verdict": "fail", "findings": [{"description": "no d"}]} if attempt == 1 else {"verdict": "pass"}
print(json.dumps(verdict if step == "review" else {"output": attempt, "usage": {"cost_usd": 0.5}}))
"""


def test_the_summary_counts_lines_from_the_start_to_the_end_as_git_does(make: Make) -> None:
    """Steps that work at the same time see each other's changes, and a rework removes lines of the attempt before."""
    run = [sys.executable, "agent.py"]
    steps = {
        "api": {"phase": "code", "run": run},
        "web": {"phase": "code", "run": run},
        "review": {"reviews": "api", "needs": ["web"], "run": run},
    }
    project = make({"steps": steps})
    (project.folder / "agent.py").write_text(WRITER)
    (project.folder / ".gitignore").write_text("started-*\n")
    (project.folder / "api.py").write_text("a\nold\n")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=project.folder, check=True)
    said = project.backedge("run", "--run", "r-1")
    assert said.code == 0, said
    assert "  changed: 2 files, +2 −1: api.py +1 −1, web.py +1 −0" in said.out.splitlines(), said.out
