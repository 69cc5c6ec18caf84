"""The hash chain: every link covers its event and all earlier ones."""

from __future__ import annotations

from backedge.core.chain import genesis, link, links
from backedge.core.errors import AgentError, RunHeld, WorkflowError
from backedge.core.model import Usage


def test_the_chain_is_the_links_one_after_the_other() -> None:
    first = link(genesis("r"), b"one")
    assert links(genesis("r"), [b"one", b"two"]) == [first, link(first, b"two")]


def test_chains_of_two_runs_differ_from_the_start() -> None:
    assert genesis("r-1") != genesis("r-2")


def test_a_changed_event_changes_every_later_link() -> None:
    before, after = links("", [b"one", b"two", b"three"]), links("", [b"one", b"2", b"three"])
    assert before[0] == after[0]
    assert before[1] != after[1] and before[2] != after[2]


def test_swapping_two_events_changes_the_chain() -> None:
    assert links("", [b"one", b"two"])[-1] != links("", [b"two", b"one"])[-1]


def test_run_held_names_the_holder() -> None:
    held = RunHeld("r-1", "process 7")
    assert (held.run, held.holder) == ("r-1", "process 7")
    assert "process 7" in str(held)


def test_an_agent_error_keeps_usage_log_and_session() -> None:
    error = AgentError("no outcome", Usage(0.5), b"log", "session-1")
    assert (str(error), error.usage, error.log, error.session) == ("no outcome", Usage(0.5), b"log", "session-1")


def test_a_workflow_error_lists_all_problems() -> None:
    assert WorkflowError("a").problems == ("a",)
    assert str(WorkflowError(("a", "b"))) == "a; b"
