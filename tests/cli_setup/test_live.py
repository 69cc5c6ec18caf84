"""What a terminal shows of a run, and what everything else gets: plain lines."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from backedge.cli.live import Lines, view_on
from backedge.cli.live_frame import frame
from backedge.core.commands import Pause
from backedge.core.model import Finding, Severity, Usage
from backedge.core.workflow.limits import Limits
from backedge.reading.attempt_log import Log
from tests.cli_setup.parts import asked, backedge, story
from tests.core.play import Play, failed, flow, out, step

STEPS = (
    step("plan", phase="planning"),
    step("code", "plan", phase="code"),
    step("review", reviews="code"),
    step("test", tests="code"),
)


def rows(
    play: Play, width: int = 80, height: int = 24, log: tuple[str, ...] = (), now: float | None = None
) -> list[str]:
    console = Console(width=width, height=height, file=StringIO(), highlight=False)
    with console.capture() as captured:
        console.print(frame(play.s, play.now if now is None else now, "code, attempt 2", log, width, height))
    return captured.get().splitlines()


def under_way() -> Play:
    """A loop in its first round, with a budget that is nearly used up."""
    play = Play(
        flow(*STEPS, limits=Limits(cost_usd=1.0, wall_clock=7200)), {"plan": [out(1, usage=Usage(cost_usd=0.9))]}
    )
    play.finish("plan")
    play.finish("code")
    play.finish("review", failed(Finding("no \x1b[31mlogin\x1b[0m", file="a.py", line=3)))
    play.finish("test")
    return play


def test_the_frame_shows_the_state_of_the_run() -> None:
    play = under_way()
    told = rows(play, log=("thinking", "writing"), now=play.now + 5)
    assert re.fullmatch(r"── w r ─+ running, 9 s of 2 h 0 min ──", told[0])
    assert told[1].split() == ["planning", "✓", "plan"]
    assert told[2].rstrip() == " ╭▶ code      ▸ code      attempt 2 · reworks L-1 · 5 s"
    assert told[3].rstrip() == " ╰─           ✗ ◆ review  fail · F-1"
    assert told[5].rstrip() == "  ↩ L-1 code ◄── review  round 1 of 5"
    assert told[6] == "      F-1 high  a.py:3 no login"
    assert told[7] == "  findings 1 open   $0.90 of $1.00   5 attempts"
    assert told[8].startswith("── code, attempt 2 ──")
    assert told[9:] == ["thinking", "writing"]


def test_a_question_to_a_person_shows_how_to_answer_it() -> None:
    play = Play(flow(*STEPS, limits=Limits(rounds_per_loop=1)), {"review": [failed("x")]}).run()
    told = rows(play, width=140)
    assert "waits for a person" in told[0]
    assert any("? E-1 about L-1: limit rounds_per_loop (1/1)" in row for row in told)
    assert any("backedge decide E-1 revise|continue|" in row and "--run r" in row for row in told)


def test_a_narrow_terminal_gets_more_rows_and_no_truncated_command() -> None:
    play = Play(flow(*STEPS, limits=Limits(rounds_per_loop=1, cost_usd=1.0)), {"review": [failed("x")]}).run()
    told = [row.strip() for row in rows(play, width=48)]
    assert "↩ L-1 code ◄── review  1 of 1 round used" in told
    assert "backedge decide E-1 --run r" in told
    narrower = [row.strip() for row in rows(play, width=32)]
    assert any(row.startswith("findings 1 open") and "attempts" not in row for row in narrower)
    assert any(row.endswith("attempts") for row in narrower)


def test_a_waiting_step_names_what_it_needs_and_a_pause_names_the_person() -> None:
    play = Play(flow(*STEPS))
    told = [row.strip() for row in rows(play)]
    assert told[2].split() == ["code", "·", "code", "←", "plan"]
    assert told[3].split() == ["·", "◆", "review", "reviews", "code"]
    play.finish("plan")
    play.finish("code")
    play.finish("review", failed(Finding("no login", severity=Severity.CRITICAL)))
    play.finish("test")
    assert "L-1 first" in rows(play)[0]
    play.do(Pause(by="ann"))
    assert "paused by ann" in rows(play)[0]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 40), (40, 12), (20, 6), (300, 100)])
def test_the_frame_never_leaves_the_terminal(width: int, height: int) -> None:
    many = tuple(step(f"step_{n}", *([f"step_{n - 1}"] if n else []), phase="code") for n in range(60))
    crowd = Play(flow(*many, step("judge", reviews="step_0"), step("検査", tests="step_0")))
    crowd.finish("step_0")
    crowd.finish("judge", failed(*(f"finding {n} {'長い' * 200}" for n in range(30))))
    for play in (crowd, under_way()):
        told = rows(play, width, height, log=tuple("x" * 500 for _ in range(50)))
        assert len(told) <= height - 1 if height > 7 else len(told) <= 6
        assert max(map(cell_len, told)) <= width


def test_many_steps_are_counted_and_the_busy_ones_are_named() -> None:
    many = tuple(step(f"step_{n}", *([f"step_{n - 1}"] if n else []), phase="code") for n in range(60))
    play = Play(flow(*many))
    play.finish("step_0")
    told = "\n".join(rows(play))
    assert "▸ step_1" in told
    assert re.search(r"… and (\d+ done, )?\d+ waiting", told)


def test_a_log_is_shown_by_its_end_and_cleaned(tmp_path: Path) -> None:
    log = Log(tmp_path, "r", "code", 1)
    assert (log.tail(3), list(log.news())) == ([], [])
    path = tmp_path / "attempts" / "r" / "code-1" / "log"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"one\n\x1b[2Jtwo\xff\n\nthr\xe2\x80\xaeee\nfo")
    assert log.tail(3) == ["two�", "thr\\u202eee", "fo"]
    assert list(log.news()) == ["one", "two�", "", "thr\\u202eee"]
    with path.open("ab") as file:
        file.write(b"ur\nfive")
    assert list(log.news()) == ["four"]
    assert list(log.news(last=True)) == ["five"]
    path.write_bytes(b"x" * 100_000 + b"\nlast\n")
    assert log.tail(3) == ["last"]


def test_lines_without_log_have_only_the_events(tmp_path: Path) -> None:
    said: list[str] = []
    view = Lines(said.append, tmp_path)
    play = under_way()
    view.load("r", play.events[:4])
    for event in play.events[4:]:
        view.tell("r", event)
    view.close()
    assert not any("▸ plan" in line for line in said)
    assert any("✗ review fails it: F-1 no login" in line for line in said)


def test_a_pipe_or_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(view_on(StringIO(), print, tmp_path), Lines)
    assert isinstance(view_on(Terminal(), print, tmp_path, plain=True), Lines)
    assert isinstance(view_on(Terminal(), print, tmp_path, log=True), Lines)
    assert not isinstance(view_on(Terminal(), print, tmp_path), Lines)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(view_on(Terminal(), print, tmp_path), Lines)


def its_terminal() -> None:
    """Make stdin the terminal whose Ctrl-C a process gets, as a shell does."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def on_a_terminal(folder: Path, *words: str, env: dict[str, str], ctrl_c_at: str = "", code: int = 0) -> str:
    """What a command writes to a terminal of 80 by 24; Ctrl-C is pressed when a given text appears."""
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES", "CI")}
    going = subprocess.Popen(
        [sys.executable, "-m", "backedge.cli.main", *words],
        cwd=folder,
        env={**clean, "TERM": "xterm-256color", **env},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=its_terminal,
    )
    before = termios.tcgetattr(mine)
    os.close(theirs)
    said, end = b"", time.monotonic() + 60
    with suppress(OSError):  # the other side was closed
        while time.monotonic() < end:
            if select.select([mine], [], [], 0.1)[0]:
                said += os.read(mine, 65536)
            if ctrl_c_at and ctrl_c_at in said.decode("utf-8", "replace"):
                os.write(mine, b"\x03")
                ctrl_c_at = ""
    assert termios.tcgetattr(mine) == before
    os.close(mine)
    if going.poll() is None and time.monotonic() >= end:
        going.kill()
    assert going.wait(10) == code
    return said.decode()


