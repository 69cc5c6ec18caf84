"""`feedback resolve`, `feedback escalate` and `feedback withdraw`: what a person can do to any open loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import click

from backedge.answers import is_idle, refresh_views
from backedge.app import Engine, Run
from backedge.cli.common import asking, idle_words, journal_option, json_option, own_id, print_json, say, the_run, where
from backedge.cli.people import me, require_person
from backedge.project import secrets_in


def _do(
    loop: str,
    run_name: str | None,
    journal: Path | None,
    words: tuple[str, ...],
    as_json: bool,
    act: Callable[..., Awaitable[None]],
) -> None:
    """Let a person act on a loop, and say what became of it. `words` may contain secrets."""
    require_person(journal)

    async def tell(engine: Engine) -> tuple[str, str, str]:
        run = await the_run(engine, run_name)
        await act(run, *secrets_in(where(journal), run.id).value(words))
        await refresh_views(where(journal), run, say)
        state = await run.state()
        after = state.loop(loop)
        waits = await is_idle(engine, run)
        return run.id, after.state if after is not None else "", idle_words(where(journal), run.id) if waits else ""

    run_id, state, idle = asking(journal, tell)
    if as_json:
        print_json({"run": run_id, "loop": loop, "state": state})
    else:
        click.echo(f"{loop} of {run_id}: {state}")
    if idle:
        say(idle)


run_option = click.option("--run", "run_name", metavar="RUN", help="The run. Default: the newest.")
by_option = click.option("--by", default=None, metavar="WHO", help="The person who does it. Default: you.")
note_option = click.option("--note", default="", help="Why, for the steps concerned and for the journal.")


@click.command()
@click.argument("loop", type=own_id)
@click.option("--option", help="One of the options that the feedback offers.")
@click.option("--note", default="", help="The answer in words, or why you chose the option.")
@run_option
@by_option
@journal_option
@json_option
def resolve(
    loop: str, option: str | None, note: str, run_name: str | None, by: str | None, journal: Path | None, as_json: bool
) -> None:
    """Resolve the open loop LOOP with an option or a note, escalated or not.

    The step that raised it runs once more with your answer. The answer to a check, a gate or a test goes to the steps
    that have to change something, as advice for one more round.

    \b
    Example:
      backedge feedback resolve L-1 --note "mail may be empty"
    """

    async def act(run: Run, note: str, option: str) -> None:
        await run.resolve_feedback(loop, note=note, option=option or None, by=me() if by is None else by)

    _do(loop, run_name, journal, (note, option or ""), as_json, act)


@click.command()
@click.argument("loop", type=own_id)
@note_option
@run_option
@by_option
@journal_option
@json_option
def escalate(loop: str, note: str, run_name: str | None, by: str | None, journal: Path | None, as_json: bool) -> None:
    """Hand the open loop LOOP to a person, whatever its limits say.

    \b
    Example:
      backedge feedback escalate L-1 --note "they talk past each other"
    """

    async def act(run: Run, note: str) -> None:
        await run.escalate_feedback(loop, note=note, by=me() if by is None else by)

    _do(loop, run_name, journal, (note,), as_json, act)


@click.command()
@click.argument("loop", type=own_id)
@note_option
@run_option
@by_option
@journal_option
@json_option
def withdraw(loop: str, note: str, run_name: str | None, by: str | None, journal: Path | None, as_json: bool) -> None:
    """Take the open loop LOOP back: what it asked for is no longer wanted.

    Its findings are withdrawn, and the step that raised it runs once more.

    \b
    Example:
      backedge feedback withdraw L-1 --note "the requirement is gone"
    """

    async def act(run: Run, note: str) -> None:
        await run.withdraw_feedback(loop, note=note, by=me() if by is None else by)

    _do(loop, run_name, journal, (note,), as_json, act)
