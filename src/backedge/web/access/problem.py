"""What went wrong with a request, as application/problem+json (RFC 9457): the error's name, a sentence, and what helps."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from backedge.core import errors as e
from backedge.core.text import clean

STATUSES: dict[type[e.BackedgeError], int] = {
    e.NotFound: 404,
    e.AlreadyClosed: 409,
    e.NotExecuted: 409,
    e.RunHeld: 409,
    e.RunLost: 409,
    e.JournalConflict: 409,
    e.FeedbackRefused: 422,
    e.WorkflowError: 422,
    e.IllegalCommand: 422,
    e.JournalUnavailable: 503,
    e.EngineClosed: 503,
}
"""The status of an answer by the error behind it; 500 for the others. The first that fits counts."""

_HINT = re.compile(r"did you mean '([^']+)'\?")


class HttpProblem(Exception):
    """A request that is refused for a reason of HTTP, not of the engine."""

    def __init__(self, status: int, name: str, detail: str, *, headers: dict[str, str] | None = None, **more: Any):
        super().__init__(detail)
        self.status, self.name, self.detail = status, name, detail
        self.headers, self.more = headers or {}, more

    def response(self) -> Response:
        body = {
            "type": f"urn:backedge:error:{self.name}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "error": self.name,
            "detail": clean(self.detail),
            **self.more,
        }
        return Response(
            msgspec.json.format(msgspec.json.encode(body), indent=1),
            self.status,
            self.headers,
            "application/problem+json",
        )


class ProblemBody(msgspec.Struct):
    """What went wrong: the name of the error, and a sentence that says what to do."""

    type: str
    title: str
    status: int
    error: str
    detail: str
    nearest: str | None = None
    """The valid word that is most similar to the one given."""
    problems: list[str] | None = None
    """Everything that is wrong with a workflow."""
    decision: dict[str, Any] | None = None
    """The first decision, if the escalation was decided before."""


def problem_of(error: e.BackedgeError, **more: Any) -> HttpProblem:
    """An error of the engine as an answer."""
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 500)
    if isinstance(error, e.WorkflowError):
        more["problems"] = list(error.problems)
    hint = _HINT.search(str(error))
    if hint is not None:
        more.setdefault("nearest", hint[1])
    return HttpProblem(status, type(error).__name__, str(error), **more)
