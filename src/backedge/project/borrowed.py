"""What a worktree uses of the main checkout: installed packages, which git does not follow.

A package that is installed from the main checkout itself (`pip install -e .`) would bring the code of the main checkout
along, and tests would test that instead of the worktree. Its place in the worktree is put before it on PYTHONPATH.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from backedge.adapters.evidence.caches import ENVIRONMENTS, MARK, PACKAGES

_QUOTED = re.compile(r"""['"](/[^'"]+)['"]""")
_PYTHON = ("python3", "python", "pytest")


def borrow(top: Path, tree: Path) -> None:
    """Link the installed packages of the main checkout into a worktree: at its top, and beside each manifest."""
    for path in _installed(top):
        to = tree / path.relative_to(top)
        if to.parent.is_dir() and not os.path.lexists(to):
            to.symlink_to(path)


def is_borrowed(top: Path, tree: Path, path: str) -> bool:
    """Whether a path of a worktree is a link to the packages of the main checkout."""
    whole = tree / path
    return whole.is_symlink() and os.readlink(whole) == os.fspath(top / path)


def imports(top: Path, tree: Path, env: Mapping[str, str]) -> dict[str, str]:
    """What an agent or a judge in a worktree has in its environment, so that Python imports the code of the worktree."""
    here = [tree / path.relative_to(top) for path in dict.fromkeys(_editable(top, env))]
    ours = [os.fspath(path) for path in here if path.is_dir()]
    before = env.get("PYTHONPATH", "")
    return {"PYTHONPATH": os.pathsep.join([*ours, *([before] if before else [])])} if ours else {}


def _installed(top: Path) -> Iterator[Path]:
    """The folders of installed packages: those at the top, and those in its folders with a manifest of their own."""
    for folder in (top, *sorted(path.parent for path in top.glob("*/package.json"))):
        packages = folder / PACKAGES
        if packages.is_dir() and not packages.is_symlink() and not _leads_out(packages, top):
            yield packages
    for folder in (top, *sorted(path.parent for path in top.glob("*/pyproject.toml"))):
        yield from (folder / name for name in ENVIRONMENTS if (folder / name / MARK).is_file())


def _leads_out(packages: Path, top: Path) -> bool:
    """Whether packages are links to folders of the repository: through them, node would load the main checkout's code."""
    links = (path for pattern in ("*", "@*/*") for path in packages.glob(pattern) if path.is_symlink())
    ends = (Path(os.path.realpath(link)) for link in links)
    return any(end.is_relative_to(top) and PACKAGES not in end.relative_to(top).parts for end in ends)


def _editable(top: Path, env: Mapping[str, str]) -> Iterator[Path]:
    """The folders of the main checkout from which its Python environments import."""
    for packages in dict.fromkeys(_site_packages(top, env)):
        for file in sorted(packages.glob("*.pth")):
            yield from (path for line in _lines(file) if (path := _inside(top, line)) is not None)
        for file in sorted(packages.glob("__editable__*_finder.py")):
            named = (_inside(top, quoted) for line in _lines(file) for quoted in _QUOTED.findall(line))
            yield from (path.parent for path in named if path is not None and path != top)


def _site_packages(top: Path, env: Mapping[str, str]) -> Iterator[Path]:
    places = [top / name for name in ENVIRONMENTS]
    places += [path.parent / name for path in sorted(top.glob("*/pyproject.toml")) for name in ENVIRONMENTS]
    places += [Path(env["VIRTUAL_ENV"])] if env.get("VIRTUAL_ENV") else []
    programs = (shutil.which(name, path=env.get("PATH")) for name in _PYTHON)
    places += [Path(found).parent.parent for found in programs if found is not None]
    for place in dict.fromkeys(places):
        yield from sorted(place.glob("lib/python3*/site-packages"))


def _inside(top: Path, text: str) -> Path | None:
    """A path of the main checkout; None for other text, and for what is installed in it."""
    if not text.startswith("/"):
        return None
    path = Path(os.path.normpath(text))
    installed = {PACKAGES, *ENVIRONMENTS, "site-packages"}
    return path if path.is_relative_to(top) and not installed & set(path.relative_to(top).parts) else None


def _lines(file: Path) -> list[str]:
    try:
        return [line.strip() for line in file.read_text("utf-8", "replace").splitlines()]
    except OSError:
        return []
