"""Changes the core in small ways and lists the changes that no test notices: `tools/mutate.py core/workflow/limits.py core/feedback/loop.py …`.

The mutants are in a copy below build/, so that the checkout does not change.
"""

from __future__ import annotations

import ast
import copy
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutants"
SLOW = ("test_properties.py", "test_properties_crash.py")
"""Tests that run last, only for mutants that survived the others. Tests named after the module run first."""
PATIENCE = 600

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """The replacements for a node."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
            yield ast.Compare(node.left, [_COMPARISONS[type(op)]()], node.comparators)
        case ast.BoolOp(op=ast.And()):
            yield ast.BoolOp(ast.Or(), node.values)
        case ast.BoolOp(op=ast.Or()):
            yield ast.BoolOp(ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.Constant(value=bool() as flag):
            yield ast.Constant(not flag)
        case ast.Constant(value=int() | float() as number):
            yield ast.Constant(number + 1)
        case ast.BinOp(op=ast.Add()):
            yield ast.BinOp(node.left, ast.Sub(), node.right)
        case ast.BinOp(op=ast.Sub()):
            yield ast.BinOp(node.left, ast.Add(), node.right)
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Continue() | ast.Break() | ast.Raise():
            yield ast.Pass()
        case ast.If() if not _for_the_type_checker(node.test):
            yield ast.If(ast.Constant(value=False), node.body, node.orelse)


def _for_the_type_checker(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _exempt(node: ast.AST) -> list[ast.AST]:
    """Parts without behaviour: assertions, annotations, and how a class is declared."""
    match node:
        case ast.Assert():
            return [node]
        case ast.AnnAssign() | ast.arg() if node.annotation is not None:
            return [node.annotation]
        case ast.FunctionDef() if node.returns is not None:
            return [node.returns]
        case ast.ClassDef():
            return list(node.keywords)
        case _:
            return []


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Every node, with its field and index in its parent."""
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            children = value if isinstance(value, list) else [value]
            for index, child in enumerate(children):
                if isinstance(child, ast.AST):
                    yield parent, name, index if isinstance(value, list) else None, child


def mutants(source: str) -> Iterator[tuple[int, str, str]]:
    """Each mutant: its line, a description of the change, and the whole changed source."""
    tree = ast.parse(source)
    exempt = {id(inner) for node in ast.walk(tree) for part in _exempt(node) for inner in ast.walk(part)}
    for parent, name, index, child in places(tree):
        if id(child) in exempt:
            continue
        for variant in variants(copy.deepcopy(child)):
            held = getattr(parent, name)
            if index is None:
                setattr(parent, name, variant)
            else:
                held[index] = variant
            ast.fix_missing_locations(tree)
            line = getattr(child, "lineno", 0)
            yield line, f"{_shown(child)}  →  {_shown(variant)}", ast.unparse(tree)
            if index is None:
                setattr(parent, name, child)
            else:
                held[index] = child


def _shown(node: ast.AST) -> str:
    return ast.unparse(node).replace("\n", " ")[:90]


def survives(worker: Path, module: str, mutated: str) -> bool:
    """Whether the tests of the core still pass with a changed module."""
    target = worker / "src" / "backedge" / module
    original = target.read_text()
    target.write_text(mutated)
    near = [str(path) for stem in (target.stem, "cases") for path in sorted(worker.glob(f"tests/core/test_{stem}*.py"))]
    quick = [word for name in SLOW for word in ("--ignore", f"tests/core/{name}")]
    slow = [f"tests/core/{name}" for name in SLOW]
    try:
        return _pass(worker, near) and _pass(worker, ["tests/core", *quick]) and _pass(worker, slow)
    finally:
        target.write_text(original)


def _pass(worker: Path, arguments: list[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    places = {"PYTHONPATH": str(worker / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=worker, env={**os.environ, **places}, capture_output=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def run(modules: list[str], workers: int) -> int:
    """Try all mutants of the modules; returns how many survived."""
    shutil.rmtree(WORK, ignore_errors=True)
    free = []
    for number in range(workers):
        worker = WORK / str(number)
        for folder in ("src", "tests"):
            shutil.copytree(ROOT / folder, worker / folder, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", worker)
        free.append(worker)
    if not _pass(free[0], ["tests/core"]):
        raise SystemExit("the tests fail without any mutation: fix that first")

    def tried(case: tuple[str, int, str, str]) -> tuple[str, int, str, bool]:
        module, line, change, mutated = case
        worker = free.pop()
        try:
            return module, line, change, survives(worker, module, mutated)
        finally:
            free.append(worker)

    cases = [
        (module, *mutant) for module in modules for mutant in mutants((free[0] / "src/backedge" / module).read_text())
    ]
    survivors = 0
    with ThreadPoolExecutor(workers) as pool:
        for module, line, change, alive in pool.map(tried, cases):
            if alive:
                survivors += 1
                print(f"{module}:{line}: {change}", flush=True)
    print(f"{len(cases)} mutants, {len(cases) - survivors} killed, {survivors} survived")
    return survivors


if __name__ == "__main__":
    raise SystemExit(1 if run(sys.argv[1:], max(1, os.cpu_count() or 1)) else 0)
