"""Who may do what: every route for every role, and what evil requests get."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import Mount, Route

from backedge.core.errors import IllegalCommand, NotFound
from backedge.web.access.caller import ROLES, Caller, Need, Role
from backedge.web.access.gate import LARGEST_BODY
from backedge.web.access.tokens import Tokens
from backedge.web.api.endpoint import PREFIX
from backedge.web.api.endpoints import ENDPOINTS
from tests.web.serving import Site, on_site, without_network

PARTS = {"run": "r-asks", "step": "code", "attempt": "1", "escalation": "E-9", "loop": "L-1", "finding": "F-1"}
PUBLIC = {"/healthz", "/login", "/static"}
NEEDS: dict[Need, Role] = {"read": "viewer", "decide": "decider", "admin": "admin"}


def filled_in(path: str) -> str:
    for name, value in PARTS.items():
        path = path.replace(f"{{{name}}}", value)
    return path.replace("{step:path}", "code")


def routes_of(site: Site) -> list[tuple[str, str]]:
    """Every method and path of the app: a route that is added is tested."""
    found = []
    for route in site.app.routes:  # type: ignore[attr-defined]
        if isinstance(route, Route):
            found += [(method, route.path) for method in sorted(route.methods or ()) if method != "HEAD"]
        else:
            assert isinstance(route, Mount)
            found.append(("GET", route.path))
    return found


def test_every_route_needs_a_token_and_the_role_that_it_says(tmp_path: Path) -> None:
    needs = {(str(each.method), PREFIX + each.path): each.need for each in ENDPOINTS}

    async def test(site: Site) -> None:
        seen = set()
        for method, path in routes_of(site):
            if path in PUBLIC:
                continue
            seen.add((method, path))
            need = needs.get((method, path), "read")
            address = filled_in(path)
            if path.endswith("/inbox/events"):  # it never ends
                continue
            async with site.client(None) as nobody:
                assert (await nobody.request(method, address, json={})).status_code == 401, (method, path)
            async with site.client(None, Authorization="Bearer wrong") as stranger:
                assert (await stranger.request(method, address, json={})).status_code == 401, (method, path)
            for role in ROLES:
                allowed = ROLES.index(role) >= ROLES.index(NEEDS[need])
                async with site.client(role) as client:
                    status = (await client.request(method, address, json={})).status_code
                assert (status == 403) is not allowed, (method, path, role, status)
                assert status != 401, (method, path, role)
        assert {(each.method, PREFIX + each.path) for each in ENDPOINTS} <= seen

    without_network(tmp_path, test)


def test_the_stream_of_the_inbox_needs_a_token_too(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client(None) as nobody:
            assert (await nobody.get("/api/v1/inbox/events")).status_code == 401
        async with site.client("viewer") as client, client.stream("GET", "/api/v1/inbox/events") as answer:
            assert answer.status_code == 200
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    assert json.loads(line[5:])["open"] == 1
                    break

    on_site(tmp_path, test)


def test_what_needs_no_token_says_nothing_about_runs(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client(None) as nobody:
            assert (await nobody.get("/healthz")).text == "ok\n"
            script = await nobody.get("/static/login.js")
            assert script.status_code == 200
            page = await nobody.get("/runs/r-asks", headers={"Accept": "text/html"})
            assert page.status_code == 401
            assert "r-asks" not in page.text
            assert "<script src=" in page.text
            assert (await nobody.get("/static/%2e%2e/server.py")).status_code == 404

    without_network(tmp_path, test)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example:80",
        "user@127.0.0.1",
        "",
        "127.0.0.1/x",
        "[::1",
        "0.0.0.0",
    ],
)
@pytest.mark.parametrize(
    "path", ["/", "/api/v1/runs", "/api/v1/inbox/events", "/static/login.js", "/healthz", "/login"]
)
def test_another_host_gets_nothing(tmp_path: Path, host: str, path: str) -> None:
    async def test(site: Site) -> None:
        async with site.client("admin", Host=host) as client:
            answer = await client.get(path)
            assert answer.status_code == 421
            assert answer.json()["error"] == "WrongHost"

    without_network(tmp_path, test)


def test_our_own_hosts_are_answered(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        for host in ("127.0.0.1", "127.0.0.1:8642", "localhost:1", "LOCALHOST", "[::1]:80"):
            async with site.client("admin", Host=host) as client:
                assert (await client.get("/api/v1/runs")).status_code == 200, host

    without_network(tmp_path, test)


CHANGE = "/api/v1/runs/r-asks/pause"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),  # a program
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "http://127.0.0.1"}, 200),
        ({"Origin": "http://127.0.0.1:9"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1.evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "file://127.0.0.1"}, 403),
        ({"Origin": "http://[::1"}, 403),
    ],
)
def test_a_change_from_another_site_is_refused(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    async def test(site: Site) -> None:
        async with site.client("admin", **headers) as client:
            assert (await client.post(CHANGE)).status_code == status

    without_network(tmp_path, test)


def test_a_cookie_alone_changes_nothing(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client(None) as browser:
            signed = await browser.post("/login", json={"token": site.token}, headers={"Origin": "http://127.0.0.1"})
            assert signed.status_code == 204
            said = signed.headers["set-cookie"].casefold()
            assert "httponly" in said
            assert "samesite=strict" in said
            assert site.token not in said
            assert (await browser.get("/api/v1/runs")).status_code == 200
            assert (await browser.post(CHANGE)).status_code == 403
            assert (await browser.post(CHANGE, headers={"Origin": "http://evil.example"})).status_code == 403
            assert (await browser.post(CHANGE, headers={"Origin": "http://127.0.0.1"})).status_code == 200
            assert (await browser.post("/logout", headers={"Origin": "http://127.0.0.1"})).status_code == 204
            assert (await browser.get("/api/v1/runs")).status_code == 401

    without_network(tmp_path, test)


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_only_json_is_read(tmp_path: Path, kind: str) -> None:
    async def test(site: Site) -> None:
        async with site.client("admin", **{"Content-Type": kind}) as client:
            address = "/api/v1/runs/r-asks/escalations/E-1/decision"
            answer = await client.post(address, content=b'{"choice":"accept","note":"x"}')
            assert answer.status_code == 415
            assert (await client.get("/api/v1/inbox")).json()["items"]

    without_network(tmp_path, test)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 422),
        (b"[]", 422),
        (b"{}", 422),
        (b'{"choice": 5}', 422),
        (b'{"choice": "accept", "by": "the boss"}', 422),
        (b'{"choice": "continue", "rounds": 1e400}', 422),
        (b'{"choice": "continue", "rounds": 99999999999999999999}', 422),
        (b'{"choice": "continue", "amount": 1e308, "rounds": -1}', 422),
        (json.dumps({"choice": "accept", "note": "x" * 70_000}).encode(), 422),
        (json.dumps({"choice": "accept", "note": "x" * LARGEST_BODY}).encode(), 413),
    ],
)
def test_a_wrong_body_is_refused_and_changes_nothing(tmp_path: Path, body: bytes, status: int) -> None:
    async def test(site: Site) -> None:
        async with site.client("admin", **{"Content-Type": "application/json"}) as client:
            before = (await client.get("/api/v1/runs/r-asks")).headers["etag"]
            answer = await client.post("/api/v1/runs/r-asks/escalations/E-1/decision", content=body)
            assert answer.status_code == status, answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert (await client.get("/api/v1/runs/r-asks")).headers["etag"] == before

    without_network(tmp_path, test)


def test_a_body_that_hides_its_size_is_cut_off(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        sent = 0

        async def endless() -> Any:
            nonlocal sent
            while True:
                sent += 65_536
                yield b"x" * 65_536

        async with site.client("admin", **{"Content-Type": "application/json"}) as client:
            answer = await client.post("/api/v1/runs/r-asks/feedback", content=endless())
            assert answer.status_code == 413
        assert sent <= 3 * LARGEST_BODY

    without_network(tmp_path, test)


def test_every_answer_has_the_security_headers(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        for path in ("/", "/api/v1/runs", "/api/v1/nothing", "/static/login.js", "/healthz"):
            for role in (None, "admin"):
                async with site.client(role) as client:
                    headers = (await client.get(path, headers={"Accept": "text/html"})).headers
                policy = headers["content-security-policy"]
                assert "default-src 'none'" in policy
                assert "script-src 'self';" in policy
                assert "unsafe" not in policy
                assert "frame-ancestors 'none'" in policy
                assert headers["x-content-type-options"] == "nosniff"
                assert headers["referrer-policy"] == "no-referrer"

    without_network(tmp_path, test)


def test_a_mistake_in_a_handler_says_nothing_about_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(site: Site) -> None:
        async def broken(*_: Any) -> Any:
            raise RuntimeError("/home/ann/secret")

        monkeypatch.setattr(site.app.state.desk, "items", broken)  # type: ignore[attr-defined]
        async with site.client() as client:
            answer = await client.get("/api/v1/inbox")
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert "content-security-policy" in answer.headers

    without_network(tmp_path, test)


# Tokens


def test_a_removed_token_lets_nobody_in_from_then_on(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("viewer") as client, site.client(None) as browser:
            origin = {"Origin": "http://127.0.0.1"}
            assert (
                await browser.post("/login", json={"token": site.tokens["viewer"]}, headers=origin)
            ).status_code == 204
            assert (await client.get("/api/v1/runs")).status_code == 200
            assert (await browser.get("/api/v1/runs")).status_code == 200
            Tokens(site.project.state).remove("viewer")  # as another process does it
            assert (await client.get("/api/v1/runs")).status_code == 401
            assert (await browser.get("/api/v1/runs")).status_code == 401

    without_network(tmp_path, test)


def test_files_keep_only_hashes_and_are_for_their_user_alone(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "state")
    token = tokens.add("ann", "decider", ("security",))
    cookie = tokens.sign_in(tokens.find(token), 0.0)
    for name in ("tokens.json", "sessions.json"):
        path = tmp_path / "state" / name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert token not in path.read_text()
        assert cookie not in path.read_text()
    assert tokens.find(token).caller == Caller("ann", "decider", ("security",))  # type: ignore[union-attr]
    assert tokens.find(token + "x") is None


def test_a_session_survives_a_new_start_and_ends_in_time(tmp_path: Path) -> None:
    owner = Caller("ann", "admin")
    cookie = Tokens(tmp_path).sign_in(None, 1_000.0)
    assert Tokens(tmp_path).signed_in(cookie, 1_001.0, owner) == owner
    assert Tokens(tmp_path).signed_in(cookie, 1_000.0 + 8 * 24 * 3600, owner) is None
    assert Tokens(tmp_path).signed_in("other", 1_001.0, owner) is None


def test_a_name_has_one_token(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    tokens.add("ann", "viewer")
    with pytest.raises(IllegalCommand, match="already"):
        tokens.add("ann", "admin")
    with pytest.raises(IllegalCommand, match="cannot be the name"):
        tokens.add("a\nb", "admin")
    with pytest.raises(NotFound, match="did you mean 'ann'"):
        tokens.remove("anne")


def test_many_processes_add_tokens_at_once(tmp_path: Path) -> None:
    async def all_at_once() -> None:
        await asyncio.gather(*(asyncio.to_thread(Tokens(tmp_path).add, f"n{n}", "viewer") for n in range(12)))

    asyncio.run(all_at_once())
    assert len(Tokens(tmp_path).all()) == 12


def test_a_damaged_file_of_tokens_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "tokens.json").write_text("{")
    with pytest.raises(IllegalCommand, match=r"tokens\.json cannot be read .*delete it"):
        Tokens(tmp_path).all()


def test_a_decider_for_a_role_decides_only_for_it() -> None:
    anybody, security = Caller("ann", "decider"), Caller("sam", "decider", ("security",))
    viewer, admin = Caller("vi", "viewer"), Caller("ad", "admin")
    assert anybody.may_answer(())
    assert anybody.may_answer(("security",))
    assert security.may_answer(("security", "legal"))
    assert security.may_answer(())
    assert not security.may_answer(("legal",))
    assert not viewer.may_answer(())
    assert admin.may_answer(("legal",))


# A reverse proxy


def test_a_proxy_speaks_for_its_users_with_its_own_token_only(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        proxy = site.store.add("proxy", "decider", (), True)  # type: ignore[attr-defined]
        address, body = "/api/v1/runs/r-asks/escalations/E-1/decision", {"choice": "accept", "note": "fine"}
        own = {"Origin": "http://127.0.0.1"}
        async with site.client(None) as client:
            as_eve = {"X-User": "eve"}
            assert (await client.get("/api/v1/runs", headers=as_eve)).status_code == 401
            through = {"Authorization": f"Bearer {proxy}"}
            assert (await client.get("/api/v1/runs", headers=through)).status_code == 401
            assert (await client.get("/api/v1/runs", headers={**through, **as_eve})).status_code == 200
            # The browser behind the proxy is signed in there: a foreign site could speak through it.
            assert (await client.post(address, json=body, headers={**through, **as_eve})).status_code == 403
            assert (await client.post("/login", json={"token": proxy}, headers=own)).status_code == 401
            done = await client.post(address, json=body, headers={**through, **as_eve, **own})
            assert done.json()["by"] == "eve"

    without_network(tmp_path, test)


def test_a_user_header_without_the_proxys_token_changes_nobodys_name(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("decider", **{"X-User": "the boss"}) as client:
            address = "/api/v1/runs/r-asks/escalations/E-1/decision"
            assert (await client.post(address, json={"choice": "accept", "note": "x"})).json()["by"] == "decider"

    without_network(tmp_path, test)


def test_two_hosts_or_two_tokens_in_one_request_are_refused(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        for name, value in (("Host", "127.0.0.1"), ("Authorization", f"Bearer {site.tokens['viewer']}")):
            request = httpx.Request(
                "GET",
                "http://127.0.0.1/api/v1/runs",
                headers=[("Authorization", f"Bearer {site.token}"), (name, value)],
            )
            request.headers = httpx.Headers([*request.headers.raw, (name.encode(), value.encode())])
            async with site.client(None) as client:
                assert (await client.send(request)).status_code in (401, 421)

    without_network(tmp_path, test)


def test_the_state_folder_is_private(tmp_path: Path) -> None:
    Tokens(tmp_path / ".backedge").add("ann", "viewer")
    assert stat.S_IMODE(os.stat(tmp_path / ".backedge").st_mode) == 0o700


def test_a_page_offers_only_what_its_reader_may_do(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        for role, offered in (("viewer", set()), ("decider", {"feedback"}), ("admin", {"feedback", "pause", "cancel"})):
            async with site.client(role) as client:
                html = (await client.get("/runs/r-asks")).text
                found = set(re.findall(r'data-path="[^"]*/(feedback|pause|cancel)"', html))
                assert found == offered, role
                assert f'<span class="muted">{role}</span>' in html

    without_network(tmp_path, test)
