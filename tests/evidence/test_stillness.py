"""Looking again at a workspace that stands still is fast, and never wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backedge.adapters.evidence.stillness import folders_of
from backedge.adapters.evidence.tree import Trees
from tests.evidence.parts import SHOP, eyes, repository, write


def settle() -> None:
    """Let enough time pass for every later change to get another time stamp."""
    time.sleep(0.12)


def fresh(folder: Path) -> dict[str, str]:
    return eyes(folder).now().files


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda _: None,
    "a file is edited in its place": lambda top: write(top, {"shop/cart.py": "x = 1\n"}),
    "with the same size and times": lambda top: same_size(top / "README.md"),
    "a file is replaced": lambda top: replaced(top / "shop/cart.py"),
    "a file is added": lambda top: write(top, {"shop/new.py": ""}),
    "in a new folder": lambda top: write(top, {"a/b/c.py": ""}),
    "in a folder that was empty": lambda top: write(top, {"empty/plugin.py": ""}),
    "a file is removed": lambda top: (top / "README.md").unlink(),
    "a file becomes a link": lambda top: linked(top / "README.md"),
    "a file becomes executable": lambda top: (top / "README.md").chmod(0o755),
    "a file becomes a folder": lambda top: opened_up(top / "README.md"),
    "an ignored file": lambda top: write(top, {"build/x.o": ""}),
    "an ignored conftest": lambda top: write(top, {".git/info/exclude": "conftest.py\n", "conftest.py": ""}),
    "a cache": lambda top: write(top, {"shop/__pycache__/cart.pyc": ""}),
    "an environment": lambda top: write(top, {".venv/pyvenv.cfg": "", ".venv/x.py": ""}),
}


def same_size(path: Path) -> None:
    found, text = path.stat(), path.read_bytes()
    path.write_bytes(text[::-1])
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def replaced(path: Path) -> None:
    path.with_name("draft").write_text("y = 2\n")
    path.with_name("draft").replace(path)


def opened_up(path: Path) -> None:
    path.unlink()
    path.mkdir()


def linked(path: Path) -> None:
    path.unlink()
    path.symlink_to("shop/cart.py")


@pytest.mark.parametrize("change", CHANGES)
def test_a_second_look_sees_what_a_first_look_would_see(tmp_path: Path, change: str) -> None:
    top = repository(tmp_path / "shop")
    (top / "empty").mkdir()
    settle()
    trees = eyes(top)
    before = trees.now()
    assert trees.now() is before, "it did not have to look at everything again"
    CHANGES[change](top)
    assert trees.now().files == fresh(top)
    settle()
    assert trees.now().files == trees.now().files == fresh(top)


def test_young_folders_are_not_trusted(tmp_path: Path) -> None:
    changed = tmp_path.stat().st_mtime_ns
    assert folders_of(str(tmp_path), lambda _: False, (), changed + 10**9) == {
        str(tmp_path): (changed, tmp_path.stat().st_ctime_ns, tmp_path.stat().st_ino)
    }
    assert folders_of(str(tmp_path), lambda _: False, (), changed + 50_000_000) is None


def test_without_git_it_is_the_same(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    (tmp_path / "empty").mkdir()
    settle()
    trees = Trees(tmp_path, tmp_path / ".backedge")
    before = trees.now()
    assert trees.now() is before
    write(tmp_path, {"empty/x.py": ""})
    assert "empty/x.py" in trees.now().files


@settings(max_examples=15, deadline=None)
@given(names=st.lists(st.sampled_from(sorted(set(CHANGES) - {"nothing"})), max_size=4))
def test_many_changes_in_a_row(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    top = repository(tmp_path_factory.mktemp("shop"))
    (top / "empty").mkdir()
    settle()
    trees = eyes(top)
    trees.now()
    for name in names:
        try:
            CHANGES[name](top)
        except OSError:
            continue  # an earlier change took away what this one changes
        assert trees.now().files == fresh(top), name
