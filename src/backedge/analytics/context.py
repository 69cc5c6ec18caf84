"""A run as a context bus: one tree of values that are found by path, folded from the state.

agent_contexts.<step>.status | output | feedback_received
agent_contexts.human.feedback_received, if people were asked
feedback_loops.<id>
workflow_state.paused | pause_reason
values.<path>
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import msgspec

from backedge.analytics.report import report
from backedge.core.briefing import notices
from backedge.core.context import ANY, unread
from backedge.core.errors import NotFound
from backedge.core.model import HUMAN
from backedge.core.state.run import RunState
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Json


def context(state: RunState, outputs: Mapping[str, Json] | None = None) -> dict[str, Json]:
    """The whole tree. `outputs` has the large ones, which the state only names."""
    found = report(state, dict(outputs or {}))
    agents: dict[str, Json] = {
        name: {"status": step.state, "output": step.output, "feedback_received": _inbox(state, name)}
        for name, step in found.everybody.items()
    }
    inbox = _inbox(state, HUMAN)
    if inbox:
        agents[HUMAN] = {"feedback_received": inbox}
    loops = {loop.id: msgspec.to_builtins(loop) for loop in found.loops}
    return {
        "agent_contexts": agents,
        "feedback_loops": loops,
        "workflow_state": {
            "outcome": found.outcome,
            "paused": state.paused,
            "pause_reason": _pause_reason(state),
            "paused_by": [loop.id for loop in state.loops.values() if loop.pauses],
        },
        "values": state.values,
    }


def _inbox(state: RunState, step: str) -> list[Json]:
    """The feedback to a step that was not read yet."""
    waiting = unread(state, step)
    return [
        {
            "loop_id": notice.loop,
            "from_agent": notice.source,
            "type": notice.kind,
            "message": notice.message,
            "severity": str(notice.severity),
            "resolved": notice.resolved,
            "acknowledged": notice.acknowledged,
            "response": notice.response,
            "resolution": msgspec.to_builtins(notice.resolution),
            "details": notice.details,
            "options": msgspec.to_builtins(notice.options),
        }
        for notice in (notices(state, step) if waiting else ())
        if notice.loop in waiting
    ]


def _pause_reason(state: RunState) -> str:
    if state.paused_by is not None:
        return f"paused by {state.paused_by}" if state.paused_by else "paused by hand"
    pausing = [loop for loop in state.loops.values() if loop.pauses]
    words = (f"{loop.id} {loop.kind_name} of {loop.source}" for loop in pausing)
    return "; ".join(words)


def value_at(tree: Json, path: str) -> Json:
    """The value at a path; the whole tree for an empty path. Raises NotFound with the nearest path."""
    if not path:
        return tree
    if isinstance(tree, Mapping):
        # Names may contain dots: the longest match wins.
        for key in sorted(tree, key=len, reverse=True):
            if path == key or path.startswith(f"{key}."):
                return value_at(tree[key], path[len(key) + 1 :])
        raise NotFound(f"no value at {path!r}: {did_you_mean(path.partition('.')[0], tree) if tree else 'it is empty'}")
    if (
        isinstance(tree, list | tuple)
        and path.partition(".")[0].isdecimal()
        and int(path.partition(".")[0]) < len(tree)
    ):
        return value_at(tree[int(path.partition(".")[0])], path.partition(".")[2])
    raise NotFound(f"no value at {path!r}: the path ends at {json.dumps(tree, default=str)[:80]}")


def matching(tree: Json, pattern: str, at: str = "") -> Iterator[tuple[str, Json]]:
    """All paths that match a pattern, with their values; `*` matches one name, at any level."""
    if not pattern:
        yield at, tree
    elif isinstance(tree, Mapping):
        first, _, rest = pattern.partition(".")
        for key, inside in tree.items():
            here = f"{at}.{key}" if at else key
            if first == ANY:
                yield from matching(inside, rest, here)
            elif pattern == key or pattern.startswith(f"{key}."):
                yield from matching(inside, pattern[len(key) + 1 :], here)


def changes(before: Json, after: Json, pattern: str) -> list[tuple[str, Json, Json]]:
    """(path, new, old) of every value that matches a pattern and has changed; None for a value that is new or gone."""
    old, new = dict(matching(before, pattern)), dict(matching(after, pattern))
    paths = dict.fromkeys((*new, *old))
    return [(path, new.get(path), old.get(path)) for path in paths if new.get(path) != old.get(path)]
