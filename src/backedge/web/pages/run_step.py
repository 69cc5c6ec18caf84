"""One step of a run, for its drawer: its attempts and versions, and everything about one attempt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from backedge.analytics.changes import AttemptChange
from backedge.analytics.report import step_state
from backedge.core import events as e
from backedge.core.errors import JournalError
from backedge.core.model import SIDE_MODES, OutputDigest
from backedge.core.state.run import RunState
from backedge.core.text import as_text, clean, counted, duration, shown
from backedge.core.value import Json
from backedge.ports import Journal
from backedge.project import Project
from backedge.reading.attempt_changes import compared, reworks
from backedge.reading.attempt_log import AttemptOutput
from backedge.web.pages.rendering import words
from backedge.web.pages.run_loops import LONGEST
from backedge.web.timeline.bars import Bar, bars_of

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST = 20_000
"""How many characters of an output, a prompt or a log to show: the rest is a command away."""
MOST_LINES = 300
MOST_ATTEMPTS = 60


@dataclass(frozen=True)
class AttemptLine:
    """One attempt in a list."""

    number: int
    kind: str
    version: int
    """The version it made; 0 if it made none."""
    facts: str
    said: str


@dataclass(frozen=True)
class Said:
    """A finding in a verdict, in the judge's own words."""

    id: str
    severity: str
    word: str
    place: str
    text: str
    more: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Text:
    """A text to show, and a remark if it is not all of it."""

    text: str = ""
    remark: str = ""


NO_TEXT = Text()


@dataclass(frozen=True)
class StepVersion:
    number: int
    attempt: int
    made: OutputDigest


@dataclass(frozen=True)
class StepView:
    """A step, and one of its attempts."""

    run: str
    name: str
    state: str
    about: tuple[tuple[str, str], ...]
    attempts: tuple[AttemptLine, ...]
    """The newest first."""
    left_out: int
    current: AttemptLine | None = None
    facts: tuple[tuple[str, str], ...] = ()
    error: str = ""
    summary: str = ""
    verdict: str = ""
    findings: tuple[Said, ...] = ()
    claims: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()
    compares: tuple[int, int] = (0, 0)
    """The versions whose difference is shown."""
    diffs: tuple[tuple[str, tuple[str, ...], str], ...] = ()
    """Differences: a title, its lines, and a remark."""
    output: Text = NO_TEXT
    prompt: Text = NO_TEXT
    log: Text = NO_TEXT
    notes: tuple[str, ...] = ()


def step_view(
    state: RunState, events: Sequence[e.Event], name: str, attempt: int | None = None
) -> tuple[StepView, list[StepVersion]]:
    """What the events say about a step and one of its attempts: the last one, unless another is asked for."""
    spec = state.graph.steps[name]
    own = [event for event in events if getattr(event, "step", None) == name or getattr(event, "judge", None) == name]
    bars = bars_of(own, state.graph.judges).bars
    versions = _versions(state, own, name)
    made = {each.attempt: each.number for each in versions}
    attempts = tuple(_attempt(bar, made.get(bar.attempt, 0)) for bar in reversed(bars))
    agents = ", ".join(spec.display_name(each) for each in spec.agents)
    about = (
        ("phase", state.graph.phase_of[name]),
        ("judges", ", ".join(spec.judges)),
        ("needs", ", ".join(need for need in state.graph.needs[name] if need not in spec.judges)),
        ("agents", shown(agents, 200)),
        ("may change", ", ".join(spec.writes) if spec.writes is not None else ""),
        ("runs if", "; ".join(spec.when)),
        ("group", spec.group),
    )
    view = StepView(
        state.run,
        name,
        step_state(state, name).replace("_", " "),
        tuple((label, text) for label, text in about if text),
        attempts[:MOST_ATTEMPTS],
        max(0, len(attempts) - MOST_ATTEMPTS),
        versions=tuple(each.number for each in versions),
    )
    chosen = next((each for each in attempts if attempt is None or each.number == attempt), None)
    return (view if chosen is None else _with_attempt(view, state, own, chosen)), versions


def _attempt(bar: Bar, version: int) -> AttemptLine:
    facts = [duration(bar.end - bar.start)] if bar.end is not None else ["running"]
    facts += [f"${bar.cost_usd:.2f}"] if bar.cost_usd else []
    facts += [f"for {', '.join(bar.loops[:4])}"] if bar.loops else []
    return AttemptLine(bar.attempt, bar.kind, version, " · ".join(facts), shown(bar.said, 160))


