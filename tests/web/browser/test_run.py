"""The page of a run in a browser: live through a rework, at any moment, by keyboard, on a telephone, on paper, as a file."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backedge import Briefing, Engine, Outcome, Step, Workflow, failed, passed
from tests.web.browser.conftest import AXE, Site, aside, serving
from tests.web.payments import make

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    Visit = Callable[..., Page]

RUN = "/runs/r-pay"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("payments")
    aside(make(found))
    return found


@pytest.fixture(scope="module")
def site(browser: Browser, folder: Path) -> Iterator[Site]:
    with serving(folder) as started:
        yield started


def test_a_rework_is_shown_while_it_happens(browser: Browser, visit: Visit, tmp_path: Path) -> None:
    with serving_live(tmp_path) as (started, go):
        page = visit(started, "/runs/r-live")
        fetched: list[float] = []
        page.on(
            "request", lambda asked: fetched.append(time.monotonic()) if asked.url.endswith("/part/graph") else None
        )
        assert "L-1" not in page.inner_text("#part-loops")
        go()
        page.wait_for_selector("#part-loops article#L-1 .tag.ok", timeout=30_000)
        page.wait_for_selector("#outcome:text-is('verified')")
        assert "resolved" in page.inner_text("#L-1")
        assert page.locator("#part-graph path.loop").count() == 1
        assert page.locator("#part-timeline .try.rework").count() == 1
        assert page.locator("#part-timeline path.back").count() == 1
        # At most one per second, and the last event is not missed.
        assert fetched
        assert all(later - earlier > 0.8 for earlier, later in pairwise(fetched))


def test_a_step_opens_beside_the_run_and_escape_goes_back(site: Site, visit: Visit) -> None:
    page = visit(site, RUN)
    page.focus("#graph-integrate")
    page.keyboard.press("Enter")
    page.wait_for_selector("#drawer:not([hidden]) h2")
    assert "integrate" in page.inner_text("#drawer h2")
    page.select_option("#drawer select[name=from]", "1")
    page.select_option("#drawer select[name=to]", "3")
    page.click("#drawer .compare button")
    page.wait_for_selector("#drawer h4:has-text('v1 → v3')")
    assert '+  "version": 4' in page.inner_text("#drawer pre.run-diff")
    page.keyboard.press("Escape")
    assert page.locator("#drawer").is_hidden()
    assert page.evaluate("document.activeElement.id") == "graph-integrate"


def test_a_bar_opens_its_attempt_and_the_address_opens_it_too(site: Site, visit: Visit) -> None:
    page = visit(site, RUN)
    page.locator("#part-timeline .try.broke").first.click()
    page.wait_for_selector("#drawer pre.broke")
    assert "out of memory" in page.inner_text("#drawer pre.broke")
    page = visit(site, f"{RUN}?step=e2e&attempt=1")
    assert "the plan has no rule for partial refunds" in page.inner_text("#drawer")


def test_the_slider_goes_back_by_events_and_by_moments_that_matter(site: Site, visit: Visit) -> None:
    page = visit(site, RUN)
    newest = page.get_attribute("#run", "data-newest")
    page.focus("#at")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".notice.past")
    assert f"event {int(newest or 0) - 1} of {newest}" in page.inner_text("#at-said")
    assert page.evaluate("document.activeElement.id") == "at"
    assert page.locator("#actions").count() == 0
    for _ in range(6):
        page.keyboard.press("[")
        page.wait_for_timeout(400)
    page.wait_for_selector("#part-head:not(:has-text('asks you'))")
    assert "at=" in page.url
    page.click("text=Back to now")
    page.wait_for_selector("#actions")


def test_an_action_is_sent_and_the_page_shows_it(browser: Browser, visit: Visit, tmp_path: Path) -> None:
    aside(make(tmp_path))
    with serving(tmp_path) as started:
        page = visit(started, RUN)
        page.click("button:text-is('Pause')")
        page.wait_for_selector("button:text-is('Resume')")
        assert "Paused" in page.inner_text("#part-head")
        page.click("summary:text-is('Raise feedback')")
        page.select_option("select[name=to]", "plan")
        page.fill("textarea[name=message]", "refunds need a reason")
        page.click("button:text-is('Send it back')")
        page.wait_for_selector("#L-6")
        assert "refunds need a reason" in page.inner_text("#L-6")
        page.click("summary:text-is('Cancel the run')")
        page.fill("input[name=reason]", "we start over")
        page.click("button:text-is('Cancel the run')")
        page.wait_for_selector("#outcome:text-is('cancelled')")
        assert page.locator("#actions").count() == 0


def test_a_telephone_shows_all_without_sideways_scrolling(site: Site, visit: Visit) -> None:
    page = visit(site, RUN, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.querySelector('.graph-box').scrollWidth") > 390
    page.click("[data-size=fit]")
    assert page.evaluate("document.querySelector('.graph-box').scrollWidth") <= 390
    page.locator("#graph-plan").click()
    page.wait_for_selector("#drawer h2")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("path", [RUN, f"{RUN}?at=60", f"{RUN}?step=e2e"])
def test_axe_finds_nothing(site: Site, visit: Visit, path: str, colours: str) -> None:
    if not AXE.is_file():
        why = "axe-core is not installed: run tools/install_browser"
        pytest.fail(why) if os.environ.get("BACKEDGE_REQUIRE_BROWSER") else pytest.skip(why)
    page = visit(site, path, color_scheme=colours, bypass_csp=True, reduced_motion="reduce")
    page.add_script_tag(path=AXE)
    found: list[dict[str, Any]] = page.evaluate("axe.run().then(said => said.violations)")
    assert not [(each["id"], each["nodes"][0]["html"][:200]) for each in found]


def test_paper_has_the_graph_and_the_loops_and_no_buttons(site: Site, visit: Visit) -> None:
    page = visit(site, RUN)
    page.emulate_media(media="print")
    assert page.locator("svg.graph").is_visible()
    assert page.locator("#L-5").is_visible()
    assert not page.locator("#actions").is_visible()
    assert not page.locator(".scrubber").is_visible()
    width = page.evaluate("document.querySelector('svg.graph').getBoundingClientRect().width")
    assert width <= page.evaluate("document.querySelector('.graph-box').clientWidth") + 1


def test_the_exported_file_opens_without_a_server(browser: Browser, folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "backedge", "export", "--html", "r-pay", "--journal", ".backedge/journal.db"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    file = tmp_path / "run.html"
    file.write_bytes(done.stdout)
    assert len(done.stdout) < 300_000
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith("file:") else None)
    page.goto(file.as_uri())
    assert page.inner_text("h1") == "r-pay"
    page.locator("#graph-plan").click()
    page.wait_for_selector("#step-plan[open]")
    assert "Partial refunds have a rule." in page.inner_text("#step-plan")
    page.click("[data-size=full]")
    page.close()
    assert not wrong


@contextmanager
def serving_live(folder: Path) -> Iterator[tuple[Site, Callable[[], None]]]:
    """A server over a run that goes on when it is told to: a plan is rejected once."""
    go, began = threading.Event(), threading.Event()
    journal = folder / ".backedge" / "journal.db"
    journal.parent.mkdir()

    async def plan(briefing: Briefing) -> Outcome:
        began.set()
        await asyncio.to_thread(go.wait, 60)
        await asyncio.sleep(0.7)
        return Outcome(output=f"plan {briefing.attempt}")

    async def review(briefing: Briefing) -> Outcome:
        await asyncio.sleep(0.7)
        return failed("no rule for refunds") if briefing.attempt == 1 else passed()

    async def play() -> None:
        async with Engine(journal) as engine:
            run = await engine.start(
                Workflow("live", [Step("plan", plan), Step("review", review, reviews="plan")]), run="r-live"
            )
            await run.at_rest()

    thread = threading.Thread(target=asyncio.run, args=(play(),))
    thread.start()
    try:
        assert began.wait(20)
        with serving(folder) as site:
            yield site, go.set
    finally:
        go.set()
        thread.join(30)
