"""What an attempt changed, as `show --diff` and reports have it."""

from __future__ import annotations

from backedge.analytics.shape import Shape
from backedge.core.model import Change


class ProtectedDiff(Shape, frozen=True):
    """The difference of one protected file."""

    file: str
    lines: tuple[str, ...]
    """As a unified diff; empty if there is none to show."""
    note: str = ""
    """Why there is none."""


class AttemptChange(Shape, frozen=True):
    """What one attempt changed."""

    step: str
    """Empty for what no attempt changed."""
    attempt: int
    version: int
    """The new version, or the last one if the attempt made none."""
    loops: tuple[str, ...]
    """The loops whose feedback it addresses; empty if only an input changed."""
    summary: str
    diff: tuple[str, ...]
    """The difference of the outputs, as unified diff lines."""
    left_out: int
    """How many lines of the difference were left out."""
    files: tuple[Change, ...]
    """The files of the workspace that changed, and where, if that is known."""
    files_diff: tuple[str, ...] = ()
    """The stored differences of those files, as unified diff lines."""
    files_left_out: int = 0
    note: str = ""
    """Why there is no difference of the outputs."""
    undone: tuple[str, ...] = ()
    """What was undone, as unified diff lines: by a rollback, after an error, or because the step may not change it."""
    undone_left_out: int = 0
    undone_because: str = ""
    """Why it was undone; empty if nothing was."""
    protected: tuple[ProtectedDiff, ...] = ()
    """The tests and configuration of judges that it left changed, compared with the start of the run: all of them."""
    new_version: bool = True
    """Whether the attempt made a new version of its artifact."""
