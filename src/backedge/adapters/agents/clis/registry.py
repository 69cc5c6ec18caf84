"""The adapter of each agent CLI, by its name: `CLI` in the module of that name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from backedge.adapters.agents.clis.cli import Cli
from backedge.catalog import AGENT_CLIS

CLIS: Mapping[str, Cli] = {name: import_module(f"{__package__}.{name}").CLI for name in AGENT_CLIS}
