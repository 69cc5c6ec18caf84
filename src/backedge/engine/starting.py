"""What a run needs before it can start: an id, and its input as it will be stored."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex

import msgspec

from backedge.core import commands as c
from backedge.core.errors import AgentError, IllegalCommand
from backedge.core.value import Json
from backedge.core.workflow.definition import Workflow
from backedge.engine.codec import INLINE, canonical, digest_of


def new_run_id(now: float) -> str:
    """A new id. Ids sort by time."""
    return f"r-{int(now * 1000):011x}{token_hex(3)}"


def start_command(
    run: str, workflow: Workflow, input: Json, most: int, files: Mapping[str, bytes]
) -> tuple[c.StartRun, dict[str, bytes]]:
    """The command that starts a run, and the values to store with it: its files and a large input. Raises
    IllegalCommand."""
    try:
        run.encode()
        text = canonical(input, most, "the input")
    except (AgentError, AttributeError, UnicodeEncodeError) as error:
        # This is a mistake of the caller, not of an agent.
        wrong = str(error) if isinstance(error, AgentError) else f"the id of the run is {run!r}: expected text"
        raise IllegalCommand(wrong) from error
    names = {path: digest_of(contents) for path, contents in files.items()}
    stored = {names[path]: contents for path, contents in files.items()}
    if len(text) > INLINE:
        digest = digest_of(text)
        return c.StartRun(run, workflow, None, digest, names), {**stored, digest: text}
    return c.StartRun(run, workflow, msgspec.json.decode(text), None, names), stored
