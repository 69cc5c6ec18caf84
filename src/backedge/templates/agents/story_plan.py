"""A stand-in for a planner: replace it with your own program in any language, or with `agent: claude` in backedge.yaml.

The story that it works on is in the input of its briefing. It plans what the boxes of the story ask for.
"""

import json
import sys

story = json.load(sys.stdin)["input"]["story"]
boxes = [line[6:].strip() for line in story["text"].splitlines() if line.startswith("- [ ] ")]
print(json.dumps({"output": {"units": boxes}, "summary": f"{len(boxes)} to do for {story['id']}"}))
