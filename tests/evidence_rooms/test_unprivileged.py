"""All tests of rooms and of the sandbox pass for a user without privileges, too."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of that user. Those of pytest are closed to others."""
    made = Path(tempfile.mkdtemp(prefix="backedge-nobody-"))
    os.chown(made, NOBODY, NOBODY)
    yield made
    shutil.rmtree(made)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]


@pytest.fixture
def env(folder: Path) -> dict[str, str]:
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "XDG_"))},
        "HOME": str(folder),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), *site.getsitepackages()]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@pytest.fixture
def python(env: dict[str, str]) -> str:
    """An interpreter that this user can start, with our packages."""
    for each in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}", "/usr/bin/python3"):
        try:
            done = as_nobody([each, "-c", "import backedge.cli, msgspec, pytest, tests"], env)
        except OSError:
            continue
        if done.returncode == 0:
            return each
    pytest.skip("no Python that another user can start with our packages")


def as_nobody(argv: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=ROOT, env=env, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("file", ["test_rooms.py", "test_copies.py", "test_surroundings.py", "test_sandbox.py"])
def test_a_user_without_privileges_gets_the_same(file: str, folder: Path, env: dict[str, str], python: str) -> None:
    words = ["-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={folder}/base", "-v", str(HERE / file)]
    done = as_nobody([python, "-m", "pytest", *words], env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_a_mount_below_the_workspace_that_may_not_be_uncovered_leads_to_a_copy(
    folder: Path, env: dict[str, str], python: str
) -> None:
    workspace = folder / "ws"
    (workspace / "data").mkdir(parents=True)
    (workspace / "a.txt").write_text("a\n")
    for each in (workspace, workspace / "data", workspace / "a.txt"):
        os.chown(each, NOBODY, NOBODY)
    user = [python, str(HERE / "room_user.py"), "auto", str(workspace), str(folder / "scratch")]
    script = 'mount -t tmpfs -o mode=777 none "$1"; echo d > "$1/d.txt"; shift; exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"'
    inside = "pwd; cat data/d.txt; echo x > a.txt"
    argv = ["unshare", "--mount", "sh", "-ec", script, "sh", str(workspace / "data"), *user, inside]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    name, where, content, ended, changed, _ = done.stdout.splitlines()
    assert (name.split()[1], where, content, ended, changed) == ("copy", str(workspace), "d", "0 ", "a.txt")
    assert (workspace / "a.txt").read_text() == "a\n"
