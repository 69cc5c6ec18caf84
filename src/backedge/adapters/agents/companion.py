"""A process of ours beside a program: it ends by itself, and may have been started by an earlier backedge."""

from __future__ import annotations

import subprocess

from backedge.adapters.agents.process_tree import Identity


class Companion:
    """Known by its identity; only who started it, as its child, can hear its end."""

    def __init__(self, identity: Identity, child: subprocess.Popen[bytes] | None = None) -> None:
        self.identity = identity
        self._child = child

    def reap(self) -> None:
        """Take note of its end, so that it does not stay in the table of the system."""
        if self._child is not None:
            self._child.poll()

    def wait(self) -> None:
        if self._child is not None:
            self._child.wait()
