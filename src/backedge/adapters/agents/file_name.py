"""Names of runs and steps as names of files."""

from __future__ import annotations

import re
from hashlib import sha256

_PLAIN = re.compile(r"[a-z0-9_][a-z0-9._-]{0,79}")
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")


def file_name(name: str) -> str:
    """A name as one part of a path: without separators, never `..`, not too long, and different for different names, even
    where upper and lower case are the same."""
    if _PLAIN.fullmatch(name):
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{_FOREIGN.sub('_', name).lstrip('.')[:60]}~{digest}"
