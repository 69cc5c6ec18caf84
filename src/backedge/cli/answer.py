"""`decide`, `feedback`, `pause` and `cancel`: what people tell a run. Whoever executes it goes on at once."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from backedge.analytics.report import LoopReport
from backedge.app import Engine, Run
from backedge.cli.common import asking, journal_option, json_option, print_json, say, shown, the_run, where
from backedge.cli.live import refresh_views
from backedge.cli.packets import open_packets, packet_lines, told_packet
from backedge.core.commands import DEFAULT_ROUNDS
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound, RunHeld
from backedge.core.model import HUMAN
from backedge.engine.protocol import Feedback, Option
from backedge.project import end_agent, secrets_in

QUESTIONS = {
    ("resolve", False): "The answer, in words",
    ("resolve", True): "One of the options, or the answer",
    ("revise", False): "The new approach, in words",
    ("reassign", False): "Which step gets it",
    ("reclassify", False): "Which phase injected it",
}
"""How a person is asked for what a choice needs besides; True where there are options to choose from."""
LOOKED_AT = 100
"""How many of the newest runs are searched for a decision that was made before."""


def _me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


@click.command()
@click.argument("escalation", required=False)
@click.argument("choice", required=False)
@click.option("--run", "run_name", metavar="RUN", help="Which run, if the id alone does not say.")
@click.option("--rounds", type=int, default=DEFAULT_ROUNDS, show_default=True, help="How many more rounds or tries.")
@click.option("--amount", type=float, help="How much more of a budget; its size again, if not given.")
@click.option("--option", help="One of the options that the feedback offers, or a person's verdict.")
@click.option("--target", metavar="STEP", help="Who gets it, for reassign.")
@click.option("--phase", help="Which phase injected it, for reclassify.")
@click.option("--note", default="", help="Free text: the answer, the new approach, the reason.")
@click.option("--by", default=None, metavar="WHO", help="Who decides; you, if not given.")
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

    An approval may also be answered with approve or reject. Without a choice it asks you, about the only open question if no id is given. The run goes on at once if a process executes it, else with the next resume.

    \b
    Example:
      backedge decide E-1 continue --rounds 2 --note "use the session of the other service"
    """

    async def answer(engine: Engine) -> tuple[str, str, str, bool]:
        run, packet = await _question(engine, escalation, run_name)
        chosen, more = (choice, {}) if choice else await _asked(engine, run, packet)
        who = _me() if by is None else by
        given = {"note": note, "option": option, "target": target, "phase": phase}
        said: dict[str, Any] = {**more, **{key: each for key, each in given.items() if each}}
        said = secrets_in(where(journal), run.id).value(said)
        await run.decide(packet, chosen, by=who, rounds=rounds, amount=amount, **said)
        await _end_agents(run, journal)
        await refresh_views(where(journal), run, say)
        state = await run.state()
        idle = state.ended is None and not state.escalations and engine.journal.holder(run.id) is None
        return packet, run.id, chosen, idle

    packet, run, chosen, idle = asking(journal, answer)
    click.echo(f"{packet} of {run}: {chosen}")
    if idle:
        say(f"  nobody executes it now: backedge resume {run}")


async def _question(engine: Engine, escalation: str | None, run_name: str | None) -> tuple[Run, str]:
    """The run and the escalation that are meant; without an id, the only one that is open."""
    if escalation is not None:
        return await _run_of(engine, escalation, run_name), escalation
    only = (await the_run(engine, run_name)).id if run_name is not None else None
    packets = [each for each in await open_packets(engine) if only in (None, each.run)]
    if len(packets) == 1:
        return await engine.find(packets[0].run), packets[0].known.id
    if not packets:
        raise NotFound("no question is open: there is nothing to decide")
    listed = ", ".join(f"{each.known.id} of {each.run}" for each in packets[:5])
    raise IllegalCommand(f"{len(packets)} questions are open: say which, for example {listed}")


async def _end_agents(run: Run, journal: Path | None) -> None:
    with suppress(RunHeld):  # the process that executes it ends them
        await run.end_attempts(partial(end_agent, where(journal)))


