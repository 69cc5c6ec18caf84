"""Tests that every journal must pass: a new journal adapter subclasses JournalContract and implements `open`.

class TestMyJournal(JournalContract):
    def open(self, folder: Path) -> MyJournal:
        return MyJournal(folder / "journal")
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from backedge.core.chain import genesis, links
from backedge.core.errors import JournalConflict, JournalDamaged, KeyUsed
from backedge.ports import Append, JournalWithClaims, OpenEscalation
from backedge.testing.claims_contract import SOON, ClaimsContract
from backedge.testing.zombie_contract import ZombieContract

ONE, TWO, THREE = b'{"n":1}', b'{"n":2}', b'{"n":3}'


async def bodies(journal: JournalWithClaims, run: str, after: int = 0) -> list[bytes]:
    return [record.body for record in await journal.read(run, after)]


class JournalContract(ClaimsContract, ZombieContract):
    """The tests, those of the claims included."""

    def open(self, folder: Path) -> JournalWithClaims:
        """Open the journal in this folder, which is empty at first. Opened twice, it is two instances of one journal."""
        raise NotImplementedError("implement `open` to open your journal")

    @pytest.fixture
    def journal(self, tmp_path: Path) -> Iterator[JournalWithClaims]:
        """A fresh, empty journal."""
        yield from self._opened(tmp_path)

    @pytest.fixture
    def other(self, journal: JournalWithClaims, tmp_path: Path) -> Iterator[JournalWithClaims]:
        """A second instance of the same journal, as another process would open it."""
        yield from self._opened(tmp_path)

    def _opened(self, folder: Path) -> Iterator[JournalWithClaims]:
        journal = self.open(folder)
        yield journal
        asyncio.run(journal.close())

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
            assert [type(fate) for fate in fates] == [int, JournalConflict, int, int]
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

    def test_two_instances_racing_on_one_run_lose_no_event(
        self, journal: JournalWithClaims, other: JournalWithClaims
    ) -> None:
        async def scenario() -> None:
            entry = Append("r", 0, (ONE,)), Append("r", 0, (TWO,))
            fates = await asyncio.gather(journal.append(entry[0]), other.append(entry[1]), return_exceptions=True)
            assert sorted(type(fate).__name__ for fate in fates) == ["JournalConflict", "int"]
            assert await bodies(journal, "r") == await bodies(other, "r")
            assert len(await bodies(journal, "r")) == 1

        asyncio.run(scenario())

    def test_an_append_says_how_far_the_run_has_come(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            assert await journal.append(Append("r", 0, (ONE, TWO))) == 2
            assert await journal.append(Append("r", 2, (THREE,))) == 3

        asyncio.run(scenario())

    def test_an_entry_that_is_sent_again_with_its_key_is_stored_once(
        self, journal: JournalWithClaims, other: JournalWithClaims
    ) -> None:
        async def scenario() -> None:
            entry = Append("r", 0, (ONE, TWO), opened=("E-1",), key="first")
            assert await journal.append(entry) == 2
            assert await journal.append(Append("r", 2, (THREE,), closed=("E-1",), outcome="done", key="second")) == 3
            for each in (journal, other):
                assert await each.append(entry) == 2, "the first result, although the run has gone on"
                assert await each.append(Append("r", 9, (ONE, TWO), key="first")) == 2
            assert await bodies(other, "r") == [ONE, TWO, THREE]
            [head] = await other.runs()
            assert (head.outcome, head.seq, list(await other.open_escalations())) == ("done", 3, [])
            assert await journal.append(Append("another", 0, (THREE,), key="first")) == 1, "a key is of its run"

        asyncio.run(scenario())

    def test_a_key_that_was_used_for_other_events_is_refused(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            await journal.append(Append("r", 0, (ONE, TWO), key="k"))
            for others in ((ONE,), (ONE, THREE), (ONE, TWO, THREE)):
                for after in (0, 2):
                    with pytest.raises(KeyUsed, match="'k'"):
                        await journal.append(Append("r", after, others, key="k"))
            assert await bodies(journal, "r") == [ONE, TWO]

        asyncio.run(scenario())

    def test_the_same_key_sent_twice_at_once_is_stored_once(self, journal: JournalWithClaims) -> None:
        async def scenario() -> None:
            await journal.append(Append("r", 0, (ONE,)))
            entry = Append("r", 1, (TWO,), key="k")
            assert list(await asyncio.gather(journal.append(entry), journal.append(entry))) == [2, 2]
            assert await bodies(journal, "r") == [ONE, TWO]

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

    def test_runs_are_listed_page_by_page(self, journal: JournalWithClaims, other: JournalWithClaims) -> None:
        async def scenario() -> None:
            for number in range(5):
                outcome = "done" if number % 2 else "waiting"
                await journal.append(Append(f"r-{number}", 0, (ONE,), outcome=outcome))
            await journal.append(Append("r-0", 1, (TWO,), outcome="running"))

            async def pages(size: int) -> list[list[str]]:
                found, last = [], None
                while page := [head.run for head in await other.runs(size, last)]:
                    found.append(page)
                    last = page[-1]
                return found

            assert await pages(2) == [["r-4", "r-3"], ["r-2", "r-1"], ["r-0"]]
            assert await pages(5) == [["r-4", "r-3", "r-2", "r-1", "r-0"]]
            assert list(await other.runs(0)) == []
            assert [head.run for head in await other.runs(after="r-3")] == ["r-2", "r-1", "r-0"]

        asyncio.run(scenario())

    def test_open_runs_are_those_that_have_not_ended(
        self, journal: JournalWithClaims, other: JournalWithClaims
    ) -> None:
        async def scenario() -> None:
            for run, outcome in (("a", "running"), ("b", "done"), ("c", "waiting"), ("d", "failed"), ("e", "waiting")):
                await journal.append(Append(run, 0, (ONE,), outcome=outcome))
            assert [head.run for head in await other.open_runs()] == ["e", "c", "a"]
            assert [head.run for head in await other.open_runs(2)] == ["e", "c"]
            assert [head.run for head in await other.open_runs(2, "c")] == ["a"]
            assert [head.run for head in await other.open_runs(after="d")] == ["c", "a"], (
                "also after one that has ended"
            )
            await journal.append(Append("c", 1, (TWO,), outcome="cancelled"))
            assert [head.run for head in await other.open_runs()] == ["e", "a"]

        asyncio.run(scenario())

    def test_open_escalations_are_found_without_reading_events(
        self, journal: JournalWithClaims, other: JournalWithClaims
    ) -> None:
        async def found(escalation: str | None = None) -> list[str]:
            return [f"{each.run} {each.escalation}" for each in await other.open_escalations(escalation)]

        async def scenario() -> None:
            await journal.append(Append("a", 0, (ONE,)))
            await journal.append(Append("b", 0, (ONE,), opened=("E-1",)))
            await journal.append(Append("a", 1, (ONE,), opened=("E-1", "E-2")))
            assert await found() == ["a E-1", "a E-2", "b E-1"]
            assert await found("E-1") == ["a E-1", "b E-1"]
            assert await found("E-9") == []
            await journal.append(Append("a", 2, (TWO,), opened=("E-3",), closed=("E-1",)))
            assert await found() == ["a E-2", "a E-3", "b E-1"]
            with pytest.raises(JournalConflict):
                await journal.append(Append("a", 2, (TWO,), opened=("E-4",), closed=("E-2", "E-3")))
            assert await found() == ["a E-2", "a E-3", "b E-1"], "what was refused changes nothing"
            await journal.append(Append("a", 3, (TWO,), closed=("E-2", "E-3")))
            assert list(await journal.open_escalations()) == [OpenEscalation("b", "E-1")]

        asyncio.run(scenario())

    def test_listeners_hear_of_every_commit_before_its_writer_goes_on(self, journal: JournalWithClaims) -> None:
        notified: list[tuple[str, int]] = []

        async def scenario() -> None:
            await journal.append(Append("r", 0, (ONE,)))
            unsubscribe = journal.subscribe(lambda run, seq: notified.append((run, seq)))
            await journal.append(Append("r", 1, (TWO, THREE)))
            assert notified == [("r", 3)]
            await asyncio.gather(*(journal.append(Append(run, 0, (ONE,))) for run in "ab"))
            assert notified == [("r", 3), ("a", 1), ("b", 1)]
            with pytest.raises(JournalConflict):
                await journal.append(Append("r", 0, (ONE,)))
            unsubscribe()
            unsubscribe()
            await journal.append(Append("r", 3, (ONE,)))
            assert notified == [("r", 3), ("a", 1), ("b", 1)]

        asyncio.run(scenario())

    def test_two_instances_hear_each_other(self, journal: JournalWithClaims, other: JournalWithClaims) -> None:
        notified: dict[str, int] = {}
        told = asyncio.Event()

        def listener(run: str, seq: int) -> None:
            notified[run] = max(seq, notified.get(run, 0))
            if notified == {"a": 3, "b": 1}:
                told.set()

        async def scenario() -> None:
            await journal.append(Append("a", 0, (ONE,)))
            journal.subscribe(listener)
            await other.append(Append("a", 1, (TWO,)))
            await other.append(Append("a", 2, (THREE,)))
            await other.append(Append("b", 0, (ONE,)))
            await asyncio.wait_for(told.wait(), SOON)
            assert await bodies(journal, "a") == [ONE, TWO, THREE]

        asyncio.run(scenario())

    def test_two_listeners_hear_independently(self, journal: JournalWithClaims) -> None:
        notified: list[str] = []

        async def scenario() -> None:
            def listener(run: str, seq: int) -> None:
                notified.append(f"{run} {seq}")

            first, second = journal.subscribe(listener), journal.subscribe(listener)
            await journal.append(Append("r", 0, (ONE,)))
            first()
            await journal.append(Append("r", 1, (ONE,)))
            second()
            assert notified == ["r 1", "r 1", "r 2"]

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
        notified: list[int] = []

        async def listen() -> None:
            journal.subscribe(lambda _, seq: notified.append(seq))

        asyncio.run(listen())
        for after in range(5):
            asyncio.run(journal.append(Append("r", after, (ONE,))))
        assert notified == [1, 2, 3, 4, 5]
        assert len(asyncio.run(bodies(journal, "r"))) == 5
