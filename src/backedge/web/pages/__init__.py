"""The pages: each is a pure function from what the desk says to HTML, and a route that calls it."""

from starlette.routing import BaseRoute, Route

from backedge.web.pages import board, inbox, report, runs
from backedge.web.pages.run import RUN_ROUTES

ROUTES: list[BaseRoute] = [
    Route("/", inbox.inbox),
    Route("/part/inbox", inbox.part),
    Route("/part/followed/{run}/{escalation}", inbox.followed),
    Route("/runs", runs.runs),
    Route("/part/runs", runs.part),
    Route("/board", board.board),
    Route("/part/board", board.part),
    Route("/report", report.report),
    *RUN_ROUTES,
]
"""Every page with its address."""
