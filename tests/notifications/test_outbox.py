"""Messages about questions: sent once per due time, in order, and again until they are taken."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import backedge as be
from backedge.adapters.notifications.outbox_file import OutboxFile
from backedge.core.escalation.deadlines import next_due
from backedge.project import Project
from backedge.project.notifying import Notifying, notifying, outbox_path, unsent
from backedge.project.outbox import MOST_TRIES, NO_CHANNELS, pause_after
from backedge.testing.clock import FakeClock
from tests.notifications.receiver import SECRET, Receiver

Channels = Sequence[dict[str, Any]]


@dataclass
class Site:
    """A journal with an outbox, and a clock that the test moves."""

    engine: be.Engine
    sender: Notifying
    clock: FakeClock
    project: Project

    async def ask(self, notify: Channels, run: str = "r", role: str = "", **more: Any) -> be.Run:
        """A run that asks a person to do a step."""
        steps = [be.Step("pay", "human", question="pay <!channel> @here?", for_roles=role or ())]
        work = be.Workflow("shop", steps, notify=notify, **more)
        started = await self.engine.start(work, run=run)
        await started.at_rest()
        return started

    async def reject(self, notify: Channels, *findings: be.Finding, **more: Any) -> be.Run:
        """A run whose review fails until a limit asks a person."""

        async def review(brief: Any) -> Any:
            return be.failed(*findings)

        async def code(brief: Any) -> Any:
            return brief.attempt

        steps = [be.Step("code", code), be.Step("review", review, reviews="code")]
        work = be.Workflow("shop", steps, limits={"rounds_per_loop": 1}, new_findings="rework", notify=notify, **more)
        run = await self.engine.start(work, run="r")
        await run.at_rest()
        return run

    async def later(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.send()

    async def send(self) -> None:
        """Wait until whoever executes the runs has met what is due, and until all of it was read; then send."""
        async with asyncio.timeout(20):
            while await self._behind():
                await self.sender.pass_once()
                await asyncio.sleep(0.02)
        await self.sender.pass_once()

    async def _behind(self) -> bool:
        with OutboxFile(outbox_path(self.project)) as file:
            positions = file.positions()
        for head in await self.engine.runs():
            due = next_due(await (await self.engine.find(head.run)).state())
            if positions.get(head.run) not in (head.seq, NO_CHANNELS) or (due or math.inf) <= self.clock.now():
                return True
        return False


@asynccontextmanager
async def site(folder: Path, clock: FakeClock | None = None) -> AsyncIterator[Site]:
    clock = clock or FakeClock()
    project = Project(folder, folder / "journal.db")
    async with be.Engine(project.journal, clock=clock) as engine:
        with Notifying(engine, project, "https://backedge.example") as sender:
            yield Site(engine, sender, clock, project)


async def test_a_question_is_told_once_with_all_that_a_person_needs(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK", f"{receiver.url}/hook")
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    async with site(tmp_path) as here:
        await here.ask([{"to": "${HOOK}", "secret": "HOOK_SECRET", "for": "ops"}], "r 1&2", role="ops")
        await here.send()
        await here.later(3600)
    (got,) = receiver.taken
    assert got.signed and got.path == "/hook"
    told = got.body
    assert (told["id"], told["event"], told["run"], told["workflow"]) == (got.id, "opened", "r 1&2", "shop")
    address = "https://backedge.example/?run=r%201%262#r%201%262:E-1"
    assert (told["escalation"], told["for_roles"], told["url"]) == ("E-1", ["ops"], address)
    assert [each["choice"] for each in told["choices"]] == ["resolve", "skip", "cancel"]
    assert "backedge decide E-1 CHOICE --run 'r 1&2'\n" in told["text"]


async def test_text_of_agents_mentions_nobody_anywhere(tmp_path: Path, receiver: Receiver) -> None:
    bad = "see <!here> <@U1> @all \x1b[31mred\x1b[0m"
    finding = be.Finding(bad, severity="medium", file="<!channel>.py", evidence="@channel", suggested_fix=bad)
    async with site(tmp_path) as here:
        await here.reject([{"to": receiver.url}], finding)
        await here.send()
    everything = b"".join(each.data for each in receiver.taken).decode()
    for mention in ("<!", "<@", "@all", "@here", "@channel", "\\u001b", "\x1b"):
        assert mention not in everything, mention
    assert "red" in everything and receiver.taken[0].body["findings"][0]["id"] == "F-1"


async def test_a_message_stays_small_whatever_agents_write(tmp_path: Path, receiver: Receiver) -> None:
    findings = [
        be.Finding(f"{number} " + "x" * 100_000, evidence="y" * 100_000, severity="low") for number in range(50)
    ]
    async with site(tmp_path) as here:
        await here.reject([{"to": receiver.url}], *findings)
        await here.send()
    (got,) = receiver.taken
    assert len(got.data) < 40_000 and len(got.body["findings"]) == 5


async def test_only_the_channels_of_its_role_and_occasion_are_told(tmp_path: Path, receiver: Receiver) -> None:
    channels: Channels = [
        {"to": f"{receiver.url}/all"},
        {"to": f"{receiver.url}/ops", "for": "ops"},
        {"to": f"{receiver.url}/qa", "for": "qa"},
        {"to": f"{receiver.url}/decided", "on": ["decided"]},
    ]
    async with site(tmp_path) as here:
        run = await here.ask(channels, role="ops", roles={"ops": [], "qa": []})
        await here.send()
        assert sorted(each.path for each in receiver.taken) == ["/all", "/ops"]
        await run.decide("E-1", "resolve", note="paid")
        await here.send()
    assert [(each.path, each.body["decided"]) for each in receiver.taken[2:]] == [("/decided", "resolve")]


async def test_reminders_are_sent_once_per_due_time_also_after_a_restart(tmp_path: Path, receiver: Receiver) -> None:
    clock = FakeClock()
    async with site(tmp_path, clock) as here:
        await here.ask([{"to": receiver.url, "remind": [60, 600]}])
        await here.send()
        await here.later(61)
        await here.later(1)
        await (await here.engine.find("r")).release()
    assert receiver.events() == ["opened", "reminded"]
    clock.advance(10_000)
    for _ in range(2):  # nobody executes the run: whoever sends keeps its deadlines
        async with site(tmp_path, clock) as here:
            await here.send()
    assert receiver.events() == ["opened", "reminded", "reminded"]
    assert len({each.id for each in receiver.taken}) == 3


async def test_a_channel_gets_its_own_reminders(tmp_path: Path, receiver: Receiver) -> None:
    channels: Channels = [
        {"to": f"{receiver.url}/a", "remind": [60]},
        {"to": f"{receiver.url}/b", "remind": [120]},
        {"to": f"{receiver.url}/c"},
    ]
    async with site(tmp_path) as here:
        await here.ask(channels)
        await here.send()
        receiver.taken.clear()
        await here.later(61)
        await here.later(60)
    assert [(each.path, each.body["event"]) for each in receiver.taken] == [("/a", "reminded"), ("/b", "reminded")]


async def test_an_expired_question_is_told_with_what_was_chosen(tmp_path: Path, receiver: Receiver) -> None:
    async with site(tmp_path) as here:
        channels: Channels = [{"to": receiver.url, "on": ["opened", "expired", "decided"]}]
        finding = be.Finding("slow", severity="medium")
        run = await here.reject(channels, finding, expire={"after": 60, "choice": "skip"})
        await here.send()
        here.clock.advance(61)
        await run.result()
        await here.send()
        events = [type(each).__name__ for each in await run.events()]
    assert receiver.events() == ["opened", "expired"], "its own decision is not told a second time"
    assert receiver.taken[0].body["default"] == "skip" and receiver.taken[0].body["expires_at"]
    assert (receiver.taken[1].body["decided"], receiver.taken[1].body["by"]) == ("skip", "policy:expire")
    assert events.count("EscalationExpired") == 1


async def test_quiet_hours_delay_the_message_and_not_the_event(tmp_path: Path, receiver: Receiver) -> None:
    clock = FakeClock(1_700_000_000.0)  # 22:13:20 UTC
    async with site(tmp_path, clock) as here:
        run = await here.ask([{"to": receiver.url, "remind": [60, 120], "quiet": "22:00-07:00 UTC"}])
        await here.send()
        await here.later(61)
        await here.later(61)
        assert receiver.taken == []
        assert [type(each).__name__ for each in await run.events()].count("EscalationReminded") == 2
        await here.later(8 * 3600)
        assert receiver.taken == []
        await here.later(3600)
    assert receiver.events() == ["opened", "reminded"], "one reminder is enough in the morning"


async def test_what_was_decided_in_quiet_hours_is_not_asked_any_more(tmp_path: Path, receiver: Receiver) -> None:
    async with site(tmp_path) as here:
        run = await here.ask([{"to": receiver.url, "on": ["opened", "decided"], "quiet": "22:00-07:00 UTC"}])
        await here.send()
        await run.decide("E-1", "resolve", note="done")
        await here.send()
        await here.later(9 * 3600)
    assert receiver.events() == ["decided"]


async def test_a_message_is_tried_again_and_later_ones_wait_for_it(tmp_path: Path, receiver: Receiver) -> None:
    refuses = [500, 503]
    receiver.answer = lambda _: refuses.pop(0) if refuses else 200
    async with site(tmp_path) as here:
        run = await here.ask([{"to": receiver.url, "on": ["opened"], "remind": [4]}])
        await here.send()
        await here.later(4)
        assert [each.body["event"] for each in receiver.received] == ["opened"], "the reminder waits"
        (first, _) = unsent(here.project)
        assert (first.tries, first.error) == (1, "the receiver answered 500")
        assert (await run.state()).escalations, "the run does not notice"
        await here.later(2)
        await here.later(16)
    assert [each.body["event"] for each in receiver.received] == ["opened", "opened", "opened", "reminded"]
    assert len({each.id for each in receiver.received[:3]}) == 1
    assert unsent(here.project) == []


async def test_a_message_that_nobody_takes_fails_in_the_end(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answer = lambda _: 500
    async with site(tmp_path) as here:
        await here.ask([{"to": f"{receiver.url}/secret-path"}])
        for tries in range(MOST_TRIES):
            await here.later(pause_after(tries + 1) + 1)
        (left,) = unsent(here.project)
        assert (left.state, left.tries) == ("failed", MOST_TRIES)
        await here.later(100_000)
    assert len(receiver.received) == MOST_TRIES
    assert "secret-path" not in left.error


async def test_one_channel_that_fails_does_not_hold_up_another(tmp_path: Path, receiver: Receiver) -> None:
    async with site(tmp_path) as here:
        await here.ask([{"to": "http://127.0.0.1:9/nobody"}, {"to": receiver.url}, {"to": "${NOT_SET}"}])
        await here.send()
        assert receiver.events() == ["opened"]
        errors = [each.error for each in unsent(here.project)]
    assert errors == [
        "the receiver cannot be reached: Connection refused",
        "the environment variable NOT_SET is not set here: set it for the process that sends",
    ]


async def test_an_outbox_begins_with_what_is_open(tmp_path: Path, receiver: Receiver) -> None:
    async with be.Engine(tmp_path / "journal.db") as engine:
        notify = [{"to": receiver.url, "on": ["opened", "decided"]}]
        work = be.Workflow("shop", [be.Step("pay", "human", question="?")], notify=notify)
        for name in ("old", "new"):
            run = await engine.start(work, run=name)
            await run.at_rest()
            if name == "old":
                await run.decide("E-1", "resolve", note="paid")
                await run.result()
    async with site(tmp_path) as here:
        await here.send()
    assert [each.body["run"] for each in receiver.taken] == ["new"]


async def test_only_one_process_sends(tmp_path: Path, receiver: Receiver) -> None:
    async with site(tmp_path) as here:
        await here.ask([{"to": receiver.url}])
        with Notifying(here.engine, here.project) as other:
            await here.send()
            await other.pass_once()
            assert (here.sender.sends, other.sends) == (True, False)
    assert receiver.events() == ["opened"]


async def test_leaving_sends_what_is_left(tmp_path: Path, receiver: Receiver) -> None:
    project = Project(tmp_path, tmp_path / "journal.db")
    async with be.Engine(project.journal) as engine, notifying(engine, project):
        work = be.Workflow("shop", [be.Step("pay", "human", question="?")], notify=[{"to": receiver.url}])
        await (await engine.start(work)).at_rest()
    assert receiver.events() == ["opened"]
    assert outbox_path(project).stat().st_mode & 0o077 == 0


async def test_a_state_folder_that_cannot_be_written_is_only_a_warning(tmp_path: Path) -> None:
    project = Project(tmp_path, tmp_path / "journal.db")
    async with be.Engine(project.journal) as engine:
        outbox_path(project).mkdir()
        warnings: list[str] = []
        async with notifying(engine, project, warn=warnings.append):
            pass
    assert len(warnings) == 1 and "messages are not sent" in warnings[0]


async def test_a_restored_journal_that_lacks_the_event_drops_the_message(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answer = lambda _: 500
    async with site(tmp_path) as here:
        await here.ask([{"to": receiver.url}])
        await here.send()
    outbox = outbox_path(here.project)
    other = tmp_path / "other"
    other.mkdir()
    (other / outbox.name).write_bytes(outbox.read_bytes())
    async with be.Engine(other / "journal.db") as engine:
        with Notifying(engine, Project(other, other / "journal.db")) as sender:
            await sender.pass_once()
    assert unsent(Project(other, other / "journal.db")) == []
