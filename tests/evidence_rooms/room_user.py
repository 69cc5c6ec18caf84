"""Opens a room as a program of its own, for tests that end it, or change what it finds around it.

    python room_user.py KIND WORKSPACE SCRATCH SCRIPT

Prints the name and kind of the room, runs the script in it, and prints what it changed and made.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from backedge.adapters.evidence.room import open_room

kind: Any
kind, workspace, scratch, script = sys.argv[1:]
with open_room(kind, Path(workspace), Path(scratch)) as room:
    print(room.name, room.kind, flush=True)
    argv = room.argv(["sh", "-c", script])
    done = subprocess.run(argv, cwd=room.cwd, env={**os.environ, **room.env}, check=False)
    print(done.returncode, room.problem("sh"), flush=True)
    print(",".join(room.changed()), flush=True)
    print(",".join(room.made()), flush=True)
