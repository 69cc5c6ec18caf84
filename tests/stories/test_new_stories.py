"""`story add` and `story import`: new stories, by hand and from GitHub issues."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backedge.core.errors import WorkflowError
from backedge.stories.new_story import add_story, slug
from backedge.stories.rules.summary import read_summary
from tests.stories.parts import Stories, environment
from tests.stories.test_working import SMALL

# Behaves like the GitHub CLI: it knows `issue list`, prints what --json asks for, and has its exit codes.
GH = """\
#!{python} -IS
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "calls"), "a") as file:
    print(json.dumps(sys.argv[1:]), file=file)
with open(os.path.join(here, "github.json"), encoding="utf-8") as file:
    github = json.load(file)
if github.get("login") is False:
    print("To get started with GitHub CLI, please run:  gh auth login", file=sys.stderr)
    print("Alternatively, populate the GH_TOKEN environment variable with a token.", file=sys.stderr)
    sys.exit(4)
if "error" in github:
    print(github["error"], file=sys.stderr)
    sys.exit(1)
if sys.argv[1:3] != ["issue", "list"]:
    print(f"unknown command {{sys.argv[1]!r}} for \\"gh\\"", file=sys.stderr)
    sys.exit(1)
options, words = {{}}, sys.argv[3:]
while words:
    name, sign, value = words.pop(0).partition("=")
    options.setdefault(name, []).append(value if sign else words.pop(0))
fields = options["--json"][0].split(",")
known = ["assignees", "author", "body", "closed", "labels", "milestone", "number", "state", "title", "url"]
for field in fields:
    if field not in known:
        print(f"Unknown JSON field: \\"{{field}}\\"", file=sys.stderr)
        sys.exit(1)
issues = [each for each in github["issues"] if each.get("state", "OPEN") == options["--state"][0].upper()]
for label in options.get("--label", []):
    issues = [each for each in issues if label in [name["name"] for name in each["labels"]]]
for milestone in options.get("--milestone", []):
    issues = [each for each in issues if (each["milestone"] or {{}}).get("title") == milestone]
