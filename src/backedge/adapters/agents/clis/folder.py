"""The folder of one attempt of a CLI. In addition to the files of any attempt, it contains:

prompt.md      its prompt, also on its stdin
briefing.json  the whole briefing, for values that are too long for a prompt
schema.json    the form of its answer
feedback-scratchpad.md  all iterations so far, if there are any
call.json      the conversation that it continues, and other facts that are known only when it is called
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.agents.clis.cli import Event
from backedge.adapters.agents.outcome import require_unique_keys
from backedge.adapters.agents.secrets import NO_SECRETS, Secrets
from backedge.core.ready_types import make_ready

SCRATCHPAD = "feedback-scratchpad.md"
STRUCTURED = b'"structured_output"'
"""The key of an answer that is JSON, not text."""


class Begun(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known when the CLI is called."""

    session: str | None = None
    """The conversation that it continues."""
    note: str = ""
    """A remark about that for people."""
    cli: str = ""
    """Which CLI was called."""


make_ready(Begun)


class CliFolder(AttemptFolder):
    """The paths of one attempt of a CLI."""

    def __init__(
        self,
        state: Path,
        run: str,
        step: str,
        attempt: int,
        more: Mapping[str, bytes] | None = None,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        super().__init__(state, run, step, attempt, secrets)
        self.whole = self.briefing
        self.briefing = self.path / "prompt.md"
        self.schema = self.path / "schema.json"
        self._more = more or {}

    def make(self) -> None:
        super().make()
        for name, text in self._more.items():
            self.write(self.path / name, text)

    def has(self, name: str) -> bool:
        """Whether the attempt is given this file."""
        return name in self._more

    @property
    def begun(self) -> Begun:
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode((self.path / "call.json").read_bytes(), type=Begun)
        return Begun()

    def require_unique_keys(self, cli: str) -> None:
        """Raises AgentError if the line with the answer of the CLI has a key twice."""
        with suppress(FileNotFoundError), self.stdout.open("rb") as lines:
            for line in lines:
                if STRUCTURED in line:
                    require_unique_keys(line, f"the answer of {cli}")

    def events(self) -> Iterator[Event]:
        """The JSON objects that the CLI printed, one per line. Other lines, and a cut-off last line, are skipped."""
        try:
            with self.stdout.open("rb") as lines:
                for line in lines:
                    with suppress(ValueError, RecursionError):
                        event = msgspec.json.decode(line) if line[:1] == b"{" else None
                        if isinstance(event, dict):
                            yield event
        except FileNotFoundError:
            return
