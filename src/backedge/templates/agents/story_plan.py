"""Plays a planner: replace it with your own program in any language, or with
`agent: claude` in backedge.yaml.

The story is in the input of its briefing. The plan has one item for each
checkbox of the story.
"""

import json
import sys

story = json.load(sys.stdin)["input"]["story"]
boxes = [
    line[6:].strip()
    for line in story["text"].splitlines()
    if line.startswith("- [ ] ")
]
print(
    json.dumps(
        {
            "output": {"units": boxes},
            "summary": f"{len(boxes)} to do for {story['id']}",
        }
    )
)
