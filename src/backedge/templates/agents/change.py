"""The change to review: everything since a base commit, including uncommitted
changes and new files.

backedge run --input base=origin/main
"""

import json
import subprocess
import sys

MOST = 200_000
"""The most characters of a change. A person has to split a longer one."""
NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Git's id of the empty tree: the base in a repository without commits."""


def git(*words: str, fine: tuple[int, ...] = (0,)) -> str:
    """The output of git. An unreadable change is an error: it must not look
    like a change without defects."""
    done = subprocess.run(
        ["git", *words],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode not in fine:
        sys.exit(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


briefing = json.load(sys.stdin)
given = briefing["input"]
base = str(given.get("base", "HEAD")) if isinstance(given, dict) else "HEAD"
if base.startswith("-"):
    sys.exit(f"base is {base!r}: expected the name of a commit")
if base == "HEAD" and not git(
    "rev-parse", "--quiet", "--verify", "HEAD", fine=(0, 1)
):
    base = NOTHING
new = git("ls-files", "--others", "--exclude-standard").splitlines()
files = [*git("diff", "--name-only", base).splitlines(), *new]
diff = git("diff", base) + "".join(
    git("diff", "--no-index", "--", "/dev/null", file, fine=(0, 1))
    for file in new
)
if len(diff) > MOST:
    sys.exit(
        f"the change has {len(diff)} characters, more than the {MOST} that "
        "can be reviewed: split it"
    )
summary = f"{len(files)} {'file' if len(files) == 1 else 'files'} changed"
print(
    json.dumps(
        {
            "output": {"base": base, "files": files, "diff": diff},
            "summary": summary,
        }
    )
)
