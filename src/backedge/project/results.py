"""stdout is for results: what functions of a project print goes to stderr instead."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

STDOUT, STDERR = 1, 2


@contextmanager
def stdout_for_results() -> Iterator[None]:
    """Send everything that is printed to stderr, also by programs that functions start."""
    try:
        sys.stdout.flush()
        saved = os.dup(STDOUT)
    except (OSError, AttributeError):
        yield  # without a stdout there is nothing to redirect
        return
    try:
        os.dup2(STDERR, STDOUT)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, STDOUT)
        os.close(saved)
