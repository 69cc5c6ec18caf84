"""The inbox: every open escalation of all runs."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from backedge.analytics.inbox import InboxItem
from backedge.web.pages.rendering import rendered


def inbox_page(items: Sequence[InboxItem]) -> str:
    return rendered("inbox.html", items=items)


async def inbox(request: Request) -> Response:
    return HTMLResponse(inbox_page(await request.app.state.desk.items()))
