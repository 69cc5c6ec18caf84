"""A journal with runs of every kind, and a real server over it, in the loop of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from backedge import Engine, Finding, Outcome, Step, Workflow
from backedge.project import Project
from backedge.web.access.caller import Caller
from backedge.web.access.gate import LOOPBACK, Gate
from backedge.web.access.tokens import Tokens
from backedge.web.desk import Desk
from backedge.web.server import Serving, listening, served
from backedge.web.site import site

HOSTILE = "<script>alert('x')</script> \x1b[31mred"


def asks_a_person() -> Workflow:
    """A run that waits for a person after two rejections."""
    return Workflow(
        "pay",
        steps=[
            Step("code", lambda briefing: {"version": briefing.attempt}, phase="code"),
            Step(
                "test",
                lambda _: Outcome(verdict="fail", findings=[Finding(HOSTILE, file="a.py", line=3)]),
                tests="code",
            ),
        ],
        limits={"rounds_per_pair": 1},
    )


def passes() -> Workflow:
    return Workflow(
        "easy", steps=[Step("code", lambda _: "done"), Step("test", lambda _: Outcome(verdict="pass"), tests="code")]
    )


@dataclass
class Site:
    """A server that runs, and clients for each role."""

    address: str
    token: str
    engine: Engine
    project: Project
    tokens: dict[str, str]

    def client(self, role: str | None = "admin", **headers: str) -> httpx.AsyncClient:
        if role is not None:
            headers = {"Authorization": f"Bearer {self.tokens[role]}", **headers}
        return httpx.AsyncClient(base_url=self.address, headers=headers, timeout=60)


def project_in(folder: Path) -> Project:
    (folder / ".backedge").mkdir(parents=True, exist_ok=True)
    return Project(folder, folder / ".backedge" / "journal.db")


async def filled(engine: Engine) -> None:
    """A run that waits for a person, and one that is verified."""
    await (await engine.start(asks_a_person(), run="r-asks")).result()
    await (await engine.start(passes(), run="r-done")).result()


@asynccontextmanager
async def serving(folder: Path, **options: Any) -> AsyncIterator[Site]:
    """A real server on a free port."""
    project = project_in(folder)
    store = Tokens(project.state)
    tokens = {role: store.add(role, role) for role in ("viewer", "decider", "admin")}
    tokens["security"] = store.add("sam", "decider", ("security",))
    sock = listening("127.0.0.1", 0)
    async with Engine(project.journal) as engine:
        if not await engine.runs(1):
            await filled(engine)
        async with served(engine, project, "ann", Serving(**options), lambda _: None, sock) as address:
            parts = urlsplit(address)
            token = parts.fragment.removeprefix("token=")
            yield Site(f"http://{parts.netloc}", token, engine, project, {**tokens, "owner": token})
    sock.close()


@asynccontextmanager
async def in_process(folder: Path) -> AsyncIterator[Site]:
    """The same without a network: for many requests."""
    project = project_in(folder)
    store = Tokens(project.state)
    tokens = {role: store.add(role, role) for role in ("viewer", "decider", "admin")}
    async with Engine(project.journal) as engine:
        await filled(engine)
        gate = Gate(store, Caller("ann", "admin"), project.journal, LOOPBACK, "X-User")
        app = site(Desk(engine, project), gate)
        found = Site("http://127.0.0.1", gate.token, engine, project, {**tokens, "owner": gate.token})

        def client(role: str | None = "admin", **headers: str) -> httpx.AsyncClient:
            if role is not None:
                headers = {"Authorization": f"Bearer {found.tokens[role]}", **headers}
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            return httpx.AsyncClient(transport=transport, base_url=found.address, headers=headers)

        found.client = client  # type: ignore[method-assign]
        found.app, found.gate, found.store = app, gate, store  # type: ignore[attr-defined]
        yield found


def on_site(folder: Path, test: Callable[[Site], Awaitable[None]], **options: Any) -> None:
    """Call a test with a real server."""

    async def go() -> None:
        async with serving(folder, **options) as found:
            await test(found)

    asyncio.run(go())


def without_network(folder: Path, test: Callable[[Site], Awaitable[None]]) -> None:
    async def go() -> None:
        async with in_process(folder) as found:
            await test(found)

    asyncio.run(go())
