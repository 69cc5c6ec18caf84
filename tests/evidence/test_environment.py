"""What judges run with is compared with the start: packages, programs, and git's settings."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backedge.adapters.evidence.environment import changed, fingerprint
from backedge.adapters.evidence.folder_looks import FolderLooks
from backedge.adapters.evidence.git_settings import obeyed
from backedge.adapters.evidence.judge_files import files_outside
from tests.evidence.parts import git, repository, write

SITE = ".venv/lib/python3.11/site-packages"


def shop(folder: Path) -> Path:
    repository(folder)
    write(
        folder,
        {
            ".venv/pyvenv.cfg": "home = /usr/bin\n",
            ".venv/bin/pytest": "#!/usr/bin/python3\n",
            f"{SITE}/pytest/__init__.py": "version = 1\n",
            f"{SITE}/pytest-8.0.dist-info/entry_points.txt": "[console_scripts]\n",
            f"{SITE}/pytest-8.0.dist-info/METADATA": "8.0\n",
            f"{SITE}/shop.pth": "/shop\n",
            "node_modules/jest/index.js": "1\n",
            "bin/tool": "#!/bin/sh\n",
        },
    )
    (folder / ".venv" / "bin" / "pytest").chmod(0o755)
    (folder / "bin" / "tool").chmod(0o755)
    return folder


def parts_changed(folder: Path, act: Callable[[Path], object], programs: tuple[str, ...] = ("pytest",)) -> list[str]:
    env = {"PATH": f"{folder}/.venv/bin{os.pathsep}{folder.parent}/tools{os.pathsep}/usr/bin{os.pathsep}/bin"}
    time.sleep(0.12)  # what is younger is not remembered
    looks = FolderLooks()
    before = fingerprint(folder, programs, env, ["node_modules"], looks)
    act(folder)
    found = changed(before, fingerprint(folder, programs, env, ["node_modules"], looks))
    assert found == changed(before, fingerprint(folder, programs, env, ["node_modules"])), "as without a memory"
    return found


def same_size_and_time(path: Path, text: str) -> None:
    stamp = path.stat()
    path.write_text(text)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


@pytest.mark.parametrize(
    ("act", "part"),
    [
        (lambda at: same_size_and_time(at / SITE / "pytest/__init__.py", "version = 2\n"), ".venv"),
        (lambda at: write(at, {f"{SITE}/sitecustomize.py": ""}), ".venv"),
        (lambda at: write(at, {f"{SITE}/sitecustomize.pyc": ""}), ".venv"),
        (lambda at: write(at, {f"{SITE}/evil.pth": "import os"}), ".venv"),
        (lambda at: write(at, {f"{SITE}/x.dist-info.pth": "import os"}), ".venv"),
        (lambda at: write(at, {f"{SITE}/x-1.dist-info/entry_points.txt": "[pytest11]"}), ".venv"),
        (lambda at: write(at, {".venv/bin/pytest": "#!/bin/true\n"}), ".venv"),
        (lambda at: (at / ".venv/bin/pytest").chmod(0o644), ".venv"),
        (lambda at: (at / SITE / "shop.pth").unlink(), ".venv"),
        (lambda at: shutil.rmtree(at / ".venv"), ".venv"),
        (lambda at: write(at, {"node_modules/jest/index.js": "2\n"}), "node_modules"),
        (lambda at: write(at, {".git/hooks/post-checkout": "evil"}), ".git/hooks"),
        (lambda at: git(at, "config", "core.hooksPath", "x"), ".git/config"),
        (lambda at: git(at, "config", "filter.x.clean", "true"), ".git/config"),
        (lambda at: write(at, {".git/info/exclude": "*"}), ".git/info/exclude"),
        (lambda at: write(at, {".git/info/attributes": "* filter=x"}), ".git/info/attributes"),
        (lambda at: git(at, "replace", "HEAD:README.md", "HEAD:pyproject.toml"), ".git/refs/replace"),
    ],
)
def test_a_change_of_the_environment_is_seen(tmp_path: Path, act: Callable[[Path], object], part: str) -> None:
    assert part in parts_changed(shop(tmp_path / "shop"), act)


def version_bump(at: Path) -> None:
    """Install the same package again with another version, as `uv run` does."""
    (at / SITE / "pytest-8.0.dist-info").rename(at / SITE / "pytest-8.1.dist-info")
    write(at, {f"{SITE}/pytest-8.1.dist-info/METADATA": "8.1\n", f"{SITE}/shop.pth": "/shop\n"})
    (at / ".venv/bin/pytest").unlink()
    write(at, {".venv/bin/pytest": "#!/usr/bin/python3\n"})
    (at / ".venv/bin/pytest").chmod(0o755)


@pytest.mark.parametrize(
    "act",
    [
        lambda at: None,
        lambda at: write(at, {f"{SITE}/pytest/__pycache__/x.pyc": "", "node_modules/.cache/x": "", ".venv/.lock": ""}),
        lambda at: write(at, {"shop/new.py": "", "bin/tool": "#!/bin/bash\n"}),
        lambda at: git(at, "checkout", "-q", "-b", "story"),
        lambda at: git(at, "config", "user.email", "agent@example.com"),
        lambda at: git(at, "config", "branch.story.merge", "refs/heads/story"),
        lambda at: git(at, "remote", "add", "origin", "/x"),
        lambda at: git(at, "gc", "-q"),
        lambda at: write(at, {".git/info/refs": "x"}),
        version_bump,
    ],
)
def test_ordinary_work_changes_nothing(tmp_path: Path, act: Callable[[Path], object]) -> None:
    assert parts_changed(shop(tmp_path / "shop"), act) == []


def test_a_program_earlier_on_the_path_is_another_program(tmp_path: Path) -> None:
    folder = shop(tmp_path / "shop")
    write(tmp_path, {"tools/tool": "#!/bin/sh\n"})
    (tmp_path / "tools" / "tool").chmod(0o755)

    def act(folder: Path) -> None:
        write(folder, {".venv/bin/tool": "#!/bin/true\n"})
        (folder / ".venv/bin/tool").chmod(0o755)

    assert "program tool" in parts_changed(folder, act, ("tool",))


def test_a_program_that_is_replaced_is_another_program(tmp_path: Path) -> None:
    folder = shop(tmp_path / "shop")
    write(tmp_path, {"tools/tool": "#!/bin/sh\n"})
    (tmp_path / "tools" / "tool").chmod(0o755)
    assert parts_changed(folder, lambda _: same_size_and_time(tmp_path / "tools/tool", "#!/b1n/sh\n"), ("tool",)) == [
        "program tool"
    ]


def test_an_environment_outside_the_workspace_is_compared_too(tmp_path: Path) -> None:
    """Poetry keeps its environments in the home folder."""
    folder = shop(tmp_path / "shop")
    write(tmp_path, {"tools/tool": "#!/bin/sh\n", "lib/python3.11/site-packages/pytest.py": "1"})
    (tmp_path / "tools" / "tool").chmod(0o755)
    found = parts_changed(folder, lambda _: write(tmp_path, {"lib/python3.11/site-packages/pytest.py": "2"}), ("tool",))
    assert found == [f"packages {tmp_path}/lib/python3.11/site-packages"]


def test_hard_links_of_installers_do_not_count_but_their_contents_do(tmp_path: Path) -> None:
    folder = shop(tmp_path / "shop")
    installed = folder / SITE / "pytest" / "__init__.py"
    os.link(installed, tmp_path / "cache")
    assert parts_changed(folder, lambda _: os.link(installed, tmp_path / "another-project")) == []
    assert parts_changed(folder, lambda _: same_size_and_time(tmp_path / "cache", "version = 2\n")) == [".venv"]


def test_what_is_behind_a_link_out_of_the_workspace_is_compared(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop", {"a.py": ""})
    write(tmp_path, {"shared/test_a.py": "1"})
    (folder / "tests").symlink_to(tmp_path / "shared")
    before = fingerprint(folder, (), {}, ["tests"])
    write(tmp_path, {"shared/test_a.py": "2"})
    assert changed(before, fingerprint(folder, (), {}, ["tests"])) == ["tests"]


def test_the_standard_library_of_an_environment_is_compared(tmp_path: Path) -> None:
    folder = shop(tmp_path / "shop")
    write(tmp_path, {"base/bin/python3.11": "", "base/lib/python3.11/os.py": "", "base/lib/python3.11/test/a.py": ""})
    (folder / ".venv/bin/python").symlink_to(tmp_path / "base/bin/python3.11")
    library = tmp_path / "base/lib/python3.11"
    assert parts_changed(folder, lambda _: write(library, {"__pycache__/os.pyc": "", "test/a.py": "1"})) == []
    assert parts_changed(folder, lambda _: write(library, {"sitecustomize.py": "1"})) == [f"library {library}"]


def test_scripts_of_judges_outside_the_workspace_are_compared(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop", {"a.py": ""})
    write(tmp_path, {"ci/run.sh": "1", "looks": "", "more/test_a.py": "1"})
    argvs = [["sh", "../ci/run.sh"], ["sh", "-c", f"echo x >> {tmp_path}/looks; pytest {tmp_path}/more a.py"]]
    outside = files_outside(argvs, str(folder))
    assert outside == {f"{tmp_path}/ci/run.sh", f"{tmp_path}/more"}
    before = fingerprint(folder, (), {}, outside=outside)
    write(tmp_path, {"ci/run.sh": "exit 0", "more/test_a.py": "2", "looks": "x"})
    assert changed(before, fingerprint(folder, (), {}, outside=outside)) == ["../ci/run.sh", "../more"]


def test_only_plain_lines_of_harmless_sections_are_left_out() -> None:
    plain = b'[core]\n\tbare = false\n[branch "x"]\n\tremote = origin\n[user]\n\tname = Ada\n'
    assert obeyed(plain) == b"[core]\n\tbare = false"
    for trick in (
        b"[user][core]\n\thooksPath = x\n",
        b"[user]\n\tname = a\\\n\thooksPath = x\n",
        b"; x\x0c[user]\n\thooksPath = x\n",
        b'[user]\n\tname = "a\n[core]\n\thooksPath = x\n',
        b"\tx = a\\\n[user]\n\thooksPath = x\n",
    ):
        assert obeyed(b"[core]\n" + trick) != b"[core]", trick


def test_a_line_that_continues_another_begins_no_section() -> None:
    assert b"hooksPath" in obeyed(b"[core]\n\tx = a\\\n[user]\n\thooksPath = x\n")


def test_a_folder_without_git_has_no_settings_of_it(tmp_path: Path) -> None:
    assert fingerprint(tmp_path, (), {"PATH": "", "HOME": os.fspath(tmp_path)}) == {}


def test_a_folder_that_stands_still_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "site-packages"
    write(place, {"a/__init__.py": "1\n", "b.py": "2\n"})
    time.sleep(0.12)
    looks = FolderLooks()
    before = looks.at(str(place))

    def listed(path: str) -> None:
        raise AssertionError(f"{path} was listed again")

    with monkeypatch.context() as patched:
        patched.setattr("backedge.adapters.evidence.folder_looks.os.scandir", listed)
        assert looks.at(str(place)) == before
    write(place, {"a/new.py": ""})
    assert looks.at(str(place)) != before


def test_a_young_file_is_not_taken_for_unchanged(tmp_path: Path) -> None:
    place, looks = tmp_path / "site-packages", FolderLooks()
    write(place, {"a.py": "1\n"})
    before = looks.at(str(place))
    same_size_and_time(place / "a.py", "2\n")
    assert looks.at(str(place)) != before
