"""People decide in a browser: by keyboard, with time to undo, in two tabs, while runs go on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import backedge as be
from backedge.core.events import EscalationDecided
from tests.web.browser.conftest import Site, aside
from tests.web.example import project

if TYPE_CHECKING:
    from playwright.sync_api import Page

    Visit = Callable[..., Page]
    SiteOf = Callable[..., Site]


def decided(site: Site, run: str) -> str:
    """How the first question of a run was decided; empty if it is open."""

    async def read() -> str:
        async with be.Engine(project(site.folder).journal) as engine:
            events = await (await engine.find(run)).events()
            return next((each.choice for each in events if isinstance(each, EscalationDecided)), "")

    return aside(read())


def test_a_key_decides_after_five_seconds_and_shows_what_it_led_to(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-deploy")
    page = visit(site)
    page.keyboard.press("y")
    page.get_by_text("is sent in 5 s").wait_for()
    assert decided(site, "r-deploy") == ""
    page.get_by_text("Decided: approve.").wait_for()
    page.locator(".asking li", has_text="E-1 decided by").wait_for()
    page.locator(".asking", has_text="backedge resume r-deploy").wait_for()
    assert decided(site, "r-deploy") == "continue"


def test_the_choices_stay_in_sight_while_the_evidence_is_read(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-pay")
    page = visit(site, viewport={"width": 1280, "height": 700})
    dock = page.locator(".question.now .dock")
    dock.wait_for()
    assert dock.locator("button").count() == page.locator(".question.now .choice").count()
    dock.get_by_text("Accept").click()
    page.locator(".choice[data-choice=accept] textarea").wait_for()  # giving up asks for a note
    dock.wait_for(state="hidden")  # the choices themselves are in sight
    page.keyboard.press("Escape")
    page.locator(".question.now").evaluate("card => card.scrollIntoView()")
    dock.get_by_text("Continue").click()
    page.keyboard.press("s")
    page.get_by_text("Decided: continue.").wait_for()
    assert decided(site, "r-pay") == "continue"


def test_a_person_sees_who_they_are_and_signs_out(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-deploy")
    page = visit(site)
    page.locator("header .who", has_text="admin").wait_for()
    page.click("text=Sign out")
    page.wait_for_selector("body[data-page=login]")
    page.goto(f"{site.address}/runs")
    page.wait_for_selector("body[data-page=login]")


def test_a_token_never_stays_in_the_address(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-deploy")
    page = visit(site)
    page.goto(f"{site.signed_in}")
    page.wait_for_url(f"{site.address}/")
    page.wait_for_selector("body[data-page=inbox]")


def test_who_signs_in_comes_to_the_question_of_the_link(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-copy", "r-deploy")
    page = visit(site)
    page.context.clear_cookies()
    page.goto(f"{site.address}/#r-deploy:E-1")
    page.reload()
    page.wait_for_selector("body[data-page=login]")
    page.fill("#token", site.signed_in.partition("token=")[2])
    page.click("text=Sign in >> nth=-1")
    page.locator('.question.now[data-key="r-deploy:E-1"]').wait_for()


def test_undo_sends_nothing(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-deploy")
    page = visit(site)
    page.keyboard.press("y")
    page.get_by_text("is sent in").wait_for()
    page.keyboard.press("u")
    page.get_by_text("Nothing was sent").wait_for()
    time.sleep(6)
    assert decided(site, "r-deploy") == ""
    assert page.locator(".question").get_attribute("data-state") == "open"


def test_leaving_the_page_during_the_countdown_sends_nothing(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-deploy")
    page = visit(site)
    page.keyboard.press("y")
    page.get_by_text("is sent in").wait_for()
    page.goto(f"{site.address}/runs")
    time.sleep(6)
    assert decided(site, "r-deploy") == ""


def test_giving_up_asks_for_a_note(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-pay")
    page = visit(site)
    page.keyboard.press("a")
    note = page.locator(".choice[data-choice=accept] textarea")
    assert note.is_visible()
    page.keyboard.type("jk: known, see the ticket")  # letters of keys are text here
    page.keyboard.press("Control+Enter")
    page.keyboard.press("s")
    page.get_by_text("Decided: accept.").wait_for()
    page.locator(".asking li", has_text="known, see the ticket").wait_for()


def test_a_choice_that_needs_words_is_not_sent_without_them(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-pay")
    page = visit(site)
    page.keyboard.press("v")
    field = page.locator(".choice[data-choice=revise] textarea")
    assert field.evaluate("each => each === document.activeElement")
    assert field.get_attribute("aria-invalid") == "true"
    assert page.locator(".question").get_attribute("data-state") == "open"
    page.keyboard.type("send it from a queue")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("s")
    page.get_by_text("Decided: revise.").wait_for()


def test_j_and_k_move_and_enter_goes_to_the_recommended_choice(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-copy", "r-licence", "r-broken")
    page = visit(site)

    def current() -> str:
        return page.locator(".question.now").get_attribute("data-key") or ""

    first = current()
    page.keyboard.press("j")
    second = current()
    assert second != first
    page.keyboard.press("k")
    assert current() == first
    while current() != "r-broken:E-1":
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('.choice').dataset.choice") == "continue"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()


def test_the_second_of_two_tabs_is_told_who_was_first(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-deploy")
    first, second = visit(site), visit(site)
    second.route("**/api/v1/inbox/events", lambda route: route.abort())  # it does not hear of the decision
    second.reload()
    first.keyboard.press("y")
    first.keyboard.press("s")
    first.get_by_text("Decided: approve.").wait_for()
    second.keyboard.press("n")
    second.keyboard.type("not today")
    second.keyboard.press("Control+Enter")
    second.keyboard.press("s")
    bar = second.locator(".asking")
    second.get_by_text("was first and chose continue").wait_for()
    assert "Your choice, reject, was not recorded." in bar.inner_text()
    assert decided(site, "r-deploy") == "continue"


def test_new_questions_appear_and_typed_words_stay(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-copy")
    page = visit(site)
    page.keyboard.press("f")
    page.keyboard.type("the second sentence")
    site.execute("r-licence")
    page.locator('[data-key="r-licence:E-1"].question').wait_for()
    page.keyboard.type(" is unclear")
    assert page.locator(".choice[data-choice=fail] textarea").input_value() == "the second sentence is unclear"
    assert page.locator(".queue li").count() == 2


def test_a_question_that_somebody_else_decides_goes_away(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-copy", "r-deploy")
    first, second = visit(site), visit(site)
    first.locator('[data-key="r-deploy:E-1"].question').wait_for()
    second.locator('.question[data-key="r-deploy:E-1"] .choice[data-choice=approve] button').first.click()
    second.keyboard.press("s")
    first.locator('.question[data-key="r-deploy:E-1"]').wait_for(state="detached")
    assert first.locator(".question").count() == 1


def test_a_countdown_ends_when_somebody_else_decides(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-copy")
    first, second = visit(site), visit(site)
    first.keyboard.press("x")
    first.keyboard.type("later")
    second.keyboard.press("p")
    second.keyboard.press("s")
    first.get_by_text("was decided while you were answering it").wait_for()
    assert decided(site, "r-copy") == "resolve"


def test_the_inbox_follows_a_rework_until_it_asks_again(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-copy")
    page = visit(site)
    site.execute("r-hostile")
    card = page.locator('.question[data-key="r-hostile:E-1"]')
    card.wait_for()
    card.locator(".choice[data-choice=continue] button").first.click()
    page.keyboard.press("s")
    page.locator('.question[data-key="r-hostile:E-2"]').wait_for()
    card.locator(".asking li", has_text="write reworks L-1").first.wait_for()


def test_the_page_connects_again_after_the_server_was_killed(site_of: SiteOf, visit: Visit) -> None:
    site = site_of("r-copy")
    page = visit(site)
    page.keyboard.press("f")
    page.keyboard.type("half a sentence")
    site.kill()
    page.get_by_text("Not connected").wait_for()
    page.keyboard.press("Control+Enter")
    page.keyboard.press("s")
    page.get_by_text("Not recorded. The server does not answer").wait_for()
    site.start()
    site.execute("r-licence")
    page.locator('[data-key="r-licence:E-1"].question').wait_for()
    assert page.locator(".choice[data-choice=fail] textarea").input_value() == "half a sentence"
