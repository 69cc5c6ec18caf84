"""`runs`: how each run is doing, as a list for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backedge.cli.common import clock_time, shown
from backedge.reading.run_status import ASKS, LIVE, NO_STORY, PAUSED, STOPPED, UNREADABLE, RunStatus

MOST_ASKED = 3
"""How many open questions of one run to name."""


def status_lines(statuses: Sequence[RunStatus], width: int) -> Iterator[str]:
    """The list for a terminal of this width: one row for each run, and a second one where there is something to do."""
    runs = max((len(shown(each.run)) for each in statuses), default=0)
    words = max((len(each.state) for each in statuses), default=0)
    ages = {each.run: f"{age(each.age_seconds)} ago" if each.started else "" for each in statuses}
    longest = max((len(each) for each in ages.values()), default=0)
    costs = max((len(_money(each.cost_usd)) for each in statuses), default=0)
    room = max(8, width - runs - words - longest - costs - 8)
    names = min(room, max((len(each.workflow) for each in statuses), default=0))
    for each in statuses:
        name = shown(each.workflow, names)
        row = f"{shown(each.run):{runs}}  {each.state:{words}}  {ages[each.run]:>{longest}}"
        row += f"  {_money(each.cost_usd):>{costs}}  {name:{names}}"
        doing = ", ".join(each.steps)
        fits = len(row) + 2 + len(doing) <= width
        yield (f"{row}  {doing}" if doing and fits else row).rstrip()
        if doing and not fits:
            yield f"    {'at' if each.state == LIVE else 'last'} {shown(doing, max(20, width - 9))}"
        if each.asks or each.state in (UNREADABLE, NO_STORY):
            asked = f"{', '.join(each.asks[:MOST_ASKED])}{' (overdue)' if each.overdue else ''}: " if each.asks else ""
            yield f"    {shown(asked + each.reason, max(20, width - 4))}"
        if each.waits_until is not None:
            yield f"    waits for a provider until {clock_time(each.waits_until)}"
        if each.worktree or each.state in (LIVE, STOPPED, PAUSED, ASKS, NO_STORY, UNREADABLE):
            yield f"    → {each.next}"


def age(seconds: float) -> str:
    """A time span in its two largest units: 3 s, 5 min, 2 h 10 min, 4 d."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    if seconds < 86400:
        return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"
    return f"{seconds // 86400:.0f} d"


def _money(amount: float) -> str:
    return f"${amount:.2f}" if amount else "-"
