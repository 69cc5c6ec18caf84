"""A briefing as commands read it. Every key is always present, at every level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from backedge.core.briefing import Briefing
from backedge.core.value import Json


def briefing_json(briefing: Briefing, views: Mapping[str, str] | None = None) -> bytes:
    """The briefing of the agent protocol. `views` has the paths of the scratchpad and the progress file."""
    views = views or {}
    return msgspec.json.format(
        msgspec.json.encode(
            {
                "run": briefing.run,
                "input": briefing.input,
                "step": briefing.step,
                "phase": briefing.phase,
                "attempt": briefing.attempt,
                "round": briefing.round,
                "mode": briefing.mode,
                "inputs": briefing.inputs,
                "based_on": briefing.based_on,
                "feedback": _whole(briefing.feedback),
                "verify": _whole(briefing.verify),
                "changes": _whole(briefing.changes),
                "previous": briefing.previous,
                "history": _whole(briefing.history),
                "rolled_back": _whole(briefing.rolled_back),
                "tried": _whole(briefing.tried),
                "rules": _whole(briefing.rules),
                "limits_left": briefing.left,
                "steps": _whole(briefing.steps),
                "last_error": briefing.last_error,
                "agent": briefing.agent,
                "session": briefing.session,
                "scratchpad": views.get("scratchpad"),
                "progress": views.get("progress"),
            }
        ),
        indent=2,
    )


def _whole(value: Any) -> Json:
    """A value with all its fields: its own JSON leaves out those with their default."""
    if isinstance(value, msgspec.Struct):
        return {name: _whole(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, tuple) else value