async def _run_of(engine: Engine, escalation: str, run_name: str | None) -> Run:
    if run_name is not None:
        return await the_run(engine, run_name)
    packets = await open_packets(engine)
    runs = [each.run for each in packets if each.known.id == escalation]
    if len(runs) == 1:
        return await engine.find(runs[0])
    if runs:
        raise IllegalCommand(f"{escalation} is open in {len(runs)} runs: say which with --run ({', '.join(runs[:5])})")
    decided = []
    for head in (await engine.runs())[:LOOKED_AT]:
        known = (await (await engine.find(head.run)).state()).escalation(escalation)
        if known is not None and known.decided is not None:
            decided.append(f"{known.decided.choice} in {head.run}")
    if len(decided) == 1:
        return await engine.find(decided[0].rpartition(" ")[2])
    if decided:
        raise AlreadyClosed(f"{escalation} was decided before in {len(decided)} runs: {', '.join(decided[:5])}")
    opened = ", ".join(sorted({each.known.id for each in packets})) or "none"
    raise NotFound(f"no escalation {escalation!r} is open: open are {opened}")


async def _asked(engine: Engine, run: Run, escalation: str) -> tuple[str, dict[str, str]]:
    """The choice of whoever sits at the terminal, and what it needs besides."""
    state = await run.state()
    known = state.escalation(escalation)
    if known is not None and known.decided is not None:
        raise AlreadyClosed(f"{escalation} was decided before: {known.decided.choice}; the first decision stands")
    told = await told_packet(engine, state, escalation)
    words = list(dict.fromkeys(each.choice for each in told.options))
    if sys.stdin is None or not sys.stdin.isatty():
        raise IllegalCommand(f"no choice for {escalation}: say one of {', '.join(words)}")
    click.echo(f"{escalation}: {shown(told.reason)}", err=True)
    for line in packet_lines(told):
        click.echo(f"  {line}", err=True)
    numbered = ", ".join(f"{number} {word}" for number, word in enumerate(words, 1))
    chosen: str = click.prompt(f"What is your choice ({numbered})", value_proc=partial(_choice, words), err=True)
    needs = next((each.needs for each in told.options if each.choice == chosen and not each.option), ())
    if not needs:
        return chosen, {}
    offered = [each.option for each in told.options if each.choice == chosen and each.option]
    question = QUESTIONS.get((chosen, bool(offered) or needs == ("option",)), "In words")
    answer: str = click.prompt(question, err=True)
    # The same question takes one of the options or an answer in words.
    return chosen, {"option" if answer in offered or needs == ("option",) else needs[-1]: answer}


def _choice(words: Sequence[str], typed: str) -> str:
    """A choice by its number, its word, or as much of the word as says which."""
    typed = typed.strip()
    if typed.isdecimal() and 0 < int(typed) <= len(words):
        return words[int(typed) - 1]
    meant = [word for word in words if word == typed] or [word for word in words if word.startswith(typed)]
    if len(meant) != 1:
        raise click.UsageError(f"{shown(typed, 40)!r} is none of them: type a number or a word")
    return meant[0]


@click.group()
def feedback() -> None:
    """Raise, acknowledge, list or reclassify feedback.

    \b
    Example:
      backedge feedback list
    """


@feedback.command("raise")
@click.option("--kind", required=True, help="fix_request, context_request, missing_requirement …")
@click.option("--to", multiple=True, help="A target; may be repeated.")
@click.option("--message", required=True, help="What is wrong.")
@click.option("--from", "source", default=HUMAN, show_default=True, help="Who says so.")
@click.option("--severity", default="high", show_default=True)
@click.option("--blocking", is_flag=True, help="Pause the run until it is resolved.")
@click.option("--suggested-fix")
@click.option("--requested-info")
@click.option("--requirement-id")
@click.option("--option", "options", multiple=True, help="One way out that the targets may choose; may be repeated.")
@click.option("--run", "run_name", metavar="RUN", help="Which run; the newest, if not given.")
@journal_option
def raise_(
    kind: str,
    to: tuple[str, ...],
    message: str,
    source: str,
    severity: str,
    blocking: bool,
    suggested_fix: str | None,
    requested_info: str | None,
    requirement_id: str | None,
    options: tuple[str, ...],
    run_name: str | None,
    journal: Path | None,
) -> None:
    """Send feedback to a step, as a person or for a step.

    \b
    Example:
      backedge feedback raise --kind fix_request --to code --message "the login page is blank"
    """
    item = Feedback(
        kind,
        to,
        message,
        severity,
        blocking,
        suggested_fix,
        requested_info,
        options=[Option(option) for option in options],
        requirement_id=requirement_id,
    )

    async def send(engine: Engine) -> str:
        run = await the_run(engine, run_name)
        loop = await run.raise_feedback(secrets_in(where(journal), run.id).value(item), source)
        await refresh_views(where(journal), run, say)
        return loop

    click.echo(asking(journal, send))


