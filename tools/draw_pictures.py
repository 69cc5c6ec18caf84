"""Takes the pictures of the web page that the README and the tutorial show, with a real browser over the example journal.

    python tools/draw_pictures.py [FOLDER]

writes docs/pictures/*.png. It needs what tools/install_browser installs. A FOLDER with a journal is used as it is.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import sync_playwright  # noqa: E402
from tests.web.browser.conftest import ARGUMENTS, chromium, serving  # noqa: E402
from tests.web.example import fill  # noqa: E402

LARGEST = 300_000
"""The most bytes of one picture."""
WIDE: Mapping[str, Any] = {"viewport": {"width": 1280, "height": 860}}
NARROW: Mapping[str, Any] = {"viewport": {"width": 390, "height": 844}}
PICTURES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "run": ("/runs/r-pay", WIDE),
    "inbox": ("/", WIDE),
    "inbox-undo": ("/", {**WIDE, "color_scheme": "dark"}),
    "inbox-narrow": ("/", NARROW),
    "runs": ("/runs", WIDE),
    "report": ("/report", WIDE),
}
"""Where each picture is taken, and how."""


def main(folder: Path) -> None:
    pictures = ROOT / "docs" / "pictures"
    pictures.mkdir(exist_ok=True)
    with serving(folder) as site, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        for name, (path, look) in PICTURES.items():
            page = browser.new_context(**look, reduced_motion="reduce").new_page()
            page.goto(site.signed_in)
            page.wait_for_selector("body:not([data-page=login])")
            page.goto(site.address + path)
            page.wait_for_timeout(1_000)
            if name == "inbox-undo":
                page.keyboard.press("c")
                page.wait_for_timeout(1_200)
            file = pictures / f"{name}.png"
            page.screenshot(path=file)
            size = file.stat().st_size
            print(f"{file.relative_to(ROOT)}: {size:,} bytes")
            if size > LARGEST:
                raise SystemExit(f"{file.name} has {size:,} bytes: at most {LARGEST:,} are allowed")
            page.keyboard.press("u")
            page.context.close()
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            asyncio.run(fill(Path(scratch) / "shop"))
            main(Path(scratch) / "shop")
