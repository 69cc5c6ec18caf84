"""The OpenAPI document: committed, up to date, and true of what the server answers."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backedge.web.api.endpoints import ENDPOINTS
from backedge.web.api.openapi import openapi, openapi_json
from tests.web.serving import Site, serving

COMMITTED = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
REFERENCE = COMMITTED.with_name("http-api.md")


def test_the_committed_document_is_what_the_endpoints_say() -> None:
    assert COMMITTED.read_bytes() == openapi_json(), "run python tools/draw_docs.py"


def test_every_endpoint_is_in_the_reference_with_a_sentence() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    for each in ENDPOINTS:
        assert f"### {each.method} `{each.address}`" in text
        assert each.says.endswith(".")


def test_every_reference_in_it_leads_somewhere() -> None:
    document = openapi()

    def follow(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                assert value["$ref"].removeprefix("#/components/schemas/") in document["components"]["schemas"]
            for each in value.values():
                follow(each)
        elif isinstance(value, list):
            for each in value:
                follow(each)

    follow(document)
    names = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert len(names) == len(set(names)) == len(ENDPOINTS)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A server on a thread of its own, because schemathesis is synchronous."""
    found: list[Site] = []
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        async with serving(tmp_path) as site:
            found.append(site)
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    yield found[0]
    stop.set()
    thread.join()


def test_what_the_server_answers_is_what_the_document_says(site: Site) -> None:
    if find_spec("schemathesis") is None:
        if os.environ.get("BACKEDGE_REQUIRE_BROWSER"):
            pytest.fail("schemathesis is missing: pip install 'backedge[web-tests]'")
        pytest.skip("schemathesis is not installed: pip install 'backedge[web-tests]'")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import schemathesis
        from hypothesis import HealthCheck, Phase, given, settings
        from schemathesis.specs.openapi import checks

        schema = schemathesis.openapi.from_dict(msgspec.json.decode(openapi_json()))
        known = {"run": ["r-asks", "r-done"], "step": ["code", "test"], "attempt": ["1"], "escalation": ["E-1"]}
        known |= {"loop": ["L-1"], "finding": ["F-1"]}
        tried, statuses = 0, set()
        for result in schema.get_all_operations():
            operation: Any = result.ok()
            if operation.path.endswith("/events") and "inbox" in operation.path:
                continue  # it never ends

            def check(case: Any) -> None:
                nonlocal tried
                for name, values in known.items():
                    if name in (case.path_parameters or {}) and tried % 3:
                        case.path_parameters[name] = values[tried % len(values)]
                headers = {"Authorization": f"Bearer {site.token}", "Accept": "application/json"}
                answer = case.call(base_url=site.address, headers=headers, timeout=60)
                tried += 1
                statuses.add(answer.status_code)
                assert answer.status_code < 500, (case.operation.label, answer.content)
                excluded = [schemathesis.checks.not_a_server_error] if answer.status_code == 503 else []
                case.validate_response(
                    answer,
                    checks=[
                        checks.status_code_conformance,
                        checks.content_type_conformance,
                        checks.response_schema_conformance,
                    ],
                    excluded_checks=excluded,
                )

            rule = settings(
                max_examples=10,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            rule(given(case=operation.as_strategy())(check))()
    assert tried > 100
    assert {200, 404} <= statuses
