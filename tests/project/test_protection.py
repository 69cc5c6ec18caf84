"""What `backedge check` says about the guards of a workflow."""

from __future__ import annotations

import json
from pathlib import Path

from backedge.config import load
from backedge.project import Project
from backedge.project.protection import in_force


def warnings(folder: Path, **judge: str) -> tuple[str, ...]:
    (folder / "packages" / "a").mkdir(parents=True)
    test = {"tests": "code", "run": ["pytest"], "report": "exitcode", **judge}
    steps = {"code": {"phase": "code", "run": ["true"]}, "test": test}
    (folder / "backedge.yaml").write_text(json.dumps({"name": "shop", "steps": steps}))
    return in_force(load(folder / "backedge.yaml"), Project(folder, folder / ".backedge" / "journal.db")).warnings


def test_a_judge_that_sees_only_a_part_of_the_workspace_is_a_warning(tmp_path: Path) -> None:
    assert warnings(tmp_path, workspace="packages/a") == (
        "step 'test' judges 'code' in packages/a: files outside of packages/a are not compared for it, and later changes "
        "of them are not noticed; leave `workspace` out, and name packages/a in `run`",
    )


def test_a_judge_in_the_same_workspace_is_no_warning(tmp_path: Path) -> None:
    assert warnings(tmp_path) == ()
