"""The loops of a run as tables of findings and verdicts: what each verdict said about each finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from backedge.analytics.rounds import Histories, LoopHistory, VerdictReport
from backedge.analytics.sentence import breach_words
from backedge.analytics.verdict_marks import BAD, GOOD, LEGEND, MARKS
from backedge.core import events as e
from backedge.core.feedback.loop import Loop
from backedge.core.model import HUMAN
from backedge.core.state.run import RunState, number
from backedge.core.text import as_text, clean, counted, duration, shown
from backedge.web.graph.picture import loop_word

PAGE = 10
"""How many loops to show at once: open ones always, then the last ones."""
MOST_VERDICTS = 8
MOST_FINDINGS = 25
LONGEST = 600
"""How many characters of an agent's text to show in a table."""
SIGNS = {"fixed": "✓", "withdrawn": "✓", "duplicate": "=", "unconfirmed": "?", "deferred": "→", "accepted": "◆"}
LONG_WORDS = {"unconfirmed": "unconfirmed", "withdrawn": "withdrawn", "contested": "contested", "accepted": "accepted"}
"""Where the page has more room than the table of the terminal."""


@dataclass(frozen=True)
class VerdictCell:
    """What one verdict says about one finding."""

    word: str
    sign: str
    tone: str
    told: str


@dataclass(frozen=True)
class FindingRow:
    """One finding with what each verdict says about it."""

    id: str
    severity: str
    place: str
    text: str
    cells: tuple[VerdictCell, ...]
    more: tuple[tuple[str, str], ...]
    """What the judge said about it beside the description: evidence, impact, suggested fix."""
    open: bool


@dataclass(frozen=True)
class LoopTable:
    """One loop."""

    id: str
    kind: str
    source: str
    targets: str
    state: str
    word: str
    facts: tuple[str, ...]
    breach: str
    message: str
    details: str
    """What feedback has beside its text, as JSON."""
    first: int
    """The number of the first verdict that is shown."""
    verdicts: tuple[tuple[str, str, str], ...]
    """Each verdict: who and which attempt, pass or fail, the judge's own words."""
    rows: tuple[FindingRow, ...]
    left_out: int
    unclear: tuple[str, ...]
    decisions: tuple[str, ...]
    asks: str
    """The open escalation about it."""


@dataclass(frozen=True)
class Cost:
    """What a loop has cost so far: its reworks, what ran again because of them, and the verdicts."""

    attempts: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0


def costs_by_loop(events: Iterable[e.Event]) -> dict[str, Cost]:
    """What each loop has cost so far."""
    under_way: dict[tuple[str, int], tuple[str, ...]] = {}
    found: dict[str, list[float]] = {}
    for event in events:
        if isinstance(event, e.AttemptStarted):
            if loops := (*event.loops, *event.cause, *event.verifies):
                under_way[event.step, event.attempt] = tuple(dict.fromkeys(loops))
        elif isinstance(event, e.AttemptSucceeded | e.AttemptFailed | e.AttemptLimited | e.AttemptDropped):
            for loop in under_way.pop((event.step, event.attempt), ()):
                sums = found.setdefault(loop, [0, 0.0, 0.0])
                sums[0] += 1
                sums[1] += event.usage.cost_usd
                sums[2] += event.seconds
    return {loop: Cost(int(each[0]), each[1], each[2]) for loop, each in found.items()}


def loop_tables(
    state: RunState, histories: Histories, costs: Mapping[str, Cost], before: int | None = None
) -> tuple[tuple[LoopTable, ...], int]:
    """The loops to show, and the number of the loop before which there are more; 0 if there are none. Without `before`,
    those that ask you come first, then the open ones, then the last ones."""
    closed = sorted(state.closed_loops.values(), key=lambda loop: -number(loop.id))
    if before is None:
        current = sorted(state.loops.values(), key=lambda loop: (loop_word(state, loop) != "asks", number(loop.id)))
        shown_loops = [*current, *closed[: max(3, PAGE - len(current))]]
    else:
        shown_loops = [loop for loop in closed if number(loop.id) < before][:PAGE]
    last = min((number(loop.id) for loop in shown_loops if not loop.open), default=0)
    rest = any(number(loop.id) < last for loop in closed)
    tables = tuple(
        _table(state, loop, histories.get(loop.id, LoopHistory()), costs.get(loop.id, Cost())) for loop in shown_loops
    )
    return tables, last if rest else 0


