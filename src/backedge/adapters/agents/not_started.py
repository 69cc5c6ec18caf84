"""Why a program cannot be started, in words: the same with and without a sandbox or a room around it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from pathlib import Path

BINARY_FORMATS = Path("/proc/sys/fs/binfmt_misc")
"""Where Linux lists the formats of programs that were added to its own."""


def why_not(number: int | None, program: str, cwd: Path) -> str:
    """An error number of the system, as advice; empty if it is an unusual one."""
    if not cwd.is_dir():
        return f"cannot start {program!r}: its workspace {str(cwd)!r} is not a folder; make it, or correct `workspace`"
    if number == errno.ENOENT and (cwd / program).exists() and "/" in program:
        return f"cannot start {program!r}: the interpreter in its #! line does not exist; install it"
    if number == errno.ENOENT:
        return f"cannot start {program!r}: there is no such program; install it, or correct `run`"
    if number == errno.EACCES:
        return f"cannot start {program!r}: it is not executable; run chmod +x on it, or name its interpreter first"
    if number == errno.ENOEXEC:
        return f"cannot start {program!r}: it is not a program and has no #! line; name its interpreter first"
    return ""


def refusal(program: str, cwd: Path, env: Mapping[str, str]) -> str:
    """Why a program certainly cannot be started; empty if it probably can. For programs that another one starts: that one
    could only say that it failed."""
    number = _problem(program, cwd, env) if cwd.is_dir() else errno.ENOENT
    return why_not(number, program, cwd) if number else ""


def _problem(program: str, cwd: Path, env: Mapping[str, str]) -> int:
    """The number of the error that starting it would give; 0 if none is known."""
    folders = [""] if "/" in program else env.get("PATH", "/bin:/usr/bin").split(":")
    problem = errno.ENOENT
    for folder in folders:
        path = cwd / folder / program
        if not path.exists():
            continue
        problem = _problem_of(path, cwd)
        if not problem:
            return 0
    return problem


def _problem_of(path: Path, cwd: Path) -> int:
    if path.is_dir() or not os.access(path, os.X_OK):
        return errno.EACCES
    try:
        with path.open("rb") as file:
            head = file.read(256)
    except OSError:
        return 0  # it can be executed and not read
    if head.startswith(b"#!"):
        interpreter = os.fsdecode(head[2:].split(b"\n")[0].strip().split(b" ")[0])
        return 0 if not interpreter or (cwd / interpreter).exists() else errno.ENOENT
    unknown = sys.platform == "linux" and not head.startswith(b"\x7fELF") and not _more_formats()
    return errno.ENOEXEC if unknown else 0


def _more_formats() -> bool:
    try:
        return bool({*os.listdir(BINARY_FORMATS)} - {"register", "status"})
    except OSError:
        return False
