"""Which tests are slow, and which random examples are tried.

`make test` leaves out the slow tests; `make slow` runs them, and .ci/run runs both. The random tests try the same
examples each time, so that luck does not decide whether a change lands. `make deep` tries others, and twenty times as
many of the properties.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "backedge",
    derandomize=os.environ.get("BACKEDGE_HYPOTHESIS") != "deep",
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("backedge")

# Agents of tests write down outside their workspace what they do. The tests of the sandbox switch it on themselves.
os.environ.setdefault("BACKEDGE_SANDBOX", "off")
_STATE = tempfile.mkdtemp(prefix="backedge-state-")
os.environ["XDG_STATE_HOME"] = _STATE

# A job that a shell script starts in the background ignores Ctrl-C, and one that nohup starts ignores a hangup. So would
# every program that these tests interrupt.
for sign, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(sign) == signal.SIG_IGN:
        signal.signal(sign, usual)


def pytest_unconfigure() -> None:
    shutil.rmtree(_STATE, ignore_errors=True)


TESTS = Path(__file__).parent
SLOW = (
    "agents/test_loop.py",
    "agents/test_recovery.py",
    "cheats/test_cheats.py",
    "cli/test_cases_",
    "cli/test_faults.py",
    "cli/test_hostile.py",
    "cli/test_killed.py",
    "cli/test_limits.py",
    "cli/test_processes.py",
    "cli/test_worktree.py",
    "cli_setup/test_demo.py",
    "cli_setup/test_patterns.py",
    "clis/",
    "compat/test_commands.py",
    "config/test_fuzz.py",
    "crash/",
    "stories/test_cases.py",
    "stories/test_working.py",
    "stories/test_worktrees.py",
    "test_where_to_change.py",
)
"""Files whose tests start many processes, run whole programs, or try many random documents."""
SLOW_TESTS = ("test_the_code_of_a_page_runs_and_prints_what_the_page_says", "test_the_demo_module_ends_verified")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        file = item.path.relative_to(TESTS).as_posix()
        if file.startswith(SLOW) or item.name.startswith(SLOW_TESTS):
            item.add_marker(pytest.mark.slow)
