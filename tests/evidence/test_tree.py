"""Whatever an agent does to hide a change, the tree shows it; what honest work leaves behind does not count."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backedge.adapters.agents.file_digests import FileDigests
from backedge.adapters.evidence.private_git import GitFailed
from backedge.adapters.evidence.tree import Tree, Trees, differing, links_in, links_out, links_to_uncounted
from tests.evidence.parts import SHOP, eyes, git, repository, write

WEAKER = "def test_total():\n    pass  # True\n"
TEST = "tests/test_cart.py"


def weaken(folder: Path) -> None:
    """Write a test of the same length, with the same time stamps as far as they can be set."""
    path = folder / TEST
    stamp = path.stat()
    path.write_text(WEAKER.ljust(len(SHOP[TEST]), "#")[: len(SHOP[TEST])])
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def changes(folder: Path, act: Callable[[Path], object]) -> list[str]:
    """What the tree shows of an act."""
    look = eyes(folder)
    before = look.now()
    act(folder)
    return differing(before, look.now(before.files))


def test_the_tree_of_a_repository_is_its_files(tmp_path: Path) -> None:
    tree = eyes(repository(tmp_path)).now()
    assert sorted(tree.files) == sorted(SHOP)
    assert all(found.startswith("f:") for found in tree.files.values())


def test_nothing_differs_if_nothing_was_done(tmp_path: Path) -> None:
    look = eyes(repository(tmp_path))
    first = look.now()
    assert first == look.now(first.files)
    assert first.digest == eyes(tmp_path).now().digest


@pytest.mark.parametrize("words", [("update-index", "--assume-unchanged"), ("update-index", "--skip-worktree")])
def test_an_index_that_is_told_not_to_look_hides_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    def act(folder: Path) -> None:
        git(folder, *words, TEST)
        weaken(folder)

    assert changes(repository(tmp_path), act) == [TEST]


def test_a_file_that_left_the_index_and_is_ignored_now_still_counts(tmp_path: Path) -> None:
    def act(folder: Path) -> None:
        git(folder, "rm", "-q", "--cached", TEST)
        write(folder, {".gitignore": SHOP[".gitignore"] + "tests/\n"})
        weaken(folder)

    assert changes(repository(tmp_path), act) == [".gitignore", TEST]


@pytest.mark.parametrize("place", [".gitignore", "shop/.gitignore", ".git/info/exclude"])
def test_a_new_ignore_rule_hides_no_new_file(tmp_path: Path, place: str) -> None:
    def act(folder: Path) -> None:
        write(folder, {place: "*\n", "shop/evil.py": "", "shop/conftest.py": ""})

    found = changes(repository(tmp_path), act)
    assert {"shop/evil.py", "shop/conftest.py"} <= set(found)


def test_a_setting_that_names_other_ignore_rules_hides_no_new_file(tmp_path: Path) -> None:
    def act(folder: Path) -> None:
        write(folder, {"shop/evil.py": "", ".git/rules": "*\n"})
        git(folder, "config", "core.excludesFile", str(folder / ".git" / "rules"))
        git(folder, "config", "core.worktree", "/nowhere")
        git(folder, "config", "core.fsmonitor", "touch /tmp/never")

    assert changes(repository(tmp_path), act) == ["shop/evil.py"]


def test_a_filter_that_shows_git_the_old_content_is_not_asked_and_not_run(tmp_path: Path) -> None:
    ran = tmp_path / "ran"

    def act(folder: Path) -> None:
        git(folder, "config", "filter.liar.clean", f"sh -c 'touch {ran}; git show :{TEST}'")
        write(folder, {".git/info/attributes": f"{TEST} filter=liar\n"})
        weaken(folder)

    assert changes(repository(tmp_path / "shop"), act) == [TEST]
    assert not ran.exists()


def test_a_repository_within_the_repository_hides_nothing(tmp_path: Path) -> None:
    def act(folder: Path) -> None:
        git(folder, "init", "-q", "tests")
        write(folder, {"tests/helper.py": "", "tests/.git/info/exclude": "*\n", "tests/out.log": "ignored before"})
        weaken(folder)

    assert changes(repository(tmp_path), act) == ["tests/helper.py", TEST]


def test_a_repository_that_is_gone_hides_nothing(tmp_path: Path) -> None:
    def act(folder: Path) -> None:
        (folder / ".git").rename(tmp_path / "elsewhere")
        write(folder, {"new.py": "", "build/x": "ignored"})
        weaken(folder)

    assert changes(repository(tmp_path / "shop"), act) == ["new.py", TEST]


def test_files_that_were_ignored_do_not_become_new_when_the_rule_goes_away(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    write(folder, {"build/data.bin": "precious"})
    assert changes(folder, lambda folder: write(folder, {".gitignore": ""})) == [".gitignore"]


def test_a_folder_that_becomes_a_link_has_lost_its_files(tmp_path: Path) -> None:
    def act(folder: Path) -> None:
        (folder / "tests").rename(tmp_path / "tests")
        (folder / "tests").symlink_to(tmp_path / "tests")

    assert changes(repository(tmp_path / "shop"), act) == ["tests", TEST]


def test_a_file_that_becomes_a_link_a_pipe_or_a_folder_differs(tmp_path: Path) -> None:
    def act(folder: Path) -> None:
        for name in ("README.md", TEST, "shop/cart.py"):
            (folder / name).rename(tmp_path / Path(name).name)
        (folder / "README.md").symlink_to(tmp_path / "README.md")
        os.mkfifo(folder / TEST)
        (folder / "shop" / "cart.py").mkdir()

    assert changes(repository(tmp_path / "shop"), act) == ["README.md", "shop/cart.py", TEST]
    assert eyes(tmp_path / "shop").now([TEST]).files[TEST].startswith("s:")


def test_a_change_through_a_hard_link_is_seen(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    os.link(folder / TEST, tmp_path / "other")
    assert changes(folder, lambda _: (tmp_path / "other").write_text(WEAKER)) == [TEST]


def test_permission_to_execute_is_part_of_a_file(tmp_path: Path) -> None:
    assert changes(repository(tmp_path), lambda folder: (folder / "README.md").chmod(0o755)) == ["README.md"]


def test_hostile_names_are_kept_apart_and_printable(tmp_path: Path) -> None:
    names = [b"a\nb.py", b"\xff.py", b"\\xff.py", "\u202eyp.tset".encode(), b" -rf", b"tab\t"]

    def act(folder: Path) -> None:
        for name in names:
            with open(os.path.join(os.fsencode(folder), name), "wb") as file:
                file.write(b"x")

    found = changes(repository(tmp_path), act)
    assert len(found) == len(names)
    assert all(name.isprintable() for name in found)


def test_caches_and_what_is_ignored_do_not_count(tmp_path: Path) -> None:
    def act(folder: Path) -> None:
        write(
            folder,
            {
                "build/lib/shop/cart.py": "",
                "build/lib/tests/conftest.py": "",
                "debug.log": "",
                "shop/__pycache__/cart.cpython-311.pyc": "",
                ".pytest_cache/v/lastfailed": "",
                ".ruff_cache/x": "",
                "htmlcov/index.html": "",
                ".coverage.host.123": "",
                "packages/a/node_modules/left-pad/index.js": "",
                ".backedge/journal.db": "",
            },
        )

    folder = repository(tmp_path)
    assert changes(folder, act) == []
    assert eyes(folder).now().installed == ("packages/a/node_modules",)


def test_an_ignored_file_counts_if_it_is_protected(tmp_path: Path) -> None:
    """A test runner reads a conftest.py whatever git thinks of it, and Python a pytest.pyc."""
    folder = repository(tmp_path, {**SHOP, ".gitignore": "*.pyc\nconftest.py\n*.egg-info/\nlocal.*\n"})

    def act(folder: Path) -> None:
        write(folder, {"tests/conftest.py": "", "pytest.pyc": "", "x.egg-info/entry_points.txt": "[pytest11]\n"})
        write(folder, {"x.egg-info/PKG-INFO": "", "local.txt": "", "shop/cart.pyc": ""})

    assert changes(folder, act) == ["pytest.pyc", "tests/conftest.py", "x.egg-info/entry_points.txt"]


def test_tracked_files_count_although_a_rule_matches_them(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    write(folder, {"build/kept.py": "1", "build/other.py": "1"})
    git(folder, "add", "-f", "build/kept.py")
    assert changes(folder, lambda folder: write(folder, {"build/kept.py": "2", "build/other.py": "2"})) == [
        "build/kept.py"
    ]


def test_a_python_environment_without_an_ignore_rule_does_not_count(tmp_path: Path) -> None:
    folder = repository(tmp_path, {"a.py": ""})
    write(folder, {".venv/pyvenv.cfg": "", ".venv/lib/x.py": ""})
    tree = eyes(folder).now()
    assert (sorted(tree.files), tree.installed) == (["a.py"], (".venv",))


def test_the_mark_of_an_environment_hides_no_other_folder(tmp_path: Path) -> None:
    assert changes(repository(tmp_path), lambda folder: write(folder, {"shop/pyvenv.cfg": "", "shop/evil.py": ""})) == [
        "shop/evil.py",
        "shop/pyvenv.cfg",
    ]


def test_a_workspace_below_the_top_of_the_repository_obeys_all_rules(tmp_path: Path) -> None:
    top = repository(
        tmp_path,
        {
            ".gitignore": "*.tmp\n/packages/a/out/\n!keep.tmp\n",
            "packages/.gitignore": "dist\n/b/src\n",
            "packages/a/.gitignore": "!dist\nfixed/only\n*.bak\n",
            "packages/a/main.py": "",
        },
    )
    folder = top / "packages" / "a"
    write(
        folder,
        {
            "x.tmp": "",
            "keep.tmp": "",
            "out/x": "",
            "sub/out/x": "",
            "dist/x": "",
            "fixed/only": "",
            "sub/fixed/only": "",
            "sub/y.bak": "",
            "b/src/x": "",
        },
    )
    expected = git(folder, "ls-files", "-co", "--exclude-standard").decode().split()
    assert sorted(eyes(folder).now().files) == sorted(expected)


def test_rules_in_a_folder_with_an_odd_name_hold_there_only(tmp_path: Path) -> None:
    rules = "*.o\n!keep.o\n/top\n\\#odd\n\\!odd\ntrailing  \n# comment\nsub/dir/\n"
    odd = "we[i]rd*na?me"
    files = ["x.o", "keep.o", "top", "deep/top", "#odd", "!odd", "trailing", "sub/dir/x", "deep/sub/dir/x", "deep/x.o"]
    folder = repository(tmp_path, {f"{odd}/.gitignore": rules})
    write(folder, {f"{place}/{name}": "" for place in (odd, "weird", "weirdname") for name in files})
    expected = git(folder, "ls-files", "-z", "-co", "--exclude-standard").decode().split("\0")[:-1]
    assert sorted(eyes(folder).now().files) == sorted(expected)


def test_a_workspace_that_its_repository_ignores_is_looked_at_on_its_own(tmp_path: Path) -> None:
    folder = repository(tmp_path, {".gitignore": "work/\n"}) / "work"
    write(folder, {".gitignore": "*.log\n", "a.py": "", "x.log": ""})
    assert sorted(eyes(folder).now().files) == [".gitignore", "a.py"]


def test_a_submodule_and_its_own_rules_count(tmp_path: Path) -> None:
    repository(tmp_path / "lib", {".gitignore": "*.out\n", "lib.py": ""})
    folder = repository(tmp_path / "shop")
    git(folder, "submodule", "--quiet", "add", str(tmp_path / "lib"), "lib")
    write(folder, {"lib/x.out": ""})
    assert {"lib/lib.py", "lib/.gitignore"} <= set(eyes(folder).now().files)
    assert changes(folder, lambda folder: write(folder, {"lib/lib.py": "2", "lib/x.out": "2", "lib/new.py": ""})) == [
        "lib/lib.py",
        "lib/new.py",
    ]


def test_a_worktree_uses_the_rules_of_its_repository(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    write(folder, {".git/info/exclude": "*.secret\n"})
    git(folder, "worktree", "add", "-q", str(tmp_path / "story"))
    write(tmp_path / "story", {"a.secret": "", "b.py": ""})
    assert sorted(eyes(tmp_path / "story").now().files) == sorted([*SHOP, "b.py"])


def test_a_folder_without_a_repository_is_looked_at_too(tmp_path: Path) -> None:
    write(tmp_path, SHOP)
    assert changes(tmp_path, lambda folder: write(folder, {"new.py": "", "x.log": "", TEST: WEAKER})) == [
        "new.py",
        TEST,
    ]


def test_without_git_every_file_but_caches_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {**SHOP, "Cargo.toml": "", "target/CACHEDIR.TAG": "", "target/debug/x": "", "lib/target/x": ""})
    write(
        tmp_path, {"node_modules/a/i.js": "", "shop/__pycache__/x.pyc": "", ".venv/pyvenv.cfg": "", ".git/config": ""}
    )
    monkeypatch.setenv("PATH", "/nowhere")
    tree = eyes(tmp_path).now()
    assert sorted(tree.files) == sorted([*SHOP, "Cargo.toml", "lib/target/x"])
    assert tree.installed == (".venv", "node_modules")


def test_git_that_stops_working_is_an_error_and_reveals_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = eyes(repository(tmp_path))
    before = look.now()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GitFailed, match="install git"):
        look.now(before.files)


def test_the_state_of_backedge_does_not_count_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    folder = repository(tmp_path, {"a.py": ""})
    write(
        folder,
        {"home/state/backedge/x": "", "home/state/other": "", "my/state/x": "", ".backedge/x": "", ".backedged": ""},
    )
    tree = Trees(folder, folder / "my" / "state").now()
    assert sorted(tree.files) == [".backedged", "a.py", "home/state/other"]


def test_links_are_told_apart_by_where_they_lead(tmp_path: Path) -> None:
    folder = repository(tmp_path / "shop")
    (folder / "checks").symlink_to("tests")
    (folder / "data").symlink_to(tmp_path)
    (folder / "self").symlink_to(".")
    tree = eyes(folder).now()
    assert links_in(folder, tree) == {"checks": "tests"}
    assert links_out(folder, tree) == ["data"]


def test_links_to_what_does_not_count_are_told_apart(tmp_path: Path) -> None:
    folder = repository(tmp_path, {"a.py": "", "tests/a.py": "", ".gitignore": "build/\nnode_modules/\n"})
    write(folder, {"build/a.py": "", "node_modules/a.js": "", ".git/own.py": ""})
    for name, to in (
        ("ignored", "build/a.py"),
        ("git", ".git/own.py"),
        ("whole", "build"),
        ("file", "a.py"),
        ("folder", "tests"),
        ("installed", "node_modules/a.js"),
        ("broken", "build/b.py"),
    ):
        (folder / name).symlink_to(to)
    assert links_to_uncounted(folder, eyes(folder).now()) == ["git", "ignored", "whole"]


def test_an_ignored_environment_of_any_name_is_installed(tmp_path: Path) -> None:
    folder = repository(tmp_path, {"a.py": "", ".gitignore": "py311/\nbuild/\n"})
    write(folder, {"py311/pyvenv.cfg": "", "py311/bin/python": "", "build/x": ""})
    assert eyes(folder).now().installed == ("py311",)


def test_a_file_without_permissions_differs(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads every file")
    folder = repository(tmp_path)
    assert changes(folder, lambda folder: (folder / TEST).chmod(0)) == [TEST]


def test_the_digest_does_not_depend_on_order() -> None:
    assert Tree({"a": "f:1", "b": "f:2"}).digest == Tree({"b": "f:2", "a": "f:1"}).digest
    assert Tree({"a": "f:1"}).digest != Tree({"a": "x:1"}).digest


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the figure is for Linux")
def test_a_second_look_reads_no_file_that_did_not_change(tmp_path: Path) -> None:
    class Counting(FileDigests):
        read = 0

        def of(self, path: str) -> str | None:
            known = self._known.get(path)
            found = super().of(path)
            self.read += known is None or self._known.get(path) is not known
            return found

    write(tmp_path, {f"src/p{number % 50}/m{number}.py": f"x = {number}" for number in range(5_000)})
    for path in tmp_path.rglob("*.py"):
        os.utime(path, (1, 1))
    git(tmp_path, "init", "-q")
    digests = Counting()
    look = Trees(tmp_path, tmp_path / ".backedge", digests)
    before = look.now()

    time.sleep(0.3)
    look.now(before.files)
    digests.read = 0
    look.now(before.files)
    assert digests.read == 0
