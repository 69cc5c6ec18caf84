"""What the documentation says is true: its code runs and prints what it says, its tables are those of the code.

How blocks are read, in the order of the page:
- a python block runs, all of one page in one namespace and one folder; one that begins with `# name.py` is saved as that
  file instead;
- in a console block the commands after `$` run in the same folder;
- a text block right after one of these is what it prints; `…` stands for anything.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

import backedge
import backedge.testing
from backedge.core import errors
from backedge.core.events import Event
from backedge.core.limits import Limits
from backedge.core.loops import TRANSITIONS, LoopState
from backedge.core.model import Kind, Status
from backedge.core.profiles import PROFILES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md"))]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARK = "=== block "


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int
    output: str | None


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    found = list(BLOCK.finditer(text))
    for place, match in enumerate(found):
        after = found[place + 1] if place + 1 < len(found) else None
        follows = after is not None and after[1] == "text" and not text[match.end() : after.start()].strip()
        line = text[: match.start(2)].count("\n") + 1
        yield Block(match[1], match[2], line, after[2] if follows and after else None)


def script_of(page: Path) -> str:
    """One program that does what the blocks of a page do, saying where each begins."""
    parts = ["import pathlib, subprocess, sys", "space = {'__name__': '__main__'}"]
    for number, block in enumerate(blocks(page)):
        parts.append(f"print({f'{MARK}{number}'!r}, flush=True)")
        saved = re.match(r"# ([\w.]+\.py)\n", block.code)
        if block.language == "python" and saved:
            parts.append(f"pathlib.Path({saved[1]!r}).write_text({block.code!r}, encoding='utf-8')")
        elif block.language == "python":
            # Empty lines in front make tracebacks name the line of the page.
            code = "\n" * (block.line - 1) + block.code
            parts.append(f"exec(compile({code!r}, {name_of(page)!r}, 'exec'), space)")
        elif block.language == "console":
            # Some commands are there to be killed; tests have to pass.
            parts += [f"subprocess.run({c!r}, shell=True, check={'pytest' in c})" for c in commands(block.code)]
        parts.append("sys.stdout.flush()")
    return "\n".join(parts)


def commands(code: str) -> list[str]:
    found = [line.removeprefix("$ ") for line in code.splitlines() if line.startswith("$ ")]
    return [re.sub(r"\bpython(?= )", f'"{sys.executable}"', command) for command in found]


@pytest.fixture(scope="module")
def draw_docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_docs", ROOT / "tools" / "draw_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text(script_of(page), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "page.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{name_of(page)}: {done.stderr}"
    parts = (part.partition("\n") for part in f"\n{done.stdout}".split(f"\n{MARK}")[1:])
    printed = {number: said for number, _, said in parts}
    for number, block in enumerate(blocks(page)):
        if block.output is not None:
            expected = re.escape(block.output.strip()).replace("…", ".*")
            got = printed[str(number)].strip()
            assert re.fullmatch(expected, got, re.DOTALL), f"{name_of(page)}:{block.line} printed\n{got}\n{done.stderr}"


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


def test_every_limit_profile_kind_status_and_state_is_in_the_concepts() -> None:
    text = (DOCS / "concepts.md").read_text(encoding="utf-8")
    for name in (*Limits.__struct_fields__, *PROFILES):
        assert f"| `{name}` |" in text, name
    for word in (*Kind, *Status, *LoopState):
        assert word in text, word
    for state, ways in TRANSITIONS.items():
        for why, end in ways.items():
            assert f"{state} --> {end}: {why}" in text, f"{state} to {end}"


def test_every_file_of_the_core_is_on_the_map() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for path in (ROOT / "src" / "backedge" / "core").glob("[!_]*.py"):
        assert f"`{path.name}`" in text, path.name


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
