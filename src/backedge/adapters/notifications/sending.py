"""Sends one message on one channel."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from backedge.adapters.notifications import via_apprise, web_hook
from backedge.adapters.notifications.address import NotSent, address_of, scheme_of
from backedge.adapters.notifications.command import call, filled
from backedge.analytics.message import Message
from backedge.core.workflow.notify import Channel

LONGEST_CALL = 60.0
"""Seconds after which a message that is being sent counts as not sent."""
PLACEHOLDERS = (
    "title",
    "text",
    "sentence",
    "event",
    "run",
    "workflow",
    "escalation",
    "decided",
    "by",
    "note",
    "url",
    "id",
)
"""What a command may have as an argument, in braces. `{for}` has the roles."""


async def send(channel: Channel, told: Message, now: float, environment: Mapping[str, str], folder: Path) -> None:
    """Send a message, and return when it was taken. Raises NotSent, with the reason."""
    body = msgspec.json.encode(told)
    if channel.command:
        values = {name: getattr(told, name) for name in PLACEHOLDERS} | {"for": ", ".join(told.for_roles)}
        await call(filled(channel.command, values), body, folder)
        return
    address = address_of(channel, environment)
    if scheme_of(address) not in ("http", "https"):
        await in_thread(lambda: via_apprise.notify(address, told.title, told.text))
        return
    secret = environment.get(channel.secret, "") if channel.secret else ""
    if channel.secret and not secret:
        raise NotSent(f"the environment variable {channel.secret} is not set here: set it for the process that sends")
    headers = web_hook.headers_of(told.id, now, body, secret, channel.secret)
    await in_thread(lambda: web_hook.post(address, body, headers))


async def in_thread(work: Callable[[], None], timeout: float = LONGEST_CALL) -> None:
    """Do something that blocks. A thread that does not return in time is left behind: it does not keep the process from
    ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None) -> None:
        if not done.done():
            done.set_result(None) if error is None else done.set_exception(error)

    def run() -> None:
        error: Exception | None = None
        try:
            work()
        except Exception as problem:  # noqa: BLE001 - raised again where it is awaited
            error = problem if isinstance(problem, NotSent) else NotSent(f"it failed: {type(problem).__name__}")
        with suppress(RuntimeError):  # the loop was closed: nothing waits for this any more
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name="backedge-notify", daemon=True).start()
    try:
        async with asyncio.timeout(timeout):
            await done
    except TimeoutError:
        raise NotSent(f"it was not sent within {timeout:g} s") from None
