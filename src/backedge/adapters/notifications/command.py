"""Tells a program about a message: what it needs as arguments, all of it as JSON on stdin."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from backedge.adapters.notifications.address import NotSent, without_addresses

TIMEOUT = 30.0
"""Seconds that a program may take."""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def filled(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The arguments with the values of their placeholders. A value stays one argument, and is never taken for an option."""

    def value(found: re.Match[str]) -> str:
        return values.get(found[1], found[0])

    program, *arguments = command
    return [program, *(_argument(each, _PLACEHOLDER.sub(value, each)) for each in arguments)]


def _argument(written: str, made: str) -> str:
    return made.lstrip("-") if made.startswith("-") and not written.startswith("-") else made


async def call(arguments: Sequence[str], body: bytes, folder: Path, timeout: float = TIMEOUT) -> None:
    """Run a program without a shell. Raises NotSent unless it ends with exit code 0 in time."""
    name = without_addresses(os.path.basename(arguments[0]))
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise NotSent(f"{name} cannot be started: {getattr(error, 'strerror', None) or 'invalid arguments'}") from None
    try:
        async with asyncio.timeout(timeout):
            _, said = await process.communicate(body)
    except TimeoutError:
        raise NotSent(f"{name} did not end within {timeout:g} s") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        last = said.decode(errors="replace").strip().rpartition("\n")[2]
        raise NotSent(
            f"{name} ended with exit code {process.returncode}{f': {without_addresses(last)}' if last else ''}"
        )
