"""Which engines there are, where each runs, and what each is spared."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Literal

from bench.engine import Engine


@dataclass(frozen=True)
class Entry:
    """One row of the tables. `module.open_engine(folder, variant)` gives the engine."""

    module: str
    variant: str
    kind: Literal["ours", "floor", "peer"]
    caps: dict[str, int] = field(default_factory=dict)
    """Largest size by name, for engines that would take minutes; the tables say so."""
    note: str = ""
    """What the tables must say of this engine's figures."""


_HISTORY_IN_STATE = {"rounds": 300, "held": 300}
_LANGGRAPH = (
    "default durability queues checkpoints: not durable at every step, and a decision is followed before it is stored; "
    'growth is measured with durability="sync"'
)

ENGINES: dict[str, Entry] = {
    "ours": Entry("ours", "", "ours"),
    "floor-inline": Entry("floor", "inline", "floor"),
    "floor-thread": Entry("floor", "thread", "floor"),
    "burr": Entry("burr_sqlite", "sync", "peer", _HISTORY_IN_STATE),
    "burr-async": Entry("burr_sqlite", "async", "peer", _HISTORY_IN_STATE),
    "langgraph": Entry("langgraph_sqlite", "sync", "peer", _HISTORY_IN_STATE, _LANGGRAPH),
    "langgraph-async": Entry("langgraph_sqlite", "async", "peer", _HISTORY_IN_STATE, _LANGGRAPH),
    "dbos": Entry("dbos_sqlite", "", "peer", {"decisions": 10, "held": 300}),
}


def open_engine(name: str, folder: Path) -> Engine:
    entry = ENGINES[name]
    engine: Engine = import_module(f"bench.engines.{entry.module}").open_engine(folder, entry.variant)
    return engine
