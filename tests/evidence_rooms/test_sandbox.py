"""What an agent can and cannot do in its sandbox, tried with real processes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backedge.adapters.evidence import sandbox as module
from backedge.adapters.evidence.sandbox import Availability, Sandbox
from backedge.core.errors import AgentError
from tests.evidence_rooms.parts import git

pytestmark = pytest.mark.skipif(not Sandbox().available(), reason=f"no sandbox: {Sandbox().available().reason}")


class Project:
    """A project in a home folder, with a repository, installed packages, a journal and a folder for an attempt."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = self.home / "code" / "shop"
        self.state = self.workspace / ".backedge"
        self.attempt = self.state / "attempts" / "r-1" / "code-1"
        self.attempt.mkdir(parents=True)
        (self.state / "attempts" / "r-1" / "code-2").mkdir()
        (self.state / "journal.db").write_text("journal")
        (self.home / ".local" / "state" / "backedge" / "runs").mkdir(parents=True)
        (self.workspace / ".gitignore").write_text(".venv\nnode_modules\n.backedge\n")
        (self.workspace / "a.txt").write_text("a\n")
        packages = self.workspace / ".venv" / "lib" / "site-packages"
        packages.mkdir(parents=True)
        (self.workspace / ".venv" / "pyvenv.cfg").write_text("home = /usr\n")
        (packages / "runner.py").write_text("honest\n")
        (self.workspace / "node_modules" / "vitest").mkdir(parents=True)
        git(self.workspace, "init", "-q")
        git(self.workspace, "config", "user.name", "a")
        git(self.workspace, "config", "user.email", "a@b")
        git(self.workspace, "add", ".")
        git(self.workspace, "commit", "-qm", "first")
        self.env = {**os.environ, "HOME": str(self.home)}
        self.env.pop("XDG_STATE_HOME", None)

    def argv(self, *argv: str, installs: bool = False, workspace: Path | None = None) -> list[str]:
        here = workspace or self.workspace
        return Sandbox("bwrap").argv(argv, here, self.state, self.attempt, installs, env=self.env)

    def run(
        self, script: str, installs: bool = False, workspace: Path | None = None, given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        argv = self.argv("sh", "-c", script, installs=installs, workspace=workspace)
        here = workspace or self.workspace
        return subprocess.run(
            argv, cwd=here, env=self.env, input=given, capture_output=True, text=True, timeout=60, check=False
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_input_output_environment_and_exit_code_are_as_without(project: Project) -> None:
    project.env["LC_ALL"], project.env["ODD"] = "C", "a b\nc"
    done = project.run("cat; pwd; echo err >&2; env -0; exit 7", given="in\n")
    assert (done.returncode, done.stderr) == (7, "err\n")
    head = f"in\n{project.workspace}\n"
    assert done.stdout.startswith(head)
    found = dict(word.split("=", 1) for word in done.stdout.removeprefix(head).split("\0") if word)
    shells = {"PWD", "OLDPWD", "_", "SHLVL", "TMPDIR"}
    assert {key: each for key, each in found.items() if key not in shells} == {
        key: each for key, each in project.env.items() if key not in shells
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGSEGV, signal.SIGPIPE])
def test_an_agent_ends_by_signals_as_without(project: Project, number: signal.Signals) -> None:
    assert project.run(f"ulimit -c 0; kill -{number.value} $$").returncode == -number


def test_an_exit_code_that_looks_like_a_signal_stays_an_exit_code(project: Project) -> None:
    assert project.run("exit 143").returncode == 143


def test_an_agent_that_is_asked_to_end_has_time_to(project: Project) -> None:
    code = (
        "import signal, sys, time\n"
        "def end(*_):\n    time.sleep(0.2); print('saved', flush=True); sys.exit(5)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('up', flush=True)\ntime.sleep(300)\n"
    )
    agent = subprocess.Popen(
        project.argv(sys.executable, "-c", code),
        cwd=project.workspace,
        env=project.env,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert agent.stdout is not None
    with agent.stdout:
        assert agent.stdout.readline() == "up\n"
        os.killpg(agent.pid, signal.SIGTERM)
        assert (agent.stdout.read(), agent.wait(30)) == ("saved\n", 5)


def test_an_agent_can_work(project: Project) -> None:
    script = """set -e
        echo b > b.txt; rm a.txt; mkdir sub; echo c > sub/c.txt
        git add -A; git commit -qm second; git checkout -qb other; git stash list
        echo outcome > .backedge/attempts/r-1/code-1/outcome.json
        echo h > ~/.agentrc; mkdir -p ~/.cache/x; echo x > ~/.cache/x/y
        echo t > /tmp/t; test "$(ls -A /tmp/t)" = /tmp/t
        echo v > node_modules/.vite/cache
        echo n > /dev/null; test -r /etc/passwd; test -d /proc/self
    """
    done = project.run(script)
    assert done.returncode == 0, done.stderr
    assert git(project.workspace, "log", "--format=%s") == "second\nfirst\n"
    assert (project.workspace / "sub" / "c.txt").read_text() == "c\n"
    assert (project.attempt / "outcome.json").read_text() == "outcome\n"
    assert (project.home / ".agentrc").read_text() == "h\n"
    assert list((project.workspace / "node_modules" / ".vite").iterdir()) == []
    assert not Path("/tmp/t").exists()


@pytest.mark.parametrize(
    "script",
    [
        "echo x > /etc/backedge-forged",
        "echo x > /usr/lib/backedge-forged",
        "echo x > .git/hooks/pre-commit",
        "git config core.hooksPath /tmp",
        "echo '*.py -diff' > .git/info/attributes",
        "mv .git .git2",
        "mv .git/hooks .git/h",
        "rm -r .git/info",
        "echo x > .venv/lib/site-packages/runner.py",
        "mv .venv .venv2",
        "echo x > node_modules/vitest/index.js",
        "echo x >> .backedge/journal.db; test \"$(cat .backedge/journal.db)\" = journalx",
        "mv ~/code ~/code2",
        "mv ~/.local/state ~/.local/state2",
        "rmdir ~/.local/state/backedge/runs",
        "rm -r .backedge",
        f"echo x >> {module.__file__}",
        "mount -o remount,rw /",
        "umount .venv",
        "umount .git/hooks",
        "unshare --user --map-root-user --mount sh -c 'umount .venv || mount -o remount,rw,bind .venv'",
        "mknod /tmp/disk b 8 0",
    ],
)  # fmt: skip
def test_an_agent_cannot(project: Project, script: str) -> None:
    before = {path: path.read_bytes() for path in project.home.rglob("*") if path.is_file()}
    done = project.run(script)
    assert done.returncode != 0, done.stdout
    assert {path: path.read_bytes() for path in project.home.rglob("*") if path.is_file()} == before
    assert not Path("/etc/backedge-forged").exists()
    assert (project.state / "journal.db").read_text() == "journal"


def test_only_the_folder_of_the_attempt_is_left_of_the_state(project: Project) -> None:
    done = project.run("find .backedge ~/.local/state/backedge; echo forged > .backedge/journal.db")
    assert done.stdout.split() == [
        *(".backedge", ".backedge/attempts", ".backedge/attempts/r-1", ".backedge/attempts/r-1/code-1"),
        f"{project.home}/.local/state/backedge",
    ]
    assert (project.state / "journal.db").read_text() == "journal"


def test_the_folder_of_an_attempt_may_be_made_after_its_command(project: Project) -> None:
    project.attempt.rmdir()
    argv = project.argv("sh", "-c", "echo '{}' > .backedge/attempts/r-1/code-1/outcome.json")
    project.attempt.mkdir()
    done = subprocess.run(argv, cwd=project.workspace, env=project.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (project.attempt / "outcome.json").read_text() == "{}\n"


def test_programs_on_the_path_run_with_their_packages_wherever_they_are(project: Project, tmp_path: Path) -> None:
    modules, tools, loose = tmp_path / "clis" / "node_modules", tmp_path / "tools", tmp_path / "loose"
    for folder in (modules / ".bin", modules / "other", tools / "bin", tools / "lib", loose, tmp_path / "secret"):
        folder.mkdir(parents=True)
    (modules / "other" / "part").write_text("package\n")
    (tools / "lib" / "part").write_text("library\n")
    for program, part in (
        (modules / ".bin" / "agent", modules / "other" / "part"),
        (tools / "bin" / "tool", tools / "lib" / "part"),
    ):
        program.write_text(f"#!/bin/sh\ncat {part}\n")
        program.chmod(0o755)
    path = [modules / ".bin", tools / "bin", loose, tmp_path / "missing", Path("relative")]
    project.env["PATH"] = os.pathsep.join([*map(str, path), project.env["PATH"]])
    done = project.run(f"agent; tool; ls {loose} && echo x > {tools}/lib/part; ls {tmp_path}/secret")
    assert done.stdout == "package\nlibrary\n"
    assert "Read-only file system" in done.stderr
    assert f"cannot access '{tmp_path}/secret'" in done.stderr


def test_an_agent_can_make_a_sandbox_of_its_own(project: Project) -> None:
    here = project.workspace
    inner = f"bwrap --unshare-user --ro-bind / / --bind {here} {here} --dev /dev --chdir {here}"
    done = project.run(f"{inner} sh -c 'echo b > a.txt; echo x > .git/hooks/pre-commit'")
    assert (here / "a.txt").read_text() == "b\n", done.stderr
    assert "Read-only file system" in done.stderr


def test_folders_can_be_hidden_in_the_attempt_and_shown_elsewhere(project: Project) -> None:
    records = project.attempt / "records"
    records.mkdir()
    (records / "exit.json").write_text("{}")
    prompts = project.home / "prompts"
    prompts.mkdir()
    (prompts / "code.md").write_text("prompt")
    argv = Sandbox("bwrap").argv(
        ["sh", "-c", f"cat {prompts}/code.md; ls {records}; echo x > {records}/exit.json; echo x > {prompts}/code.md"],
        project.workspace,
        project.state,
        project.attempt,
        hides=[records],
        shows=[prompts],
        env=project.env,
    )
    done = subprocess.run(argv, env=project.env, capture_output=True, text=True, check=False)
    assert done.stdout == "prompt"
    assert (records / "exit.json").read_text() == "{}"
    assert (prompts / "code.md").read_text() == "prompt"


def test_a_step_that_installs_can_change_packages(project: Project) -> None:
    done = project.run("echo new > .venv/lib/site-packages/new.py && echo n > node_modules/n.js", installs=True)
    assert done.returncode == 0, done.stderr
    assert (project.workspace / ".venv" / "lib" / "site-packages" / "new.py").exists()


def test_a_workspace_in_a_project_in_tmp_can_read_the_project(project: Project) -> None:
    """The scripts of its agents lie there, and the journal stays hidden."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        package, state, other = folder / "shop" / "packages" / "a", folder / "shop" / ".backedge", folder / "other"
        for each in (package, state / "attempts" / "1", other):
            each.mkdir(parents=True)
        (folder / "shop" / "code.sh").write_text("hello")
        (state / "journal.db").write_text("journal")
        script = f"cat ../../code.sh; echo x > ../../code.sh; echo y > b.txt; ls ../../.backedge {folder}"
        argv = Sandbox("bwrap").argv(["sh", "-c", script], package, state, state / "attempts" / "1", env=project.env)
        done = subprocess.run(argv, env=project.env, capture_output=True, text=True, check=False)
        assert done.stdout == f"hello../../.backedge:\nattempts\n\n{folder}:\nshop\n"
        assert (folder / "shop" / "code.sh").read_text() == "hello"
        assert (package / "b.txt").read_text() == "y\n"
    finally:
        shutil.rmtree(folder)


def test_a_story_in_a_worktree_can_commit_and_cannot_change_the_repository(project: Project) -> None:
    story = project.state / "worktrees" / "story"
    git(project.workspace, "worktree", "add", "-q", "-b", "story", str(story))
    script = """
        echo b > b.txt; git add b.txt; git commit -qm story || exit 1
        echo x > ../../../.git/hooks/pre-commit; echo x >> ../../../.git/config; echo 'gitdir: /tmp' > .git
        ls ../..; test ! -e ../../journal.db
    """
    done = project.run(script, workspace=story)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "attempts\nworktrees\n"
    assert git(story, "log", "--format=%s", "-1") == "story\n"
    assert not (project.workspace / ".git" / "hooks" / "pre-commit").exists()
    assert git(story, "config", "user.name") == "a\n"


def test_a_story_in_a_worktree_cannot_write_the_main_checkout_in_the_home_folder(project: Project) -> None:
    story = project.state / "worktrees" / "story"
    git(project.workspace, "worktree", "add", "-q", "-b", "story", str(story))
    project.env["HOME"] = str(project.workspace.parent)
    done = project.run("echo x > ../../../backedge.yaml; echo y > here.txt; echo z > ~/z.txt", workspace=story)
    assert "Read-only file system" in done.stderr
    assert not (project.workspace / "backedge.yaml").exists()
    assert (story / "here.txt").exists() and (project.workspace.parent / "z.txt").exists()


def test_processes_outside_are_not_seen_and_not_reached(project: Project) -> None:
    other = subprocess.Popen(["sleep", "300"])
    try:
        done = project.run(f"ls /proc | grep -c '^[0-9]'; kill -9 {other.pid}; test -e /proc/{other.pid}/root")
        assert int(done.stdout) < 10
        assert done.returncode != 0
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_no_process_outlives_the_agent(project: Project) -> None:
    code = "import time, os; os.setsid(); open('late.txt', 'w').write('%d'); time.sleep(1); open('a.txt', 'w').write('late')"
    done = project.run(
        f'({sys.executable} -c "{code}" </dev/null >/dev/null 2>&1 &) ; while [ ! -s late.txt ]; do :; done'
    )
    assert done.returncode == 0, done.stderr
    time.sleep(1.3)
    assert (project.workspace / "a.txt").read_text() == "a\n"


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _below(pid: int) -> list[int]:
    try:
        children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [each for child in children for each in (child, *_below(child))]


@pytest.mark.parametrize("victim", ["parent", "outer"])
def test_the_agent_dies_with_the_process_that_started_it(project: Project, victim: str) -> None:
    start = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"
    script = "echo up > up.txt; sleep 300"
    argv = [sys.executable, "-c", start, *project.argv("sh", "-c", script)]
    parent = subprocess.Popen(argv, cwd=project.workspace, env=project.env, start_new_session=True)
    until = time.monotonic() + 30
    while not (project.workspace / "up.txt").exists() or len(_below(parent.pid)) < 5:
        assert time.monotonic() < until, "the agent did not start"
        time.sleep(0.01)
    family = _below(parent.pid)
    os.kill(parent.pid if victim == "parent" else family[0], signal.SIGKILL)
    parent.wait(30)
    while any(map(_lives, family)):
        assert time.monotonic() < until + 30, "the agent outlived its supervisor"
        time.sleep(0.01)


@pytest.fixture
def server() -> Iterator[int]:
    """A server on the loopback that greets once."""
    listening = socket.create_server(("127.0.0.1", 0))

    def greet() -> None:
        talk, _ = listening.accept()
        with talk:
            talk.sendall(b"hello")

    thread = threading.Thread(target=greet)
    thread.start()
    yield listening.getsockname()[1]
    thread.join(30)
    listening.close()


def test_the_network_is_as_outside(project: Project, server: int) -> None:
    code = f"import socket; print(socket.create_connection(('127.0.0.1', {server})).recv(9))"
    assert project.run(f'{sys.executable} -c "{code}"').stdout == "b'hello'\n"


def test_the_user_stays_the_same(project: Project) -> None:
    assert project.run("id -u; id -g").stdout == f"{os.getuid()}\n{os.getgid()}\n"


def test_a_program_that_is_not_there_is_named(project: Project) -> None:
    done = subprocess.run(project.argv("no-such-agent"), env=project.env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (127, "cannot start no-such-agent: No such file or directory\n")


def test_a_folder_for_temporary_files_is_always_there(project: Project, tmp_path: Path) -> None:
    project.env["TMPDIR"] = str(tmp_path)
    assert project.run('mktemp -d >/dev/null && echo "$TMPDIR"').stdout == "/tmp\n"
    project.env["TMPDIR"] = str(project.home)
    assert project.run('mktemp -d >/dev/null && echo "$TMPDIR"').stdout == f"{project.home}\n"


@pytest.mark.parametrize(
    ("kind", "reason", "in_force"),
    [("auto", "", "bwrap"), ("auto", "none", "off"), ("off", "", "off"), ("bwrap", "", "bwrap")],
)
def test_what_is_in_force(
    project: Project, monkeypatch: pytest.MonkeyPatch, kind: module.SandboxKind, reason: str, in_force: str
) -> None:
    monkeypatch.setattr(module, "_probed", lambda: Availability(reason))
    sandbox = Sandbox(kind)
    assert sandbox.in_force == in_force
    argv = sandbox.argv(["agent"], project.workspace, project.state, project.attempt)
    assert (argv == ["agent"]) == (in_force == "off")


def test_a_required_sandbox_that_is_missing_is_an_error(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_probed", lambda: Availability("there is no program bwrap"))
    with pytest.raises(AgentError, match="no sandbox: there is no program bwrap; repair that, or set `sandbox: off`"):
        Sandbox("bwrap").argv(["agent"], project.workspace, project.state, project.attempt)


@pytest.mark.parametrize("path", ["", "/nowhere"])
def test_the_probe_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setenv("PATH", path)
    module._probed.cache_clear()
    try:
        assert Sandbox().available() == Availability("there is no program bwrap; install the package bubblewrap")
    finally:
        monkeypatch.undo()
        module._probed.cache_clear()
