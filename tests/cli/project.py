"""A project in a folder, driven as a stranger would: a workflow file, scripted agents, the installed command."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).parent / "backedge")
PYTHON = [sys.executable, "-I", "-S"]
NODE = shutil.which("node")
ESCAPES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What a terminal could take for an order."""

# An agent that plays its script: the reply of its attempt, the last one repeated. Keys with a bang are for itself.
AGENT = """\
import json, os, sys, time
step, attempt, run = os.environ["BACKEDGE_STEP"], int(os.environ["BACKEDGE_ATTEMPT"]), os.environ["BACKEDGE_RUN"]
here = os.path.dirname(os.path.abspath(__file__))
seen = here + ".seen"
log = os.open(os.path.join(seen, "executions"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(log, f"{run} {step} {attempt} {os.getpid()}\\n".encode())
told = sys.stdin.buffer.read()
with open(os.path.join(seen, "briefings", f"{run}.{step}.{attempt}.json"), "wb") as file:
    file.write(told)
with open(os.path.join(here, "scripts.json"), encoding="utf-8") as file:
    script = json.load(file).get(step, [{}])
reply = script[min(attempt, len(script)) - 1]
if "!child" in reply:
    import subprocess
    child = subprocess.Popen(["sleep", str(reply["!child"])])
    os.write(log, f"{run} {step} child {child.pid}\\n".encode())
if "!ignore" in reply:
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "!wait" in reply:
    while not os.path.exists(os.path.join(here, reply["!wait"])):
        time.sleep(0.01)
time.sleep(reply.get("!sleep", 0))
print(reply.get("!stderr", ""), end="", file=sys.stderr)
outcome = {key: value for key, value in reply.items() if not key.startswith("!")}
text = reply["!stdout"] if "!stdout" in reply else json.dumps(outcome)
if reply.get("!file"):
    with open(os.environ["BACKEDGE_OUTCOME"], "w") as file:
        file.write(text)
else:
    sys.stdout.write(text)
sys.stdout.flush()
sys.stderr.flush()
time.sleep(reply.get("!linger", 0))
os._exit(reply.get("!exit", 0))
"""

Reply = Mapping[str, Any]
Workflow = str | Mapping[str, Any]


def passed(**more: Any) -> Reply:
    return {"verdict": "pass", **more}


def failed(*findings: str | Mapping[str, Any], **more: Any) -> Reply:
    """A failing verdict; a text stands for a finding of high severity."""
    stated = [{"description": each} if isinstance(each, str) else each for each in findings]
    return {"verdict": "fail", "findings": stated, **more}


def raises(kind: str, *to: str, message: str = "mend it", **more: Any) -> dict[str, Any]:
    """One item of feedback."""
    return {"kind": kind, "to": list(to), "message": message, **more}


