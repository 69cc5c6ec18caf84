"""The files of an artifact: which files count, when they count as changed, and where."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from backedge.adapters.agents.file_digests import FileDigests
from backedge.adapters.agents.globs import Globs
from backedge.adapters.agents.workspace import NO_FILES, Snapshot, Workspace
from backedge.core.model import Change
from tests.agents.parts import python, result_of, shell, told


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("ignored/\n*.log\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("".join(f"line {n}\n" for n in range(1, 21)))
    (tmp_path / "b.txt").write_text("b\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def space(folder: Path, writes: list[str] | None = None) -> Workspace:
    return Workspace(folder, folder / ".backedge", writes)


def shot(folder: Path, writes: list[str] | None = None, keep: bool = False) -> Snapshot:
    found = space(folder, writes).snapshot(keep)
    assert found is not None
    return found


def change(path: Path, how: str) -> None:
    match how:
        case "edit":
            (path / "src/a.py").write_text("other\n")
        case "add":
            (path / "new.txt").write_text("new\n")
        case "remove":
            (path / "b.txt").unlink()
        case "rename":
            (path / "b.txt").rename(path / "c.txt")
        case "make executable":
            (path / "b.txt").chmod(0o755)
        case "replace by a link":
            (path / "b.txt").unlink()
            (path / "b.txt").symlink_to("src/a.py")
        case "ignored":
            (path / "ignored").mkdir()
            (path / "ignored/x").write_text("x")
            (path / "y.log").write_text("x")
        case "our own records":
            (path / ".backedge").mkdir()
            (path / ".backedge/journal").write_text("x")
        case "touch":
            os.utime(path / "b.txt", (1, 1))
        case "stage":
            git(path, "add", "-A")
        case "commit":
            git(path, "commit", "-q", "--allow-empty", "-m", "x")
        case _:
            raise AssertionError(how)


@pytest.mark.parametrize("how", ["edit", "add", "remove", "rename", "make executable", "replace by a link"])
@pytest.mark.parametrize("writes", [None, ["**"]])
def test_what_changes_the_files_changes_the_digest(how: str, writes: list[str] | None, repository: Path) -> None:
    before = shot(repository, writes).digest
    change(repository, how)
    assert shot(repository, writes).digest != before


@pytest.mark.parametrize("how", ["ignored", "our own records", "touch", "stage", "commit"])
def test_what_does_not_change_the_tree_does_not_change_the_digest(how: str, repository: Path) -> None:
    before = shot(repository).digest
    change(repository, how)
    assert shot(repository).digest == before


def test_the_index_is_never_touched(repository: Path) -> None:
    os.utime(repository / "b.txt", (5, 5))  # git would refresh its index for that
    index = repository / ".git" / "index"
    before = index.read_bytes(), index.stat().st_mtime_ns
    shot(repository, keep=True)
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before


def test_a_folder_within_a_repository_has_its_own_digest(repository: Path) -> None:
    before = shot(repository / "src").digest
    (repository / "b.txt").write_text("other\n")
    assert shot(repository / "src").digest == before
    (repository / "src/a.py").write_text("other\n")
    assert shot(repository / "src").digest != before


def test_a_folder_that_its_repository_ignores_is_unknown_to_git(repository: Path) -> None:
    (repository / "ignored").mkdir()
    (repository / "ignored" / "x").write_text("x")
    assert space(repository / "ignored").snapshot() is None


def test_a_repository_within_the_repository_counts_with_its_files(repository: Path) -> None:
    (repository / "inner").mkdir()
    git(repository / "inner", "init", "-q")
    (repository / "inner/x.txt").write_text("x")
    before = shot(repository)
    assert "inner/x.txt" in before.files
    (repository / "inner/x.txt").write_text("y")
    assert shot(repository).digest != before.digest
    git(repository / "inner", "add", ".")
    git(repository / "inner", "commit", "-qm", "x")
    git(repository, "add", "inner")
    assert "inner/x.txt" in shot(repository).files, "also as a submodule"


def test_the_environment_of_a_hook_does_not_mislead(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shot(repository).digest
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert shot(repository).digest == before


def test_links_are_hashed_as_links_and_never_followed(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "secret").write_text("1")
    (inside / "folder").symlink_to(outside)
    (inside / "file").symlink_to(outside / "secret")
    before = shot(inside, ["**"])
    assert set(before.files) == {"folder", "file"}
    (outside / "secret").write_text("2")
    (outside / "more").write_text("3")
    assert shot(inside, ["**"]).digest == before.digest


def test_pipes_and_unreadable_names_do_no_harm(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with open(os.fsencode(tmp_path) + b"/odd\xff\nname", "w") as file:
        file.write("x")
    found = shot(tmp_path, ["**"], keep=True)
    assert list(found.files) == ["odd\\xff\nname"]


def test_the_name_of_a_file_adds_no_line_to_a_difference(tmp_path: Path) -> None:
    (tmp_path / "a\n+++ b").write_text("1\n")
    before = shot(tmp_path, ["**"], keep=True)
    (tmp_path / "a\n+++ b").write_text("2\n")
    told = space(tmp_path, ["**"]).difference(before, shot(tmp_path, ["**"], keep=True)).decode()
    assert told.splitlines() == ["--- a/a\\u{a}+++ b", "+++ b/a\\u{a}+++ b", "@@ -1 +1 @@", "-1", "+2"]


@pytest.mark.parametrize(
    ("pattern", "matches", "others"),
    [
        ("*.md", ["a.md"], ["docs/a.md", "a.mdx"]),
        ("**/*.py", ["a.py", "src/a.py", "src/deep/er/a.py"], ["a.pyc"]),
        ("src/**", ["src/a", "src/b/c"], ["srcs/a", "a"]),
        ("src", ["src/a", "src/b/c"], ["srcs/a"]),
        ("src/", ["src/a"], ["a"]),
        ("src/*/x.?", ["src/a/x.c"], ["src/x.c", "src/a/b/x.c", "src/a/x.cc"]),
        ("[ab].txt", ["a.txt", "b.txt"], ["c.txt"]),
        ("[!ab].txt", ["c.txt"], ["a.txt"]),
        (".", ["anything", "any/where"], []),
        ("a+b(c).txt", ["a+b(c).txt"], ["aab(c).txt"]),
    ],
)
def test_globs_match_as_people_expect(pattern: str, matches: list[str], others: list[str], tmp_path: Path) -> None:
    for name in (*matches, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert sorted(Globs([pattern]).files(tmp_path, lambda name: False)) == sorted(matches)


def test_changes_name_files_and_lines(repository: Path) -> None:
    (repository / "dirty.txt").write_text("1\n2\n3\n")
    (repository / "image").write_bytes(b"\0\1")
    before = shot(repository, keep=True)
    assert "src/a.py" not in before.texts, "git has it"
    text = (repository / "src/a.py").read_text()
    (repository / "src/a.py").write_text(text.replace("line 3\n", "line three\n").replace("line 10\n", "ten\n10\n"))
    (repository / "dirty.txt").write_text("1\n3\n")
    (repository / "image").write_bytes(b"\0\2")
    (repository / "new.txt").write_text("n\n")
    (repository / "b.txt").unlink()
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "an agent may commit")
    assert space(repository).changes(before, shot(repository)) == (
        Change("b.txt"),
        Change("dirty.txt", ((2, 2),)),
        Change("image"),
        Change("new.txt"),
        Change("src/a.py", ((3, 3), (10, 11))),
    )
    told = space(repository).difference(before, shot(repository)).decode().splitlines()
    assert [line for line in told if line.startswith("+++")] == [
        "+++ /dev/null",
        "+++ b/dirty.txt",
        "+++ b/new.txt",
        "+++ b/src/a.py",
    ]
    assert told[told.index("--- a/dirty.txt") + 2 :][:4] == ["@@ -1,3 +1,2 @@", " 1", "-2", " 3"]
    assert "--- /dev/null" in told and "-line 3" in told and "+line three" in told


def test_large_files_and_many_files_are_named_without_lines(tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_text("x\n" * 600_000)
    for number in range(250):
        (tmp_path / f"{number:03}.txt").write_text("a\nb\n")
    before = shot(tmp_path, ["*"], keep=True)
    (tmp_path / "large.txt").write_text("y\n" * 600_000)
    for number in range(250):
        (tmp_path / f"{number:03}.txt").write_text("a\nc\n")
    found = space(tmp_path, ["*"]).changes(before, shot(tmp_path, ["*"]))
    assert len(found) == 251
    assert sum(1 for each in found if each.lines == ((2, 2),)) == 200
    assert found[-1] == Change("large.txt")
    told = space(tmp_path, ["*"]).difference(before, shot(tmp_path, ["*"]))
    assert told.count(b"+++ b/") == 50 and b"large.txt" not in told


def test_a_file_that_changes_within_one_tick_of_the_clock_is_noticed(tmp_path: Path) -> None:
    digests = FileDigests()
    file = tmp_path / "x"
    for number in range(300):
        file.write_text(str(number % 10))
        assert digests.of(str(file)) == FileDigests().of(str(file))


def test_an_attempt_reports_digest_and_changes_of_what_it_wrote(repository: Path) -> None:
    edit = shell("sed -i 's/line 5$/five/' src/a.py; echo {}")
    first = result_of(repository, edit)
    assert first.files == (Change("src/a.py", ((5, 5),)),)
    second = result_of(repository, edit, told(2))
    assert second.files == ()
    assert second.workspace == first.workspace, "the same files are the same artifact"


def test_with_writes_only_those_files_count(repository: Path) -> None:
    first = result_of(repository, shell("echo 1 > other; echo {}"), writes=["src/**"])
    second = result_of(repository, shell("echo 2 > other; echo {}"), told(2), writes=["src/**"])
    assert first.workspace == second.workspace
    assert second.files == ()
    third = result_of(repository, shell("echo 3 > src/new; echo {}"), told(3), writes=["src/**"])
    assert third.workspace != first.workspace
    assert third.files == (Change("src/new"),)


def test_a_step_that_writes_nothing_has_the_digest_of_no_files(repository: Path) -> None:
    result = result_of(repository, shell("echo 1 > other; echo {}"), writes=[])
    assert (result.workspace, result.files) == (NO_FILES, ())
    assert result_of(repository, shell("echo {}"), told(2), writes=["nothing/**"]).workspace == NO_FILES


def test_without_git_or_writes_every_attempt_counts_as_changed(tmp_path: Path) -> None:
    results = [result_of(tmp_path, shell("echo {}"), told(number)) for number in (1, 2)]
    assert results[0].workspace != results[1].workspace
    assert None not in (results[0].workspace, results[1].workspace)
    assert results[0].files == ()


def test_a_judge_has_no_files(repository: Path) -> None:
    result = result_of(repository, shell('echo 1 > other; echo \'{"verdict": "pass"}\''), judges=True)
    assert (result.workspace, result.files) == (None, ())


def test_files_that_match_the_index_are_not_read_again(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.utime(repository / "b.txt", (5, 5))
    time.sleep(0.15)  # so that the files are old enough to be remembered
    git(repository, "update-index", "--refresh")
    watched = space(repository)
    first = watched.snapshot()
    read: list[str] = []
    monkeypatch.setattr(FileDigests, "of", lambda _, path: read.append(path))
    again = watched.snapshot()
    assert first is not None and again is not None
    assert (again.digest, read) == (first.digest, [])


@pytest.mark.parametrize("how", ["edit", "add", "remove", "rename", "make executable", "replace by a link"])
def test_a_change_is_noticed_by_a_warm_cache(how: str, repository: Path) -> None:
    time.sleep(0.15)
    watched = space(repository)
    first = watched.snapshot()
    change(repository, how)
    changed, fresh = watched.snapshot(), shot(repository)
    assert first is not None and changed is not None
    assert changed.files == fresh.files != first.files
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "an agent may commit")
    staged = watched.snapshot()
    assert staged is not None
    assert (staged.files, staged.blobs) == (fresh.files, shot(repository).blobs)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_files_that_git_was_told_to_skip_are_read(flag: str, repository: Path) -> None:
    git(repository, "update-index", flag, "b.txt")
    watched = space(repository)
    first = watched.snapshot()
    (repository / "b.txt").write_text("other\n")
    second = watched.snapshot()
    assert first is not None and second is not None
    assert second.digest != first.digest


def test_settings_that_hide_changes_from_git_do_not_hide_them_here(repository: Path) -> None:
    git(repository, "config", "core.fileMode", "false")
    before = shot(repository).digest
    change(repository, "make executable")
    assert shot(repository).digest != before


def test_a_worktree_has_an_index_of_its_own(repository: Path) -> None:
    git(repository, "worktree", "add", "-q", str(repository / "ignored" / "tree"))
    watched = space(repository / "ignored" / "tree")
    first = watched.snapshot()
    assert first is not None and first.digest == shot(repository).digest
    (repository / "ignored" / "tree" / "new.txt").write_text("new\n")
    git(repository / "ignored" / "tree", "add", ".")
    second = watched.snapshot()
    assert second is not None and "new.txt" in second.files


def test_without_a_repository_no_process_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("git was asked")

    monkeypatch.setattr(subprocess, "run", refuse)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert space(tmp_path).snapshot() is None


def test_ten_thousand_files_are_fast(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for folder in range(100):
        (tmp_path / f"d{folder}").mkdir()
        for number in range(100):
            (tmp_path / f"d{folder}" / f"{number}.txt").write_text("the same for all, so that git stores it once\n" * 9)
    git(tmp_path, "add", ".")
    watched = space(tmp_path)
    time.sleep(0.12)  # so that the newest file is old enough to be remembered
    for round in ("first", "second"):
        began = time.perf_counter()
        found = watched.snapshot(keep=True)
        assert found is not None
        assert len(found.files) == 10_000
        print(f"10,000 files, {round} time: {time.perf_counter() - began:.3f} s")
    began = time.perf_counter()
    result_of(tmp_path, python("print('{}')"))
    print(f"a whole attempt: {time.perf_counter() - began:.3f} s")
