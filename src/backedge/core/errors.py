"""What can go wrong, grouped by the person who has to act. Every message says what was got, what was expected and what
to do."""

from __future__ import annotations


class BackedgeError(Exception):
    """Base of every error that backedge raises on purpose."""


class WorkflowError(BackedgeError):
    """The workflow is invalid: its author has to change it. `problems` lists all problems, not only the first."""

    def __init__(self, problems: tuple[str, ...] | str) -> None:
        self.problems = (problems,) if isinstance(problems, str) else problems
        super().__init__("; ".join(self.problems))


class IllegalCommand(BackedgeError):
    """The command does not match anything that is pending in this run. Nothing was recorded."""


class ImportRefused(BackedgeError):
    """The file is not what it should be: nothing was recorded. `problems` lists what is wrong, each with its line."""

    def __init__(self, problems: tuple[str, ...] | str) -> None:
        self.problems = (problems,) if isinstance(problems, str) else problems
        super().__init__("\n".join(self.problems))


class NotFound(IllegalCommand):
    """The command names a loop, finding, escalation, step or run that does not exist."""


class AlreadyClosed(IllegalCommand):
    """The loop or escalation was closed before; the message names what closed it."""


class NotExecuted(IllegalCommand):
    """Nobody executes the run, or not here any more: resume it."""


class EngineClosed(BackedgeError):
    """The engine was closed: open another one on the same journal."""


class FeedbackRefused(BackedgeError):
    """The feedback cannot be delivered. One event with the reason was recorded, and nothing else happened."""


class AgentError(BackedgeError):
    """The agent broke (not the work it judged): never a pass, never a round.

    What it cost and said until then is kept: `usage`, `log` and `session`, where there are any.
    """

    def __init__(self, message: str, usage: object = None, log: bytes = b"", session: str | None = None) -> None:
        super().__init__(message)
        self.usage, self.log, self.session = usage, log, session


class JournalError(BackedgeError):
    """The journal cannot be used as asked. What was recorded before stays recorded."""


class JournalConflict(JournalError):
    """Somebody else appended first: reload and decide again."""


class JournalUnavailable(JournalError):
    """The journal cannot be opened or written: a read-only folder, a full disk, a lock that stays."""


class JournalDamaged(JournalError):
    """The file is not a journal, or its contents do not add up."""


class PayloadPruned(JournalDamaged):
    """The large value is no longer there: it was pruned to give its space back."""


class JournalTooNew(JournalError):
    """The journal was written by a newer version of backedge than this one."""


class RunHeld(BackedgeError):
    """Another process executes this run; `holder` says which."""

    def __init__(self, run: str, holder: str) -> None:
        self.run, self.holder = run, holder
        super().__init__(f"run {run!r} is being executed by {holder}: wait for it, or stop that process first")
