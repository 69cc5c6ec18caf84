"""Answers in place: the person at the terminal of a run is asked there, instead of in another one."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Any

import click

from backedge.analytics.inbox import InboxItem
from backedge.answers import refresh_views
from backedge.app import Engine, Run
from backedge.cli.common import say, wrapped
from backedge.cli.decide import QUESTIONS, choice_of, show_history
from backedge.cli.keyboard import typed_line
from backedge.cli.live import RunProgress
from backedge.cli.packet_text import packet_lines
from backedge.cli.page import Page, room_for_question, width_of
from backedge.cli.people import me
from backedge.core.errors import BackedgeError
from backedge.core.escalation.options import HISTORY
from backedge.project import Project, secrets_in
from backedge.reading.packets import RunHistory, item_of


class Later(Exception):
    """The person does not want to answer now."""


async def answered(engine: Engine, run: Run, project: Project, progress: RunProgress) -> bool:
    """Ask about the first open escalation of a run in which nothing can start. Returns False if the person will answer
    later; then `backedge decide` still can."""
    state = await run.state()
    if not state.escalations:
        return False
    escalation = next(iter(state.escalations))
    history = await RunHistory.of(engine.journal, run.id)
    known = history.state.escalation(escalation)
    if known is None or known.decided is not None:
        return True
    item = await item_of(engine.journal, project, history, known)
    with progress.asking():
        say()
        for line in packet_lines(item, Page(width_of(sys.stderr)), time.time(), room_for_question(sys.stderr)):
            say(line)
        while True:
            asking = asyncio.create_task(_asked(item, history))
            elsewhere = asyncio.create_task(_decided_elsewhere(run, escalation))
            try:
                await asyncio.wait({asking, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
                if not asking.done():
                    say("\nit was answered elsewhere")
                    return True
                choice, more = asking.result()
                said: dict[str, Any] = secrets_in(project, run.id).value(more)
                await run.decide(escalation, choice, by=me(), **said)
                break
            except Later:
                return False
            except BackedgeError as error:
                if (await run.state()).escalations.get(escalation) is None:
                    return True
                say(f"backedge: {error}")
            finally:
                asking.cancel()
                elsewhere.cancel()
    await refresh_views(project, run, say)
    return True


async def _decided_elsewhere(run: Run, escalation: str) -> None:
    while True:
        state = await run.state()
        if escalation not in state.escalations:
            return
        await run.changed(state.seq)


async def _asked(item: InboxItem, history: RunHistory) -> tuple[str, dict[str, str]]:
    """The choice, and what it needs. Raises Later."""
    words = list(dict.fromkeys(each.choice for each in item.choices))
    while (chosen := await _choice(words, item.options)) == HISTORY.choice:
        show_history(item, history)
    needs = next((each.needs for each in item.choices if each.choice == chosen and not each.option), ())
    if chosen == "resolve" and chosen not in words:
        needs = ("option",)  # a judgement: the option is the verdict
    if not needs:
        return chosen, {}
    offered = [each.option for each in item.choices if each.choice == chosen and each.option]
    question = QUESTIONS.get((chosen, bool(offered) or needs == ("option",)), "Your answer")
    answer = await _line(f"{question}: ")
    # The same question takes one of the options or an answer in words.
    return chosen, {"option" if answer in offered or needs == ("option",) else needs[-1]: answer}


async def _choice(words: Sequence[str], others: Sequence[str]) -> str:
    numbered = ", ".join(f"{number} {word}" for number, word in enumerate(words, 1))
    question = wrapped(f"Your choice ({numbered}; Enter: later):", sys.stderr)
    while True:
        try:
            return choice_of(words, others, await _line(f"{question} "))
        except click.UsageError as error:
            say(f"backedge: {error.message}")


async def _line(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    line = await typed_line()
    if not line.strip():
        if not line:
            say()  # the input has ended
        raise Later
    return line.strip()
