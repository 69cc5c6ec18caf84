"""The start of a run is recorded once, and everything later is seen with what held then."""

from __future__ import annotations

from pathlib import Path

from backedge.adapters.evidence.environment import changed
from backedge.adapters.evidence.folder_looks import FolderLooks
from backedge.adapters.evidence.start import Judging, RunStart, begin
from backedge.adapters.evidence.store import RunStore
from backedge.adapters.evidence.tree import differing
from tests.evidence.parts import SHOP, repository, write

JUDGING = Judging(argvs=(("pytest", "-q"), ("python", "build/check.py")), named=("prompts/review.md",))
ENV = {"PATH": "/usr/bin:/bin"}


def started(folder: Path) -> tuple[RunStart, RunStore]:
    store = RunStore(folder.parent / "state", folder / ".backedge" / "journal.db", "r-1")
    return begin(folder, folder / ".backedge", store, JUDGING, ENV, FolderLooks()), store


def test_protected_files_are_kept_with_their_contents(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop", {**SHOP, "prompts/review.md": "be strict", "build/check.py": "check"})
    start, store = started(folder)
    assert {name: store.get(each.digest).decode() for name, each in start.base.protected.items()} == {
        **{name: SHOP[name] for name in ("tests/test_cart.py", "pyproject.toml", ".gitignore")},
        "prompts/review.md": "be strict",
        "build/check.py": "check",
    }
    assert start.protected.kind("build/check.py") == "judge"


def test_after_a_crash_the_start_is_still_the_start(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    first, _ = started(folder)
    write(
        folder,
        {".gitignore": "*\n", "tests/test_cart.py": "weaker", "new.py": "", "json.py": "", ".git/info/exclude": "*\n"},
    )
    again, _ = started(folder)
    assert again.base == first.base
    assert differing(again.base.tree, again.tree()) == [".gitignore", "json.py", "new.py", "tests/test_cart.py"]
    assert again.protected.kind("json.py") == "config"
    now = again.environment(again.tree(), ENV)
    assert changed(again.base.environment, now) == [".git/info/exclude"]


def test_the_ignored_script_of_a_judge_counts(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    write(folder, {"build/check.py": "check", "build/other.py": ""})
    start, _ = started(folder)
    write(folder, {"build/check.py": "pass", "build/other.py": "changed"})
    assert differing(start.base.tree, start.tree()) == ["build/check.py"]


def test_a_new_package_folder_anywhere_is_another_environment(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    start, _ = started(folder)
    write(folder, {"tests/node_modules/vitest/index.js": "evil"})
    assert changed(start.base.environment, start.environment(start.tree(), ENV)) == ["tests/node_modules"]


def test_tests_behind_a_link_are_protected(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop", {"checks/cart.py": "assert 1", "shop/cart.py": ""})
    (folder / "tests").symlink_to("checks")
    start, _ = started(folder)
    assert "checks/cart.py" in start.base.protected
    assert "tests" in start.base.protected
    assert start.protected.kind("checks/new.py") == "test"
