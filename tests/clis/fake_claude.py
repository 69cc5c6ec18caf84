"""A `claude` that answers by a script, for tests of what it is told: it keeps its prompts and the schemas of its answers.

`tests/clis/test_claude.py` and others run the real program.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.clis.test_run import backedge

PROGRAM = """\
#!{python}
import json, os, sys
here = {folder!r}
step, attempt = os.environ["BACKEDGE_STEP"], os.environ["BACKEDGE_ATTEMPT"]
with open(os.path.join(here, f"{{step}}-{{attempt}}.md"), "w") as file:
    file.write(sys.stdin.read())
with open(os.path.join(here, f"{{step}}-{{attempt}}.json"), "w") as file:
    file.write(sys.argv[sys.argv.index("--json-schema") + 1])
with open(os.path.join(here, "script.json")) as file:
    script = json.load(file)[step]
said = dict(script[min(int(attempt), len(script)) - 1])
for name, text in said.pop("!files", {{}}).items():
    with open(name, "w") as file:
        file.write(text)
result = {{"type": "result", "subtype": "success", "is_error": False, "session_id": f"{{step}}1", "usage": {{}},
           "permission_denials": [], "result": said.pop("!text", "")}}
for line in said.pop("!lines", []):
    print(json.dumps(line))
result |= said.pop("!result", {{}})
print(json.dumps({{**result, "structured_output": said}} if said else result))
"""


class FakeClaude:
    """A project whose agents are this claude, and what it was told."""

    def __init__(self, folder: Path, workflow: str, **script: Sequence[Mapping[str, Any]]) -> None:
        self.work, self.seen = folder / "work", folder / "seen"
        program = folder / "bin" / "claude"
        for path in (self.work, self.seen, program.parent):
            path.mkdir(parents=True)
        (self.work / "backedge.yaml").write_text(workflow)
        (self.seen / "script.json").write_text(json.dumps(script))
        program.write_text(PROGRAM.format(python=sys.executable, folder=str(self.seen)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        programs = os.pathsep.join([str(program.parent), os.environ.get("PATH", os.defpath)])
        self.env = {"PATH": programs, "HOME": str(folder), "TZ": "UTC"}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return backedge(self.work, self.env, *(words or ("run", "--json")))

    def prompt(self, step: str, attempt: int = 1) -> str:
        return (self.seen / f"{step}-{attempt}.md").read_text()

    def schema(self, step: str, attempt: int = 1) -> Any:
        return json.loads((self.seen / f"{step}-{attempt}.json").read_text())
