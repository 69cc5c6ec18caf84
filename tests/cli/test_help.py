"""The list of runs, and the help of every command."""

from __future__ import annotations

import pytest

from backedge.cli.commands import COMMANDS
from tests.cli.conftest import Make

READING = [
    "run",
    "resume",
    "runs",
    "show",
    "watch",
    "inbox",
    "check",
    "what-if",
    "agents",
    "feedback list",
    "audit verify",
]
MORE = ["feedback raise", "feedback ack", "feedback list", "feedback reclassify", "audit export", "audit verify"]


def test_runs_lists_the_newest_first_up_to_the_limit(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code"}}})
    for name in ("first", "second", "third"):
        project.run("--run", name)
    assert [each["run"] for each in project.backedge("runs", "--json").json] == ["third", "second", "first"]
    told = project.backedge("runs", "--limit", "2").out.splitlines()
    assert [line.split()[0] for line in told] == ["third", "second", "…"]
    assert told[-1] == "… and 1 more (use --limit)"


@pytest.mark.parametrize("command", [*COMMANDS, *MORE])
def test_the_help_of_every_command_has_an_example(make: Make, command: str) -> None:
    said = make().backedge(*command.split(), "--help")
    assert said.code == 0 and said.out.startswith("Usage: backedge")
    assert "Example" in said.out
    if command in READING:
        assert "--json" in said.out


def test_the_help_is_grouped_by_topic_and_has_every_command_once(make: Make) -> None:
    lines = make().backedge("--help").out.splitlines()
    topics = {line[:-1]: place for place, line in enumerate(lines) if line.endswith(":") and line[:1].isupper()}
    assert [*topics][1:] == ["Start", "Run", "Look", "Answer", "Stories", "Journal and data", "Set up"]
    listed = [line.split()[0] for line in lines[topics["Start"] :] if line.startswith("  ") and line[2] != " "]
    assert listed == [*COMMANDS]
    decide = next(place for place, line in enumerate(lines) if line.startswith("  decide "))
    assert topics["Answer"] < decide < topics["Stories"]
