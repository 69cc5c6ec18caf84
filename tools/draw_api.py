"""Draws the reference of the HTTP API, and the OpenAPI document, from the endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from backedge.web.access.problem import STATUSES
from backedge.web.api.endpoint import Endpoint
from backedge.web.api.endpoints import ENDPOINTS
from backedge.web.api.openapi import openapi_json

_ROLES = {"read": "viewer", "decide": "decider", "admin": "admin"}


def openapi_text() -> str:
    return openapi_json().decode()


def endpoints() -> str:
    """Every endpoint, with what it takes and gives."""
    return "\n\n".join(_told(each) for each in ENDPOINTS)


def _told(each: Endpoint) -> str:
    lines = [f"### {each.method} `{each.address}`", "", f"{each.says} Role: {_ROLES[each.need]}.", ""]
    lines += [f"- {'header' if query.header else 'parameter'} `{query.name}`: {query.says}" for query in each.query]
    if each.body is not None:
        lines.append(f"- body `{each.body.__name__}`: {', '.join(_fields(each.body))}")
    streams = ", or `text/event-stream`" if each.streams else ""
    lines.append(f"- {each.status}: {_name(each.gives)}{streams}")
    lines += [f"- {status}: {says}" for status, says in sorted(each.other.items())]
    return "\n".join(lines)


def _fields(kind: Any) -> Iterator[str]:
    for name in kind.__struct_fields__:
        yield f"`{name}`"


def _name(kind: Any) -> str:
    if isinstance(kind, str):
        return f"`{kind}`"
    if get_origin(kind) is dict:
        return f"an object of {_name(get_args(kind)[1])}"
    if get_origin(kind) is list:
        return "lists of objects"
    return f"`{kind.__name__}`"


def problems() -> str:
    """The status of each error."""
    rows = [
        f"| {status} | {', '.join(f'`{kind.__name__}`' for kind in STATUSES if STATUSES[kind] == status)} |"
        for status in sorted(set(STATUSES.values()))
    ]
    return "\n".join(["| status | errors |", "|---|---|", *rows, "| 500 | all others |"])
