"""Burr with its SQLite persisters, as its documentation shows them.

The history of findings is a list in the state; a persister saves the whole state after every action. Waiting is a halt
before the action `ask`, which takes the decision as its input and is saved too, so that the decision is durable before
the run goes on. A waiting run is held as its Application.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from pathlib import Path
from typing import Any

from burr.core import Application, ApplicationBuilder, State, action, when
from burr.core.graph import Graph, GraphBuilder
from burr.core.persistence import SQLitePersister
from burr.integrations.persisters.b_aiosqlite import AsyncSQLitePersister

from bench import workload
from bench.engine import Engine

TO_THE_END: Any = {"halt_after": ["test"]}
TO_THE_QUESTION: Any = {"halt_before": ["ask"]}
DECIDED: Any = {"halt_after": ["test"], "inputs": {"decision": workload.DECISION}}


class Actions:
    """The agents, and the moments that the scenarios want to know."""

    def __init__(self) -> None:
        self.on_round: Callable[[], None] = lambda: None
        self.implement_began = 0.0

    def plan(self, state: State) -> State:
        return state.update(artifact=workload.plan())

    def implement(self, state: State) -> State:
        self.implement_began = time.monotonic()
        attempt = state["attempts"] + 1
        return state.update(attempts=attempt, artifact=workload.implement(attempt))

    def review(self, state: State) -> State:
        attempt = state["attempts"]
        verdict = workload.review(attempt, state["rounds"])
        if verdict["verdict"] == "pass":
            return state.update(next="test")
        self.on_round()
        goto = "ask" if workload.must_wait(attempt, state["waits"]) else "implement"
        return state.update(next=goto).append(history={"round": attempt, "findings": verdict["findings"]})

    def ask(self, state: State, decision: str) -> State:
        return state.update(decision=decision)

    def test(self, state: State) -> State:
        return state.update(artifact=workload.test())

    def graph(self, as_async: bool) -> Graph:
        # With an async persister the actions must be async too: the state saved after a plain one is the one before it.
        colour: Callable[[Any], Any] = _async if as_async else _plain
        plan = action(reads=[], writes=["artifact"])(colour(self.plan))
        implement = action(reads=["attempts"], writes=["attempts", "artifact"])(colour(self.implement))
        review = action(reads=["attempts", "rounds", "waits", "history"], writes=["next", "history"])(
            colour(self.review)
        )
        ask = action(reads=[], writes=["decision"])(colour(self.ask))
        test = action(reads=[], writes=["artifact"])(colour(self.test))
        return (
            GraphBuilder()
            .with_actions(plan=plan, implement=implement, review=review, ask=ask, test=test)
            .with_transitions(
                ("plan", "implement"),
                ("implement", "review"),
                ("review", "implement", when(next="implement")),
                ("review", "ask", when(next="ask")),
                ("review", "test", when(next="test")),
                ("ask", "implement"),
            )
            .build()
        )


def _plain(method: Callable[..., State]) -> Callable[..., State]:
    """As a function, since an action keeps its settings on it."""

    @wraps(method)
    def call(*args: Any, **inputs: Any) -> State:
        return method(*args, **inputs)

    return call


def _async(method: Callable[..., State]) -> Callable[..., Any]:
    @wraps(method)
    async def call(*args: Any, **inputs: Any) -> State:
        return method(*args, **inputs)

    return call


def _fresh(graph: Graph, run: str, rounds: int, waits: bool) -> ApplicationBuilder[Any]:
    state = State({"rounds": rounds, "waits": waits, "attempts": 0, "history": []})
    return ApplicationBuilder().with_graph(graph).with_identifiers(app_id=run).with_state(state).with_entrypoint("plan")


def _stored(graph: Graph, run: str, persister: Any) -> ApplicationBuilder[Any]:
    builder: ApplicationBuilder[Any] = ApplicationBuilder().with_graph(graph).with_identifiers(app_id=run)
    return builder.initialize_from(persister, resume_at_next_action=True, default_state={}, default_entrypoint="plan")


def _waits(app: Application[Any]) -> bool:
    following = app.get_next_action()
    return following is not None and following.name == "ask"


class OneAtATime(SQLitePersister):  # type: ignore[misc]
    """For threads: the persister may be shared by them, but its connection breaks when two commit at once."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._lock = threading.Lock()

    def save(self, *args: Any, **more: Any) -> None:
        with self._lock:
            super().save(*args, **more)

    def load(self, *args: Any, **more: Any) -> Any:
        with self._lock:
            return super().load(*args, **more)


