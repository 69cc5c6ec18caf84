"""The Starlette app: its routes and its middleware."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from backedge.core.errors import BackedgeError
from backedge.core.suggestions import closest
from backedge.web import pages
from backedge.web.access import login
from backedge.web.access.gate import AccessGate
from backedge.web.access.middleware import SECURITY, Access
from backedge.web.access.problem import HttpProblem, problem_of
from backedge.web.api import team
from backedge.web.api.endpoints import routes as api_routes
from backedge.web.api.feed import Feed
from backedge.web.desk import Desk
from backedge.web.executing import Executing
from backedge.web.pages.errors import error_page

STATIC = Path(__file__).with_name("static")


def site(desk: Desk, gate: AccessGate, executing: Executing | None = None) -> Starlette:
    """The whole site over one desk."""
    routes: list[BaseRoute] = [
        *pages.ROUTES,
        *api_routes(),
        *login.ROUTES,
        Route("/healthz", team.healthz),
        Route("/metrics", team.metrics_of),
        Mount("/static", StaticFiles(directory=STATIC), name="static"),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Access, gate=gate)],
        exception_handlers={HTTPException: _of_http, BackedgeError: _of_engine, Exception: _of_us},
    )
    app.state.desk, app.state.gate, app.state.executing = desk, gate, executing
    app.state.feed = Feed(desk.engine.journal, desk.head)
    app.state.closing = asyncio.Event()
    return app


async def _of_http(request: Request, error: Exception) -> Response:
    """An address that does not exist, or a method that it does not have."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    more, hint = {}, ""
    if error.status_code == 404:
        paths = (each.path for each in request.app.routes if isinstance(each, Route))
        known = [each for each in paths if "{" not in each]
        nearest = closest(path, known)
        more, hint = {"nearest": nearest or None}, f": did you mean {nearest!r}?" if nearest else ""
    phrase = HTTPStatus(error.status_code).phrase
    detail = f"{request.method} {path[:200]}: {phrase.lower()}{hint}"
    name = "".join(word.capitalize() for word in phrase.split())
    return _answer(request, HttpProblem(error.status_code, name, detail, headers=dict(error.headers or {}), **more))


async def _of_engine(request: Request, error: Exception) -> Response:
    assert isinstance(error, BackedgeError)
    return _answer(request, problem_of(error))


async def _of_us(request: Request, error: Exception) -> Response:
    """A mistake in backedge. The server prints where it was made."""
    told = f"there is a mistake in backedge ({type(error).__name__}): the server has printed the details"
    return _answer(request, HttpProblem(500, "InternalError", told, headers=dict(SECURITY)))


def _answer(request: Request, problem: HttpProblem) -> Response:
    """A problem as JSON; as a page for a browser that asked for one."""
    path = request.url.path
    wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    if not wants_page or path.startswith(("/api/", "/static/")):
        return problem.response()
    nearest = str(problem.more.get("nearest") or "")
    html = error_page(problem.status, problem.detail, problem.name, nearest)
    return HTMLResponse(html, problem.status, problem.headers)
