"""The pages: each is a pure function from what the desk says to HTML, and a route that calls it."""

from starlette.routing import Route

from backedge.web.pages.inbox import followed, inbox, part
from backedge.web.pages.run import run

ROUTES = [
    Route("/", inbox),
    Route("/part/inbox", part),
    Route("/part/followed/{run}/{escalation}", followed),
    Route("/runs/{run}", run),
]
"""Every page with its address."""
