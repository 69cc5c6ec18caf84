"""`decide E-1 history`: everything that happened to what an escalation is about, in full. It changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from backedge.analytics.inbox import InboxItem
from backedge.analytics.rounds import LoopHistory
from backedge.cli.findings_table import finding_lines, findings_table
from backedge.cli.packet_text import choice_lines, material_lines
from backedge.cli.page import Page, ago
from backedge.cli.story import asked_lines, history_lines
from backedge.core import events as e
from backedge.reading.packets import RunHistory


def full_history(item: InboxItem, history: RunHistory, page: Page, now: float) -> Iterator[str]:
    """Every round of the loop, every finding with all that its judge said, every attempt of the step."""
    yield from page.own_line(f"{item.id}  {item.run}  asked {ago(now - item.opened_at)} ago: {item.sentence}")
    if item.loop is not None:
        yield from _of_loop(item, history.histories.get(item.loop, LoopHistory()), page)
    elif item.step is not None:
        yield from _of_step(item.step, history, page)
    else:
        yield from page.own_line(f"everything that happened: backedge show {item.run} --all", 2)
    if item.decided is None:
        yield from material_lines(item, page)
        yield from choice_lines(item, page)


def _of_loop(item: InboxItem, history: LoopHistory, page: Page) -> Iterator[str]:
    yield from page.own_line(f"{item.loop} {item.kind}: {item.source} → {', '.join(item.targets)}", 2)
    rounds = history.rounds
    if rounds:
        yield from asked_lines(rounds[-1], page, 4)
    if len(item.verdicts) > 1:
        yield from findings_table(item, page)
    known = {each.id: each for turn in item.history for each in turn.findings} | {
        each.id: each for each in item.findings
    }
    for id in sorted(known, key=lambda id: int(id.partition("-")[2])):
        yield from finding_lines(known[id], page, 2)
    yield from history_lines(history, rounds[-1].message if rounds else "", page)


def _of_step(step: str, history: RunHistory, page: Page) -> Iterator[str]:
    for event in history.events:
        match event:
            case e.AttemptSucceeded(step=name) if name == step:
                yield from page.text(f"attempt {event.attempt} ended", event.summary or "without a summary", 2)
            case e.AttemptFailed(step=name) if name == step:
                yield from page.text(f"attempt {event.attempt} broke", event.error, 2)
            case e.AttemptDropped(step=name) if name == step:
                yield from page.text(f"attempt {event.attempt}", event.reason, 2)
            case _:
                pass
