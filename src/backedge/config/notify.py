"""The channels and the expiry of a workflow file, with times in seconds, and what is probably wrong with an address."""

from __future__ import annotations

import re
from importlib.util import find_spec
from zoneinfo import ZoneInfo

from backedge.config.source import Source, seconds
from backedge.core.value import Json

_WEB = ("http", "https")
_SECRETS_IN_WEB_ADDRESS = re.compile(r"https?://[^/]*@|hooks\.slack\.com|/api/webhooks/|webhook\.office\.com")


def channels_of(source: Source) -> list[dict[str, Json]]:
    """The channels as the core takes them."""
    found = []
    for index, given in enumerate(source.value.get("notify", ())):
        _check_zone(source, index, given.get("quiet", ""))
        found.append({**given, "remind": [seconds(each) for each in given.get("remind", ())]})
    return found


def expiry_of(source: Source) -> dict[str, Json] | None:
    """What happens to questions that no person answers, as the core takes it."""
    given: dict[str, Json] | None = source.value.get("expire")
    return {**given, "after": seconds(given["after"])} if given is not None else None


def _check_zone(source: Source, index: int, quiet: str) -> None:
    zone = quiet.partition(" ")[2]
    if not zone:
        return
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        source.refuse(("notify", index, "quiet"), f"unknown time zone {zone!r}: use a name such as Europe/Berlin")


def warn_of_channels(source: Source) -> None:
    """Warn of addresses that need the extra that is missing, of secrets in the file, and of secrets that sign nothing."""
    for index, given in enumerate(source.value.get("notify", ())):
        here, to = ("notify", index, "to"), given.get("to", "")
        scheme = to.partition("://")[0].lower() if "://" in to else ""
        if not to or to.startswith("${"):
            continue
        if not scheme:
            source.warn(
                here, "this address has no scheme: expected https://…, slack://…, or ${NAME} for a variable with one"
            )
        elif scheme not in _WEB and find_spec("apprise") is None:
            source.warn(here, f"{scheme}:// needs apprise: pip install 'backedge[notify]'")
        if scheme and "${" not in to and (scheme not in _WEB or _SECRETS_IN_WEB_ADDRESS.search(to)):
            source.warn(
                here,
                "this address may have a secret in it, and each run keeps this file: put it into an environment variable and "
                "write ${NAME}",
            )
        if given.get("secret") and scheme and scheme not in _WEB:
            source.warn(
                ("notify", index, "secret"), f"{scheme}:// messages are not signed: only those to a web hook are"
            )
