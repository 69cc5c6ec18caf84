"""`init`, `completions` and `demo`: commands to get started."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import click

from backedge.adapters.journals.private_files import private_folder
from backedge.catalog import AGENT_CLIS
from backedge.config import EDITOR_LINE, SCHEMA_FILE, schema_text
from backedge.core.errors import WorkflowError
from backedge.project import STATE
from backedge.templates import ABOUT, AGENTS, PATTERNS, TEMPLATES, Found, found_in, rendered
from backedge.templates.runners import Tool
from backedge.templates.runners import command as test_tool
from backedge.templates.trial import failing_judges

SCRIPTS = "scripts"
"""The answer for scripts that play the agents."""


@click.command()
@click.option("--template", type=click.Choice(TEMPLATES), help="The template to start from. Default: feature.")
@click.option(
    "--agent",
    type=click.Choice([*AGENT_CLIS, SCRIPTS]),
    help="The agent that does the work. Default: the first installed agent CLI.",
)
@click.option(
    "--test", "test_command", metavar="COMMAND", help="The command that runs your tests. Default: what is found."
)
@click.option("--name", help="The name of the workflow. Default: the name of the folder.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing and take what is found, as without a terminal.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init(
    template: str | None, agent: str | None, test_command: str | None, name: str | None, yes: bool, force: bool
) -> None:
    """Write a workflow file for this folder, with the agent CLI, tests and linters that it finds.

    On a terminal it asks three questions, each with an answer to accept: what to do, which agent does the work, and how
    your tests are run.

    It tries the linters and type checkers that it finds. One that fails on the files of today is only a comment in the
    workflow file: agents would get all that it finds.

    If no agent CLI is installed, it also writes small scripts to .backedge-agents/ that play the agents. The workflow runs
    at once, and you can replace the scripts one by one. No linter of yours looks at them, and a team can commit them.

    \b
    Example:
      backedge init --template tight-loop && backedge run
      backedge init --yes --agent claude --test "uv run pytest tests/unit"
    """
    folder = Path.cwd()
    target = folder / "backedge.yaml"
    if target.exists() and not force:
        raise WorkflowError(f"{target} already exists: use `--force` to overwrite it")
    found = found_in(folder)
    found = replace(found, failing=failing_judges(folder, found.judges))
    _tell_found(found)
    ask = not yes and sys.stdin.isatty() and sys.stdout.isatty()
    template = template or (_asked_template() if ask else "feature")
    agent = agent or (_asked_agent(found) if ask else found.cli or SCRIPTS)
    cli = "" if agent == SCRIPTS else agent
    if test_command is None and ask and template not in PATTERNS:
        test_command = _asked_test(found)
    if test_command:
        found = replace(found, typed=_typed(test_command))
    made = rendered(template, name or folder.name or "workflow", found, cli)
    made = {"backedge.yaml": EDITOR_LINE + made.pop("backedge.yaml"), **made, SCHEMA_FILE: schema_text()}
    for path, text in made.items():
        kept = (folder / path).exists() and not force
        click.echo(f"{'kept' if kept else 'wrote':8} {path}")
        if not kept:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    private_folder(folder / STATE)
    _tell_next(template, cli, found)


def _tell_found(found: Found) -> None:
    words = list(found.words())
    for word, what in words:
        if what:
            click.echo(f"found    {word:8} {what}")
    missing = [word for word, what in words if not what]
    if missing:
        click.echo(f"missing  {', '.join(missing)}")
    for name in found.failing:
        program = shlex.join(found.judges[name].run[:2])
        click.echo(
            f"fails    {name:8} {program} finds something in the files of today: it is a comment in backedge.yaml"
        )


def _asked_template() -> str:
    click.echo("\nWhat do you want to do?")
    for name in TEMPLATES:
        if name not in PATTERNS:
            click.echo(f"  {name:12} {ABOUT[name]}")
    choice: str = click.prompt("template", type=click.Choice(TEMPLATES), default="feature", show_choices=False)
    return choice


def _asked_agent(found: Found) -> str:
    click.echo("\nWhich agent does the work? `scripts` are small programs that play one, to try things without cost.")
    choices = [*AGENT_CLIS, SCRIPTS]
    choice: str = click.prompt("agent", type=click.Choice(choices), default=found.cli or SCRIPTS)
    return choice


def _asked_test(found: Found) -> str:
    click.echo("\nHow are your tests run? An empty answer takes the command below, if there is one.")
    proposed = shlex.join(found.test.run) if found.test is not None else "none: an agent judges instead"
    typed: str = click.prompt(f"test command [{proposed}]", default="", show_default=False)
    return typed.strip()


def _typed(command: str) -> Tool:
    try:
        return test_tool(command)
    except ValueError as error:
        raise WorkflowError(f"the test command {command!r} cannot be read: {error}; close its quotes") from error


def _tell_next(template: str, cli: str, found: Found) -> None:
    if template == "review-only" and not found.git:
        first = "run `git init` first" if shutil.which("git") else "install git and run `git init` first"
        click.echo(f"\nThis template reviews a git change, and this folder is not in a repository: {first}.")
    if not cli:
        click.echo(
            f"\nThe scripts in {AGENTS}/ play the agents: replace them with your own programs, or with `agent: claude`."
        )
    elif found.test is None and template not in PATTERNS:
        click.echo(
            "\nNo tests were found, so an agent judges the result. With tests of your own: `backedge init --force`."
        )
    click.echo("\nnext:    backedge check      draws the workflow, and says how many attempts a run makes")
    if cli:
        click.echo(f"         backedge doctor     says whether {cli} is logged in, and what else is missing")
    if template == "stories":
        click.echo("         backedge board      shows the stories; `backedge next` lists the next actions")
        click.echo("         backedge run --auto")
        return
    if template in PATTERNS and not cli:
        click.echo("         backedge run")
        return
    task = "base=HEAD" if template == "review-only" else 'task="describe the task"'
    click.echo(f"         backedge run --input {task}")


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completions(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    Example:
      backedge completions bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    from backedge.cli.commands import main

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(main, {}, "backedge", "_BACKEDGE_COMPLETE").source())


@click.command()
@click.option("--keep", is_flag=True, help="Keep the folder of the demo, so that you can explore it.")
@click.option("--serve", is_flag=True, help="Show the run in a browser at the end, until Ctrl-C.")
def demo(keep: bool, serve: bool) -> None:
    """Watch a small repository being built: a linter, tests and a reviewer send work back until it is verified.

    \b
    Example:
      backedge demo --keep
    """
    from backedge.demo import main as tell

    sys.exit(tell(keep, serve))
