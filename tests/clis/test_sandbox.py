"""The real agent CLIs in the sandbox of backedge: they start, edit, report, and reach nothing that they should not."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from backedge.adapters.evidence.sandbox import Sandbox
from tests.clis.model import Call, Model, Text, Turn, model
from tests.clis.parts import environment, needs
from tests.clis.test_run import command

MODELS = {"gemini": "gemini-2.5-flash", "opencode": "anthropic/claude-sonnet-4-5"}
FORBIDDEN = "ls .backedge; sh -c 'echo forged > .git/hooks/pre-commit; echo forged > /usr/forged'"
"""In a shell of its own: claude reads the command, and asks before it touches what it knows to be sensitive."""


@pytest.fixture(autouse=True)
def bubblewrap() -> None:
    """Skip where there is no sandbox; fail where there has to be one."""
    why = Sandbox().available().reason
    if why and os.environ.get("BACKEDGE_REQUIRE_SANDBOX") == "1":
        pytest.fail(why)
    elif why:
        pytest.skip(why)


class Sandboxed:
    """A repository with one step, whose agent is a CLI in the sandbox."""

    def __init__(self, cli: str, script: Model, folder: Path, **options: str) -> None:
        needs(cli)
        self.cli, self.script = cli, script
        self.work, self.home = folder / "work", folder / "home"
        self.work.mkdir()
        given = {"model": MODELS[cli], **options} if cli in MODELS else options
        step = {"phase": "code", "agent": cli, "writes": ["*.txt"], "timeout": "90s", **given}
        workflow = {"name": "greeting", "sandbox": "bwrap", "limits": {"errors_in_a_row": 1}, "steps": {"code": step}}
        (self.work / "backedge.yaml").write_text(json.dumps(workflow))
        (self.work / ".gitignore").write_text(".backedge/\n")
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
            subprocess.run([*git, *words], cwd=self.work, check=True)
        self.env = {**environment(cli, script, self.home), "XDG_STATE_HOME": str(folder / "state")}

    @property
    def write(self) -> Call:
        file = str(self.work / "greeting.txt")
        return {
            "claude": Call("Write", {"file_path": file, "content": "hello\n"}),
            "codex": self.shell("echo hello > greeting.txt"),
            "gemini": Call("write_file", {"file_path": file, "content": "hello\n"}),
            "opencode": Call("write", {"filePath": file, "content": "hello\n"}),
        }[self.cli]

    def shell(self, script: str) -> Call:
        if self.cli == "codex":
            return Call("exec_command", {"cmd": script})
        named = "Bash" if self.cli == "claude" else "bash"
        return Call(named, {"command": script, "description": "try it"})

    @property
    def done(self) -> Turn:
        answer: dict[str, object] = {"output": {"files": 1}, "summary": "wrote it"}
        if self.cli == "claude":
            return Call("StructuredOutput", answer)
        if self.cli == "codex":
            strict = {"output": '{"files": 1}', "summary": "wrote it", "resolutions": None, "feedback": None}
            return Text(json.dumps(strict))
        return Text(f"It is done.\n```json\n{json.dumps(answer)}\n```")

    def run(self, *turns: Turn) -> dict[str, Any]:
        self.script.says(*turns)
        done = subprocess.run(
            command("run", "--json"),
            cwd=self.work,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    def evidence(self) -> dict[str, Any]:
        """What was recorded about the attempt."""
        done = subprocess.run(
            command("audit", "export"), cwd=self.work, env=self.env, capture_output=True, text=True, check=True
        )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        found: dict[str, Any] = next(each["evidence"] for each in events if "evidence" in each)
        return found


@pytest.mark.parametrize("cli", ["claude", "codex", "gemini", "opencode"])
def test_a_cli_edits_its_workspace_and_reports_from_the_sandbox(cli: str, tmp_path: Path) -> None:
    with model() as script:
        options = {"permission_mode": "danger-full-access"} if cli == "codex" else {}
        bench = Sandboxed(cli, script, tmp_path, **options)
        report = bench.run(bench.write, bench.done)
    assert report["outcome"] == "done"
    assert report["steps"]["code"]["output"] == {"files": 1}
    assert (bench.work / "greeting.txt").read_text() == "hello\n"
    seen = bench.evidence()
    assert (seen["sandbox"], seen["files"]) == ("bwrap", ["greeting.txt"])


@pytest.mark.parametrize(
    ("cli", "options"),
    [
        ("claude", {"allowed_tools": ["Write", "Bash"]}),
        ("codex", {"permission_mode": "danger-full-access"}),
        ("codex", {"permission_mode": "workspace-write"}),
        ("opencode", {}),
    ],
    ids=["claude", "codex", "codex in its own sandbox", "opencode"],
)
def test_the_shell_of_a_cli_reaches_nothing_that_would_outlive_it(
    cli: str, options: dict[str, Any], tmp_path: Path
) -> None:
    with model() as script:
        bench = Sandboxed(cli, script, tmp_path, **options)
        # Codex has no sandbox of its own if its settings lie in the folder for temporary files, as here.
        bench.env["TMPDIR"] = "/var/tmp"
        bench.run(bench.shell(f"echo hello > greeting.txt; {FORBIDDEN}"), bench.done)
        told = script.asked_text(1)
    assert (bench.work / "greeting.txt").read_text() == "hello\n", told[-3000:]
    assert told.count("Read-only file system") >= 2
    assert "journal.db" not in told
    assert not (bench.work / ".git" / "hooks" / "pre-commit").exists()
    assert not Path("/usr/forged").exists()


def test_codex_commits_only_without_its_own_sandbox(tmp_path: Path) -> None:
    commit = "echo hello > a.txt; git add a.txt; git -c user.name=a -c user.email=a@b commit -qm second"
    logs = {}
    for mode in ("workspace-write", "danger-full-access"):
        (tmp_path / mode).mkdir()
        with model() as script:
            bench = Sandboxed("codex", script, tmp_path / mode, permission_mode=mode)
            bench.env["TMPDIR"] = "/var/tmp"
            bench.run(bench.shell(commit), bench.done)
        logs[mode] = subprocess.run(
            ["git", "log", "--format=%s"], cwd=bench.work, capture_output=True, text=True
        ).stdout
    assert logs == {"workspace-write": "first\n", "danger-full-access": "second\nfirst\n"}
