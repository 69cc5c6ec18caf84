"""A room shows the workspace to a judge's program, and nothing that the program writes reaches the workspace."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backedge.adapters.evidence.room import open_room
from backedge.core.errors import AgentError
from tests.evidence_rooms.parts import (
    FILES,
    KINDS,
    KindOfRoom,
    contents,
    fill,
    git,
    kinds,
    run_in,
    scratch_of,
    shell_in,
)


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow if name == "bound-copy" else ()) for name in KINDS])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> KindOfRoom:
    return kinds(tmp_path, request.param)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return fill(tmp_path / "ws")


@pytest.mark.parametrize(
    ("script", "changed", "made"),
    [
        ("cat a.txt", [], []),
        ("echo x > a.txt", ["a.txt"], []),
        ("echo x >> src/deep/three.py", ["src/deep/three.py"], []),
        ("echo n > new.txt; mkdir more; echo n > more/new.txt", [], ["more/new.txt", "new.txt"]),
        ("rm a.txt", ["a.txt"], []),
        ("rm -r src", ["src/deep/three.py", "src/one.py", "src/two.py"], []),
        (
            "rm -r src; mkdir src; echo n > src/new.py",
            ["src/deep/three.py", "src/one.py", "src/two.py"],
            ["src/new.py"],
        ),
        ("rm -r src; mkdir src; echo 'one = 1' > src/one.py", ["src/deep/three.py", "src/two.py"], []),
        ("rm -r src; echo n > src", ["src/deep/three.py", "src/one.py", "src/two.py"], ["src"]),
        ("rm a.txt; ln -s b.txt a.txt", ["a.txt"], []),
        ("mv a.txt c.txt", ["a.txt"], ["c.txt"]),
        ("chmod +x a.txt", ["a.txt"], []),
        ("touch a.txt; chmod go-r a.txt", [], []),
        ("cp a.txt keep; rm a.txt; mv keep a.txt", [], []),
        ("printf 'a\\n' > a.txt", [], []),
        ("mkdir -p src/__pycache__ .pytest_cache; echo x > src/__pycache__/one.pyc; echo x > .pytest_cache/y", [], []),
        ("mkdir closed; echo n > closed/x; chmod 000 closed", [], ["closed/x"]),
    ],
)
def test_changes_are_named_and_stay_in_the_room(
    kind: KindOfRoom, workspace: Path, script: str, changed: list[str], made: list[str]
) -> None:
    if "chmod 000" in script and os.geteuid() != 0 and kind.means is not None:
        pytest.skip("a copy cannot be read there")
    with kind.open(workspace) as room:
        shell_in(room, script)
        assert (list(room.changed()), list(room.made())) == (changed, made)
    assert contents(workspace) == FILES
    assert list((scratch_of(workspace) / "rooms").iterdir()) == []


def test_a_file_in_place_of_which_the_program_made_a_folder_is_changed(kind: KindOfRoom, workspace: Path) -> None:
    with kind.open(workspace) as room:
        shell_in(room, "rm a.txt; mkdir a.txt; echo n > a.txt/x")
        assert room.changed() == ("a.txt",)
        assert room.made() == ("a.txt/x",)


def test_the_program_has_the_same_input_output_environment_and_exit_code(kind: KindOfRoom, workspace: Path) -> None:
    with kind.open(workspace) as room:
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "ODD": "a b\nc"}
        script = "cat; echo err >&2; env -0; exit 7"
        done = subprocess.run(
            room.argv(["sh", "-c", script]), cwd=room.cwd, env=env, input=b"in\n", capture_output=True, check=False
        )
    found = dict(word.split(b"=", 1) for word in done.stdout.removeprefix(b"in\n").split(b"\0") if word)
    assert done.returncode == 7
    assert done.stderr == b"err\n"
    assert {key: value for key, value in found.items() if key not in (b"PWD", b"_", b"OLDPWD", b"SHLVL")} == {
        os.fsencode(key): os.fsencode(value) for key, value in env.items()
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE])
def test_the_program_ends_by_signals_as_without_a_room(
    kind: KindOfRoom, workspace: Path, number: signal.Signals
) -> None:
    with kind.open(workspace) as room:
        assert run_in(room, "sh", "-c", f"kill -{number.value} $$").returncode == -number


def test_the_program_keeps_its_user_and_gets_no_privileges(kind: KindOfRoom, workspace: Path) -> None:
    show = "id -u; id -g; grep CapEff /proc/self/status"
    with kind.open(workspace) as room:
        inside = shell_in(room, show)
    assert inside == subprocess.run(["sh", "-c", show], capture_output=True, text=True, check=True).stdout


def test_the_room_has_the_path_of_the_workspace(kind: KindOfRoom, workspace: Path) -> None:
    if not kind.own_path:
        pytest.skip("a copy without mounts has a path of its own")
    with kind.open(workspace) as room:
        assert room.cwd == workspace
        assert shell_in(room, f"pwd; echo x > {workspace}/a.txt; cat a.txt") == f"{workspace}\nx\n"


def test_words_that_begin_with_the_workspace_mean_a_copy_without_mounts(workspace: Path) -> None:
    with KINDS["plain-copy"].open(workspace) as room:
        assert run_in(room, "sh", "-c", 'echo x > "$1"', "sh", f"{workspace}/a.txt").returncode == 0
        assert run_in(room, "sh", "-c", 'rm "${1#--file=}"', "sh", f"--file={workspace}/b.txt").returncode == 0
        assert room.changed() == ("a.txt", "b.txt")
    assert contents(workspace) == FILES


def test_an_editable_install_imports_the_code_of_the_room(kind: KindOfRoom, workspace: Path, tmp_path: Path) -> None:
    if not kind.own_path:
        pytest.skip("a copy without mounts has a path of its own")
    held = tmp_path / "held"
    held.write_text("one = 'held'\n")
    with kind.open(workspace, {"src/one.py": (held, 0o644)}) as room:
        done = run_in(room, sys.executable, "-c", "import one; print(one.one)", env={"PYTHONPATH": f"{workspace}/src"})
    assert done.stdout == "held\n", done.stderr


def test_files_are_restored_and_removed_before_the_program_starts(
    kind: KindOfRoom, workspace: Path, tmp_path: Path
) -> None:
    held = tmp_path / "held"
    held.write_text("held\n")
    restore = {"a.txt": (held, 0o755), "gone/deep/x.txt": (held, 0o644), "link": (held, stat.S_IFLNK | 0o777)}
    held_link = tmp_path / "target"
    held_link.write_text("a.txt")
    restore["link"] = (held_link, stat.S_IFLNK | 0o777)
    with kind.open(workspace, restore, ["b.txt", "src/deep/three.py", "not/there"]) as room:
        shown = shell_in(room, "cat a.txt gone/deep/x.txt; readlink link; test -x a.txt; test ! -e b.txt; ls src/deep")
        assert shown == "held\nheld\na.txt\n"
        assert (room.changed(), room.made()) == ((), ())
    with kind.open(workspace, restore, ["b.txt"]) as room:
        shell_in(room, "echo x > a.txt; rm -r gone; echo b > b.txt")
        assert (room.changed(), room.made()) == (("a.txt", "gone/deep/x.txt"), ("b.txt",))
    assert contents(workspace) == FILES
    with kind.open(workspace) as room:
        assert shell_in(room, "cat a.txt b.txt; ls") == "a\nb\na.txt\nb.txt\nsrc\ntests\n"


def test_restored_files_that_the_program_reads_are_known(kind: KindOfRoom, workspace: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("other\n")
    names = ("a.txt", "b.txt", "src/one.py")
    with kind.open(workspace, dict.fromkeys(names, (source, 420))) as room:
        shell_in(room, "sleep 0.05; cat a.txt; rm src/one.py")
        assert room.opened() == ("a.txt",)


def test_restoring_does_not_follow_links_out_of_the_room(kind: KindOfRoom, workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "test_one.py").write_text("outside\n")
    (workspace / "tests" / "test_one.py").unlink()
    (workspace / "tests").rmdir()
    (workspace / "tests").symlink_to(outside)
    held = tmp_path / "held"
    held.write_text("held\n")
    with kind.open(workspace, {"tests/test_one.py": (held, 0o644)}) as room:
        assert shell_in(room, "cat tests/test_one.py; ls -d tests") == "held\ntests\n"
        assert room.changed() == ()
    assert (outside / "test_one.py").read_text() == "outside\n"
    assert (workspace / "tests").is_symlink()


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x"])
def test_a_restored_file_cannot_be_outside(kind: KindOfRoom, workspace: Path, tmp_path: Path, name: str) -> None:
    held = tmp_path / "held"
    held.write_text("held\n")
    with pytest.raises(AgentError, match="is not a path inside the workspace"):
        kind.open(workspace, {name: (held, 0o644)})
    with pytest.raises(AgentError, match="is not a path inside the workspace"):
        kind.open(workspace, remove=[name])
    assert not (tmp_path / "x").exists()


def test_the_state_of_backedge_is_hidden(kind: KindOfRoom, workspace: Path) -> None:
    (workspace / ".backedge" / "attempts" / "mine").mkdir(parents=True)
    (workspace / ".backedge" / "journal.db").write_text("journal")
    shown = workspace / ".backedge" / "attempts" / "mine"
    with kind.open(workspace, shows=[shown]) as room:
        assert "journal.db" not in shell_in(room, "ls -A .backedge 2>/dev/null || true")
        if kind.own_path and kind.kind == "overlay":
            shell_in(room, "echo forged > .backedge/journal.db; echo report > .backedge/attempts/mine/report.xml")
            assert (shown / "report.xml").read_text() == "report\n"
        if kind.own_path:
            assert shell_in(room, f"find {scratch_of(workspace)}").split() == [str(scratch_of(workspace))]
        assert room.changed() == ()
    assert (workspace / ".backedge" / "journal.db").read_text() == "journal"


def test_a_workspace_in_a_hidden_folder_is_shown(kind: KindOfRoom, tmp_path: Path) -> None:
    state = tmp_path / "project" / ".backedge"
    workspace = state / "worktrees" / "story"
    workspace.mkdir(parents=True)
    fill(workspace)
    (state / "journal.db").write_text("journal")
    scratch = tmp_path / "elsewhere"
    with open_room(kind.kind, workspace, scratch, hides=[state], means=kind.means) as room:
        assert shell_in(room, "cat a.txt; echo x > a.txt") == "a\n"
        if kind.own_path:
            assert shell_in(room, f"ls {state}") == "worktrees\n"
        assert room.changed() == ("a.txt",)
    assert contents(workspace) == FILES


@pytest.mark.parametrize(
    "name", ["with space", "a,b:c", "back\\slash", 'quote"s', "new\nline", "lowerdir=x,ro", "öß", "\udcff"]
)
def test_the_workspace_may_have_any_name(kind: KindOfRoom, tmp_path: Path, name: str) -> None:
    workspace = tmp_path / name
    workspace.mkdir()
    fill(workspace)
    with kind.open(workspace) as room:
        assert shell_in(room, "echo x > a.txt; cat b.txt; echo n > 'new, \\file'") == "b\n"
        assert (room.changed(), room.made()) == (("a.txt",), ("new, \\file",))
    assert contents(workspace) == FILES


def test_the_workspace_may_be_a_link(kind: KindOfRoom, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(workspace)
    with kind.open(tmp_path / "link") as room:
        shell_in(room, "echo x > a.txt")
        if kind.own_path:
            assert shell_in(room, f"cat {tmp_path}/link/a.txt {workspace}/a.txt") == "x\nx\n"
        assert room.changed() == ("a.txt",)
    assert contents(workspace) == FILES


def test_commits_go_with_the_room(kind: KindOfRoom, workspace: Path) -> None:
    git(workspace, "init", "-q")
    git(workspace, "add", ".")
    git(workspace, "commit", "-qm", "first")
    git(workspace, "tag", "v1")
    (workspace / "a.txt").write_text("edited\n")
    before = git(workspace, "rev-parse", "HEAD")
    with kind.open(workspace) as room:
        safe = "git -c safe.directory='*' -c user.name=a -c user.email=a@b"
        assert shell_in(room, f"{safe} describe --tags --dirty; {safe} status --short") == "v1-dirty\n M a.txt\n"
        run_in(room, "sh", "-c", "echo x > .git/hooks/pre-commit; echo '# x' >> .git/config")
        if kind.means is None:  # it has an overlay
            assert shell_in(room, f"{safe} commit -qam more; {safe} log --format=%s") == "more\nfirst\n"
        assert room.changed() == ()
    assert git(workspace, "rev-parse", "HEAD") == before
    assert not (workspace / ".git" / "hooks" / "pre-commit").exists()
    assert git(workspace, "status", "--short") == " M a.txt\n"


def test_a_worktree_and_its_repository_can_be_asked_and_not_changed(kind: KindOfRoom, tmp_path: Path) -> None:
    main, worktree = tmp_path / "main", tmp_path / "tree"
    main.mkdir()
    fill(main)
    git(main, "init", "-q")
    git(main, "add", ".")
    git(main, "commit", "-qm", "first")
    git(main, "worktree", "add", "-q", "-b", "story", str(worktree))
    (worktree / "a.txt").write_text("edited\n")
    with kind.open(worktree) as room:
        safe = "git -c safe.directory='*' -c user.name=a -c user.email=a@b"
        assert shell_in(room, f"{safe} status --short; {safe} branch --show-current") == " M a.txt\nstory\n"
        run_in(room, "sh", "-c", f"{safe} commit -qam more")
        if kind.own_path:
            run_in(room, "sh", "-c", f"echo '# x' >> {main}/.git/config")
        assert room.changed() == ()
    assert git(worktree, "log", "--oneline").count("\n") == 1
    assert "# x" not in (main / ".git" / "config").read_text()


def test_a_missing_program_is_reported(kind: KindOfRoom, workspace: Path) -> None:
    (workspace / "plain").write_text("x")
    with kind.open(workspace) as room:
        assert run_in(room, "no-such-program").returncode == 127
        assert room.problem("no-such-program").startswith("cannot start 'no-such-program': there is no such program")
    with kind.open(workspace) as room:
        assert run_in(room, "./plain").returncode == 126
        assert room.problem("./plain").startswith("cannot start './plain': it is not executable; run chmod +x")
    with kind.open(workspace) as room:
        assert run_in(room, "true").returncode == 0
        assert room.problem("true") == ""


def test_files_that_gates_need_are_kept(kind: KindOfRoom, workspace: Path) -> None:
    (workspace / "old.json").write_text("old")
    (workspace / "same.json").write_text("same\n")
    time.sleep(0.15)
    with kind.open(workspace) as room:
        shell_in(
            room, "echo new > coverage.json; mkdir out; echo n > out/x.json; echo new > old.json; echo same > same.json"
        )
        shell_in(room, "ln -s /etc/passwd link.json; echo x > a.txt")
        assert room.written("a.txt") is not None
        assert room.written("b.txt") is None
        assert room.written("link.json") is None
        assert room.keep(["*.json"]) == ("coverage.json", "old.json", "same.json")
    assert (workspace / "coverage.json").read_text() == "new\n"
    assert (workspace / "old.json").read_text() == "new\n"
    assert not (workspace / "out").exists()
    assert not (workspace / "link.json").is_symlink()
    assert (workspace / "a.txt").read_text() == "a\n"


def test_two_rooms_over_one_workspace_do_not_see_each_other(kind: KindOfRoom, workspace: Path) -> None:
    with kind.open(workspace) as one, kind.open(workspace) as two:
        shell_in(one, "echo one > a.txt")
        assert shell_in(two, "cat a.txt; echo two > b.txt") == "a\n"
        assert (one.changed(), two.changed()) == (("a.txt",), ("b.txt",))
    with kind.open(workspace) as again:
        assert shell_in(again, "cat a.txt b.txt") == "a\nb\n"


def test_kept_bytecode_is_filled_only_by_a_run_that_may(kind: KindOfRoom, workspace: Path, tmp_path: Path) -> None:
    library = tmp_path / "site"
    library.mkdir()
    (library / "lib.py").write_text("x = 1\n")
    kept = scratch_of(workspace) / "bytecode" / "print"

    def compiled() -> list[str]:
        return sorted(path.name.partition(".")[0] for path in kept.rglob("*.pyc"))

    script = "import sys; sys.path[:0] = sys.argv[1:]; import lib, one"
    for fills, expected in ((False, []), (True, ["lib"]), (False, ["lib"])):
        with kind.open(workspace, fingerprint="print", fills=fills) as room:
            argv = (sys.executable, "-c", script, str(library), f"{workspace}/src")
            env = {key: "" for key in ("PYTHONDONTWRITEBYTECODE",) if key not in room.env}
            done = run_in(room, *argv, env=env)
            assert done.returncode == 0, done.stderr
            assert room.env["PYTHONNOUSERSITE"] == "1"
            assert room.made() == ()
        assert [name for name in compiled() if name in ("lib", "one")] == expected
    assert not list(workspace.rglob("__pycache__"))


def test_without_a_room_nothing_is_covered_and_nothing_can_be_held(workspace: Path, tmp_path: Path) -> None:
    with open_room("off", workspace, tmp_path / "scratch") as room:
        assert (room.kind, room.argv(["x", "y"]), room.cwd) == ("off", ["x", "y"], workspace)
        assert (room.changed(), room.made(), room.problem("x"), room.keep(["*"])) == ((), (), "", ())
    with pytest.raises(AgentError, match="cannot judge with the tests as they were"):
        open_room("off", workspace, tmp_path / "scratch", remove=["a.txt"])


def test_a_workspace_that_is_not_there_is_an_error(kind: KindOfRoom, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="it is not a folder; make it, or correct `workspace`"):
        kind.open(tmp_path / "nowhere")
