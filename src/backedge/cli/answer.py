"""`feedback`, `pause` and `cancel`: commands to a run. If a process executes it, that process reacts at once."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from backedge.adapters.agents.enclosing import enclosing_attempt
from backedge.analytics.report import listed_loops, listed_refusals
from backedge.answers import cancel_run, require_words, send_feedback
from backedge.app import Engine, Run
from backedge.cli.by_hand import escalate, resolve, withdraw
from backedge.cli.common import (
    asking,
    idle_words,
    journal_option,
    json_option,
    own_id,
    print_json,
    reading,
    say,
    the_run,
    where,
)
from backedge.cli.page import Page, width_of
from backedge.cli.people import me, require_person, speaker
from backedge.cli.show import cut_words, read_run
from backedge.cli.story import loop_lines, refusal_lines
from backedge.core.errors import IllegalCommand
from backedge.core.model import Option
from backedge.core.value import Json
from backedge.engine.protocol import Feedback
from backedge.project import secrets_in


@click.group()
def feedback() -> None:
    """Raise, acknowledge, list, reclassify, resolve, escalate or withdraw feedback.

    \b
    Example:
      backedge feedback list
    """


@feedback.command("raise")
@click.option("--kind", required=True, help="The kind: fix_request, context_request, missing_requirement …")
@click.option("--to", multiple=True, help="A target step. Repeatable.")
@click.option("--message", required=True, help="What is wrong.")
@click.option(
    "--from", "source", help="The step that raises it; human by default. In an attempt, it is always its own step."
)
@click.option("--severity", default="high", show_default=True, help="critical, high, medium or low.")
@click.option("--blocking", is_flag=True, help="Pause the run until it is resolved.")
@click.option("--suggested-fix", help="How it could be fixed.")
@click.option("--requested-info", help="What you want to know, for a context_request.")
@click.option("--requirement-id", help="The requirement that it is about.")
@click.option("--artifact", "artifacts", multiple=True, help="Where it shows: a file, or file:line. Repeatable.")
@click.option("--details", metavar="JSON", help="Anything more, as JSON or text.")
@click.option("--option", "options", multiple=True, help="An option for the targets to choose from. Repeatable.")
@click.option("--run", "run_name", metavar="RUN", help="The run. Default: the newest.")
@journal_option
def raise_(
    kind: str,
    to: tuple[str, ...],
    message: str,
    source: str | None,
    severity: str,
    blocking: bool,
    suggested_fix: str | None,
    requested_info: str | None,
    requirement_id: str | None,
    artifacts: tuple[str, ...],
    details: str | None,
    options: tuple[str, ...],
    run_name: str | None,
    journal: Path | None,
) -> None:
    """Send feedback to a step, as a person or for a step. An agent speaks as its step, in its own run.

    \b
    Example:
      backedge feedback raise --kind fix_request --to code --message "the login page is blank"
    """
    speaks, run_name = speaker(journal, source, run_name)
    item = Feedback(
        kind,
        to,
        message,
        severity,
        blocking,
        suggested_fix,
        requested_info,
        artifacts=artifacts,
        details=_json_or_text(details),
        options=[Option(option) for option in options],
        requirement_id=requirement_id,
    )

    async def send(engine: Engine) -> tuple[str, list[str]]:
        run = await the_run(engine, run_name)
        if enclosing_attempt(where(journal).journal) is None:
            require_words(item, (await run.state()).workflow)  # what an attempt says is always recorded
        loop, warnings = await send_feedback(engine, where(journal), run, item, speaks, say)
        remarks = [f"  warning: {warning}" for warning in warnings]
        if await engine.journal.holder(run.id) is None:
            remarks.append(idle_words(where(journal), run.id))
        return loop, remarks

    loop, remarks = asking(journal, send)
    click.echo(loop)
    for remark in remarks:
        say(remark)


def _json_or_text(words: str | None) -> Json:
    try:
        return json.loads(words) if words is not None else None
    except ValueError:
        return words


@feedback.command()
@click.argument("loop", type=own_id)
@click.option("--target", help="The target that acknowledges it. Required if there are several.")
@click.option("--message", default="", help="A message to the source.")
@click.option("--action", default="", help="What the target is going to do.")
@click.option("--eta", default="", help="When it will be done.")
@click.option("--run", "run_name", metavar="RUN", help="The run. Default: the newest.")
@journal_option
def acknowledge(
    loop: str, target: str | None, message: str, action: str, eta: str, run_name: str | None, journal: Path | None
) -> None:
    """Confirm that a target has received the feedback LOOP and is working on it.

    \b
    Example:
      backedge feedback ack L-1 --target human --message "on it" --eta 2h
    """
    require_person(journal)

    async def tell(engine: Engine) -> str:
        run = await the_run(engine, run_name)
        words = secrets_in(where(journal), run.id).value((message, action, eta))
        who = target or await _only_target(run, loop)
        await run.acknowledge(loop, who, *words)
        return who

    click.echo(f"{loop} acknowledged by {asking(journal, tell)}")


async def _only_target(run: Run, loop: str) -> str:
    known = (await run.state()).loop(loop)
    targets = known.targets if known is not None else ()
    if len(targets) > 1:
        raise IllegalCommand(f"{loop} has several targets: choose one with --target ({', '.join(targets)})")
    return targets[0] if targets else ""


feedback.add_command(acknowledge, "ack")
feedback.add_command(resolve)
feedback.add_command(escalate)
feedback.add_command(withdraw)


@feedback.command("list")
@click.option("--run", "run_name", metavar="RUN", help="The run. Default: the newest.")
@journal_option
@json_option
def list_(run_name: str | None, journal: Path | None, as_json: bool) -> None:
    """List the loops of a run: who asks whom, everything that was asked, and what came of it. --json has every round, and refused
    feedback with the state `refused`.

    \b
    Example:
      backedge feedback list --json
    """

    report = reading(journal, lambda opened: read_run(opened, journal, run_name)).report
    loops = listed_loops(report)
    if as_json:
        print_json((*loops, *listed_refusals(report)))
        return
    page = Page(width_of(sys.stdout))
    for loop in loops:
        for line in loop_lines(loop, report, page):
            click.echo(line)
    for refusal in report.refused:
        for line in refusal_lines(refusal, page):
            click.echo(line)
    for line in cut_words(report.run, page):
        click.echo(line)


@feedback.command("reclassify")
@click.argument("finding", type=own_id)
@click.option("--phase", required=True, help="The phase that injected it.")
@click.option("--run", "run_name", metavar="RUN", help="The run. Default: the newest.")
@journal_option
def reclassify(finding: str, phase: str, run_name: str | None, journal: Path | None) -> None:
    """Record which phase injected FINDING. This overrides the judge.

    \b
    Example:
      backedge feedback reclassify F-3 --phase planning
    """
    require_person(journal)

    async def tell(engine: Engine) -> str:
        run = await the_run(engine, run_name)
        await run.reclassify(finding, phase, me())
        found = next(each for each in (await run.state()).findings.values() if each.name == finding)
        return ", ".join(found.phases)

    click.echo(f"{finding}: {asking(journal, tell)}")


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@journal_option
def pause(run_name: str | None, journal: Path | None) -> None:
    """Pause RUN, or the newest run. Running attempts finish, and none starts until `backedge resume`.

    \b
    Example:
      backedge pause
    """
    require_person(journal)

    async def tell(engine: Engine) -> str:
        run = await the_run(engine, run_name)
        await run.pause(me())
        return run.id

    run = asking(journal, tell)
    click.echo(f"{run} is paused")
    say(f"  Running attempts finish, and none starts. Continue with `backedge resume {run}`")


@click.command()
@click.argument("run_name", metavar="RUN")
@click.option("--reason", default="", help="The reason, for the journal.")
@journal_option
def cancel(run_name: str, reason: str, journal: Path | None) -> None:
    """End RUN and stop its running attempts. The work so far is kept.

    \b
    Example:
      backedge cancel r-0193 --reason "the feature is no longer wanted"
    """
    require_person(journal)

    async def tell(engine: Engine) -> str:
        run = await the_run(engine, run_name)
        await cancel_run(where(journal), run, me(), reason, say)
        return run.id

    click.echo(f"{asking(journal, tell)} is cancelled")
