"""The peers' own environment, so that nothing of theirs is ever a dependency of ours."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

PINS = Path(__file__).with_name("peers.txt")
HOME = Path("build") / "bench-peers"


def python() -> Path:
    return HOME / "bin" / "python"


def install() -> str | None:
    """Make sure that the environment is as pinned; returns why it could not be made, or None."""
    stamp = HOME / ".installed"
    pins = PINS.read_text()
    if stamp.exists() and stamp.read_text() == pins and python().exists():
        return None
    print("installing the peers, once", file=sys.stderr)
    venv.create(HOME, with_pip=True, clear=True)
    pip = [str(python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(PINS)]
    done = subprocess.run(pip, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["pip gave no reason"]
        return f"the peers could not be installed: {lines[-1]}"
    stamp.write_text(pins)
    return None


def versions() -> dict[str, str]:
    pins = (line.partition("==") for line in PINS.read_text().split())
    return {name: version for name, _, version in pins}