def _versions(state: RunState, own: Iterable[e.Event], name: str) -> list[StepVersion]:
    """The versions that a step made, as they are numbered in its history."""
    found: list[StepVersion] = []
    modes: dict[int, str] = {}
    for event in own:
        if isinstance(event, e.AttemptStarted):
            modes[event.attempt] = event.mode
        elif isinstance(event, e.AttemptSucceeded) and name not in state.graph.judges:
            new = not found or found[-1].made.digest != event.made.digest
            if new and modes.get(event.attempt) not in SIDE_MODES:
                found.append(StepVersion(len(found) + 1, event.attempt, event.made))
    return found


def _with_attempt(view: StepView, state: RunState, own: Sequence[e.Event], chosen: AttemptLine) -> StepView:
    facts: dict[str, str] = {}
    for event in own:
        if getattr(event, "attempt", None) != chosen.number:
            continue
        match event:
            case e.AttemptStarted():
                facts["mode"] = event.mode
                facts["agent"] = shown(state.graph.steps[view.name].display_name(event.agent), 80)
                facts["worker"] = shown(event.executor, 80)
                facts["loops"] = ", ".join(event.loops)
                facts["because of"] = ", ".join(each for each in event.cause if each not in event.loops)
                facts["inputs"] = ", ".join(f"{need} v{version}" for need, version in event.inputs.items())
                facts["findings to address"] = ", ".join(f"F-{id}" for id in event.to_address)
            case e.AttemptSucceeded():
                view = replace(
                    view,
                    summary=clean(event.summary),
                    claims=tuple(
                        f"{each.finding} is {words(each.status)}{f': {clean(each.note[:LONGEST])}' if each.note else ''}"
                        for each in event.claims
                        if each.note or view.name not in state.graph.judges
                    ),
                    notes=(*view.notes, *((clean(event.warning),) if event.warning else ())),
                )
                facts |= _ended(event)
                facts["confidence"] = f"{event.confidence:.0%}" if event.confidence is not None else ""
            case e.AttemptFailed():
                view, facts = replace(view, error=clean(event.error[:LARGEST])), facts | _ended(event)
            case e.AttemptLimited():
                view, facts = replace(view, error=clean(event.message[:LARGEST])), facts | _ended(event)
            case e.AttemptDropped():
                view, facts = replace(view, error=event.reason), facts | _ended(event)
            case e.VerdictGiven():
                view = replace(view, verdict=event.word, findings=tuple(_said(event, state)))
            case e.EvidenceRecorded():
                seen = event.evidence
                notes = (*seen.notes, *(f"left a process: {each}" for each in seen.ended))
                view = replace(view, notes=(*view.notes, *map(clean, notes)))
                facts["files changed"] = shown(", ".join(seen.files), 300)
                facts["room"], facts["sandbox"] = seen.room, seen.sandbox
            case _:
                pass
    return replace(view, current=chosen, facts=tuple((label, text) for label, text in facts.items() if text))


def _ended(event: e.AttemptSucceeded | e.AttemptFailed | e.AttemptLimited | e.AttemptDropped) -> dict[str, str]:
    usage = event.usage
    tokens = f"{usage.tokens_in:,} in, {usage.tokens_out:,} out" if usage.tokens_in or usage.tokens_out else ""
    return {
        "took": duration(event.seconds) if event.seconds else "",
        "cost": f"${usage.cost_usd:.4g}" if usage.cost_usd else "",
        "tokens": tokens,
    }


def _said(event: e.VerdictGiven, state: RunState) -> Iterator[Said]:
    for sighting in event.findings:
        found = sighting.finding or (state.findings[sighting.id].finding if sighting.id in state.findings else None)
        if found is None:
            continue
        place = f"{found.file}:{found.line}" if found.file and found.line else found.file or found.path or ""
        parts = (
            ("evidence", found.evidence),
            ("impact", found.impact),
            ("suggested fix", found.suggested_fix or ""),
            ("category", found.category),
            ("affected phase", ", ".join(found.affected_phase)),
            ("in the judge's words", found.word),
            ("test", found.test),
            ("requirement", found.requirement_id or ""),
        )
        more = tuple((label, clean(text[:LONGEST])) for label, text in parts if text)
        word = sighting.status.value.replace("_", " ")
        yield Said(
            f"F-{sighting.id}",
            found.severity.value,
            "new" if word == "open" else word,
            shown(place, 80),
            clean(found.description[: 4 * LONGEST]),
            more,
        )


async def with_files(
    view: StepView,
    journal: Journal,
    project: Project,
    state: RunState,
    events: Sequence[e.Event],
    versions: Sequence[StepVersion],
    compares: tuple[int, int] | None = None,
) -> StepView:
    """The view with what has to be read from the journal and from disk: differences, output, prompt and log."""
    if view.current is None:
        return view
    number = view.current.number
    made = {each.number: each for each in versions}
    end = next(
        (e_ for e_ in events if isinstance(e_, e.AttemptSucceeded) and (e_.step, e_.attempt) == (view.name, number)),
        None,
    )
    if compares is not None and {*compares} <= made.keys() and compares[0] != compares[1]:
        diffs = await _between(journal, project, state, events, view.name, made, compares)
    else:
        last = view.current.version
        compares = (last - 1, last) if last > 1 else (0, last)
        diffs = _of_attempt(await reworks(journal, project, state, events, {(view.name, number)}))
    prompt, log = _printed(project, view, number)
    if not log.text:
        log = await _stored_log(journal, events, view.name, number)
    output = await _output(journal, end.made) if end is not None else NO_TEXT
    return replace(view, compares=compares, diffs=tuple(diffs), output=output, prompt=prompt, log=log)


