"""A project per test, in a folder of its own, that leaves no process behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.patience import patience
from tests.cli.project import Project

__all__ = ["make", "patience"]

Make = Callable[..., Project]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Project] = []

    def new(*args: object, **scripts: object) -> Project:
        project = Project(tmp_path / f"project{len(made) or ''}", *args, **scripts)  # type: ignore[arg-type]
        made.append(project)
        return project

    yield new
    for project in made:
        project.end_all()
