"""Places: how many attempts may run at once in one engine, who has one, and who waits for one."""

from __future__ import annotations


class Slots:
    """The places of one engine. A run that found none stands in line; whoever has waited longest is next."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.taken = 0
        self.reserved = 0
        """Places of attempts that are being recorded as started."""
        self._queue: dict[str, None] = {}
        self.left: int | None = None
        """How many more attempts may start at all, for those who go step by step; None for any number."""

    def free(self) -> int:
        """How many more attempts may start."""
        free = self._most - self.taken
        return (free if self.left is None else min(free, self.left)) - self.reserved

    def used(self, run: str, room: int, used: int) -> None:
        """A run decided with room for so many attempts: if it used all, it may want more, after those who wait."""
        if used < room:
            self._queue.pop(run, None)
        elif used:
            self._queue.pop(run, None)
            self._queue[run] = None
        else:
            self._queue.setdefault(run)

    def next_in_queue(self) -> str | None:
        """The run that has waited longest, if there is a place for it."""
        return next(iter(self._queue), None) if self._queue and self.free() > 0 else None

    def leave_queue(self, run: str) -> None:
        self._queue.pop(run, None)


class Slot:
    """The place of one attempt, from its start to its end. While the attempt waits in mid-work, others may have it."""

    __slots__ = ("_places", "_waits", "given_back")

    def __init__(self, places: Slots) -> None:
        self._places = places
        self._waits = 0
        self.given_back = False
        places.taken += 1
        if places.left is not None:
            places.left -= 1

    def lend(self) -> None:
        """One more wait began: the first one makes the place free."""
        self._waits += 1
        if self._waits == 1 and not self.given_back:
            self._places.taken -= 1

    def take(self) -> None:
        """A wait ended: with the last one, the attempt goes on, also if that makes one too many."""
        self._waits -= 1
        if self._waits == 0 and not self.given_back:
            self._places.taken += 1

    def give_back(self) -> None:
        """The attempt is over; saying so twice does nothing."""
        if not self.given_back:
            self.given_back = True
            if self._waits == 0:
                self._places.taken -= 1