issues = sorted(issues, key=lambda each: -each["number"])[: int(options["--limit"][0])]
print(github.get("says") or json.dumps([{{field: each.get(field) for field in fields}} for each in issues]))
"""


class GitHub:
    """A repository on GitHub, as `gh` on the PATH shows it."""

    def __init__(self, project: Stories) -> None:
        self.project, self.folder = project, project.folder.with_name("bin")
        self.folder.mkdir()
        self.issues: list[dict[str, Any]] = []
        gh = self.folder / "gh"
        gh.write_text(GH.format(python=sys.executable))
        gh.chmod(0o755)

    def issue(self, number: int, title: str, body: str = "", *labels: str, epic: str = "", **more: Any) -> None:
        named = [{"id": f"L{each}", "name": each, "description": "", "color": "d73a4a"} for each in labels]
        milestone = {"number": 1, "title": epic, "description": "", "dueOn": None} if epic else None
        url = f"https://github.com/shop/web/issues/{number}"
        each = {"number": number, "title": title, "body": body, "labels": named, "milestone": milestone, "url": url}
        self.issues.append({**each, **more})

    def backedge(self, *words: str, expect: int = 0, path: str | None = None, **github: Any) -> tuple[str, str]:
        (self.folder / "github.json").write_text(json.dumps({"issues": self.issues, **github}))
        done = subprocess.run(
            [sys.executable, "-m", "backedge.cli.main", "story", "import", *words],
            cwd=self.project.folder,
            env={**environment(), "PATH": path or f"{self.folder}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == expect, done.stderr
        return done.stdout, done.stderr


def test_issues_become_stories_once_and_edits_stay(project: Stories) -> None:
    project.workflow(steps=SMALL)
    github = GitHub(project)
    github.issue(
        7, "Pay by card: \x1b[31mred\x1b[0m", "As a *visitor*\r\n---\r\nI pay.\r\n", "bug", "help wanted", epic="v1.0"
    )
    github.issue(3, "Größe wählen", "")
    github.issue(4, "closed long ago", state="CLOSED")
    out, _ = github.backedge()
    assert out.endswith("2 added, 0 were stories already\n")
    assert out.startswith("added stories/3-grosse-wahlen.md: Größe wählen\nadded stories/7-pay-by-card-red.md: ")
    story = project.says("7-pay-by-card-red")
    assert (story["title"], story["status"], story["epic"]) == ("Pay by card: red", "backlog", "v1.0")
    assert (story["labels"], story["issue"]) == (["bug", "help wanted"], "https://github.com/shop/web/issues/7")
    assert project.text("7-pay-by-card-red").endswith("---\n# Pay by card: red\n\nAs a *visitor*\n---\nI pay.\n")
    assert [each["story"] for each in project.json("next", "--label", "Help Wanted")] == ["7-pay-by-card-red"]
    # A person renames, edits and even breaks what was imported; there is one new issue, and one edited on GitHub.
    path = project.folder / "stories" / "3-grosse-wahlen.md"
    path.rename(path.with_name("size.md"))
    mine = "---\nid: size\ntitle: [mine\nissue: 'https://github.com/shop/web/issues/3'  # ours\n---\nMy words.\n"
    path.with_name("size.md").write_text(mine)
    before = project.text("7-pay-by-card-red")
    github.issues[0]["title"] = "Another title"
    github.issue(30, "New", "", "bug")
    out, _ = github.backedge("--json", "--ready")
    assert json.loads(out) == {
        "added": [{"story": "30-new", "file": "stories/30-new.md", "issue": "https://github.com/shop/web/issues/30"}],
        "known": 2,
    }
    assert project.says("30-new")["status"] == "ready"
    assert (project.text("size"), project.text("7-pay-by-card-red")) == (mine, before)
    assert github.backedge("--label", "bug", "--milestone", "v1.0", "--repo", "shop/web", "--limit", "1")[1] == (
        "there may be more than 1 issues: use --limit\n"
    )
    calls = [json.loads(line) for line in (github.folder / "calls").read_text().splitlines()]
    assert calls[-1][-3:] == ["--repo=shop/web", "--label=bug", "--milestone=v1.0"]


def test_what_gh_cannot_do_is_said(project: Stories) -> None:
    github = GitHub(project)
    said = github.backedge(expect=2, login=False)[1]
    assert "`gh` is not logged in: run `gh auth login`" in said
    assert "no git remotes found" in github.backedge(expect=2, error="no git remotes found")[1]
    assert "printed something else than issues" in github.backedge(expect=2, says="<html>")[1]
    assert "`gh` is not installed: install the GitHub CLI" in github.backedge(expect=2, path=str(project.folder))[1]
    (github.folder / "gh").write_text("#!/nowhere\n")
    assert "`gh` cannot be started" in github.backedge(expect=2)[1]
    assert list((project.folder / "stories").iterdir()) == []


def test_a_story_is_added_with_its_fields(project: Stories) -> None:
    project.workflow(steps=SMALL)
    project.story("Cart")
    more = (
        "--priority",
        "5",
        "--label",
        "shop",
        "--label",
        "a: b",
        "--epic",
        "checkout",
        "--depends",
        "cart",
        "--ready",
    )
    assert project.backedge("story", "add", "Pay by card!", *more)[0] == "added stories/pay-by-card.md\n"
    assert project.text("pay-by-card") == (
        '---\nid: pay-by-card\ntitle: "Pay by card!"\nstatus: ready\npriority: 5\nepic: checkout\n'
        'labels:\n  - shop\n  - "a: b"\ndependencies:\n  - Cart\n---\n# Pay by card!\n'
    )
    (project.folder / "notes.txt").write_text("# From the notes\n\n- [ ] one\n")
    assert project.json("story", "add", "--file", "notes.txt") == {
        "story": "from-the-notes",
        "file": "stories/from-the-notes.md",
    }
    assert project.text("from-the-notes").endswith("status: backlog\n---\n# From the notes\n\n- [ ] one\n")
    told = {each["story"]: each["kind"] for each in project.json("next")}
    assert told == {"Cart": "implement", "pay-by-card": "wait", "from-the-notes": "refine"}
    for words, why in (
        (("Other", "--depends", "carte"), "there is no story 'carte': did you mean 'Cart'?"),
        ((), "the story has no title: give TITLE"),
        ((" ",), "the story has no title"),
        (("x", "--file", "none.md"), "none.md cannot be read: No such file"),
        (("x", "--file", "stories/Cart.md"), "the text has front matter already"),
    ):
        assert why in project.backedge("story", "add", *words, expect=2)[1]
    assert len(list((project.folder / "stories").iterdir())) == 3
    project.auto()


def test_no_story_overwrites_another(tmp_path: Path) -> None:
    taken = ["other", "Same"]
    (tmp_path / "same-3.md").write_text("mine")
    paths = [
        add_story(tmp_path, taken, title, "", {}) for title in ("Same", "same", "SAME", "readme", "…", "Ünïcode  " * 30)
    ]
    assert [path.stem for path in paths[:5]] == ["same-2", "same-4", "same-5", "readme-2", "story"]
    assert len(paths[5].stem) <= 60 and (tmp_path / "same-3.md").read_text() == "mine"
    for path in paths:
        assert read_summary(path.read_bytes(), path.name, "x").id == path.stem
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]
    assert slug("A/B \\ ..") == "a-b"
    with pytest.raises(WorkflowError, match="has more than 1048576 bytes: shorten its text"):
        add_story(tmp_path, taken, "big", "x" * 1024 * 1024, {})
