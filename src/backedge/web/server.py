"""Starts the server."""

from __future__ import annotations

import asyncio

import uvicorn

from backedge.app import Engine
from backedge.project import Project
from backedge.web.desk import Desk
from backedge.web.site import site


def serve_forever(project: Project, port: int) -> None:
    """Serve until interrupted, on loopback."""

    async def serve() -> None:
        async with Engine(project.journal) as engine:
            app = site(Desk(engine, project))
            await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")).serve()

    asyncio.run(serve())
