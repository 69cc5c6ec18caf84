"""What one attempt was told, printed, reported and changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import msgspec
from starlette.responses import Response

from backedge.adapters.agents.clis.folder import CliFolder
from backedge.analytics.changes import AttemptChange
from backedge.core import events as e
from backedge.core.errors import JournalError, NotFound
from backedge.core.suggestions import did_you_mean
from backedge.core.text import clean, counted
from backedge.project import secrets_in
from backedge.reading.attempt_changes import reworks
from backedge.reading.attempt_log import AttemptOutput
from backedge.web.api.endpoint import ApiCall, Endpoint, Query
from backedge.web.api.runs import LIMIT


class LogLine(msgspec.Struct, frozen=True):
    """One line, as `logs --json` prints it."""

    run: str
    step: str
    attempt: int
    kind: str
    """prompt or output."""
    text: str


class LogPage(msgspec.Struct, frozen=True):
    """Some lines of a log."""

    items: list[LogLine]
    next: int | None
    """The number of lines to continue after; null at the end so far."""


async def _attempt(call: ApiCall) -> tuple[str, str, int, str | None]:
    """The run, the step, the attempt, and the digest of its log in the journal. Raises NotFound."""
    known = await call.desk.known(call.part("run"))
    step, text = call.part("step"), call.part("attempt")
    made: dict[str, int] = {}
    log: str | None = None
    for event in known.events:
        if isinstance(event, e.AttemptStarted):
            made[event.step] = max(made.get(event.step, 0), event.attempt)
        elif isinstance(event, e.AttemptSucceeded | e.AttemptFailed) and (event.step, str(event.attempt)) == (
            step,
            text,
        ):
            log = event.log
    if step not in made and step not in known.state.steps:
        raise NotFound(f"run {known.run} has no step {step!r}: {did_you_mean(step, known.state.steps)}")
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 0 < int(text) <= made.get(step, 0)):
        raise NotFound(f"{step} has made {counted(made.get(step, 0), 'attempt')} in run {known.run}, not {text[:20]!r}")
    return known.run, step, int(text), log


async def log(call: ApiCall) -> LogPage:
    """Read what an attempt was told and printed, line by line."""
    run, step, number, digest = await _attempt(call)
    output = AttemptOutput(call.desk.project.state, run, step, number)
    after, limit = call.query["after"], call.query["limit"]
    lines = [("output", line) for line in await _journal_lines(call, digest)] if not output.kept else _all(output)
    found = list(islice(lines, after, after + limit + 1))
    items = [LogLine(run, step, number, kind, text) for kind, text in found[:limit]]
    return LogPage(items, after + limit if len(found) > limit else None)


def _all(output: AttemptOutput) -> Iterator[tuple[str, str]]:
    """All lines: a log is read a part at a time."""
    while True:
        part = list(output.lines())
        if not part:
            yield from output.lines(last=True)
            return
        yield from part


async def _journal_lines(call: ApiCall, digest: str | None) -> list[str]:
    """The end of a log whose files were removed: the journal has it."""
    if digest is None:
        return []
    try:
        return clean((await call.desk.engine.journal.payload(digest)).decode("utf-8", "replace")).splitlines()
    except JournalError:
        return []


async def briefing(call: ApiCall) -> Response:
    """Read the briefing of an attempt, as its command got it on stdin."""
    run, step, number, _ = await _attempt(call)
    folder = CliFolder(call.desk.project.state, run, step, number)
    return _file(call, run, folder.whole.read_bytes, "application/json", f"the briefing of {step}-{number}")


async def prompt(call: ApiCall) -> Response:
    """Read the prompt of an attempt of an agent CLI; of a command, its briefing as text."""
    run, step, number, _ = await _attempt(call)
    folder = CliFolder(call.desk.project.state, run, step, number)
    path = folder.briefing if folder.briefing.exists() else folder.whole
    return _file(call, run, path.read_bytes, "text/plain; charset=utf-8", f"the prompt of {step}-{number}")


async def outcome(call: ApiCall) -> Response:
    """Read what an attempt reported, word for word."""
    run, step, number, _ = await _attempt(call)
    folder = CliFolder(call.desk.project.state, run, step, number)
    path = folder.outcome if folder.outcome.exists() else folder.stdout
    return _file(call, run, path.read_bytes, "text/plain; charset=utf-8", f"the outcome of {step}-{number}")


def _file(call: ApiCall, run: str, read: Callable[[], bytes], media: str, what: str) -> Response:
    try:
        data = read()
    except OSError:
        raise NotFound(f"{what} is not kept: the run was pruned, or it worked on another machine") from None
    return Response(secrets_in(call.desk.project, run).content(data), media_type=media)


async def diff(call: ApiCall) -> AttemptChange:
    """Read what an attempt changed, as `show --diff --json` prints it."""
    run, step, number, _ = await _attempt(call)
    known = await call.desk.known(run)
    found = await reworks(call.desk.engine.journal, call.desk.project, known.state, known.events, {(step, number)})
    return found[0] if found else AttemptChange(step, number, 0, (), "", (), 0, (), new_version=False)


_ONE = "/runs/{run}/steps/{step}/attempts/{attempt}"
_NONE = {404: "There is no such run, step or attempt, or its files were removed."}
ENDPOINTS = [
    Endpoint(
        "GET",
        f"{_ONE}/log",
        log,
        LogPage,
        query=(Query("after", "number", "Only lines after this one.", 0), LIMIT),
        other=_NONE,
    ),
    Endpoint("GET", f"{_ONE}/briefing", briefing, "application/json", other=_NONE),
    Endpoint("GET", f"{_ONE}/prompt", prompt, "text/plain", other=_NONE),
    Endpoint("GET", f"{_ONE}/outcome", outcome, "text/plain", other=_NONE),
    Endpoint("GET", f"{_ONE}/diff", diff, AttemptChange, other=_NONE),
]
