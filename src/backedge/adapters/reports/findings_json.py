"""A report in the words of the agent protocol: an outcome, or a list of findings."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from backedge.core.errors import AgentError
from backedge.engine.protocol import Finding, Outcome, parse_outcome
from backedge.engine.unique_keys import duplicate_key


def read_json(text: bytes) -> Outcome | Sequence[Finding]:
    """The outcome, or the findings. Raises AgentError for anything else."""
    try:
        document = msgspec.json.decode(text.decode("utf-8-sig", "replace"))
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise AgentError(f"the report is not JSON: {error}; the tool may have been cut off") from error
    twice = duplicate_key(text)
    if twice is not None:
        raise AgentError(f"the report has the key {twice[:200]!r} twice in one object: write every key once")
    if isinstance(document, dict):
        return parse_outcome(document)
    try:
        return msgspec.convert(document, list[Finding])
    except msgspec.ValidationError as error:
        raise AgentError(f"the report cannot be read: {error}; expected an outcome or a list of findings") from error
