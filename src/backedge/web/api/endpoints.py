"""Every endpoint of /api/v1, in the order of the reference."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import BaseRoute

from backedge.web.api import attempts, picture, questions, runs, team
from backedge.web.api.endpoint import ApiCall, Endpoint


async def openapi(call: ApiCall) -> Response:  # noqa: ARG001
    """Read this API as OpenAPI 3.1."""
    from backedge.web.api.openapi import openapi_json

    return Response(openapi_json(), media_type="application/json")


ENDPOINTS: tuple[Endpoint, ...] = (
    *runs.ENDPOINTS,
    *picture.ENDPOINTS,
    *attempts.ENDPOINTS,
    *questions.ENDPOINTS,
    *team.ENDPOINTS,
    Endpoint("GET", "/openapi.json", openapi, "application/json"),
)


def routes() -> list[BaseRoute]:
    return [each.route() for each in ENDPOINTS]
