"""Working through stories: by priority, in parallel, in several processes, and with the project's settings."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backedge.cli.backlog import TerminalNarrator
from backedge.config import load
from backedge.project import find_project
from backedge.stories.work import End, Work
from tests.stories.parts import PASS, Stories, rejected

ALWAYS = {"review": [rejected(f"wrong {each}") for each in "abcdefghijklmnop"]}
SMALL = {"implement": {"phase": "code"}, "review": {"reviews": "implement"}}


def until(holds: Callable[[], object], within: float = 60) -> None:
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def interrupted(going: subprocess.Popen[str]) -> str:
    going.send_signal(signal.SIGINT)
    said = going.communicate(timeout=60)[1]
    assert going.returncode == 130, said
    return said


def test_the_most_urgent_action_goes_first_whatever_its_story(project: Stories) -> None:
    project.workflow(steps=SMALL)
    project.story("late", priority=60)
    project.story("early", priority=1)
    project.story("idea", priority=0, status="backlog")
    order = [(each["story"], each["kind"]) for each in project.json("run", "--auto")["actions"]]
    # A story in progress beats one that is not begun, unless that one is more urgent by more than the difference.
    assert order == [
        ("early", "implement"),
        ("early", "review"),
        ("late", "implement"),
        ("late", "review"),
        ("idea", "refine"),
        ("idea", "implement"),
        ("idea", "review"),
    ]


def test_one_story_by_its_file_or_its_id(project: Stories) -> None:
    project.workflow(steps=SMALL)
    for id in ("a", "b"):
        project.story(id)
    project.backedge("run", "--story", "stories/b.md")
    project.backedge("run", "--story", "b")
    assert [each[0] for each in project.executions()] == ["b", "b"]
    assert "there is no story 'bb': did you mean 'b'?" in project.backedge("run", "--story", "bb", expect=2)[1]
    said = project.json("run", "--dry-run", "--story", "a")
    assert [(each["story"], each["kind"]) for each in said] == [("a", "implement")]


def test_a_project_without_stories_runs_as_before(tmp_path: Path) -> None:
    project = Stories(tmp_path / "p", steps={"research": {"run": ["echo", "{}"]}})
    workflow = json.loads((project.folder / "backedge.yaml").read_text())
    del workflow["stories"]
    (project.folder / "backedge.yaml").write_text(json.dumps(workflow))
    assert project.json("run")["outcome"] == "done"
    assert "--watch works on stories" in project.backedge("run", "--watch", expect=2)[1]
    (project.folder / "stories").rmdir()
    assert "backedge init --template stories" in project.backedge("board", expect=2)[1]
    # A folder with stories is enough to have some.
    (project.folder / "stories").mkdir()
    project.story("a")
    assert [each["story"] for each in project.json("next")] == ["a"]
    assert project.json("run")["actions"][0]["story"] == "a"
    assert project.json("run", "--input", "x=1")["outcome"] == "done"


@pytest.mark.parametrize(("policy", "code"), [("manual", 3), ("error", 1), ("skip", 0)])
def test_on_breach_decides_what_a_story_at_its_limit_does_to_the_others(tmp_path: Path, policy: str, code: int) -> None:
    project = Stories(tmp_path / "p", {"on_breach": policy}, steps=SMALL, limits={"rounds_per_loop": 1})
    project.story("bad", priority=1)
    project.story("good", priority=900)
    project.script(bad=ALWAYS)
    project.auto(expect=code)
    assert (project.says("bad")["status"], project.says("good")["status"]) == ("blocked", "done")
    assert project.says("bad")["blocked_reason"] == "Max refinement attempts (1/1): [blocker] wrong b"
    # Whatever the policy, the story can be let go on.
    project.backedge("unblock", "bad")
    assert project.says("bad")["status"] == "in-progress"


def test_a_story_may_have_a_limit_of_its_own(project: Stories) -> None:
    project.workflow(steps=SMALL)
    project.story("a", max_refinement_attempts=4)
    project.script(a=ALWAYS)
    project.auto(expect=3)
    assert project.says("a")["blocked_reason"] == "Max refinement attempts (4/4): [blocker] wrong e"
    assert len(project.says("a")["refinement_iterations"]) == 4


def test_agentic_sdlc_json_sets_the_same_limits(project: Stories) -> None:
    project.workflow(steps=SMALL)
    project.story("a")
    project.script(a=ALWAYS)
    settings = {"maxIterations": 2, "escalateOnMaxAttempts": "error", "enableCircuitBreaker": True}
    other, newer = project.folder / ".agentic-sdlc.json", project.folder / ".ai-sdlc.json"
    other.write_text(json.dumps({"refinement": settings, "stageGates": {}}))
    newer.write_text(json.dumps({"refinement": {**settings, "maxIterations": 3}}))
    said = project.backedge("next", expect=2)[1]
    assert (
        ".ai-sdlc.json:1:1: its refinement differs from that of .agentic-sdlc.json: keep one of the two files" in said
    )
    newer.write_text(json.dumps({"refinement": settings}))
    project.auto(expect=1)
    assert project.says("a")["blocked_reason"] == "Max refinement attempts (2/2): [blocker] wrong c"
    assert ".agentic-sdlc.json:1:102: stageGates: is not used here" in project.json("check")["warnings"]
    for wrong, what in (
        (
            '{"refinement": {"maxIterations": "3"}}',
            ":1:34: refinement.maxIterations: got the text '3', expected a whole number",
        ),
        ('{"refinement":\n\t{"escalateOnMaxAttempts": "manul"}}', ":2:28: refinement.escalateOnMaxAttempts: "),
        ('{"refinement": {"escalateOnMaxAttempts": "Manual"}}', "did you mean 'manual'?"),
        ('{"refinement": {"enableCircuitBreaker": 1}}', "expected true or false"),
        ('{"refinement": {\n "maxIteration": 3}}', ":2:2: refinement.maxIteration: unknown key: did you mean 'maxIter"),
        ('{"refinement": {"maxIterations": 3, "maxIterations": 4}}', ":1:37: refinement.maxIterations: "),
        ('{"refinement": []}', ":1:16: refinement: got an empty list, expected a mapping"),
        ("[]", 'expected {"refinement": {…}}'),
        ('{"stageGates": {}, "Refinements": {}}', ":1:20: Refinements: unknown key: did you mean 'refinement'?"),
        ('{"refinement":\n  {', ".agentic-sdlc.json:2:4: is not JSON"),
    ):
        other.write_text(wrong)
        assert what in project.backedge("next", expect=2)[1]
        newer.unlink(missing_ok=True)


def test_without_the_circuit_breaker_only_the_run_as_a_whole_is_bounded(tmp_path: Path) -> None:
    limits = {"rounds_total": 6, "same_finding": 2, "failures_in_a_row": 2, "diverging": True}
    project = Stories(tmp_path / "p", {"circuit_breaker": False}, steps=SMALL, limits=limits)
    project.story("a")
    project.script(a={"review": [rejected("always the same")]})
    assert "recorded refinement attempt 6, target implement" in project.auto(expect=3)
    assert project.says("a")["blocked_reason"] == "Max refinement attempts (6/6): [blocker] always the same"


def test_recoveries_have_a_limit_of_their_own(project: Stories) -> None:
    limits = {"recoveries_total": 2, "no_change": False, "rounds_per_loop": 9}
    project.workflow(steps=SMALL, limits=limits)
    project.story("a")
    project.script(a={**ALWAYS, "implement": [{"output": "the same"}]})
    project.auto(expect=3)
    story = project.says("a")
    assert story["blocked_reason"] == "Global recovery limit exceeded (2/2): [blocker] wrong c"
    assert [each["decision"] for each in story["review_history"]].count("RECOVERY") == 2


def test_parallel_stories_do_not_interfere(project: Stories) -> None:
    project.workflow(steps=SMALL)
    for id in "abcd":
        project.story(id)
        project.script(**{id: {"review": [rejected("wrong"), {"verdict": "pass"}], "implement": [{"!sleep": 0.5}]}})
    project.auto("--max-parallel", "4")
    for id in "abcd":
        story = project.says(id)
        assert (story["status"], len(story["refinement_iterations"])) == ("done", 1)
        assert project.text(id).count("### Refinement Iteration") == 1
    times = [line.split() for line in (project.seen / "executions").read_text().splitlines()]
    assert [each[0] for each in times[:4]] != ["a"] * 4
    assert len(times) == len({tuple(each[:3]) for each in times}) == 16


def test_two_processes_share_a_backlog(project: Stories) -> None:
    project.workflow(steps=SMALL)
    for id in "abcdef":
        project.story(id)
        project.script(**{id: {"implement": [{"!sleep": 0.2}]}})
    both = [project.start("run", "--auto") for _ in range(2)]
    for going in both:
        said = going.communicate(timeout=120)[1]
        assert (going.returncode, "Traceback" in said) == (0, False), said
    # One may have left while the other had the last story in its hands.
    project.auto()
    assert all(project.says(id)["status"] == "done" for id in "abcdef")
    done = [tuple(each[:3]) for each in project.executions()]
    assert len(done) == len(set(done)) == 12


def test_each_story_may_have_a_worktree_of_its_own(tmp_path: Path) -> None:
    command = ["sh", "-c", 'echo "$BACKEDGE_RUN" > made.txt; echo {}']
    steps = {"implement": {"phase": "code", "run": command, "writes": ["made.txt"]}, "review": {"reviews": "implement"}}
    project = Stories(tmp_path / "p", {"worktree": True}, steps=steps)
    project.story("a")
    project.story("b")
    assert "it needs a repository with a commit" in project.auto(expect=1)
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    for words in (["init", "-q"], ["add", "backedge.yaml", "agent.py"], ["commit", "-qm", "one"]):
        subprocess.run(["git", *who, *words], cwd=project.folder, check=True)
    project.auto("--max-parallel", "2")
    trees = project.folder / ".backedge" / "worktrees"
    assert {id: (trees / id / "made.txt").read_text() for id in "ab"} == {"a": "s-a\n", "b": "s-b\n"}
    assert not (project.folder / "made.txt").exists()
    branches = subprocess.run(["git", "branch"], cwd=project.folder, capture_output=True, text=True, check=True).stdout
    assert "story/a" in branches and "story/b" in branches
    assert project.says("a")["status"] == "done"
    # Feedback brings it back, and who resumes the run by its id works in the same place.
    project.backedge(
        "feedback", "raise", "--run", "s-a", "--kind", "fix_request", "--to", "implement", "--message", "more"
    )
    assert project.says("a")["status"] == "in-progress"
    (trees / "a" / "made.txt").unlink()
    project.backedge("resume", "s-a", expect=3)
    assert (trees / "a" / "made.txt").exists() and not (project.folder / "made.txt").exists()
    assert project.says("a")["blocked_reason"] == "the fix waits for your verification"
    project.backedge("decide", "E-1", "resolve", "--run", "s-a")
    assert project.says("a")["status"] == "done"


def test_watch_continues_when_a_story_is_edited_or_decided(project: Stories) -> None:
    project.workflow(steps=SMALL, limits={"rounds_per_loop": 1})
    project.script(bad={"review": [rejected("a"), rejected("b"), {"verdict": "pass"}]})
    going = project.start("run", "--watch")
    try:
        project.story("late")
        until(lambda: project.says("late").get("status") == "done")
        project.story("bad")
        until(lambda: project.says("bad").get("status") == "blocked")
        project.backedge("unblock", "bad")
        until(lambda: project.says("bad").get("status") == "done")
    finally:
        assert "waiting for changes" in interrupted(going)


def test_an_interrupted_story_continues_where_it_was(project: Stories) -> None:
    project.workflow(steps=SMALL)
    project.story("a")
    project.script(a={"implement": [{"!sleep": 60}, {}]})
    going = project.start("run", "--auto")
    until(project.executions)
    assert "interrupted; continue with `backedge run`" in interrupted(going)
    project.auto()
    assert [each[1:3] for each in project.executions()] == [["implement", "1"], ["implement", "2"], ["review", "1"]]
    assert project.says("a")["status"] == "done"


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_next_names_the_rework_that_was_interrupted(project: Stories, end: signal.Signals) -> None:
    project.story("a")
    asked = {"description": "no login", "severity": "blocker", "affected_phase": "planning"}
    project.script(a={"plan": [{"output": 1}, {"!sleep": 3, "output": 2}], "review": [rejected(asked), PASS]})
    going = project.start("run", "--auto")
    until(lambda: ["a", "plan", "2"] in [each[:3] for each in project.executions()])
    going.send_signal(end)
    going.communicate(timeout=60)
    (action,) = project.json("next")
    assert (action["kind"], action["target"], action["iteration"]) == ("plan", "plan", 1)
    assert action["step"] == "plan"
    assert action["reason"] == "its rework is under way: Review failed: 1 blocker(s)"
    assert "(iteration 1, target: plan): its rework is under way" in project.backedge("next")[0]
    done = project.json("run", "--auto")["actions"]
    assert [(each["kind"], each["step"]) for each in done] == [
        ("plan", "" if end is signal.SIGKILL else "plan"),
        ("implement", "implement"),
        ("review", "review"),
    ]


def test_after_a_kill_nothing_is_lost_and_nothing_is_done_twice(project: Stories) -> None:
    project.workflow(steps=SMALL)
    project.story("a")
    project.script(a={"implement": [{"!sleep": 2}, {}]})
    going = project.start("run", "--auto")
    until(project.executions)
    going.kill()
    going.communicate(timeout=60)
    project.auto()
    assert [each[1:3] for each in project.executions()] == [["implement", "1"], ["review", "1"]]
    assert project.says("a")["status"] == "done"


def test_a_question_to_a_person_is_shown_and_answered(project: Stories) -> None:
    project.workflow(steps={"ask": {"phase": "planning", "agent": "human"}, **SMALL})
    workflow = json.loads((project.folder / "backedge.yaml").read_text())
    del workflow["steps"]["ask"]["run"]
    del workflow["steps"]["ask"]["writes"]
    workflow["steps"]["implement"]["needs"] = ["ask"]
    (project.folder / "backedge.yaml").write_text(json.dumps(workflow))
    project.story("a")
    project.auto(expect=3)
    (card,) = project.json("board")["ready"]
    assert card["waiting"].startswith("E-1 asks: ")
    assert "? a" in project.backedge("board", "--width", "100")[0]
    assert (
        "No process is running it. Continue with `backedge run`\n"
        in project.backedge("decide", "E-1", "resolve", "--note", "Postgres")[1]
    )
    project.auto()
    assert project.says("a")["status"] == "done"


def test_a_decision_by_another_command_shows_in_the_story(project: Stories) -> None:
    project.workflow(steps=SMALL, limits={"rounds_per_loop": 1})
    project.story("a")
    project.script(a=ALWAYS)
    project.auto(expect=3)
    project.backedge("decide", "E-1", "accept", "--run", "s-a")
    assert (project.says("a")["status"], project.says("a").get("blocked_reason")) == ("done", None)


def test_a_cancelled_story_can_start_again(project: Stories) -> None:
    project.workflow(steps=SMALL)
    project.story("a")
    project.backedge("run")
    project.backedge("cancel", "s-a", "--reason", "not now")
    assert (project.says("a")["status"], project.says("a")["blocked_reason"]) == ("blocked", "not now")
    project.backedge("unblock", "a")
    assert project.says("a")["status"] == "ready"
    project.auto()
    assert {head["run"]: head["outcome"] for head in project.json("runs")} == {"s-a": "cancelled", "s-a~2": "verified"}


def test_a_blocked_story_without_a_run_is_unblocked_in_its_file(project: Stories) -> None:
    project.story("a", status="blocked", blocked_reason="old", refinement_count=3, implementation_complete=True)
    assert project.json("next")[0]["reason"] == "old"
    project.backedge("unblock", "a", "--reset")
    story = project.says("a")
    assert (story["status"], story["refinement_count"], "blocked_reason" in story) == ("in-progress", 0, False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_story_that_cannot_be_written_is_set_aside(project: Stories) -> None:
    project.workflow(steps=SMALL)
    project.story("a")
    (project.folder / "stories").chmod(0o500)
    try:
        assert "cannot be written" in project.auto(expect=3)
    finally:
        (project.folder / "stories").chmod(0o700)


def test_agents_get_edits_by_people_and_no_others(project: Stories) -> None:
    path = project.story("a", "Make it.", title="Old", priority=5)
    project.script(a={"review": [rejected("wrong"), {"verdict": "pass"}]})
    for _ in range(5):  # up to the rework, with a note in the text
        project.backedge("run")
    assert "### Refinement Iteration 1" in project.text("a")
    changed = project.text("a").replace("Make it.", "Make it blue.").replace('"Old"', '"New"').replace(": 5", ": 7")
    path.write_text(changed)
    assert "the input changed" in project.auto()
    told = [project.told("a", step, attempt)["input"]["story"] for step, attempt in (("implement", 2), ("review", 2))]
    assert ["blue" in each["text"] for each in told] == [False, True]
    assert [each["title"] for each in told] == ["Old", "New"]
    assert "Refinement" not in told[1]["text"] and "review_history" not in told[1]["text"]
    events = [json.loads(line)["type"] for line in project.backedge("audit", "export", "s-a")[0].splitlines()]
    assert events.count("input_changed/1") == 1


def test_a_status_changed_by_hand_is_restored_also_for_a_done_story(project: Stories) -> None:
    project.workflow(steps=SMALL)
    path = project.story("a")
    project.auto()
    path.write_text(project.text("a").replace("done", "ready") + "More.\n")
    assert "stories/a.md: status was changed by hand and has been restored" in project.auto()
    assert project.says("a")["status"] == "done" and project.text("a").endswith("More.\n")
    assert "by hand" not in project.backedge("run")[1]


@pytest.mark.parametrize("choice", ["accept", "skip"])
def test_a_story_shows_that_a_person_accepted_or_skipped_something(project: Stories, choice: str) -> None:
    project.workflow(steps=SMALL)
    project.story("a", max_refinement_attempts=0)
    project.script(a=ALWAYS)
    project.auto(expect=3)
    project.backedge("decide", "E-1", choice)
    said = "done by decision, not by its reviews: [blocker] wrong a"
    assert project.says("a")["diagnostic"] == said and project.says("a")["status"] == "done"
    assert said in project.backedge("details", "a")[0]
    assert "done by decision" in project.backedge("board", "--width", "160")[0]


def test_with_the_circuit_breaker_off_a_blocked_story_does_not_name_it(project: Stories) -> None:
    project.workflow({"circuit_breaker": False}, steps=SMALL, limits={"rounds_total": 1})
    project.story("a")
    project.script(a=ALWAYS)
    project.auto(expect=3)
    assert project.says("a")["last_error"] == ("No more rounds in this run: maximum refinement attempts reached (1/1)")


def test_watch_does_not_miss_an_edit_after_its_last_check(project: Stories) -> None:
    project.workflow(steps=SMALL)
    source = load(project.folder / "backedge.yaml")

    class LateWork(Work):
        late = False

        async def all(self) -> End:
            end = await super().all()
            if not self.late:
                self.late = True
                project.story("late")
            return end

    async def watch() -> None:
        watching = asyncio.create_task(
            LateWork(source, find_project(source.path), TerminalNarrator(quiet=True)).watch()
        )
        try:
            await asyncio.to_thread(until, project.executions)
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    asyncio.run(watch())


def test_every_line_names_its_story_in_the_words_of_a_run(tmp_path: Path) -> None:
    project = Stories(tmp_path / "p", steps=SMALL)
    for name in ("one", "two", "three"):
        project.story(name)
    project.script(two={"review": [rejected("no login"), {"verdict": "pass"}]})
    out, err = project.backedge("run", "--auto", "--max-parallel", "3")
    names = {line.partition(" | ")[0].strip() for line in err.splitlines()}
    assert names == {"one", "two", "three"}
    two = [line for line in err.splitlines() if line.startswith("two ")]
    assert any(line.endswith("s    ✗ review fails it: F-1 no login") for line in two)
    assert any(line.endswith("s  ↩ L-1 implement ◄── review, round 1 of 3") for line in two)
    assert any(line.endswith("s  ■ verified") for line in two)
    told = [line for line in out.splitlines() if line.startswith("two ")]
    assert told[0].startswith("two   | verified: ") and told[1] == "two   |   findings: 1 found, 1 fixed"
    assert out.endswith("nothing is left to do\n")
