"""backedge closes the loop in multi-agent software work.

A defect that a later step finds goes back, as structured feedback, to the step that caused it. That step redoes its
work, and the step that reported the defect verifies the fix. Limits make sure that every run ends, and a journal
records everything.
"""

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from backedge.adapters.journals.memory import MemoryJournal
    from backedge.adapters.journals.sqlite import SqliteJournal
    from backedge.analytics.report import Report
    from backedge.app import Engine, Run, run
    from backedge.core.briefing import Briefing
    from backedge.core.errors import BackedgeError
    from backedge.core.model import Decision, FindingResolution, Option, Resolution, Usage
    from backedge.core.wording import feedback_text
    from backedge.definition import Step, Workflow
    from backedge.engine.protocol import Feedback, Finding, Outcome, failed, passed
    from backedge.ports import Attempt

# Names are looked up when they are first used: a command that only prints its help does not pay for an engine.
_HOMES = {
    "Attempt": "backedge.ports",
    "BackedgeError": "backedge.core.errors",
    "Briefing": "backedge.core.briefing",
    "FindingResolution": "backedge.core.model",
    "Decision": "backedge.core.model",
    "Engine": "backedge.app",
    "Feedback": "backedge.engine.protocol",
    "Finding": "backedge.engine.protocol",
    "MemoryJournal": "backedge.adapters.journals.memory",
    "Option": "backedge.core.model",
    "Outcome": "backedge.engine.protocol",
    "Report": "backedge.analytics.report",
    "Resolution": "backedge.core.model",
    "Run": "backedge.app",
    "SqliteJournal": "backedge.adapters.journals.sqlite",
    "Step": "backedge.definition",
    "Usage": "backedge.core.model",
    "Workflow": "backedge.definition",
    "failed": "backedge.engine.protocol",
    "feedback_text": "backedge.core.wording",
    "passed": "backedge.engine.protocol",
    "run": "backedge.app",
}

__all__ = [
    "Attempt",
    "BackedgeError",
    "Briefing",
    "Decision",
    "Engine",
    "Feedback",
    "Finding",
    "FindingResolution",
    "MemoryJournal",
    "Option",
    "Outcome",
    "Report",
    "Resolution",
    "Run",
    "SqliteJournal",
    "Step",
    "Usage",
    "Workflow",
    "failed",
    "feedback_text",
    "passed",
    "run",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
