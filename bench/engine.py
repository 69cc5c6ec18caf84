"""What a scenario asks of an engine. Plain calls: an engine that is async inside brings its own loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path


class Unsupported(Exception):
    """The engine has no way of doing this; the text says why."""


class Engine(ABC):
    """One way of making the workload durable, opened on a folder that may already hold runs.

    Every method returns only when what it did is as durable as the engine makes it by default.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def run_each(self, runs: Sequence[str]) -> None:
        """Start these runs and take them to the end, one after another."""

    @abstractmethod
    def run_together(self, runs: Sequence[str]) -> None:
        """Start these runs all at once, and return when all have ended."""

    @abstractmethod
    def run_rounds(self, run: str, rounds: int, on_round: Callable[[], None]) -> None:
        """One run in which review fails `rounds` times; `on_round` is called once for each of these rounds.

        Never while earlier steps are still to be stored: the time between two calls is what a durable round costs.
        """

    @abstractmethod
    def park(self, runs: Sequence[str]) -> None:
        """Take each run to where it waits for a person, and hold it as this engine holds a waiting run."""

    @abstractmethod
    def decide(self, run: str) -> float:
        """Decide for a run parked in this process and take it to its end.

        Returns the seconds from giving the decision to the start of the run's next step.
        """

    @abstractmethod
    def resume_all(self) -> int:
        """Find every run that waits in the folder, decide for it and take it to its end; returns how many."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything; runs that wait stay in the folder."""

    def await_outsider(self, run: str) -> float:
        """Let a run parked here go on when another process decides; returns `time.monotonic()` as its next step starts."""
        raise Unsupported("nothing wakes a run that another process holds: whoever decides has to run it")

    def decide_outside(self, run: str) -> None:
        """Record a decision for a run that another process holds."""
        raise Unsupported("nothing wakes a run that another process holds: whoever decides has to run it")

    def help_command(self) -> Sequence[str]:
        """The command line that prints the engine's help."""
        raise Unsupported("only our own command line has a target")
