"""The commands of `backedge`. Each is imported when it is used, so that help is quick."""

from __future__ import annotations

from importlib import import_module
from keyword import iskeyword

import click

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("setup", "Write a workflow file to start from."),
    "check": ("inspect", "Validate the workflow file, draw it, and say how many attempts a run can make."),
    "schema": ("inspect", "Print the JSON Schema of the workflow file."),
    "run": ("execute", "Start a run and watch it."),
    "resume": ("execute", "Continue a run where its journal ends."),
    "runs": ("look", "List the runs, newest first."),
    "show": ("look", "Show what happened in a run."),
    "watch": ("look", "Follow a run that another process executes."),
    "inbox": ("look", "List the open decisions of all runs."),
    "decide": ("decide", "Answer an escalation."),
    "feedback": ("answer", "Raise, acknowledge, list or reclassify feedback."),
    "what-if": ("inspect", "Say which steps the next round of a loop would run again, and the cost."),
    "pause": ("answer", "Start no more attempts in a run; running ones finish."),
    "cancel": ("answer", "End a run. What was made stays."),
    "context": ("context", "Read a run by path, and store values of your own beside it."),
    "next": ("stories", "Say what would be done about the stories, and why."),
    "board": ("stories", "Show the stories as a board."),
    "details": ("stories", "Show a story with the history of its refinement."),
    "unblock": ("stories", "Unblock a story."),
    "audit": ("audit", "Export or verify the events of a run."),
    "export": ("files", "Print a run as a file of another system, or as its report."),
    "import": ("files", "Import a file of another system as a run."),
    "stats": ("stats", "Show how feedback ended, where defects come from, and the cost of rework."),
    "prune": ("prune", "Free the space of runs that ended long ago; events are kept."),
    "agents": ("agents", "List the agent CLIs that are installed; write their prompts."),
    "completions": ("setup", "Print the completion script of your shell."),
    "demo": ("setup", "Run the demo."),
}


class EnoughRead(Exception):
    """The reader of our output closed it, which is not a failure. click would exit with 1, the code of a failed run."""


class Lazy(click.Group):
    """A group whose commands are imported when they are called."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise EnoughRead from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"backedge.cli.{COMMANDS[cmd_name][0]}")
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(module, f"{name}_" if iskeyword(name) else name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from backedge.core.suggestions import closest

            meant = closest(args[0], COMMANDS)
            hint = f"did you mean {meant!r}?" if meant else "`backedge --help` lists them"
            raise click.UsageError(f"no command {args[0]!r}: {hint}") from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="backedge")
def main() -> None:
    """Close the loop in multi-agent software work.

    When a later step finds a defect, it goes back to the step that caused it. That step reworks with the feedback, and
    the judge that found the defect verifies the fix.

    \b
    Example:
      backedge init && backedge check && backedge run
      backedge inbox; backedge decide E-1 continue
    """
