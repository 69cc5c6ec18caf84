"""A project with stories per test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.parts import Stories


@pytest.fixture
def project(tmp_path: Path) -> Stories:
    return Stories(tmp_path / "project")
