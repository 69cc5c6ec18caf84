"""Server-sent events: nothing is lost or sent twice, slow readers cost nothing, and the server ends at once."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from backedge import Engine, Outcome, Step, Workflow
from backedge.engine.store import sound_records
from backedge.reading.event_line import event_line
from backedge.web import server
from backedge.web.api import event_stream, feed
from backedge.web.api.feed import Behind, Feed
from backedge.web.server import listening
from tests.web.serving import Site, on_site, project_in


def long_run(steps: int, pause: float = 0.0) -> Workflow:
    """A run of steps one after the other."""

    async def work(_: Any) -> str:
        await asyncio.sleep(pause)
        return "done"

    first = Step("s0", work)
    return Workflow("long", steps=[first, *(Step(f"s{n}", work, needs=f"s{n - 1}") for n in range(1, steps))])


async def messages(answer: httpx.Response) -> AsyncIterator[dict[str, str]]:
    """The messages of a stream; comments are left out."""
    message: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if not line and message.keys() - {"retry"}:
            yield message
        if not line:
            message = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            message[name] = value


async def lines_of(site: Site, run: str) -> list[str]:
    """The events as `audit export` prints them."""
    journal = site.engine.journal
    return [(await event_line(journal, run, each)).decode() for each in await sound_records(journal, run)]


@pytest.mark.parametrize("seed", range(3))
def test_over_random_disconnects_the_transcript_equals_the_journal(tmp_path: Path, seed: int) -> None:
    async def test(site: Site) -> None:
        luck = random.Random(seed)
        going = asyncio.create_task((await site.engine.start(long_run(30, 0.01), run="r-long")).result())
        seen: list[str] = []
        last = 0
        async with site.client("viewer", Accept="text/event-stream") as client:
            while not seen or json.loads(seen[-1])["type"] != "run_ended/1":
                left = luck.randint(1, 40)
                async with client.stream(
                    "GET", "/api/v1/runs/r-long/events", headers={"Last-Event-ID": str(last)}
                ) as answer:
                    assert answer.headers["content-type"].startswith("text/event-stream")
                    async for message in messages(answer):
                        assert int(message["id"]) == last + 1
                        last = int(message["id"])
                        seen.append(message["data"])
                        left -= 1
                        if left == 0 or '"run_ended/1"' in message["data"]:
                            break
        await going
        assert seen == await lines_of(site, "r-long")

    on_site(tmp_path, test)


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_head() -> None:
    async def go() -> None:
        delays = asyncio.get_running_loop().create_future()

        def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            option = writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            delays.set_result(not option)
            writer.close()

        with listening("127.0.0.1", 0) as found:
            async with await asyncio.start_server(accepted, sock=found):
                _, writer = await asyncio.open_connection(*found.getsockname())
                assert await delays is False
                writer.close()

    asyncio.run(go())


def test_events_of_another_process_arrive(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with Engine(site.project.journal) as other, site.client("viewer", Accept="text/event-stream") as client:
            known = (await (await site.engine.find("r-asks")).state()).seq
            async with client.stream("GET", f"/api/v1/runs/r-asks/events?after={known}") as answer:
                following = messages(answer)
                await (await other.find("r-asks")).pause("somebody")
                message = await asyncio.wait_for(anext(following), 20)
                assert (int(message["id"]), json.loads(message["data"])["type"]) == (known + 1, "run_paused/1")

    on_site(tmp_path, test)


def test_the_inbox_says_when_it_has_changed_and_not_what_is_known(tmp_path: Path) -> None:
    async def test(site: Site) -> None:
        async with site.client("viewer") as client:
            async with client.stream("GET", "/api/v1/inbox/events") as answer:
                following = messages(answer)
                first = await asyncio.wait_for(anext(following), 20)
                assert json.loads(first["data"])["escalations"] == [{"run": "r-asks", "escalation": "E-1"}]
                await (await site.engine.find("r-asks")).decide("E-1", "accept", note="fine", by="ann")
                second = await asyncio.wait_for(anext(following), 20)
                assert json.loads(second["data"]) == {"open": 0, "escalations": []}
            async with client.stream("GET", "/api/v1/inbox/events", headers={"Last-Event-ID": second["id"]}) as answer:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(messages(answer)), 0.5)

    on_site(tmp_path, test)


def test_a_beat_comes_while_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "BEAT", 0.1)

    async def test(site: Site) -> None:
        async with site.client("viewer") as client, client.stream("GET", "/api/v1/inbox/events") as answer:
            beats = 0
            async for line in answer.aiter_lines():
                beats += line == ": beat"
                if beats == 3:
                    break

    on_site(tmp_path, test)


def test_a_stream_ends_when_its_token_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "BEAT", 0.1)

    async def test(site: Site) -> None:
        from backedge.web.access.tokens import Tokens

        async with site.client("viewer") as client, client.stream("GET", "/api/v1/inbox/events") as answer:
            Tokens(site.project.state).remove("viewer")
            async with asyncio.timeout(20):
                async for _ in answer.aiter_lines():
                    pass

    on_site(tmp_path, test)


def test_many_streams_do_not_hold_up_the_end_of_the_server(tmp_path: Path) -> None:
    took = 0.0

    async def go() -> None:
        nonlocal took
        from tests.web.serving import serving

        async with serving(tmp_path) as site:
            readers = []

            async def read() -> None:
                async with site.client("viewer") as client, client.stream("GET", "/api/v1/inbox/events") as answer:
                    async for _ in answer.aiter_lines():
                        pass

            readers = [asyncio.create_task(read()) for _ in range(20)]
            await asyncio.sleep(1.0)
            began = time.process_time(), time.monotonic()
        took = time.monotonic() - began[1]
        await asyncio.wait_for(asyncio.gather(*readers, return_exceptions=True), 20)

    asyncio.run(go())
    assert took < 10, took  # without an end of their own, streams never end


# Slow readers


def small(monkeypatch: pytest.MonkeyPatch, most: int = 50) -> None:
    monkeypatch.setattr(feed, "MOST_BEHIND", most)
    monkeypatch.setattr(feed, "PAUSE", 0.0)
    monkeypatch.setattr(feed, "PAUSE_EACH", 0.0)


def on_feed(folder: Path, test: Any) -> None:
    async def go() -> None:
        async with Engine(project_in(folder).journal) as engine:
            run = await engine.start(long_run(400), run="r-long")

            async def head(name: str) -> int:
                return (await (await engine.find(name)).state()).seq

            await test(engine, Feed(engine.journal, head), run)

    asyncio.run(go())


def test_a_reader_who_was_up_to_date_and_falls_behind_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch)

    async def test(engine: Engine, given: Feed, run: Any) -> None:
        stream = given.events("r-long", (await run.state()).seq)
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await waiting  # it is up to date, and now reads no more
        await run.result()
        await asyncio.sleep(0.2)
        with pytest.raises(Behind) as behind:
            await anext(stream)
        assert behind.value.newest - behind.value.seen > 50

    on_feed(tmp_path, test)


def test_a_reader_who_does_not_read_keeps_no_events_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)

    async def test(engine: Engine, given: Feed, run: Any) -> None:
        stream = given.events("r-long", (await run.state()).seq)
        await anext(stream)
        await asyncio.ensure_future(anext(stream))
        channel = given._channels["r-long"]
        most = 0

        async def look() -> None:
            nonlocal most
            while True:
                most = max(most, len(channel._frames))
                await asyncio.sleep(0.001)

        looking = asyncio.create_task(look())
        await run.result()
        await asyncio.sleep(0.2)
        looking.cancel()
        assert channel.newest > 800
        assert most <= 4 * 50
        await stream.aclose()
        assert given._channels == {}
        assert given._unsubscribe is None

    on_feed(tmp_path, test)


def test_a_late_reader_gets_all_events_although_few_are_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch)
    monkeypatch.setattr(feed, "CHUNK", 2_000)

    async def test(engine: Engine, given: Feed, run: Any) -> None:
        early = given.events("r-long", (await run.state()).seq)
        await anext(early)
        reading = asyncio.create_task(run.result())
        for start in (0, 17):
            seen, text = start, b""
            async for part in given.events("r-long", start):
                text += part
                seen += part.count(b"\nid: ") + part.startswith(b"id: ")
                await asyncio.sleep(0)
                if b'"run_ended/1"' in part:
                    break
            ids = [int(line[4:]) for line in text.splitlines() if line.startswith(b"id: ")]
            assert ids == list(range(start + 1, ids[-1] + 1))
        await reading
        await early.aclose()

    on_feed(tmp_path, test)


def test_a_connection_that_is_full_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real socket whose reader does not read."""
    monkeypatch.setattr(event_stream, "STALLED", 0.5)

    def listening_with_a_small_buffer(host: str, port: int) -> socket.socket:
        found = server.listening(host, port)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)  # else the kernel takes megabytes
        return found

    monkeypatch.setattr("tests.web.serving.listening", listening_with_a_small_buffer)

    async def test(site: Site) -> None:
        def large(_: Any) -> Outcome:
            return Outcome(output="x", summary="y" * 3_000)

        first = Step("s0", large)
        steps = [first, *(Step(f"s{n}", large, needs=f"s{n - 1}") for n in range(1, 300))]
        await (await site.engine.start(Workflow("big", steps=steps), run="r-big")).result()
        host, port = site.address.removeprefix("http://").split(":")
        with socket.socket() as lazy:
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            lazy.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(lazy, (host, int(port)))
            head = f"Host: {host}\r\nAuthorization: Bearer {site.token}\r\nAccept: text/event-stream"
            await loop.sock_sendall(lazy, f"GET /api/v1/runs/r-big/events HTTP/1.1\r\n{head}\r\n\r\n".encode())
            await asyncio.sleep(3)
            got = b""
            async with asyncio.timeout(30):
                while part := await loop.sock_recv(lazy, 1 << 20):
                    got += part
        assert got.startswith(b"HTTP/1.1 200")
        assert b'"run_ended/1"' not in got  # it was closed long before the end

    on_site(tmp_path, test)
