"""`serve`: the web page and the HTTP API."""

from __future__ import annotations

from pathlib import Path

import click

from backedge.cli.common import existing, journal_option


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8642, show_default=True, help="The port; 0 takes a free one."
)
@journal_option
def serve(port: int, journal: Path | None) -> None:
    """Show runs, the inbox and the board in a browser, and answer there.

    \b
    Example:
      backedge serve --open
    """
    from backedge.web.server import serve_forever

    spot = existing(journal)
    click.echo(f"http://127.0.0.1:{port}/")
    serve_forever(spot, port)
