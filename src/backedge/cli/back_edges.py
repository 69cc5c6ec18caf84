"""Back edges beside a list of steps: a line from the step that found a defect up to the step that caused it.

╭▶ plan
│  design
╰─ review
"""

from __future__ import annotations

from collections.abc import Sequence

_CROSSING = {("─", "│"): "┼", ("─", "╭"): "┬", ("─", "╰"): "┴", ("─", "├"): "┼", ("│", "─"): "┼"}


def gutter(steps: Sequence[str], edges: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """What to draw in front of each step; texts of one width, empty without edges. An edge is a source and its targets;
    those that are not among the steps are left out.

    ╭▶ plan
    │  design
    ╰─ review
    """
    rows = {name: row for row, name in enumerate(steps)}
    lanes = [
        (rows[source], targets)
        for source, names in edges
        if source in rows and (targets := {rows[name] for name in names if name in rows and name != source})
    ]
    # The longest edge goes outside, so that the others do not cross it.
    lanes.sort(key=lambda lane: -(max(lane[0], *lane[1]) - min(lane[0], *lane[1])))
    width = 2 * len(lanes)
    drawn = [[" "] * width for _ in steps]
    for lane, (source, targets) in enumerate(lanes):
        ends = {source, *targets}
        for row in range(min(ends), max(ends) + 1):
            corner = "╭" if row == min(ends) else "╰" if row == max(ends) else "├" if row in ends else "│"
            _put(drawn[row], 2 * lane, corner)
            for column in range(2 * lane + 1, width if row in ends else 0):
                last = column == width - 1
                _put(drawn[row], column, "▶" if last and row in targets else "─")
    return ["".join(row) for row in drawn]


def _put(row: list[str], column: int, mark: str) -> None:
    before = row[column]
    if before != "▶":
        row[column] = _CROSSING.get((before, mark), mark)
