"""The commands of `backedge`. Each one is imported only when it is used, so that help is fast."""

from __future__ import annotations

from importlib import import_module
from keyword import iskeyword

import click

TOPICS: dict[str, dict[str, tuple[str, str]]] = {
    "Start": {
        "demo": ("setup", "Watch a demo: a linter, tests and a reviewer send work back until it is verified."),
        "init": ("setup", "Write a workflow file for this folder."),
        "check": ("inspect", "Validate and draw the workflow file; say how many attempts a run makes."),
        "doctor": ("doctor", "Check this machine and this project, and say what to do."),
    },
    "Run": {
        "run": ("execute", "Start a run and watch it."),
        "resume": ("execute", "Continue a run where its journal ends."),
        "pause": ("answer", "Pause a run; running attempts finish."),
        "cancel": ("answer", "End a run; the work so far is kept."),
        "merge": ("worktrees", "Merge what a run delivered in its worktree into the current branch."),
        "discard": ("worktrees", "Remove the worktree of a run; its changes are kept as a patch."),
        "worktrees": ("worktrees", "List the worktrees of runs and stories, or remove one."),
    },
    "Look": {
        "runs": ("look", "List the runs: live, stopped, paused or asking you, and what to type next."),
        "show": ("show", "Show what happened in a run."),
        "watch": ("look", "Follow a run, whichever process executes it."),
        "logs": ("logs", "Print the prompts, tool calls and output of attempts."),
        "serve": ("serve", "Show runs, the inbox and the board in a browser, and answer there."),
        "stats": ("stats", "Show how feedback ended, where defects came from, and what rework cost."),
        "what-if": ("inspect", "Show which steps the next round of a loop would run again, and the cost."),
    },
    "Answer": {
        "inbox": ("look", "List the open escalations of all runs."),
        "decide": ("decide", "Answer an escalation."),
        "feedback": ("answer", "Raise, acknowledge, list, reclassify, resolve, escalate or withdraw feedback."),
        "notify": ("notify", "Send the messages about questions that are due, or a test message."),
        "context": ("context", "Read the state of a run by path, and store your own values."),
    },
    "Stories": {
        "next": ("stories", "List the next action for each story, with the reason."),
        "board": ("stories", "Show the stories as a board."),
        "details": ("details", "Show the phases, reviews and refinements of a story."),
        "unblock": ("stories", "Unblock a story."),
        "story": ("new_stories", "Add a story, or import GitHub issues as stories."),
    },
    "Journal and data": {
        "audit": ("audit", "Export or verify the events of a run."),
        "backup": ("backup", "Copy the journal to a file while runs go on."),
        "restore": ("backup", "Make the journal from a backup."),
        "prune": ("prune", "Free disk space of runs that ended long ago; events are kept."),
        "export": ("files", "Print a run as a report, or in the format of another system."),
        "import": ("files", "Import a file from another system as a run."),
    },
    "Set up": {
        "agents": ("agents", "List the installed agent CLIs, or write their prompts to files."),
        "schema": ("inspect", "Print the JSON Schema of the workflow file."),
        "completions": ("setup", "Print the completion script for your shell."),
    },
}
"""The commands by topic, each with its module and a sentence, in the order of the help."""
COMMANDS = {name: command for commands in TOPICS.values() for name, command in commands.items()}


class EnoughRead(Exception):
    """The reader of the output closed the pipe. That is not a failure, but click would exit with 1, like a failed run."""


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
            hint = f"did you mean {meant!r}?" if meant else "see `backedge --help`"
            raise click.UsageError(f"unknown command {args[0]!r}: {hint}") from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        # All topics use the same width, so that the sentences line up.
        widest = max(map(len, COMMANDS))
        for topic, commands in TOPICS.items():
            with formatter.section(topic):
                formatter.write_dl([(name.ljust(widest), text) for name, (_, text) in commands.items()])


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

    `backedge COMMAND --help` explains a command.
    """
