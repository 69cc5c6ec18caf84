"""The errors that backedge raises, by the party that has to act. Every message says what was got, what was expected and
what to do."""

from __future__ import annotations


class BackedgeError(Exception):
    """The base of all errors that backedge raises on purpose."""


Place = tuple[str | int, ...]
"""The keys that lead to a part of a workflow: ("steps", "code", "needs", "plan")."""


class WorkflowProblem(str):
    """One thing that is wrong with a workflow: a sentence for its author that also knows the place it is about.

    If a part in `depends_on` has another mistake, that mistake may have caused this problem. () is the whole workflow.
    """

    at: Place
    depends_on: tuple[Place, ...]

    def __new__(cls, text: str, at: Place, *depends_on: Place) -> WorkflowProblem:
        problem = super().__new__(cls, text)
        problem.at, problem.depends_on = at, depends_on
        return problem


class WorkflowError(BackedgeError):
    """The workflow is invalid, and its author has to change it. `problems` lists everything that is wrong with it."""

    def __init__(self, problems: tuple[str, ...] | str) -> None:
        self.problems = (problems,) if isinstance(problems, str) else problems
        super().__init__("; ".join(self.problems))


class IllegalCommand(BackedgeError):
    """The command does not refer to anything that is pending in this run. Nothing was recorded."""


class ImportRefused(BackedgeError):
    """The file to import is invalid. Nothing was recorded. `problems` lists what is wrong, with line numbers."""

    def __init__(self, problems: tuple[str, ...] | str) -> None:
        self.problems = (problems,) if isinstance(problems, str) else problems
        super().__init__("\n".join(self.problems))


class NotFound(IllegalCommand):
    """The command names a loop, finding, escalation, step or run that does not exist."""


class AlreadyClosed(IllegalCommand):
    """The loop or escalation is already closed. The message says what closed it."""


class NotExecuted(IllegalCommand):
    """This process does not execute the run, or no longer does. Resume the run first."""


class EngineClosed(BackedgeError):
    """The engine is closed. Open a new one on the same journal."""


class FeedbackRefused(BackedgeError):
    """The feedback cannot be delivered. What an attempt, or a program, raised is kept as one event with the reason; what a
    person mistyped is not. Nothing else changed."""


class AgentError(BackedgeError):
    """The agent itself broke. This says nothing about the work it judged, so it is never a pass and never a round.

    `usage`, `log` and `session` hold what is known of the attempt up to that point, `ended` the processes that it left
    and that were ended. It is `lasting` if the same would happen again: then a person is asked at once.
    """

    def __init__(
        self,
        message: str,
        usage: object = None,
        log: bytes = b"",
        session: str | None = None,
        *,
        lasting: bool = False,
    ) -> None:
        super().__init__(message)
        self.lasting = lasting
        self.usage, self.log, self.session = usage, log, session
        self.ended: tuple[str, ...] = ()


class ProviderLimit(AgentError):
    """The provider of the agent has reached a limit: too many requests, overload, a used-up quota. This is not an error of
    the agent: its step waits, and the attempt is made again.

    `wait` is the number of seconds until the limit resets; None if the provider did not say.
    """

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class JournalError(BackedgeError):
    """The journal cannot do what was asked. Everything recorded before is still recorded."""


class JournalConflict(JournalError):
    """Another process appended first. Reload the run and decide again."""


class KeyUsed(JournalError):
    """The key of an append was used before in this run, for other events: choose another key."""


class JournalUnavailable(JournalError):
    """The journal cannot be opened or written: a read-only folder, a full disk, a lock that is not released."""


class JournalDamaged(JournalError):
    """The file is not a journal, or its contents are inconsistent."""


class PayloadPruned(JournalDamaged):
    """The large value was deleted by `prune` to save space."""


class JournalTooNew(JournalError):
    """A newer version of backedge wrote this journal."""


class RunHeld(BackedgeError):
    """Another process executes this run. `holder` names it."""

    def __init__(self, run: str, holder: str) -> None:
        self.run, self.holder = run, holder
        super().__init__(f"run {run!r} is being executed by {holder}: wait for it, or stop that process first")


class RunLost(BackedgeError):
    """This process no longer holds its claim on the run: it stops executing it and records nothing more."""

    def __init__(self, run: str) -> None:
        self.run = run
        super().__init__(
            f"run {run!r} was taken over by another process: nothing more of it is recorded or started here; "
            "follow it, or resume it when that process has ended"
        )
