"""One call of `backedge`, from arguments to exit code."""

from __future__ import annotations

import os
import sys

import click

from backedge.cli.commands import EnoughRead, main
from backedge.core.errors import BackedgeError

INTERRUPTED = 130


def code_of() -> int:
    """Run the command and return its exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # missing, as under a daemon
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - it is needed until the end
        # If the terminal cannot show a character, print an escape instead of failing.
        getattr(sys, name).reconfigure(errors="backslashreplace")
    try:
        code = main.main(prog_name="backedge", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        click.echo(f"backedge: {_words(error)}", err=True)
        return error.exit_code
    except BackedgeError as error:
        from backedge.core.text import clean

        click.echo(f"backedge: {clean(str(error))}", err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("backedge: interrupted", err=True)
        return INTERRUPTED
    except (EnoughRead, BrokenPipeError):
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        what = f"{error.filename}: " if error.filename else ""
        click.echo(f"backedge: {what}{error.strerror or error}: fix this and try again", err=True)
        return 2
    return code if isinstance(code, int) else 0


def _words(error: click.ClickException) -> str:
    """A usage error as one sentence, with the help of the command that was meant."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(error.ctx.command, click.Group):
        path, names = error.ctx.command_path, ", ".join(error.ctx.command.commands)
        return f"{path.partition(' ')[2]} needs a command: use one of {names}: see `{path} --help`"
    text = error.format_message()
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else ""
    if not command or "--help" in text:
        return text
    return f"{text.rstrip('.')}: see `{command} --help`"


def _drop_output() -> None:
    """Discard the rest of the buffer. Otherwise Python would try to write it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
