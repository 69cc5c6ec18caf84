"""The order of the cells in each column, so that few edges cross, and their heights, so that edges run straight."""

from __future__ import annotations

from bisect import bisect_right

from backedge.web.graph.columns import Cell

SWEEPS = 8
SETTLINGS = 3


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
            if len(column) > 1:
                column.sort(key=_before if forward else _after)
                for index, cell in enumerate(column):
                    cell.at = float(index)
        if forward:
            continue
        count = _crossings(columns)
        if count < fewest:
            best, fewest = [list(column) for column in columns], count
        elif sweep > 2:
            break  # it gets no better
    columns[:] = best
    _settle(columns, gap)


def _before(cell: Cell) -> float:
    total = 0.0
    for each in cell.before:
        total += each.at
    return total / len(cell.before) if cell.before else cell.at


def _after(cell: Cell) -> float:
    total = 0.0
    for each in cell.after:
        total += each.at
    return total / len(cell.after) if cell.after else cell.at


def _crossings(columns: list[list[Cell]]) -> int:
    """How many edges between neighbouring columns cross."""
    found = 0
    for column in columns:
        ends: list[float] = []
        for cell in column:
            ahead = len(ends)
            for each in cell.after:  # those of the same cell do not cross: they are counted after all are looked at
                found += ahead - bisect_right(ends, each.at, 0, ahead)
            ends += [each.at for each in cell.after]
            ends.sort()
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


def _level(column: list[Cell], gap: float, forward: bool) -> None:
    """Move the cells of a column as near as possible to their neighbours, in their order and without overlaps: where two
    would overlap, they share the difference."""
    blocks: list[list[float]] = []  # sum of the tops wanted by the first cells, number of cells, height
    for cell in column:
        near = cell.before if forward else cell.after
        want = sum([each.at + each.port for each in near]) / len(near) - cell.port if near else cell.at
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
