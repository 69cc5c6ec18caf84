"""The graph is drawn with its back edges, the same every time, and no wider than the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from backedge.config import back_edges, mermaid, picture
from backedge.core.workflow.build import build_workflow
from backedge.core.workflow.definition import Repeat, Step, Workflow
from tests.config.files import EXAMPLE, read


@pytest.fixture
def example(tmp_path: Path) -> Workflow:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/code.md").write_text("x")
    return read(EXAMPLE, tmp_path).definition


def flow(*steps: Step, **more: object) -> Workflow:
    return build_workflow("w", [(step, {}) for step in steps], **more)  # type: ignore[arg-type]


def test_findings_go_back_to_the_subject_first_and_then_upstream(example: Workflow) -> None:
    assert back_edges(example) == {"design_review": ("design", "plan"), "test": ("code", "design", "plan")}


def test_a_route_adds_a_likely_target_only_where_it_is_legal() -> None:
    steps = (Step("a", phase="design"), Step("b", phase="design"), Step("r", judges=("b",)))
    routes = [{"to": "design", "category": "x"}]
    # The first step is the root, and so always legal.
    assert back_edges(flow(*reversed(steps), routes=routes)) == {"r": ("b",)}
    assert back_edges(flow(*steps, routes=routes)) == {"r": ("b", "a")}


def test_the_example_as_text(example: Workflow) -> None:
    assert picture(example) == (
        "user-management\n"
        "\n"
        "planning\n"
        "  ● plan\n"
        "design\n"
        "  ● design         ← plan\n"
        "  ◆ design_review  reviews design  ↩ design, plan\n"
        "code\n"
        "  ● code           ← design\n"
        "  ◆ test           tests code  ↩ code, design, plan\n"
    )


def test_the_example_as_mermaid(example: Workflow) -> None:
    assert mermaid(example).splitlines() == [
        "flowchart TD",
        '  subgraph p0["planning"]',
        '    s0["plan"]',
        "  end",
        '  subgraph p1["design"]',
        '    s1["design"]',
        '    s2{{"design_review"}}',
        "  end",
        '  subgraph p2["code"]',
        '    s3["code"]',
        '    s4{{"test"}}',
        "  end",
        "  s0 --> s1",
        "  s1 --> s2",
        "  s1 --> s3",
        "  s3 --> s4",
        "  s2 -.-> s1",
        "  s2 -.-> s0",
        "  s4 -.-> s3",
        "  s4 -.-> s1",
        "  s4 -.-> s0",
    ]


def test_steps_without_phases_need_no_heading() -> None:
    drawn = picture(flow(Step("a"), Step("b", needs=("a",)), Step("r", judges=("b",), needs=("a",))))
    assert drawn == "w\n\n  ● a\n  ● b  ← a\n  ◆ r  reviews b  ← a  ↩ b, a\n"
    mixed = picture(flow(Step("a"), Step("b", phase="code", needs=("a",))))
    assert mixed == "w\n\n(no phase)\n  ● a\ncode\n  ● b  ← a\n"
    assert "subgraph" not in mermaid(flow(Step("a")))


@pytest.mark.parametrize("width", [1, 20, 30, 40, 80, 200])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    names = ["plan", "設計" * 8, "a_name_that_is_long_" * 4, "c"]
    steps = [Step(name, needs=tuple(names[:place])) for place, name in enumerate(names)]
    drawn = picture(flow(*steps, Step("r", judges=tuple(names))), width)
    for line in drawn.splitlines():
        assert len(line) + line.count("設") + line.count("計") <= max(width, 20)
        assert line == line.rstrip()
    assert drawn == picture(flow(*steps, Step("r", judges=tuple(names))), width)


def test_no_label_ends_its_quotes() -> None:
    drawn = mermaid(flow(Step('x"] --> y', phase='p"\nend')))
    assert drawn.splitlines()[1:3] == ['  subgraph p0["p#34;#10;end"]', '    s0["x#34;#93; --#62; y"]']


def test_the_shape_of_a_workflow_is_drawn() -> None:
    work = flow(
        Step("plan"),
        Step("ux", needs=("plan",), group="design", when=("plan:/ui == true",)),
        Step("arch", needs=("plan",), group="design", repeat=Repeat(("arch:/score > 3",), 4)),
        Step("code", needs=("design",)),
    )
    assert picture(work, 100).splitlines()[2:] == [
        "  ● plan",
        "  ● ux    ← plan  in design  when plan:/ui == true",
        "  ● arch  ← plan  in design  until arch:/score > 3, at most 4 times",
        "  ● code  ← ux, arch",
    ]
    assert mermaid(work).splitlines()[:8] == [
        "flowchart TD",
        '  s0["plan"]',
        '  s3["code"]',
        '  subgraph p0g0["design"]',
        '    s1["ux"]',
        '    s2["arch"]',
        "  end",
        "  s0 --> s1",
    ]


def test_of_very_many_back_edges_the_nearest_are_drawn() -> None:
    chain = [Step(f"s{n}", needs=(f"s{n - 1}",) if n else ()) for n in range(30)]
    work = flow(*chain, Step("review", judges=("s29",)))
    assert len(back_edges(work)["review"]) == 30
    said = picture(work, 1000).splitlines()[-1]
    assert said.endswith("s11, s10 and 10 more") and "s9" not in said
    assert mermaid(work).count("-.->") == 20
