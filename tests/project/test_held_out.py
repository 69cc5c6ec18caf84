"""The files of held-out judges: what a sandbox hides from agents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backedge.config import WorkflowFile, load
from backedge.project.held_out import held_out_files, held_out_warnings


def loaded(folder: Path, code: Mapping[str, Any] | None = None, **secret: Any) -> WorkflowFile:
    """A workflow in folder/shop whose judge is held out."""
    shop, held = folder / "shop", folder / "held"
    for each in (shop / "tests", held / "cases", folder / "own"):
        each.mkdir(parents=True, exist_ok=True)
    (held / "run.sh").write_text("exit 0\n")
    judge = {"tests": "code", "report": "exitcode", "hidden": True, "run": ["sh", str(held / "run.sh")], **secret}
    steps = {"code": {"phase": "code", "run": ["true"], **(code or {})}, "secret": judge}
    (shop / "backedge.yaml").write_text(json.dumps({"name": "shop", "steps": steps}))
    return load(shop / "backedge.yaml")


def test_the_folder_of_a_script_is_hidden_with_all_that_lies_there(tmp_path: Path) -> None:
    assert held_out_files(loaded(tmp_path)) == (tmp_path / "held",)


def test_folders_in_options_and_in_the_environment_are_hidden(tmp_path: Path) -> None:
    run = ["pytest", f"--rootdir={tmp_path}/held/cases::test_a", "../own"]
    agents = {"judge": {"run": run, "env": {"PYTHONPATH": f"{tmp_path}/held:/usr/lib"}}}
    shop = loaded(tmp_path).folder
    steps = {
        "code": {"phase": "code", "run": ["true"]},
        "secret": {"tests": "code", "report": "exitcode", "hidden": True, "agent": "judge"},
    }
    (shop / "backedge.yaml").write_text(json.dumps({"name": "shop", "steps": steps, "agents": agents}))
    found = held_out_files(load(shop / "backedge.yaml"))
    assert set(found) == {tmp_path / "held", tmp_path / "held/cases", tmp_path / "own"}


def test_a_workspace_of_its_own_is_hidden(tmp_path: Path) -> None:
    for name in ("app", "held"):
        (tmp_path / "shop" / name).mkdir(parents=True)
    source = loaded(tmp_path, code={"workspace": "app"}, run=["true"], workspace="held")
    assert held_out_files(source) == (tmp_path / "shop/held",)


def test_what_agents_need_is_never_hidden(tmp_path: Path) -> None:
    venv = tmp_path / "venv" / "bin"
    venv.mkdir(parents=True)
    (venv.parent / "pyvenv.cfg").touch()
    (venv / "python").touch()
    run = [str(venv / "python"), "/usr/bin/env", "tests/x", str(tmp_path), "..", "/", "word", "no/such/file"]
    assert held_out_files(loaded(tmp_path, run=run)) == ()


def test_a_script_beside_the_workspace_is_hidden_alone(tmp_path: Path) -> None:
    (tmp_path / "run.sh").touch()
    assert held_out_files(loaded(tmp_path, run=["sh", "../run.sh"])) == (tmp_path / "run.sh",)


def test_a_judge_that_is_not_hidden_hides_nothing(tmp_path: Path) -> None:
    source = loaded(tmp_path, hidden=False)
    assert held_out_files(source) == ()
    assert held_out_warnings(source, {"code": "none"}) == []


def test_files_in_the_workspace_and_agents_without_a_sandbox_are_a_warning(tmp_path: Path) -> None:
    assert held_out_warnings(loaded(tmp_path), {"code": "bwrap"}) == []
    (tmp_path / "shop/tests/a.sh").touch()
    source = loaded(tmp_path, run=["sh", "tests/a.sh"])
    assert held_out_warnings(source, {"code": "none"}) == [
        "step 'secret' is hidden, but agents can read tests/a.sh: keep its files outside the workspace",
        "secret is hidden, but nothing keeps code from reading its files: set `sandbox: bwrap`, where bubblewrap works",
    ]
