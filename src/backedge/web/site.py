"""The Starlette app: its routes and its middleware."""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from backedge.web import pages
from backedge.web.desk import Desk

STATIC = Path(__file__).with_name("static")


def site(desk: Desk) -> Starlette:
    """The whole site over one desk."""
    routes: list[BaseRoute] = [*pages.ROUTES, Mount("/static", StaticFiles(directory=STATIC), name="static")]
    app = Starlette(routes=routes)
    app.state.desk = desk
    return app