def test_a_terminal_shows_the_timeline_above_the_frame(tmp_path: Path) -> None:
    story(tmp_path)
    said = on_a_terminal(tmp_path, "run", "--run", "r-1", env={"SLOW": "0.5"})
    assert "── story r-1 ─" in re.sub(r"\x1b\[[0-9;]*m", "", said)
    assert "\x1b[?25l" in said
    assert said.rstrip().endswith("next: backedge show r-1") and "\x1b[?25h" in said
    assert re.search(r"\x1b\[3\dm", said)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said)
    assert "iteration 2 red" in plain


def test_ctrl_c_on_a_terminal_stops_cleanly_and_leaves_no_frame_behind(tmp_path: Path) -> None:
    story(tmp_path)
    env = {"SLOW": "30", "NO_COLOR": "1"}
    said = on_a_terminal(tmp_path, "run", "--run", "r-1", env=env, ctrl_c_at="iteration 1 red", code=130)
    assert said.endswith("interrupted; continue with `backedge resume r-1`\r\n")
    assert "stopping; press Ctrl-C again to stop at once\r\n" in said
    assert said.count("\x1b[?25l") == said.count("\x1b[?25h") == 1
    # The terminal's own ^C stands at the end of a row: it must not be the one that begins another.
    frames = re.findall(r"── [^\r\n]*", re.sub(r"\x1b\[[0-9;]*m", "", said))
    assert frames and max(map(cell_len, frames)) == 76
    assert asked(tmp_path, "show")["outcome"] == "running"


def test_no_colour_and_plain_are_respected_on_a_terminal(tmp_path: Path) -> None:
    story(tmp_path)
    said = on_a_terminal(tmp_path, "run", env={"NO_COLOR": "1", "SLOW": "0.5"})
    assert not re.search(r"\x1b\[(3|4|9)\d", said)
    assert "── story r-" in re.sub(r"\x1b\[[0-9;]*m", "", said)
    assert "\x1b" not in on_a_terminal(tmp_path, "run", "--plain", env={})


def test_the_log_of_the_agents_is_streamed_in_plain_lines(tmp_path: Path) -> None:
    story(tmp_path)
    said = backedge(tmp_path, "run", "--log").stderr.splitlines()
    lines = [line.strip() for line in said]
    assert lines.index("code │ iteration 1 red") < lines.index("code │ iteration 2 red")
    assert "code │ iteration 1 red" in [
        line.strip() for line in backedge(tmp_path, "watch", "--log").stdout.splitlines()
    ]
