"""The order of the cells in each column, so that few edges cross, and their heights, so that edges run straight."""

from __future__ import annotations

from bisect import bisect_right, insort

from backedge.web.graph.columns import Cell

SWEEPS = 8
SETTLINGS = 4


def put_in_order(columns: list[list[Cell]], gap: float) -> None:
    """Sort each column by barycentre sweeps, then give each cell its top. Cells of a column do not overlap."""
    for column in columns:
        for index, cell in enumerate(column):
            cell.at = float(index)
    best, fewest = [list(column) for column in columns], _crossings(columns)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):
            keys = {}
            for cell in column:
                near = cell.before if forward else cell.after
                keys[id(cell)] = sum(each.at for each in near) / len(near) if near else cell.at
            column.sort(key=lambda cell: keys[id(cell)])
            for index, cell in enumerate(column):
                cell.at = float(index)
        count = _crossings(columns)
        if count < fewest:
            best, fewest = [list(column) for column in columns], count
    columns[:] = best
    _settle(columns, gap)


def _crossings(columns: list[list[Cell]]) -> int:
    """How many edges between neighbouring columns cross."""
    found = 0
    for column in columns:
        ends: list[float] = []
        for cell in column:
            new = [each.at for each in cell.after]
            found += sum(len(ends) - bisect_right(ends, end) for end in new)
            for end in new:
                insort(ends, end)
    return found


def _settle(columns: list[list[Cell]], gap: float) -> None:
    for column in columns:
        top = 0.0
        for cell in column:
            cell.at = top
            top += cell.height + gap
    tallest = max((column[-1].at + column[-1].height for column in columns if column), default=0.0)
    for column in columns:
        if column:
            spare = (tallest - column[-1].at - column[-1].height) / 2
            for cell in column:
                cell.at += spare
    for turn in range(SETTLINGS):
        for column in columns if turn % 2 == 0 else reversed(columns):
            _level(column, gap, turn % 2 == 0)
    above = min((column[0].at for column in columns if column), default=0.0)
    for column in columns:
        for cell in column:
            cell.at = round(cell.at - above, 1)


def _port(cell: Cell) -> float:
    """Where edges meet a cell."""
    return cell.at + (PORT if cell.box else cell.height / 2)


PORT = 16.0


def _level(column: list[Cell], gap: float, forward: bool) -> None:
    """Move the cells of a column as near as possible to their neighbours, in their order and without overlaps: where two
    would overlap, they share the difference."""
    blocks: list[list[float]] = []  # sum of the tops wanted by the first cells, number of cells, height
    for cell in column:
        near = cell.before if forward else cell.after
        want = sum(map(_port, near)) / len(near) - (_port(cell) - cell.at) if near else cell.at
        block = [want, 1.0, cell.height + gap]
        while blocks and blocks[-1][0] / blocks[-1][1] + blocks[-1][2] > block[0] / block[1]:
            last = blocks.pop()
            block = [last[0] + block[0] - last[2] * block[1], last[1] + block[1], last[2] + block[2]]
        blocks.append(block)
    index = 0
    for total, count, _ in blocks:
        top = total / count
        for cell in column[index : index + int(count)]:
            cell.at = top
            top += cell.height + gap
        index += int(count)
