"""Which commands are for people: an agent may look at its own run and raise feedback, but not decide about it."""

from __future__ import annotations

import getpass
from pathlib import Path

from backedge.adapters.agents.enclosing import EnclosingAttempt, enclosing_attempt
from backedge.cli.common import where
from backedge.core.errors import IllegalCommand
from backedge.core.model import HUMAN
from backedge.project import Project


def me() -> str:
    """The name of the person at the terminal; empty if it is unknown."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def require_person(journal: Path | None, project: Project | None = None) -> None:
    """Raises IllegalCommand if an attempt of a run in this journal calls the command. It may use other journals:
    a repository may test with backedge."""
    caller = enclosing_attempt((project or where(journal)).journal)
    if caller is not None:
        raise IllegalCommand(
            f"decisions are for people; this is attempt {caller.attempt} of {caller.step}: "
            "report what you need in your outcome, or with `backedge feedback raise`"
        )


def speaker(journal: Path | None, said: str | None, run: str | None) -> tuple[str, str | None]:
    """Who raises feedback and in which run: an attempt speaks as its step, in its run. Raises IllegalCommand if it says
    that it is somebody else."""
    caller = enclosing_attempt(where(journal).journal)
    if caller is None:
        return said or HUMAN, run
    if said is not None and said != caller.step:
        raise _somebody_else(caller, f"as {said!r}", "leave out --from")
    if run is not None and not caller.run.startswith(run):
        raise _somebody_else(caller, f"in run {run!r}", "leave out --run")
    return caller.step, caller.run


def _somebody_else(caller: EnclosingAttempt, what: str, hint: str) -> IllegalCommand:
    return IllegalCommand(
        f"attempt {caller.attempt} of {caller.step} in run {caller.run!r} cannot speak {what}: {hint}"
    )
