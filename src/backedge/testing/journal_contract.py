"""What every journal must do, as tests: a new journal adapter subclasses JournalContract with one fixture.

class TestMyJournal(JournalContract):
    @pytest.fixture
    def journal(self, tmp_path: Path) -> Iterator[MyJournal]:
        journal = MyJournal(tmp_path / "journal")
        yield journal
        journal.close()
"""

from __future__ import annotations

import asyncio
from hashlib import sha256

import pytest

from backedge.core.chain import genesis, links
from backedge.core.errors import JournalConflict, JournalDamaged
from backedge.ports import Append
from backedge.testing.claims_contract import ClaimsContract
from backedge.testing.faults import JournalWithClaims

ONE, TWO, THREE = b'{"n":1}', b'{"n":2}', b'{"n":3}'


async def bodies(journal: JournalWithClaims, run: str, after: int = 0) -> list[bytes]:
    return [record.body for record in await journal.read(run, after)]


class JournalContract(ClaimsContract):
    """The tests, those of the claims included. The fixture `journal` gives each one a fresh, empty journal."""

    def test_events_come_back_in_the_order_they_were_appended(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            await journal.append(Append("r", 0, (ONE, TWO)))
            await journal.append(Append("r", 2, (THREE,)))
            assert [(record.seq, record.body) for record in await journal.read("r")] == [(1, ONE), (2, TWO), (3, THREE)]
            assert await bodies(journal, "r", after=2) == [THREE]
            assert await bodies(journal, "r", after=3) == []

        asyncio.run(scenario())

    def test_a_run_that_does_not_exist_has_no_events(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            await journal.append(Append("r", 0, (ONE,)))
            assert list(await journal.read("other")) == []
            assert [head.run for head in await journal.runs()] == ["r"]

        asyncio.run(scenario())

    def test_an_entry_without_events_makes_no_run(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            digest = sha256(b"long").hexdigest()
            await journal.append(Append("r", 0, (), payloads={digest: b"long"}))
            assert list(await journal.runs()) == []
            assert await journal.payload(digest) == b"long"

        asyncio.run(scenario())

    @pytest.mark.parametrize("after", [0, 1, 3, 99])
    def test_an_entry_that_does_not_follow_on_is_refused_whole(self, journal: JournalWithClaims, after: int) -> None:
        async def scenario() -> None:
            await journal.append(Append("r", 0, (ONE, TWO), outcome="running"))
            late = sha256(b"late").hexdigest()
            with pytest.raises(JournalConflict):
                await journal.append(Append("r", after, (THREE,), outcome="done", payloads={late: b"late"}))
            assert await bodies(journal, "r") == [ONE, TWO]
            [head] = await journal.runs()
            assert (head.outcome, head.seq) == ("running", 2)
            with pytest.raises(JournalDamaged):
                await journal.payload(late)

        asyncio.run(scenario())

    def test_a_first_entry_that_expects_events_is_refused(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            with pytest.raises(JournalConflict):
                await journal.append(Append("r", 1, (ONE,)))
            assert list(await journal.runs()) == []

        asyncio.run(scenario())

    def test_a_conflict_among_concurrent_appends_fails_only_its_own(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            entries = [Append("a", 0, (ONE,)), Append("b", 5, (ONE,)), Append("a", 1, (TWO,)), Append("c", 0, (ONE,))]
            fates = await asyncio.gather(*map(journal.append, entries), return_exceptions=True)
            assert [type(fate) for fate in fates] == [type(None), JournalConflict, type(None), type(None)]
            assert await bodies(journal, "a") == [ONE, TWO]
            assert await bodies(journal, "b") == []
            assert await bodies(journal, "c") == [ONE]

        asyncio.run(scenario())

    def test_fifty_runs_append_at_once(self, journal: JournalWithClaims) -> None:
        async def one(run: str) -> None:
            for after in range(0, 10, 2):
                await journal.append(Append(run, after, (b'{"n":%d}' % after, b'{"n":%d}' % (after + 1))))

        async def scenario() -> None:
            names = [f"run-{number}" for number in range(50)]
            await asyncio.gather(*map(one, names))
            for name in names:
                assert await bodies(journal, name) == [b'{"n":%d}' % number for number in range(10)]
            assert {head.run: head.seq for head in await journal.runs()} == dict.fromkeys(names, 10)

        asyncio.run(scenario())

    def test_two_writers_racing_on_one_run_lose_no_event(self, journal: JournalWithClaims) -> None:
        async def writer(name: str) -> list[bytes]:
            mine = [b'{"by":"%s","n":%d}' % (name.encode(), number) for number in range(20)]
            for body in mine:
                while True:
                    try:
                        await journal.append(Append("r", len(await journal.read("r")), (body,)))
                        break
                    except JournalConflict:
                        await asyncio.sleep(0)
            return mine

        async def scenario() -> None:
            written = await asyncio.gather(writer("a"), writer("b"))
            stored = await bodies(journal, "r")
            assert sorted(stored) == sorted(body for mine in written for body in mine)
            for mine in written:
                assert [body for body in stored if body in mine] == mine

        asyncio.run(scenario())

    def test_a_cancelled_append_is_stored_whole_or_not_at_all(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            task = asyncio.create_task(journal.append(Append("r", 0, (ONE, TWO))))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await journal.append(Append("other", 0, (ONE,)))
            stored = await bodies(journal, "r")
            assert stored in ([], [ONE, TWO])
            await journal.append(Append("r", len(stored), (THREE,)))
            assert await bodies(journal, "r") == [*stored, THREE]

        asyncio.run(scenario())

    def test_every_event_is_linked_to_all_before_it(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            await journal.append(Append("r", 0, (ONE, TWO)))
            await journal.append(Append("r", 2, (THREE,)))
            chain = links(genesis("r"), [ONE, TWO, THREE])
            assert [record.link for record in await journal.read("r")] == chain
            [head] = await journal.runs()
            assert head.link == chain[-1]

        asyncio.run(scenario())

    def test_the_same_event_has_another_link_in_another_run(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            await asyncio.gather(*(journal.append(Append(run, 0, (ONE,))) for run in "ab"))
            [a], [b] = await journal.read("a"), await journal.read("b")
            assert a.link != b.link

        asyncio.run(scenario())

    def test_a_payload_is_stored_with_its_entry_and_read_back(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            large = bytes(range(256)) * 400
            digest = sha256(large).hexdigest()
            await journal.append(Append("a", 0, (ONE,), payloads={digest: large}))
            await journal.append(Append("b", 0, (ONE,), payloads={digest: large, sha256(b"").hexdigest(): b""}))
            assert await journal.payload(digest) == large
            assert await journal.payload(sha256(b"").hexdigest()) == b""

        asyncio.run(scenario())

    def test_a_missing_payload_is_reported(self, journal: JournalWithClaims) -> None:
        for digest in (sha256(b"never stored").hexdigest(), "not a digest"):
            with pytest.raises(JournalDamaged, match=digest):
                asyncio.run(journal.payload(digest))

    def test_a_payload_that_does_not_match_its_digest_is_reported(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            digest = sha256(b"right").hexdigest()
            await journal.append(Append("r", 0, (ONE,), payloads={digest: b"wrong"}))
            with pytest.raises(JournalDamaged, match=digest):
                await journal.payload(digest)

        asyncio.run(scenario())

    def test_runs_are_listed_newest_first_with_workflow_and_outcome(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            await journal.append(Append("old", 0, (ONE,), workflow="review"))
            await journal.append(Append("new", 0, (ONE, TWO), workflow="release", outcome="waiting"))
            await journal.append(Append("old", 1, (TWO, THREE), outcome="done"))
            assert [(head.run, head.workflow, head.outcome, head.seq) for head in await journal.runs()] == [
                ("new", "release", "waiting", 2),
                ("old", "review", "done", 3),
            ]

        asyncio.run(scenario())

    def test_listeners_hear_of_every_commit_before_its_writer_goes_on(self, journal: JournalWithClaims) -> None:
        heard: list[tuple[str, int]] = []

        async def scenario() -> None:
            await journal.append(Append("r", 0, (ONE,)))
            unsubscribe = journal.subscribe(lambda run, seq: heard.append((run, seq)))
            await journal.append(Append("r", 1, (TWO, THREE)))
            assert heard == [("r", 3)]
            await asyncio.gather(*(journal.append(Append(run, 0, (ONE,))) for run in "ab"))
            assert heard == [("r", 3), ("a", 1), ("b", 1)]
            with pytest.raises(JournalConflict):
                await journal.append(Append("r", 0, (ONE,)))
            unsubscribe()
            unsubscribe()
            await journal.append(Append("r", 3, (ONE,)))
            assert heard == [("r", 3), ("a", 1), ("b", 1)]

        asyncio.run(scenario())

    def test_two_listeners_hear_independently(self, journal: JournalWithClaims) -> None:
        heard: list[str] = []

        async def scenario() -> None:
            def listener(run: str, seq: int) -> None:
                heard.append(f"{run} {seq}")

            first, second = journal.subscribe(listener), journal.subscribe(listener)
            await journal.append(Append("r", 0, (ONE,)))
            first()
            await journal.append(Append("r", 1, (ONE,)))
            second()
            assert heard == ["r 1", "r 1", "r 2"]

        asyncio.run(scenario())

    @pytest.mark.parametrize(
        "body",
        [
            rb'{"text":"a\u0000b"}',
            '{"text":"äö ✓ 🦀 \u2028"}'.encode(),
            rb'{"text":"\ud800 alone"}',
            b'{"text":"line\\nbreak \\"quoted\\""}',
            b'{"text":"' + b"x" * 1_000_000 + b'"}',
            b"",
        ],
        ids=["nul", "unicode", "surrogate", "escapes", "one megabyte", "empty"],
    )
    def test_a_body_comes_back_byte_for_byte(self, journal: JournalWithClaims, body: bytes) -> None:
        async def scenario() -> None:
            await journal.append(Append("rün/1 🦀", 0, (body, body)))
            assert await bodies(journal, "rün/1 🦀") == [body, body]

        asyncio.run(scenario())

    def test_it_serves_one_event_loop_after_another(self, journal: JournalWithClaims) -> None:
        heard: list[int] = []

        async def listen() -> None:
            journal.subscribe(lambda _, seq: heard.append(seq))

        asyncio.run(listen())
        for after in range(5):
            asyncio.run(journal.append(Append("r", after, (ONE,))))
        assert heard == [1, 2, 3, 4, 5]
        assert len(asyncio.run(bodies(journal, "r"))) == 5
