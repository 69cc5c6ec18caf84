"""A clock that a test controls."""

from __future__ import annotations

import asyncio
import heapq


class FakeClock:
    """Time as a test sets it. With `auto=True` every sleep moves the time forward at once."""

    def __init__(self, start: float = 1_700_000_000.0, auto: bool = False) -> None:
        self._now = start
        self._auto = auto
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        return self._now

    def set(self, now: float) -> None:
        """Set the time, and wake the sleepers that are due: the earliest first, then in the order in which they began.

        They continue when the caller next yields to the event loop.
        """
        self._now = now
        while self._sleepers and self._sleepers[0][0] <= now:
            _, _, waiter = heapq.heappop(self._sleepers)
            if not waiter.done():
                waiter.set_result(None)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.set(self._now + seconds)

    async def sleep(self, seconds: float) -> None:
        """Return when the fake time has passed. Always yields to the event loop at least once."""
        if self._auto:
            self.advance(max(seconds, 0.0))
        if self._auto or seconds <= 0:
            await asyncio.sleep(0)
            return
        waiter = asyncio.get_running_loop().create_future()
        # The count keeps equals in order, and futures, which have no order, from being compared.
        self._count += 1
        heapq.heappush(self._sleepers, (self._now + seconds, self._count, waiter))
        await waiter
