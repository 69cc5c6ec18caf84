"""Measures whether people who watch a run slow it down.

    python tools/measure_watchers.py [WATCHERS] [STEPS]

A run of short steps is executed three times: alone, by a process that also serves its page to many watchers (`run --serve`),
and by a process of its own while another one serves them (`run` and `serve`). The watchers are one more process, which reads
as fast as it can. It prints the wall time and the processor time of the process that executes the run.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STEP = 0.05
"""Seconds that a step works. An agent takes a thousand times as long: this is the worst case."""


async def _run(engine: Any, steps: int) -> tuple[float, float]:
    from backedge import Step, Workflow

    async def work(_: Any) -> str:
        await asyncio.sleep(STEP)
        return "done"

    first = Step("s0", work)
    flow = Workflow("watched", steps=[first, *(Step(f"s{n}", work, needs=f"s{n - 1}") for n in range(1, steps))])
    wall, cpu = time.monotonic(), time.process_time()
    report = await (await engine.start(flow, run="r-watched")).result()
    assert report.outcome == "done", report.outcome
    return time.monotonic() - wall, time.process_time() - cpu


async def _execute(folder: Path, steps: int, serve: bool) -> None:
    """Execute the run, and print what it took."""
    from contextlib import AsyncExitStack

    from backedge import Engine
    from backedge.project import Project
    from backedge.web.server import Serving, listening, served

    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(Engine(folder / "journal.db"))
        if serve:
            sock = listening("127.0.0.1", 0)
            project = Project(folder, folder / "journal.db")
            address = served(engine, project, "ann", Serving(), lambda _: None, sock)
            print(await stack.enter_async_context(address), flush=True)
        else:
            print("-", flush=True)
        await asyncio.to_thread(sys.stdin.readline)  # the watchers are there
        wall, cpu = await _run(engine, steps)
        await asyncio.sleep(1.0 if serve else 0.0)  # the last events are still being sent
        print(json.dumps([wall, cpu]), flush=True)


async def _watch(address: str, watchers: int) -> None:
    """Read the events of the run until it ends, as many times at once; then print how many each has read."""
    base, _, fragment = address.partition("/#")
    host, port = base.removeprefix("http://").split(":")
    token = fragment.removeprefix("token=")
    ready, all_ready = 0, asyncio.Event()

    async def watch() -> int:
        nonlocal ready
        seen, began = 0, False
        while True:
            reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 20)
            head = f"Host: {host}:{port}\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\nLast-Event-ID: {seen}"
            path = "/api/v1/runs/r-watched/events" if began else "/api/v1/inbox/events"
            writer.write(f"GET {path} HTTP/1.1\r\n{head}\r\n\r\n".encode())
            async for line in reader:
                if line.startswith(b"id: ") and began:
                    seen = int(line[4:])
                elif line.startswith(b"data: ") and not began:
                    # The inbox is there: the server is up. The run does not exist yet, so look until it does.
                    ready += 1
                    if ready == watchers:
                        all_ready.set()
                    began = True
                    break
                elif b"run_ended" in line:
                    return seen
                elif line.startswith(b"HTTP/1.1 404"):
                    await asyncio.sleep(0.1)
                    break
            writer.close()

    async def tell() -> None:
        await all_ready.wait()
        print("ready", flush=True)

    async with asyncio.TaskGroup() as group:
        group.create_task(tell())
        tasks = [group.create_task(watch()) for _ in range(watchers)]
    print(json.dumps(sorted({task.result() for task in tasks})), flush=True)


def _child(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _measure(how: str, watchers: int, steps: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as name:
        executes = _child("execute", name, steps, "serve" if how == "together" else "alone")
        address = _line(executes)
        serves = None
        if how == "apart":
            serves = subprocess.Popen(
                [sys.executable, "-m", "backedge.cli.main", "serve", "--port", "0", "--journal", f"{name}/journal.db"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            address = _line(serves)
        watches = _child("watch", address, watchers) if how != "alone" else None
        if watches is not None:
            assert _line(watches) == "ready"
        assert executes.stdin is not None
        executes.stdin.write("\n")
        executes.stdin.flush()
        wall, cpu = json.loads(_line(executes))
        if watches is not None:
            read = json.loads(_line(watches))
            assert len(read) == 1, f"the watchers have read different numbers of events: {read}"
            watches.wait()
        executes.wait()
        if serves is not None:
            serves.terminate()
            serves.wait()
        return wall, cpu


def main(words: list[str]) -> int:
    if words[:1] == ["execute"]:
        asyncio.run(_execute(Path(words[1]), int(words[2]), words[3] == "serve"))
    elif words[:1] == ["watch"]:
        asyncio.run(_watch(words[1], int(words[2])))
    else:
        watchers, steps = (int(word) for word in [*words, "200", "100"][:2])
        alone = _measure("alone", 0, steps)
        print(f"alone            {alone[0]:6.2f} s, {alone[1]:5.2f} s of processor time")
        for how, said in (("apart", "run and serve"), ("together", "run --serve")):
            wall, cpu = _measure(how, watchers, steps)
            print(
                f"{said:15}  {wall:6.2f} s, {cpu:5.2f} s of processor time: {wall / alone[0]:.2f} times as long with "
                f"{watchers} watchers"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
