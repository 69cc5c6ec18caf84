"""`decide`: a person answers an escalation, with arguments on the command line or answers at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from backedge.app import Engine, Run
from backedge.cli.answer import end_agents, me
from backedge.cli.common import asking, idle_words, journal_option, own_id, say, shown, the_run, where, wrapped
from backedge.cli.live import refresh_views
from backedge.cli.packets import diffs_of, packet_lines, told_packet
from backedge.cli.people import require_person
from backedge.core.commands import DEFAULT_ROUNDS
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound
from backedge.project import Project, secrets_in

QUESTIONS = {
    ("resolve", False): "Your answer",
    ("resolve", True): "One of the options, or your own answer",
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
    journal: Path | None,
) -> None:
    """Answer ESCALATION with CHOICE: resolve, continue, revise, reassign, reclassify, accept, skip or cancel.

    For an approval, use approve or reject. Without CHOICE, the command asks for it. Without ESCALATION, it takes the only
    open one. If a process is executing the run, the run continues at once; otherwise `backedge resume` continues it.

    \b
    Example:
      backedge decide E-1 continue --rounds 2 --note "use the session of the other service"
    """
    require_person(journal)

    async def answer(engine: Engine) -> tuple[str, str, str, bool]:
        run, packet = await _question(engine, escalation, run_name)
        chosen, more = (choice.strip().casefold(), {}) if choice else await _asked(engine, run, packet, where(journal))
        who = me() if by is None else by
        given = {"note": note, "option": option, "target": target, "phase": phase}
        said: dict[str, Any] = {**more, **{key: each for key, each in given.items() if each}}
        said = secrets_in(where(journal), run.id).value(said)
        await run.decide(packet, chosen, by=who, rounds=rounds, amount=amount, **said)
        await end_agents(run, journal)
        await refresh_views(where(journal), run, say)
        state = await run.state()
        idle = state.ended is None and not state.escalations and await engine.journal.holder(run.id) is None
        return packet, run.id, chosen, idle

    packet, run, chosen, idle = asking(journal, answer)
    click.echo(f"{packet} of {run}: {chosen}")
    if idle:
        say(idle_words(where(journal), run))


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
        raise IllegalCommand(f"{escalation} is open in {len(opened)} runs: choose one with --run ({names})")
    if escalation is not None:
        return await _decided_before(engine, escalation), escalation
    if not opened:
        raise NotFound("no escalations are open: there is nothing to decide")
    listed = ", ".join(f"{each.escalation} of {each.run}" for each in opened[:5])
    raise IllegalCommand(f"{len(opened)} escalations are open: choose one of {listed}")


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
    opened = ", ".join(sorted({each.escalation for each in await engine.journal.open_escalations()}))
    listed = f"open escalations: {opened}" if opened else "no escalations are open"
    raise NotFound(f"unknown escalation {escalation!r} ({listed})")


async def _asked(engine: Engine, run: Run, escalation: str, project: Project) -> tuple[str, dict[str, str]]:
    """The choice made at the terminal, and the arguments that it needs."""
    state = await run.state()
    known = state.escalation(escalation)
    if known is not None and known.decided is not None:
        raise AlreadyClosed(f"{escalation} was already decided: {known.decided.choice}; the first decision stands")
    told = await told_packet(engine.journal, state, escalation)
    diffs = diffs_of(project, state, told)
    words = list(dict.fromkeys(each.choice for each in told.options))
    if sys.stdin is None or not sys.stdin.isatty():
        raise IllegalCommand(f"{escalation} needs a choice: use one of: {', '.join(words)}")
    click.echo(f"{escalation}: {shown(told.reason)}", err=True)
    for line in packet_lines(told, diffs):
        click.echo(wrapped(f"  {line}", sys.stderr), err=True)
    numbered = ", ".join(f"{number} {word}" for number, word in enumerate(words, 1))
    chosen: str = click.prompt(f"Your choice ({numbered})", value_proc=partial(_choice, words), err=True)
    needs = next((each.needs for each in told.options if each.choice == chosen and not each.option), ())
    if not needs:
        return chosen, {}
    offered = [each.option for each in told.options if each.choice == chosen and each.option]
    question = QUESTIONS.get((chosen, bool(offered) or needs == ("option",)), "Your answer")
    answer: str = click.prompt(question, err=True)
    # The same question takes one of the options or an answer in words.
    return chosen, {"option" if answer in offered or needs == ("option",) else needs[-1]: answer}


def _choice(words: Sequence[str], typed: str) -> str:
    """A choice by its number, its word, or the beginning of its word if that is unique."""
    typed = typed.strip().casefold()
    if typed.isdecimal() and 0 < int(typed) <= len(words):
        return words[int(typed) - 1]
    meant = [word for word in words if word == typed] or [word for word in words if word.startswith(typed)]
    if len(meant) != 1:
        raise click.UsageError(f"{shown(typed, 40)!r} is not one of the choices: type a number or a word")
    return meant[0]
