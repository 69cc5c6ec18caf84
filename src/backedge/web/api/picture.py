"""The graph of a run as one picture, with its colours inside."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from starlette.responses import Response

from backedge.web.api.endpoint import ApiCall, Endpoint
from backedge.web.api.runs import AT, etag_of, is_current, known_of
from backedge.web.graph.draw import graph_svg
from backedge.web.graph.picture import model_of


async def graph(call: ApiCall) -> Response:
    """Read the graph of a run with its back edges, as SVG."""
    known = await known_of(call)
    style, policy = _style()
    headers = {"ETag": etag_of(known), "Content-Security-Policy": policy}
    if is_current(call, known):
        return Response(status_code=304, headers=headers)
    begin, end, rest = str(graph_svg(model_of(known.state, ("*",)))).partition("<defs>")
    return Response(f"{begin}<style>{style}</style>{end}{rest}", headers=headers, media_type="image/svg+xml")


@cache
def _style() -> tuple[str, str]:
    """The rules inside the picture, and the policy that allows them and nothing else."""
    static = files("backedge.web") / "static"
    text = "".join((static / f"{name}.css").read_text("utf-8") for name in ("colours", "graph"))
    digest = b64encode(sha256(text.encode()).digest()).decode()
    return text, f"default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'"


ENDPOINTS = [
    Endpoint(
        "GET",
        "/runs/{run}/graph.svg",
        graph,
        "image/svg+xml",
        query=(AT,),
        other={304: "Nothing has changed.", 404: "There is no such run."},
    ),
]