@dataclass(frozen=True)
class Said:
    """What the command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def sentence(self) -> str:
        """The complaint on stderr."""
        return self.err.strip()


class Result:
    """A report as `--json` prints it, with short ways to what tests look at."""

    def __init__(self, said: Said) -> None:
        self.code, self.err, self.report = said.code, said.err, said.json

    def __getattr__(self, name: str) -> Any:
        return self.report[name]

    @property
    def attempts(self) -> dict[str, int]:
        return {name: step["attempts"] for name, step in self.report["steps"].items()}

    @property
    def loop(self) -> dict[str, Any]:
        (only,) = self.report["loops"]
        return dict(only)

    @property
    def finding(self) -> dict[str, Any]:
        (only,) = self.report["findings"]
        return dict(only)

    @property
    def escalation(self) -> dict[str, Any]:
        """The one that is open."""
        (only,) = [each for each in self.report["escalations"] if each["decided"] is None]
        return dict(only)

    @property
    def breach(self) -> Any:
        """The limit, the count and the bound of the escalation that is open."""
        breach = self.escalation["breach"]
        return breach["limit"], breach["count"], breach["bound"]


class Project:
    """A folder with a workflow file and scripted agents."""

    def __init__(self, folder: Path, workflow: Workflow | None = None, **scripts: Sequence[Reply]) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        folder.mkdir(parents=True, exist_ok=True)
        self._seen = folder.with_name(f"{folder.name}.seen")
        """What the agents saw. It lies outside the workspace, where no step is held to its `writes`."""
        (self._seen / "briefings").mkdir(parents=True, exist_ok=True)
        (folder / "agent.py").write_text(AGENT)
        self.script(**scripts)
        if workflow is not None:
            self.write(workflow)

    def write(self, workflow: Workflow, name: str = "backedge.yaml") -> Path:
        """Write the workflow file: text as it is; a mapping with the scripted agent wherever a step names none."""
        path = self.folder / name
        if isinstance(workflow, str):
            path.write_text(workflow)
            return path
        agent = [*PYTHON, str(self.folder / "agent.py")]
        steps = {
            name: step if {"run", "agent", "agents"} & set(step) else {**step, "run": agent}
            for name, step in workflow["steps"].items()
        }
        path.write_text(json.dumps({"name": "w", **workflow, "steps": steps}, indent=1))
        return path

    def script(self, **scripts: Sequence[Reply]) -> None:
        """What the agents reply, by step and attempt."""
        (self.folder / "scripts.json").write_text(json.dumps(scripts))

    # The command

    def backedge(
        self, *args: object, stdin: str | None = None, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Said:
        done = subprocess.run(
            [COMMAND, *map(str, args)],
            cwd=cwd or self.folder,
            env=environment(env),
            input=stdin.encode() if stdin is not None else b"",
            capture_output=True,
            timeout=60,
        )
        said = Said(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8", "surrogateescape"))
        assert "Traceback" not in said.err, said.err
        return said

    def run(self, *args: object, **more: Any) -> Result:
        return Result(self.backedge("run", "--json", *args, **more))

    def resume(self, *args: object, **more: Any) -> Result:
        return Result(self.backedge("resume", "--json", *args, **more))

    def show(self, *args: object) -> Result:
        return Result(self.backedge("show", "--json", *args))

    def decide(self, *args: object, expected: int = 0) -> Said:
        said = self.backedge("decide", *args)
        assert said.code == expected, said
        return said

    def answer(self, *args: object) -> Result:
        """Decide, and go on."""
        self.decide(*args)
        return self.resume()

    def refused(self, *args: object, code: int = 2, **more: Any) -> str:
        """What a command complains that must fail: one helpful sentence, and nothing on stdout."""
        said = self.backedge(*args, **more)
        assert (said.code, said.out) == (code, ""), said
        assert said.sentence
        return said.sentence

    def started(self, *args: object, **more: Any) -> subprocess.Popen[bytes]:
        """The command in its own process, for tests of several at once."""
        process = subprocess.Popen(
            [COMMAND, *map(str, args)],
            cwd=self.folder,
            env=environment(more.get("env")),
            stdin=subprocess.DEVNULL,
            stdout=more.get("stdout", subprocess.PIPE),
            stderr=more.get("stderr", subprocess.PIPE),
        )
        self._started.append(process)
        return process

    # What the agents saw

    def briefings(self, step: str, run: str | None = None) -> list[dict[str, Any]]:
        """What each attempt of a step was told, in order."""
        found = (self._seen / "briefings").glob(f"{run or '*'}.{step}.*.json")
        return [json.loads(path.read_bytes()) for path in sorted(found, key=_attempt)]

    def told(self, step: str) -> list[list[str]]:
        """The findings that each attempt of a step was given to address."""
        return [[each["description"] for each in told["feedback"]["findings"]] for told in self.briefings(step)]

    def executions(self) -> list[tuple[str, str, str, int]]:
        """Every start of an agent: run, step, attempt and process."""
        try:
            lines = (self._seen / "executions").read_text().splitlines()
        except FileNotFoundError:
            return []
        rows = (line.rsplit(maxsplit=3) for line in lines)
        return [(run, step, attempt, int(pid)) for run, step, attempt, pid in rows]

    def wait_for_execution(self, step: str, count: int = 1) -> tuple[str, str, str, int]:
        """Wait until a step was started so many times."""
        found: tuple[str, str, str, int] = until(lambda: self._execution(step, count))
        return found

    def _execution(self, step: str, count: int) -> tuple[str, str, str, int] | None:
        found = [each for each in self.executions() if each[1] == step and each[2] != "child"]
        return found[count - 1] if len(found) >= count else None

    def living(self) -> list[int]:
        """The processes of agents, and their children, that are still there."""
        return [pid for *_, pid in self.executions() if alive(pid)]

    def events(self, *args: object) -> list[dict[str, Any]]:
        said = self.backedge("audit", "export", *args)
        assert said.code == 0, said
        return [json.loads(line) for line in said.out.splitlines()]

    def end_agents(self) -> None:
        for pid in self.living():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def end_all(self) -> None:
        """Leave nothing behind, whatever a test did."""
        for process in self._started:
            if process.poll() is None:
                killed(process)
        self.end_agents()


def killed(process: subprocess.Popen[bytes]) -> None:
    """kill -9, and its end."""
    process.kill()
    process.communicate(timeout=30)


def finished(process: subprocess.Popen[bytes], within: float = 30) -> Said:
    out, err = process.communicate(timeout=within)
    said = Said(process.returncode, (out or b"").decode(), (err or b"").decode("utf-8", "surrogateescape"))
    assert "Traceback" not in said.err, said.err
    return said


def in_shell(line: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """A line of bash, for what only a shell can do to the command."""
    return subprocess.run(["bash", "-c", line], cwd=folder, env=environment(None), capture_output=True, timeout=60)


def until(look: Callable[[], Any], within: float = 20) -> Any:
    """Wait until something is the case; returns it."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {within} s: {look}")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with suppress(OSError):
        # What has ended and was not waited for yet is not alive.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return Path(f"/proc/{pid}").exists() or not Path("/proc/self").exists()


def environment(more: Mapping[str, str] | None) -> dict[str, str]:
    ours = {key: value for key, value in os.environ.items() if not key.startswith(("BACKEDGE_", "PYTEST_", "COLOR"))}
    # Compiled files are kept between the many starts of the command, as on any machine.
    for key in ("NO_COLOR", "FORCE_COLOR", "PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE"):
        ours.pop(key, None)
    # Agents of tests write outside their workspace what they did: a sandbox that is installed here must not stop them.
    return {**ours, "COLUMNS": "100", "BACKEDGE_SANDBOX": "off", **(more or {})}


def _attempt(path: Path) -> tuple[str, int]:
    run, _, attempt = path.stem.rsplit(".", 2)
    return run, int(attempt)
