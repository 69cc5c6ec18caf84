"""`import` and `export` from the outside: nothing is lost, nothing is stored of what is refused."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import make, patience
from tests.cli.project import COMMAND, ESCAPES, Project, failed, passed, raises
from tests.compat.samples import DEFECTS, FEEDBACK, LOOPS, SAMPLES

__all__ = ["make", "patience"]

STEPS: dict[str, Any] = {
    "plan": {"phase": "planning"},
    "code": {"phase": "code", "needs": ["plan"]},
    "review": {"reviews": "code"},
    "test": {"tests": "code"},
}


@pytest.fixture
def project(make: Any) -> Project:
    found: Project = make({"steps": STEPS})
    return found


def brought(project: Project, form: str, content: str | None = None) -> str:
    """Import a sample; returns its run."""
    path = project.folder / f"{form}.txt"
    path.write_bytes((SAMPLES[form] if content is None else content).encode())
    told = project.backedge("import", path.name, "--json")
    assert told.code == 0, told.err
    run: str = told.json["run"]
    return run


@pytest.mark.parametrize("form", list(SAMPLES))
def test_what_is_imported_and_exported_again_is_the_same(project: Project, form: str) -> None:
    content = SAMPLES[form].replace("\n", "\r\n", 2) + "\n \n"
    run = brought(project, form, content)
    assert project.backedge("export", run, "--as", form).out.encode() == content.encode()
    assert [(each["run"], each["outcome"]) for each in project.backedge("runs", "--json").json] == [(run, "imported")]
    assert f"imported as {form}" in project.backedge("show", run).out
    assert project.backedge("audit", "verify").code == 0
    assert project.backedge("resume", run).code == 0
    assert project.executions() == []


def test_imported_loops_are_shown_counted_and_exported_in_other_formats(project: Project) -> None:
    run = brought(project, "feedback-jsonl")
    shown = project.show(run)
    assert [(loop["kind"], loop["state"]) for loop in shown.loops] == [
        ("fix_request", "resolved"),
        ("context_request", "validating"),
        ("dependency_missing", "failed"),
        ("architecture_issue", "notifying"),
    ]
    stats = project.backedge("stats", "--json").json["loops"]
    assert (stats["total"], stats["resolved"], stats["success_rate"], stats["average_rounds"]) == (4, 1, 25.0, 2.0)
    loops = project.backedge("export", run, "--as", "loops").json
    assert loops["statistics"]["by_type"] == stats["by_kind"]
    assert [loop["state"] for loop in loops["feedback_loops"]] == ["RESOLVED", "VALIDATING", "FAILED", "NOTIFYING"]


def test_a0_16_a0_17_the_loops_of_an_engine_keep_state_and_statistics(project: Project) -> None:
    run = brought(project, "loops")
    lines = [json.loads(line) for line in project.backedge("export", run, "--as", "feedback-jsonl").out.splitlines()]
    assert [(line["from_node"], line["to_node"], line["status"]) for line in lines] == [
        ("developer", "architect", "resolved"),
        ("developer", "pm", "resolved"),
        ("architect", "pm", "processing"),
        ("qa", "pm", "delivered"),
        ("qa", "developer", "delivered"),
    ]
    stats = project.backedge("stats", "--json").json["loops"]
    assert (stats["active"], stats["resolved"], stats["total"], stats["escalations"]) == (2, 1, 3, 1)
    assert stats["by_severity"] == {"critical": 1, "high": 1, "medium": 1}


def test_a3_18_a_defect_log_counts_in_the_statistics(project: Project) -> None:
    brought(project, "defects")
    told = project.backedge("stats", "--json").json
    assert told["findings"]["by_phase"] == [
        {"injected": "design", "detected": "test", "findings": 1},
        {"injected": "planning", "detected": "design", "findings": 1},
    ]
    assert (told["rework"]["attempts"], told["rework"]["cost_usd"], told["rework"]["seconds"]) == (3, 0.06, 28.5)


def test_progress_and_scratchpad_turn_into_each_other(project: Project) -> None:
    pad = brought(project, "scratchpad")
    told = project.backedge("export", pad, "--as", "progress")
    assert told.json["feedback_loop"]["current_iteration"] == 2
    (project.folder / "progress.json").write_text(told.out)
    again = project.backedge("import", "progress.json", "--json").json["run"]
    assert "- **Review Result**: FAIL - no label\n" in project.backedge("export", again, "--as", "scratchpad").out


def test_a_run_of_ours_goes_out_in_every_form_and_comes_back(make: Any) -> None:
    project: Project = make(
        {"steps": STEPS},
        plan=[{"output": 1}, {"output": 2}],
        code=[{"output": 1, "feedback": [raises("fix_request", "plan", severity="low")]}, {"output": 2}, {"output": 3}],
        review=[failed({"description": "no login", "severity": "critical"}), passed()],
        test=[passed()],
    )
    project.run("--run", "ours")
    loops = project.show("ours").loops
    assert len(loops) == 2
    for form in SAMPLES:
        said = project.backedge("export", "ours", "--as", form)
        assert said.code == 0, said.err
        (project.folder / form).write_text(said.out)
        run = project.backedge("import", form, "--json").json["run"]
        assert project.backedge("export", run, "--as", form).out == said.out
    files = Path(project.folder / ".backedge" / "runs" / "ours")
    assert (project.folder / "scratchpad").read_text() == (files / "feedback-scratchpad.md").read_text()
    assert json.loads((project.folder / "progress").read_text()) == json.loads((files / "progress.json").read_text())
    lines = [json.loads(line) for line in (project.folder / "feedback-jsonl").read_text().splitlines()]
    assert {(line["from_node"], line["to_node"], line["status"]) for line in lines} == {
        (loop["source"], target, "resolved") for loop in loops for target in loop["targets"]
    }


def test_a_malformed_file_is_refused_line_by_line_and_nothing_is_stored(project: Project) -> None:
    (project.folder / "log").write_text(FEEDBACK.replace("CONTEXT_REQUEST", "CONTEXT_REQUST") + "{\n")
    sentence = project.refused("import", "log")
    assert "log: line 2: feedback_type 'CONTEXT_REQUST' is unknown: did you mean 'CONTEXT_REQUEST'?" in sentence
    assert "log: line 6: not JSON" in sentence
    assert project.backedge("runs", "--json").json == []


def test_a_pipe_is_read_to_its_end_but_not_waited_for(project: Project) -> None:
    pipe = project.folder / "pipe"
    os.mkfifo(pipe)
    complaint = project.refused("import", "pipe")
    assert "pipe is a pipe without a writer: name a file, or use `backedge import -`" in complaint
    (project.folder / "feedback").write_text(FEEDBACK)
    line = f"(sleep 1; cat feedback) | {shlex.quote(COMMAND)} import /dev/stdin --json"
    told = subprocess.run(["sh", "-c", line], cwd=project.folder, capture_output=True, check=True, timeout=60)
    assert len(json.loads(told.stdout)["loops"]) == 4


def test_a_dash_means_stdin(project: Project) -> None:
    told = project.backedge("import", "-", stdin=FEEDBACK)
    assert told.code == 0 and told.out.endswith(": 4 loops in stdin\n"), told
    assert "stdin: " in project.refused("import", "-", stdin="?")


def test_mistakes_are_reported(project: Project) -> None:
    brought(project, "loops")
    assert "was already imported as run 'i-" in project.refused("import", "loops.txt")
    assert "nothing cannot be read: No such file" in project.refused("import", "nothing")
    (project.folder / "other").write_text("hello")
    assert "name it with --as" in project.refused("import", "other")
    (project.folder / "latin").write_bytes(b"a\n\xe4\n")
    assert "line 2: not UTF-8" in project.refused("import", "latin")
    assert "a file without iterations" in project.refused("export", "--as", "scratchpad")
    assert "has ended: imported" in project.refused(
        "feedback", "raise", "--kind", "fix_request", "--to", "human", "--message", "x"
    )


def test_secrets_are_not_stored(project: Project) -> None:
    project.write({"redact": ["TOKEN"], "steps": STEPS})
    (project.folder / "log").write_text(LOOPS.replace("Use polling", "use hunter22hunter"))
    run = project.backedge("import", "log", "--json", env={"TOKEN": "hunter22hunter"}).json["run"]
    assert "hunter22" not in project.backedge("export", run, "--as", "loops").out
    assert b"hunter22" not in (project.folder / ".backedge" / "journal.db").read_bytes()


def test_a_hostile_file_gives_no_orders_to_the_terminal(project: Project) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\u202e"
    line = {
        "from_node": f"a{evil}",
        "to_node": f"b{evil}",
        "feedback_type": "FIX_REQUEST",
        "message": f"m{evil}",
        "priority": "high",
    }
    (project.folder / "log").write_text(json.dumps(line) + "\n")
    assert project.backedge("import", "log").code == 0
    loop = {
        "id": f"x{evil}",
        "source_agent": "s",
        "target_agents": "t",
        "issue_type": "inconsistency",
        "description": "d",
    }
    (project.folder / f"loops{evil}").write_text(json.dumps([loop]))
    assert project.backedge("import", f"loops{evil}").code == 0
    defect = {"description": f"d{evil}", "injected_phase": f"p{evil}", "detected_phase": f"q{evil}", "attempts": 1}
    (project.folder / "defects").write_text(json.dumps([defect]))
    assert project.backedge("import", "defects").code == 0
    (project.folder / "wrong").write_text(json.dumps(line | {"priority": evil}) + "\n")
    for args in (
        *(["show", each["run"]] for each in project.backedge("runs", "--json").json),
        *(["feedback", "list", "--run", each["run"]] for each in project.backedge("runs", "--json").json),
        ["runs"],
        ["stats"],
        ["stats", "--csv"],
        ["import", "wrong"],
    ):
        said = project.backedge(*args)
        assert not ESCAPES.search((said.out + said.err).replace("\n", "").replace("\t", "")), args
        assert "\u202e" not in said.out, args


def test_pruning_leaves_imported_files_alone(project: Project) -> None:
    run = brought(project, "defects")
    assert project.backedge("prune", "--runs", "0", "--json").json["runs"] == []
    assert project.backedge("export", run, "--as", "defects").out == DEFECTS
