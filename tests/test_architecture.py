"""The import rule: arrows point inward, the rules are pure, and kinds of adapters do not know each other."""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "backedge"
INNER = {
    "core": ("core",),
    "compat": ("core", "compat"),
    "analytics": ("core", "compat", "analytics"),
    "stories/rules": ("core", "compat", "stories.rules"),
}
"""The packages of pure rules, and what each may import of ours."""
PURE = [(package, path) for package in INNER for path in sorted((PACKAGE / package).rglob("*.py"))]
FORBIDDEN = {
    "asyncio",
    "datetime",
    "logging",
    "os",
    "pathlib",
    "random",
    "secrets",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
    "apsw",
    "pydantic",
    "rich",
}
CALLS_THE_WORLD = {"open", "print", "input", "exec", "eval", "__import__"}


def syntax(path: Path) -> ast.Module:
    """The tree of a file. Python 3.11 cannot parse while the collector parses too (to print a traceback)."""
    gc.disable()
    try:
        return ast.parse(path.read_text())
    finally:
        gc.enable()


def imported(tree: ast.AST) -> set[str]:
    """The full names of all modules that are imported anywhere, in functions and under TYPE_CHECKING too."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            found.add(node.module or "")
    return found


def test_the_contracts_of_the_import_linter_are_kept() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([str(lint), "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(("package", "path"), PURE, ids=lambda each: str(each).removeprefix(f"{PACKAGE}/"))
def test_a_rule_touches_nothing_but_values(package: str, path: Path) -> None:
    tree = syntax(path)
    modules = imported(tree)
    assert not {name.partition(".")[0] for name in modules} & FORBIDDEN
    ours = {name for name in modules if name.split(".")[0] == "backedge"}
    inner = tuple(f"backedge.{name}" for name in INNER[package])
    assert all(name.startswith(inner) for name in ours), "arrows point inward"
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & CALLS_THE_WORLD
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Global | ast.AsyncFunctionDef | ast.Await)]


def test_the_engine_knows_no_adapter() -> None:
    for path in (PACKAGE / "engine").rglob("*.py"):
        ours = {name for name in imported(syntax(path)) if name.startswith("backedge")}
        assert not {
            name for name in ours if not name.startswith(("backedge.core", "backedge.engine", "backedge.ports"))
        }


def modules_below(package: Path) -> dict[str, Path]:
    """Every module of a package by its full name."""
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(package.rglob("*.py"))
    }


def imports_of(tree: ast.AST, known: Collection[str]) -> set[str]:
    """The known modules that are imported anywhere, also in functions and under TYPE_CHECKING. `from a import b` imports
    the module a.b if there is one, else a."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module or "" for name in inner}
    return found & set(known)


def first_cycle(imports: Mapping[str, Collection[str]]) -> list[str]:
    """The modules of one import cycle, in order; empty if there is none."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for each in sorted(imports[name]):
            if cycle := visit(each, [*path, name]):
                return cycle
        done.add(name)
        return []

    return next((cycle for name in imports if (cycle := visit(name, []))), [])


@pytest.mark.parametrize("package", ["engine", "core"])
def test_no_modules_import_each_other_in_a_circle_not_even_for_the_type_checker(package: str) -> None:
    modules = modules_below(PACKAGE / package)
    imports = {name: imports_of(syntax(path), modules) - {name} for name, path in modules.items()}
    assert first_cycle(imports) == []


def test_a_circle_that_only_the_type_checker_sees_is_found() -> None:
    sources = {
        "p.a": "from p import b",
        "p.b": "from p.c import thing",
        "p.c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import A",
    }
    imports = {name: imports_of(ast.parse(source), sources) for name, source in sources.items()}
    assert first_cycle(imports) == ["p.a", "p.b", "p.c", "p.a"]
    assert first_cycle({**imports, "p.c": set()}) == []


def test_pydantic_is_imported_where_it_is_used_and_nowhere_else() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path != PACKAGE / "adapters" / "agents" / "models.py":
            names = {name.partition(".")[0] for name in imported(syntax(path))}
            assert "pydantic" not in names, path


def test_no_module_swallows_every_error_in_silence() -> None:
    """`except Exception: pass` is how work gets lost: whoever catches everything says why, and does something."""
    silent = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.ExceptHandler):
                caught = ast.unparse(node.type) if node.type else ""
                nothing = all(isinstance(each, ast.Pass) for each in node.body)
                if caught in ("", "Exception", "BaseException") and nothing:
                    silent.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert not silent


def test_what_the_type_checker_must_overlook_says_why() -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if "# type: ignore" in line and not re.search(r"# type: ignore\[[^]]+\]  # \w", line)
    ]
    assert bare == []
