"""`agents`: lists the installed agent CLIs, and writes their prompts to files."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import click
import msgspec

from backedge.adapters.agents.clis.cli import Cli
from backedge.adapters.agents.clis.registry import CLIS
from backedge.adapters.agents.prompts import shipped
from backedge.catalog import ROLES
from backedge.cli.common import json_option, print_json, shown
from backedge.core.errors import WorkflowError

PATIENCE = 20.0
"""Seconds that a CLI may take to print its version; some start slowly."""
PROMPTS = "prompts"
_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")


class Probe(msgspec.Struct, frozen=True):
    """The result of calling a CLI with --version, which uses no model and costs nothing."""

    agent: str
    path: str | None
    installed: bool
    works: bool
    version: str | None
    problem: str
    install: str


@click.command()
@click.option(
    "--eject",
    "roles",
    multiple=True,
    type=click.Choice([*ROLES, "all"]),
    help=f"Write the prompt of a role to {PROMPTS}/ROLE.md, so that you can change it. Repeatable.",
)
@click.option("--force", is_flag=True, help="With --eject: overwrite existing files.")
@json_option
def agents(roles: tuple[str, ...], force: bool, as_json: bool) -> None:
    """List the installed agent CLIs, with their versions.

    An agent CLI gets the prompt of a role: plan, design, code, review or test-writer. The phase of the step chooses the
    role; `prompt: review` in a step chooses another one. `--eject review` writes the prompt to a file that you can
    change; use it with `prompt: prompts/review.md`.

    \b
    Example:
      backedge agents
      backedge agents --eject review
    """
    if roles:
        _eject(ROLES if "all" in roles else tuple(dict.fromkeys(roles)), force, as_json)
        return
    with ThreadPoolExecutor(len(CLIS)) as pool:
        probes = list(pool.map(probe, CLIS.values()))
    if as_json:
        print_json(probes)
        return
    for each in probes:
        if not each.installed:
            click.echo(f"{each.agent:10} not installed: {each.install}")
        elif each.works:
            click.echo(f"{each.agent:10} {each.version:12} {each.path}")
        else:
            click.echo(f"{each.agent:10} does not work: {shown(each.problem)} ({each.path})")


def probe(cli: Cli) -> Probe:
    """Check whether a CLI is installed and starts."""
    install = f"npm install -g {cli.package}"
    path = shutil.which(cli.name)
    if path is None:
        return Probe(cli.name, None, False, False, None, "it is not on the PATH", install)
    try:
        code, printed, errors = _version_of(path, {**os.environ, **cli.env})
    except subprocess.TimeoutExpired:
        return Probe(cli.name, path, True, False, None, f"no version after {PATIENCE:g} s", install)
    except OSError as error:
        return Probe(cli.name, path, True, False, None, f"it cannot be started: {error.strerror or error}", install)
    version = _VERSION.search(printed)
    if code or version is None:
        said = (errors.strip() or printed.strip() or "it printed nothing")[-500:]
        return Probe(cli.name, path, True, False, None, f"exit code {code}: {said}", install)
    return Probe(cli.name, path, True, True, version[0], "", install)


def _version_of(path: str, env: Mapping[str, str]) -> tuple[int, str, str]:
    """The exit code, stdout and stderr. Most CLIs are scripts that start the real program; a timeout ends both."""
    with subprocess.Popen(
        [path, "--version"],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            said = process.communicate(timeout=PATIENCE)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    printed, errors = (each.decode("utf-8", "replace") for each in said)
    return process.returncode, printed, errors


def _eject(roles: tuple[str, ...], force: bool, as_json: bool) -> None:
    folder = Path.cwd() / PROMPTS
    files = {role: folder / f"{role}.md" for role in roles}
    there = [f"{PROMPTS}/{path.name}" for path in files.values() if path.exists()]
    if there and not force:
        raise WorkflowError(f"{', '.join(there)} already exists: use `--force` to overwrite it")
    folder.mkdir(exist_ok=True)
    for role, path in files.items():
        path.write_text(shipped(role), encoding="utf-8")
    if as_json:
        print_json([{"role": role, "path": str(path)} for role, path in files.items()])
        return
    for path in files.values():
        click.echo(f"wrote {PROMPTS}/{path.name}: use it with `prompt: {PROMPTS}/{path.name}` in a step")
