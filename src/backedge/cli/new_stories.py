"""`story add` and `story import`: new stories, written by hand or from GitHub issues."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from backedge.cli.common import journal_option, json_option, print_json, say, shown
from backedge.cli.people import require_person
from backedge.cli.story_project import backlog_of, story_project
from backedge.config import WorkflowFile
from backedge.core.errors import WorkflowError
from backedge.project import Project
from backedge.stories.backlog import Backlog
from backedge.stories.files import story_files
from backedge.stories.github import Issue, imported, issues_from_gh
from backedge.stories.new_story import add_story, slug
from backedge.stories.rules.summary import first_heading

_MOST_BYTES = 1024 * 1024
_ready_option = click.option("--ready", is_flag=True, help="Set the status to ready. Default: backlog.")


@click.group()
def story() -> None:
    """Add a story, or import GitHub issues as stories.

    \b
    Example:
      backedge story add "Pay by card" --priority 10 --epic checkout
    """


@story.command()
@click.argument("title", required=False)
@click.option("--priority", type=click.IntRange(-1_000_000, 1_000_000), help="Lower goes first. Default: 0.")
@click.option("--label", "labels", multiple=True, metavar="NAME", help="A label. Repeatable.")
@click.option("--epic", metavar="NAME", help="The epic that it belongs to.")
@click.option("--depends", multiple=True, metavar="STORY", help="A story that must be done first. Repeatable.")
@click.option(
    "--file",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="Read the text from a file, or from stdin with -. Without TITLE, its first heading is the title.",
)
@_ready_option
@journal_option
@json_option
def add(
    title: str | None,
    priority: int | None,
    labels: tuple[str, ...],
    epic: str | None,
    depends: tuple[str, ...],
    file: Path | None,
    ready: bool,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Write a new story with this TITLE to the folder of the stories. Its id and its file name are made from the title.

    \b
    Example:
      backedge story add "Pay by card" --depends cart --label shop
      git log -1 --format=%B | backedge story add "Follow up" --file -
    """
    require_person(journal)
    source, project = story_project(journal)
    text = _text(file) if file is not None else ""
    title = title if title is not None else first_heading(text)
    if title is None:
        raise click.UsageError("the story has no title: give TITLE, or --file with a heading")
    backlog = _backlog(source, project)
    needs = [backlog.find(each).id for each in depends]
    fields = {
        "status": "ready" if ready else "backlog",
        "priority": priority,
        "epic": epic,
        "labels": list(labels),
        "dependencies": needs,
    }
    assert source.stories is not None
    path = add_story(source.stories.folder, _ids(backlog), title, text, fields)
    name = _name(source, path)
    if as_json:
        print_json({"story": path.stem, "file": name})
    else:
        click.echo(f"added {name}")


@story.command(name="import")
@click.option("--repo", metavar="OWNER/NAME", help="The repository. Default: the one of this folder.")
@click.option("--label", "labels", multiple=True, metavar="NAME", help="Only issues with this label. Repeatable.")
@click.option("--milestone", metavar="NAME", help="Only issues of this milestone.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="The most issues to read.")
@_ready_option
@journal_option
@json_option
def import_(
    repo: str | None,
    labels: tuple[str, ...],
    milestone: str | None,
    limit: int,
    ready: bool,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Import the open issues of a GitHub repository as stories, with the program `gh`.

    Labels become labels, the milestone becomes the epic, and `issue` in the front matter is the address of the issue. An
    issue that is a story already is left alone, so you can import again at any time: only new issues are added.

    \b
    Example:
      backedge story import --label bug
    """
    require_person(journal)
    source, project = story_project(journal)
    options = [f"--repo={repo}"] if repo else []
    options += [f"--label={each}" for each in labels] + ([f"--milestone={milestone}"] if milestone else [])
    issues = issues_from_gh(source.folder, limit, options)
    assert source.stories is not None
    known = imported(story_files(source.stories.folder))
    ids = _ids(_backlog(source, project))
    added: list[tuple[Issue, Path]] = []
    for issue in issues:
        if issue.url.rstrip("/").casefold() not in known:
            path = _imported(source, issue, ids, ready)
            ids.append(path.stem)
            added.append((issue, path))
    if as_json:
        told = [{"story": path.stem, "file": _name(source, path), "issue": issue.url} for issue, path in added]
        print_json({"added": told, "known": len(issues) - len(added)})
        return
    for issue, path in added:
        click.echo(f"added {_name(source, path)}: {shown(issue.title)}")
    click.echo(f"{len(added)} added, {len(issues) - len(added)} were stories already")
    if len(issues) == limit:
        say(f"there may be more than {limit} issues: use --limit")


def _imported(source: WorkflowFile, issue: Issue, taken: list[str], ready: bool) -> Path:
    assert source.stories is not None
    title = issue.title.strip() or f"Issue {issue.number}"
    fields = {"status": "ready" if ready else "backlog", **issue.fields}
    return add_story(
        source.stories.folder, taken, title, issue.body or "", fields, name=slug(f"{issue.number} {title}")
    )


def _text(file: Path) -> str:
    try:
        data = sys.stdin.buffer.read(_MOST_BYTES + 1) if str(file) == "-" else file.read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise WorkflowError(f"{file} cannot be read: {error.strerror}: name a file that exists") from error
    except UnicodeDecodeError as error:
        raise WorkflowError(f"{file} is not UTF-8 text: save it as UTF-8") from error


def _backlog(source: WorkflowFile, project: Project) -> Backlog:
    assert source.stories is not None
    return backlog_of(source, project) if source.stories.folder.is_dir() else Backlog(())


def _ids(backlog: Backlog) -> list[str]:
    return [entry.summary.id if entry.summary else entry.slug for entry in backlog.entries]


def _name(source: WorkflowFile, path: Path) -> str:
    return str(path.relative_to(source.folder)) if path.is_relative_to(source.folder) else str(path)
