"""A stream of server-sent events, with a beat, that ends with its reader, its token and its server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from backedge.web.api import feed

STALLED = 20.0
"""Seconds that a reader may leave the connection full. After that it is closed."""


class EventStream(Response):
    """Sends messages until there are no more, the reader goes, its token is removed, or the server ends."""

    media_type = "text/event-stream"

    def __init__(
        self, messages: AsyncGenerator[bytes, None], closing: asyncio.Event, allowed: Callable[[], bool]
    ) -> None:
        """`allowed` is asked at each beat whether the reader still may read."""
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._messages, self._closing, self._allowed = messages, closing, allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        tasks = [
            asyncio.create_task(self._send(send)),
            asyncio.create_task(_gone(receive)),
            asyncio.create_task(self._closing.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if not tasks[0].cancelled() and (error := tasks[0].exception()) is not None:
            if isinstance(error, TimeoutError):
                return  # the connection is full: the server closes it
            raise error
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await send({"type": "http.response.body", "body": b""})

    async def _send(self, send: Send) -> None:
        """Send the messages. Raises TimeoutError if the reader does not read."""
        await _sent(send, b": backedge\nretry: 1000\n\n")
        looked = time.monotonic()
        async with aclosing(self._messages) as messages:
            try:
                async for message in messages:
                    if time.monotonic() - looked >= feed.BEAT:
                        looked = time.monotonic()
                        if not self._allowed():
                            return
                    await _sent(send, message)
            except feed.Behind as behind:
                told = msgspec.json.encode({"seen": behind.seen, "newest": behind.newest})
                await _sent(send, b"event: behind\ndata: %s\n\n" % told)


async def _sent(send: Send, message: bytes) -> None:
    async with asyncio.timeout(STALLED):
        await send({"type": "http.response.body", "body": message, "more_body": True})


async def _gone(receive: Receive) -> None:
    """Wait until the reader has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
