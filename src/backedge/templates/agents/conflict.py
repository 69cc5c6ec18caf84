"""A team whose designs contradict each other: replace it step by step with
your own programs, or with `agent: claude`.

The ux designs from 320 px upwards, the architect from 1024 px, and the
architect chooses a framework that the browser of the ux does not support. The
checks in backedge.yaml find both.
"""

import json
import sys
from typing import Any


def pm(_: Any) -> Any:
    return {"output": {"browser": "ie11"}, "summary": "for ie11"}


def ux(briefing: Any) -> Any:
    breakpoints = (
        agreed(briefing)
        or (briefing["previous"] or {"breakpoints": [320, 768]})["breakpoints"]
    )
    made = {
        "browser": briefing["inputs"]["pm"]["browser"],
        "breakpoints": breakpoints,
    }
    return {"output": made, "summary": f"breakpoints {breakpoints}"}


def architect(briefing: Any) -> Any:
    made = briefing["previous"] or {
        "framework": "react18",
        "responsive": {"breakpoints": [1024, 1280]},
    }
    if "browsers" in [
        finding["found_by"] for finding in briefing["feedback"]["findings"]
    ]:
        made["framework"] = "preact"
    made["responsive"]["breakpoints"] = (
        agreed(briefing) or made["responsive"]["breakpoints"]
    )
    return {
        "output": made,
        "summary": f"{made['framework']}, "
        f"breakpoints {made['responsive']['breakpoints']}",
    }


def agreed(briefing: Any) -> list[int]:
    """What both can accept: the evidence of a check has all positions, and
    both steps get the same evidence."""
    widths: set[int] = set()
    for finding in briefing["feedback"]["findings"]:
        if finding["found_by"] == "breakpoints":
            for position in json.loads(finding["evidence"])[
                "positions"
            ].values():
                widths.update(position)
    return sorted(widths)


def developer(briefing: Any) -> Any:
    design = briefing["inputs"]["architect"]
    return {"output": design, "summary": f"built with {design['framework']}"}


briefing = json.load(sys.stdin)
print(json.dumps(globals()[briefing["step"]](briefing)))
