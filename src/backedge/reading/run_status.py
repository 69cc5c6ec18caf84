"""How each run is doing now: whether a process executes it, what it waits for, and what to type next."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import msgspec

from backedge.analytics.report import wait_of
from backedge.analytics.rounds import LoopHistory, loop_histories
from backedge.analytics.sentence import sentence
from backedge.core.errors import BackedgeError
from backedge.core.events import AttemptStarted, Event
from backedge.core.scheduling.pending import due_at, outcome_of
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.engine.store import events_of
from backedge.ports import JournalWithClaims, RunHead
from backedge.project import Project
from backedge.project.worktrees import has_worktree, run_worktree
from backedge.reading.story_runs import is_story

LIVE, STOPPED, PAUSED, ASKS, UNREADABLE = "live", "stopped", "paused", "asks you", "damaged"
NO_STORY = "no story"
"""The story of the run has been deleted, so `backedge run` never continues it."""
MERGED = ("verified", "done", "accepted")
"""The outcomes of a run whose work may be merged."""


ReadRun = Callable[[str], Awaitable[tuple[Sequence[Event], RunState]]]


class RunStatus(msgspec.Struct, frozen=True):
    """One run of the list."""

    run: str
    workflow: str
    outcome: str
    events: int
    state: str
    """live, stopped, paused, asks you, no story or damaged; the outcome of a run that has ended."""
    held_by: str | None
    """The process that executes it now."""
    started: str | None
    changed: str | None
    age_seconds: float
    """Since it started."""
    steps: tuple[str, ...]
    """The attempts that are running, or the last one: code-2."""
    cost_usd: float
    asks: tuple[str, ...]
    """The escalations that wait for a person."""
    waits_until: float | None
    """When the first step tries again that waits for a limit of its provider, in seconds since the epoch."""
    reason: str
    """What the first of them is about; of a damaged run, what is wrong with it."""
    next: str
    """The command to type next."""
    worktree: str = ""
    """The folder in which it works, if that is a worktree of its own that is still there."""
    overdue: tuple[str, ...] = ()
    """The escalations among `asks` that nobody answered in time."""
    open_loops: tuple[str, ...] = ()
    """The loops that are open."""


async def run_statuses(
    journal: JournalWithClaims, heads: Sequence[RunHead], spot: Project, read: ReadRun | None = None
) -> list[RunStatus]:
    """The status of each run. One that cannot be read does not hide the others. `read` gives the events and the state of a
    run, for those who have them already."""
    found = []
    gone = await _without_story(heads, spot)
    for head in heads:
        try:
            events, state = await (read(head.run) if read is not None else _read(journal, head.run))
            status = _status(head, events, state, await journal.holder(head.run), spot, time.time())
            found.append(_without(status) if head.run in gone and status.state in (STOPPED, PAUSED, ASKS) else status)
        except BackedgeError as error:
            more = (
                head.run,
                head.workflow,
                head.outcome,
                head.seq,
                UNREADABLE,
                None,
                None,
                None,
                0.0,
                (),
                0.0,
                (),
                None,
            )
            found.append(RunStatus(*more, str(error), f"backedge audit verify {head.run}"))
    return found


async def _without_story(heads: Sequence[RunHead], spot: Project) -> frozenset[str]:
    """The runs that have not ended and whose story has been deleted."""
    runs = [head.run for head in heads if head.outcome in ("running", "waiting") and is_story(spot, head.run)]
    if not runs:
        return frozenset()
    from backedge.stories.backlog import runs_without_story

    try:
        return await runs_without_story(spot, runs)
    except (BackedgeError, OSError):
        return frozenset()  # the stories cannot be read: nothing can be said about them


def _without(status: RunStatus) -> RunStatus:
    why = "its story has been deleted: restore the file, or end the run"
    return msgspec.structs.replace(
        status, outcome="waiting", state=NO_STORY, reason=why, next=f"backedge cancel {status.run}"
    )


async def _read(journal: JournalWithClaims, run: str) -> tuple[Sequence[Event], RunState]:
    events = await events_of(journal, run)
    state = replay(events)
    assert state is not None
    return events, state


def _status(
    head: RunHead, events: Sequence[Event], state: RunState, holder: str | None, spot: Project, now: float
) -> RunStatus:
    word = _word(state, holder)
    asks = tuple(state.escalations)
    tree = str(run_worktree(spot, head.run).path) if has_worktree(spot, head.run) else ""
    return RunStatus(
        head.run,
        head.workflow,
        head.outcome,
        head.seq,
        word,
        holder,
        _moment(state.started_at),
        _moment(state.last_at),
        round(max(0.0, now - state.started_at), 1),
        _attempts(state, events) if state.ended is None else (),
        round(state.usage.cost_usd, 6),
        asks,
        min((wait.until for name in state.steps if (wait := wait_of(state, name)) is not None), default=None),
        _question(state, events),
        _next(state, word, is_story(spot, head.run), bool(tree)),
        tree,
        _overdue(state, now),
        tuple(state.loops),
    )


def _question(state: RunState, events: Sequence[Event]) -> str:
    first = next(iter(state.escalations.values()), None)
    if first is None:
        return ""
    histories = loop_histories(events) if first.loop else {}
    return sentence(state, first, histories.get(first.loop or "", LoopHistory()))


def _word(state: RunState, holder: str | None) -> str:
    if state.ended is not None:
        return state.ended.outcome
    if state.paused_by is not None:
        return PAUSED
    if state.escalations and outcome_of(state) == "waiting":
        return ASKS
    return STOPPED if holder is None else LIVE


def _attempts(state: RunState, events: Sequence[Event]) -> tuple[str, ...]:
    """The attempts that are running; if none is, the last one."""
    running = [f"{name}-{step.running.attempt}" for name, step in state.steps.items() if step.running is not None]
    last = next((event for event in reversed(events) if isinstance(event, AttemptStarted)), None)
    return tuple(running or ([f"{last.step}-{last.attempt}"] if last is not None else []))


def _next(state: RunState, word: str, story: bool, worktree: bool) -> str:
    if word == ASKS:
        first = next(iter(state.escalations))
        return f"backedge decide {first} --run {state.run}"
    if word == LIVE:
        return f"backedge watch {state.run}"
    if worktree and state.ended is not None:
        return f"backedge {'merge' if word in MERGED else 'discard'} {state.run}"
    if word == PAUSED or (word == STOPPED and not story):
        return f"backedge resume {state.run}"
    return "backedge run" if word == STOPPED else f"backedge show {state.run}"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _overdue(state: RunState, now: float) -> tuple[str, ...]:
    return tuple(
        name for name, packet in state.escalations.items() if (due := due_at(state, packet)) is not None and due <= now
    )
