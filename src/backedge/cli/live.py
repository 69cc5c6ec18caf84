"""Updates the files and the terminal while a run executes, with a live frame or plain lines."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, Self

from backedge.adapters.views import RunViews
from backedge.cli.keyboard import Keyboard
from backedge.cli.telling import Teller, colour_of, rows_of
from backedge.core.events import EscalationOpened, Event, RunStarted
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.project import Project

if TYPE_CHECKING:
    from backedge.reading.attempt_log import Log

TICK = 0.15
"""Seconds between two updates of the clock and the logs."""
BELL = "\a"
ECHO = 4
"""Columns that stay free at the right, for the echo of Ctrl-C: a row that it wraps would stay on the screen."""


class Lines:
    """Plain lines: one for each event and, with `log`, those of the agents' logs."""

    def __init__(
        self, say: Callable[[str], None], state: Path, log: bool = False, ring: Callable[[], None] = lambda: None
    ) -> None:
        """`ring` is called when a person is asked."""
        self._say, self._state, self._log, self._ring = say, state, log, ring
        self._teller = Teller(say)
        self._logs: dict[str, Log] = {}
        self._runs: dict[str, RunState | None] = {}

    def load(self, run: str, events: Iterable[Event]) -> None:
        past = list(events)
        self._teller = Teller(self._say, {run: past})
        self._follow(run, replay(past))

    def tell(self, run: str, event: Event) -> None:
        if run in self._runs or isinstance(event, RunStarted):
            self.tick()
            self._follow(run, replay([event], self._runs.get(run)))
        self._teller.tell(run, event)
        if isinstance(event, EscalationOpened):
            self._ring()

    def _follow(self, run: str, state: RunState | None) -> None:
        if not self._log:
            return
        from backedge.reading.attempt_log import Log

        self._runs[run] = state
        running = {
            f"{step}-{each.running.attempt}": (step, each.running.attempt)
            for step, each in (state.steps.items() if state else ())
            if each.running is not None
        }
        for name in [name for name in self._logs if name not in running]:
            self._print(self._logs.pop(name), last=True)
        for name, (step, attempt) in running.items():
            if name not in self._logs:
                self._logs[name] = Log(self._state, run, step, attempt)

    def remark(self, text: str) -> None:
        self._say(text)

    def tick(self) -> None:
        for log in self._logs.values():
            self._print(log)

    def _print(self, log: Log, last: bool = False) -> None:
        for line in log.news(last):
            self._say(f"           {log.step} │ {line}")

    def open(self) -> None: ...

    def close(self, asks: bool = False) -> None:
        for log in self._logs.values() if not asks else ():
            self._print(log, last=True)


class Screen:
    """A terminal: the timeline scrolls, and below it a frame shows the state of the run."""

    def __init__(self, out: IO[str], state: Path) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=out, highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop")
        self._keyboard = Keyboard()
        self._state_folder = state
        self._teller = Teller(self._line)
        self._state: RunState | None = None
        self._log: Log | None = None
        self._running: tuple[str, int] | None = None

    def load(self, run: str, events: Iterable[Event]) -> None:
        past = list(events)
        self._teller = Teller(self._line, {run: past})
        self._state = replay(past)

    def tell(self, run: str, event: Event) -> None:
        if self._state is not None and self._state.run != run:
            return
        self._state = replay([event], self._state)
        self._teller.tell(run, event)
        if isinstance(event, EscalationOpened):
            self._console.bell()

    def remark(self, text: str) -> None:
        self._line(text)

    def tick(self) -> None:
        if not self._live.is_started:
            return None
        if self._state is None or self._state.ended is not None:
            return self._live.update("", refresh=True)
        return self._live.update(self._frame(self._state), refresh=True)

    def _frame(self, state: RunState) -> Any:
        from backedge.cli.live_frame import MOST_LOG, frame
        from backedge.reading.attempt_log import Log

        under_way = [
            (step.running.started, name, step.running.attempt) for name, step in state.steps.items() if step.running
        ]
        newest = max(under_way)[1:] if under_way else None
        if newest != self._running and newest is not None:
            self._log = Log(self._state_folder, state.run, *newest)
        self._running = newest
        size = self._console.size
        title = f"{newest[0]}, attempt {newest[1]}" if newest else ""
        tail = self._log.tail(MOST_LOG) if newest and self._log else []
        return frame(state, time.time(), title, tail, max(10, size.width - ECHO), size.height)

    def _line(self, text: str) -> None:
        from rich.text import Text

        style = " ".join(str(each) if name == "fg" else name for name, each in colour_of(text).items())
        for row in rows_of(text, self._console.width):
            self._console.print(Text(row, style=style), no_wrap=True, overflow="ellipsis")

    def open(self) -> None:
        self._keyboard.silence()
        self._live.start()

    def close(self, asks: bool = False) -> None:
        self._live.update("", refresh=True)
        self._live.stop()
        self._keyboard.restore(forget=asks)


class View(Protocol):
    """How progress is shown."""

    def load(self, run: str, events: Iterable[Event]) -> None: ...
    def tell(self, run: str, event: Event) -> None: ...
    def remark(self, text: str) -> None: ...
    def tick(self) -> None: ...
    def open(self) -> None: ...
    def close(self, asks: bool = False) -> None:
        """Stop showing; with `asks`, only until a question is answered."""


def view_on(out: IO[str], say: Callable[[str], None], state: Path, plain: bool = False, log: bool = False) -> View:
    """The live frame if `out` is a terminal that can move its cursor, else plain lines."""
    lively = not plain and not log and out.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
    if lively:
        return Screen(out, state)
    return Lines(say, state, log, lambda: print(BELL, end="", file=out, flush=True) if out.isatty() else None)


class RunProgress:
    """Follows the events of a process that executes a run. Use it as an async context manager."""

    def __init__(self, place: Project, say: Callable[[str], None], view: View | None) -> None:
        self._views = RunViews(lambda run: place.kept_file(run).parent, view.remark if view is not None else say)
        self._view = view
        self._showing: AbstractAsyncContextManager[Any] = shown_by(view) if view is not None else nullcontext()
        self._asks = False
        self.paths = self._views.paths

    def load(self, run: str, events: Iterable[Event]) -> None:
        """Take the past events of a resumed run, without printing them again."""
        past = list(events)
        self._views.load(run, past)
        if self._view is not None:
            self._view.load(run, past)

    def remark(self, text: str) -> None:
        """Say something that is not an event."""
        if self._view is not None:
            self._view.remark(text)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Leave the terminal to a question."""
        if self._view is not None:
            self._view.close(asks=True)
        self._asks = True
        try:
            yield
        finally:
            self._asks = False
            if self._view is not None:
                self._view.open()

    def stopping(self) -> None:
        """After the first Ctrl-C, while agents get a moment to end: say how to stop at once. At a question nothing runs."""
        self.remark("" if self._asks else "stopping; press Ctrl-C again to stop at once")

    def tell(self, run: str, event: Event) -> None:
        self._views.tell(run, event)
        if self._view is not None:
            self._view.tell(run, event)

    async def __aenter__(self) -> Self:
        await self._showing.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._views.flush()
        await self._showing.__aexit__(*error)


@asynccontextmanager
async def shown_by(view: View) -> AsyncIterator[View]:
    """Open a view, update it regularly, and close it."""
    view.open()
    looking = asyncio.create_task(_looking(view))
    try:
        yield view
    finally:
        looking.cancel()
        view.close()


async def _looking(view: View) -> None:
    while True:
        view.tick()
        await asyncio.sleep(TICK)
