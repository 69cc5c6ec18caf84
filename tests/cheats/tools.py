"""The programs that the cases use, away from this project's own environment: a cheat may damage what it finds on PATH.

There is one environment for all cases, and a copy of it for each case that has its own .venv.
"""

from __future__ import annotations

import compileall
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path(sys.prefix) / "cheats-tools"
OURS = Path(sys.executable).parent
PACKAGES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
SITE = Path("lib") / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
BASE = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
MARKER = f"{sys.version} {' '.join(PACKAGES)} 3"


def shared() -> Path:
    """The environment of all cases, made when it is first needed."""
    HOME.mkdir(exist_ok=True)
    folder = HOME / "venv"
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        marker = HOME / "made"
        if not marker.exists() or marker.read_text() != MARKER:
            shutil.rmtree(folder, ignore_errors=True)
            (folder / SITE).mkdir(parents=True)
            for name in PACKAGES:
                _copy_package(name, folder / SITE)
            compileall.compile_dir(folder / SITE, quiet=2)
            _make_programs(folder)
            subprocess.run([folder / "bin" / "pytest", "--version"], check=True, capture_output=True)
            marker.write_text(MARKER)
    return folder


def copy_to(folder: Path) -> None:
    """Give a repository an environment of its own."""
    shutil.copytree(shared() / SITE, folder / SITE)
    _make_programs(folder)


def _copy_package(name: str, site: Path) -> None:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"the package {name} is not installed: run `make test` once, it sets up the environment")
    if spec.submodule_search_locations:
        shutil.copytree(spec.submodule_search_locations[0], site / name, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy2(spec.origin, site)


def _make_programs(folder: Path) -> None:
    programs = folder / "bin"
    programs.mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(f"home = {BASE.parent}\ninclude-system-site-packages = false\n")
    for name in ("python", "python3"):
        (programs / name).symlink_to(BASE)
    run_pytest = "import sys\nfrom pytest import console_main\nsys.exit(console_main())\n"
    _program(programs / "pytest", f"#!{programs / 'python'}\n{run_pytest}")
    for name in ("backedge", "ruff", "mypy"):
        # Not a link: a cheat that writes to it must not reach the program itself.
        _program(programs / name, f'#!/bin/sh\nexec "{OURS / name}" "$@"\n')


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def search_path(*first: Path) -> str:
    """A PATH with these folders first, without this project's own environment."""
    usual = [each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if each and Path(each) != OURS]
    return os.pathsep.join([*map(str, first), str(shared() / "bin"), *usual])
