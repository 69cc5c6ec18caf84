"""The HTTP API as OpenAPI 3.1, made from the endpoints and from the types that the handlers use."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec

from backedge.web.access.caller import ROLES
from backedge.web.access.problem import ProblemBody
from backedge.web.api.endpoint import PREFIX, Endpoint, Query
from backedge.web.api.endpoints import ENDPOINTS

REF = "#/components/schemas/{name}"
PROBLEM = "application/problem+json"
REFUSED = {
    400: "The request cannot be read: a parameter is unknown or wrong.",
    401: "There is no token, or it is not known.",
    403: "The role is not enough, or a change came from another site.",
    421: "The server is not addressed by this name.",
}
"""What every endpoint may answer."""
REFUSED_BODY = {413: "The body is too large.", 415: "The body is not JSON.", 422: "The body does not fit."}
FROM_THE_END = {
    500: "The journal is damaged, or there is a mistake in backedge.",
    503: "The journal cannot be read or written.",
}


def openapi() -> dict[str, Any]:
    """The whole document."""
    types = [ProblemBody]
    types += [each.gives for each in ENDPOINTS if not isinstance(each.gives, str)]
    types += [each.body for each in ENDPOINTS if each.body is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    schema_of = dict(zip(map(str, types), schemas, strict=True))
    paths: dict[str, Any] = {}
    for each in ENDPOINTS:
        paths.setdefault(PREFIX + each.address, {})[each.method.lower()] = _operation(each, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "backedge",
            "version": "1",
            "summary": "Runs, their loops, and the questions to people.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"cookie": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "backedge"},
            },
            "schemas": dict(sorted(components.items())),
        },
    }


def openapi_json() -> bytes:
    return msgspec.json.format(msgspec.json.encode(openapi()), indent=1) + b"\n"


def _operation(each: Endpoint, schema_of: dict[str, Any]) -> dict[str, Any]:
    name = each.answer.__name__
    operation: dict[str, Any] = {
        "operationId": f"{each.method.lower()}_{'_'.join(_words(each.address))}",
        "summary": each.says.partition(". ")[0].rstrip("."),
        "description": each.says,
        "tags": [each.answer.__module__.rpartition(".")[2]],
        "x-role": {"read": ROLES[0], "decide": ROLES[1], "admin": ROLES[2]}[each.need],
        "parameters": [*(_part(part) for part in each.parts), *(_parameter(query) for query in each.query)],
        "responses": _responses(each, schema_of),
    }
    assert name
    if each.body is not None:
        content = {"application/json": {"schema": schema_of[str(each.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _words(address: str) -> list[str]:
    return [word.strip("{}").replace("-", "_").replace(".", "_") for word in address.split("/") if word]


def _part(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _parameter(query: Query) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if query.kind == "number":
        schema = {"type": "integer", "minimum": query.least}
        if query.most is not None:
            schema["maximum"] = query.most
        if query.default is not None:
            schema["default"] = query.default
    elif query.words:
        schema["enum"] = list(query.words)
    where = "header" if query.header else "query"
    return {"name": query.name, "in": where, "required": False, "description": query.says, "schema": schema}


def _responses(each: Endpoint, schema_of: dict[str, Any]) -> dict[str, Any]:
    media = {each.gives: {"schema": {"type": "string"} if each.gives != "application/json" else {}}}
    if not isinstance(each.gives, str):
        media = {"application/json": {"schema": schema_of[str(each.gives)]}}
    if each.streams:
        media["text/event-stream"] = {"schema": {"type": "string"}}
    found: dict[str, Any] = {str(each.status): {"description": HTTPStatus(each.status).phrase, "content": media}}
    refused = {**REFUSED, **FROM_THE_END}
    if each.method == "POST":
        refused |= REFUSED_BODY if each.body is not None else {413: REFUSED_BODY[413]}
    problem = {PROBLEM: {"schema": schema_of[str(ProblemBody)]}}
    for status, says in sorted({**refused, **each.other}.items()):
        content = {"content": problem} if status >= 400 else {"content": media} if status < 300 else {}
        found[str(status)] = {"description": says, **content}
    return found
