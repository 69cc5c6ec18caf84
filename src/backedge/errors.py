"""Every error that backedge raises on purpose, for `except`. They are all a BackedgeError, split by who has to act.

BackedgeError
  WorkflowError          the definition is wrong
  IllegalCommand         what you asked answers nothing that is pending; nothing was recorded
    NotFound             there is no such run, step, loop, finding or escalation
    AlreadyClosed        it was decided or closed before
    NotExecuted          nobody executes the run: resume it
  FeedbackRefused        the feedback cannot be delivered
  ImportRefused          the file to import is not what it should be
  AgentError             an agent broke
  RunHeld                another process executes the run
  RunLost                another process has taken the run over
  EngineClosed           the engine was closed
  JournalError           the journal cannot be used as asked
    JournalConflict      somebody else appended first
    KeyUsed              the key of an append was used for other events
    JournalUnavailable   it cannot be opened or written
    JournalDamaged       its contents do not add up
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
    "RunHeld",
    "RunLost",
    "WorkflowError",
]
