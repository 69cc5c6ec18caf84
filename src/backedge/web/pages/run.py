"""One run: its graph, timeline, loops and steps."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from backedge.web.desk import Known
from backedge.web.pages.rendering import rendered


def run_page(known: Known) -> str:
    return rendered("run.html", run=known.run, seq=known.seq)


async def run(request: Request) -> Response:
    return HTMLResponse(run_page(await request.app.state.desk.known(request.path_params["run"])))
