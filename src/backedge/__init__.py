"""backedge closes the loop in multi-agent software work.

Whatever a later step finds wrong goes back, as structured feedback, to the step that caused it; the work is redone with
that feedback, verified by whoever complained, bounded so that it always ends, and recorded so that nothing is lost.
"""

from backedge.adapters.journals.memory import MemoryJournal
from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.analytics.report import Report
from backedge.app import Engine, Run, run
from backedge.core.briefing import Briefing
from backedge.core.errors import (
    BackedgeError,
    FeedbackRefused,
    IllegalCommand,
    JournalError,
    RunHeld,
    WorkflowError,
)
from backedge.core.model import Resolution, Usage
from backedge.core.wording import feedback_text
from backedge.definition import Step, Workflow
from backedge.engine.protocol import Claim, Feedback, Finding, Option, Outcome, failed, passed
from backedge.ports import Attempt

__all__ = [
    "Attempt",
    "BackedgeError",
    "Briefing",
    "Claim",
    "Engine",
    "Feedback",
    "FeedbackRefused",
    "Finding",
    "IllegalCommand",
    "JournalError",
    "MemoryJournal",
    "Option",
    "Outcome",
    "Report",
    "Resolution",
    "Run",
    "RunHeld",
    "SqliteJournal",
    "Step",
    "Usage",
    "Workflow",
    "WorkflowError",
    "failed",
    "feedback_text",
    "passed",
    "run",
]
