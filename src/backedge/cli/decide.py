"""`decide`: a person answers an escalation, with arguments on the command line or answers at the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from backedge.analytics.inbox import InboxItem
from backedge.answers import Answer, submit
from backedge.app import Engine, Run
from backedge.cli.common import asking, idle_words, journal_option, own_id, say, shown, the_run, where
from backedge.cli.packet_text import packet_lines
from backedge.cli.page import Page, room_for_question, width_of
from backedge.cli.people import me, require_person
from backedge.core.commands import DEFAULT_ROUNDS
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound
from backedge.core.escalation.options import HISTORY
from backedge.core.escalation.packet import unknown_escalation
from backedge.core.text import counted
from backedge.project import Project
from backedge.reading.packets import RunHistory, item_of

QUESTIONS = {
    ("resolve", False): "Your answer",
    ("resolve", True): "One of the options, or your own answer",
    ("fail", False): "What is wrong",
    ("revise", False): "The new approach",
    ("reassign", False): "The step that gets it",
    ("reclassify", False): "The phase that injected it",
}
"""What to ask for after a choice; True if there are options to choose from."""
LOOKED_AT = 100
"""How many of the newest runs are searched for a decision that was made before."""


@click.command()
@click.argument("escalation", required=False, type=own_id)
@click.argument("choice", required=False)
@click.option("--run", "run_name", metavar="RUN", help="The run, if the id is ambiguous.")
@click.option(
    "--rounds", type=int, default=DEFAULT_ROUNDS, show_default=True, help="How many more rounds or tries to grant."
)
@click.option("--amount", type=float, help="How much to add to a budget. Default: the size of the budget.")
@click.option("--option", help="One of the offered options, or your verdict.")
@click.option("--target", metavar="STEP", help="The new target, for reassign.")
@click.option("--phase", help="The phase that injected the findings, for reclassify.")
@click.option("--note", default="", help="Your answer, the new approach or the reason, as text.")
@click.option("--by", default=None, metavar="WHO", help="The person who decides. Default: you.")
@click.option("--all", "everywhere", is_flag=True, help="Decide the same question of all runs in the same way.")
@click.option("--yes", is_flag=True, help="With --all: do not ask for confirmation.")
@journal_option
def decide(
    escalation: str | None,
    choice: str | None,
    run_name: str | None,
    rounds: int,
    amount: float | None,
    option: str | None,
    target: str | None,
    phase: str | None,
    note: str,
    by: str | None,
    everywhere: bool,
    yes: bool,
    journal: Path | None,
) -> None:
    """Answer ESCALATION with CHOICE: resolve, continue, revise, reassign, reclassify, rollback, accept, skip or cancel.

    For an approval, use approve or reject; for a judgement, pass or fail. `history` prints every round in full and changes
    nothing. Without CHOICE, the command asks for it. Without ESCALATION, it takes the only open one. If a process is
    executing the run, the run continues at once; otherwise `backedge resume` continues it.

    With --all, the same question of other runs gets the same answer: the same workflow, reason, findings and options. It
    says which runs, and asks for confirmation.

    \b
    Example:
      backedge decide E-1 continue --rounds 2 --note "use the session of the other service"
      backedge decide --all continue --yes
    """
    require_person(journal)
    given = {"note": note, "option": option, "target": target, "phase": phase}
    answer = Answer(
        (choice or "").strip().casefold(),
        {key: each for key, each in given.items() if each},
        rounds,
        amount,
        me() if by is None else by,
    )
    if answer.choice == HISTORY.choice:
        asking(journal, partial(_print_history, journal=journal, escalation=escalation, run_name=run_name))
        return
    if everywhere:
        from backedge.cli.decide_all import decide_everywhere

        decide_everywhere(journal, escalation, run_name, answer, yes)
        return

    async def decided(engine: Engine) -> tuple[str, str, str, bool]:
        run, packet = await _question(engine, escalation, run_name)
        chosen = answer if choice else await _asked(engine, run, packet, where(journal), answer)
        idle = await submit(engine, where(journal), run, packet, chosen, say)
        return packet, run.id, chosen.choice, idle

    packet, run, chosen, idle = asking(journal, decided)
    click.echo(f"{packet} of {run}: {chosen}")
    if idle:
        say(idle_words(where(journal), run))


async def _print_history(engine: Engine, journal: Path | None, escalation: str | None, run_name: str | None) -> None:
    from backedge.cli.full_history import full_history

    run, packet = await _question(engine, escalation, run_name)
    history = await RunHistory.of(engine.journal, run.id)
    found = history.state.escalation(packet)
    if found is None:
        raise unknown_escalation(history.state, packet)
    item = await item_of(engine.journal, where(journal), history, found)
    for line in full_history(item, history, Page(width_of(sys.stdout), whole=True), time.time()):
        click.echo(line)


async def _question(engine: Engine, escalation: str | None, run_name: str | None) -> tuple[Run, str]:
    """The run and the escalation to decide; without an id, the only open one."""
    run = await the_run(engine, run_name) if run_name is not None else None
    if run is not None and escalation is not None:
        return run, escalation
    opened = [each for each in await engine.journal.open_escalations(escalation) if run is None or each.run == run.id]
    if len(opened) == 1:
        return await engine.find(opened[0].run), opened[0].escalation
    if escalation is not None and opened:
        names = ", ".join(each.run for each in opened[:5])
        raise IllegalCommand(
            f"{escalation} is open in {counted(len(opened), 'run')}: choose one with --run ({names}), "
            "or decide the same question everywhere with --all"
        )
    if escalation is not None:
        return await _decided_before(engine, escalation), escalation
    if not opened:
        raise NotFound("no escalations are open: there is nothing to decide")
    listed = ", ".join(f"{each.escalation} of {each.run}" for each in opened[:5])
    raise IllegalCommand(f"{counted(len(opened), 'escalation')} are open: choose one of {listed}; see `backedge inbox`")


async def _decided_before(engine: Engine, escalation: str) -> Run:
    """The only run in which this escalation was decided; deciding again there gives the most helpful error."""
    decided = []
    for head in await engine.runs(LOOKED_AT):
        known = (await (await engine.find(head.run)).state()).escalation(escalation)
        if known is not None and known.decided is not None:
            decided.append(f"{known.decided.choice} in {head.run}")
    if len(decided) == 1:
        return await engine.find(decided[0].rpartition(" ")[2])
    if decided:
        raise AlreadyClosed(f"{escalation} was already decided in {len(decided)} runs: {', '.join(decided[:5])}")
    opened = [f"{each.escalation} of {each.run}" for each in await engine.journal.open_escalations()]
    more = f" and {len(opened) - 5} more" if len(opened) > 5 else ""
    listed = f"open escalations: {', '.join(opened[:5])}{more}" if opened else "no escalations are open"
    raise NotFound(f"unknown escalation {escalation!r} ({listed}); `backedge inbox` lists all")


async def _asked(engine: Engine, run: Run, escalation: str, project: Project, given: Answer) -> Answer:
    """The choice made at the terminal, and the arguments that it needs."""
    history = await RunHistory.of(engine.journal, run.id)
    known = history.state.escalation(escalation)
    if known is None:
        raise unknown_escalation(history.state, escalation)
    if known.decided is not None:
        raise AlreadyClosed(f"{escalation} was already decided: {known.decided.choice}; the first decision stands")
    item = await item_of(engine.journal, project, history, known)
    words = list(dict.fromkeys(each.choice for each in item.choices))
    if sys.stdin is None or not sys.stdin.isatty():
        raise IllegalCommand(f"{escalation} needs a choice: use one of: {', '.join(words)}")
    page = Page(width_of(sys.stderr))
    for line in packet_lines(item, page, time.time(), room_for_question(sys.stderr)):
        click.echo(line, err=True)
    numbered = ", ".join(f"{number} {word}" for number, word in enumerate(words, 1))
    while True:
        typed = partial(choice_of, words, item.options)
        chosen: str = click.prompt(f"Your choice ({numbered})", value_proc=typed, err=True)
        if chosen != HISTORY.choice:
            break
        show_history(item, history)
    needs = next((each.needs for each in item.choices if each.choice == chosen and not each.option), ())
    if chosen == "resolve" and chosen not in words:
        needs = ("option",)  # a judgement: the option is the verdict
    if not needs or any(given.given.get(need) for need in needs):
        return replace(given, choice=chosen)
    offered = [each.option for each in item.choices if each.choice == chosen and each.option]
    question = QUESTIONS.get((chosen, bool(offered) or needs == ("option",)), "Your answer")
    answer: str = click.prompt(question, err=True)
    # The same question takes one of the options or an answer in words.
    key = "option" if answer in offered else needs[-1]
    return replace(given, choice=chosen, given={**given.given, key: answer})


def show_history(item: InboxItem, history: RunHistory) -> None:
    """Print every round in full, on stderr."""
    from backedge.cli.full_history import full_history

    for line in full_history(item, history, Page(width_of(sys.stderr), whole=True), time.time()):
        click.echo(line, err=True)


def choice_of(words: Sequence[str], others: Sequence[str], typed: str) -> str:
    """A choice by its number, its word, or the beginning of its word if that is unique. Other words are understood too."""
    typed = typed.strip().casefold()
    if typed in others:
        return typed
    if typed.isdecimal() and 0 < int(typed) <= len(words):
        return words[int(typed) - 1]
    meant = [word for word in words if word == typed] or [word for word in words if word.startswith(typed)]
    if len(meant) != 1:
        raise click.UsageError(f"{shown(typed, 40)!r} is not one of the choices: type a number or a word")
    return meant[0]