class BurrSync(Engine):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._actions = Actions()
        self._graph = self._actions.graph(as_async=False)
        self._persister = OneAtATime.from_values(str(folder / "burr.db"), connect_kwargs={"check_same_thread": False})
        self._persister.initialize()
        self._parked: dict[str, Application[Any]] = {}

    def run_each(self, runs: Sequence[str]) -> None:
        for run in runs:
            self._fresh(run).run(**TO_THE_END)

    def run_together(self, runs: Sequence[str]) -> None:
        _in_threads(lambda run: self._fresh(run).run(**TO_THE_END), runs)

    def run_rounds(self, run: str, rounds: int, on_round: Callable[[], None]) -> None:
        self._actions.on_round = on_round
        self._fresh(run, rounds).run(**TO_THE_END)

    def park(self, runs: Sequence[str]) -> None:
        def to_the_question(run: str) -> None:
            app = self._fresh(run, waits=True)
            app.run(**TO_THE_QUESTION)
            self._parked[run] = app

        _in_threads(to_the_question, runs)

    def decide(self, run: str) -> float:
        app = self._parked.pop(run)
        began = time.monotonic()
        app.run(**DECIDED)
        return self._actions.implement_began - began

    def resume_all(self) -> int:
        runs = self._persister.list_app_ids(None)

        def resume(run: str) -> bool:
            app = _stored(self._graph, run, self._persister).with_state_persister(self._persister).build()
            waits = _waits(app)
            if waits:
                app.run(**DECIDED)
            return waits

        return sum(_in_threads(resume, runs))

    def close(self) -> None:
        self._persister.cleanup()

    def _fresh(self, run: str, rounds: int = workload.ROUNDS_PER_RUN, waits: bool = False) -> Application[Any]:
        return _fresh(self._graph, run, rounds, waits).with_state_persister(self._persister).build()


class BurrAsync(Engine):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._runner = asyncio.Runner()
        self._actions = Actions()
        self._graph = self._actions.graph(as_async=True)
        self._parked: dict[str, Application[Any]] = {}
        self._runner.run(self._open())

    async def _open(self) -> None:
        self._persister = await AsyncSQLitePersister.from_values(str(self.folder / "burr.db"))
        await self._persister.initialize()

    def run_each(self, runs: Sequence[str]) -> None:
        async def one_after_another() -> None:
            for run in runs:
                await self._run(run)

        self._runner.run(one_after_another())

    def run_together(self, runs: Sequence[str]) -> None:
        self._runner.run(self._all(self._run, runs))

    def run_rounds(self, run: str, rounds: int, on_round: Callable[[], None]) -> None:
        self._actions.on_round = on_round
        self._runner.run(self._run(run, rounds))

    def park(self, runs: Sequence[str]) -> None:
        async def to_the_question(run: str) -> None:
            app = await self._fresh(run, waits=True)
            await app.arun(**TO_THE_QUESTION)
            self._parked[run] = app

        self._runner.run(self._all(to_the_question, runs))

    def decide(self, run: str) -> float:
        app = self._parked.pop(run)

        async def go_on() -> float:
            began = time.monotonic()
            await app.arun(**DECIDED)
            return self._actions.implement_began - began

        return self._runner.run(go_on())

    def resume_all(self) -> int:
        async def resume(run: str) -> bool:
            app = await _stored(self._graph, run, self._persister).with_state_persister(self._persister).abuild()
            waits = _waits(app)
            if waits:
                await app.arun(**DECIDED)
            return waits

        async def find_and_resume() -> int:
            return sum(await self._all(resume, await self._persister.list_app_ids()))

        return self._runner.run(find_and_resume())

    def close(self) -> None:
        self._runner.run(self._persister.cleanup())
        self._runner.close()

    async def _fresh(self, run: str, rounds: int = workload.ROUNDS_PER_RUN, waits: bool = False) -> Application[Any]:
        return await _fresh(self._graph, run, rounds, waits).with_state_persister(self._persister).abuild()

    async def _run(self, run: str, rounds: int = workload.ROUNDS_PER_RUN) -> None:
        app = await self._fresh(run, rounds)
        await app.arun(**TO_THE_END)

    @staticmethod
    async def _all(act: Callable[[str], Any], runs: Sequence[str]) -> list[Any]:
        return await asyncio.gather(*(act(run) for run in runs))


def _in_threads(act: Callable[[str], Any], runs: Sequence[str]) -> list[Any]:
    with ThreadPoolExecutor(max_workers=100) as threads:
        return list(threads.map(act, runs))


def open_engine(folder: Path, variant: str) -> Engine:
    return {"sync": BurrSync, "async": BurrAsync}[variant](folder)
