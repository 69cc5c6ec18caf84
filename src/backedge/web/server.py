"""Starts the server, and ends it at once when it is told to."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

import uvicorn

from backedge.app import Engine
from backedge.core.errors import BackedgeError
from backedge.project import Project
from backedge.project.notifying import notifying
from backedge.web.access.caller import Caller
from backedge.web.access.gate import LOOPBACK, AccessGate
from backedge.web.access.tokens import Tokens
from backedge.web.desk import Desk
from backedge.web.executing import Executing
from backedge.web.site import site

GOODBYE = 2
"""Seconds that answers which are being sent have to end."""


class CannotServe(BackedgeError):
    """The server cannot listen at this address."""


@dataclass(frozen=True)
class Serving:
    """How to serve, from the options of the command."""

    host: str = "127.0.0.1"
    port: int = 0
    allow_hosts: tuple[str, ...] = ()
    user_header: str = ""
    execute: bool = False


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises CannotServe."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the name of its protocol, asyncio would not know that it may switch off Nagle's algorithm: each small answer
    # would wait 40 ms for the reader's acknowledgement.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(1024)
        found.setblocking(False)
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            raise CannotServe(
                f"port {port} is taken by another process: choose another one with --port, or --port 0 for a free one"
            ) from error
        if error.errno == errno.EACCES:
            raise CannotServe(f"port {port} needs more rights: choose one above 1023 with --port") from error
        raise CannotServe(f"cannot listen at {host} port {port}: {error.strerror or error}") from error
    return found


def listening_near(host: str, port: int) -> socket.socket:
    """A socket that listens at this port, or at a free one if it is taken. Raises CannotServe."""
    try:
        return listening(host, port)
    except CannotServe:
        return listening(host, 0)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: ours also end open streams."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def served(
    engine: Engine, project: Project, owner: str, options: Serving, say: Callable[[str], None], sock: socket.socket
) -> AsyncIterator[str]:
    """Serve an engine's journal until the end of the block; gives the address to open. The engine may execute runs
    meanwhile."""
    tokens = Tokens(project.state)
    hosts = (*LOOPBACK, *options.allow_hosts)
    gate = AccessGate(tokens, Caller(owner, "admin"), project.journal, hosts, options.user_header)
    async with AsyncExitStack() as stack:
        executing = Executing(engine, project, say) if options.execute else None
        app = site(Desk(engine, project), gate, executing)
        logging.getLogger("uvicorn.error").addFilter(_closed_by_us)
        server = _Server(
            uvicorn.Config(
                app,
                log_level="error",
                lifespan="off",
                http="h11",
                ws="none",
                timeout_graceful_shutdown=GOODBYE,
                server_header=False,
                proxy_headers=False,
            )
        )
        task = asyncio.create_task(server.serve(sockets=[sock]))

        async def end() -> None:
            app.state.closing.set()
            server.should_exit = True
            await asyncio.gather(task, return_exceptions=True)

        stack.push_async_callback(end)
        if executing is not None:
            await stack.enter_async_context(executing.working())
        host, port = sock.getsockname()[:2]
        shown = host if host not in ("0.0.0.0", "::") else "127.0.0.1"
        yield f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/#token={gate.token}"


def _closed_by_us(record: logging.LogRecord) -> bool:
    """A stream whose reader does not read is closed without an end. That is not an error."""
    return "without completing response" not in record.getMessage()


def serve_forever(
    project: Project, owner: str, options: Serving, say: Callable[[str], None], ready: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM. `ready` gets the address to open. Raises CannotServe."""
    sock = listening(options.host, options.port)

    async def serve() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        engine = Engine(project.journal)

        def told() -> None:
            if stop.is_set():
                engine.kill_now()
            stop.set()

        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(each) is not signal.SIG_IGN:  # one that was ignored when we started stays ignored
                loop.add_signal_handler(each, told)
        async with engine, served(engine, project, owner, options, say, sock) as address:
            ready(address)
            async with notifying(engine, project, address.partition("#")[0], say):
                await stop.wait()

    try:
        asyncio.run(serve())
    finally:
        sock.close()
