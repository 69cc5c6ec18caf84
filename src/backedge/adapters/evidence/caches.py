"""Folders and files that tools leave behind and that never count: caches, and packages that were installed.

Only a file that existed when the run began counts in spite of its place. What is installed is compared in another way,
see `environment`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

CACHES = (
    *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".import_linter_cache", ".pytype"),
    *(".tox", ".nox", ".eggs", ".ipynb_checkpoints", "htmlcov", ".nyc_output", ".turbo", ".parcel-cache"),
    *(
        ".gradle",
        ".terraform",
        ".benchmarks",
        ".dmypy.json",
        ".coverage",
        ".eslintcache",
        ".stylelintcache",
        ".DS_Store",
    ),
)
"""Names of files and folders, wherever they are."""
PACKAGES = "node_modules"
"""The folder of installed packages of JavaScript, wherever it is."""
ENVIRONMENTS = (".venv", "venv", ".env", "env", ".virtualenv")
"""Folders that hold a Python environment if there is a `pyvenv.cfg` in them."""
MARK = "pyvenv.cfg"
METADATA = (".egg-info", ".dist-info")
"""Endings of folders that say what an installed package offers."""
ENTRY_POINTS = "entry_points.txt"
"""The file in them with which a package announces plugins: a test runner loads what it finds there."""

CACHE_RULES = "\n".join([*CACHES, ".coverage.*", f"{PACKAGES}/"]).encode()
"""The same as ignore rules."""
_CACHED = re.compile(rf"(?:^|/)(?:{'|'.join(map(re.escape, (*CACHES, PACKAGES, '.git')))}|\.coverage\.[^/]*)(?:/|$)")


_NOT_SEARCHED = re.compile(r"\..*|__pycache__|node_modules|build|dist|target|site-packages|.*\.egg")


def searched(folder: str) -> bool:
    """Whether pytest looks for tests in folders of this name, even if git ignores them."""
    return _NOT_SEARCHED.fullmatch(folder) is None


def cached(path: str) -> bool:
    """Whether a path is a cache, an installed package, or in a folder of them. Git's own folders are left out too."""
    return _CACHED.search(path) is not None


def any_cached(paths: Collection[str]) -> bool:
    """Whether any of some paths may be such a one: never wrong if the answer is no."""
    together = "/\0/".join(paths)
    text = f"/{together}/"
    return "/.coverage." in text or any(f"/{name}/" in text for name in (*CACHES, PACKAGES, ".git"))


def environments(paths: Collection[str]) -> list[str]:
    """The Python environments among some paths, by the file that marks them."""
    marks = (path for path in paths if path.endswith(f"/{MARK}"))
    return sorted(path.removesuffix(f"/{MARK}") for path in marks if path.split("/")[-2] in ENVIRONMENTS)
