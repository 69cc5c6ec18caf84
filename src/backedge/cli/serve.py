"""`serve`: the web page and the HTTP API, and the tokens for them."""

from __future__ import annotations

import ipaddress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from backedge.cli.common import existing, journal_option, json_option, print_json, say, where
from backedge.cli.people import me, require_person
from backedge.core.errors import BackedgeError

if TYPE_CHECKING:
    from backedge.web.access.tokens import Tokens

PORT = 8642
_NEEDED = ("jinja2", "starlette", "uvicorn")


class ExtraMissing(BackedgeError):
    """A package that is only installed on request is missing."""


def require_serve() -> None:
    """Raises ExtraMissing if the packages of the extra `serve` are not installed."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ExtraMissing(f"the page needs {', '.join(missing)}: install it with `pip install 'backedge[serve]'`")


@click.group(invoke_without_command=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="The port; 0 takes a free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen. Another one needs --allow-host.")
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="Also answer to this name, such as that of a reverse proxy. Repeatable.",
)
@click.option(
    "--trust-user-header", "user_header", metavar="NAME", default="", help="The header in which a proxy names its user."
)
@click.option("--execute", is_flag=True, help="Execute runs too: continue those that stopped, and start new ones.")
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
@journal_option
@click.pass_context
def serve(
    ctx: click.Context,
    port: int,
    host: str,
    allow_hosts: tuple[str, ...],
    user_header: str,
    execute: bool,
    opens: bool,
    journal: Path | None,
) -> None:
    """Show runs, the inbox and the board in a browser, and answer there; programs use the HTTP API.

    It prints an address with a token in it. Keep it to yourself: it lets a browser do what you may do. For other people and for
    programs, `serve token add` makes tokens that may do less. Without --execute the server shows and decides; runs are
    executed by `backedge run` and `backedge resume`. Ctrl-C ends it.

    \b
    Example:
      backedge serve --open
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = journal
        return
    require_serve()
    spot = existing(journal)
    require_person(journal, spot)
    if not _is_loopback(host) and not allow_hosts:
        raise click.UsageError(
            f"--host {host} lets other machines connect: say under which name with --allow-host NAME, "
            "and put a proxy with TLS before it"
        )
    from backedge.web.server import Serving, serve_forever

    def ready(address: str) -> None:
        click.echo(address)
        say("Open this address. Ctrl-C ends the server.")
        if opens:
            click.launch(address)

    serve_forever(spot, me() or "local", Serving(host, port, allow_hosts, user_header, execute), say, ready)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


@serve.group()
def token() -> None:
    """Add, list and remove the tokens of people and programs.

    \b
    Example:
      backedge serve token list
    """


def _tokens(journal: Path | None) -> Tokens:
    require_serve()
    require_person(journal)
    from backedge.web.access.tokens import Tokens

    return Tokens(where(journal).state)


@token.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["viewer", "decider", "admin"]),
    default="viewer",
    show_default=True,
    help="viewer reads; decider also decides and raises feedback; admin also starts, pauses and cancels runs.",
)
@click.option(
    "--for", "roles", multiple=True, metavar="ROLE", help="A decider only for escalations for this role. Repeatable."
)
@click.option("--proxy", is_flag=True, help="For a reverse proxy, which names its user: see --trust-user-header.")
@journal_option
def add(name: str, role: str, roles: tuple[str, ...], proxy: bool, journal: Path | None) -> None:
    """Make a token for NAME and print it, this once. Decisions with it are recorded under NAME.

    \b
    Example:
      backedge serve token add ann --role decider --for security
    """
    if roles and role != "decider":
        raise click.UsageError(f"--for limits a decider, and this is a token for a {role}: use --role decider")
    click.echo(_tokens(journal).add(name, role, roles, proxy))  # type: ignore[arg-type]
    say("It is shown only now: the journal's folder keeps nothing but its hash.")


@token.command("list")
@journal_option
@json_option
def list_(journal: Path | None, as_json: bool) -> None:
    """List the tokens: for whom they are and what they allow, not the tokens themselves.

    \b
    Example:
      backedge serve token list
    """
    found = _tokens(journal).all()
    if as_json:
        print_json([{"name": each.name, "role": each.role, "for": each.roles, "proxy": each.proxy} for each in found])
        return
    for each in found:
        limited = f"  for {', '.join(each.roles)}" if each.roles else ""
        click.echo(f"{each.name}  {each.role}{limited}{'  proxy' if each.proxy else ''}")
    if not found:
        click.echo("there are no tokens: only the address that `backedge serve` prints lets anybody in")


@token.command("remove")
@click.argument("name")
@journal_option
def remove(name: str, journal: Path | None) -> None:
    """Remove the token of NAME. A running server refuses it at once, and signs out its browsers.

    \b
    Example:
      backedge serve token remove ann
    """
    _tokens(journal).remove(name)
    click.echo(f"the token of {name} is removed")
