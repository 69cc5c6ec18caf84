"""The engine and rollbacks: outputs of functions, and agents that restore files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import backedge as be
from backedge.core.evidence.values import Evidence, RestoredFiles, RestoreRule
from backedge.core.model import Usage
from backedge.engine.protocol import Outcome
from backedge.ports import Result


def reviewer(*counts: int) -> Callable[[be.Briefing], be.Outcome]:
    """A judge that finds so many defects, one number for each of its attempts; it passes with 0."""

    def review(briefing: be.Briefing) -> be.Outcome:
        count = counts[min(briefing.attempt, len(counts)) - 1]
        findings = [be.Finding(f"defect {briefing.attempt}.{number}") for number in range(count)]
        return be.Outcome(verdict="fail" if count else "pass", findings=tuple(findings))

    return review


def flow(code: Any, *counts: int, **more: Any) -> be.Workflow:
    steps = [be.Step("code", code, "code"), be.Step("review", reviewer(*counts), reviews="code")]
    return be.Workflow("w", steps, on_worse="rollback", **more)


def test_a_function_gets_its_earlier_output_back() -> None:
    told: list[tuple[Any, list[str]]] = []

    def code(briefing: be.Briefing) -> be.Outcome:
        told.append((briefing.previous, [each.why for each in briefing.rolled_back]))
        return be.Outcome({"attempt": briefing.attempt})

    result = be.run(flow(code, 1, 2, 0))
    assert result.outcome == "verified"
    assert told == [(None, []), ({"attempt": 1}, []), ({"attempt": 1}, ["2 findings instead of 1"])]
    assert result.steps["code"].output == {"attempt": 3}


class Coder:
    """An agent with files, which only counts what it is asked to do."""

    def __init__(self, restores: Callable[[], Any] | None = None) -> None:
        self.asked: list[tuple[Sequence[tuple[str, int]], Sequence[str], RestoreRule]] = []
        self._restores = restores or (lambda: None)

    async def work(self, briefing: Any, attempt: Any) -> Result:
        made = Outcome(output=briefing.attempt, usage=Usage())
        return Result(made, evidence=Evidence(tree=f"t{briefing.attempt}", files=("a.py",)))

    def input_errors(self, inputs: Mapping[str, Any]) -> Sequence[tuple[str, str, str]]:
        return ()

    async def restore(
        self,
        run: str,
        attempts: Sequence[tuple[str, int]],
        judges: Sequence[str],
        rule: RestoreRule,
    ) -> RestoredFiles:
        self.asked.append((attempts, judges, rule))
        found = self._restores()
        if asyncio.iscoroutine(found):
            found = await found
        return found or RestoredFiles(("a.py",), evidence=Evidence(tree="t1"))


class WithoutFiles(Coder):
    """The same without a way to restore them."""

    restore = None  # type: ignore[assignment]


def test_its_agent_restores_the_files_before_the_next_round() -> None:
    coder = Coder()
    assert be.run(flow(coder, 1, 2, 0)).outcome == "verified"
    assert coder.asked == [((("code", 2),), ("review",), "unless_edited")]


def test_what_goes_wrong_is_asked() -> None:
    def fails() -> None:
        raise OSError("the disk is full")

    result = be.run(flow(Coder(fails), 1, 2, 0))
    (question,) = [each for each in result.escalations if each.decided is None]
    assert question.reason == "the rollback has restored no file yet: OSError: the disk is full"
    result = be.run(flow(WithoutFiles(), 1, 2, 0))
    (question,) = [each for each in result.escalations if each.decided is None]
    assert question.reason == "the rollback has restored no file yet: no agent of these steps can restore files"


def test_a_restore_that_was_cut_short_is_done_again(tmp_path: Path) -> None:
    async def story() -> tuple[str, Coder]:
        began, never = asyncio.Event(), asyncio.Event()

        async def hangs() -> None:
            began.set()
            await never.wait()

        async with be.Engine(tmp_path / "journal.db") as engine:
            run = await engine.start(flow(Coder(hangs), 1, 2, 0))
            await asyncio.wait_for(began.wait(), 10)
        second = Coder()
        async with be.Engine(tmp_path / "journal.db") as engine:
            again = await engine.resume(run.id, flow(second, 1, 2, 0))
            return (await again.result()).outcome, second

    outcome, second = asyncio.run(story())
    assert outcome == "verified"
    assert [rule for _, _, rule in second.asked] == ["unless_edited"]
