"""`notify`: sends the messages about questions, and says what could not be sent."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import click
import msgspec

from backedge.adapters.notifications.address import NotSent, name_of
from backedge.adapters.notifications.outbox_file import OutboxEntry
from backedge.analytics.message import Message
from backedge.app import Engine
from backedge.cli.common import existing, journal_option, json_option, print_json, say, shown, where
from backedge.config.finding import find
from backedge.core.errors import BackedgeError
from backedge.core.text import counted
from backedge.core.workflow.notify import Channel
from backedge.project import Project
from backedge.project.notifying import Notifying, unsent


class Unsent(msgspec.Struct, frozen=True):
    """A message that was not sent yet, as `notify --json` prints it."""

    run: str
    seq: int
    """The event that it is about."""
    escalation: str
    channel: str
    """Where it goes, without anything that may be a secret."""
    state: str
    """waiting or failed."""
    tries: int
    next_at: float
    """When it is tried again, in seconds since the epoch."""
    error: str
    """Why the last try failed."""


@click.group(invoke_without_command=True)
@click.option("--once", is_flag=True, help="Send what is due now, and exit.")
@click.option(
    "--url", default="", metavar="ADDRESS", help="The address of the web page, for links. Default: BACKEDGE_URL."
)
@journal_option
@json_option
@click.pass_context
def notify(context: click.Context, once: bool, url: str, journal: Path | None, as_json: bool) -> None:
    """Send the messages about questions to the channels under `notify:` in the workflow file.

    `run`, `resume` and `serve` do this while they run. This command does it when none of them does: it reminds people, lets
    questions expire, and sends what is due until it is interrupted. With --once it does that once, lists what could not be
    sent, and exits with 1 if there is any. Only one process sends for a journal at a time.

    \b
    Example:
      backedge notify test
      backedge notify --once
    """
    if context.invoked_subcommand is not None:
        return
    spot = existing(journal)
    sends = asyncio.run(_sent_once(spot, url) if once else _sent_until_stopped(spot, url))
    left = asyncio.run(_listed(spot))
    if as_json:
        print_json(left)
    else:
        _print(left)
    if not sends and not as_json:
        say("another process sends for this journal")
    sys.exit(1 if once and any(each.error for each in left) else 0)


async def _sent_once(spot: Project, url: str) -> bool:
    async with Engine(spot.journal) as engine:
        with Notifying(engine, spot, url) as sender:
            await sender.pass_once()
            # What became due in this pass is sent in the next one.
            await sender.pass_once()
            return sender.sends


async def _sent_until_stopped(spot: Project, url: str) -> bool:
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    say("sending; Ctrl-C stops")
    async with Engine(spot.journal) as engine:
        with Notifying(engine, spot, url, warn=lambda text: say(f"warning: {shown(text, 300)}")) as sender:
            task = asyncio.create_task(sender.keep_sending())
            await stop.wait()
            sender.stop()
            await task
            return sender.sends


async def _listed(spot: Project) -> list[Unsent]:
    """The messages that wait or have failed."""
    entries = unsent(spot)
    channels: dict[str, tuple[Channel, ...]] = {}
    async with Engine(spot.journal) as engine:
        for run in dict.fromkeys(each.run for each in entries):
            try:
                channels[run] = (await (await engine.find(run)).state()).workflow.notify
            except BackedgeError:
                channels[run] = ()
    return [_unsent(each, channels[each.run]) for each in entries]


def _unsent(entry: OutboxEntry, channels: tuple[Channel, ...]) -> Unsent:
    name = name_of(channels[entry.channel]) if entry.channel < len(channels) else "an unknown channel"
    return Unsent(entry.run, entry.seq, entry.escalation, name, entry.state, entry.tries, entry.next_at, entry.error)


def _print(left: list[Unsent]) -> None:
    if not left:
        click.echo("nothing is left to send")
        return
    click.echo(f"{counted(len(left), 'message')} not sent yet:")
    for each in left:
        when = ""
        if each.state == "waiting" and each.next_at > time.time():
            when = f", next try in {max(1, round(each.next_at - time.time()))} s"
        tries = f" after {counted(each.tries, 'try')}{when}" if each.tries else ""
        why = f": {shown(each.error, 200)}" if each.error else ""
        click.echo(f"  {each.run} {each.escalation} to {each.channel}: {each.state}{tries}{why}")


@notify.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@journal_option
def test(file: Path | None, journal: Path | None) -> None:
    """Send a test message to every channel of the workflow file, and say what happened.

    Quiet hours do not hold it back. It exits with 1 if a channel did not take it.

    \b
    Example:
      backedge notify test
    """
    from backedge.adapters.notifications.sending import send
    from backedge.config.workflow_file import load

    source = load(file or find(Path.cwd()))
    channels = source.definition.notify
    if not channels:
        click.echo('the workflow file has no channels: add `notify:`, for example `notify: [{to: "${HOOK_URL}"}]`')
        sys.exit(1)
    spot, now, failed = where(journal, source.path), time.time(), False
    told = test_message(source.definition.name, now)

    async def tell(channel: Channel) -> str:
        try:
            await send(channel, told, now, os.environ, spot.folder)
        except NotSent as error:
            return str(error)
        return ""

    async def tell_all() -> list[str]:
        return await asyncio.gather(*(tell(channel) for channel in channels))

    for channel, why in zip(channels, asyncio.run(tell_all()), strict=True):
        click.echo(f"{name_of(channel)}: {f'not sent: {shown(why, 300)}' if why else 'sent'}")
        failed = failed or bool(why)
    sys.exit(1 if failed else 0)


def test_message(workflow: str, now: float) -> Message:
    """A message that asks nothing."""
    title = f"{workflow}: a test message of backedge"
    text = f"{title}\nThis channel works. It needs no answer."
    return Message(f"test.{int(now)}", "opened", "test", workflow, "E-0", title, text, "This is a test.", opened_at=now)
