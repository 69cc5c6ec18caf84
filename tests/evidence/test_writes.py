"""A step is held to its `writes`: changes elsewhere are named and undone, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backedge.adapters.agents.globs import Globs
from backedge.adapters.evidence import contents
from backedge.adapters.evidence.before import KeptContents
from backedge.adapters.evidence.names import path_of
from backedge.adapters.evidence.store import RunStore
from backedge.adapters.evidence.tree import Tree, Trees
from backedge.adapters.evidence.undoing import Undoing
from backedge.adapters.evidence.writes import Undone, outside, restore
from tests.evidence.parts import SHOP, eyes, git, repository, write

TEST = "tests/test_cart.py"


class Attempt:
    """One attempt of a step in a workspace, from before it to what was undone."""

    def __init__(self, folder: Path, globs: Sequence[str] = ("shop/**",)) -> None:
        self.folder, self.globs = folder, globs
        self.store = RunStore(folder.parent / "state", folder / ".backedge" / "journal.db", "r-1")
        self.path = folder.parent / "attempt"
        self.path.mkdir(exist_ok=True)
        self.look: Trees = eyes(folder)
        self.before = KeptContents(folder, self.store).before(self.look.now(), globs)

    def after(self) -> Tree:
        return self.look.now(self.before.tree.files)

    def undo(self) -> Undone:
        after = self.after()
        names = outside(self.before.tree, after, self.globs)
        return restore(self.folder, names, self.before, after, self.store, self.path)


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All files but git's and backedge's, with kind, permissions and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        mode = path.lstat().st_mode
        if name.split("/")[0] not in (".git", ".backedge") and not stat.S_ISDIR(mode):
            found[name] = mode, contents.content_at(str(path)) or b""
    return found


def remove(folder: Path) -> None:
    shutil.rmtree(folder / "tests")


def link(folder: Path) -> None:
    (folder / "tests").rename(folder / "shop" / "moved")
    (folder / "tests").symlink_to("shop/moved")


def link_to_a_folder_of_others(folder: Path) -> None:
    shutil.rmtree(folder / "tests")
    (folder / "tests").symlink_to(folder.parent / "victim")


def folder_for_a_file(folder: Path) -> None:
    (folder / "README.md").unlink()
    write(folder, {"README.md/deep/new.py": "", "README.md/x.log": "ignored, and not ours to delete"})


def permissions(folder: Path) -> None:
    (folder / TEST).chmod(0o777)
    (folder / "README.md").chmod(0o100)


def pipe(folder: Path) -> None:
    (folder / TEST).unlink()
    os.mkfifo(folder / TEST)


def hard_link(folder: Path) -> None:
    (folder / TEST).unlink()
    os.link(folder.parent / "victim" / TEST.rpartition("/")[2], folder / TEST)


ACTS: list[Callable[[Path], object]] = [
    lambda at: write(at, {TEST: "weaker"}),
    lambda at: write(at, {"new/deep/file.py": "", "tests/conftest.py": "evil"}),
    lambda at: (at / "README.md").rename(at / "shop" / "README.md"),
    lambda at: write(at, {"data.bin": b"\0" * 100, ".gitignore": ""}),
    *(remove, link, link_to_a_folder_of_others, folder_for_a_file, permissions, pipe, hard_link),
]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("followed", [True, False], ids=["in git", "not in git"])
def test_changes_outside_are_undone_exactly(tmp_path: Path, act: Callable[[Path], object], followed: bool) -> None:
    folder = tmp_path / "shop"
    if followed:
        repository(folder)
    else:
        write(folder, SHOP)
    (folder / "README.md").chmod(0o640)
    (folder / "current").symlink_to("shop")
    write(tmp_path, {"victim/test_cart.py": "of others", "victim/keep": "of others"})
    attempt = Attempt(folder)
    before = everything(folder)
    act(folder)
    write(folder, {"shop/cart.py": "allowed", "x.log": "ignored"})
    undone = attempt.undo()
    assert undone.left == ()
    assert outside(attempt.before.tree, attempt.after(), attempt.globs) == []
    now = everything(folder)
    assert {name: now.get(name) for name in before if not name.startswith("shop/")} == {
        name: found for name, found in before.items() if not name.startswith("shop/")
    }
    assert (folder / "shop" / "cart.py").read_text() == "allowed"
    assert (folder / "x.log").read_text() == "ignored"
    assert everything(tmp_path / "victim") == {
        "test_cart.py": (0o100644, b"of others"),
        "keep": (0o100644, b"of others"),
    }
    assert not list(folder.rglob(".backedge-undo*"))


def test_the_patch_has_what_was_undone(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    attempt = Attempt(folder)
    write(folder, {TEST: "weaker\n", "new\nline.bin": b"\0\xff"})
    (folder / "README.md").unlink()
    (folder / "link").symlink_to("README.md")
    changed = everything(folder)
    undone = attempt.undo()
    assert undone.patch == attempt.path / "undone.diff"
    assert undone.aside is None
    git(folder, "apply", "--whitespace=nowarn", "-", given=undone.patch.read_bytes())
    assert everything(folder) == changed


def test_what_other_running_steps_write_does_not_count(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    look = eyes(folder)
    before = look.now()
    write(folder, {"docs/a.md": "", "site/b.md": "", "shop/c.py": "", "d.py": ""})
    after = look.now(before.files)
    assert outside(before, after, ["shop/**"], [["docs/**"], ["site"]]) == ["d.py"]
    assert outside(before, after, []) == ["d.py", "docs/a.md", "shop/c.py", "site/b.md"]


def test_an_index_that_lies_and_replaced_objects_do_not_change_what_is_restored(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    attempt = Attempt(folder)
    assert TEST in attempt.before.blobs
    write(folder, {"evil": "evil"})
    evil = git(folder, "hash-object", "-w", "evil").decode().strip()
    git(folder, "replace", attempt.before.blobs[TEST], evil)
    git(folder, "update-index", "--cacheinfo", f"100644,{evil},{TEST}")
    write(folder, {TEST: "evil"})
    assert attempt.undo().left == ()
    assert (folder / TEST).read_text() == SHOP[TEST]


def test_a_forged_object_of_git_is_not_restored(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    attempt = Attempt(folder)
    write(folder, {"evil": "evil", TEST: "weaker"})
    evil, wanted = git(folder, "hash-object", "-w", "evil").decode().strip(), attempt.before.blobs[TEST]
    objects = folder / ".git" / "objects"
    (objects / wanted[:2] / wanted[2:]).unlink()
    shutil.copyfile(objects / evil[:2] / evil[2:], objects / wanted[:2] / wanted[2:])
    assert attempt.undo().left == (TEST,)
    assert (folder / TEST).read_text() == "weaker"


def test_what_is_in_the_way_is_moved_aside(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    attempt = Attempt(folder, ["t*"])
    shutil.rmtree(folder / "tests")
    write(folder, {"tests": "allowed by the globs, and in the way"})
    undone = attempt.undo()
    assert (folder / TEST).read_text() == SHOP[TEST]
    assert undone.aside is not None
    assert [path.read_text() for path in undone.aside.iterdir()] == ["allowed by the globs, and in the way"]


def test_content_that_git_converts_is_restored_as_it_was(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop", {**SHOP, ".gitattributes": "*.md text\n", "README.md": "line\r\n"})
    attempt = Attempt(folder)
    assert "README.md" in attempt.before.kept
    write(folder, {"README.md": "other\n"})
    attempt.undo()
    assert (folder / "README.md").read_bytes() == b"line\r\n"


def test_a_file_whose_old_content_is_lost_is_left_and_named(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    attempt = Attempt(folder)
    shutil.rmtree(folder / ".git" / "objects")
    write(folder, {TEST: "weaker", "new.py": ""})
    undone = attempt.undo()
    assert (undone.files, undone.left) == (("new.py",), (TEST,))
    assert (folder / TEST).read_text() == "weaker"


def test_large_files_are_moved_and_never_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "LARGEST", 10)
    folder = repository(tmp_path / "shop", {"small": "1"})
    write(folder, {"data/moved.bin": "moved" * 9, "data/changed.bin": "old" * 9})
    attempt = Attempt(folder)
    (folder / "data" / "moved.bin").rename(folder / "elsewhere.bin")
    write(folder, {"data/changed.bin": "new" * 9, "made.bin": "made" * 9})
    undone = attempt.undo()
    assert undone.left == ("data/changed.bin",)
    assert (folder / "data" / "moved.bin").read_text() == "moved" * 9
    assert (folder / "data" / "changed.bin").read_text() == "new" * 9
    assert not (folder / "made.bin").exists()
    assert undone.aside is not None
    assert sorted(path.read_text() for path in undone.aside.iterdir()) == ["made" * 9, "moved" * 9]


def test_after_a_crash_the_rest_is_undone_and_the_first_patch_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = repository(tmp_path / "shop")
    attempt = Attempt(folder)
    write(folder, {TEST: "weaker", "README.md": "weaker"})

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Undoing, "_create", killed)
        with pytest.raises(Killed):
            attempt.undo()
    assert not (folder / TEST).exists()
    undone = attempt.undo()
    assert undone.patch == attempt.path / "undone-2.diff"
    assert (folder / TEST).read_text() == SHOP[TEST]
    assert b"+weaker" in (attempt.path / "undone.diff").read_bytes()


def test_a_folder_that_was_closed_is_opened_again(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    (folder / "docs").mkdir()
    write(folder, {"docs/a.md": "1"})
    (folder / "docs").chmod(0o555)
    attempt = Attempt(folder)
    (folder / "docs").chmod(0o755)
    write(folder, {"docs/a.md": "2"})
    (folder / "docs").chmod(0o555)
    (folder / "tests").chmod(0)
    attempt.undo()
    assert (folder / "docs" / "a.md").read_text() == "1"
    assert stat.S_IMODE((folder / "docs").stat().st_mode) == 0o555
    assert (folder / TEST).read_text() == SHOP[TEST]
    (folder / "docs").chmod(0o755)


def test_a_file_is_read_once_for_all_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = Attempt(repository(tmp_path / "shop"))
    kept = KeptContents(attempt.folder, attempt.store)
    first = kept.before(attempt.before.tree, [])
    monkeypatch.setattr("backedge.adapters.evidence.before.content_at", lambda path: pytest.fail(path))
    assert kept.before(attempt.before.tree, []) == first


PATHS = ("a", "a/b", "a/b/c", "src/x.py", "src/y.py", "tests/t.py", "d/e/f", "odd\nname", "x.log")
GLOBS = (("src/**",), ("a",), ("tests/t.py", "d"), ("**",), ("*",), ())
STATES = st.sampled_from(["", "1\n", "2\n", "1\n2\n", "\0\x01"])
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["write", "delete", "link", "chmod", "move", "pipe", "empty"]),
        st.sampled_from(PATHS),
        STATES,
        st.sampled_from(PATHS),
    ),
    max_size=10,
)


def edit(folder: Path, act: str, path: str, text: str, other: str) -> None:
    """Do one thing that an agent could do. What the file system refuses does not happen."""
    whole = folder / path
    try:
        match act:
            case "write" if not whole.is_fifo():  # writing to a pipe would wait for a reader
                write(folder, {path: text})
            case "delete":
                shutil.rmtree(whole) if whole.is_dir() and not whole.is_symlink() else whole.unlink()
            case "link":
                whole.parent.mkdir(parents=True, exist_ok=True)
                whole.symlink_to(other)
            case "chmod":
                os.chmod(whole, 0o755 if text else 0o644, follow_symlinks=False)
            case "move":
                (folder / other).parent.mkdir(parents=True, exist_ok=True)
                whole.rename(folder / other)
            case "pipe":
                os.mkfifo(whole)
            case _:
                whole.mkdir(parents=True)
    except (OSError, NotImplementedError, shutil.Error):
        return


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(PATHS), STATES, max_size=6), EDITS, EDITS, st.sampled_from(GLOBS), st.booleans())
def test_outside_and_restore_give_back_the_earlier_tree(
    start: dict[str, str],
    prepared: list[tuple[str, str, str, str]],
    edits: list[tuple[str, str, str, str]],
    globs: tuple[str, ...],
    followed: bool,
) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "w"
        folder.mkdir()
        write(folder, {".gitignore": "*.log\n"})
        for path, text in start.items():
            edit(folder, "write", path, text, "")
        if followed:
            git(folder, "init", "-q")
            git(folder, "add", "-A")
        for each in prepared:
            edit(folder, *each)
        attempt = Attempt(folder, globs)
        before = everything(folder)
        for each in edits:
            edit(folder, *each)
        had = (folder / "x.log").is_file() and (folder / "x.log").read_bytes()
        undone = attempt.undo()
        matched = Globs(globs)
        now = everything(folder)
        watched = {path_of(name) for name in attempt.before.tree.files}
        for name in watched | {path_of(each) for each in attempt.after().files}:
            if not matched.match(name) and not any(name == path_of(each) for each in undone.left):
                assert now.get(name) == (before.get(name) if name in watched else None), name
        assert all(attempt.before.tree.files[name].startswith("s:") for name in undone.left), undone.left
        if not matched.match("x.log") and not (folder / "x.log").is_symlink():
            assert ((folder / "x.log").is_file() and (folder / "x.log").read_bytes()) == had
