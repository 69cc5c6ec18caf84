"""The findings of a loop for people: a table of findings and verdicts, and each finding with all that its judge said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backedge.analytics.inbox import InboxItem
from backedge.analytics.verdict_marks import LEGEND, MARKS
from backedge.cli.page import UNLIMITED, Page
from backedge.core.briefing import BriefedFinding
from backedge.core.text import counted, finding_ids

COLUMN = 7
MOST_COLUMNS = 6
MOST_ROWS = 8
NARROW = 44
"""Below this width the description is worth more than the place, which the details have."""
WIDEST = 72
"""How wide the description is where there is no terminal."""


def findings_table(item: InboxItem, page: Page) -> Iterator[str]:
    """What each verdict said about each finding: the open ones first, then those that are gone."""
    known = {each.id: each for turn in item.history for each in turn.findings} | {
        each.id: each for each in item.findings
    }
    seen = dict.fromkeys(id for verdict in item.verdicts for id in verdict.findings)
    current = [each.id for each in item.findings]
    rest = sorted((id for id in seen if id not in current and id in known), key=_number, reverse=True)
    rows = [id for id in (*current, *rest) if id in seen]
    verdicts = item.verdicts if page.whole else item.verdicts[-MOST_COLUMNS:]
    first = len(item.verdicts) - len(verdicts) + 1
    room = (WIDEST if page.width == UNLIMITED else page.width - 4) - COLUMN * len(verdicts)
    heads = "".join(f"{number:<{COLUMN}}" for number in range(first, first + len(verdicts)))
    title = f"verdict of {item.source}"
    yield f"    {title[:room]:{room}}{heads}".rstrip()
    shown = rows if page.whole else rows[: page.least(MOST_ROWS, 4)]
    unclear: set[str] = set()
    for id in shown:
        found = known[id]
        place = f" {found.location}" if found.location and room > NARROW else ""
        text = page.cut(f"{id} [{found.severity}]{place} {found.description}", 1000)
        text = text if len(text) < room else f"{text[: room - 2]}…"
        before = any(id in verdict.findings for verdict in item.verdicts[: first - 1])
        marks = []
        for verdict in verdicts:
            mark = MARKS.get(verdict.findings.get(id, ""), verdict.findings.get(id, "·" if before else ""))
            before = before or id in verdict.findings
            unclear.add(mark)
            marks.append(f"{mark:{COLUMN}}")
        yield f"    {text:{room}}{''.join(marks)}".rstrip()
    legend = [f"{mark} {meaning}" for mark, meaning in LEGEND.items() if mark in unclear]
    if legend:
        yield f"    ({'; '.join(legend)})"
    if len(rows) > len(shown):
        yield _left_out(f"    … and {finding_ids(map(_number, rows[len(shown) :]))}", item, page)


def finding_lines(finding: BriefedFinding, page: Page, indent: int = 0, brief: bool = False) -> Iterator[str]:
    """One finding, with everything that its judge said about it."""
    place = f" {page.cut(finding.location, 100)}" if finding.location else ""
    word = f", says {finding.found_by}: {page.cut(finding.word, 20)}" if finding.word else ""
    head = f"{finding.id} [{finding.severity}{word}] {finding.status.replace('_', ' ')}{place}: "
    yield from page.own_line(f"{head}{page.cut(finding.description, 100 if brief else 300)}", indent)
    if brief:
        return
    parts = (
        ("path", finding.path if finding.file and finding.path else ""),
        ("category", finding.category),
        ("caused in", ", ".join(finding.affected_phase)),
        ("evidence", finding.evidence),
        ("impact", finding.impact),
        ("lost", finding.gap),
        ("test", finding.test if finding.test not in finding.description else ""),
        ("requirement", finding.requirement_id or ""),
        ("suggested fix", fix if (fix := finding.suggested_fix or "") not in finding.description else ""),
        (f"{page.cut(finding.found_by, 40)} says", finding.note),
        ("its author says", finding.claim),
    )
    known = [(label, text) for label, text in parts if text]
    if page.brief > 1:  # short texts share a line
        short = [f"{label}: {page.cut(text, 200)}" for label, text in known if "\n" not in text.strip()]
        known = [(label, text) for label, text in known if "\n" in text.strip()]
        if short:
            yield from page.own_line("; ".join(short), indent + 2)
    for label, text in known:
        yield from page.text(label, text, indent + 2)


def more_findings(left_out: Sequence[BriefedFinding], item: InboxItem, page: Page, indent: int) -> Iterator[str]:
    """Which findings are not shown in detail, and where they are."""
    if left_out:
        ids = finding_ids(_number(each.id) for each in left_out)
        more = f"{' ' * indent}… and {counted(len(left_out), 'more finding')} in detail ({ids})"
        yield _left_out(more, item, page)


def _left_out(words: str, item: InboxItem, page: Page) -> str:
    """What is left out, and the command that shows it; only its choice if the command does not fit the line."""
    whole = f"{words}: backedge decide {item.id} history --run {item.run}"
    return whole if len(whole) <= page.width else f"{words}: choose history"


def _number(id: str) -> int:
    return int(id.partition("-")[2])
