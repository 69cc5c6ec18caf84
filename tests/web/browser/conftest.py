"""A real browser in front of a real `backedge serve`, for tests of what people see and do."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from tests.web.example import fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

T = TypeVar("T")
ROOT = Path(__file__).parents[3]
AXE = ROOT / "build" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
PATIENCE = 60_000
"""Milliseconds to wait for what should happen at once."""


def missing() -> str:
    """What is not installed; empty if the tests can run."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed: run tools/install_browser"
    if chromium() is None:
        return "chromium is not installed: run tools/install_browser"
    return ""


def chromium() -> str | None:
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def aside(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a thread of its own: Playwright keeps a loop running on this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@pytest.fixture(scope="module")  # its loop must not outlive this module: other tests run loops of their own
def browser() -> Iterator[Browser]:
    why = missing()
    if why and os.environ.get("BACKEDGE_REQUIRE_BROWSER"):
        pytest.fail(why)
    if why:
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield started
        started.close()


class Site:
    """A server over the journal of a folder. It can be killed and started again at the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
        self.address = self.signed_in = ""
        self.cookies: Any = None
        """The session of a browser, once somebody has signed in."""
        self._process: subprocess.Popen[str] | None = None
        self._others: list[subprocess.Popen[str]] = []

    def start(self) -> None:
        command = [sys.executable, "-m", "backedge", "serve", "--port", str(self.port)]
        self._process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.signed_in = next(found[0] for line in self._process.stdout if (found := re.search(r"http://\S+", line)))
        self.address = self.signed_in.partition("/#")[0]
        self.port = int(self.address.rpartition(":")[2])

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def execute(self, run: str) -> None:
        """Execute a run of the example in a process of its own."""
        command = [sys.executable, "-m", "tests.web.example", str(self.folder), "--execute", run]
        self._others.append(subprocess.Popen(command, cwd=ROOT, text=True))

    def stop(self) -> None:
        self.kill()
        for other in self._others:
            other.kill()
            other.wait()


@contextmanager
def serving(folder: Path) -> Iterator[Site]:
    site = Site(folder)
    site.start()
    try:
        yield site
    finally:
        site.stop()


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sequence[str]], Path]:
    """Gives a folder with these runs of the example. Each set is made once and copied."""
    made: dict[tuple[str, ...], Path] = {}

    def folder(runs: Sequence[str]) -> Path:
        key = tuple(runs)
        if key not in made:
            made[key] = tmp_path_factory.mktemp("example")
            aside(fill(made[key], runs))
        copy = tmp_path_factory.mktemp("site") / "shop"
        shutil.copytree(made[key], copy)
        return copy

    return folder


@pytest.fixture
def site_of(browser: Browser, filled: Callable[[Sequence[str]], Path]) -> Iterator[Callable[..., Site]]:
    """Starts a server over some runs of the example."""
    with contextmanager_stack() as enter:
        yield lambda *runs: enter(serving(filled(runs)))


@contextmanager
def contextmanager_stack() -> Iterator[Callable[[Any], Any]]:
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield stack.enter_context


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a page as a person who is signed in. Errors of its scripts and refused resources fail the test."""
    contexts, wrong = [], list[str]()

    def opened(site: Site, path: str = "/", **more: Any) -> Page:
        context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "storage_state": site.cookies, **more}
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        if site.cookies is None:
            page.goto(site.signed_in)
            page.wait_for_selector("body:not([data-page=login])")
            site.cookies = context.storage_state()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.goto(site.address + path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong
