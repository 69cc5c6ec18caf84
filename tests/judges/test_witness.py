"""The eyes on producers and reviewers, with real programs."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from backedge.core.errors import AgentError
from backedge.stories.left_over import draft_name
from tests.evidence.parts import git
from tests.judges.shop import FILES, NOBODY, RUN, Shop, briefing

REVIEW = """\
import json, sys
from rules import STRICT
total = open("total").read().strip()
bad = STRICT and total != "90"
print(json.dumps({"verdict": "fail", "findings": [{"description": "wrong total"}]} if bad else {"verdict": "pass"}))
"""
REVIEWER = {"agents/review.py": REVIEW, "agents/rules.py": "STRICT = True\n"}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def patch_of(shop: Shop, step: str = "code", attempt: int = 1) -> str:
    return shop.read(f".backedge/attempts/{RUN}/{step}-{attempt}/undone.diff")


def test_a_producer_is_seen_with_all_its_changes(shop: Shop) -> None:
    seen = shop.does("echo 90 > total; echo true > tests/total.sh; echo x > new").evidence
    assert seen.files == ("new", "tests/total.sh", "total")
    assert [(each.file, each.change, each.lines, each.owned) for each in seen.changes] == [
        ("tests/total.sh", "changed", "+1 −1", False)
    ]
    assert seen.workspace == ""


def test_an_owner_of_tests_owns_their_changes(shop: Shop) -> None:
    [change] = shop.does("echo true > tests/total.sh", writes=("tests/**",)).evidence.changes
    assert change.owned
    [change] = shop.does("true", attempt=2, writes=("tests/**",), judged_by_tool=True).evidence.changes
    assert not change.owned, "a step does not own the evidence against itself"


def test_changes_outside_writes_are_undone_named_and_kept(shop: Shop) -> None:
    with pytest.raises(
        AgentError, match=r"it changed files outside its `writes` \(docs/\*\*\): tests/total\.sh; they were restored"
    ):
        shop.does("mkdir -p docs; echo a > docs/a; echo true > tests/total.sh", writes=("docs/**",), on_error="keep")
    assert shop.read("tests/total.sh") == FILES["tests/total.sh"]
    assert shop.read("docs/a") == "a\n"
    assert "+true" in patch_of(shop)


def test_what_else_such_an_attempt_changed_is_undone_too_unless_it_is_to_stay(shop: Shop) -> None:
    with pytest.raises(
        AgentError, match=r"they were restored; so was the rest of what it changed: docs/a; the change is"
    ):
        shop.does("mkdir -p docs; echo a > docs/a; echo true > tests/total.sh", writes=("docs/**",))
    assert not (shop.folder / "docs").exists()
    assert "docs/a" in patch_of(shop)


def test_they_are_undone_when_the_attempt_fails(shop: Shop) -> None:
    with pytest.raises(AgentError, match="exit code 3"):
        shop.does("echo true > tests/total.sh; exit 3", writes=("docs/**",))
    assert shop.read("tests/total.sh") == FILES["tests/total.sh"]
    assert "+true" in patch_of(shop)


def test_they_are_undone_when_the_attempt_is_cancelled(shop: Shop) -> None:
    agent = shop.agent("echo true > tests/total.sh; touch started; sleep 60", writes=("docs/**",))

    async def cancelled() -> None:
        task = asyncio.ensure_future(agent.work(briefing("code"), NOBODY))
        async with asyncio.timeout(20):
            while not (shop.folder / "started").exists():  # noqa: ASYNC110 - nothing announces it
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert shop.read("tests/total.sh") == FILES["tests/total.sh"]
    assert not (shop.folder / "started").exists()


@pytest.mark.parametrize("mode", ["answer", "decide"])
def test_a_step_that_is_asked_a_question_changes_nothing(shop: Shop, mode: str) -> None:
    found = shop.does("echo 90 > total", mode=mode)
    assert shop.read("total") == FILES["total"]
    assert "was asked a question and changed files: total; they were restored" in found.evidence.notes[0]


def test_a_reviewer_that_edits_is_undone_and_named(shop: Shop) -> None:
    before = shop.evidence.of(RUN).tree().digest
    found = shop.reviews("echo 90 > total")
    assert shop.read("total") == FILES["total"]
    assert "review changed what it judges: total; that was undone" in found.evidence.notes[0]
    assert found.evidence.tree == before


def test_a_reviewer_may_leave_notes(shop: Shop) -> None:
    before = shop.reviews("true").evidence.tree
    for number in ("1", "2"):
        found = shop.reviews(f"echo {number} > review.md")
        assert (found.evidence.notes, found.evidence.tree) == ((), before)
        assert shop.read("review.md") == f"{number}\n"
    assert not shop.reviews("rm review.md").evidence.notes


@pytest.mark.parametrize("made", ["total.py", "total.so", "total.sh", "tests/more.sh", "conftest.py", "Makefile"])
def test_new_code_tests_and_configuration_are_no_notes(shop: Shop, made: str) -> None:
    found = shop.reviews(f"echo 1 > {made}")
    assert not (shop.folder / made).exists()
    assert f"review changed what it judges: {made}; that was undone" in found.evidence.notes[0]


@pytest.mark.parametrize("makes", ["ln -s total notes", "echo exit > notes; chmod +x notes"])
def test_links_and_programs_are_no_notes(shop: Shop, makes: str) -> None:
    assert "that was undone" in shop.reviews(makes).evidence.notes[0]
    assert not (shop.folder / "notes").exists()


def test_a_note_that_somebody_else_edits_is_judged(shop: Shop) -> None:
    judged = shop.reviews("echo 1 > review.md").evidence.tree
    assert shop.does("echo 2 > review.md").evidence.tree != judged
    assert "review changed what it judges: review.md" in shop.reviews("echo 3 > review.md").evidence.notes[0]
    assert shop.read("review.md") == "2\n"


def test_a_producer_that_writes_nothing_may_leave_notes_too(shop: Shop) -> None:
    before = shop.evidence.of(RUN).tree().digest
    assert shop.does("echo 1 > plan.md", writes=()).evidence.tree == before
    assert shop.read("plan.md") == "1\n"
    with pytest.raises(AgentError, match="outside its `writes` \\(nothing\\): total;"):
        shop.does("echo 90 > total", attempt=2, writes=())


def test_a_step_that_installs_moves_the_environment(shop: Shop) -> None:
    shop.write(".venv/pyvenv.cfg", "home = /usr\n")
    shop.begin()
    shop.does("echo 1 > .venv/new.py", installs=True)
    assert shop.judged().evidence.environment == "same"
    shop.does("echo 2 > .venv/newer.py", attempt=2)
    assert shop.judged(2).evidence.environment == "changed"


def both(shop: Shop, first: str, second: str, **writes: tuple[str, ...] | None) -> tuple[Any, Any]:
    """Two producers that are under way together: the second begins after the first and ends before it."""
    code = shop.agent(f"{first}\necho '{{}}'", "code", writes=writes["code"])
    docs = shop.agent(f"{second}\necho '{{}}'", "docs", writes=writes["docs"])

    async def run() -> tuple[Any, Any]:
        one = asyncio.ensure_future(code.work(briefing("code"), NOBODY))
        async with asyncio.timeout(20):
            while not (shop.folder / "src/started").exists():  # noqa: ASYNC110 - nothing announces it
                await asyncio.sleep(0.01)
        two = await docs.work(briefing("docs"), NOBODY)
        (shop.folder / "src/go").touch()
        return await one, two

    return asyncio.run(run())


WAITS = "mkdir -p src; touch src/started; while ! [ -e src/go ]; do sleep 0.02; done; echo 1 > src/a"


def test_two_producers_with_writes_of_their_own_do_not_disturb_each_other(shop: Shop) -> None:
    code, docs = both(shop, WAITS, "mkdir docs; echo 1 > docs/a", code=("src/**",), docs=("docs/**",))
    assert shop.read("src/a") == shop.read("docs/a") == "1\n"
    assert "docs/a" in docs.evidence.files
    assert "src/a" in code.evidence.files


def test_one_of_two_producers_is_still_held_to_its_writes(shop: Shop) -> None:
    with pytest.raises(AgentError, match=r"outside its `writes` \(docs/\*\*\): total"):
        both(shop, WAITS, "echo 90 > total", code=("src/**",), docs=("docs/**",))
    assert shop.read("total") == FILES["total"]


def test_a_producer_that_may_write_everything_disturbs_nobody(shop: Shop) -> None:
    both(shop, WAITS, "echo 90 > total", code=("src/**",), docs=None)
    assert shop.read("total") == "90\n"


ARGV = (sys.executable, "agents/review.py")


def reviewer(
    tmp_path: Path,
    changes: str = "",
    files: dict[str, str] = REVIEWER,
    argv: tuple[str, ...] = ARGV,
    **settings: Any,
) -> Shop:
    """A shop whose reviewer is a script of the workspace, after a producer has done something."""
    shop = Shop(tmp_path, argvs=[argv], **settings)
    for name, text in files.items():
        shop.write(name, text)
    git(shop.folder, "add", "-A")
    git(shop.folder, "commit", "-qm", "reviewer")
    shop.witness("review", judges=True, argv=argv).begin(RUN)
    shop.does(changes or "true")
    return shop


def verdict_of(shop: Shop, argv: tuple[str, ...] = ARGV) -> str | None:
    agent = shop.agent("", "review", argv=argv, judges=True)
    result: Any = asyncio.run(agent.work(briefing("review"), NOBODY))
    verdict: str | None = result.outcome.verdict
    return verdict


PASSES = """echo "print('{\\"verdict\\": \\"pass\\"}')" >"""


@pytest.mark.parametrize(
    "changes",
    [
        f"{PASSES} agents/review.py",
        "echo 'STRICT = False' > agents/rules.py",
        'echo \'dumps = lambda _: "{\\"verdict\\": \\"pass\\"}"\' > agents/json.py',
        'mkdir json && echo \'dumps = lambda _: "{\\"verdict\\": \\"pass\\"}"\' > json/__init__.py',
        "mkdir agents/rules; echo 'STRICT = False' > agents/rules/__init__.py",
        "touch agents/__init__.py; echo 'STRICT = False' > agents/rules.py",
        'echo \'dumps = lambda _: "{\\"verdict\\": \\"pass\\"}"\' > agents/json.py; '
        'python3 -c \'import py_compile; py_compile.compile("agents/json.py", "agents/json.pyc")\'; rm agents/json.py',
    ],
)
@pytest.mark.parametrize("room", ["auto", "copy"])
def test_a_reviewer_runs_as_it_was_and_sees_the_files_as_they_are(tmp_path: Path, changes: str, room: str) -> None:
    shop = reviewer(tmp_path, changes, room=room)
    assert verdict_of(shop) == "fail"
    shop.write("total", "90\n")
    assert verdict_of(shop) == "pass"
    assert not shop.rooms


def test_a_reviewer_without_an_ending_is_protected_with_the_modules_beside_it(tmp_path: Path) -> None:
    argv = (sys.executable, ".backedge-agents/review")
    files = {".backedge-agents/review": REVIEW, ".backedge-agents/rules.py": "STRICT = True\n"}
    shop = reviewer(tmp_path, "echo 'STRICT = False' > .backedge-agents/rules.py", files, argv=argv)
    assert verdict_of(shop, argv) == "fail"


def test_an_unchanged_reviewer_needs_no_room(tmp_path: Path) -> None:
    shop = reviewer(tmp_path, "echo 90 > total")
    assert verdict_of(shop) == "pass"
    assert not shop.evidence.scratch.joinpath("copies").exists()


def test_without_rooms_a_changed_reviewer_does_not_run(tmp_path: Path) -> None:
    shop = reviewer(tmp_path, f"{PASSES} agents/review.py", room="off")
    with pytest.raises(AgentError, match=r"the reviewer itself was changed in this run: agents/review\.py; make"):
        verdict_of(shop)


def test_a_script_among_the_product_does_not_hide_the_product(tmp_path: Path) -> None:
    argv = (sys.executable, "shop/review.py")
    shop = Shop(tmp_path, argvs=[argv])
    look = 'import json\nfrom cart import TOTAL\nprint(json.dumps({"verdict": "pass" if TOTAL == 90 else "fail", "summary": "x"}))\n'
    for name, text in {"shop/__init__.py": "", "shop/review.py": look, "shop/cart.py": "TOTAL = 100\n"}.items():
        shop.write(name, text)
    shop.witness("review", judges=True, argv=argv).begin(RUN)
    shop.does("echo 'TOTAL = 90' > shop/cart.py")
    agent = shop.agent("", "review", argv=argv, judges=True)
    result: Any = asyncio.run(agent.work(briefing("review"), NOBODY))
    assert result.outcome.verdict == "pass"


def test_an_attempt_that_a_crash_hid_is_undone_before_the_next(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    folder = shop.project / ".backedge/attempts" / RUN / "code-1"
    shop.witness(writes=("docs/**",)).before(briefing("code"), folder)
    folder.mkdir(parents=True)
    shop.write("total", "90\n")  # by a program that nobody saw ending
    after_the_crash = Shop(tmp_path, producers={"code": ("docs/**",)})
    after_the_crash.does("true", attempt=2, writes=("docs/**",))
    assert shop.read("total") == FILES["total"]
    assert "+90" in patch_of(shop)


def test_what_another_step_may_have_done_since_a_crash_is_not_undone(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    folder = shop.project / ".backedge/attempts" / RUN / "code-1"
    shop.witness(writes=("docs/**",)).before(briefing("code"), folder)
    folder.mkdir(parents=True)
    shop.write("total", "90\n")
    after_the_crash = Shop(tmp_path, producers={"code": ("docs/**",), "other": None})
    after_the_crash.does("true", attempt=2, writes=("docs/**",))
    assert shop.read("total") == "90\n"


def test_a_violation_that_was_undone_just_before_a_crash_is_still_one(tmp_path: Path) -> None:
    shop = Shop(tmp_path, producers={"code": ("docs/**",)})
    folder = shop.project / ".backedge/attempts" / RUN / "code-1"
    witness = shop.witness(writes=("docs/**",))
    witness.before(briefing("code"), folder)
    shop.write("total", "90\n")
    with pytest.raises(AgentError):
        witness.after(briefing("code"), folder)
    later = Shop(tmp_path, producers={"code": ("docs/**",)}).witness(writes=("docs/**",))
    with pytest.raises(AgentError, match="outside its `writes`"):
        later.after(briefing("code"), folder)


def test_an_end_that_was_seen_just_before_a_crash_is_seen_the_same_again(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    folder = shop.project / ".backedge/attempts" / RUN / "code-1"
    witness = shop.witness()
    witness.before(briefing("code"), folder)
    shop.write("total", "90\n")
    first = witness.after(briefing("code"), folder)
    assert Shop(tmp_path).witness().after(briefing("code"), folder) == first


def test_a_record_that_was_removed_is_an_error(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with pytest.raises(AgentError, match="it is not known how the workspace was before the attempt"):
        shop.witness().after(briefing("code"), shop.project / ".backedge/attempts/r-1/code-1")


def test_two_runs_in_one_folder_do_not_undo_each_other(tmp_path: Path) -> None:
    one, other = Shop(tmp_path), Shop(tmp_path)
    one.begin()
    one.evidence.under_way.begin("r-2", "code", None)  # the attempt of another run, which may change everything
    assert other.does("echo 90 > total", writes=("docs/**",)).evidence.files == ("total",)
    assert one.evidence.under_way.end("r-2", "code") == [("docs/**",)]
    with pytest.raises(AgentError, match="outside its `writes`"):
        other.does("echo 95 > total", attempt=2, writes=("docs/**",))


def test_another_run_that_came_and_went_meanwhile_counts_too(tmp_path: Path) -> None:
    long, short, later = (Shop(tmp_path).evidence.under_way for _ in range(3))
    long.begin("r-1", "code", ("docs/**",))
    short.begin("r-2", "code", ("src/**",))
    short.end("r-2", "code")
    later.begin("r-3", "code", ("tests/**",))
    assert later.end("r-3", "code") == [("docs/**",)]
    assert sorted(map(tuple, long.end("r-1", "code") or ())) == [("src/**",), ("tests/**",)]
    assert not later.writing


def test_stories_are_not_judged(tmp_path: Path) -> None:
    shop = Shop(tmp_path, stories=tmp_path / "shop/stories")
    shop.begin()
    before = shop.evidence.of(RUN).tree().digest
    found = shop.does(
        f"mkdir stories; echo done > stories/a.md; echo draft > 'stories/{draft_name('a.md', b'', b'1')}'",
        writes=("docs/**",),
    )
    assert found.evidence.tree == before
    with pytest.raises(AgentError, match="outside its `writes`"):
        shop.does("echo 1 > stories/a.py", attempt=2, writes=("docs/**",))
    with pytest.raises(AgentError, match="outside its `writes`"):
        shop.does("echo 1 > stories/.a.py.new", attempt=3, writes=("docs/**",))
