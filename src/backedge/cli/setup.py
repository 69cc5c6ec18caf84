"""`init`, `agents`, `completions` and `demo`: getting started."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

import click

from backedge.cli.common import json_option, print_json
from backedge.config import EDITOR_LINE
from backedge.core.errors import WorkflowError

CLIS = ("claude", "codex", "gemini", "opencode")


@click.command()
@click.option("--name", help="The name of the workflow; that of the folder, if not given.")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
def init(name: str | None, force: bool) -> None:
    """Write a workflow file to start from: a coder and its tests, as commands.

    \b
    Example:
      backedge init && backedge check
    """
    target = Path.cwd() / "backedge.yaml"
    if target.exists() and not force:
        raise WorkflowError(f"{target} exists: `--force` overwrites it")
    target.write_text(
        f"{EDITOR_LINE}\n"
        f"name: {name or Path.cwd().name}\n"
        "limits: {rounds_per_loop: 3}\n"
        "steps:\n"
        "  code: {phase: code, run: [python, agents/code.py]}\n"
        '  test: {tests: code, run: [python, -m, pytest, --junitxml, "{report}"], report: junit}\n',
        encoding="utf-8",
    )
    click.echo(f"wrote {target.name}: `backedge check` looks at it, `backedge run` runs it")


@click.command()
@json_option
def agents(as_json: bool) -> None:
    """Say which agent CLIs are installed.

    \b
    Example:
      backedge agents
    """
    found = {name: shutil.which(name) for name in CLIS}
    if as_json:
        print_json([{"agent": name, "path": path, "installed": path is not None} for name, path in found.items()])
        return
    for name, path in found.items():
        click.echo(f"{name:10} {path or 'not installed'}")


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completions(shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    Example:
      backedge completions bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    from backedge.cli.main import main

    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(main, {}, "backedge", "_BACKEDGE_COMPLETE").source())


@click.command()
def demo() -> None:
    """Run the demo: the missing authentication requirement, told as it happens."""
    from backedge.demo import main as tell

    sys.exit(asyncio.run(tell()))
