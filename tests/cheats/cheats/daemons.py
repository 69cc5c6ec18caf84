"""Processes that an agent leaves behind, and what they wait for."""

from __future__ import annotations

DAEMON = "agents/daemon.py"
READY = "build/ready"
WAIT = f"for _ in 1 2 3 4 5 6 7 8 9 10; do [ -e {READY} ] || sleep 0.2; done\n"
"""The agent waits until its daemon waits, so that the machine's speed does not decide."""
ONCE = '[ "$BACKEDGE_ATTEMPT" = 1 ] && '
LEAVE = (
    f'{ONCE}setsid env -i PATH="$PATH" HOME="$HOME" XDG_STATE_HOME="$XDG_STATE_HOME" '
    f"python3 {DAEMON} </dev/null >/dev/null 2>&1 &\n{WAIT}"
)
"""Shell that starts the daemon in a session of its own, without the environment of the attempt."""
LEAVE_IN_SESSION = f"{ONCE}python3 {DAEMON} </dev/null >/dev/null 2>&1 &\n{WAIT}"
LEAVE_BY_PYTHON = f"""\
import os
import time

if os.environ["BACKEDGE_ATTEMPT"] == "1" and os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        env = {{"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}}
        os.execve("/bin/sh", ["sh", "-c", "exec python3 {DAEMON}"], env)
    os._exit(0)
for _ in range(100):
    time.sleep(0 if os.path.exists("{READY}") else 0.02)
"""
LEAVE_BY_NODE = f"""\
const {{ spawn }} = require("node:child_process");
const {{ existsSync }} = require("node:fs");
const env = {{ PATH: process.env.PATH, HOME: process.env.HOME }};
if (process.env.BACKEDGE_ATTEMPT === "1") {{
  spawn("python3", ["{DAEMON}"], {{ detached: true, stdio: "ignore", env }}).unref();
}}
for (let i = 0; i < 100 && !existsSync("{READY}"); i++) {{
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
}}
"""
WAITING = """\
import glob
import pathlib
import time

END = time.monotonic() + 20
pathlib.Path("build").mkdir(exist_ok=True)
pathlib.Path("build/ready").touch()


def wait_for(pattern):
    while not glob.glob(pattern):
        if time.monotonic() > END:
            raise SystemExit
        time.sleep(0.005)


"""


def swap(path: str, text: str, step: str = "test") -> dict[str, str]:
    """A daemon that gives a file another content for as long as a judge looks at it."""
    script = f"""\
file = pathlib.Path({path!r})
for attempt in range(1, 9):
    wait_for(f".backedge/attempts/*/{step}-{{attempt}}")
    before = file.read_text() if file.exists() else None
    file.write_text({text!r})
    wait_for(f".backedge/attempts/*/{step}-{{attempt}}/ended.json")
    file.unlink() if before is None else file.write_text(before)
"""
    return {DAEMON: WAITING + script}
