"""Measures how long the server takes for the pages of a large run: 200 steps and 5,000 events.

    python tools/measure_pages.py [TIMES]

It executes the run, serves its journal, and asks for every page and part several times, one after the other. It prints the
median wall and processor time of the answers after the first one, and their sizes. The processor time is that of the server
and of the client, so it says the same on a loaded machine. The first answer folds the whole run.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import httpx  # noqa: E402
from tests.web.large_run import large_workflow  # noqa: E402

from backedge import Engine  # noqa: E402
from backedge.project import Project  # noqa: E402
from backedge.web.pages.run import PARTS  # noqa: E402
from backedge.web.server import Serving, listening, served  # noqa: E402

RUN = "/runs/r-large"
PAGES = (RUN, f"{RUN}?at=2500", f"{RUN}?step=s50", "/", "/runs", "/report")
FRAGMENTS = (
    *(f"{RUN}/part/{part}" for part in PARTS),
    f"{RUN}/part/timeline?attempts=400",
    f"{RUN}/part/loops?loops=50",
    f"{RUN}/part/events?before=2500",
    f"{RUN}/part/graph?at=2500",
    f"{RUN}/part/step/s50",
    "/part/inbox",
    "/part/runs",
)
ANSWERS = ("/api/v1/runs/r-large", "/api/v1/runs/r-large/graph.svg", "/api/v1/runs/r-large/events?after=4000")


async def _measure(client: httpx.AsyncClient, paths: Sequence[str], times: int) -> None:
    for path in paths:
        taken, worked, size = list[float](), list[float](), 0
        for _ in range(times + 1):
            began, cpu = time.perf_counter(), time.process_time()
            answer = await client.get(path, headers={"Accept": "text/html, application/json"})
            taken.append(1000 * (time.perf_counter() - began))
            worked.append(1000 * (time.process_time() - cpu))
            size = len(answer.content)
            assert answer.status_code == 200, (path, answer.status_code)
        wall, cpu = median(taken[1:]), median(worked[1:])
        print(f"{path:44} {wall:7.1f} ms, {cpu:6.1f} ms of processor time, first {worked[0]:6.1f}; {size:9,} bytes")


async def main(times: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = Project(folder, folder / "journal.db")
        async with Engine(project.journal) as engine:
            run = await engine.start(large_workflow(), run="r-large")
            await run.at_rest()
            print(f"{len(await run.events())} events, {len((await run.state()).steps)} steps")
        sock = listening("127.0.0.1", 0)
        async with (
            Engine(project.journal) as engine,
            served(engine, project, "ann", Serving(), lambda _: None, sock) as address,
        ):
            base, _, fragment = address.partition("/#")
            bearer = {"Authorization": f"Bearer {fragment.removeprefix('token=')}"}
            async with httpx.AsyncClient(base_url=base, headers=bearer, timeout=60) as client:
                for title, paths in (("pages", PAGES), ("fragments", FRAGMENTS), ("answers", ANSWERS)):
                    print(f"\n{title}")
                    await _measure(client, paths, times)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
