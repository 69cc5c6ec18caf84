"""Settings around a workspace are part of what judges run with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backedge.adapters.evidence.around import settings_around
from tests.evidence.parts import write


def changed_names(tmp_path: Path, files: dict[str, str], workspace: str = "projects/shop") -> set[str]:
    (tmp_path / workspace).mkdir(parents=True, exist_ok=True)
    env = {"HOME": os.fspath(tmp_path / "home")}
    folder = os.fspath(tmp_path / workspace)
    before = settings_around(folder, env)
    write(tmp_path, files)
    return {name for name, _ in before.items() ^ settings_around(folder, env).items()}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("projects/pytest.ini", "../pytest.ini"),
        ("conftest.py", "../../conftest.py"),
        ("home/.npmrc", "~/.npmrc"),
        ("home/.config/ruff/ruff.toml", "~/.config/ruff/ruff.toml"),
        ("home/.config/git/ignore", "~/.config/git/ignore"),
        ("home/.config/go/env", "~/.config/go/env"),
        ("home/.yarnrc.yml", "~/.yarnrc.yml"),
    ],
)
def test_a_new_file_around_the_workspace_shows(tmp_path: Path, file: str, name: str) -> None:
    assert changed_names(tmp_path, {file: "x = 1\n"}) == {name}


def test_other_files_do_not_count(tmp_path: Path) -> None:
    assert (
        changed_names(tmp_path, {"projects/notes.md": "x\n", "projects/shop/pytest.ini": "x\n", "home/x": "y\n"})
        == set()
    )


def test_who_works_here_is_no_setting_but_a_filter_is(tmp_path: Path) -> None:
    assert changed_names(tmp_path, {"home/.gitconfig": "[user]\n\tname = Ann\n"}) == set()
    assert changed_names(tmp_path, {"home/.gitconfig": "[core]\n\thooksPath = x\n"}) == {"~/.gitconfig"}


def test_the_main_checkout_above_a_story_counts_only_where_the_story_has_no_such_file(tmp_path: Path) -> None:
    inside = "projects/.backedge/stories/one"
    write(tmp_path, {f"{inside}/pytest.ini": "y\n"})
    assert changed_names(tmp_path, {"projects/pytest.ini": "x\n"}, inside) == set()
    assert changed_names(tmp_path, {"projects/conftest.py": "x\n"}, inside) == {"../../../conftest.py"}
    assert changed_names(tmp_path, {"pytest.ini": "x\n"}, inside) == {"../../../../pytest.ini"}
