"""One endpoint of the HTTP API: what it is called, who may call it, what it takes and what it gives.

The routes, the OpenAPI document, the reference and the tests of roles are made from these, so none can be forgotten."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from backedge.core.errors import BackedgeError
from backedge.core.suggestions import closest, did_you_mean
from backedge.engine.unique_keys import duplicate_key
from backedge.reading.whole_json import whole_json
from backedge.web.access.caller import Caller, Need
from backedge.web.access.login import require_json
from backedge.web.access.problem import HttpProblem, problem_of

if TYPE_CHECKING:
    from backedge.web.desk import Desk

PREFIX = "/api/v1"
LONGEST_TEXT = 1_000
"""The most characters of one parameter."""


@dataclass(frozen=True)
class Query:
    """A parameter of a request, in its address or its headers."""

    name: str
    kind: Literal["text", "number"]
    says: str
    default: int | None = None
    least: int = 0
    most: int | None = None
    words: tuple[str, ...] = ()
    """The words it may be, if not any."""
    header: bool = False


@dataclass(frozen=True)
class ApiCall:
    """One request to an endpoint, read and checked."""

    request: Request
    caller: Caller
    query: dict[str, Any]
    body: Any

    @property
    def desk(self) -> Desk:
        found: Desk = self.request.app.state.desk
        return found

    def part(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])


@dataclass(frozen=True)
class Endpoint:
    """One method of one address."""

    method: Literal["GET", "POST"]
    path: str
    """Below /api/v1, with its parts in braces."""
    answer: Callable[[ApiCall], Awaitable[Any]]
    """Returns a value, which becomes JSON, or a Response. The first sentence of its docstring says what it does."""
    gives: Any
    """The type of the value; a media type as text if it is no JSON."""
    need: Need = "read"
    query: tuple[Query, ...] = ()
    body: Any = None
    """The type of the JSON that it takes; None if it takes none."""
    status: int = 200
    other: dict[int, str] = field(default_factory=dict)
    """Other answers that it gives, each with a sentence."""
    streams: bool = False
    """Whether it gives server-sent events to those who accept them."""

    @property
    def says(self) -> str:
        return " ".join((self.answer.__doc__ or "").split())

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)(?::\w+)?}", self.path))

    @property
    def address(self) -> str:
        """The path as OpenAPI writes it."""
        return re.sub(r":\w+}", "}", self.path)

    def route(self) -> Route:
        return Route(PREFIX + self.path, self._handle, methods=[self.method])

    async def _handle(self, request: Request) -> Response:
        caller: Caller = request.state.caller
        if not caller.may(self.need):
            raise HttpProblem(403, "Forbidden", f"{caller.name} is a {caller.role}: {_NEEDED[self.need]}")
        query = self._query(request)
        try:
            body = await self._body(request) if self.body is not None else None
            if self.method == "POST" and self.body is None:
                await request.body()
            given = await self.answer(ApiCall(request, caller, query, body))
        except BackedgeError as error:
            raise problem_of(error) from error
        return given if isinstance(given, Response) else json_response(given, self.status)

    def _query(self, request: Request) -> dict[str, Any]:
        known = {each.name: each for each in self.query if not each.header}
        for name in request.query_params:
            if name not in known:
                hint = did_you_mean(name, known) if known else "this address takes none"
                raise HttpProblem(
                    400, "BadRequest", f"unknown parameter {name[:60]!r}: {hint}", nearest=closest(name, known) or None
                )
        found = {}
        for each in self.query:
            given = request.headers.getlist(each.name) if each.header else request.query_params.getlist(each.name)
            if len(given) > 1:
                raise HttpProblem(400, "BadRequest", f"{each.name} is given {len(given)} times: give it once")
            found[each.name] = _value(each, given[0]) if given else each.default
        return found

    async def _body(self, request: Request) -> Any:
        require_json(request)
        text = await request.body()
        twice = duplicate_key(text)
        if twice is not None:
            raise HttpProblem(400, "BadRequest", f"the body has the key {twice[:60]!r} twice: give it once")
        try:
            return msgspec.json.decode(text, type=self.body)
        except msgspec.ValidationError as error:
            unknown = re.search(r"unknown field `([^`]*)`", str(error))
            names = [each.name for each in msgspec.structs.fields(self.body)]
            hint = f": {did_you_mean(unknown[1], names)}" if unknown else ""
            nearest = closest(unknown[1], names) if unknown else ""
            raise HttpProblem(422, "InvalidBody", f"{error}{hint}", nearest=nearest or None) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise HttpProblem(400, "BadRequest", f"the body is not JSON: {error}") from error


_NEEDED: dict[Need, str] = {
    "read": "a viewer may read",
    "decide": "only a decider or an admin may decide",
    "admin": "only an admin may start, pause, resume and cancel runs",
}


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A value as JSON, with all its keys."""
    return Response(msgspec.json.encode(whole_json(value)), status, headers, "application/json")


def _value(query: Query, text: str) -> Any:
    if len(text) > LONGEST_TEXT:
        raise HttpProblem(
            400, "BadRequest", f"{query.name} has {len(text):,} characters: at most {LONGEST_TEXT:,} are allowed"
        )
    if query.kind == "text":
        if query.words and text not in query.words:
            nearest = closest(text, query.words)
            raise HttpProblem(
                400,
                "BadRequest",
                f"{query.name}={text[:60]!r} is not known: {did_you_mean(text, query.words)}",
                nearest=nearest or None,
            )
        return text
    if not (text.isascii() and text.isdecimal() and len(text) <= 12) or int(text) < query.least:
        raise HttpProblem(400, "BadRequest", f"{query.name} is {text[:60]!r}: expected a number, {query.least} or more")
    if query.most is not None and int(text) > query.most:
        raise HttpProblem(400, "BadRequest", f"{query.name} is {text}: at most {query.most} is allowed")
    return int(text)
