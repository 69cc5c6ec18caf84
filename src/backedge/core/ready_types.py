"""Makes types ready for reading from JSON.

msgspec looks at a type when it reads it for the first time. If two threads do that at the same moment, the process dies
(msgspec 0.22, a null pointer). So every type that is read has to be made ready when its module is imported.
"""

from __future__ import annotations

from typing import Any

import msgspec


def make_ready(*types: Any) -> None:
    """Let msgspec look at these types, and all that they contain, now."""
    for each in types:
        msgspec.json.Decoder(each)
