"""The gate before every page and every answer: Host, Origin, size, who is it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

from backedge.web.access.caller import Caller
from backedge.web.access.problem import Problem
from backedge.web.access.tokens import Tokens, digest_of

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LARGEST_BODY = 1024 * 1024
"""The most bytes of a request."""
SAFE = ("GET", "HEAD")
PUBLIC = ("/healthz", "/login", "/static/")
"""What needs no token: nothing there says anything about runs."""


@dataclass(frozen=True)
class Sender:
    """Who sent a request, and whether a browser adds the proof by itself, so that other sites could misuse it."""

    caller: Caller
    ambient: bool


class Gate:
    """Decides whether a request may go on, and who sent it."""

    def __init__(
        self, tokens: Tokens, owner: Caller, journal: Path, hosts: tuple[str, ...] = LOOPBACK, user_header: str = ""
    ) -> None:
        """`owner` is who opens the printed address; `hosts` are the names under which the server may be addressed; a reverse
        proxy names its user in `user_header`."""
        self.tokens, self.owner = tokens, owner
        self.hosts = frozenset(each.strip("[]").casefold() for each in hosts)
        self.user_header = user_header.casefold()
        self.token = secrets.token_urlsafe(32)
        """The token of the printed address. A new one with each start."""
        self._digest = digest_of(self.token)
        # Cookies do not know ports: two journals on one machine must not sign each other out.
        self.cookie = f"backedge-{sha256(str(journal).encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"

    def require_host(self, headers: Mapping[str, str]) -> None:
        """Another site can make a browser ask us under its own name (DNS rebinding). Raises Problem."""
        host = headers.get("host", "")
        name = _name_of(host)
        if name not in self.hosts:
            raise Problem(
                421,
                "WrongHost",
                f"this server is not addressed as {host[:100]!r}: use one of {', '.join(sorted(self.hosts))}, "
                "or start it with --allow-host",
            )

    def require_change(self, headers: Mapping[str, str], ambient: bool) -> None:
        """Only our own pages, and programs, may change something. Raises Problem."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None and site != "same-origin":
            raise Problem(403, "ForeignOrigin", f"a change was sent from another site (Sec-Fetch-Site: {site[:40]})")
        if origin is not None and urlsplit_host(origin) != headers.get("host", "").casefold():
            raise Problem(403, "ForeignOrigin", f"a change was sent from {origin[:100]!r}: send it from our own page")
        if ambient and site is None and origin is None:
            raise Problem(
                403,
                "ForeignOrigin",
                "a change with a cookie needs the header Origin: programs use a Bearer token instead",
            )

    def sender(self, headers: Mapping[str, str]) -> Sender | None:
        """Who sent the request; None if it says nothing about that. Raises Problem if what it says is wrong."""
        given = headers.get("authorization")
        if given is not None:
            kind, _, token = given.partition(" ")
            if kind.casefold() != "bearer" or not token.strip():
                raise unauthorized("the header Authorization is not `Bearer TOKEN`")
            return self._bearer(token.strip(), headers)
        cookie = self.cookie_in(headers)
        caller = self.tokens.session(cookie, time.time(), self.owner) if cookie else None
        return Sender(caller, ambient=True) if caller is not None else None

    def _bearer(self, token: str, headers: Mapping[str, str]) -> Sender:
        if secrets.compare_digest(digest_of(token), self._digest):
            return Sender(self.owner, ambient=False)
        known = self.tokens.find(token)
        if known is None:
            raise unauthorized("the token is unknown: it was removed, or the server was started again")
        if not known.proxy:
            return Sender(known.caller, ambient=False)
        if not self.user_header:
            raise unauthorized("this is a token for a proxy: start the server with --trust-user-header")
        user = headers.get(self.user_header, "").strip()
        if not user or not user.isprintable() or len(user) > 200:
            raise unauthorized(f"the proxy does not say for whom it speaks: it has to set {self.user_header}")
        # The proxy knows its users by their browsers, so a foreign site could speak through it.
        return Sender(Caller(user, known.role, known.roles), ambient=True)

    def sign_in(self, token: str) -> str:
        """What the cookie of a browser says that shows this token. Raises Problem."""
        if secrets.compare_digest(digest_of(token), self._digest):
            return self.tokens.sign_in(None, time.time())
        known = self.tokens.find(token)
        if known is None or known.proxy:
            raise unauthorized("the token is unknown: it was removed, or the server was started again")
        return self.tokens.sign_in(known, time.time())

    def cookie_in(self, headers: Mapping[str, str]) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return found.value if found is not None else ""


def unauthorized(why: str) -> Problem:
    return Problem(401, "Unauthorized", why, headers={"WWW-Authenticate": 'Bearer realm="backedge"'})


def _name_of(host: str) -> str:
    """The name in a Host header, without its port; empty if there is none, or it is not a host."""
    try:
        parts = urlsplit(f"//{host}")
        if parts.netloc != host or "@" in host or (parts.port is None and host.endswith(":")):
            return ""
        return (parts.hostname or "").casefold()
    except ValueError:
        return ""


def urlsplit_host(origin: str) -> str:
    """The host and the port of an Origin header; empty for `null` and for what is not a web address."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return ""
    return parts.netloc.casefold() if parts.scheme in ("http", "https") and not parts.path else ""
