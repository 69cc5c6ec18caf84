"""Draws the parts of the documentation that come from the code: tables, the diagram of a loop, the references.

    python tools/draw_docs.py            write them
    python tools/draw_docs.py --check    fail if any of them is stale

A drawn part is between `<!-- drawn: NAME -->` and `<!-- /drawn -->`; everything else in a file is written by hand.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import draw_api
import draw_files
import replay_rounds

import backedge
from backedge.core import errors, events, model
from backedge.core.feedback.loop import FINAL, TRANSITIONS, LoopState
from backedge.core.findings.ledger import UNSETTLED
from backedge.core.workflow.limits import LIMITS, Limits
from backedge.core.workflow.profiles import PROFILES, Profile
from backedge.templates import PATTERNS, Found, rendered

ROOT = Path(__file__).resolve().parent.parent
PART = re.compile(r"(<!-- drawn: ([\w-]+) -->\n).*?(<!-- /drawn -->)", re.DOTALL)

# Loops

HABITS: dict[str, Callable[[Profile], str]] = {
    "scope": lambda profile: "" if profile.scope == "upstream" else f"scope `{profile.scope}`",
    "routes": lambda profile: "routes by category" if profile.routes else "",
    "review_passes_if": lambda profile: (
        f"reviews have `passes_if: {profile.review_passes_if}`" if profile.review_passes_if else ""
    ),
    "test_limits": lambda profile: (
        f"`tests` judges: {_differences(profile.test_limits)}" if profile.test_limits else ""
    ),
    "judges_in_order": lambda profile: (
        "judges of one step run in order, a failing one skips the rest" if profile.judges_in_order else ""
    ),
    "nearest_phase": lambda profile: (
        "a missing phase stands for the nearest earlier one" if profile.nearest_phase else ""
    ),
    "phase_words": lambda profile: "; ".join(
        f"`affected_phase` {word.capitalize()} means {' and '.join(phases)}" for word, phases in profile.phase_words
    ),
    "streaks_first": lambda profile: (
        "`same_finding` and `failures_in_a_row` are reported before limits on rounds" if profile.streaks_first else ""
    ),
}


def loop_states() -> str:
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {LoopState.NOTIFYING}"]
    for state, ways in TRANSITIONS.items():
        lines += [f"    {state} --> {end}: {why}" for why, end in ways.items()]
    lines += [f"    {state} --> [*]" for state in TRANSITIONS if state in FINAL]
    return "\n".join([*lines, "```"])


def limits() -> str:
    usual = Limits()
    rows = [(f"`{name}`", _bound(getattr(usual, name)), spec.meaning) for name, spec in LIMITS.items()]
    return _table(("limit", "default", "meaning"), rows)


def profiles() -> str:
    rows = []
    for name, profile in PROFILES.items():
        habits = [said for field in Profile.__struct_fields__[1:] if (said := HABITS[field](profile))]
        rows.append((f"`{name}`", _differences(profile.limits) or "as above", "; ".join(habits) or "–"))
    return _table(("profile", "limits that differ", "also"), rows)


def _differences(limits: Limits | None) -> str:
    assert limits is not None
    usual = Limits()
    changed = [name for name in Limits.__struct_fields__ if getattr(limits, name) != getattr(usual, name)]
    return ", ".join(f"`{name}` {_bound(getattr(limits, name))}" for name in changed)


def _bound(bound: float | bool | None) -> str:
    if bound is None or bound is False:
        return "off"
    return "on" if bound is True else f"{bound:g}"


def kinds() -> str:
    return ", ".join(f"`{kind}`" for kind in model.Kind)


def statuses() -> str:
    return ", ".join(f"`{status}`" for status in model.Status)


def open_finding() -> str:
    names = [f"`{status}`" for status in model.Status if status in UNSETTLED]
    return f"A finding is **open** while its status is {', '.join(names[:-1])} or {names[-1]}. Every other status settles it."


# References


def event_reference() -> str:
    return "\n\n".join(_event(kind) for kind in get_args(events.Event))


def _event(kind: type[Any]) -> str:
    name = f"`{kind.__name__}`. {_doc(kind)}".strip()
    return f"### `{kind.__struct_config__.tag}`\n\n{name}\n\n{_fields(kind)}"


def event_values() -> str:
    names = (
        "OutputDigest",
        "Change",
        "Finding",
        "FindingResolution",
        "Feedback",
        "Option",
        "Resolution",
        "Usage",
        "Breach",
    )
    values = [events.Sighting, *(getattr(model, name) for name in names)]
    return "\n\n".join(f"### {value.__name__}\n\n{_doc(value)}\n\n{_fields(value)}" for value in values)


def error_reference() -> str:
    rows = []
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.BackedgeError):
            public = f"`backedge.{name}`" if name in backedge.__all__ else f"`backedge.errors.{name}`"
            parent = "" if kind is errors.BackedgeError else f"`{kind.__mro__[1].__name__}`"
            rows.append((public, parent, _one_paragraph(_doc(kind))))
    return _table(("error", "is a", "what it says"), rows)


GROUPS = {
    "Defining": ("Workflow", "Step"),
    "Running": ("Engine", "Run", "run"),
    "What an agent is told": ("Briefing", "feedback_text"),
    "What an agent does and says": (
        "Attempt", "Outcome", "passed", "failed", "Finding", "FindingResolution", "Feedback", "Option", "Decision", "Usage",
        "Resolution",
    ),
    "What a run says": ("Report",),
    "Journals": ("SqliteJournal", "MemoryJournal"),
    "Errors": ("BackedgeError",),
}  # fmt: skip

PARTS = {
    "Briefing": (
        "backedge.core.briefing",
        ("FeedbackForAttempt", "BriefedFinding", "Request", "LoopResult", "EarlierRound"),
    ),
    "Report": (
        "backedge.analytics.report",
        ("StepReport", "LoopReport", "FindingReport", "EscalationReport", "RefusalReport", "UsageReport"),
    ),
    "Engine": ("backedge.ports", ("RunHead",)),
    "Run": ("backedge.core.briefing", ("Notice",)),
}
"""What the fields of public values hold: not imported by users, but read by them."""

FURTHER = {
    "backedge.errors": ("WorkflowError", "IllegalCommand", "FeedbackRefused", "JournalError", "RunHeld"),
    "backedge.testing": ("ScriptedAgent", "FakeClock", "CrashingJournal", "Crashed", "JournalContract"),
    "backedge.analytics.defects": ("defects", "Defect"),
    "backedge.analytics.loop_stats": ("loop_stats", "LoopStats"),
    "backedge.adapters.journals.audit": ("verify", "verify_all"),
    "backedge.ports": ("Journal", "Claims", "Append", "Record", "Clock", "Agent"),
}


def python_api() -> str:
    listed = [name for names in GROUPS.values() for name in names]
    left = sorted(set(backedge.__all__) - set(listed))
    text = []
    for title, names in {**GROUPS, **({"More": tuple(left)} if left else {})}.items():
        text.append(f"## {title}")
        for name in names:
            text.append(_entry(getattr(backedge, name), name, 3))
            module, parts = PARTS.get(name, ("", ()))
            text += [_entry(getattr(importlib.import_module(module), part), part, 4) for part in parts]
    return "\n\n".join(text)


def further_api() -> str:
    text = []
    for module, names in FURTHER.items():
        text.append(f"## `{module}`")
        text += [_entry(getattr(importlib.import_module(module), name), name, 3) for name in names]
    return "\n\n".join(text)


def _entry(thing: Any, name: str, depth: int) -> str:
    heading = f"{'#' * depth} `{name}`"
    if inspect.isfunction(thing):
        return f"{heading}\n\n{_signature(thing, _definition(thing), name)}\n\n{_doc(thing)}"
    text = [heading]
    node = _definition(thing)
    assert isinstance(node, ast.ClassDef)
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    maker = next((each for each in methods if each.name == "__init__"), None)
    if maker is not None and not issubclass(thing, BaseException) and thing is not backedge.Run:
        text.append(_signature(thing, maker, name))
    text += [each for each in (_doc(thing), _fields(thing)) if each]
    text += [
        _method(thing, each) for each in methods if not each.name.startswith("_") and not name.endswith("Contract")
    ]
    return "\n\n".join(text)


def _method(owner: Any, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    said = _one_paragraph(ast.get_docstring(node) or "")
    if any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list):
        assert node.returns is not None
        return f"- **`.{node.name}`** `{ast.unparse(node.returns)}`" + (f": {said}" if said else "")
    call = _call(owner, node)
    line = f"- **`{'await ' if isinstance(node, ast.AsyncFunctionDef) else ''}.{node.name}`** `{call}`"
    return line + (f": {said}" if said else "")


def _signature(owner: Any, node: ast.AST, name: str) -> str:
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    word = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    whole = f"{word}{name}{_call(owner, node)}"
    if len(whole) > 110:
        returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
        whole = "\n".join([f"{word}{name}(", *(f"    {each}," for each in _parameters(owner, node)), f"){returns}"])
    return f"```text\n{whole}\n```"


def _call(owner: Any, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    return f"({', '.join(_parameters(owner, node))}){returns}"


def _parameters(owner: Any, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    plain = [*node.args.posonlyargs, *node.args.args]
    defaults = [None] * (len(plain) - len(node.args.defaults)) + list(node.args.defaults)
    for argument, default in zip(plain, defaults, strict=True):
        if argument.arg != "self":
            yield _parameter(owner, argument, default)
    if node.args.vararg:
        yield "*" + _parameter(owner, node.args.vararg, None)
    elif node.args.kwonlyargs:
        yield "*"
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        yield _parameter(owner, argument, default)
    if node.args.kwarg:
        yield "**" + _parameter(owner, node.args.kwarg, None)


def _parameter(owner: Any, argument: ast.arg, default: ast.expr | None) -> str:
    kind = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    return f"{argument.arg}{kind}" + (f" = {_value(owner, default)}" if default else "")


def _value(owner: Any, default: ast.expr) -> str:
    """A default as a reader needs it: the value of a constant, not its name."""
    if isinstance(default, ast.Name | ast.Attribute):
        value: object = vars(inspect.getmodule(owner))
        for name in ast.unparse(default).split("."):
            value = value[name] if isinstance(value, dict) else getattr(value, name)
        return f"{value:_}" if isinstance(value, int) else repr(value)
    return ast.unparse(default)


# Reading source, where annotations and the sentences below fields are as their author wrote them


def _fields(kind: type[Any]) -> str:
    rows = []
    for owner in reversed(kind.__mro__[:-1]):
        if not owner.__module__.startswith("backedge"):
            continue
        node = _definition(owner)
        assert isinstance(node, ast.ClassDef)
        for place, each in enumerate(node.body):
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                after = node.body[place + 1] if place + 1 < len(node.body) else None
                default = f"`{_default(each.value)}`" if each.value else ""
                rows.append((f"`{each.target.id}`", f"`{ast.unparse(each.annotation)}`", default, _sentence(after)))
    return _table(("field", "type", "default", "what it is"), rows) if rows else ""


def _default(value: ast.expr) -> str:
    text = ast.unparse(value)
    return "{}" if text == "field(default_factory=dict)" else text


def _sentence(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return _one_paragraph(inspect.cleandoc(node.value.value))
    return ""


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def _definition(thing: Any) -> ast.AST:
    module = inspect.getmodule(thing)
    assert module is not None
    for node in _tree(module).body:
        if getattr(node, "name", None) == thing.__name__:
            return node
    raise LookupError(f"{thing!r} is not defined at the top of {module.__name__}")


def _doc(thing: Any) -> str:
    node = _definition(thing)
    assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    return _paragraphs(ast.get_docstring(node) or "")


def _paragraphs(text: str) -> str:
    return "\n\n".join(_one_paragraph(each) for each in text.split("\n\n"))


def _one_paragraph(text: str) -> str:
    return " ".join(text.split())


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if all(not row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    lines = [_row(head), "|" + "---|" * len(head), *(_row(row) for row in rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# The source


def source_map() -> str:
    source = ROOT / "src" / "backedge"
    text = []
    for folder in (source, *sorted(path for path in source.rglob("*") if path.is_dir())):
        rows = [(f"`{path.name}`", said) for path in sorted(folder.glob("*.py")) if (said := _first_sentence(path))]
        if rows:
            text += [f"## `{folder.relative_to(source.parent)}/`", _table(("file", "what it is"), rows)]
    return "\n\n".join(text)


def _first_sentence(path: Path) -> str:
    said = _one_paragraph(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")
    return re.split(r"(?<=[.!?]) (?=[A-Z])", said)[0]


def import_rule() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    return f"`{' > '.join(layer.replace('backedge.', '') for layer in layers)}`"


def template(name: str) -> str:
    """A workflow file as `init` writes it without agent CLIs."""
    return f"```yaml\n{rendered(name, name, Found(), '')['backedge.yaml']}```"


DRAWINGS: dict[str, Callable[[], str]] = {
    **{f"pattern-{name}": partial(template, name) for name in PATTERNS},
    "loop-states": loop_states,
    "limits": limits,
    "profiles": profiles,
    "kinds": kinds,
    "statuses": statuses,
    "open-finding": open_finding,
    "events": event_reference,
    "event-values": event_values,
    "errors": error_reference,
    "python-api": python_api,
    "further-api": further_api,
    "map": source_map,
    "import-rule": import_rule,
    "workflow-file": draw_files.workflow_file,
    "agent-clis": draw_files.agent_clis,
    "prompt-words": draw_files.prompt_words,
    "briefing-keys": draw_files.briefing_keys,
    "outcome-keys": draw_files.outcome_keys,
    "sizes": draw_files.sizes,
    "placeholders": draw_files.placeholders,
    "commands": draw_files.commands,
    "exit-codes": draw_files.exit_codes,
    "json-report": draw_files.json_report,
    "json-inbox": draw_files.json_inbox,
    "review-rounds": replay_rounds.table,
    "http-endpoints": draw_api.endpoints,
    "http-problems": draw_api.problems,
}


def drawn(text: str) -> str:
    """A document with its drawn parts up to date."""
    return PART.sub(lambda part: f"{part[1]}{DRAWINGS[part[2]]()}\n{part[3]}", text)


FILES: dict[str, Callable[[], str]] = {"docs/reference/openapi.json": draw_api.openapi_text}
"""Files that are drawn as a whole."""


def documents() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def main(arguments: list[str]) -> int:
    check = arguments == ["--check"]
    if arguments and not check:
        print(__doc__, file=sys.stderr)
        return 2
    stale = []
    for path in [*documents(), *(ROOT / name for name in FILES)]:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        whole = FILES.get(str(path.relative_to(ROOT)))
        after = drawn(before) if whole is None else whole()
        if before != after:
            stale.append(path.relative_to(ROOT))
            if not check:
                path.write_text(after, encoding="utf-8")
    for path in stale:
        print(f"{path} {'is stale: run python tools/draw_docs.py' if check else 'drawn'}")
    return 1 if stale and check else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
