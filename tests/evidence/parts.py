"""Small workspaces for the tests of evidence."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from backedge.adapters.evidence.protected import Protected
from backedge.adapters.evidence.tree import Trees

SHOP = {
    "shop/cart.py": "def total(prices):\n    return sum(prices)\n",
    "tests/test_cart.py": "def test_total():\n    assert True\n",
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n',
    ".gitignore": "build/\n*.log\n__pycache__/\n.venv/\nnode_modules/\n",
    "README.md": "A shop.\n",
}


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)


def git(folder: Path, *words: str, given: bytes = b"") -> bytes:
    """Run git as a person would, with none of the settings of this machine."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    named = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *named, *words], cwd=folder, env=env, input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def repository(folder: Path, files: Mapping[str, str | bytes] = SHOP) -> Path:
    """A committed repository."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, files)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


def eyes(folder: Path) -> Trees:
    """What looks at a workspace, with the default protected files."""
    return Trees(folder, folder / ".backedge", counts=Protected().counts)
