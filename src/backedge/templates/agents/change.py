"""The change to be reviewed: what git has since a base, together with what is not committed yet.

backedge run --input base=origin/main
"""

import json
import subprocess
import sys

MOST = 200_000
"""Characters: what is longer is for a person to split."""


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        print(f"git {' '.join(words)}: {done.stderr.strip()}", file=sys.stderr)
    return "" if done.returncode else done.stdout


briefing = json.load(sys.stdin)
given = briefing["input"]
base = given.get("base", "HEAD") if isinstance(given, dict) else "HEAD"
if str(base).startswith("-"):
    sys.exit(f"base is {base!r}: expected the name of a commit")
files = git("diff", "--name-only", str(base)).splitlines()
diff = git("diff", str(base))
if len(diff) > MOST:
    sys.exit(f"the change has {len(diff)} characters, at most {MOST} can be reviewed: split it")
print(json.dumps({"output": {"base": base, "files": files, "diff": diff}, "summary": f"{len(files)} files changed"}))
