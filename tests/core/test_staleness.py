"""Staleness: a step reruns only if its inputs differ from those it consumed."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core.scheduling.staleness import part
from tests.core.play import Play, Reply, failed, flow, grows, made, out, passed, step


def test_a_change_upstream_reruns_what_consumed_it() -> None:
    work = flow(step("plan"), step("design", "plan"), step("code", "design"), step("review", reviews="code"))
    play = Play(work, {"plan": grows, "design": grows, "code": grows}).run()
    play.person_raises("plan").run().decide("resolve").run()
    assert play.attempts() == {"plan": 2, "design": 2, "code": 2, "review": 2}


def test_an_unchanged_output_stops_the_cascade() -> None:
    work = flow(step("plan"), step("design", "plan"), step("code", "design"))
    play = Play(work, {"plan": grows}).run()
    play.person_raises("plan").run().decide("resolve").run()
    assert play.attempts() == {"plan": 2, "design": 2, "code": 1}


def test_a_rework_that_changes_nothing_reruns_nothing_downstream() -> None:
    work = flow(step("plan"), step("design", "plan"))
    play = Play(work).run()
    play.person_raises("plan").run().decide("resolve").run()
    assert play.attempts() == {"plan": 2, "design": 1}


def test_other_branches_do_not_rerun() -> None:
    work = flow(step("plan"), step("api", "plan"), step("db", "plan"), step("client", "api"))
    play = Play(work, {"api": grows}).run()
    play.person_raises("api").run().decide("resolve").run()
    assert play.attempts() == {"plan": 1, "api": 2, "db": 1, "client": 2}


def reader(pointers: tuple[str, ...]) -> Any:
    return flow(step("plan"), step("code", "plan", reads=(("plan", pointers),)))


def plans(*outputs: Any) -> Any:
    def script(play: Play, name: str) -> Reply:
        return out(outputs[play.s.steps[name].attempts - 1])

    return script


@pytest.mark.parametrize(
    ("pointers", "after", "attempts"),
    [
        (("/units",), {"units": [1], "notes": "b"}, 1),
        (("/units",), {"units": [2], "notes": "a"}, 2),
        (("/units", "/notes"), {"units": [1], "notes": "b"}, 2),
        (("/units/0",), {"units": [1, 2], "notes": "b"}, 1),
        (("/api",), {"units": [2], "notes": "b"}, 1),
        (("/api",), {"units": [1], "notes": "a", "api": {}}, 2),
    ],
)
def test_a_step_that_declares_what_it_reads_is_stale_only_if_that_changed(
    pointers: tuple[str, ...], after: Any, attempts: int
) -> None:
    play = Play(reader(pointers), {"plan": plans({"units": [1], "notes": "a"}, after)}).run()
    play.person_raises("plan").run().decide("resolve").run()
    assert play.attempts()["code"] == attempts


def test_a_part_without_a_digest_counts_as_missing() -> None:
    # An artifact may lack the digests of its parts, for example if it was imported.
    play = Play(reader(("/units",)))
    play.finish("plan")
    assert made({"units": 1}).parts == {}
    assert play.s.steps["code"].running is not None


def test_a_pass_is_void_when_what_it_judged_changes() -> None:
    work = flow(step("design"), step("review", reviews="design"), step("code", "design"))
    play = Play(work, {"design": grows}).run()
    play.person_raises("design")
    play.finish("design")
    assert play.s.steps["review"].running is not None
    assert play.s.steps["code"].running is None


def test_the_same_verdict_on_another_version_is_another_artifact() -> None:
    work = flow(step("design"), step("review", reviews="design"), step("report", "review"))
    play = Play(work, {"design": grows}).run()
    play.person_raises("design").run()
    assert play.attempts() == {"design": 2, "review": 2, "report": 2}


def test_a_skipped_step_is_consumed_as_missing() -> None:
    play = Play(flow(step("a"), step("b", "a")), {"a": [Exception("broken")]}).run()
    play.decide("skip").run()
    assert play.attempts() == {"a": 3, "b": 1}
    assert play.outcome == "accepted"


def test_a_changed_artifact_names_the_loops_that_caused_it() -> None:
    work = flow(step("plan"), step("design", "plan"), step("review", reviews="design"))
    play = Play(work, {"plan": grows, "design": grows, "review": [passed(), failed("x"), passed()]}).run()
    play.person_raises("plan").run().decide("resolve").run()
    artifact = play.s.steps["plan"].artifact
    assert artifact is not None and artifact.cause == ("L-1",)
    design = play.s.steps["design"].artifact
    assert design is not None and design.cause == ("L-2",)


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("", {"a": [1, {"b/c": 2, "~": 3}]}),
        ("/a/0", 1),
        ("/a/1/b~1c", 2),
        ("/a/1/~0", 3),
        ("/a/2", None),
        ("/a/x", None),
        ("/b", None),
        ("/a/0/x", None),
    ],
)
def test_a_pointer_names_a_part_or_nothing(pointer: str, expected: Any) -> None:
    assert part({"a": [1, {"b/c": 2, "~": 3}]}, pointer) == expected
