"""Exchanges the token in the address for a cookie, once, and signs out again."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from backedge.core.ready_types import make_ready
from backedge.web.access.gate import AccessGate
from backedge.web.access.problem import HttpProblem
from backedge.web.access.tokens import SESSION_SECONDS

LOGIN_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in to backedge</title>
<link rel="stylesheet" href="/static/colours.css">
<link rel="stylesheet" href="/static/backedge.css">
<script src="/static/login.js" defer></script>
</head>
<body data-page="login">
<main>
<h1>Sign in</h1>
<form id="login">
<p><label for="token">Your token</label></p>
<p><input id="token" name="token" type="password" autocomplete="off" required> <button>Sign in</button></p>
</form>
<p id="message" role="status">Open the address that <code>backedge serve</code> printed, or paste your token.</p>
</main>
</body>
</html>
"""


class _Shown(msgspec.Struct, forbid_unknown_fields=True):
    token: str


make_ready(_Shown)


async def login(request: Request) -> Response:
    """POST /login: a token for a cookie."""
    gate: AccessGate = request.app.state.gate
    require_json(request)
    try:
        shown = msgspec.json.decode(await request.body(), type=_Shown)
    except msgspec.DecodeError as error:
        raise HttpProblem(400, "BadRequest", f'{error}: send {{"token": "…"}}') from error
    response = Response(status_code=204)
    response.set_cookie(
        gate.cookie,
        gate.sign_in(shown.token),
        max_age=int(SESSION_SECONDS),
        httponly=True,
        samesite="strict",
        secure=request.headers.get("x-forwarded-proto", request.url.scheme) == "https",
    )
    return response


async def logout(request: Request) -> Response:
    """POST /logout: sign out this browser."""
    gate: AccessGate = request.app.state.gate
    cookie = gate.cookie_in(request.headers)
    if cookie:
        gate.tokens.sign_out(cookie)
    response = Response(status_code=204)
    response.delete_cookie(gate.cookie, httponly=True, samesite="strict")
    return response


def require_json(request: Request) -> None:
    """Raises HttpProblem unless the body says that it is JSON. A form of another site cannot say so."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if kind != "application/json":
        raise HttpProblem(415, "UnsupportedMediaType", f"got {kind[:60] or 'no Content-Type'!r}: send application/json")


ROUTES = [Route("/login", login, methods=["POST"]), Route("/logout", logout, methods=["POST"])]
