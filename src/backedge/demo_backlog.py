"""The last chapter of the demo: a backlog of three stories. One passes, one is sent back twice, one needs a decision."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from backedge.core.text import counted
from backedge.demo import Demo, Failed, Tools
from backedge.templates import Found, rendered

NOTE = "one thing at a time is fine"


class BacklogDemo(Demo):
    """The stories of `backedge init --template stories`, worked through."""

    def __init__(self, console: Console, folder: Path, tools: Tools) -> None:
        super().__init__(console, folder, tools)
        self._python = tools.python

    def told(self) -> int:
        self._make_backlog()
        self._title("6. A backlog of three stories")
        self._narrate(
            "Each story is a Markdown file. The most urgent action is done first, and rework is the most urgent."
        )
        self._shown("next")
        going = self._started("run", "--auto")
        self._until(going, None)
        if going.returncode != 3:
            raise Failed(f"the backlog ended with exit code {going.returncode}, expected 3: a story waits for a person")
        self._shown("board", "--width", "100")
        self._narrate("One passed, one was sent back twice, and one reached its limit and waits. You let it continue:")
        self._shown("unblock", "checkout", "--note", NOTE, "--by", "you")
        going = self._started("run", "--auto")
        self._until(going, None)
        self._shown("details", "checkout")
        left = json.loads(self._asked("next", "--json"))
        if going.returncode or left:
            raise Failed(f"the backlog ended with exit code {going.returncode} and {counted(len(left), 'action')} left")
        self._console.print("\n■ the backlog is done: 3 stories", style="bold green")
        return 0

    def _make_backlog(self) -> None:
        for path, text in rendered("stories", "backlog", Found(python=json.dumps(self._python)), "").items():
            (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / path).write_text(text, "utf-8")
