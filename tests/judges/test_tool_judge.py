"""Tool judges with real programs in real rooms."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backedge.adapters.agents.secrets import Secrets
from backedge.adapters.judges.judge_program import CannotRun, NoRoom
from backedge.adapters.reports.spec import ReportSpec
from backedge.core.errors import AgentError
from tests.evidence.parts import git
from tests.judges.shop import NOBODY, RUN, RUN_TESTS, Shop, answers, asked, briefing, failing


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    found = Shop(tmp_path)
    found.begin()
    return found


def nothing_left(shop: Shop) -> bool:
    return not shop.rooms and not shop.reports


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(0.01)


def test_a_baseline_says_what_ran_at_the_start(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    found = shop.begin()
    assert found.tests is not None
    assert (found.tests.tests, found.tests.failed, found.failing, found.cached) == (
        2,
        1,
        ("tests/total.sh::tests::total",),
        False,
    )
    assert nothing_left(shop)


def test_a_failing_test_fails_and_a_fix_passes(shop: Shop) -> None:
    first = shop.judged(1)
    assert (first.outcome.verdict, first.outcome.summary) == ("fail", "2 tests, was 2; 1 failed")
    assert first.outcome.findings[0].evidence.startswith("It failed before the run began.")
    assert (first.evidence.held, first.evidence.environment) == (False, "same")
    shop.write("total", "90\n")
    second = shop.judged(2, verify=(failing("total"),))
    assert (second.outcome.verdict, answers(second)) == ("pass", {"F-1": "fixed"})
    assert second.evidence.tree != first.evidence.tree
    assert second.evidence.after == ""
    assert nothing_left(shop)


def test_a_weakened_test_of_an_open_finding_is_judged_as_it_was(shop: Shop) -> None:
    shop.judged(1)
    shop.write("tests/total.sh", "true\n")
    found = shop.judged(2, verify=(failing("total"),))
    assert answers(found) == {"F-1": "it is still there with the tests as they were"}
    assert (found.outcome.verdict, found.evidence.held) == ("fail", True)
    assert shop.read("tests/total.sh") == "true\n", "the workspace itself is not touched"


def test_a_test_that_is_weakened_at_once_is_a_question(shop: Shop) -> None:
    shop.write("tests/total.sh", "true\n")
    found = shop.judged()
    assert found.outcome.verdict == "pass"
    reason = "tests/total.sh::tests::total fails with this file as it was, and failed when the run began"
    assert asked(found) == {"tests/total.sh": reason}
    assert found.evidence.questions[0].red


def test_an_approved_change_is_the_new_reference(shop: Shop) -> None:
    shop.write("tests/total.sh", '[ "$(cat total)" = 100 ]\n')
    question = shop.judged(1).evidence.questions[0]
    shop.does("true", attempt=1)  # the witness keeps what is approved
    found = shop.judged(2, approved=((question.file, question.digest),))
    assert (found.outcome.verdict, found.evidence.held, asked(found)) == ("pass", False, {})
    shop.write("tests/total.sh", "true\n")
    shop.write("total", "1\n")
    assert asked(shop.judged(3, approved=((question.file, question.digest),))) == {
        "tests/total.sh": "tests/total.sh::tests::total fails with this file as it was"
    }


def test_an_approval_in_another_workspace_does_not_count_here(tmp_path: Path) -> None:
    shop = Shop(tmp_path, workspace=tmp_path / "shop" / "two")
    shop.judged(1)
    shop.write("tests/total.sh", "true\n")
    shop.does("true", attempt=1)
    digest = shop.evidence.of(RUN).tree().files["tests/total.sh"]
    question = {"tests/total.sh": "tests/total.sh::tests::total fails with this file as it was"}
    assert asked(shop.judged(2, approved=(("one/tests/total.sh", digest),))) == question
    assert asked(shop.judged(3, approved=(("tests/total.sh", digest),))) == question
    assert asked(shop.judged(4, approved=(("two/tests/total.sh", digest),))) == {}


def test_an_approved_weaker_test_does_not_close_the_finding_of_the_test_that_failed(shop: Shop) -> None:
    shop.judged(1)
    shop.write("tests/total.sh", "true\n")
    shop.does("true", attempt=2)
    digest = shop.evidence.of(RUN).tree().files["tests/total.sh"]
    found = shop.judged(2, verify=(failing("total"),), approved=(("tests/total.sh", digest),))
    assert answers(found) == {"F-1": "it is still there with the test as it was when it failed"}


def test_a_new_test_that_failed_is_held_as_it_was(shop: Shop) -> None:
    shop.write("total", "90\n")
    shop.write("tests/new.sh", '[ "$(cat count)" = 3 ]\n')
    first = shop.judged(1)
    assert [each.test for each in first.outcome.findings] == ["tests/new.sh::tests::new"]
    shop.write("tests/new.sh", "true\n")
    second = shop.judged(2, verify=(failing("new"),))
    assert answers(second) == {"F-1": "it is still there with the tests as they were"}
    shop.write("count", "3\n")
    shop.write("tests/count.sh", '[ "$(cat count)" = 3 ]\n')
    third = shop.judged(3, verify=(failing("new"),))
    assert answers(third) == {"F-1": "fixed"}


def test_a_removed_test_is_a_question_and_its_approval_ends_it(shop: Shop) -> None:
    shop.write("total", "90\n")
    (shop.folder / "tests/count.sh").unlink()
    found = shop.judged(1)
    assert asked(found) == {"tests/count.sh": "tests/count.sh::tests::count no longer runs"}
    found = shop.judged(2, approved=(("tests/count.sh", ""),))
    assert (found.outcome.verdict, asked(found), found.outcome.summary) == ("pass", {}, "1 test, was 2")


def test_approving_one_change_excuses_no_test_that_the_product_keeps_from_running(shop: Shop) -> None:
    """The suite ends early, after somebody approved a version bump."""
    shop.write("total", "90\n")
    shop.write("pyproject.toml", "[project]\nname = 'shop'\n")
    shop.does("true")
    digest = shop.evidence.of(RUN).tree().files["pyproject.toml"]
    shop.write("count", "skip\n")
    shop.write("tests/count.sh", shop.read("tests/count.sh"))
    cut_short = Shop(
        shop.folder.parent,
        ("sh", "-c", RUN_TESTS[2].replace("name=$(", "[ -e stop ] && break; name=$("), "r", "{report}"),
    )
    cut_short.write("stop", "")
    found = cut_short.judged(1, approved=(("pyproject.toml", digest),))
    assert [each.description for each in found.outcome.findings] == [
        "tests/count.sh::tests::count, tests/total.sh::tests::total ran before and no longer run"
    ]


def test_everything_is_skipped(shop: Shop) -> None:
    shop.write("tests/total.sh", "exit 77\n")
    shop.write("tests/count.sh", "exit 77\n")
    found = shop.judged(1)
    assert set(asked(found)) == {"tests/total.sh", "tests/count.sh"}
    assert found.outcome.summary == "2 tests, was 2; 2 skipped"


def test_a_tool_that_fails_without_a_finding_does_not_pass(tmp_path: Path) -> None:
    """Such as a test run whose coverage is too low."""
    shop = Shop(tmp_path, ("sh", "-c", f"{RUN_TESTS[2]}\nexit 2", "runner", "{report}"))
    shop.write("total", "90\n")
    baseline = shop.begin()
    assert baseline.error.startswith("the tool failed (exit 2) but its report lists nothing")
    shop.write("pyproject.toml", "[tool.coverage]\n")
    with pytest.raises(AgentError, match=r"failed \(exit 2\) but its report lists nothing"):
        shop.judged()


def test_a_judge_without_tests_at_the_start_needs_tests_later(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    for name in ("total", "count"):
        (shop.folder / f"tests/{name}.sh").unlink()
    shop.begin()
    shop.write("pyproject.toml", "")
    with pytest.raises(AgentError, match="has no tests"):
        shop.judged()


@pytest.mark.parametrize("name", ["Cargo.lock", "tests/__snapshots__/a.snap"])
def test_a_file_that_the_tool_brings_up_to_date_is_a_finding(tmp_path: Path, name: str) -> None:
    shop = Shop(tmp_path, ("sh", "-c", f"grep -q new '{name}' || echo new > '{name}'; {RUN_TESTS[2]}", "r", "{report}"))
    shop.write("total", "90\n")
    shop.write(name, "new\n")
    shop.begin()
    shop.write(name, "old\n")
    found = shop.judged()
    assert [(each.file, each.severity) for each in found.outcome.findings] == [(name, "high")]
    assert (found.outcome.verdict, shop.read(name)) == ("fail", "old\n")
    shop.write(name, "new\n")
    assert shop.judged(2).outcome.verdict == "pass"


def test_a_lock_file_may_differ_only_with_the_protected_files_as_they_were(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ("sh", "-c", f"cat Cargo.toml > Cargo.lock; {RUN_TESTS[2]}", "r", "{report}"))
    for name in ("Cargo.toml", "Cargo.lock"):
        shop.write(name, "1\n")
    shop.begin()
    for name in ("Cargo.toml", "Cargo.lock"):
        shop.write(name, "2\n")
    shop.write("total", "90\n")
    found = shop.judged()
    assert (found.outcome.verdict, found.evidence.held) == ("pass", True)


def test_a_gate_reads_what_the_judge_left(tmp_path: Path) -> None:
    leaves = f"echo 40 > covered; echo 1 > more; {RUN_TESTS[2]}"
    shop = Shop(tmp_path, ("sh", "-c", leaves, "r", "{report}"), keeps=("*",), measured=frozenset({"covered"}))
    shop.write("total", "90\n")
    shop.begin()
    shop.judged()
    shop.write("covered", "95\n")
    store = shop.evidence.of(RUN).store
    assert {name: store.get(digest) for name, digest in store.left.items()} == {"covered": b"40\n"}


def test_a_judge_that_changes_what_it_judges_does_not_count(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ("sh", "-c", f"echo 90 > total; {RUN_TESTS[2]}", "runner", "{report}"))
    assert shop.begin().changes == ("total",), "told before anybody works"
    with pytest.raises(AgentError, match="test changed what it judges: total; take `fix`") as found:
        shop.judged()
    assert found.value.lasting
    assert shop.read("total") == "100\n"
    assert nothing_left(shop)


def test_new_files_of_a_judge_are_dropped_unless_it_keeps_them(tmp_path: Path) -> None:
    script = f"echo 1 > coverage.json; echo 1 > rubbish; {RUN_TESTS[2]}"
    shop = Shop(tmp_path, ("sh", "-c", script, "runner", "{report}"), keeps=("coverage.json",))
    shop.begin()
    (shop.folder / "coverage.json").unlink(missing_ok=True)
    first = shop.judged(1)
    assert (shop.folder / "coverage.json").exists()
    assert not (shop.folder / "rubbish").exists()
    assert first.evidence.after == "", "what a judge may leave is not part of what is judged"
    assert shop.judged(2).evidence.tree == first.evidence.tree


WRITES_DATA = f"date +%s%N > tests/last.txt; {RUN_TESTS[2]}"


def test_data_that_tests_write_and_their_judge_keeps_needs_no_answer(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ("sh", "-c", WRITES_DATA, "runner", "{report}"), keeps=("tests/*.txt",))
    shop.write("tests/last.txt", "0\n")
    assert shop.begin().changes == ()
    before = shop.read("tests/last.txt")
    shop.write("total", "90\n")
    first, second = shop.judged(1), shop.judged(2)
    assert shop.read("tests/last.txt") != before
    for found in (first, second):
        assert (found.outcome.verdict, found.evidence.held, found.evidence.questions) == ("pass", False, ())
        assert (found.evidence.tree, found.evidence.after) == (first.evidence.tree, "")
    shop.write("tests/last.txt", "edited\n")
    assert shop.judged(3).evidence.held, "what somebody else edits is evidence as before"
    shop.write("tests/last.txt", "edited\n")
    assert Shop(tmp_path, shop.command.argv, keeps=("tests/*.txt",)).judged(4).evidence.held, "also in another process"


def test_a_golden_file_that_was_deleted_is_not_data_of_the_test_that_writes_it_again(tmp_path: Path) -> None:
    golden = '[ -e tests/golden.txt ] || cp total tests/golden.txt; [ "$(cat tests/golden.txt)" = "$(cat total)" ]\n'
    shop = Shop(tmp_path, keeps=("tests/*.txt",))
    shop.write("tests/total.sh", golden)
    shop.write("tests/golden.txt", "90\n")
    shop.begin()
    for attempt in (1, 2):
        (shop.folder / "tests/golden.txt").unlink(missing_ok=True)
        found = shop.judged(attempt)
        assert found.evidence.held
        assert found.outcome.verdict == "fail" or asked(found)
    # What the judge wrote because it was missing is not a reference either.
    found = shop.judged(3)
    assert found.outcome.verdict == "fail" or asked(found)


def test_a_judge_keeps_only_what_it_wrote_for_the_files_that_are_delivered(tmp_path: Path) -> None:
    script = f"cat pyproject.toml > settings.txt; {RUN_TESTS[2]}"
    shop = Shop(tmp_path, ("sh", "-c", script, "runner", "{report}"), keeps=("settings.txt",))
    shop.write("pyproject.toml", "old\n")
    shop.begin()
    shop.write("pyproject.toml", "new\n")
    assert shop.judged().evidence.held
    assert shop.read("settings.txt") == "new\n"


RENAME = "import os; os.rename('data', 'moved'); os.rename('moved', 'data')"


def shop_that_moves_a_folder(folder: Path, **more: Any) -> Shop:
    """A test that moves a folder passes by hand and fails in an overlay."""
    shop = Shop(folder, **more)
    shop.write("data/a", "1")
    shop.write("tests/moves.sh", f'{sys.executable} -c "{RENAME}"\n')
    shop.begin()
    return shop


@pytest.mark.parametrize("room", ["auto", "copy"])
def test_a_judge_that_moves_folders_runs_in_a_plain_copy(tmp_path: Path, room: str) -> None:
    shop = shop_that_moves_a_folder(tmp_path, room=room)
    shop.write("total", "90\n")
    found = shop.judged()
    assert found.outcome.verdict == "pass"
    assert (found.evidence.room, found.evidence.notes) == ("copy", ())
    assert shop.read("data/a") == "1"
    assert nothing_left(shop)


def test_what_only_the_room_forbids_is_explained(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.begin()
    if shop.judged().evidence.room != "overlay":
        pytest.skip("only an overlay forbids it")
    shop = shop_that_moves_a_folder(tmp_path, room="overlay")
    found = shop.judged(2)
    assert [note for note in found.evidence.notes if "folders that were there before cannot be renamed" in note]
    shop.write("tests/moves.sh", "exit 1\n")
    assert shop.judged(3).evidence.notes == (), "any other failure needs no hint"


def test_a_report_in_the_workspace_counts_if_the_judge_wrote_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ("sh", "-c", RUN_TESTS[2], "runner", "report.xml"), ReportSpec("junit", "report.xml"))
    shop.begin()
    assert not (shop.folder / "report.xml").exists()
    shop.write("report.xml", "<testsuite><testcase classname='tests' name='total'/></testsuite>")
    found = shop.judged()
    assert (found.outcome.verdict, found.outcome.summary) == ("fail", "2 tests, was 2; 1 failed")
    assert "<testcase classname='tests' name='total'/>" in shop.read("report.xml")


def test_a_report_that_is_already_there_does_not_count(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ("true",), ReportSpec("junit", "report.xml"))
    shop.write("report.xml", "<testsuite><testcase classname='tests' name='total'/></testsuite>")
    with pytest.raises(CannotRun, match=r"wrote no report report\.xml"):
        shop.judged()


def test_a_judge_sees_neither_backedge_nor_secrets_and_has_no_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKEDGE_RUN", "r-0")
    monkeypatch.setenv("API_TOKEN", "very-secret")
    monkeypatch.setenv("HARMLESS", "yes")
    script = "env > seen; cat >> seen; echo end >> seen; ls -A .backedge >> seen 2>&1; exit 0"
    shop = Shop(
        tmp_path,
        ("sh", "-c", script),
        ReportSpec("exitcode"),
        keeps=("seen",),
        env={"OWN": "1"},
        secrets=Secrets({"API_TOKEN": "very-secret"}),
    )
    assert shop.judged().outcome.verdict == "pass"
    environment, _, after = shop.read("seen").partition("end\n")
    lines = dict(line.partition("=")[::2] for line in environment.splitlines())
    assert (lines["HARMLESS"], lines["OWN"]) == ("yes", "1")
    assert not [name for name in lines if name.startswith("BACKEDGE_") or name == "API_TOKEN"]
    assert "very-secret" not in environment
    assert after == "", "the state of backedge is hidden"


def test_a_flaky_test_passes_on_a_rerun_and_is_named(tmp_path: Path) -> None:
    shop = Shop(tmp_path, reruns=2)
    shop.write("total", "90\n")
    tries = tmp_path / "tries"
    shop.write("tests/flaky.sh", f'echo x >> {tries}; [ "$(wc -l < {tries})" -ge 2 ]\n')
    shop.write("tests/count.sh", '[ "$(cat count)" = 3 ]\n')
    tries.write_text("x\n")
    shop.begin()
    tries.unlink()
    found = shop.judged()
    assert found.evidence.tests is not None
    assert found.evidence.tests.flaky == ("tests/flaky.sh::tests::flaky",)
    assert [each.test for each in found.outcome.findings] == ["tests/count.sh::tests::count"]
    assert found.outcome.summary == "3 tests, was 3; 1 failed; 1 flaky"
    assert len(tries.read_text().splitlines()) == 3, "the failing test was run again twice"


def test_a_test_that_is_flaky_only_as_it_was_is_no_question(tmp_path: Path) -> None:
    shop = Shop(tmp_path, reruns=1)
    shop.write("total", "90\n")
    tries = tmp_path / "tries"
    flaky = f'echo x >> {tries}; [ "$(wc -l < {tries})" != 2 ]\n'
    shop.write("tests/flaky.sh", flaky)
    shop.begin()
    tries.unlink()
    shop.write("tests/flaky.sh", f"{flaky} # a comment\n")
    found = shop.judged()
    assert (found.outcome.verdict, asked(found)) == ("pass", {})


def test_a_tool_that_is_not_there_cannot_run(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="cannot start 'no-such-tool'"):
        Shop(tmp_path, ("no-such-tool",), ReportSpec("exitcode")).begin()


def test_a_tool_that_is_called_wrongly_cannot_run(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match="unrecognized arguments"):
        Shop(tmp_path, (sys.executable, "-m", "pytest", "--no-such-option", "--junitxml", "{report}")).begin()


def test_a_red_collection_is_an_ordinary_baseline(tmp_path: Path) -> None:
    shop = Shop(tmp_path, (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", "{report}"))
    shop.write("tests/test_new.py", "from product import answer\n\n\ndef test_answer():\n    assert answer() == 42\n")
    found = shop.begin()
    assert (found.failing, found.error) == (("tests.test_new",), "")
    first = shop.judged(1)
    assert first.outcome.verdict == "fail"
    shop.write("product.py", "def answer():\n    return 42\n")
    shop.write("conftest.py", "")
    finding = failing("x")
    open_finding = type(finding)(
        "F-1", "tests.test_new: collection failure", finding.severity, "test", category="test", test="tests.test_new"
    )
    found_again = shop.judged(2, verify=(open_finding,))
    assert (found_again.outcome.verdict, answers(found_again)) == ("pass", {"F-1": "fixed"})


def test_the_same_start_is_measured_once(tmp_path: Path) -> None:
    looks = tmp_path / "looks"
    argv = ("sh", "-c", f"echo x >> {looks}; {RUN_TESTS[2]}", "runner", "{report}")
    first = Shop(tmp_path, argv).begin("r-1")
    second = Shop(tmp_path, argv).begin("r-2")
    assert (first.cached, second.cached) == (False, True)
    assert (second.tests, second.failing, second.report) == (first.tests, first.failing, first.report)
    assert len(looks.read_text().splitlines()) == 1
    again = Shop(tmp_path, argv)
    again.write("total", "90\n")
    assert not again.begin("r-3").cached
    assert not Shop(tmp_path, argv, env={"MORE": "1"}).begin("r-3").cached
    assert len(looks.read_text().splitlines()) == 3


def test_a_story_in_a_worktree_shares_the_baseline(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.begin("r-1")
    place = shop.project / ".backedge" / "worktrees" / "story"
    git(shop.project, "worktree", "add", "-q", str(place), "-b", "story")
    story = Shop(tmp_path, workspace=place)
    assert story.begin("r-2").cached
    story.write("total", "90\n")
    found: Any = asyncio.run(story.judge.work(briefing("test", run="r-2"), NOBODY))
    assert (found.outcome.verdict, found.evidence.workspace) == ("pass", ".backedge/worktrees/story")
    assert shop.read("total") == "100\n"


def test_a_workspace_that_is_not_the_folder_of_the_file(tmp_path: Path) -> None:
    Shop(tmp_path)
    elsewhere = Shop(tmp_path, workspace=tmp_path / "elsewhere")
    elsewhere.begin()
    elsewhere.write("total", "90\n")
    found = elsewhere.judged()
    assert (found.outcome.verdict, found.evidence.workspace) == ("pass", "../elsewhere")


def test_a_judge_works_on_a_copy_while_a_producer_runs(shop: Shop) -> None:
    witness = shop.witness("docs", writes=("docs/**",))
    folder = shop.project / ".backedge/attempts/r-1/docs-1"
    witness.before(briefing("docs"), folder)
    busy = shop.judged(1)
    witness.after(briefing("docs"), folder)
    assert busy.evidence.room == "copy"
    assert shop.judged(2).evidence.room in ("overlay", "copy")


def test_files_that_change_under_the_judges_eyes_are_judged_again_on_a_copy(tmp_path: Path) -> None:
    looks = tmp_path / "looks"
    slow = f"echo x >> {looks}; sleep 0.5; {RUN_TESTS[2]}"
    shop = Shop(tmp_path, ("sh", "-c", slow, "runner", "{report}"))
    shop.begin()
    looks.unlink()

    async def change() -> Any:
        judging = asyncio.ensure_future(shop.judging())
        await until(looks.exists)
        shop.write("total", "90\n")
        return await judging

    found = asyncio.run(change())
    if found.evidence.room == "copy" and len(looks.read_text()) == 4:
        assert (found.outcome.verdict, found.evidence.after) == ("pass", "")
    else:  # this machine has no overlays
        assert found.evidence.after != ""


def test_what_was_changed_and_changed_back_meanwhile_is_judged_again(tmp_path: Path) -> None:
    looks = tmp_path / "looks"
    slow = f"trap 'sleep 0.5' EXIT\necho x >> {looks}; sleep 0.3; {RUN_TESTS[2]}"
    shop = Shop(tmp_path, ("sh", "-c", slow, "runner", "{report}"))
    shop.begin()
    looks.unlink()

    async def change_and_take_back() -> Any:
        judging = asyncio.ensure_future(shop.judging())
        await until(looks.exists)
        shop.write("total", "90\n")
        await asyncio.sleep(0.45)
        shop.write("total", "100\n")
        return await judging

    assert asyncio.run(change_and_take_back()).outcome.verdict == "fail"


def test_a_judge_works_on_a_copy_while_a_reviewer_looks(shop: Shop) -> None:
    shop.evidence.under_way.begin("r-1", "review", ())
    assert shop.judged().evidence.room == "copy"


def test_a_changed_environment_is_a_question(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.write(".venv/pyvenv.cfg", "home = /usr\n")
    shop.write(".venv/lib/python3/site-packages/pytest.py", "1\n")
    shop.begin()
    shop.write(".venv/lib/python3/site-packages/pytest.py", "2\n")
    found = shop.judged(1)
    assert (list(asked(found)), found.evidence.environment) == ([".venv"], "changed")
    question = found.evidence.questions[0]
    assert asked(shop.judged(2, approved=((question.file, question.digest),))) == {}


def test_content_that_was_too_large_to_keep_is_a_question(shop: Shop) -> None:
    run = shop.evidence.of(RUN)
    digest = run.start.base.tree.files["tests/total.sh"][2:]
    run.store.object(digest).unlink()
    shop.write("tests/total.sh", "true\n")
    found = shop.judged()
    assert "the content of tests/total.sh was too large to be kept" in asked(found)["tests/total.sh"]


def test_kept_content_that_was_changed_from_outside_is_not_used(shop: Shop) -> None:
    run = shop.evidence.of(RUN)
    digest = run.start.base.tree.files["tests/total.sh"][2:]
    run.store.object(digest).write_text("true\n")
    shop.write("tests/total.sh", "exit 0\n")
    with pytest.raises(AgentError, match="was changed from outside: start a new run"):
        shop.judged()


def test_room_off_cannot_judge_as_it_was(tmp_path: Path) -> None:
    shop = Shop(tmp_path, room="off")
    shop.begin()
    shop.write("tests/total.sh", "true\n")
    with pytest.raises(NoRoom, match="`room: off` cannot judge with the tests as they were"):
        shop.judged()


def test_a_linter_that_is_silenced_at_the_place_of_a_finding(tmp_path: Path) -> None:
    lint = 'grep -n \'import os$\' a.py | sed \'s/:.*//\' | while read n; do printf \'[{"description": "unused", "file": "a.py", "line": %s}]\' $n > $1; done; [ -s $1 ] || echo \'[]\' > $1'
    shop = Shop(tmp_path, ("sh", "-c", lint, "lint", "{report}"), ReportSpec("json"))
    shop.write("a.py", "import re  # noqa\n\nimport os\n")
    shop.begin()
    first = shop.judged(1)
    assert [each.description for each in first.outcome.findings] == ["unused"]
    finding = failing("x")
    unused = type(finding)("F-1", "unused", finding.severity, "lint", file="a.py", line=3)
    shop.write("a.py", "import re  # noqa\n\nimport os  # noqa\n")
    assert answers(shop.judged(2, verify=(unused,))) == {"F-1": "silenced, not fixed: import os  # noqa"}
    shop.write("a.py", "import re  # noqa\n\n")
    assert answers(shop.judged(3, verify=(unused,))) == {"F-1": "fixed"}, "the other comment was there before"
    (shop.folder / "a.py").unlink()
    assert asked(shop.judged(4, verify=(unused,))) == {"a.py": "F-1 was found in this file, which was removed"}


def test_an_attempt_that_ended_while_backedge_was_dead_is_adopted(shop: Shop, tmp_path: Path) -> None:
    looks = tmp_path / "looks"
    argv = ("sh", "-c", f"echo x >> {looks}; {RUN_TESTS[2]}", "runner", "{report}")
    dead = Shop(tmp_path, argv)

    async def abandoned() -> None:
        """Start the judge and never look again, as a killed process."""
        from backedge.adapters.agents.execution import _begun
        from backedge.adapters.judges.judge_program import JudgeProgram, Part

        program, part = JudgeProgram(dead.evidence, dead.command), Part(RUN, 1, "delivered")
        room, reports = program._opened(part)
        folder = program._folder(part)
        folder.choose_names()
        process = _begun(folder, program._program(part, reports.path, room))
        await until(lambda: not process.lives)
        await process.end_known()
        assert room._folder is not None
        os.close(room._folder._lock)  # as a killed process loses its locks
        room._folder._lock = -1

    asyncio.run(abandoned())
    assert shop.rooms
    resumed = Shop(tmp_path, argv)
    found: Any = asyncio.run(resumed.judge.recover(briefing("test"), NOBODY))
    assert found is not None
    assert (found.outcome.verdict, found.evidence.notes) == ("fail", ())
    assert looks.read_text() == "x\n", "it was not run again"
    assert nothing_left(resumed)


def test_an_attempt_whose_end_is_not_known_is_run_again_and_says_so(shop: Shop, tmp_path: Path) -> None:
    folder = shop.project / ".backedge/attempts/r-1/test-1/delivered"
    folder.mkdir(parents=True)
    (folder / "starting").write_text('{"at": 1.0}')
    found = asyncio.run(Shop(tmp_path).judge.recover(briefing("test"), NOBODY))
    assert found is not None
    assert found.evidence.notes == ("it was started again: it is not known how it ended before the crash",)


def test_without_a_room_an_unknown_end_is_a_doubt(tmp_path: Path) -> None:
    shop = Shop(tmp_path, room="off")
    folder = shop.project / ".backedge/attempts/r-1/test-1/delivered"
    folder.mkdir(parents=True)
    (folder / "starting").write_text('{"at": 1.0}')
    assert asyncio.run(shop.judge.recover(briefing("test"), NOBODY)) is None


LINT = 'grep -n \'import os$\' a.py | sed \'s/:.*//\' | while read n; do printf \'[{"description": "unused", "file": "a.py", "line": %s}]\' $n > $1; done; [ -s $1 ] || echo \'[]\' > $1'
"""A linter that dislikes one import."""


def linted(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path, ("sh", "-c", LINT, "lint", "{report}"), ReportSpec("json"))
    shop.write("a.py", "import re  # noqa\n\nimport os\n")
    shop.begin()
    return shop


def test_what_a_linter_found_at_the_start_is_in_question_once_it_is_silenced(tmp_path: Path) -> None:
    shop = linted(tmp_path)
    assert asked(shop.judged(1)) == {}
    shop.write("a.py", "import re  # noqa\n\nimport os  # noqa\n")
    found = shop.judged(2)
    assert asked(found) == {"a.py": "silenced, not fixed: unused (import os  # noqa)"}
    (question,) = found.evidence.questions
    assert asked(shop.judged(3, approved=((question.file, question.digest),))) == {}


def test_removing_a_file_with_a_finding_of_the_start_is_a_question(tmp_path: Path) -> None:
    shop = linted(tmp_path)
    (shop.folder / "a.py").unlink()
    found = shop.judged(1)
    assert asked(found) == {"a.py": 'the judge found "unused" in this file, which was removed'}
    assert asked(shop.judged(2, approved=(("a.py", ""),))) == {}


def test_what_is_fixed_is_not_in_question(tmp_path: Path) -> None:
    shop = linted(tmp_path)
    shop.write("a.py", "import re  # noqa\n")
    assert asked(shop.judged(1)) == {}


@pytest.mark.parametrize("room", ["auto", "copy"])
def test_caches_that_somebody_left_are_not_in_the_room(tmp_path: Path, room: str) -> None:
    look = "for each in .mypy_cache .eslintcache; do [ -e $each/x ] || [ -f $each ] && exit 1; done; mkdir -p .mypy_cache; echo 1 > .mypy_cache/y"
    shop = Shop(tmp_path, ("sh", "-c", look), ReportSpec("exitcode"), room=room)
    shop.begin()
    shop.write(".mypy_cache/x", "fine")
    shop.write(".eslintcache", "fine")
    assert shop.judged().outcome.verdict == "pass"
    assert shop.read(".mypy_cache/x") == shop.read(".eslintcache") == "fine"
    assert not (shop.folder / ".mypy_cache" / "y").exists()


def test_a_place_that_a_tool_printed_at_the_start_is_in_question_once_it_is_silenced(tmp_path: Path) -> None:
    lint = 'grep -n "import os$" a.py | while read n; do echo "a.py:${n%%:*}: unused"; exit 1; done'
    shop = Shop(tmp_path, ("sh", "-c", lint), ReportSpec("exitcode"))
    shop.write("a.py", "\n\nimport os\n")
    shop.begin()
    shop.write("a.py", "\n\nimport os  # noqa\n")
    assert asked(shop.judged(1)) == {"a.py": "silenced, not fixed: a.py:3: unused (import os  # noqa)"}
