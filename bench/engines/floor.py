"""The floor: a bare append-only journal, the least that a durable run can cost in Python.

One SQLite file by apsw, in WAL mode and synchronous=FULL; a rowid table with a unique (run, seq) index; one msgspec
record of 700 to 1,100 bytes for every step. No rules, no hash chain, no checks: what an engine adds is what it costs.
A run commits once when it starts and once per step: nine times.

Two variants, both with group commit over the runs that are active:
- inline: what is waiting when the event loop comes round is committed on the loop itself;
- thread: a writer thread commits whatever has gathered while it made the last commit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import msgspec

from bench import workload
from bench.engine import Engine
from bench.journal import InlineWriter, ThreadWriter, Writer, connect

PADDED_TO = 700
"""Bytes of a record at least: what an engine notes of a step beside its output."""


class Record(msgspec.Struct, omit_defaults=True):
    kind: str
    run: str
    attempt: int
    content: dict[str, Any]
    at: float
    note: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Record).decode


@dataclass(slots=True)
class Run:
    """The folded state of one run."""

    name: str
    rounds: int = workload.ROUNDS_PER_RUN
    waits: bool = False
    seq: int = 0
    attempts: int = 0
    failed: int = 0
    findings: list[dict[str, Any]] = field(default_factory=list)
    decided: asyncio.Future[None] | None = None
    task: asyncio.Task[None] | None = None
    went_on: float = 0.0


def fold(records: Iterator[tuple[str, Record]]) -> dict[str, Run]:
    """The runs as their records leave them."""
    runs: dict[str, Run] = {}
    for name, record in records:
        run = runs.setdefault(name, Run(name))
        run.seq += 1
        match record.kind:
            case "implement":
                run.attempts = record.attempt
            case "review" if record.content["verdict"] == "fail":
                run.failed += 1
                run.findings = record.content["findings"]
            case "waiting":
                run.waits = True
            case "decided":
                run.waits = False
            case _:
                pass
    return runs


class Floor(Engine):
    def __init__(self, folder: Path, writer: Callable[[apsw.Connection, asyncio.AbstractEventLoop], Writer]) -> None:
        super().__init__(folder)
        self._runner = asyncio.Runner()
        self._db = connect(folder)
        self._writer = writer(self._db, self._runner.get_loop())
        self._parked: dict[str, Run] = {}

    def run_each(self, runs: Sequence[str]) -> None:
        async def one_after_another() -> None:
            for name in runs:
                await self._start(Run(name))

        self._runner.run(one_after_another())

    def run_together(self, runs: Sequence[str]) -> None:
        self._runner.run(_all(self._start(Run(name)) for name in runs))

    def run_rounds(self, run: str, rounds: int, on_round: Callable[[], None]) -> None:
        self._runner.run(self._start(Run(run, rounds=rounds), on_round))

    def park(self, runs: Sequence[str]) -> None:
        async def wait_for_all() -> None:
            loop = asyncio.get_running_loop()
            waiting = [Run(name, waits=True, decided=loop.create_future()) for name in runs]
            await _all(self._start_waiting(run) for run in waiting)
            for run in waiting:
                self._parked[run.name] = run
                run.task = loop.create_task(self._go_on(run))

        self._runner.run(wait_for_all())

    def decide(self, run: str) -> float:
        return self._runner.run(self._decide(self._parked.pop(run)))

    def resume_all(self) -> int:
        async def resume(run: Run) -> None:
            await self._append(run, "decided", {"decision": workload.DECISION})
            await self._continue(run)

        rows = self._db.execute("select run, body from journal order by rowid")
        waiting = [run for run in fold((name, _decode(body)) for name, body in rows).values() if run.waits]
        self._runner.run(_all(resume(run) for run in waiting))
        return len(waiting)

    def close(self) -> None:
        for run in self._parked.values():
            if run.task:
                run.task.cancel()
        self._writer.close()
        self._runner.close()
        self._db.close()

    async def _append(self, run: Run, kind: str, content: dict[str, Any]) -> None:
        run.seq += 1
        body = _encode(Record(kind, run.name, run.attempts, content, time.time()))
        if len(body) < PADDED_TO:
            body = _encode(Record(kind, run.name, run.attempts, content, time.time(), "." * (PADDED_TO - len(body))))
        await self._writer.append((run.name, run.seq, body))

    async def _start(self, run: Run, on_round: Callable[[], None] = lambda: None) -> None:
        await self._append(run, "started", {"workflow": "bench"})
        await self._append(run, "plan", workload.plan())
        await self._continue(run, on_round)

    async def _start_waiting(self, run: Run) -> None:
        await self._append(run, "started", {"workflow": "bench"})
        await self._append(run, "plan", workload.plan())
        while not workload.must_wait(run.failed, run.waits):
            await self._round(run)
        await self._append(run, "waiting", {"question": "two rounds made, go on?"})

    async def _decide(self, run: Run) -> float:
        assert run.decided is not None
        assert run.task is not None
        await asyncio.sleep(0)  # the task reaches its wait before the clock runs
        began = time.monotonic()
        await self._append(run, "decided", {"decision": workload.DECISION})
        run.decided.set_result(None)
        await run.task
        return run.went_on - began

    async def _go_on(self, run: Run) -> None:
        assert run.decided is not None
        await run.decided
        run.went_on = time.monotonic()
        await self._continue(run)

    async def _continue(self, run: Run, on_round: Callable[[], None] = lambda: None) -> None:
        while await self._round(run):
            on_round()
        await self._append(run, "test", workload.test())

    async def _round(self, run: Run) -> bool:
        """Implement and review once; whether the review failed."""
        run.attempts += 1
        await self._append(run, "implement", workload.implement(run.attempts))
        verdict = workload.review(run.attempts, run.rounds)
        await self._append(run, "review", verdict)
        run.findings = verdict["findings"]
        run.failed += verdict["verdict"] == "fail"
        return bool(verdict["verdict"] == "fail")


async def _all(coroutines: Iterator[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*coroutines)


def open_engine(folder: Path, variant: str) -> Engine:
    return Floor(folder, InlineWriter if variant == "inline" else ThreadWriter)
