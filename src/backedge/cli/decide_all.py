"""`decide --all`: one answer for the same question of many runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from backedge.analytics.inbox import InboxItem
from backedge.answers import Answer, submit
from backedge.app import Engine
from backedge.cli.common import asking, idle_words, run_id, say, where
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound
from backedge.core.findings.identity import normalised
from backedge.core.text import counted, shortened
from backedge.reading.packets import open_items

LISTED = 20
"""How many runs are named before the confirmation."""


def decide_everywhere(
    journal: Path | None, escalation: str | None, run_name: str | None, answer: Answer, yes: bool
) -> None:
    """Give one answer to every open question that is the same as the named one, or to all open ones if they are the
    same. Nothing is decided twice: a question that somebody else has answered meanwhile is named and left alone."""
    if escalation is not None and not answer.choice and not re.fullmatch(r"E-\d+", escalation):
        answer, escalation = Answer(escalation.casefold(), answer.given, answer.rounds, answer.amount, answer.by), None
    if not answer.choice:
        raise IllegalCommand("--all needs a choice: for example `backedge decide --all continue`")

    async def ask(engine: Engine) -> list[InboxItem]:
        run = await run_id(engine.journal, run_name) if run_name is not None else None
        return same_questions(await open_items(engine.journal, where(journal)), escalation, run)

    chosen = asking(journal, ask)
    _confirm(chosen, answer, yes)

    async def decide(engine: Engine) -> tuple[list[str], list[str]]:
        idle: list[str] = []
        late: list[str] = []
        for item in chosen:
            run = await engine.find(item.run)
            try:
                waits = await submit(engine, where(journal), run, item.id, answer, say)
            except AlreadyClosed as error:
                late.append(f"{item.id} of {item.run} is left alone: {error}")
                continue
            click.echo(f"{item.id} of {item.run}: {answer.choice}")
            if waits:
                idle.append(item.run)
        return idle, late

    idle, late = asking(journal, decide)
    for line in late:
        say(line)
    say(f"{counted(len(chosen) - len(late), 'question')} decided: {answer.choice}")
    for run in idle:
        say(idle_words(where(journal), run))


def same_questions(items: Sequence[InboxItem], escalation: str | None, run: str | None) -> list[InboxItem]:
    """The open questions that are the same as the one that is meant. Raises an error if that is not clear."""
    meant = [each for each in items if escalation in (None, each.id) and run in (None, each.run)]
    if not meant:
        raise NotFound("no such escalation is open: `backedge inbox` lists all")
    kinds: dict[tuple[object, ...], list[InboxItem]] = {}
    for each in meant:
        kinds.setdefault(identity(each), []).append(each)
    if len(kinds) > 1:
        listed = "; ".join(
            f"{counted(len(found), 'run')} like {found[0].id} of {found[0].run}: {shortened(found[0].sentence, 160)}"
            for found in list(kinds.values())[:5]
        )
        first = next(iter(kinds.values()))[0]
        raise IllegalCommand(
            f"{counted(len(kinds), 'different question')} are open ({listed}); choose one with its id and its run, for "
            f"example `backedge decide {first.id} CHOICE --run {first.run} --all`"
        )
    key = identity(meant[0])
    return [each for each in items if identity(each) == key]


def identity(item: InboxItem) -> tuple[object, ...]:
    """What makes two questions the same: everything that a person decides on, except the run, its ids and its times."""
    return (
        item.workflow,
        normalised(item.reason),
        item.step,
        item.kind,
        item.source,
        item.targets,
        item.options,
        tuple(each.option for each in item.offers),
        normalised(item.message),
        normalised(item.last_error),
        tuple(sorted((each.severity, each.file or "", normalised(each.description)) for each in item.findings)),
        tuple(sorted((each.file, each.change, each.diff) for each in item.changes)),
        tuple((each.step, str(each.output), each.payload) for each in item.inputs),
    )


def _confirm(chosen: Sequence[InboxItem], answer: Answer, yes: bool) -> None:
    say(f"{counted(len(chosen), 'question')}: {chosen[0].sentence}")
    for item in chosen[:LISTED]:
        say(f"  {item.id} of {item.run}")
    if len(chosen) > LISTED:
        say(f"  … and {len(chosen) - LISTED} more: `backedge inbox` lists all")
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise IllegalCommand("--all needs a confirmation: add --yes to decide all of them")
    if not click.confirm(f"Decide {answer.choice} for all {len(chosen)}?", err=True):
        say("nothing was decided")
        sys.exit(1)
