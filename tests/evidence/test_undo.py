"""What undoing attempts means for the files as they are: which are restored, and which somebody has edited."""

from __future__ import annotations

from pathlib import Path

from backedge.adapters.evidence.store import ChangedFile, RunStore
from backedge.adapters.evidence.tree import Tree
from backedge.adapters.evidence.undo import UndoPlan, undo_plan


def changed(before: str | None, after: str | None, shared: bool = False) -> dict[str, ChangedFile]:
    return {"a": ChangedFile(before, after, shared=shared)}


def plan(now: str | None, *attempts: dict[str, ChangedFile]) -> UndoPlan:
    """The plan for one file, with the attempts from the last to the first."""
    return undo_plan(attempts, Tree({"a": now} if now is not None else {}))


def test_a_file_that_is_as_the_attempt_left_it_is_restored() -> None:
    found = plan("f:2", changed("f:1", "f:2"))
    assert (found.restore, found.edited, found.before["a"].before) == (["a"], [], "f:1")


def test_new_and_removed_files_are_restored_too() -> None:
    assert plan("f:2", changed(None, "f:2")).restore == ["a"]
    assert plan(None, changed("f:1", None)).restore == ["a"]


def test_a_file_that_is_as_it_was_needs_nothing() -> None:
    """As after a crash amid the restore."""
    found = plan("f:1", changed("f:1", "f:2"))
    assert (found.restore, found.edited) == ([], [])


def test_a_file_that_somebody_edited_since_is_named() -> None:
    found = plan("f:9", changed("f:1", "f:2"))
    assert (found.restore, found.edited) == ([], ["a"])
    assert plan(None, changed("f:1", "f:2")).edited == ["a"], "removing it is an edit"


def test_several_attempts_are_undone_together() -> None:
    found = plan("f:3", changed("f:2", "f:3"), changed("f:1", "f:2"))
    assert (found.restore, found.before["a"].before) == (["a"], "f:1")


def test_an_edit_between_two_attempts_is_named() -> None:
    assert plan("f:3", changed("f:9", "f:3"), changed("f:1", "f:2")).edited == ["a"]


def test_a_file_that_another_attempt_may_have_changed_is_named() -> None:
    assert plan("f:2", changed("f:1", "f:2", shared=True)).edited == ["a"]
    assert plan("f:1", changed("f:1", "f:2", shared=True)).edited == [], "it is as it was, whoever changed it"


def test_where_the_contents_are(tmp_path: Path) -> None:
    store = RunStore(tmp_path, "journal", "r-1")
    kept = f"f:{store.put(b'old')}"
    tree = Tree({"a": "f:2", "b": "f:3", "c": "f:4", "other": "f:5"})
    found = undo_plan(
        [
            {
                "a": ChangedFile(kept, "f:2", 0o100644),
                "b": ChangedFile("f:1", "f:3", blob="b10b"),
                "c": ChangedFile(None, "f:4"),
            }
        ],
        tree,
    ).kept(tree, store)
    assert found.tree.files == {"a": kept, "b": "f:1", "other": "f:5"}
    assert (found.kept, found.blobs, found.modes) == ({"a": kept[2:]}, {"b": "b10b"}, {"a": 0o100644})


def test_what_judges_remember_goes_back_and_forth(tmp_path: Path) -> None:
    store = RunStore(tmp_path, "journal", "r-1")
    store.save_memory("code", 1)
    first, second = store.tests("test"), store.tests("other")
    store.note_failing("test", "a.py", b"old")
    store.save_tests("test", type(first)(baseline=("one",)))
    store.save_tests("other", type(second)(baseline=("x",)))
    store.save_memory("code", 2)
    store.save_memory("code", 2)  # as after a crash
    store.save_tests("test", type(first)(baseline=("one", "two")))
    store.save_tests("other", type(second)(baseline=("x", "y")))
    store.forget_failing("test", "a.py")
    store.note_failing("test", "b.py", b"new")
    for _ in range(2):
        store.restore_memory("code", 2, ("test", "new"))
        assert store.tests("test").baseline == ("one",)
        assert list(store.failing("test")) == ["a.py"]
        assert store.tests("other").baseline == ("x", "y"), "other judges keep theirs"
    store.restore_memory("code", 9, ("test",))
    assert store.tests("test").baseline == ("one",), "nothing was kept before that attempt"
    store.restore_memory("code", 1, ("test",))
    assert store.tests("test").baseline == (), "before that attempt it had not judged yet"