def _table(state: RunState, loop: Loop, history: LoopHistory, cost: Cost) -> LoopTable:
    verdicts = history.verdicts[-MOST_VERDICTS:]
    ids = list(dict.fromkeys((*loop.finding_ids, *(number(id) for each in history.verdicts for id in each.findings))))
    ids.sort(key=lambda id: (id not in loop.finding_ids, id))
    rows = tuple(_rows(state, ids[:MOST_FINDINGS], history.verdicts, verdicts))
    unclear = dict.fromkeys(cell.word for row in rows for cell in row.cells if cell.word in ("?", "unconfirmed", "·"))
    said = loop.feedback
    return LoopTable(
        loop.id,
        loop.kind_name.replace("_", " "),
        _who(loop.source),
        ", ".join(map(_who, loop.involved)) or "nobody yet",
        loop.state.value,
        loop_word(state, loop),
        tuple(_facts(loop, cost)),
        f"limit reached: {breach_words(loop.breach)}" if loop.breach is not None else "",
        clean(said.message[:LONGEST]) if said is not None else "",
        _limited(as_text(said.details)) if said is not None and said.details is not None else "",
        len(history.verdicts) - len(verdicts) + 1,
        tuple((_judged(each), each.word, clean(each.summary[:LONGEST])) for each in verdicts),
        rows,
        max(0, len(ids) - MOST_FINDINGS),
        tuple(f"{word} {LEGEND['?' if word == 'unconfirmed' else word]}" for word in unclear),
        tuple(_decisions(history)),
        next((each.id for each in state.escalations.values() if each.loop == loop.id), ""),
    )


def _limited(text: str) -> str:
    return clean(text[: 4 * LONGEST]) + ("…" if len(text) > 4 * LONGEST else "")


def _who(name: str) -> str:
    return "a person" if name == HUMAN else name


def _judged(verdict: VerdictReport) -> str:
    return f"{verdict.judge}, attempt {verdict.attempt}" if verdict.attempt else f"check of {verdict.judge}"


def _facts(loop: Loop, cost: Cost) -> Iterator[str]:
    yield counted(loop.round, "round")
    if loop.routed_by:
        yield f"routed by {loop.routed_by.replace('_', ' ')}"
    if cost.attempts:
        yield f"so far {counted(cost.attempts, 'attempt')}, ${cost.cost_usd:.2f}, {duration(cost.seconds)}"
    if loop.caused_by:
        yield f"raised while working on {loop.caused_by}"
    if loop.follows:
        yield f"follows {loop.follows}"
    if loop.resolution is not None and loop.resolution.text and loop.breach is None:
        yield shown(loop.resolution.text, 160)


def _rows(
    state: RunState, ids: Sequence[int], all_verdicts: Sequence[VerdictReport], verdicts: Sequence[VerdictReport]
) -> Iterator[FindingRow]:
    hidden = len(all_verdicts) - len(verdicts)
    for id in ids:
        tracked = state.findings.get(id)
        if tracked is None:
            continue
        found, name = tracked.finding, tracked.name
        known = any(name in each.findings for each in all_verdicts[:hidden])
        cells = []
        for verdict in verdicts:
            status = verdict.findings.get(name, "")
            cells.append(_cell(status, known))
            known = known or bool(status)
        place = f"{found.file}:{found.line}" if found.file and found.line else found.file or found.path or ""
        parts = (
            ("evidence", found.evidence),
            ("impact", found.impact),
            ("suggested fix", found.suggested_fix or ""),
            ("test", found.test),
            ("requirement", found.requirement_id or ""),
            ("lost", tracked.gap),
            ("its judge says", tracked.note),
            ("its author says", tracked.claim),
        )
        more = tuple((label, clean(text[:LONGEST])) for label, text in parts if text)
        yield FindingRow(
            name,
            found.severity.value,
            shown(place, 80),
            clean(found.description[:LONGEST]),
            tuple(cells),
            more,
            tracked.needs_answer,
        )


def _cell(status: str, known: bool) -> VerdictCell:
    if not status:
        return VerdictCell("·" if known else "", "", "none", LEGEND["·"] if known else "")
    word = LONG_WORDS.get(status) or MARKS.get(status, status)
    tone = "bad" if status in BAD else "ok" if status in GOOD else "warn"
    return VerdictCell(word, SIGNS.get(status, "●" if status in BAD else "○"), tone, status.replace("_", " "))


def _decisions(history: LoopHistory) -> Iterator[str]:
    for entry in history.entries:
        if isinstance(entry, e.EscalationDecided):
            by = f" by {shown(entry.by, 60)}" if entry.by else ""
            note = f": {shown(entry.note, 200)}" if entry.note else ""
            more = f", {counted(entry.rounds, 'round')} more" if entry.rounds else ""
            yield f"{entry.escalation} decided{by}: {shown(entry.option or entry.choice, 80)}{more}{note}"
        elif isinstance(entry, e.ChoiceMade):
            yield f"{shown(entry.by, 60)} chose “{shown(entry.option, 80)}”"
        elif isinstance(entry, e.RolledBack):
            yield f"round {entry.round} was rolled back{f' by {shown(entry.by, 60)}' if entry.by else ''}"
