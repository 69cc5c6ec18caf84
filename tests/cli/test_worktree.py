"""`run --worktree`, `merge`, `discard` and `worktrees`: work apart from the checkout, and what becomes of it."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Project, finished, until

CODE = """\
import json, os, pathlib, sys
task = json.load(sys.stdin)["input"] or {}
if task.get("fails"):
    sys.exit("broken")
for name in task.get("gone", []):
    pathlib.Path(name).unlink(missing_ok=True)
for name, text in task.get("files", {"new/made.py": "made = 1\\n"}).items():
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
for line in task.get("shell", []):
    os.system(line)
print("{}")
"""
STEPS = {
    "code": {"phase": "code", "run": [sys.executable, "code.py"]},
    "test": {"tests": "code", "run": ["sh", "check.sh"], "report": "exitcode"},
}
WAITS = '["while [ ! -e ../../../go ]; do sleep 0.05; done"]'
IDENTITY = {"GIT_AUTHOR_NAME": "t", "GIT_COMMITTER_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_EMAIL": "t@t"}


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def project(make: Make, monkeypatch: pytest.MonkeyPatch) -> Project:
    for key, value in IDENTITY.items():
        monkeypatch.setenv(key, value)
    project = make({"steps": STEPS})
    (project.folder / "code.py").write_text(CODE)
    (project.folder / "check.sh").write_text("test ! -e bad\n")
    (project.folder / "old.txt").write_text("old\n")
    (project.folder / ".gitignore").write_text("ignored.txt\n.venv/\n")
    git(project.folder, "init", "-qb", "main")
    git(project.folder, "add", ".")
    git(project.folder, "commit", "-qm", "one")
    return project


def ran(project: Project, *more: object, name: str = "r-1", code: int = 0) -> str:
    said = project.backedge("run", "--worktree", "--run", name, *more)
    assert said.code == code, said
    return said.out + said.err


def tree(project: Project, name: str = "r-1") -> Path:
    return project.folder / ".backedge" / "worktrees" / name


def status(project: Project) -> str:
    return git(project.folder, "status", "--porcelain")


def is_gone(project: Project, name: str = "r-1") -> bool:
    branches = git(project.folder, "branch", "--list", f"backedge/{name}")
    known = git(project.folder, "worktree", "list")
    return not tree(project, name).exists() and not branches and name not in known


def test_a_run_in_a_worktree_is_merged_as_exactly_what_was_judged(project: Project) -> None:
    (project.folder / "old.txt").write_text("mine\n")
    # The agent commits by itself, leaves an ignored file, moves a file and makes one executable.
    shell = '["git add -A && git commit -qm own", "echo x > ignored.txt", "git mv old.txt older.txt", "chmod +x new/made.py"]'
    said = ran(project, "--input", "task=make it", "--input", f"shell={shell}")
    assert "the run does not see 1 change of yours that is not committed: old.txt" in said
    assert "next: backedge merge r-1" in said
    assert (tree(project) / "new" / "made.py").exists() and not (project.folder / "new").exists()
    assert "backedge merge r-1" in project.backedge("runs").out
    assert "new/made.py" in project.backedge("show", "r-1", "--diff").out
    (row,) = project.backedge("worktrees", "--json").json
    assert (row["kind"], row["branch"], row["state"]) == ("run", "backedge/r-1", "verified")

    # My change is in the way: nothing is changed.
    assert "commit or stash what is in the way" in project.refused("merge", "r-1")
    assert (project.folder / "old.txt").read_text() == "mine\n"
    git(project.folder, "checkout", "-q", "old.txt")

    merged = project.backedge("merge", "r-1")
    assert merged.code == 0, merged
    assert "merged r-1 (verified) into main" in merged.out
    assert git(project.folder, "show", "--format=", "--name-status", "--no-renames", "HEAD").split("\n") == [
        "A\tnew/made.py",
        "D\told.txt",
        "A\tolder.txt",
    ]
    assert git(project.folder, "log", "--format=%s") == "make it\none"
    assert "Backedge-Outcome: verified" in git(project.folder, "log", "-1", "--format=%b")
    assert git(project.folder, "ls-tree", "HEAD", "new/made.py").startswith("100755")
    assert status(project) == "" and is_gone(project)
    assert "it was merged as" in project.refused("merge", "r-1")
    assert project.backedge("show", "r-1", "--diff").code == 0


def test_what_was_not_judged_is_not_merged(project: Project) -> None:
    ran(project)
    (tree(project) / "new" / "made.py").write_text("made = 2\n")
    assert "not those that were judged" in project.refused("merge", "r-1")
    assert git(project.folder, "log", "--format=%s") == "one"
    said = project.backedge("merge", "r-1", "--anyway", "I corrected it", "-m", "two")
    assert said.code == 0, said
    assert (project.folder / "new" / "made.py").read_text() == "made = 2\n"


def test_a_conflict_leaves_the_checkout_as_it_was(project: Project) -> None:
    ran(project, "--input", 'files={"old.txt": "theirs\\n"}')
    (project.folder / "old.txt").write_text("ours\n")
    git(project.folder, "commit", "-qam", "two")
    said = project.refused("merge", "r-1")
    assert "conflicts in old.txt" in said and "git merge backedge/r-1" in said
    assert status(project) == "" and (project.folder / "old.txt").read_text() == "ours\n"
    # By hand, as the message says; then the worktree goes.
    subprocess.run(["git", "merge", "-q", "backedge/r-1", "-X", "theirs"], cwd=project.folder, check=True)
    merged = project.backedge("merge", "r-1")
    assert merged.code == 0, merged
    assert (project.folder / "old.txt").read_text() == "theirs\n" and is_gone(project)


def test_a_run_that_did_not_end_well_is_discarded_and_kept_as_a_patch(project: Project) -> None:
    said = ran(project, "--input", 'files={"bad": "", "made.txt": "1\\n"}', code=3)
    assert "backedge decide" in said
    assert "waits for a person" in project.refused("merge", "r-1")
    assert "backedge cancel r-1" in project.refused("discard", "r-1", "--yes")
    project.backedge("cancel", "r-1")
    assert "ended as cancelled" in project.refused("merge", "r-1")
    assert "2 changed files that are not merged (bad, made.txt)" in project.refused("discard", "r-1")
    said_again = project.backedge("discard", "r-1", "--yes", "--json").json
    assert is_gone(project) and status(project) == ""
    git(project.folder, "apply", said_again["patch"])
    assert (project.folder / "made.txt").read_text() == "1\n"


def test_a_decided_run_goes_on_in_its_worktree(project: Project) -> None:
    ran(project, "--input", 'files={"bad": ""}', "--input", 'gone=["old.txt"]', code=3)
    (question,) = project.backedge("inbox", "--json").json
    project.decide(question["id"], "accept", "--run", "r-1")
    resumed = project.backedge("resume", "r-1")
    assert resumed.code == 4 and "next: backedge merge r-1" in resumed.out, resumed
    merged = project.backedge("merge", "r-1")
    assert merged.code == 0 and "(accepted)" in merged.out, merged
    assert not (project.folder / "old.txt").exists()


def test_repositories_that_cannot_have_a_worktree_are_refused(project: Project, tmp_path: Path) -> None:
    (project.folder / "check.sh").write_text("true\n")
    said = project.refused("run", "--worktree")
    assert "does not have check.sh as it is now: commit it first" in said
    git(project.folder, "commit", "-qam", "two")
    git(
        project.folder, "update-index", "--add", "--cacheinfo", f"160000,{git(project.folder, 'rev-parse', 'HEAD')},lib"
    )
    assert "submodules (lib)" in project.refused("run", "--worktree")
    git(project.folder, "reset", "-q")
    for folder, why in ((tmp_path / "none", "is in none"), (tmp_path / "empty", "has none: commit")):
        folder.mkdir()
        if folder.name == "empty":
            git(folder, "init", "-q")
        (folder / "backedge.yaml").write_text((project.folder / "backedge.yaml").read_text())
        assert why in project.refused("run", "--worktree", cwd=folder)
    git(project.folder, "checkout", "-q", "--detach")
    ran(project)
    assert "HEAD is detached" in project.refused("merge", "r-1")
    assert "already exists" in project.refused("run", "--worktree", "--run", "r-1")
    assert tree(project).exists()
    assert project.backedge("worktrees", "remove", "r-1", "--yes").code == 0
    assert is_gone(project)
    assert "no worktrees" in project.backedge("worktrees").out


def test_a_run_that_never_began_leaves_no_worktree(project: Project) -> None:
    project.write({"steps": {**STEPS, "test": {**STEPS["test"], "run": ["./missing"]}}})
    git(project.folder, "commit", "-qam", "two")
    assert "cannot run" in project.refused("run", "--worktree", "--run", "r-1")
    assert is_gone(project)


def test_a_running_run_is_neither_merged_nor_discarded(project: Project) -> None:
    going = project.started("run", "--worktree", "--run", "r-1", "--input", f"shell={WAITS}")
    until((tree(project) / "new").exists)
    for command in (("merge", "r-1"), ("discard", "r-1", "--yes"), ("worktrees", "remove", "r-1", "--yes")):
        assert "backedge cancel r-1" in project.refused(*command)
    (project.folder / "go").touch()
    assert finished(going).code == 0


def test_an_agent_cannot_merge_its_own_run(project: Project) -> None:
    command = str(Path(sys.executable).parent / "backedge")
    calls = [f"cd {project.folder} && {command} {words} 2>>/dev/stderr" for words in ("merge r-1", "discard r-1 --yes")]
    shell = str([f"({each}) 2>&1 | tee -a said.txt >&2" for each in calls]).replace("'", '"')
    ran(project, "--input", f"shell={shell}")
    assert (tree(project) / "said.txt").read_text().count("decisions are for people") == 2


def test_tests_in_a_worktree_import_its_code_and_not_that_of_the_checkout(project: Project) -> None:
    """The checkout is installed in its own environment, as `pip install -e .` does."""
    (project.folder / "src").mkdir()
    (project.folder / "src" / "mine.py").write_text("value = 1\n")
    (project.folder / "check.sh").write_text(".venv/bin/python -c 'import mine; assert mine.value == 2'\n")
    git(project.folder, "add", ".")
    git(project.folder, "commit", "-qm", "two")
    venv.create(project.folder / ".venv", with_pip=False)
    (packages,) = (project.folder / ".venv").glob("lib/python3*/site-packages")
    (packages / "__editable__.mine.pth").write_text(f"{project.folder / 'src'}\n")
    ran(project, "--input", 'files={"src/mine.py": "value = 2\\n"}')
    assert project.backedge("merge", "r-1").code == 0
    assert git(project.folder, "show", "--format=", "--name-only", "HEAD") == "src/mine.py"


def test_kill_9_and_hand_edits_in_between_lose_nothing(project: Project) -> None:
    """The run is killed while its agent works, both folders are edited by hand, it continues, and is merged by hand."""
    going = project.started("run", "--worktree", "--run", "r-1", "--input", f"shell={WAITS}")
    until(lambda: (tree(project) / "new" / "made.py").exists())
    going.kill()
    going.communicate(timeout=60)
    (project.folder / "old.txt").write_text("mine\n")  # in the checkout
    (tree(project) / "notes.txt").write_text("by hand\n")  # in the worktree, while nobody watches
    assert "backedge resume r-1" in project.refused("merge", "r-1")
    (project.folder / "go").touch()  # the agent has survived, and now ends
    resumed = project.backedge("resume", "r-1")
    assert resumed.code == 0, resumed
    assert (project.folder / "old.txt").read_text() == "mine\n"
    assert (tree(project) / "notes.txt").read_text() == "by hand\n"
    # What was judged is what is delivered, with the edit; my own change is in nobody's way.
    (project.folder / "go").unlink()
    merged = project.backedge("merge", "r-1")
    assert merged.code == 0, merged
    assert (project.folder / "notes.txt").read_text() == "by hand\n"
    assert (project.folder / "old.txt").read_text() == "mine\n" and status(project) == "M old.txt"
    assert is_gone(project)
