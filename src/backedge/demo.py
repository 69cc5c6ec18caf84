"""`make demo`: builds a small repository, with real tests, a real linter, a crash and a question to you.

Only the agents are staged. They are scripts: a coder that first edits the test that fails, a planner that forgets a rule,
and a reviewer that tries the code. The loop around them is the product, used through its command line, with its default
settings: nothing tells it what the coder is going to do.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from backedge.project.missing import install_words

PATIENCE = 240.0
"""Seconds after which the demo gives up."""
NOTE = "Fix the code, not the test: use Decimal for money and round half up"
NEXT = (
    ("cd your-repository", ""),
    ("backedge doctor", "what is installed, and what is missing"),
    ("backedge init", "writes backedge.yaml with your agent CLI, tests and linters"),
    ("backedge check", "draws it, and says how many attempts a run makes"),
    ('backedge run --input task="your task"', "starts it; `backedge inbox` lists what waits for you"),
)
"""What to do after the demo."""
INSTALL = ("pip install .", "here, in the clone: then `backedge` is a command")
"""What to do before that, after `make demo`."""
AGENTS = ("plan.py", "code.py", "review.py")


class Tools(NamedTuple):
    python: str
    ruff: str


class Failed(Exception):
    """The demo did not go as planned; the message says where."""


def main(keep: bool = False, serve: bool = False) -> int:
    """Run the demo. Returns 0 only if the run really ended verified. With `serve` it then shows the run in a browser until it
    is interrupted."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    tools = _tools()
    if isinstance(tools, str):
        print(tools, file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="backedge-demo-"))
    from backedge.demo_backlog import BacklogDemo

    demo = Demo(console, folder / "till", tools)
    backlog = BacklogDemo(console, folder / "backlog", tools)
    try:
        code = demo.told() or backlog.told()
        if not code:
            _what_next(console)
            _page(console, folder / "till", serve)
        return code
    except KeyboardInterrupt:
        console.print("\nThe demo was interrupted.")
        return 130
    except Failed as error:
        console.print(f"\nThe demo failed: {error}. The folder {folder} is kept.")
        keep = True
        return 1
    finally:
        demo.end()
        backlog.end()
        if keep:
            console.print("\nThe folder of the demo is kept. To explore it:")
            console.print(f"  cd {folder / 'till'}")
            console.print("  backedge show; backedge show --diff; backedge logs; git log")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _what_next(console: Console) -> None:
    """Say how to begin in a repository of one's own."""
    console.print("\n── Now in your own repository ", style="bold")
    for command, why in NEXT if shutil.which("backedge") else (INSTALL, *NEXT):
        console.print(f"  {command:<38} {why}".rstrip())


def _page(console: Console, folder: Path, serve: bool) -> None:
    """Offer the web page of the run, or start it and wait until it is interrupted."""
    console.print("\n── The run in your browser ", style="bold")
    if not serve:
        again = "backedge demo --serve" if shutil.which("backedge") else "make demo SERVE=1"
        console.print(f"  {again:<38} the same, and then the page of this run")
        return
    if find_spec("starlette") is None:
        console.print("  The page needs more packages: pip install 'backedge[serve]'")
        return
    command = [sys.executable, "-m", "backedge", "serve", "--port", "0"]
    going = subprocess.Popen(command, cwd=folder, text=True)
    try:
        going.wait()
    except KeyboardInterrupt:
        going.send_signal(signal.SIGINT)
        going.wait()


def _tools() -> Tools | str:
    """The tools of the demo, first those next to this Python; an error message if one is missing."""
    ruff = shutil.which("ruff", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    has_pytest = (
        subprocess.run([sys.executable, "-c", "import pytest"], capture_output=True, check=False).returncode == 0
    )
    missing = [
        name for name, there in (("git", shutil.which("git")), ("ruff", ruff), ("pytest", has_pytest)) if not there
    ]
    if missing:
        how = "; ".join(f"{name} is not installed: {install_words(name)}" for name in missing)
        return f"backedge: the demo needs git, pytest and ruff: {how}"
    return Tools(sys.executable, str(ruff))


def make_repository(folder: Path, tools: Tools) -> None:
    """Create the repository of the demo: a workflow, its agents and two tests."""
    shipped = files("backedge") / "demo_files"
    (folder / "agents").mkdir(parents=True)
    (folder / "tests").mkdir()
    for name in AGENTS:
        (folder / "agents" / name).write_text((shipped / "agents" / name).read_text("utf-8"), "utf-8")
    (folder / "tests" / "test_price.py").write_text((shipped / "test_price.py.txt").read_text("utf-8"), "utf-8")
    workflow = (shipped / "backedge.yaml").read_text("utf-8")
    for word, path in (("PYTHON", tools.python), ("RUFF", tools.ruff)):
        workflow = workflow.replace(f"[{word},", f"[{json.dumps(path)},")
    (folder / "backedge.yaml").write_text(workflow, "utf-8")
    (folder / ".gitignore").write_text(".backedge/\n__pycache__/\n", "utf-8")
    git = ["git", "-c", "user.name=demo", "-c", "user.email=demo@localhost"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "The task and its tests"]):
        done = subprocess.run([*git, *words], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"git {words[0]}: {done.stderr.strip()}")


