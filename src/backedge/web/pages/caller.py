"""Who looks at a page."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request


def caller_of(request: Request) -> Any:
    """The `Caller` of a request; None if nothing is known, which is the person at this machine."""
    return getattr(request.state, "caller", None)
