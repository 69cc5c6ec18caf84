"""What `import backedge` gives, and what it does: nothing but import."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import backedge
import backedge.errors
import backedge.testing
from backedge.core import errors as core_errors

PUBLIC = {
    "Attempt",
    "BackedgeError",
    "Briefing",
    "FindingResolution",
    "Decision",
    "Engine",
    "Feedback",
    "Finding",
    "MemoryJournal",
    "Option",
    "Outcome",
    "Report",
    "Resolution",
    "Run",
    "SqliteJournal",
    "Step",
    "Usage",
    "Workflow",
    "failed",
    "feedback_text",
    "passed",
    "run",
}
"""Change this only together with the documentation."""

TESTING = {"Crashed", "CrashingJournal", "FakeClock", "JournalContract", "ScriptedAgent"}


def test_the_public_names_are_the_documented_ones() -> None:
    assert set(backedge.__all__) == PUBLIC
    assert list(backedge.__all__) == sorted(backedge.__all__, key=lambda name: (name[0].islower(), name))
    assert set(backedge.testing.__all__) == TESTING
    submodules = {name for name in vars(backedge) if inspect.ismodule(getattr(backedge, name))}
    extra = {name for name in vars(backedge) if not name.startswith("_")} - PUBLIC - submodules
    assert not extra


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_says_what_it_promises(name: str) -> None:
    thing = getattr(backedge, name)
    assert inspect.getdoc(thing), f"{name} has no docstring"
    assert not (thing.__doc__ or "").startswith(f"{name}("), "a generated docstring promises nothing"


METHODS = [
    (cls.__name__, name, member)
    for cls in (getattr(backedge, each) for each in sorted(PUBLIC))
    if inspect.isclass(cls)
    for name, member in vars(cls).items()
    if not name.startswith("_") and inspect.isfunction(member)
]


@pytest.mark.parametrize(("owner", "name", "member"), METHODS, ids=lambda each: each if isinstance(each, str) else "")
def test_a_public_method_is_typed_and_says_what_it_promises(owner: str, name: str, member: Any) -> None:
    signature = inspect.signature(member)
    assert signature.return_annotation is not inspect.Signature.empty
    untyped = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.name != "self" and parameter.annotation is inspect.Parameter.empty
    ]
    assert not untyped
    assert member.__doc__, f"{owner}.{name} has no docstring"


@pytest.mark.parametrize("name", sorted(TESTING))
def test_the_tools_for_tests_are_there(name: str) -> None:
    assert inspect.getdoc(getattr(backedge.testing, name))


def test_every_error_can_be_caught_from_one_place() -> None:
    known = {
        name
        for name, kind in vars(core_errors).items()
        if isinstance(kind, type) and issubclass(kind, backedge.BackedgeError)
    }
    assert set(backedge.errors.__all__) == known
    tree = inspect.getdoc(backedge.errors) or ""
    assert [name for name in known if name not in tree] == []
    for name in known:
        assert getattr(backedge.errors, name) is getattr(core_errors, name)
        assert inspect.getdoc(getattr(backedge.errors, name))


LOOK = """
import json, os, sys, threading
opened, sockets = [], []
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        opened.append(str(arguments[0]))
    elif event.startswith(("socket.", "subprocess.", "os.fork", "os.mkdir", "os.remove", "os.rename", "sqlite3.connect")):
        sockets.append(event)
sys.dont_write_bytecode = True
sys.addaudithook(hook)
before = set(sys.modules)
import backedge
for name in backedge.__all__:  # they may be looked up only when they are used
    getattr(backedge, name)
print(json.dumps({
    "opened": opened, "sockets": sockets, "threads": threading.active_count(),
    "modules": sorted({name.partition(".")[0] for name in set(sys.modules) - before}),
    "loop": "asyncio" in sys.modules and sys.modules["asyncio"].events._get_running_loop() is not None,
    "files": os.listdir("."),
}))
"""


def test_importing_does_nothing_but_import(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOOK], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    seen = json.loads(done.stdout)
    assert seen["opened"] == []
    assert seen["sockets"] == []
    assert seen["files"] == []
    assert seen["threads"] == 1
    assert not seen["loop"]
    assert not set(seen["modules"]) & {"pydantic", "pydantic_core", "rich", "pytest", "hypothesis", "sqlite3", "yaml"}


def test_the_tools_for_tests_need_no_pytest() -> None:
    program = "import sys, backedge.testing; assert 'pytest' not in sys.modules; assert 'hypothesis' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(backedge.__file__).parent / "py.typed").exists()


def test_the_command_runs_as_a_module_too() -> None:
    done = subprocess.run([sys.executable, "-m", "backedge", "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: backedge ")
