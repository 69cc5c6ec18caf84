"""What is written is read as the same, whatever it says; and nothing but a refusal comes of what is not understood."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backedge import Engine
from backedge.compat import FORMATS, LoopRecord, format_of, read
from backedge.compat.feedback_jsonl import STATUSES, TYPES, feedback_lines
from backedge.compat.loops_export import loop_objects
from backedge.compat.progress import STATUSES as LOOP_STATUSES
from backedge.compat.progress import FeedbackLoop, Iteration, Progress, Result
from backedge.compat.record_fields import KINDS
from backedge.compat.scratchpad import failures_in_a_row, scratchpad_text
from backedge.core.errors import AlreadyClosed, ImportRefused
from backedge.core.feedback.loop import LoopState
from backedge.core.model import Severity
from tests.compat.samples import SAMPLES
from tests.core.strategies import effort
from tests.engine.parts import play

words = st.text(min_size=1, max_size=20).filter(str.strip)
lines = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=30).map(
    lambda text: " ".join(text.split()) or "x"
)
times = st.none() | st.datetimes(min_value=datetime(1970, 1, 1)).map(lambda each: f"{each.isoformat()}Z")
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def loop_records(draw: st.DrawFn, kinds: Any, states: Any, most_targets: int) -> list[LoopRecord]:
    return [
        LoopRecord(
            id=f"L-{number}",
            kind=draw(st.sampled_from(sorted(kinds))),
            source=draw(words),
            targets=tuple(draw(st.lists(words, min_size=1, max_size=most_targets))),
            message=draw(words),
            state=draw(st.sampled_from(sorted(states))),
            severity=draw(st.sampled_from(list(Severity))),
            rounds=draw(st.integers(0, 99)),
            opened_at=draw(times),
        )
        for number in range(1, 1 + draw(st.integers(0, 4)))
    ]


@given(st.data())
@effort(60)
def test_feedback_lines(data: st.DataObject) -> None:
    loops = data.draw(loop_records(TYPES.values(), STATUSES.values(), 1))
    full = []
    for loop in loops:
        closed = data.draw(times) if loop.state in (LoopState.RESOLVED, LoopState.FAILED) else None
        fix = data.draw(st.none() | words)
        full.append(msgspec.structs.replace(loop, closed_at=closed, suggested_fix=fix, artifacts=("a.py:1",)))
    content = feedback_lines(full)
    assert list(read("feedback-jsonl", content).loops) == full
    assert feedback_lines(read("feedback-jsonl", content).loops) == content


@given(loop_records(KINDS, LoopState, 3), values)
@effort(60)
def test_the_document_of_loops(loops: list[LoopRecord], resolution: Any) -> None:
    full = [msgspec.structs.replace(loop, resolution=resolution, reason="timeout") for loop in loops]
    document = msgspec.json.encode({"feedback_loops": loop_objects(full)}).decode()
    assert list(read("loops", document).loops) == full


verdicts: list[Result | None] = ["PASS", "FAIL", None]
results = st.sampled_from(verdicts)
issues = st.lists(lines.filter(lambda text: not text.endswith(" issues")), max_size=3, unique=True).map(tuple)


@st.composite
def progresses(draw: st.DrawFn) -> Progress:
    iterations: list[Iteration] = []
    for number in range(1, 1 + draw(st.integers(1, 4))):
        review, test = draw(results), draw(results)
        iterations.append(
            Iteration(
                number,
                draw(lines),
                review,
                test,
                draw(issues) if review == "FAIL" else (),
                draw(issues) if test == "FAIL" else (),
            )
        )
    status = draw(st.sampled_from(LOOP_STATUSES))
    if status != "in_progress":
        iterations[-1] = msgspec.structs.replace(iterations[-1], status=status)
    return Progress(
        FeedbackLoop(
            True,
            len(iterations),
            draw(st.none() | st.integers(1, 9)),
            status,
            failures_in_a_row(each.review_result for each in iterations),
            failures_in_a_row(each.test_result for each in iterations),
            tuple(iterations),
            draw(issues),
        ),
        draw(st.sampled_from(["", "r-1"])),
    )


@given(progresses(), st.lists(lines, max_size=2))
@effort(80)
def test_a_scratchpad_has_the_same_contents_as_progress(told: Progress, notes: list[str]) -> None:
    said = {1: tuple(notes)} if notes else {}
    content = scratchpad_text(told, said)
    found = read("scratchpad", content)
    assert found.progress == told
    assert found.notes == said
    document = msgspec.json.encode(told).decode()
    assert format_of(content) == "scratchpad"
    assert (format_of(document), read("progress", document).progress) == ("progress", told)


KEYS = sorted(
    {"from_node", "to_node", "feedback_type", "message", "priority", "status", "round", "artifacts", "timestamp"}
    | {"source_agent", "target_agents", "issue_type", "description", "severity", "state", "feedback_loops", "id"}
    | {"injected_phase", "detected_phase", "attempts", "cost_usd", "latency", "loop", "feedback_loop", "iterations"}
)
records = st.dictionaries(st.sampled_from(KEYS), values, max_size=6)


@pytest.mark.parametrize("form", FORMATS)
@given(st.one_of(records, st.lists(records, max_size=3), values, st.text(max_size=60)))
@effort(60)
def test_whatever_is_in_a_file_it_is_read_or_refused(form: str, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    with suppress(ImportRefused):
        read(form, text)
    with suppress(ImportRefused):
        read(format_of(text), text)


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_imported_is_there_byte_for_byte_and_once(form: str) -> None:
    content = SAMPLES[form].replace("\n", "\r\n") + "  \n"

    async def scenario() -> None:
        async with Engine() as engine:
            run = await engine.import_file("file", content)
            state = await run.state()
            assert state.imported is not None
            assert (state.imported.form, state.imported.text) == (form, content)
            assert (await run.result()).outcome == "imported"
            with pytest.raises(AlreadyClosed, match="was already imported"):
                await engine.import_file("another name", content)
            assert len(await engine.runs()) == 1

    play(scenario())
