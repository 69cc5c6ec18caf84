"""The address of a channel: variables in it, and what may be shown of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from backedge.core.text import printable_line
from backedge.core.workflow.notify import Channel

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S*")


class NotSent(Exception):
    """A message could not be sent. The text says why, without any secret."""


def address_of(channel: Channel, environment: Mapping[str, str]) -> str:
    """The address with the values of its variables. Raises NotSent, naming a variable that is not set."""

    def value(found: re.Match[str]) -> str:
        known = environment.get(found[1], "")
        if not known:
            raise NotSent(f"the environment variable {found[1]} is not set here: set it for the process that sends")
        return known

    return _VARIABLE.sub(value, channel.to).strip()


def scheme_of(address: str) -> str:
    return address.partition("://")[0].lower() if "://" in address else ""


def name_of(channel: Channel) -> str:
    """A channel as it may be shown: an address without anything that may be a secret."""
    if channel.command:
        return printable_line(channel.command[0])
    if channel.to.startswith("${"):
        return printable_line(channel.to.partition("}")[0] + "}")
    scheme = scheme_of(channel.to)
    if scheme not in ("http", "https"):
        return f"{scheme}://…" if scheme else "an address without a scheme"
    try:
        host = urlsplit(channel.to).hostname or ""
    except ValueError:
        host = ""
    return f"{scheme}://{host}/…"


def without_addresses(text: str) -> str:
    """A reason as one short line, without addresses: they may have secrets in them."""
    return _ADDRESS.sub("…", printable_line(text))[:200]
