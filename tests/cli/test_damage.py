"""A damaged journal gives one clear error in every command that reads, never a traceback."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from backedge.cli.commands import main
from backedge.core.chain import genesis, links
from backedge.core.errors import BackedgeError, JournalDamaged
from tests.cli.project import Project, failed, finished, passed

READING = [
    "show {run}",
    "show {run} --json",
    "stats",
    "stats --json",
    "audit verify",
    "audit export {run}",
    "export {run}",
    "what-if L-1 --run {run}",
    "feedback list --run {run}",
    "inbox",
    "runs",
    "watch {run}",
    "context get --run {run}",
    "resume {run}",
    "decide E-1 accept --run {run}",
    "check",
    "prune --dry-run",
]
CHANGES = {
    "a name": ("step", lambda body: body.replace(b'"step":"code"', b'"step":"cobe"', 1)),
    "a number": ("attempt", lambda body: body.replace(b'"attempt":1', b'"attempt":7', 1)),
    "a byte that is no text": ("step", lambda body: body.replace(b'"step":"co', b'"step":"\xff\xfe', 1)),
    "a type": ("type", lambda body: body.replace(b'"type":"', b'"type":"x', 1)),
    "half of it": ("step", lambda body: body[: len(body) // 2]),
    "nothing left": ("step", lambda body: b""),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A project with a run that waits for a person."""
    steps = {"code": {"phase": "code"}, "review": {"reviews": "code"}}
    project = Project(
        tmp_path_factory.mktemp("damage") / "project",
        {"limits": {"rounds_per_loop": 1}, "steps": steps},
        code=[{"output": 1}, {"output": 2}],
        review=[failed("bad"), failed("worse"), passed()],
    )
    return project.folder, project.run().run


def damaged(
    sound: tuple[Path, str], folder: Path, change: Callable[[bytes], bytes], which: str, rechained: bool
) -> str:
    """A copy of the project in which one event was changed; with `rechained` every link was computed again."""
    shutil.copytree(sound[0], folder)
    database = sqlite3.connect(folder / ".backedge" / "journal.db")
    database.text_factory = bytes
    rows = database.execute("SELECT id, CAST(body AS BLOB) FROM events ORDER BY seq").fetchall()
    at, body = next((id, body) for id, body in rows if f'"{which}"'.encode() in body and change(body) != body)
    database.execute("UPDATE events SET body = CAST(? AS TEXT) WHERE id = ?", (change(body), at))
    if rechained:
        bodies = [change(each) if id == at else each for id, each in rows]
        chain = [bytes.fromhex(each) for each in links(genesis(sound[1]), bodies)]
        database.executemany("UPDATE events SET link = ? WHERE id = ?", zip(chain, [id for id, _ in rows], strict=True))
        database.execute("UPDATE runs SET link = ?", (chain[-1],))
    database.commit()
    database.close()
    return sound[1]


@pytest.mark.parametrize("rechained", [False, True], ids=["", "chain computed again"])
@pytest.mark.parametrize(("which", "change"), CHANGES.values(), ids=CHANGES)
def test_every_command_that_reads_names_the_run_and_the_event(
    which: str,
    change: Callable[[bytes], bytes],
    rechained: bool,
    sound: tuple[Path, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = damaged(sound, tmp_path / "project", change, which, rechained)
    monkeypatch.chdir(tmp_path / "project")
    complaints = []
    for command in READING:
        if rechained and command.startswith("watch"):
            continue  # if the event is possible, nothing ends it
        said = CliRunner().invoke(main, command.format(run=run).split())
        problem = said.exception
        assert problem is None or isinstance(problem, BackedgeError | SystemExit), (command, problem)
        if isinstance(problem, JournalDamaged):
            complaints.append(command)
            if not rechained:
                assert "event " in str(problem) and f"{run!r}" in str(problem), (command, problem)
    if not rechained:
        assert {"show {run}", "stats", "export {run}", "resume {run}", "audit export {run}"} <= set(complaints)


@pytest.mark.parametrize("left", [0, 30_000])
def test_a_run_whose_write_ahead_log_was_cut_short_is_not_called_verified(tmp_path: Path, left: int) -> None:
    steps = {"code": {"phase": "code"}, "review": {"reviews": "code"}}
    project = Project(tmp_path / "project", {"steps": steps}, code=[{"!wait": "cut", "output": 1}], review=[passed()])
    running = project.started("run")
    project.wait_for_execution("code")
    os.truncate(project.folder / ".backedge" / "journal.db-wal", left)
    (project.folder / "cut").touch()
    said = finished(running)
    assert said.code == 2
    assert "verified" not in said.out + said.err.replace("audit verify", "")
    assert "journal.db-wal was cut short" in said.err
    assert project.backedge("audit", "verify").code == 0
