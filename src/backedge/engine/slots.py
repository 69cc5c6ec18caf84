"""Slots: how many attempts may run at once in one engine, which attempts have one, and which runs wait for one."""

from __future__ import annotations

from collections.abc import Callable


class Slots:
    """The slots of one engine. A run that finds none free joins a queue; the run that has waited longest is next."""

    def __init__(self, most: int, on_free: Callable[[], None] = lambda: None) -> None:
        self._most = most
        self._on_free = on_free
        self.taken = 0
        self.reserved = 0
        """Slots of attempts that are being recorded as started."""
        self._queue: dict[str, None] = {}
        self.left: int | None = None
        """How many more attempts may start at all, to go step by step; None for any number."""

    def free(self) -> int:
        """How many more attempts may start."""
        free = self._most - self.taken
        return (free if self.left is None else min(free, self.left)) - self.reserved

    def offer(self) -> None:
        """Start the runs that wait for a slot, if one is free."""
        self._on_free()

    def used(self, run: str, room: int, used: int) -> None:
        """Note how many of its free slots a run has used. If it used all of them, it joins the end of the queue,
        because it may need more."""
        if used < room:
            self._queue.pop(run, None)
        elif used:
            self._queue.pop(run, None)
            self._queue[run] = None
        else:
            self._queue.setdefault(run)

    def next_in_queue(self) -> str | None:
        """The run that has waited longest, if there is a slot for it."""
        return next(iter(self._queue), None) if self._queue and self.free() > 0 else None

    def leave_queue(self, run: str) -> None:
        self._queue.pop(run, None)


class Slot:
    """The slot of one attempt, from its start to its end. While the attempt waits for feedback, others may use it."""

    __slots__ = ("_slots", "_waits", "given_back")

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._waits = 0
        self.given_back = False
        slots.taken += 1
        if slots.left is not None:
            slots.left -= 1

    def lend(self) -> None:
        """A wait began. The first one frees the slot."""
        self._waits += 1
        if self._waits == 1 and not self.given_back:
            self._slots.taken -= 1

    def offer(self) -> None:
        """Offer the lent slot to other attempts."""
        self._slots.offer()

    def take(self) -> None:
        """A wait ended. After the last one the attempt continues, even if that exceeds the number of slots."""
        self._waits -= 1
        if self._waits == 0 and not self.given_back:
            self._slots.taken += 1

    def give_back(self) -> None:
        """Free the slot, because the attempt is over. A second call does nothing."""
        if not self.given_back:
            self.given_back = True
            if self._waits == 0:
                self._slots.taken -= 1
