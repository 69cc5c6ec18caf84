"""What the documentation says is true: its code runs and prints what it says, its tables are those of the code.

How blocks are read, in the order of the page:
- a block that begins with the name of a file in a comment (`# agents/code.py`, `// agents/code.js`) is saved as that file;
- any other python block runs, all of one page in one namespace and one folder;
- in a console block the commands after `$` run in the same folder;
- a text block right after one of these is what it prints, on stderr too if it is our command; `…` stands for
  anything on its line, and at the beginning of a line for any number of lines;
- an sh block is for the reader's machine: its command lines are only held against the parser, as are those in sentences;
- a yaml block is a workflow file that `backedge check` accepts, or a file of somebody else that has a name.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import click
import pytest

import backedge
import backedge.testing
from backedge.catalog import AGENT_CLIS
from backedge.cli.commands import COMMANDS, main
from backedge.config.schema import SCHEMA
from backedge.core import errors
from backedge.core.events import Event
from backedge.core.feedback.loop import TRANSITIONS, LoopState
from backedge.core.model import Feedback, Kind, Status
from backedge.core.workflow.limits import Limits
from backedge.core.workflow.profiles import PROFILES
from backedge.engine.protocol import parse_outcome, to_feedback
from backedge.templates import PATTERNS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *sorted(DOCS.glob("tutorial*.md")),
    *sorted((DOCS / "how-to").rglob("*.md")),
    DOCS / "reference" / "agent-protocol.md",
    DOCS / "reference" / "json.md",
]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAVED = re.compile(r"(?:#|//) ((?:[\w.-]+/)*[\w.-]+\.\w+)\n")
MARK = "=== block "


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int
    output: str | None
    json: str | None

    @property
    def file(self) -> str | None:
        """The name of the file that it is."""
        saved = SAVED.match(self.code)
        return saved[1] if saved and self.language not in ("text", "console") else None


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    found = list(BLOCK.finditer(text))
    for place, match in enumerate(found):
        after = found[place + 1] if place + 1 < len(found) else None
        follows = after is not None and not text[match.end() : after.start()].strip()
        shown = {after[1]: after[2]} if after is not None and follows else {}
        line = text[: match.start(2)].count("\n") + 1
        yield Block(match[1], match[2], line, shown.get("text"), shown.get("json"))


def script_of(page: Path) -> str:
    """One program that does what the blocks of a page do, saying where each begins."""
    parts = ["import pathlib, subprocess, sys", "space = {'__name__': '__main__'}"]
    for number, block in enumerate(blocks(page)):
        parts.append(f"print({f'{MARK}{number}'!r}, flush=True)")
        if block.file:
            parts.append(f"pathlib.Path({block.file!r}).parent.mkdir(parents=True, exist_ok=True)")
            parts.append(f"pathlib.Path({block.file!r}).write_text({block.code!r}, encoding='utf-8')")
        elif block.language == "python":
            # Empty lines in front make tracebacks name the line of the page.
            code = "\n" * (block.line - 1) + block.code
            parts.append(f"exec(compile({code!r}, {name_of(page)!r}, 'exec'), space)")
        elif block.language == "console":
            for command in commands(block.code):
                # Some commands are there to be killed; tests have to pass.
                more = ", stderr=subprocess.STDOUT" if re.match(r"(timeout .*|[A-Z_]+=\S* )?backedge ", command) else ""
                parts.append(f"subprocess.run({command!r}, shell=True, check={'python -m pytest' in command}{more})")
        parts.append("sys.stdout.flush()")
    return "\n".join(parts)


def commands(code: str) -> list[str]:
    return [line.removeprefix("$ ") for line in code.splitlines() if line.startswith("$ ")]


def environment(*first: Path) -> dict[str, str]:
    """That of a user who has installed backedge: it and its Python are found first."""
    path = os.pathsep.join([*map(str, first), str(Path(sys.executable).parent), os.environ["PATH"]])
    left = ("NO_COLOR", "FORCE_COLOR", "COLUMNS")
    return {**{name: each for name, each in os.environ.items() if name not in left}, "PATH": path}


@pytest.fixture
def draw_docs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("draw_docs")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    folder, script = tmp_path / "project", tmp_path / "page.py"
    folder.mkdir()
    script.write_text(script_of(page), encoding="utf-8")
    if "[node, " in page.read_text(encoding="utf-8") and shutil.which("node") is None:
        pytest.skip("node is not installed")
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", script],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, f"{name_of(page)}: {done.stderr}"
    parts = (part.partition("\n") for part in f"\n{done.stdout}".split(f"\n{MARK}")[1:])
    printed = {number: said for number, _, said in parts}
    for number, block in enumerate(blocks(page)):
        if block.output is not None:
            got = printed[str(number)].strip()
            assert fits(got, block.output), f"{name_of(page)}:{block.line} printed\n{got}\n{done.stderr}"
        if block.json is not None and block.language == "console":
            got = printed[str(number)].strip()
            assert has(json.loads(got), json.loads(block.json)), f"{name_of(page)}:{block.line} printed\n{got}"


def fits(got: str, shown: str) -> bool:
    """Whether a program printed what a page shows: `…` stands for anything in a line, and at its start for whole lines. A
    number that is longer stands further to the left."""
    lines, wanted = got.split("\n"), shown.strip().split("\n")

    @cache
    def fit(line: int, want: int) -> bool:
        if want == len(wanted):
            return line == len(lines)
        pattern = re.sub(r"^(\\ )+…", " *…", re.escape(wanted[want])).replace("…", ".*")
        last = len(lines) if wanted[want].startswith("…") else min(line + 1, len(lines))
        return any(re.fullmatch(pattern, lines[at]) and fit(at + 1, want + 1) for at in range(line, last))

    return fit(0, 0)


def has(got: Any, shown: Any) -> bool:
    """Whether a JSON value has the shape that a page shows: all keys of its objects, and of the first item of its lists.
    More keys may be added."""
    if isinstance(shown, dict):
        return isinstance(got, dict) and all(key in got and has(got[key], each) for key, each in shown.items())
    if isinstance(shown, list):
        return isinstance(got, list) and (not shown or (bool(got) and has(got[0], shown[0])))
    number = int | float
    return type(got) is type(shown) or (isinstance(got, number) and isinstance(shown, number)) or None in (got, shown)


def test_a_shape_has_the_shown_keys_and_may_have_more() -> None:
    assert has({"a": 1, "b": [{"c": "x", "d": 2.0}]}, {"b": [{"c": "", "d": 0}]})
    assert not has({"a": 1}, {"b": 1})
    assert not has({"a": "1"}, {"a": 1})
    assert not has([], [{"a": 1}])


def test_dots_stand_for_anything_but_not_for_lines_within_a_line() -> None:
    assert fits("a\nb\nc", "a\n…\nc")
    assert fits("took 3 s", "took … s")
    assert not fits("took\n3 s", "took … s")
    assert not fits("a\nb", "a")


# What is not run is held against the code that would read it


def all_blocks(*languages: str) -> list[Any]:
    found = [(page, block) for page in DOCUMENTS for block in blocks(page) if block.language in languages]
    return [pytest.param(page, block, id=f"{name_of(page)}:{block.line}") for page, block in found]


def workflow_files() -> list[Any]:
    """Every yaml block but those that are files of somebody else."""
    return [each for each in all_blocks("yaml") if not (each.values[1].file or "").startswith(".")]


@pytest.mark.parametrize(("page", "block"), workflow_files())
def test_a_workflow_file_is_one_that_check_accepts(page: Path, block: Block, tmp_path: Path) -> None:
    for other in blocks(page):
        if other.file and other.language != "yaml":
            (tmp_path / other.file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / other.file).write_text(other.code, encoding="utf-8")
    for name in AGENT_CLIS:
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "backedge.yaml").write_text(block.code, encoding="utf-8")
    done = subprocess.run(
        ["backedge", "check"],
        cwd=tmp_path,
        env=environment(tmp_path / "bin"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{name_of(page)}:{block.line}: {done.stderr}"


def command_lines() -> list[Any]:
    """Every command line of ours in a block, whatever stands before and after it."""
    found = []
    for page in DOCUMENTS:
        for block in blocks(page):
            if block.language in ("sh", "console", "yaml"):
                for line in block.code.splitlines():
                    for part in re.split(
                        r"&&|\|\||[;|>&#]", line.strip().removeprefix("$ ").removeprefix("- ").removeprefix("run: ")
                    ):
                        if re.match(r"backedge [a-z-]", part.strip()):
                            found.append(pytest.param(part.strip(), id=f"{name_of(page)}: {part.strip()}"))
    return found


@pytest.mark.parametrize("line", command_lines())
def test_a_command_line_is_one_that_the_parser_takes(line: str) -> None:
    words = shlex.split(line)[1:]
    command: click.Command = main
    context = click.Context(main, info_name="backedge")
    while isinstance(command, click.Group):
        _, found, words = command.resolve_command(context, words)
        assert found is not None
        command, context = found, click.Context(found, parent=context)
        if "--help" in words or (isinstance(command, click.Group) and not words):
            return
        if isinstance(command, click.Group) and command.invoke_without_command and words[0].startswith("-"):
            break  # the group itself, such as `backedge serve --open`
    command.make_context(line, words)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_commands_in_sentences_exist_with_their_options(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for said in re.findall(r"`backedge ([a-z][^`]*)`", text):
        words = said.split()
        name = " ".join(words[:2]) if " ".join(words[:2]) in commands_by_name() else words[0]
        assert name in commands_by_name(), f"{name_of(path)} says `backedge {said}`"
        known = {option for each in commands_by_name()[name].params for option in (*each.opts, *each.secondary_opts)}
        for option in re.findall(r"(?<!\S)--[a-z-]+", said):
            assert option in known, f"{name_of(path)} says `backedge {said}`"


@cache
def commands_by_name() -> Mapping[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        found[name] = command
        if isinstance(command, click.Group):
            found |= {f"{name} {word}": each for word, each in command.commands.items()}
    return found


def test_every_command_is_in_the_reference_with_its_options() -> None:
    text = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    for name, command in commands_by_name().items():
        part = text.split(f"## `backedge {name}`\n")[1].split("\n## ")[0].split("\n### ")[0]
        for option in (each for each in command.params if isinstance(each, click.Option)):
            for word in (max(option.opts, key=len), *option.secondary_opts):
                assert f"`{word}`" in part, f"{name} {option.opts}"


def test_every_command_has_an_example() -> None:
    for name, command in commands_by_name().items():
        assert "Example:\n  backedge " in inspect.cleandoc(command.help or ""), name


def test_every_key_of_the_workflow_file_is_in_the_reference() -> None:
    text = (DOCS / "reference" / "workflow-file.md").read_text(encoding="utf-8")

    def check(schema: Mapping[str, Any]) -> None:
        for key, value in schema.get("properties", {}).items():
            assert f"`{key}`" in text, key
            check(value)
        for more in (schema.get("additionalProperties"), schema.get("items"), *schema.get("anyOf", ())):
            if isinstance(more, dict):
                check(more)

    check(SCHEMA)


def test_the_environment_of_an_agent_is_the_documented_one(tmp_path: Path) -> None:
    (tmp_path / "backedge.yaml").write_text(
        "name: env\nsteps:\n  a: {run: [sh, -c, \"env > names; echo '{}'\"]}\n", encoding="utf-8"
    )
    ran(tmp_path, "run", "--quiet")
    has = set(re.findall(r"^(BACKEDGE_\w+)=", (tmp_path / "names").read_text(encoding="utf-8"), re.MULTILINE))
    text = (DOCS / "reference" / "agent-protocol.md").read_text(encoding="utf-8")
    assert has - set(os.environ) == set(re.findall(r"^\| `(BACKEDGE_\w+)` \|", text, re.MULTILINE))


def ran(folder: Path, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        ["backedge", *words], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def test_the_json_of_a_run_has_the_documented_keys(tmp_path: Path) -> None:
    question = '{"output": 1, "feedback": [{"kind": "context_request", "to": "human", "message": "which?",'
    question += ' "options": [{"option": "a"}]}]}'
    failing = '{"verdict": "fail", "findings": ["bad"]}'.replace('"bad"', '{"description": "bad"}')
    (tmp_path / "a.json").write_text(question, encoding="utf-8")
    (tmp_path / "b.json").write_text(failing, encoding="utf-8")
    (tmp_path / "backedge.yaml").write_text(
        "name: shapes\nlimits: {rounds_per_loop: 1}\nsteps:\n"
        "  a: {run: [cat, a.json]}\n  c: {run: [echo, '{}']}\n  b: {reviews: c, run: [cat, b.json]}\n",
        encoding="utf-8",
    )
    ran(tmp_path, "run", "--quiet", code=3)
    ran(tmp_path, "decide", "E-1", "resolve", "--option", "a")
    ran(tmp_path, "feedback", "raise", "--kind", "fix_request", "--to", "b", "--message", "no", code=2)
    got = json.loads(ran(tmp_path, "show", "--json"))
    offers = [offer for packet in got["escalations"] for offer in packet["offers"]]
    places = {
        "The whole": [got],
        "`steps.NAME`": list(got["steps"].values()),
        "`loops[]`": got["loops"],
        "`findings[]`": got["findings"],
        "`escalations[]`": got["escalations"],
        "`refused[]`": got["refused"],
        "`usage`": [got["usage"]],
        "`breach`": [packet["breach"] for packet in got["escalations"] if packet["breach"]],
        "`resolution`": [loop["resolution"] for loop in got["loops"] if loop["resolution"]],
        "`offers[]`": offers,
    }
    text = (DOCS / "reference" / "json.md").read_text(encoding="utf-8")
    for place, objects in places.items():
        part = text.split(f"### {place}\n")[1].split("\n#")[0]
        assert objects, place
        for each in objects:
            assert list(each) == re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE), place


# What is drawn and listed


def test_the_example_of_the_readme_is_short_and_prints_the_outcome() -> None:
    page = list(blocks(ROOT / "README.md"))
    example = next(block for block in page if block.code.startswith("# users.py\n"))
    run = next(block for block in page if block.code == "$ python users.py\n")
    assert len([line for line in example.code.splitlines()[1:] if line.strip()]) <= 20
    assert run.output == "verified {'plan': 2, 'design': 2, 'design_review': 2}\n"


def test_drawn_parts_are_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "draw_docs.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_stale_part_is_drawn_again(draw_docs: ModuleType) -> None:
    stale = "before\n<!-- drawn: kinds -->\nold\n<!-- /drawn -->\nafter\n"
    fresh = draw_docs.drawn(stale)
    assert "old" not in fresh
    assert "`fix_request`" in fresh
    assert fresh.startswith("before\n")
    assert fresh.endswith("<!-- /drawn -->\nafter\n")
    assert draw_docs.drawn(fresh) == fresh


def test_every_drawing_is_in_a_document(draw_docs: ModuleType) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    for name in draw_docs.DRAWINGS:
        assert f"<!-- drawn: {name} -->" in text, name


def test_every_public_name_is_in_the_reference() -> None:
    text = (DOCS / "reference" / "python-api.md").read_text(encoding="utf-8")
    for name in (*backedge.__all__, *backedge.testing.__all__):
        assert re.search(rf"^#+ `{name}`$", text, re.MULTILINE), name
    for owner in (backedge.Engine, backedge.Run, backedge.Workflow, backedge.Attempt):
        for name in vars(owner):
            if not name.startswith("_"):
                assert f".{name}`" in text, f"{owner.__name__}.{name}"


def test_every_event_is_in_the_reference_with_its_fields() -> None:
    text = (DOCS / "reference" / "events.md").read_text(encoding="utf-8")
    for kind in get_args(Event):
        part = text.split(f"### `{kind.__struct_config__.tag}`\n")[1].split("\n### ")[0]
        for field in kind.__struct_fields__:
            assert f"| `{field}` |" in part, f"{kind.__name__}.{field}"


def test_every_error_is_in_the_reference() -> None:
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.BackedgeError):
            assert f".{name}`" in text, name


def test_every_limit_profile_kind_and_status_is_in_the_rules() -> None:
    text = (DOCS / "reference" / "rules.md").read_text(encoding="utf-8")
    for name in (*Limits.__struct_fields__, *PROFILES):
        assert f"| `{name}` |" in text, name
    for word in (*Kind, *Status):
        assert f"`{word}`" in text, word


def test_every_state_and_transition_of_a_loop_is_in_the_concepts() -> None:
    text = (DOCS / "concepts.md").read_text(encoding="utf-8")
    for state in LoopState:
        assert f"| `{state}` |" in text, state
    for state, ways in TRANSITIONS.items():
        for why, end in ways.items():
            assert f"{state} --> {end}: {why}" in text, f"{state} to {end}"


def test_every_file_is_on_the_map_and_every_folder_in_the_architecture() -> None:
    source = ROOT / "src" / "backedge"
    text = (DOCS / "map.md").read_text(encoding="utf-8")
    for path in source.rglob("*.py"):
        if path.name != "__init__.py":
            part = text.split(f"## `{path.parent.relative_to(source.parent)}/`\n")[1].split("\n## ")[0]
            assert f"`{path.name}`" in part, path.name
    whole = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for folder in source.iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            assert re.search(rf"\b{folder.name}\b", whole), folder.name


def test_what_the_architecture_names_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for name in re.findall(
        r"`((?:core|engine|config|cli|adapters|testing|templates|prompts|demo_files)/[\w/.]*)`", text
    ):
        assert (ROOT / "src" / "backedge" / name).exists(), name


def test_every_feature_of_the_feature_map_is_somewhere() -> None:
    page = DOCS / "where-each-feature-lives.md"
    rows = re.findall(r"^\| (.+) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    features = [row.split(" | ") for row in rows if not row.startswith(("feature |", "---"))]
    assert len(features) > 100
    for cells in features:
        assert len(cells) == 3, cells
        modules = re.findall(r"`([\w/]+\.py)`", cells[2])
        assert modules or "](" in cells[2], f"{cells[0]} is nowhere"
        for module in modules:
            assert (ROOT / "src" / "backedge" / module).exists(), f"{cells[0]} is in {module}"


@pytest.mark.parametrize("page", sorted((DOCS / "how-to" / "patterns").glob("*.md")), ids=name_of)
def test_what_agents_say_in_a_pattern_is_understood(page: Path) -> None:
    """A json block that is not what a command prints is an outcome."""
    after = [block for block in blocks(page) if block.language == "console"]
    printed = {block.json for block in after if block.json is not None}
    said = [block.code for block in blocks(page) if block.language == "json" and block.code not in printed]
    assert said
    for text in said:
        for item in parse_outcome(json.loads(text)).feedback:
            assert isinstance(to_feedback(item), Feedback), text


def test_every_pattern_has_a_page() -> None:
    assert {page.stem for page in (DOCS / "how-to" / "patterns").glob("*.md")} == set(PATTERNS)


def test_the_workflow_file_of_the_readme_has_twelve_lines() -> None:
    [example] = [block for block in blocks(ROOT / "README.md") if block.file == "backedge.yaml"]
    assert len(example.code.splitlines()[1:]) == 12


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    for page in DOCS.rglob("*.md"):
        if page.parent.name != "decisions" and page != DOCS / "README.md":
            assert f"({page.relative_to(DOCS)})" in index, name_of(page)
    decisions = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    for page in (DOCS / "decisions").glob("[0-9]*.md"):
        assert f"({page.name})" in decisions, name_of(page)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target):
            continue
        file, _, anchor = target.partition("#")
        linked = (path.parent / file).resolve() if file else path
        assert linked.exists(), f"{name_of(path)} links to {target}"
        if anchor:
            assert anchor in anchors(linked), f"{name_of(path)} links to {target}"


def anchors(path: Path) -> set[str]:
    """The anchors of the headings of a document, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
