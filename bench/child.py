"""What a scenario has done in a fresh process: `python -m bench.child ENGINE ACTION FOLDER COUNT`.

Prints one JSON object per answer. Moments are `time.monotonic()`, which all processes of a machine share.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from bench.engine import Engine, Unsupported
from bench.engines import open_engine

WARM_UP = 5
MARKER = "marker"


def spawn(
    engine: str, action: str, folder: Path, count: int = 0, tracer: list[str] | None = None
) -> subprocess.Popen[str]:
    command = [*(tracer or []), sys.executable, "-m", "bench.child", engine, action, str(folder), str(count)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answer(child: subprocess.Popen[str]) -> dict[str, Any]:
    """The child's next answer. Raises Unsupported if that is what it says."""
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise RuntimeError(f"the child process ended with code {child.wait()} and without an answer")
    said: dict[str, Any] = json.loads(line)
    if "unsupported" in said:
        raise Unsupported(said["unsupported"])
    return said


def say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


def mark(folder: Path) -> None:
    """Leave a trace between the fsyncs that the tracer sees."""
    with (folder / MARKER).open("w") as file:
        os.fsync(file.fileno())


def first_run(engine: Engine, count: int) -> None:
    engine.run_each(["first"])
    say(ended=time.monotonic())


def park(engine: Engine, count: int) -> None:
    engine.park([f"waiting-{number}" for number in range(count)])
    say(parked=count)


def resume(engine: Engine, count: int) -> None:
    resumed = engine.resume_all()
    say(ended=time.monotonic(), resumed=resumed)


def trace(engine: Engine, count: int) -> None:
    engine.run_each([f"warm-{number}" for number in range(WARM_UP)])
    mark(engine.folder)
    engine.run_each([f"traced-{number}" for number in range(count)])
    mark(engine.folder)
    say(traced=count)


def decide(engine: Engine, count: int) -> None:
    """Decide for every run named on stdin."""
    say(ready=True)
    for line in sys.stdin:
        began = time.monotonic()
        engine.decide_outside(line.strip())
        say(began=began)


ACTIONS = {action.__name__: action for action in (first_run, park, resume, trace, decide)}


def main(name: str, action: str, folder: str, count: str) -> NoReturn:
    try:
        ACTIONS[action](open_engine(name, Path(folder)), int(count))
    except Unsupported as reason:
        say(unsupported=str(reason))
    # Nothing is closed: a process that waits for people ends like this, and threads of theirs would hold it back.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
