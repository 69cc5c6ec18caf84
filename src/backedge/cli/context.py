"""`context`: the state of a run as a tree of values, including your own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from backedge.app import Engine
from backedge.cli.common import asking, journal_option, print_json, the_run
from backedge.context import Context

T = TypeVar("T")
run_option = click.option("--run", "run_name", metavar="RUN", help="The run. Default: the newest.")
by_option = click.option("--by", default="", metavar="WHO", help="The person or step that sets it.")


@click.group()
def context() -> None:
    """Read the state of a run by path, and store your own values.

    Paths are agent_contexts.STEP.status (output, feedback_received), feedback_loops.ID, workflow_state.paused
    (pause_reason) and values.PATH.

    \b
    Example:
      backedge context get agent_contexts.code.status
      backedge context set review.depth 2
    """


def _asked(journal: Path | None, run_name: str | None, ask: Callable[[Context], Awaitable[T]]) -> T:
    async def go(engine: Engine) -> T:
        return await ask((await the_run(engine, run_name)).context)

    return asking(journal, go)


@context.command("get")
@click.argument("path", default="")
@run_option
@journal_option
def get(path: str, run_name: str | None, journal: Path | None) -> None:
    """Print the value at PATH as JSON, or the whole tree.

    \b
    Example:
      backedge context get workflow_state.paused
    """
    print_json(_asked(journal, run_name, lambda bus: bus.get(path)))


@context.command("set")
@click.argument("path")
@click.argument("value")
@run_option
@by_option
@journal_option
def set_(path: str, value: str, run_name: str | None, by: str, journal: Path | None) -> None:
    """Store VALUE at values.PATH. It is JSON if it can be read as JSON, text otherwise.

    \b
    Example:
      backedge context set review.depth 2
    """
    given: Any = value
    with suppress(msgspec.DecodeError):
        given = msgspec.json.decode(value)
    _asked(journal, run_name, lambda bus: bus.set(path, given, by))


@context.command("checkpoint")
@click.argument("name")
@run_option
@by_option
@journal_option
def checkpoint(name: str, run_name: str | None, by: str, journal: Path | None) -> None:
    """Save all values as NAME.

    \b
    Example:
      backedge context checkpoint before-review
    """
    _asked(journal, run_name, lambda bus: bus.checkpoint(name, by))


@context.command("restore")
@click.argument("name")
@run_option
@by_option
@journal_option
def restore(name: str, run_name: str | None, by: str, journal: Path | None) -> None:
    """Restore all values from the checkpoint NAME.

    \b
    Example:
      backedge context restore before-review
    """
    _asked(journal, run_name, lambda bus: bus.restore(name, by))


@context.command("read")
@click.argument("step")
@run_option
@journal_option
def read(step: str, run_name: str | None, journal: Path | None) -> None:
    """Print the unread feedback of STEP as JSON, and clear its inbox.

    \b
    Example:
      backedge context read code
    """
    print_json(_asked(journal, run_name, lambda bus: bus.read(step)))
