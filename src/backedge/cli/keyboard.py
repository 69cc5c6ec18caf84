"""The keyboard of a terminal: what is typed while a frame is drawn must not appear in it."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from typing import Any


class Keyboard:
    """Does not echo keys between `silence` and `restore`. Ctrl-C keeps working."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def silence(self) -> None:
        """Stop the echo, if stdin is our terminal. A process in the background must not touch it: it would be stopped."""
        try:
            keys = sys.stdin.fileno() if sys.stdin is not None else -1
            if not os.isatty(keys) or os.tcgetpgrp(keys) != os.getpgrp():
                return
            before = termios.tcgetattr(keys)
            silent = [*before]
            silent[3] &= ~termios.ECHO
            termios.tcsetattr(keys, termios.TCSADRAIN, silent)
        except (OSError, ValueError, termios.error):
            return
        self._before = before

    def restore(self, forget: bool = False) -> None:
        """Echo again; with `forget`, drop what was typed meanwhile: it does not answer what is asked next."""
        if self._before is None:
            return
        try:
            when = termios.TCSAFLUSH if forget else termios.TCSADRAIN
            termios.tcsetattr(sys.stdin.fileno(), when, self._before)
        except (OSError, ValueError, termios.error):
            return
        self._before = None


async def typed_line() -> str:
    """Read a line from stdin without a thread, so that Ctrl-C ends the wait. Empty at the end of the input."""
    loop = asyncio.get_running_loop()
    there = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), there.set)
    try:
        await there.wait()
        return sys.stdin.readline()
    finally:
        loop.remove_reader(sys.stdin.fileno())
