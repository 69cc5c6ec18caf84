"""Where the workflow file of a folder is."""

from __future__ import annotations

import os
from pathlib import Path

from backedge.config.problems import FILE_NAME, Problem, WorkflowFileError

FILE_NAMES = (FILE_NAME, "backedge.yml")


def find(start: Path) -> Path:
    """The workflow file of a folder: in it, or in the nearest folder above. Raises WorkflowFileError."""
    folder = start.resolve()
    for each in (folder, *folder.parents):
        for name in FILE_NAMES:
            if os.path.isfile(each / name):
                return each / name
    raise WorkflowFileError([Problem(0, 0, "", f"no {FILE_NAME} in {folder} or above: run `backedge init`")])
