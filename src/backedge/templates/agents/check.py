"""Plays a test run. With your own tests, let backedge read their report
instead:

run: [pytest, --junitxml, "{report}"]
report: junit
"""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def greets_by_name() -> None:
    assert loaded(Path("example/hello.py")).greet("Ada") == "Hello, Ada!", (
        "Ada must be greeted"
    )


def nobody_is_not_greeted() -> None:
    try:
        loaded(Path("example/hello.py")).greet("")
    except ValueError:
        return
    raise AssertionError("an empty name must be refused")


json.load(sys.stdin)
sys.dont_write_bytecode = True
tests = [
    test
    for path in sorted(Path("example").glob("test_*.py"))
    for name, test in vars(loaded(path)).items()
    if name.startswith("test_")
]
findings = []
for test in tests or [greets_by_name, nobody_is_not_greeted]:
    try:
        test()
    except Exception as error:  # noqa: BLE001 - any error is a finding
        # Each defect is a finding. Its text is its identity: the same text in
        # a later round is the same defect.
        findings.append(
            {
                "description": f"{test.__name__}: {error}",
                "severity": "high",
                "file": "example/hello.py",
            }
        )
    print(f"{test.__name__}", file=sys.stderr)
print(
    json.dumps(
        {"verdict": "fail" if findings else "pass", "findings": findings}
    )
)
