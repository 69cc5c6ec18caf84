"""LangGraph with its SQLite checkpointers, as its documentation shows them.

The history of findings is a list in the state with a reducer; review sends the run on by `Command(goto=…)`; waiting is
`interrupt()` in a node of its own, answered by `Command(resume=…)`. A waiting run is nothing in memory: it lies in the
database until it is invoked again.

Durability is the default, "async": checkpoints are queued and written in the background. With agents that cost nothing
the graph runs far ahead of its disk (300 steps made, four of them stored), and `invoke` waits for the rest at its end.
So this peer is not durable at every step, and goes on after a decision before that is stored. Whole runs are timed to
their end, which includes the writing. Single rounds cannot be timed like that, so the long run alone uses
durability="sync", which takes about as long in all.
"""

from __future__ import annotations

import asyncio
import operator
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypedDict

import aiosqlite
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from bench import workload
from bench.engine import Engine

# There is no call that lists waiting threads. Checkpoint ids are ordered by time: the newest one has the interrupt.
WAITING = """
select distinct thread_id from writes where channel = '__interrupt__' and checkpoint_id =
(select max(checkpoint_id) from checkpoints where thread_id = writes.thread_id and checkpoint_ns = '')
"""


class State(TypedDict, total=False):
    rounds: int
    waits: bool
    attempts: int
    artifact: dict[str, Any]
    history: Annotated[list[dict[str, Any]], operator.add]
    decision: str


class Nodes:
    """The agents, and the moments that the scenarios want to know."""

    def __init__(self) -> None:
        self.on_round: Callable[[], None] = lambda: None
        self.implement_began = 0.0

    def plan(self, state: State) -> State:
        return {"artifact": workload.plan()}

    def implement(self, state: State) -> State:
        self.implement_began = time.monotonic()
        attempt = state.get("attempts", 0) + 1
        return {"attempts": attempt, "artifact": workload.implement(attempt)}

    def review(self, state: State) -> Command[Any]:
        attempt = state["attempts"]
        verdict = workload.review(attempt, state["rounds"])
        if verdict["verdict"] == "pass":
            return Command(goto="test")
        self.on_round()
        goto = "ask" if workload.must_wait(attempt, state["waits"]) else "implement"
        return Command(goto=goto, update={"history": [{"round": attempt, "findings": verdict["findings"]}]})

    def ask(self, state: State) -> State:
        return {"decision": interrupt({"question": "two rounds made, go on?"})}

    def test(self, state: State) -> State:
        return {"artifact": workload.test()}

    def graph(self, as_async: bool) -> StateGraph[Any, Any, Any, Any]:
        # A plain function would be sent to a thread by `ainvoke`, which an async user would not do.
        colour = _async if as_async else (lambda node: node)
        graph = StateGraph(State)
        graph.add_node("plan", colour(self.plan))
        graph.add_node("implement", colour(self.implement))
        graph.add_node("review", colour(self.review), destinations=("implement", "ask", "test"))
        graph.add_node("ask", colour(self.ask))
        graph.add_node("test", colour(self.test))
        graph.add_edge(START, "plan")
        graph.add_edge("plan", "implement")
        graph.add_edge("implement", "review")
        graph.add_edge("ask", "implement")
        graph.add_edge("test", END)
        return graph


def _async(node: Callable[[State], Any]) -> Any:
    async def call(state: State) -> Any:
        return node(state)

    call.__name__ = node.__name__
    return call


def _fresh(rounds: int = workload.ROUNDS_PER_RUN, waits: bool = False) -> State:
    return {"rounds": rounds, "waits": waits, "attempts": 0, "history": []}


def _config(run: str, rounds: int = workload.ROUNDS_PER_RUN) -> Any:
    return {"configurable": {"thread_id": run}, "recursion_limit": 2 * rounds + 20}


RESUME: Any = Command(resume=workload.DECISION)


class LangGraphSync(Engine):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._db = sqlite3.connect(folder / "checkpoints.db", check_same_thread=False)
        self._nodes = Nodes()
        self._graph = self._nodes.graph(as_async=False).compile(checkpointer=SqliteSaver(self._db))

    def run_each(self, runs: Sequence[str]) -> None:
        for run in runs:
            self._graph.invoke(_fresh(), _config(run))

    def run_together(self, runs: Sequence[str]) -> None:
        self._in_threads(lambda run: self._graph.invoke(_fresh(), _config(run)), runs)

    def run_rounds(self, run: str, rounds: int, on_round: Callable[[], None]) -> None:
        self._nodes.on_round = on_round
        self._graph.invoke(_fresh(rounds), _config(run, rounds), durability="sync")

    def park(self, runs: Sequence[str]) -> None:
        self._in_threads(lambda run: self._graph.invoke(_fresh(waits=True), _config(run)), runs)

    def decide(self, run: str) -> float:
        began = time.monotonic()
        self._graph.invoke(RESUME, _config(run))
        return self._nodes.implement_began - began

    def resume_all(self) -> int:
        waiting = [run for (run,) in self._db.execute(WAITING)]
        self._in_threads(lambda run: self._graph.invoke(RESUME, _config(run)), waiting)
        return len(waiting)

    def close(self) -> None:
        self._db.close()

    @staticmethod
    def _in_threads(act: Callable[[str], object], runs: Sequence[str]) -> None:
        with ThreadPoolExecutor(max_workers=100) as threads:
            for _ in threads.map(act, runs):
                pass


class LangGraphAsync(Engine):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._runner = asyncio.Runner()
        self._nodes = Nodes()
        self._runner.run(self._open())

    async def _open(self) -> None:
        self._db = await aiosqlite.connect(self.folder / "checkpoints.db")
        self._graph = self._nodes.graph(as_async=True).compile(checkpointer=AsyncSqliteSaver(self._db))

    def run_each(self, runs: Sequence[str]) -> None:
        async def one_after_another() -> None:
            for run in runs:
                await self._graph.ainvoke(_fresh(), _config(run))

        self._runner.run(one_after_another())

    def run_together(self, runs: Sequence[str]) -> None:
        self._runner.run(self._invoke_all(_fresh(), runs))

    def run_rounds(self, run: str, rounds: int, on_round: Callable[[], None]) -> None:
        self._nodes.on_round = on_round
        self._runner.run(self._graph.ainvoke(_fresh(rounds), _config(run, rounds), durability="sync"))

    def park(self, runs: Sequence[str]) -> None:
        self._runner.run(self._invoke_all(_fresh(waits=True), runs))

    def decide(self, run: str) -> float:
        async def resume() -> float:
            began = time.monotonic()
            await self._graph.ainvoke(RESUME, _config(run))
            return self._nodes.implement_began - began

        return self._runner.run(resume())

    def resume_all(self) -> int:
        async def find_and_resume() -> int:
            async with self._db.execute(WAITING) as rows:
                waiting = [run async for (run,) in rows]
            await self._invoke_all(RESUME, waiting)
            return len(waiting)

        return self._runner.run(find_and_resume())

    def close(self) -> None:
        self._runner.run(self._db.close())
        self._runner.close()

    async def _invoke_all(self, given: Any, runs: Sequence[str]) -> None:
        """All of them, at most 100 at once: more only makes this engine slower."""
        slots = asyncio.Semaphore(100)

        async def invoke(run: str) -> None:
            async with slots:
                await self._graph.ainvoke(given, _config(run))

        await asyncio.gather(*(invoke(run) for run in runs))


def open_engine(folder: Path, variant: str) -> Engine:
    return {"sync": LangGraphSync, "async": LangGraphAsync}[variant](folder)
