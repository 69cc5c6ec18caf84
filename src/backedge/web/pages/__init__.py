"""The pages: each is a pure function from what the desk says to HTML, and a route that calls it."""

from starlette.routing import Route

from backedge.web.pages.inbox import inbox
from backedge.web.pages.run import RUN_ROUTES

ROUTES = [Route("/", inbox), *RUN_ROUTES]
"""Every page with its address."""
