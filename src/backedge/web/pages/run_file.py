"""The page of a run as one file: no server, no actions, nothing from elsewhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files

from markupsafe import Markup

from backedge.analytics.rounds import loop_histories
from backedge.core import events as e
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.core.text import counted
from backedge.web.desk import Known
from backedge.web.pages.rendering import rendered
from backedge.web.pages.run import (
    Folded,
    RunFrame,
    events_part,
    evidence_part,
    graph_part,
    head_part,
    loops_part,
    step_part,
    timeline_part,
)
from backedge.web.pages.run_events import event_page, first_of
from backedge.web.pages.run_step import step_view

LARGEST = 900_000
"""How many bytes the file may have: colleagues send it by mail."""
PARTS = ("head", "graph", "timeline", "loops", "evidence", "events")


def run_file(state: RunState, events: Sequence[e.Event]) -> str:
    """One run as one HTML file. What makes it too large is left out, with a remark."""
    page = RunFrame(state.run, state.seq, state.seq, past=False, live=False, acts=False, links=False)
    run = Folded(Known(state.run, events, state), loop_histories(events))
    first, last = first_of(state.seq, None)
    earlier = replay(events[:first]) if first else None
    parts = {
        "head": head_part(page, run),
        "graph": graph_part(page, run, ("*",)),
        "timeline": timeline_part(page, run, state.last_at),
        "loops": loops_part(page, run),
        "evidence": evidence_part(page, run),
        "events": events_part(page, event_page(earlier, events[first:last], first, state.seq)),
    }
    remarks = []
    if first:
        remarks.append(f"{counted(first, 'earlier event')} are not part of this file.")
    own: dict[str, list[e.Event]] = {}
    for event in events:
        own.setdefault(getattr(event, "step", None) or getattr(event, "judge", None) or "", []).append(event)
    steps: list[tuple[str, str]] = []
    room = LARGEST - sum(len(text.encode()) for text in parts.values()) - 60_000
    names = sorted(state.graph.steps, key=lambda name: -_last_seen(own.get(name, ())))
    for name in names:
        text = _step(page, state, own.get(name, ()), name)
        room -= len(text.encode()) + 200
        if room < 0:
            remarks.append(f"{counted(len(names) - len(steps), 'step')} that ran earlier are only in the graph.")
            break
        steps.append((name, text))
    whole = _file(page, parts, steps, remarks)
    if len(whole.encode()) > LARGEST:
        remarks.append("The timeline and the steps are too large for this file.")
        whole = _file(page, {**parts, "timeline": ""}, [], remarks)
    return whole


def _last_seen(events: Sequence[e.Event]) -> float:
    return events[-1].at if events else 0.0


def _step(page: RunFrame, state: RunState, events: Sequence[e.Event], name: str) -> str:
    view, _ = step_view(state, events, name)
    return step_part(page, replace(view, versions=()))


def _file(page: RunFrame, parts: dict[str, str], steps: list[tuple[str, str]], remarks: Sequence[str]) -> str:
    static = files("backedge.web") / "static"
    style = "".join((static / f"{name}.css").read_text("utf-8") for name in ("colours", "backedge", "graph", "run"))
    script = (static / "run.js").read_text("utf-8")
    return rendered(
        "run_file.html",
        page=page,
        parts={name: Markup(text) for name, text in parts.items()},
        shown_parts=[name for name in PARTS if parts[name]],
        steps=[(name, Markup(text)) for name, text in steps],
        remarks=remarks,
        style=Markup(style),
        script=Markup(script),
        script_digest=b64encode(sha256(script.encode()).digest()).decode(),
    )
