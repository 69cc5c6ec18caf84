"""Every error that backedge raises on purpose. All are a BackedgeError, grouped by the party that has to act.

BackedgeError
  WorkflowError          the definition is wrong
  IllegalCommand         the command does not fit the state of the run; nothing was recorded
    NotFound             there is no such run, step, loop, finding or escalation
    AlreadyClosed        the loop or escalation was already decided or closed
    NotExecuted          no process executes the run: resume it
  FeedbackRefused        the feedback cannot be delivered
  ImportRefused          the file to import is invalid
  AgentError             an agent broke
    ProviderLimit        its provider has reached a limit: raise it in an agent, and the step waits
  RunHeld                another process executes the run
  RunLost                another process has taken the run over
  EngineClosed           the engine was closed
  JournalError           the journal cannot do what was requested
    JournalConflict      another process appended first
    KeyUsed              the key of an append was used for other events
    JournalUnavailable   it cannot be opened or written
    JournalDamaged       its contents are inconsistent
      PayloadPruned      a large value was pruned
    JournalTooNew        a newer backedge wrote it
"""

from backedge.core.errors import (
    AgentError,
    AlreadyClosed,
    BackedgeError,
    EngineClosed,
    FeedbackRefused,
    IllegalCommand,
    ImportRefused,
    JournalConflict,
    JournalDamaged,
    JournalError,
    JournalTooNew,
    JournalUnavailable,
    KeyUsed,
    NotExecuted,
    NotFound,
    PayloadPruned,
    ProviderLimit,
    RunHeld,
    RunLost,
    WorkflowError,
)

__all__ = [
    "AgentError",
    "AlreadyClosed",
    "BackedgeError",
    "EngineClosed",
    "FeedbackRefused",
    "IllegalCommand",
    "ImportRefused",
    "JournalConflict",
    "JournalDamaged",
    "JournalError",
    "JournalTooNew",
    "JournalUnavailable",
    "KeyUsed",
    "NotExecuted",
    "NotFound",
    "PayloadPruned",
    "ProviderLimit",
    "RunHeld",
    "RunLost",
    "WorkflowError",
]
