"""Every page in a browser: safe with any text, readable on a telephone, in the dark, on paper and to a screen reader."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.browser.conftest import AXE, Site, serving
from tests.web.example import RUNS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    Visit = Callable[..., Page]

PAGES = (
    "/",
    "/runs",
    "/board",
    "/report",
    "/runs/r-pay",
    "/runs/r-hostile",
    "/runs/r-long",
    "/runs?q=nothing-like-this",
    "/nowhere",
)


@pytest.fixture(scope="module")
def site(browser: Browser, filled: Callable[[Sequence[str]], Path]) -> Iterator[Site]:
    with serving(filled(tuple(RUNS))) as started:
        yield started


@pytest.mark.parametrize("path", PAGES)
def test_text_of_agents_is_text(site: Site, visit: Visit, path: str) -> None:
    page = visit(site, path)
    assert page.title() != "owned"
    assert page.locator("img[src=x]").count() == 0
    assert "\x1b" not in page.content()
    scripts = page.evaluate(
        "[...document.scripts].filter(each => !each.src || each.src.indexOf(location.origin)).length"
    )
    assert scripts == 0


def test_markup_and_terminal_codes_are_shown_as_they_were_written(site: Site, visit: Visit) -> None:
    card = visit(site).locator('.question[data-key="r-hostile:E-1"]')
    assert '<script>document.title="owned"</script><img src=x onerror=alert(1)> red' in card.inner_text()


@pytest.mark.parametrize("path", PAGES)
def test_no_page_scrolls_sideways(site: Site, visit: Visit, path: str) -> None:
    for width in (390, 1280):
        page = visit(site, path, viewport={"width": width, "height": 844}, is_mobile=width < 400, has_touch=width < 400)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(site: Site, visit: Visit, path: str, colours: str) -> None:
    if not AXE.is_file():
        why = "axe-core is not installed: run tools/install_browser"
        pytest.fail(why) if os.environ.get("BACKEDGE_REQUIRE_BROWSER") else pytest.skip(why)
    page = visit(site, path, color_scheme=colours, bypass_csp=True, reduced_motion="reduce")
    page.add_script_tag(path=AXE)
    found: list[dict[str, Any]] = page.evaluate("axe.run().then(said => said.violations)")
    assert [(each["id"], [node["target"] for node in each["nodes"]][:5]) for each in found] == []


def test_the_dark_is_dark(site: Site, visit: Visit) -> None:
    def brightness(page: Page) -> int:
        return sum(page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")[:3])

    assert brightness(visit(site, color_scheme="dark")) < 150
    assert brightness(visit(site, color_scheme="light")) > 650


def test_on_paper_there_is_the_question_without_the_bar(site: Site, visit: Visit, tmp_path: Path) -> None:
    page = visit(site)
    page.emulate_media(media="print")
    assert not page.locator("header.top").is_visible()
    assert page.locator(".question .sentence").first.is_visible()
    assert page.locator(".last-change pre").first.is_visible()
    page.pdf(path=tmp_path / "inbox.pdf")
    assert (tmp_path / "inbox.pdf").read_bytes().startswith(b"%PDF")


def test_the_keyboard_reaches_the_content_first_and_focus_is_seen(site: Site, visit: Visit) -> None:
    page = visit(site, "/runs")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_nothing_comes_from_other_hosts(site: Site, visit: Visit) -> None:
    page = visit(site, "/report")
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    for path in PAGES:
        page.goto(site.address + path)
    assert hosts == {site.address.removeprefix("http://")}


def test_a_search_finds_runs_and_keeps_its_words(site: Site, visit: Visit) -> None:
    page = visit(site, "/runs")
    page.keyboard.press("/")
    page.keyboard.type("pay")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs?q=pay*")
    assert [each.inner_text() for each in page.locator(".runs td:first-child a").all()] == ["r-pay"]
    assert page.locator("input[type=search]").input_value() == "pay"
