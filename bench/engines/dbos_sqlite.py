"""DBOS on SQLite, as its documentation shows it: a workflow that calls steps, and `recv` for a person's decision.

Every step's result is recorded, and a workflow that a process left behind is replayed by the next one at launch. A
waiting run is a workflow in its thread, blocked in `recv`, which on SQLite looks for messages once a second by default.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# mypy: disable-error-code="untyped-decorator"
from dbos import DBOS, DBOSClient, SendMessage, SetWorkflowID

from bench import workload
from bench.engine import Engine

TOPIC = "decision"
PATIENCE = 24 * 3600.0
STALLED = 60.0
UNFINISHED = ["PENDING", "ENQUEUED"]


class Moments:
    """What the scenarios want to know of the workflows that run in this process."""

    def __init__(self) -> None:
        self.on_round: Callable[[], None] = lambda: None
        self.implement_began = 0.0
        self.reached_the_question = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)


def register(moments: Moments) -> Callable[[int, bool], None]:
    """Make the workflow known to DBOS; to be done before it is launched."""

    @DBOS.step()
    def plan() -> workload.Json:
        return workload.plan()

    @DBOS.step()
    def implement(attempt: int) -> workload.Json:
        moments.implement_began = time.monotonic()
        return workload.implement(attempt)

    @DBOS.step()
    def review(attempt: int, rounds: int) -> workload.Json:
        verdict = workload.review(attempt, rounds)
        if verdict["verdict"] == "fail":
            moments.on_round()
        return verdict

    @DBOS.step()
    def test() -> workload.Json:
        return workload.test()

    @DBOS.workflow()
    def bench_run(rounds: int, waits: bool) -> None:
        plan()
        attempt = 1
        implement(attempt)
        while review(attempt, rounds)["verdict"] == "fail":
            if workload.must_wait(attempt, waits):
                moments.reached_the_question.release()
                DBOS.recv(TOPIC, timeout_seconds=PATIENCE)
            attempt += 1
            implement(attempt)
        test()
        moments.ended.release()

    workflow: Callable[[int, bool], None] = bench_run
    return workflow


class Dbos(Engine):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._moments = Moments()
        self._handles: dict[str, Any] = {}
        self._client: DBOSClient | None = None
        self._launched = False

    def run_each(self, runs: Sequence[str]) -> None:
        self._launch()
        for run in runs:
            with SetWorkflowID(run):
                self._workflow(workload.ROUNDS_PER_RUN, False)

    def run_together(self, runs: Sequence[str]) -> None:
        self._launch()
        for handle in [self._start(run) for run in runs]:
            handle.get_result()

    def run_rounds(self, run: str, rounds: int, on_round: Callable[[], None]) -> None:
        self._launch()
        self._moments.on_round = on_round
        with SetWorkflowID(run):
            self._workflow(rounds, False)

    def park(self, runs: Sequence[str]) -> None:
        self._launch()
        for run in runs:
            self._handles[run] = self._start(run, waits=True)
        _await(self._moments.reached_the_question, len(runs))

    def decide(self, run: str) -> float:
        # The listener polls, and a person's decision comes at any moment of its interval.
        time.sleep(random.random())
        began = time.monotonic()
        DBOS.send(run, workload.DECISION, TOPIC)
        self._handles.pop(run).get_result()
        return self._moments.implement_began - began

    def resume_all(self) -> int:
        self._launch()
        waiting = [status.workflow_id for status in DBOS.list_workflows(status=UNFINISHED)]
        DBOS.send_bulk([SendMessage(run, workload.DECISION, TOPIC, None) for run in waiting])
        _await(self._moments.ended, len(waiting))
        while DBOS.list_workflows(status=UNFINISHED, limit=1):
            time.sleep(0.02)
        return len(waiting)

    def await_outsider(self, run: str) -> float:
        self._handles.pop(run).get_result()
        return self._moments.implement_began

    def decide_outside(self, run: str) -> None:
        if self._client is None:
            self._client = DBOSClient(system_database_url=self._url)
        self._client.send(run, workload.DECISION, TOPIC)

    def close(self) -> None:
        if self._launched:
            DBOS.destroy(destroy_registry=True)
            self._launched = False

    @property
    def _url(self) -> str:
        return f"sqlite:///{self.folder / 'dbos.db'}"

    def _launch(self) -> None:
        """Late, since the process that only decides needs no workflows of its own."""
        if not self._launched:
            DBOS(config={"name": "bench", "system_database_url": self._url, "log_level": "ERROR"})
            self._workflow = register(self._moments)
            DBOS.launch()
            self._launched = True

    def _start(self, run: str, waits: bool = False) -> Any:
        with SetWorkflowID(run):
            return DBOS.start_workflow(self._workflow, workload.ROUNDS_PER_RUN, waits)


def _await(moment: threading.Semaphore, count: int) -> None:
    """A workflow that fails never gets there: say so, rather than wait for good."""
    for number in range(count):
        if not moment.acquire(timeout=STALLED):
            failed = len(DBOS.list_workflows(status="ERROR"))
            raise RuntimeError(
                f"{number} of {count} workflows got there, none in the last {STALLED:.0f} s; {failed} failed"
            )


def open_engine(folder: Path, variant: str) -> Engine:
    return Dbos(folder)
