from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backedge.adapters.evidence.ignore_rules import IgnoreRules
from backedge.adapters.evidence.places import journal_key, state_home
from backedge.adapters.evidence.store import Base, Before, Kept, RunStore, StoreDamaged
from backedge.adapters.evidence.tree import Tree


def store(folder: Path) -> RunStore:
    return RunStore(folder / "state", folder / "shop" / ".backedge" / "journal.db", "r-1")


def test_the_start_of_a_run_is_recorded_once(tmp_path: Path) -> None:
    kept = store(tmp_path)
    assert kept.base is None
    rules = IgnoreRules(True, "..", b"\xff*.o\n", ("a\\xff",), {"lib": IgnoreRules(True)})
    base = Base(Tree({"a.py": "f:1"}, (".venv",)), {"a.py": Kept("1", 0o100644)}, {".venv": "2"}, rules, {"l": "a.py"})
    kept.save_base(base)
    kept.save_base(Base(Tree({"a.py": "f:weaker"})))
    assert store(tmp_path).base == base


def test_contents_are_kept_by_digest_and_checked(tmp_path: Path) -> None:
    kept = store(tmp_path)
    digest = kept.put(b"content")
    assert kept.put(b"content") == digest
    assert kept.get(digest) == b"content"
    kept.object(digest).write_bytes(b"another")
    with pytest.raises(StoreDamaged, match="was changed from outside"):
        kept.get(digest)
    with pytest.raises(StoreDamaged, match="cannot be read"):
        kept.get("0" * 64)


def test_only_the_user_can_read_the_store(tmp_path: Path) -> None:
    kept = store(tmp_path)
    kept.save_base(Base(Tree({})))
    for path in [*(tmp_path / "state").rglob("*"), tmp_path / "state"]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_a_failing_test_is_held_as_it_was_when_it_first_failed(tmp_path: Path) -> None:
    kept = store(tmp_path)
    assert kept.failing("test") == {}
    kept.note_failing("test", "tests/test_a.py", b"assert total == 3")
    kept.note_failing("test", "tests/test_a.py", b"assert True")
    kept.note_failing("test", "tests/b\\u{a}.py", b"b", 0o100755)
    assert {name: (kept.get(each.digest), each.mode) for name, each in store(tmp_path).failing("test").items()} == {
        "tests/test_a.py": (b"assert total == 3", 0o100644),
        "tests/b\\u{a}.py": (b"b", 0o100755),
    }
    kept.forget_failing("test", "tests/test_a.py")
    assert list(kept.failing("test")) == ["tests/b\\u{a}.py"]


def test_a_step_that_installs_moves_the_environment(tmp_path: Path) -> None:
    kept = store(tmp_path)
    assert kept.fingerprint == {}
    kept.save_base(Base(Tree({}), environment={".venv": "1"}))
    assert kept.fingerprint == {".venv": "1"}
    kept.fingerprint = {".venv": "2"}
    assert store(tmp_path).fingerprint == {".venv": "2"}


def test_the_files_before_an_attempt_survive_until_it_has_ended(tmp_path: Path) -> None:
    before = Before(Tree({"a": "f:1"}), {"a": 0o100600}, {"a": "1"}, {"b": "2"})
    store(tmp_path).save_before("code/../x", 2, before)
    assert store(tmp_path).before("code/../x", 2) == before
    assert store(tmp_path).before("code/../x", 1) is None
    store(tmp_path).forget_before("code/../x", 2)
    assert store(tmp_path).before("code/../x", 2) is None


def test_a_damaged_record_is_an_error_and_not_an_absent_one(tmp_path: Path) -> None:
    kept = store(tmp_path)
    kept.save_base(Base(Tree({})))
    (kept.path / "base.json").write_text("{")
    with pytest.raises(StoreDamaged, match="something else wrote it"):
        _ = kept.base


def test_removing_a_store_leaves_those_of_other_runs(tmp_path: Path) -> None:
    one, other = store(tmp_path), RunStore(tmp_path / "state", tmp_path / "shop" / ".backedge" / "journal.db", "r-2")
    one.put(b"1")
    digest = other.put(b"1")
    one.remove()
    one.remove()
    assert not one.path.exists()
    assert other.get(digest) == b"1"


def test_a_journal_has_one_key_however_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "shop" / ".backedge").mkdir(parents=True)
    journal = tmp_path / "shop" / ".backedge" / "journal.db"
    (tmp_path / "link").symlink_to("shop")
    assert journal_key(journal) == journal_key(tmp_path / "link" / ".backedge" / ".." / ".backedge" / "journal.db")
    assert journal_key(journal).startswith("shop-")
    assert journal_key(journal) != journal_key(tmp_path / "journal.db")
    assert journal_key("postgresql://u@host/db") != journal_key("postgresql://u@host/db2")
    assert "/" not in journal_key("postgresql://u@host/../db")


def test_the_state_folder_follows_the_specification() -> None:
    assert state_home({"XDG_STATE_HOME": "/var/x"}) == Path("/var/x/backedge")
    assert state_home({"XDG_STATE_HOME": "relative"}) == state_home({}) == Path.home() / ".local/state/backedge"


@pytest.mark.slow
def test_a_killed_process_leaves_whole_records_only(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from tests.evidence.test_store import store\n"
        "kept = store(Path(sys.argv[1])); number = 0\n"
        "while True:\n"
        "    number += 1; kept.fingerprint = {str(n): 'x' * 50 for n in range(2000)}; kept.put(b'%d' % number * 9999)\n"
        "    print(number, flush=True)\n"
    )
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        kept = store(tmp_path)
        assert len(kept.fingerprint) == 2000
        for path in kept.path.glob("objects/*/*"):
            if not path.name.startswith("."):
                kept.get(path.name)