@feedback.command()
@click.argument("loop")
@click.option("--target", help="Who acknowledges it; its target, if it has only one.")
@click.option("--message", default="")
@click.option("--action", default="")
@click.option("--eta", default="")
@click.option("--run", "run_name", metavar="RUN")
@journal_option
def acknowledge(
    loop: str, target: str | None, message: str, action: str, eta: str, run_name: str | None, journal: Path | None
) -> None:
    """Say that a target has received feedback and works on it.

    \b
    Example:
      backedge feedback ack L-1 --target human --message "on it" --eta 2h
    """

    async def tell(engine: Engine) -> str:
        run = await the_run(engine, run_name)
        words = secrets_in(where(journal), run.id).value((message, action, eta))
        who = target or await _only_target(run, loop)
        await run.acknowledge(loop, who, *words)
        return who

    click.echo(f"{loop} acknowledged by {asking(journal, tell)}")


async def _only_target(run: Run, loop: str) -> str:
    targets = next((each.targets for each in (await run.report()).loops if each.id == loop), ())
    if len(targets) > 1:
        raise IllegalCommand(f"{loop} has several targets: say which with --target ({', '.join(targets)})")
    return targets[0] if targets else ""


feedback.add_command(acknowledge, "ack")


@feedback.command("list")
@click.option("--run", "run_name", metavar="RUN")
@journal_option
@json_option
def list_(run_name: str | None, journal: Path | None, as_json: bool) -> None:
    """List the loops of a run.

    \b
    Example:
      backedge feedback list --json
    """

    async def ask(engine: Engine) -> Sequence[LoopReport]:
        return (await (await the_run(engine, run_name)).report()).loops

    loops = asking(journal, ask)
    if as_json:
        print_json(loops)
        return
    for loop in loops:
        ways = f"{shown(loop.source, 40)} → {shown(', '.join(loop.targets))}"
        click.echo(f"{shown(loop.id, 40)}  {loop.state:16}  {loop.kind}: {ways}")


@feedback.command("reclassify")
@click.argument("finding")
@click.option("--phase", required=True, help="The phase that injected it.")
@click.option("--run", "run_name", metavar="RUN")
@journal_option
def reclassify(finding: str, phase: str, run_name: str | None, journal: Path | None) -> None:
    """Say which phase injected a finding: that is the truth from then on.

    \b
    Example:
      backedge feedback reclassify F-3 --phase planning
    """

    async def tell(engine: Engine) -> None:
        await (await the_run(engine, run_name)).reclassify(finding, phase, _me())

    asking(journal, tell)
    click.echo(f"{finding}: {phase}")


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@journal_option
def pause(run_name: str | None, journal: Path | None) -> None:
    """Start nothing more in RUN, or the newest; what runs finishes. `backedge resume` goes on.

    \b
    Example:
      backedge pause
    """

    async def tell(engine: Engine) -> str:
        run = await the_run(engine, run_name)
        await run.pause(_me())
        return run.id

    click.echo(f"{asking(journal, tell)} is paused")


@click.command()
@click.argument("run_name", metavar="RUN")
@click.option("--reason", default="")
@journal_option
def cancel(run_name: str, reason: str, journal: Path | None) -> None:
    """End RUN; what was made stays, and running attempts are stopped.

    \b
    Example:
      backedge cancel r-0193 --reason "the feature is no longer wanted"
    """

    async def tell(engine: Engine) -> str:
        run = await the_run(engine, run_name)
        await run.cancel(_me(), secrets_in(where(journal), run.id).text(reason))
        await _end_agents(run, journal)
        await refresh_views(where(journal), run, say)
        return run.id

    click.echo(f"{asking(journal, tell)} is cancelled")
