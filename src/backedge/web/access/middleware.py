"""Puts the gate before the app, and the security headers on every answer."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backedge.web.access.gate import LARGEST_BODY, PUBLIC, SAFE, AccessGate, unauthorized
from backedge.web.access.login import LOGIN_PAGE
from backedge.web.access.problem import HttpProblem

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
SECURITY = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Vary": "Cookie, Authorization",
}
"""On every answer. No script, style, picture or connection comes from elsewhere."""


class Access:
    """The ASGI middleware around everything."""

    def __init__(self, app: ASGIApp, gate: AccessGate) -> None:
        self._app, self._gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        send = _with_security(send)
        try:
            receive = self._admit(scope, receive)
            await self._app(scope, receive, send)
        except HttpProblem as problem:
            response = problem.response()
            if problem.status == 401 and _is_page(scope):
                response = HTMLResponse(LOGIN_PAGE, 401)
            await response(scope, receive, send)

    def _admit(self, scope: Scope, receive: Receive) -> Receive:
        """Let a request pass, with its caller in `request.state`. Raises HttpProblem."""
        found = Headers(scope=scope)
        if len(found.getlist("host")) != 1:
            raise HttpProblem(421, "WrongHost", "a request needs one Host header")
        headers: Mapping[str, str] = {name.casefold(): value for name, value in found.items()}
        if len(found.getlist("authorization")) > 1:
            raise unauthorized("the request has two Authorization headers")
        self._gate.require_host(headers)
        public = any(
            scope["path"] == each or (each.endswith("/") and scope["path"].startswith(each)) for each in PUBLIC
        )
        sender = None if public else self._gate.sender(headers)
        if sender is None and not public:
            raise unauthorized("open the address that `backedge serve` printed, or send `Authorization: Bearer TOKEN`")
        if scope["method"] not in SAFE:
            self._gate.require_change(headers, ambient=sender is None or sender.ambient)
            _require_size(headers)
            receive = _limited(receive)
        if sender is not None:
            scope.setdefault("state", {})["caller"] = sender.caller
        return receive


def _is_page(scope: Scope) -> bool:
    return scope["method"] in SAFE and "text/html" in Headers(scope=scope).get("accept", "")


def _require_size(headers: Mapping[str, str]) -> None:
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > LARGEST_BODY:
        raise _too_large()


def _too_large() -> HttpProblem:
    return HttpProblem(413, "TooLarge", f"a request has at most {LARGEST_BODY:,} bytes: send less")


def _limited(receive: Receive) -> Receive:
    """Read no more of a body than is allowed, whatever its length says."""
    size = 0

    async def read() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > LARGEST_BODY:
            raise _too_large()
        return message

    return read


def _with_security(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "private, no-cache")
        await send(message)

    return sent
