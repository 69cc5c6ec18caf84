"""Which files of a folder do not count, as the ignore rules were when the run began.

Rules that come later hide nothing, and rules that go away reveal nothing: an agent that removes `data/` from .gitignore
has not made the files in data/, and undoing its work must not delete them. All rules of the start (the user's own, those
of the repository, and every .gitignore) become one list, so git never reads a rule from the workspace again.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import msgspec

from backedge.adapters.agents.git_tree import ask, common_folder, repository_of
from backedge.adapters.agents.regular_file import opened
from backedge.adapters.evidence.caches import CACHE_RULES
from backedge.adapters.evidence.names import name_of
from backedge.adapters.evidence.private_git import PrivateGit, private_git

LARGEST = 1024 * 1024
"""Bytes of one file of ignore rules that are read."""
_WILD = re.compile(rb"[\\*?\[]")


class IgnoreRules(msgspec.Struct, frozen=True):
    """The rules of one folder, for git's `--exclude-from`."""

    git: bool
    """Whether git was there to apply them. Without it, every file but caches counts."""
    top: str = "."
    """The top of the work tree, from the folder: rules above the folder apply to it too."""
    text: bytes = b""
    tracked: tuple[str, ...] = ()
    """Names of files that count although a rule matches them, because git followed them."""
    nested: dict[str, IgnoreRules] = {}
    """The rules of repositories within this one, by name; the rules outside them do not apply."""


def rules_of(folder: Path) -> IgnoreRules:
    """The ignore rules as they are now."""
    if shutil.which("git") is None:
        return IgnoreRules(git=False)
    return _rules(Path(os.path.realpath(folder)))


def _rules(folder: Path) -> IgnoreRules:
    repository = repository_of(folder)
    top = _top(folder) or folder
    above = _users_rules(folder)
    if repository is not None:
        above += _text(common_folder(repository) / "info" / "exclude", follow=True)
    with private_git(above) as git:
        if top != folder and _ignored(git, top, folder):
            top = folder  # the folder as a whole is ignored: the rules around it are not about its files
        there = (os.fspath(top), os.fspath(folder))
        counted = git.ask(*there, "ls-files", "-z", "-o", "--exclude-standard")
        hidden = git.ask(*there, "ls-files", "-z", "-o", "-i", "--directory", "--exclude-standard")
        files, ignored = counted.answer(), hidden.answer()
    inside = f"{os.path.relpath(folder, top)}/".removeprefix("./")
    places = {path.removesuffix(".gitignore") for path in [*files, *ignored] if os.path.basename(path) == ".gitignore"}
    places |= {"", *(path for path in ignored if path.endswith("/"))}
    texts = [CACHE_RULES, above, *(anchored(_text(top / path / ".gitignore"), path) for path in _above(inside))]
    for place in sorted(places, key=lambda path: (path.count("/"), path)):
        texts.append(anchored(_text(folder / place / ".gitignore"), inside + place))
    nested = {name_of(path[:-1]): _rules(folder / path) for path in files if path.endswith("/")}
    listed = {*files, *(path[:-1] for path in files if path.endswith("/"))}
    tracked = [name_of(path) for path in _tracked(folder) if path not in listed] if repository is not None else []
    return IgnoreRules(True, os.path.relpath(top, folder), b"\n".join(texts), tuple(tracked), nested)


def anchored(text: bytes, folder: str) -> bytes:
    """The rules of a .gitignore in a folder, as rules of the top of the work tree."""
    place = os.fsencode(folder).strip(b"/")
    if b"\n" in place:
        return b""  # it cannot be written down; the files below it count
    lines = []
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        rule = line.removesuffix(b"\r")
        sign, body = (b"!", rule[1:]) if rule.startswith(b"!") else (b"", rule)
        if not body.strip(b" /") or rule.startswith(b"#"):
            continue
        prefix = b"/" + _WILD.sub(rb"\\\g<0>", place) if place else b""
        # A rule with a slash in front of its last character is about one place, any other about all folders below.
        fixed = b"/" in body.rstrip(b" ")[:-1]
        lines.append(sign + prefix + (b"/" if fixed else b"/**/") + (body.lstrip(b"/") if fixed else body))
    return b"\n".join(lines)


def _above(inside: str) -> list[str]:
    """The folders above the folder, from the top of the work tree on, as prefixes."""
    parts = inside.split("/")[:-2]
    return [] if inside in ("", "./") else ["", *("/".join(parts[: end + 1]) + "/" for end in range(len(parts)))]


def _top(folder: Path) -> Path | None:
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _ignored(git: PrivateGit, top: Path, folder: Path) -> bool:
    path = os.path.relpath(folder, top)
    words = ("check-ignore", "-z", "--no-index", "--stdin")
    return bool(git.ask(os.fspath(top), os.fspath(top), *words, given=[path]).answer((0, 1)))


def _users_rules(folder: Path) -> bytes:
    """The ignore rules that a person has for all repositories."""
    named = ask(folder, "config", "--path", "--get", "core.excludesFile")
    if named:
        return _text(Path(os.fsdecode(named.rstrip(b"\n"))), follow=True) + b"\n"
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return _text(Path(home, "git", "ignore"), follow=True) + b"\n"


def _tracked(folder: Path) -> list[str]:
    return [os.fsdecode(path) for path in (ask(folder, "ls-files", "-z", "-c") or b"").split(b"\0")[:-1]]


def _text(path: Path, follow: bool = False) -> bytes:
    """The rules of a file. Like git, this follows no link in the place of a .gitignore."""
    try:
        with opened(path, follow) as file:
            return file.read(LARGEST)
    except OSError:
        return b""
