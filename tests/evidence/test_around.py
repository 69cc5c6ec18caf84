"""Settings around a workspace are part of what judges run with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backedge.adapters.evidence.around import places_around, settings_around
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


def test_packages_above_and_what_a_login_shell_reads_are_part_of_judges(tmp_path: Path) -> None:
    env = {"HOME": os.fspath(tmp_path / "home"), "PYTHONPATH": os.pathsep.join(["../lib", "app", ""])}
    write(tmp_path, {"shop/package.json": "{}", "home/.local/lib/python3.12/site-packages/a.pth": "", "other/a": ""})

    def places(folder: str, *argv: str) -> set[str]:
        found = places_around(os.fspath(tmp_path / folder), [argv], env)
        return {os.path.relpath(each, tmp_path) for each in found if each.startswith(os.fspath(tmp_path))}

    modules = {each for each in places("other", "pytest") if "lib" in each}
    assert os.path.normpath("lib/pytest.py") in modules and len(modules) > 20
    assert places("other", "pytest", "-l") == modules
    assert places("shop", "sh", "-c", "bash -l") == modules | {"node_modules"}
    assert "home/.bash_profile" in places("other", "env", "bash", "-lc", "make")
    assert "home/.profile" in places("other", "/bin/sh", "--login", "check.sh")
    assert "home/.local/lib/python3.12/site-packages" in places("other", "python", "-E", "-m", "pytest")
    assert "home/.local/lib/python3.12/site-packages" not in places("other", "python", "-I", "-m", "pytest")


def test_packages_of_the_main_checkout_are_not_those_of_a_story(tmp_path: Path) -> None:
    write(tmp_path, {".backedge/stories/a/package.json": "{}"})
    found = places_around(os.fspath(tmp_path / ".backedge/stories/a"), [], {"HOME": "/nowhere"})
    assert os.fspath(tmp_path / "node_modules") not in found
