"""The agent CLIs that there are. A new one is one file, and one line here."""

from __future__ import annotations

from collections.abc import Mapping

from backedge.adapters.agents.clis.claude import Claude
from backedge.adapters.agents.clis.cli import Cli
from backedge.adapters.agents.clis.codex import Codex
from backedge.adapters.agents.clis.gemini import Gemini
from backedge.adapters.agents.clis.opencode import OpenCode

_ALL: tuple[Cli, ...] = (Claude(), Codex(), Gemini(), OpenCode())

CLIS: Mapping[str, Cli] = {cli.name: cli for cli in _ALL}
