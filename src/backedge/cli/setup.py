"""`init`, `completions` and `demo`: commands to get started."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from backedge.adapters.journals.private_files import private_folder
from backedge.catalog import AGENT_CLIS
from backedge.config import EDITOR_LINE, SCHEMA_FILE, schema_text
from backedge.core.errors import WorkflowError
from backedge.project import STATE
from backedge.templates import PATTERNS, TEMPLATES, found_in, rendered


@click.command()
@click.option(
    "--template", type=click.Choice(TEMPLATES), default="feature", show_default=True, help="The template to start from."
)
@click.option(
    "--agent",
    type=click.Choice([*AGENT_CLIS, "scripts"]),
    help="The agent that does the work. Default: the first installed agent CLI.",
)
@click.option("--name", help="The name of the workflow. Default: the name of the folder.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init(template: str, agent: str | None, name: str | None, force: bool) -> None:
    """Write a workflow file for this folder, with the agent CLI, tests and linter that it finds.

    If no agent CLI is installed, it also writes small scripts to agents/ that play the agents. The workflow runs at once,
    and you can replace the scripts one by one.

    \b
    Example:
      backedge init --template tight-loop && backedge run
    """
    folder = Path.cwd()
    found = found_in(folder)
    cli = "" if agent == "scripts" else agent or found.cli
    made = rendered(template, name or folder.name or "workflow", found, cli)
    target = folder / "backedge.yaml"
    if target.exists() and not force:
        raise WorkflowError(f"{target} already exists: use `--force` to overwrite it")
    made = {"backedge.yaml": EDITOR_LINE + made.pop("backedge.yaml"), **made, SCHEMA_FILE: schema_text()}
    words = list(found.words())
    for word, what in words:
        if what:
            click.echo(f"found    {word:8} {what}")
    missing = [word for word, what in words if not what]
    if missing:
        click.echo(f"missing  {', '.join(missing)}")
    for path, text in made.items():
        kept = (folder / path).exists() and not force
        click.echo(f"{'kept' if kept else 'wrote':8} {path}")
        if not kept:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    _ignored(folder / STATE)
    if template == "review-only" and not found.git:
        first = "run `git init` first" if shutil.which("git") else "install git and run `git init` first"
        click.echo(f"\nThis template reviews a git change, and this folder is not in a repository: {first}.")
    if not cli:
        click.echo(
            "\nThe scripts in agents/ play the agents: replace them with your own programs, or with `agent: claude`."
        )
    click.echo("\nnext:    backedge check      draws the workflow, and prints the maximum number of attempts")
    if template == "stories":
        click.echo("         backedge board      shows the stories; `backedge next` lists the next actions")
        click.echo("         backedge run --auto")
        return
    if template in PATTERNS and not cli:
        click.echo("         backedge run")
        return
    task = "base=HEAD" if template == "review-only" else 'task="describe the task"'
    click.echo(f"         backedge run --input {task}")


def _ignored(state: Path) -> None:
    """Keep the journal and the logs out of git, without changing the user's .gitignore."""
    private_folder(state)
    if not (state / ".gitignore").exists():
        (state / ".gitignore").write_text("*\n", encoding="utf-8")


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
def demo(keep: bool) -> None:
    """Watch a small repository being built: a linter, tests and a reviewer send work back until it is verified.

    \b
    Example:
      backedge demo
    """
    from backedge.demo import main as tell

    sys.exit(tell(keep))
