"""Pages without a browser: everything that is known is on them, and text of agents is only text."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import backedge as be
from backedge.analytics.inbox import InboxItem
from backedge.analytics.stats import Tally
from backedge.web.desk import Desk
from backedge.web.pages.consequence import consequence
from backedge.web.pages.errors import error_page
from backedge.web.pages.inbox import inbox_page
from backedge.web.pages.question import KEYS, QuestionCard
from backedge.web.pages.report import report_page
from backedge.web.run_search import RunSearch, search_runs
from tests.web.example import fill

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[InboxItem]:
    """Questions of every sort."""

    async def read() -> list[InboxItem]:
        place = await fill(
            tmp_path_factory.mktemp("shop"), ("r-copy", "r-licence", "r-deploy", "r-budget", "r-hostile")
        )
        async with be.Engine(place.journal) as engine:
            return await Desk(engine, place).items()

    return asyncio.run(read())


def text_of(html: str) -> str:
    """What a person reads."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def of_run(items: list[InboxItem], run: str) -> InboxItem:
    return next(each for each in items if each.run == run)


def words_in(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a value with its place."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from words_in(each, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for each in value:
            yield from words_in(each, path)
    elif isinstance(value, str) and value:
        yield path, value


UNSAID = re.compile(
    r"^\.(words|options|loop|decided|by|note|option)$"  # said by the choices, or empty until it is decided
    r"|^\.choices|^\.breach|^\.reason$|^\.numbers|^\.kind$|^\.history.*(state|kind)$|\.status$|\.found_by$"
    r"|^\.last_changes.*(loops|kind)$|^\.inputs\.whole$|\.routed_by$|^\.verdicts\.findings|^\.last_changes.files.kind$"
    r"|\.shares|^\.offers|\.undone_because$"
)
"""Keys that the page says in other words; each has a test of its own, or is part of the choices."""


def test_a_person_reads_every_text_of_a_question(items: list[InboxItem]) -> None:
    for item in items:
        read = text_of(inbox_page([QuestionCard(item, ("a",), ("p",))]))
        whole = replace(item, last_changes=tuple(QuestionCard(item).changes))
        for path, text in words_in(msgspec.to_builtins(whole)):
            if not UNSAID.search(path):
                for line in re.sub(r"\x1b\][^\x07]*\x07|\x1b\[[0-9;]*m", "", text).splitlines():
                    assert " ".join(line.split()) in read, f"{item.run}{path}"


@pytest.mark.parametrize(
    ("run", "question"),
    [
        ("r-copy", "You judge write as read: Would a customer understand this page?"),
        ("r-deploy", "deploy waits for your approval before it runs: Deploy version 2.4.0 to production?"),
        ("r-budget", "The run has reached its limit: cost $1.25 of $1.00."),
    ],
)
def test_a_person_reads_what_the_workflow_asks(items: list[InboxItem], run: str, question: str) -> None:
    item = of_run(items, run)
    assert item.sentence == question
    assert question in text_of(inbox_page([QuestionCard(item, (), ())]))


def test_a_first_version_is_shown_once(items: list[InboxItem]) -> None:
    html = inbox_page([QuestionCard(of_run(items, "r-copy"), (), ())])
    assert html.count("We send it to the card you paid with.") == 1


def test_every_key_of_a_question_changes_the_page(items: list[InboxItem]) -> None:
    item = of_run(items, "r-hostile")
    for key in ("message", "requested_info", "suggested_fix", "requirement_id", "advice", "last_error"):
        told = text_of(inbox_page([QuestionCard(msgspec.structs.replace(item, **{key: "a word like no other"}))]))
        assert "a word like no other" in told, key


def test_markup_and_terminal_codes_are_text(items: list[InboxItem]) -> None:
    html = inbox_page([QuestionCard(each) for each in items])
    assert "<script>document" not in html
    assert "<img src=x" not in html
    assert "\x1b" not in html
    assert "&lt;script&gt;" in html


def test_no_question_has_two_choices_with_one_key(items: list[InboxItem]) -> None:
    for item in items:
        keys = [choice.key for choice in QuestionCard(item).choices]
        assert len(set(keys)) == len(keys), item.run
        assert all(keys), item.run
    assert not {"j", "k", "u", "s", "g", "d"} & set(KEYS.values())  # these move, undo and send


def test_the_recommended_choice_is_first_and_says_why(items: list[InboxItem]) -> None:
    [first, *rest] = QuestionCard(of_run(items, "r-hostile")).choices
    assert first.option.recommended
    assert not any(each.option.recommended for each in rest)


def test_a_choice_asks_for_what_it_needs(items: list[InboxItem]) -> None:
    choices = {each.option.choice: each for each in QuestionCard(of_run(items, "r-hostile")).choices}
    assert choices["revise"].required == "note"
    assert choices["reassign"].required == "target"
    assert choices["accept"].asks
    assert choices["cancel"].asks
    assert "rounds" in choices["continue"].optional


def test_the_mark_of_a_card_changes_only_with_its_question(items: list[InboxItem]) -> None:
    item = of_run(items, "r-copy")
    assert QuestionCard(item).mark == QuestionCard(item).mark
    assert QuestionCard(item).mark != QuestionCard(msgspec.structs.replace(item, sentence="another")).mark
    assert QuestionCard(item).mark != QuestionCard(item, refused="you may look").mark


def test_who_may_not_decide_gets_no_buttons_and_a_reason(items: list[InboxItem]) -> None:
    html = inbox_page([QuestionCard(of_run(items, "r-copy"), refused="You may look.")])
    assert "You may look." in html
    assert html.count('<button type="submit"') == html.count(" disabled>")


def test_an_empty_inbox_says_what_will_come() -> None:
    assert "Nothing needs you" in inbox_page([])


def test_a_report_without_runs_says_so() -> None:
    assert "Nothing to count yet" in report_page(Tally().stats())


def test_an_error_page_says_what_went_wrong_as_text() -> None:
    html = error_page(404, EVIL)
    assert EVIL not in html
    assert "There is no such page" in html
    assert "This run is damaged" in error_page(500, "event 7 is wrong", "JournalDamaged")


def test_runs_are_found_page_by_page() -> None:
    async def search() -> list[list[str]]:
        workflow = be.Workflow("users", [be.Step("plan", lambda brief: "x")])
        found, cursor = [], None
        async with be.Engine() as engine:
            for number in range(5):
                await (await engine.start(workflow, run=f"r-{number}")).result()
            while True:
                heads, cursor = await search_runs(engine.journal, RunSearch(None, "users", "R-", cursor), 2)
                found.append([head.run for head in heads])
                if cursor is None:
                    return found

    assert asyncio.run(search()) == [["r-4", "r-3"], ["r-2", "r-1"], ["r-0"]]


def test_a_decision_shows_what_it_led_to(tmp_path: Path) -> None:
    async def decide() -> list[str]:
        place = await fill(tmp_path, ("r-deploy",))
        async with be.Engine(place.journal) as engine:
            run = await engine.find("r-deploy")
            await run.decide("E-1", "cancel", by="ann", note="not on a Friday")
            return [line for _, line in consequence(await run.events(), "E-1")]

    assert asyncio.run(decide()) == ["E-1 decided by ann: cancel: not on a Friday", "the run has ended: cancelled"]
