"""The `backedge` command. Each command lives in its own module, imported when it is used: help has to be quick."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("setup", "Write a workflow file to start from."),
    "check": ("inspect", "Validate the workflow file, draw it, and say the largest number of attempts."),
    "schema": ("inspect", "Print the JSON Schema of the workflow file."),
    "run": ("execute", "Start a run and watch it."),
    "resume": ("execute", "Go on with a run where its journal ends."),
    "runs": ("look", "List the runs, newest first."),
    "show": ("look", "Tell the story of a run."),
    "watch": ("look", "Follow a run that another process executes."),
    "inbox": ("look", "List the open decisions of all runs."),
    "decide": ("answer", "Answer an escalation."),
    "feedback": ("answer", "Raise, acknowledge, list or reclassify feedback."),
    "what-if": ("inspect", "Say who would run again for a loop, and what that would cost."),
    "pause": ("answer", "Start nothing more in a run; what runs finishes."),
    "cancel": ("answer", "End a run; what was made stays."),
    "audit": ("audit", "Export or verify the events of a run."),
    "export": ("audit", "Export a run in the shape of other systems."),
    "prune": ("prune", "Give back the space of runs that ended long ago; events stay."),
    "agents": ("setup", "Say which agent CLIs are installed."),
    "completions": ("setup", "Print the completion script of your shell."),
    "demo": ("setup", "Run the demo."),
}


class Lazy(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"backedge.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, 1)
            hint = f"did you mean {near[0]!r}?" if near else "`backedge --help` lists them"
            raise click.UsageError(f"no command {args[0]!r}: {hint}") from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="backedge")
def main() -> None:
    """Close the loop in multi-agent software work.

    Whatever a later step finds wrong goes back to the step that caused it, is redone with that feedback, verified by
    whoever complained, and recorded.

    \b
    Example:
      backedge init && backedge check && backedge run
      backedge inbox; backedge decide E-1 continue
    """


def entry() -> None:
    """The installed command: what goes wrong is told in a sentence, not in a traceback."""
    from backedge.core.errors import BackedgeError

    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # started without it, as by a daemon
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - it is needed until we leave
        # A terminal that cannot show a character shows another; nothing breaks for that.
        getattr(sys, name).reconfigure(errors="backslashreplace")
    try:
        code = main.main(prog_name="backedge", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BackedgeError as error:
        from backedge.core.wording import clean

        click.echo(f"backedge: {clean(str(error))}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("backedge: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has enough of it.
        _drop_output()
        sys.exit(0)
    except OSError as error:
        _drop_output()
        what = f"{error.filename}: " if error.filename else ""
        click.echo(f"backedge: {what}{error.strerror or error}: make it possible, and try again", err=True)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _drop_output() -> None:
    """What is left in the buffer has nowhere to go: without this, leaving would try once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    entry()