async def _between(
    journal: Journal,
    project: Project,
    state: RunState,
    events: Sequence[e.Event],
    name: str,
    made: Mapping[int, StepVersion],
    compares: tuple[int, int],
) -> list[tuple[str, tuple[str, ...], str]]:
    """The difference of two versions: that of the outputs, and what each attempt between them changed in files."""
    old, new = compares
    lines, note = await compared(journal, made[old].made, made[new].made, f"v{old}", f"v{new}")
    found = [(f"output, v{old} → v{new}", *_cut(lines), note)]
    passed = {(name, made[each].attempt) for each in range(min(old, new) + 1, max(old, new) + 1)}
    for change in await reworks(journal, project, state, events, passed):
        if change.files_diff:
            title = f"files, changed by attempt {change.attempt}"
            found.append((title, change.files_diff, change.files_left_out, ""))
    return [(title, tuple(lines), _remark(left, note)) for title, lines, left, note in found]


def _cut(lines: Sequence[str]) -> tuple[tuple[str, ...], int]:
    return tuple(line[:LONGEST] for line in lines[:MOST_LINES]), max(0, len(lines) - MOST_LINES)


def _remark(left_out: int, note: str = "") -> str:
    return f"{counted(left_out, 'more line')}" if left_out else note


def _of_attempt(changes: Sequence[AttemptChange]) -> list[tuple[str, tuple[str, ...], str]]:
    found = []
    for each in changes:
        if each.files_diff:
            found.append(("files", each.files_diff, _remark(each.files_left_out)))
        elif each.files:
            found.append(("files", tuple(f"  {change.where}" for change in each.files[:MOST_LINES]), ""))
        if each.diff or (each.note and not each.files_diff):
            found.append(("output", each.diff, _remark(each.left_out, each.note)))
        if each.undone:
            found.append((f"undone, because {each.undone_because}", each.undone, _remark(each.undone_left_out)))
        for diff in each.protected:
            title = f"protected: {diff.file}, compared with the start of the run"
            found.append((title, diff.lines[:MOST_LINES], diff.note or _remark(max(0, len(diff.lines) - MOST_LINES))))
    return [(clean(title), tuple(map(clean, lines)), remark) for title, lines, remark in found]


def _printed(project: Project, view: StepView, number: int) -> tuple[Text, Text]:
    """What an attempt was told, and what it and its tools printed, from its folder."""
    source = AttemptOutput(project.state, view.run, view.name, number)
    if not source.kept:
        return NO_TEXT, NO_TEXT
    told, printed = list[str](), list[str]()
    for kind, line in source.lines(last=True):
        (told if kind == "prompt" else printed).append(line)
    return _head(told), _tail(printed)


def _head(lines: Sequence[str]) -> Text:
    text = "\n".join(lines)
    return Text(text[:LARGEST], "only its beginning is shown" if len(text) > LARGEST else "")


def _tail(lines: Sequence[str]) -> Text:
    text = "\n".join(lines[-MOST_LINES:])
    cut = len(lines) > MOST_LINES or len(text) > LARGEST
    return Text(text[-LARGEST:], "only its end is shown" if cut else "")


async def _stored_log(journal: Journal, events: Sequence[e.Event], name: str, number: int) -> Text:
    ends = (
        event
        for event in events
        if isinstance(event, e.AttemptSucceeded | e.AttemptFailed | e.AttemptLimited)
        and (event.step, event.attempt) == (name, number)
    )
    digest = next((event.log for event in ends), None)
    if digest is None:
        return NO_TEXT
    try:
        text = (await journal.payload(digest)).decode("utf-8", "replace")
    except JournalError:
        return Text("", "its log was pruned")
    return _tail(clean(text).splitlines())


async def _output(journal: Journal, made: OutputDigest) -> Text:
    output: Json = made.output
    if made.payload is not None:
        try:
            output = msgspec.json.decode(await journal.payload(made.payload))
        except JournalError as error:
            return Text("", f"it cannot be read: {error}")
    if output is None:
        return NO_TEXT
    text = as_text(output) if isinstance(output, str) else json.dumps(output, indent=2, ensure_ascii=False)
    return Text(clean(text[:LARGEST]), "only its beginning is shown" if len(text) > LARGEST else "")