class Demo:
    """One run of the demo, in its own folder."""

    def __init__(self, console: Console, folder: Path, tools: Tools) -> None:
        self._console, self._folder, self._tools = console, folder, tools
        self._began = time.monotonic()
        self._going: subprocess.Popen[str] | None = None
        # What backedge keeps out of the agents' reach goes with the demo.
        self._env = {**os.environ, "PYTHONUNBUFFERED": "1", "XDG_STATE_HOME": str(folder.parent / "state")}
        self._env.pop("PYTHONDONTWRITEBYTECODE", None)  # the command starts many times: compile it once

    def told(self) -> int:
        make_repository(self._folder, self._tools)
        self._title("A till: total(prices) and discounted(price, percent)")
        self._narrate(
            "A planner and a coder (scripts) work on a new repository. Three judges check the code: ruff, pytest",
            "and a reviewer that tries it out. Their findings go back to the step that caused them.",
        )
        self._shown("check")

        self._title("1. The first version comes back")
        self._narrate("The coder leaves an unused import and a rounding bug. Watch the lines that begin with ↩.")
        going = self._started("run", "--wait", "--plain")
        self._until(going, "▸ code (attempt 2)")

        self._title("2. kill -9 in the middle of the rework")
        self._at_work()
        going.kill()
        going.wait()
        self._narrate(f"The process {going.pid} that executed the run is dead. {self._coder()}")
        self._narrate("Resume: the attempt is adopted, not run again. No event was lost.")
        going = self._started("resume", "--wait", "--plain")
        self._until(going, "? E-1")

        self._title("3. The coder edited the test: it does not count")
        self._narrate(
            "The coder weakened the test that fails, and says that it fixed it. With that test everything passes.",
            "But backedge knows the tests of the start, and ran pytest with those too. From its journal:",
        )
        self._tampering()
        self._narrate(
            "So the finding is still open, a second time. The limit same_finding asks you. In a second terminal:"
        )
        self._shown("inbox")
        self._shown("decide", "E-1", "revise", "--note", NOTE, "--by", "you")
        self._narrate("The run in the first terminal continues at once, with this note in the coder's briefing.")
        self._until(going, "↩ L-3")

        self._title("4. A defect in the plan goes back to the plan")
        self._narrate(
            "The tests and the linter pass, but the reviewer finds that nothing limits a discount. That defect",
            "comes from planning, not from the code: the plan is reworked, and then everything that depends on it.",
        )
        self._until(going, None)

        self._title("5. The result")
        self._shown("show", "--diff", "--step", "plan")
        scratchpad = next((self._folder / ".backedge" / "runs").glob("*/feedback-scratchpad.md"))
        self._narrate(f"{scratchpad.name}, which every attempt can read:")
        self._console.print(Text(_indented(scratchpad.read_text("utf-8")), style="dim"))
        self._shown("audit", "verify")
        return self._ended(going.returncode)

    def _ended(self, code: int) -> int:
        report: dict[str, Any] = json.loads(self._asked("show", "--json"))
        events = self._events()
        self._in_force(report["evidence"])
        starts = [(event["step"], event["attempt"]) for event in events if event["type"].startswith("attempt_started")]
        if len(starts) != len(set(starts)):
            raise Failed("an attempt was started twice")
        usage, outcome = report["usage"], report["outcome"]
        style = "bold green" if outcome == "verified" and code == 0 else "bold red"
        self._console.print(Text(f"\n■ {outcome} (exit code {code})", style=style), end="")
        self._console.print(
            f": {usage['attempts']} attempts, none twice, {len(report['loops'])} loops, {len(events)} events, "
            f"${usage['cost_usd']:.2f} by the agents' own account, {time.monotonic() - self._began:.0f} s"
        )
        return 0 if outcome == "verified" and code == 0 else 1

    def _tampering(self) -> None:
        """Show what was recorded about the test that the coder changed. Without such a record, the demo has failed."""
        diff = subprocess.run(
            ["git", "diff", "--unified=0", "--", "tests"], cwd=self._folder, capture_output=True, text=True, check=False
        )
        for line in diff.stdout.splitlines():
            if line.startswith(("-    ", "+    ")):
                self._line(line)
        changes, answers, delivered = [], [], ""
        for event in self._events():
            seen = event.get("evidence", {})
            changes += [f"{event['step']} {each['change']} {each['file']}" for each in seen.get("changes", ())]
            if seen.get("held") and seen.get("tests"):
                counts = seen["tests"]
                delivered = (
                    f"{event['step']}, files as delivered: {counts['tests']} tests, {counts.get('failed', 0)} failed"
                )
            if event.get("step") == "test" and event["type"].startswith("attempt_succeeded"):
                answers += [f"{each['finding']} {each['status']}: {each['note']}" for each in event.get("claims", ())]
        if not changes or not delivered or not answers:
            raise Failed("the edited test was not noticed")
        for said in (changes[-1], delivered, answers[-1]):
            self._line(said)

    def _in_force(self, guards: Mapping[str, Any]) -> None:
        """Say what guarded this run: that depends on the machine."""
        rooms = {"overlay": "in an overlay of the files", "copy": "in a copy of the files"}
        tools = "the tools of the start" if guards["environment"] == "same" else "other tools than at the start"
        self._narrate(
            f"What was in force: the judges ran {rooms.get(guards['room'], 'in place')}, with {tools};",
            f"the agents ran {'in a sandbox (bubblewrap)' if guards['sandbox'] == 'bwrap' else 'without a sandbox'}.",
        )

    def _events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._asked("audit", "export").splitlines()]

    def _at_work(self) -> None:
        """Wait until the coder is working."""
        until = time.monotonic() + 20
        while not any(b"thinking" in log.read_bytes() for log in self._attempts("log")):
            if time.monotonic() > until:
                raise Failed("the coder did not start")
            time.sleep(0.05)

    def _attempts(self, name: str) -> list[Path]:
        return list((self._folder / ".backedge" / "attempts").glob(f"*/code-2/{name}"))

    def _coder(self) -> str:
        """What the process of the running attempt is doing."""
        pid = json.loads(self._attempts("process.json")[0].read_bytes())["pid"]
        try:
            os.kill(pid, 0)
        except OSError:
            return "The coder has just ended."
        return f"The coder (process {pid}) keeps working."

    def _started(self, *words: str) -> subprocess.Popen[str]:
        self._command(words)
        self._going = subprocess.Popen(
            self._argv(words),
            cwd=self._folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        return self._going

    def end(self) -> None:
        """Leave no process behind. A process that is asked to stop also stops its agents, and records that."""
        if self._going is None or self._going.poll() is not None:
            return
        self._going.terminate()
        try:
            self._going.wait(10)
        except subprocess.TimeoutExpired:
            self._going.kill()
            self._going.wait()

    def _until(self, going: subprocess.Popen[str], mark: str | None) -> None:
        """Print the output of a process until a line has the mark, or until the process ends."""
        assert going.stdout is not None
        # Kill a process that hangs, so that reading from it ends.
        left = PATIENCE - (time.monotonic() - self._began)
        signal.signal(signal.SIGALRM, lambda *_: going.kill())
        signal.setitimer(signal.ITIMER_REAL, max(1.0, left))
        try:
            for line in going.stdout:
                self._line(line.rstrip("\n"))
                if mark is not None and mark in line:
                    return
            going.wait()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if mark is not None or going.returncode < 0:
            raise Failed(f"it ended with exit code {going.returncode}{f' before {mark!r}' if mark else ''}")

    def _shown(self, *words: str) -> None:
        self._command(words)
        for line in self._asked(*words).rstrip().splitlines():
            self._line(line)

    def _asked(self, *words: str) -> str:
        done = subprocess.run(
            self._argv(words),
            cwd=self._folder,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode:
            raise Failed(f"backedge {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    @staticmethod
    def _argv(words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "backedge.cli.main", *words]

    def _command(self, words: tuple[str, ...]) -> None:
        quoted = " ".join(f'"{word}"' if " " in word else word for word in words)
        self._console.print(Text(f"\n  $ backedge {quoted}", style="bold"))

    def _line(self, line: str) -> None:
        styles = {"✓": "green", "✗": "red", "↩": "yellow", "?": "magenta", "●": "green", "■": "bold green", "▸": "cyan"}
        style = next((style for mark, style in styles.items() if f" {mark} " in line[:16]), "")
        self._console.print(Text(f"    {line}", style=style))

    def _title(self, text: str) -> None:
        self._console.print(Text(f"\n── {text} ", style="bold"))

    def _narrate(self, *lines: str) -> None:
        for line in lines:
            self._console.print(Text(line, style="italic"))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


if __name__ == "__main__":
    # Import it by name, so that all chapters share the same error class.
    from backedge.demo import main as tell

    raise SystemExit(tell("--keep" in sys.argv[1:], "--serve" in sys.argv[1:]))
