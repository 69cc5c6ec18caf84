"""Functions that are called with the events of an engine's runs as they happen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from backedge.core.events import Event

Subscriber = Callable[[str, Event], None]
"""Called with a run and one of its events, on the event loop, once the event is stored."""


class Subscribers:
    """The subscribers of one engine. One that fails harms neither the run nor the others."""

    def __init__(self) -> None:
        self._known: dict[object, Subscriber] = {}

    def add(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call the subscriber with every event from now on. Returns a function that ends this."""
        token = object()
        self._known[token] = subscriber

        def unsubscribe() -> None:
            self._known.pop(token, None)

        return unsubscribe

    def publish(self, run: str, events: tuple[Event, ...]) -> None:
        for subscriber in tuple(self._known.values()):
            for event in events:
                try:
                    subscriber(run, event)
                except Exception as error:  # noqa: BLE001 - a subscriber cannot undo what happened
                    asyncio.get_running_loop().call_exception_handler(
                        {"message": f"a subscriber failed at {type(event).__name__} of {run!r}", "exception": error}
                    )
