"""backedge itself, on its SQLite journal with its default durability, through its public API."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import backedge as be
from backedge.core.briefing import Briefing
from bench import workload
from bench.engine import Engine, Unsupported


class Ours(Engine):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._runner = asyncio.Runner()
        self._rounds = workload.ROUNDS_PER_RUN
        self._on_round: Callable[[], None] = lambda: None
        self._went_on: dict[str, float] = {}
        self._plain = self._workflow({})
        # The second failing review escalates: the run waits for a person after one round of rework.
        self._asking = self._workflow({"rounds_per_loop": workload.ROUNDS_BEFORE_WAITING - 1})
        self._engine = self._runner.run(self._opened())
        self._parked: dict[str, be.Run] = {}

    async def _opened(self) -> be.Engine:
        return await be.Engine(self.folder / "journal.db", max_parallel=10_000).__aenter__()

    def _workflow(self, limits: dict[str, object]) -> be.Workflow:
        async def plan(brief: Briefing) -> dict[str, Any]:
            return workload.plan()

        async def implement(brief: Briefing) -> dict[str, Any]:
            self._went_on[brief.run] = time.monotonic()
            return workload.implement(brief.attempt)

        async def review(brief: Briefing) -> dict[str, Any]:
            said = workload.review(brief.attempt, self._rounds)
            if said["verdict"] == "fail":
                self._on_round()
            return said

        async def test(brief: Briefing) -> dict[str, Any]:
            return workload.test()

        return be.Workflow(
            "bench",
            [
                be.Step("plan", plan, idempotent=True),
                be.Step("implement", implement, needs="plan", idempotent=True),
                be.Step("review", review, reviews="implement", idempotent=True),
                be.Step("test", test, tests="implement", needs="review", idempotent=True),
            ],
            limits=limits,
        )

    def run_each(self, runs: Sequence[str]) -> None:
        async def one_after_another() -> None:
            for run in runs:
                await self._to_the_end(run)

        self._runner.run(one_after_another())

    def run_together(self, runs: Sequence[str]) -> None:
        async def together() -> None:
            await asyncio.gather(*(self._to_the_end(run) for run in runs))

        self._runner.run(together())

    async def _to_the_end(self, name: str, workflow: be.Workflow | None = None) -> None:
        run = await self._engine.start(workflow or self._plain, run=name)
        if await run.at_rest() != "verified":
            raise RuntimeError(f"run {name} is {(await run.report()).outcome}, expected verified")
        await run.release()

    def run_rounds(self, run: str, rounds: int, on_round: Callable[[], None]) -> None:
        names = ("rounds_total", "rounds_per_loop", "same_finding", "no_change")
        self._rounds, self._on_round = rounds, on_round
        self._runner.run(self._to_the_end(run, self._workflow(dict.fromkeys(names, rounds + 1))))
        self._rounds, self._on_round = workload.ROUNDS_PER_RUN, lambda: None

    def park(self, runs: Sequence[str]) -> None:
        async def park_all() -> None:
            for name in runs:
                self._parked[name] = await self._engine.start(self._asking, run=name)
            await asyncio.gather(*(self._parked[name].at_rest() for name in runs))

        self._runner.run(park_all())

    def decide(self, run: str) -> float:
        return self._runner.run(self._decided(self._parked.pop(run)))

    async def _decided(self, run: be.Run) -> float:
        began = time.monotonic()
        await run.decide("E-1", workload.DECISION)
        await run.at_rest()
        await run.release()
        return self._went_on[run.id] - began

    def resume_all(self) -> int:
        async def finish(name: str) -> None:
            run = await self._engine.resume(name, self._asking)
            await run.decide("E-1", workload.DECISION)
            await run.at_rest()
            await run.release()

        async def finish_all() -> int:
            waiting = [head.run for head in await self._engine.runs() if head.outcome == "waiting"]
            await asyncio.gather(*(finish(name) for name in waiting))
            return len(waiting)

        return self._runner.run(finish_all())

    def await_outsider(self, run: str) -> float:
        async def until_ended() -> float:
            held = self._parked.pop(run)
            while (await held.at_rest()) == "waiting":
                await held.changed()
            await held.release()
            return self._went_on[run]

        return self._runner.run(until_ended())

    def decide_outside(self, run: str) -> None:
        async def decide() -> None:
            await (await self._engine.find(run)).decide("E-1", workload.DECISION)

        self._runner.run(decide())

    def help_command(self) -> Sequence[str]:
        command = Path(sys.executable).with_name("backedge")
        if not command.exists():
            raise Unsupported("there is no command line yet")
        return [str(command), "--help"]

    def close(self) -> None:
        self._runner.run(self._engine.close())
        self._runner.close()


def open_engine(folder: Path, variant: str) -> Engine:
    return Ours(folder)
