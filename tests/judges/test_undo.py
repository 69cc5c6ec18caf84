"""Undoing attempts in a real workspace, for a rollback."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from backedge.adapters.agents.command import CommandAgent
from backedge.adapters.agents.witness import witnessed
from backedge.adapters.evidence import before as before_module
from backedge.adapters.evidence.contents import content_at
from backedge.core.errors import AgentError, ProviderLimit
from backedge.core.evidence.values import RestoredFiles, RestoreRule
from tests.evidence.parts import git
from tests.judges.shop import FILES, RUN, Shop, asked, briefing


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def undone(shop: Shop, *attempts: int, rule: RestoreRule = "unless_edited", **rights: Any) -> RestoredFiles:
    agent = shop.agent("true", **rights)
    return asyncio.run(agent.restore(RUN, [("code", each) for each in attempts], ("test",), rule))


def test_content_modes_links_new_and_removed_files_are_restored(shop: Shop) -> None:
    before = shop.evidence.of(RUN).tree()
    os.chmod(shop.folder / "count", 0o640)
    shop.does("rm count; echo 90 > total; chmod +x total; ln -s total link; mkdir new; echo x > new/x")
    found = undone(shop, 1)
    assert (found.files, found.edited, found.lost) == (("count", "link", "new/x", "total"), (), ())
    assert shop.evidence.of(RUN).tree().files == before.files
    assert not (shop.folder / "new").exists()
    assert found.evidence.tree == before.digest
    assert (Path(found.patch).name, "+90" in Path(found.patch).read_text()) == ("undone.diff", True)
    assert Path(found.patch).parent.name == "code-1"
    again = undone(shop, 1)
    assert (again.files, again.patch) == ((), ""), "it may be called again"


def test_several_attempts_are_undone_from_the_last_one(shop: Shop) -> None:
    shop.does("echo 80 > total")
    shop.does("echo 90 > total; echo 3 > count", attempt=2)
    assert undone(shop, 2, 1).files == ("count", "total")
    assert (shop.read("total"), shop.read("count")) == (FILES["total"], FILES["count"])


def test_nothing_is_touched_if_somebody_edited_one_of_the_files(shop: Shop) -> None:
    shop.does("echo 90 > total; echo 3 > count")
    shop.write("count", "by hand")
    assert undone(shop, 1) == RestoredFiles(edited=("count",))
    assert (shop.read("total"), shop.read("count")) == ("90\n", "by hand")
    kept = undone(shop, 1, rule="never")
    assert (kept.files, shop.read("total"), bool(kept.evidence.tree)) == ((), "90\n", True)
    anyway = undone(shop, 1, rule="anyway")
    assert (anyway.files, shop.read("count")) == (("count", "total"), FILES["count"])
    assert "by hand" in Path(anyway.patch).read_text()


def test_what_the_attempt_committed_is_restored_in_the_files(shop: Shop) -> None:
    shop.does("echo 90 > total; git -c user.name=a -c user.email=a@b commit -qam x")
    assert undone(shop, 1).files == ("total",)
    assert shop.read("total") == FILES["total"]
    assert git(shop.folder, "log", "--oneline").count(b"\n") == 2, "the history of git is not touched"


def test_contents_are_found_by_another_process_after_a_crash(shop: Shop, tmp_path: Path) -> None:
    shop.write("draft", "draft\n")
    shop.does("echo 90 > total; echo 2 > draft; rm count")
    assert undone(Shop(tmp_path), 1).files == ("count", "draft", "total")
    assert (shop.read("draft"), shop.read("total")) == ("draft\n", FILES["total"])


def test_many_files_are_not_read_before_an_attempt_if_git_has_them(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"many/{number}" for number in range(150)]
    for name in names:
        shop.write(name, f"{name}\n")
    git(shop.folder, "add", "-A")
    shop.write("many/7", "edited\n")
    shop.write("untracked", "mine\n")
    read: list[str] = []
    real = content_at

    def noted(path: str) -> bytes | None:
        read.append(path)
        return real(path)

    monkeypatch.setattr(before_module, "content_at", noted)
    shop.does("for each in many/*; do echo x > $each; done; echo x > untracked")
    assert {Path(path).name for path in read} == {"7", "untracked"}
    found = undone(shop, 1)
    assert (len(found.files), found.lost) == (151, ())
    assert (shop.read("many/7"), shop.read("many/8"), shop.read("untracked")) == ("edited\n", "many/8\n", "mine\n")


def test_a_file_whose_content_was_not_kept_is_named(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(before_module, "MOST_KEPT", 0)
    shop.write("draft", "draft\n")
    shop.does("echo 90 > total; echo 2 > draft")
    assert undone(shop, 1) == RestoredFiles(lost=("draft",))
    found = undone(shop, 1, rule="anyway")
    assert (found.files, found.lost, shop.read("draft")) == (("total",), ("draft",), "2\n")


def test_what_another_attempt_may_have_changed_is_not_restored(shop: Shop) -> None:
    shop.evidence.under_way.begin(RUN, "other", ["total"])
    shop.does("echo 90 > total; echo 3 > count")
    assert undone(shop, 1).edited == ("total",)


def test_what_a_crash_hid_is_not_restored(shop: Shop) -> None:
    """Nobody saw how the first attempt ended, so that an edit of a person could not be told from its changes."""
    shop.witness().before(briefing("code", 1), shop.folder / f".backedge/attempts/{RUN}/code-1")
    shop.write("total", "half\n")
    shop.does("echo 3 > count", attempt=2)
    assert undone(shop, 2, 1) == RestoredFiles(edited=("total",))


@pytest.mark.parametrize("name", ["count", "odd [name]"])
def test_another_attempt_does_not_answer_for_what_a_rollback_restores(shop: Shop, name: str) -> None:
    shop.write(name, "1\n")
    shop.does(f"echo 3 > '{name}'")
    witness, folder = shop.witness("docs", writes=("docs/**",)), shop.folder / f".backedge/attempts/{RUN}/docs-1"
    witness.before(briefing("docs", 1), folder)
    assert undone(shop, 1).files == (name,)
    assert witness.after(briefing("docs", 1), folder).files == (name,), "it changed, but not outside its `writes`"
    assert shop.read(name) == "1\n"


def test_tests_that_only_the_undone_version_had_need_not_run_any_more(shop: Shop) -> None:
    """Without a complete baseline, a judge holds against later versions whatever it has seen running."""
    shop.judged()
    shop.does("echo true > tests/more.sh")
    shop.judged(2)
    assert undone(shop, 1).files == ("tests/more.sh",)
    shop.does("echo 90 > total", attempt=2)
    judged = shop.judged(3)
    assert (judged.outcome.verdict, asked(judged)) == ("pass", {})


def test_an_agent_without_evidence_says_so(shop: Shop) -> None:
    agent = CommandAgent(["true"], folder=shop.folder, state=shop.evidence.settings.state)
    found = asyncio.run(agent.restore(RUN, [("code", 1)], (), "unless_edited"))
    assert found.problem == "it is not known which files the attempts changed"


def test_a_broken_attempt_leaves_nothing_unless_it_is_to_stay(shop: Shop) -> None:
    def breaks(attempt: int, **rights: Any) -> str:
        with pytest.raises(AgentError) as broken:
            shop.does("echo 90 > total; exit 3", attempt=attempt, **rights)
        return str(broken.value)

    assert "what it had changed was undone: total; the change is kept in" in breaks(1)
    assert shop.read("total") == FILES["total"]
    assert "undone" not in breaks(2, on_error="keep")
    assert shop.read("total") == "90\n"
    assert undone(shop, 2).files == ("total",), "a rollback finds what stayed"


def test_what_a_broken_attempt_left_counts_as_changed_by_the_next_one(shop: Shop) -> None:
    """A person may have to approve it."""
    for attempt in (1, 2):
        with pytest.raises(AgentError):
            shop.does(f"echo {attempt} > total; exit 3", attempt=attempt, on_error="keep")
    assert shop.does("echo 3 > count", attempt=3, on_error="keep").evidence.files == ("count", "total")
    assert shop.does("echo 4 > count", attempt=4, on_error="keep").evidence.files == ("count",), "that was told before"


def test_what_an_attempt_left_whose_end_nobody_saw_counts_too(shop: Shop) -> None:
    shop.witness().before(briefing("code", 1), shop.folder / f".backedge/attempts/{RUN}/code-1")
    shop.write("total", "half\n")
    assert shop.does("echo 3 > count", attempt=2).evidence.files == ("count", "total")


def test_a_broken_attempt_whose_conversation_goes_on_keeps_its_files(shop: Shop) -> None:
    def gives_up(attempt: int, goes_on: bool, **rights: Any) -> str:
        witness, folder = shop.witness(**rights), shop.folder / f".backedge/attempts/{RUN}/code-{attempt}"
        witness.before(briefing("code", attempt), folder)
        shop.write("total", f"{attempt}\n")
        return witness.gave_up(briefing("code", attempt), folder, goes_on)

    assert gives_up(1, goes_on=True) == ""
    assert shop.read("total") == "1\n"
    assert "undone: total" in gives_up(2, goes_on=False)
    assert "undone: total" in gives_up(3, goes_on=True, on_error="restore")
    assert shop.read("total") == "1\n"


@pytest.mark.parametrize(
    ("session", "resumes", "stays"), [("s-1", True, True), ("s-1", False, False), (None, True, False)]
)
def test_only_a_conversation_that_a_retry_continues_keeps_its_files(
    shop: Shop, session: str | None, resumes: bool, stays: bool
) -> None:
    folder = shop.folder / f".backedge/attempts/{RUN}/code-1"

    async def attempt() -> None:
        async with witnessed(shop.witness(), briefing("code", 1), folder, resumes):
            shop.write("total", "half\n")
            raise (
                ProviderLimit("too many requests", None) if session is None else AgentError("it broke", session=session)
            )

    with pytest.raises(AgentError) as broken:
        asyncio.run(attempt())
    assert (shop.read("total") == "half\n", "undone" in str(broken.value)) == (stays, not stays)


def test_files_outside_a_repository_are_restored_too(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    subprocess.run(["rm", "-rf", str(shop.folder / ".git")], check=True)
    for number in range(150):
        shop.write(f"many/{number}", f"{number}\n")
    shop.does("for each in many/*; do echo x > $each; done; echo 90 > total")
    found = undone(shop, 1)
    assert (len(found.files), shop.read("many/7"), shop.read("total")) == (151, "7\n", FILES["total"])
