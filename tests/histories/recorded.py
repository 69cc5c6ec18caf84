"""Recorded journals: how they are read, replayed and compared.

Each line of a `.jsonl.gz` file is one run as a released version wrote it: its events byte for byte, the large values
they name, and what that version said about the run. `marks` are the places between two decisions: the number of events
so far, with a digest of `show --json` and one of what is pending. `shape.json` lists the keys that `show --json` had in
that version: later versions may add keys, but must not change these.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from backedge.analytics.report import report
from backedge.core.scheduling.pending import AskPerson, CheckInputs, RestoreFiles, RunAttempt, WakeAt, pending
from backedge.core.scheduling.scheduler import Start
from backedge.core.state.evolve import evolve
from backedge.core.state.run import RunState
from backedge.engine.codec import decode_events, put_back, set_aside_in
from backedge.ports import Record

FOLDER = Path(__file__).parent


class History(msgspec.Struct, frozen=True):
    """One recorded run."""

    name: str
    events: list[str]
    payloads: dict[str, str]
    marks: list[tuple[int, str, str]]
    """(events so far, digest of `show --json`, digest of what is pending), 16 characters of each."""
    show: str
    pending: str
    outcome: str

    def records(self) -> list[Record]:
        """The stored events, with large values put back."""
        return [Record(seq, self._whole(body.encode()), "") for seq, body in enumerate(self.events, 1)]

    def _whole(self, body: bytes) -> bytes:
        names = set_aside_in(body)
        return put_back(body, {digest: self.payloads[digest].encode() for digest in names.values()}) if names else body

    def states(self) -> Iterator[tuple[int, RunState]]:
        """The state after each event, with the number of events so far."""
        state: RunState | None = None
        for count, event in enumerate(decode_events(self.records()), 1):
            state = evolve(state, event)
            yield count, state


def versions() -> list[str]:
    return sorted(folder.name for folder in FOLDER.iterdir() if (folder / "shape.json").exists())


def histories(version: str) -> list[History]:
    found: list[History] = []
    for path in sorted((FOLDER / version).glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            found += [msgspec.json.decode(line, type=History) for line in lines]
    return found


def shape(version: str) -> Any:
    return json.loads((FOLDER / version / "shape.json").read_text())


def digest(value: Any) -> str:
    """The digest of a value's canonical JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def projected(value: Any, known: Any) -> Any:
    """A value without the keys that the recorded version did not have."""
    if known is None:
        return value
    if isinstance(known, list):
        return [projected(each, known[0]) for each in value] if isinstance(value, list) else value
    if not isinstance(value, dict):
        return value
    if "*" in known:
        return {key: projected(each, known["*"]) for key, each in value.items()}
    return {key: projected(value[key], known[key]) for key in known if key in value}


def shown(state: RunState, payloads: dict[str, str]) -> Any:
    """What `show --json` prints."""
    made = {name: step.artifact for name, step in state.steps.items() if step.artifact is not None}
    large = {
        name: json.loads(payloads[artifact.payload])
        for name, artifact in made.items()
        if artifact.payload is not None and artifact.payload in payloads
    }
    return json.loads(msgspec.json.encode(report(state, large)))


def effects(state: RunState) -> list[list[Any]]:
    """What is pending, in words that do not depend on the names of classes."""
    found: list[list[Any]] = []
    for effect in pending(state, state.last_at):
        match effect:
            case RunAttempt():
                found.append(["run", effect.step, effect.attempt])
            case Start():
                found.append(["start", effect.step, effect.mode, list(effect.loops)])
            case CheckInputs():
                found.append(["check", effect.step])
            case RestoreFiles():
                found.append(["restore", effect.undo, effect.rule])
            case AskPerson():
                found.append(["ask", effect.escalation])
            case WakeAt():
                found.append(["wake", effect.time])
    return found
